-- A key counts when its transaction commits. What rolls back leaves no trace: the same key is
-- accepted at once afterwards. Concurrent transactions: test/isolation.
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '7', seed '1');
CREATE FOREIGN TABLE seen_events (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '7', seed '1');
CREATE TABLE events (id int, weight int CHECK (weight > 0));
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_events');

-- Which of the keys 1 to 9 are remembered?
CREATE FUNCTION known(filter regclass) RETURNS int[] LANGUAGE sql AS
  $$ SELECT array_agg(i ORDER BY i) FROM generate_series(1, 9) i WHERE streamfilter_test(filter, i) $$;

-- Rollback, in every way of adding a key.
BEGIN;
INSERT INTO seen VALUES (1);
SELECT streamfilter_seen('seen', 2);
INSERT INTO events VALUES (1, 1);
COPY seen FROM stdin;
3
\.
SELECT known('seen'), known('seen_events');
ROLLBACK;
SELECT known('seen'), known('seen_events');
BEGIN;
INSERT INTO seen VALUES (1) RETURNING id;
SELECT streamfilter_seen('seen', 2);
INSERT INTO events VALUES (1, 1) RETURNING id;
COMMIT;
SELECT known('seen'), known('seen_events');

-- A repeat inside one transaction is a duplicate, also of a key of a released savepoint.
BEGIN;
INSERT INTO seen VALUES (3), (3) RETURNING id;
SAVEPOINT a;
INSERT INTO seen VALUES (3), (4) RETURNING id;
SAVEPOINT b;
INSERT INTO seen VALUES (4), (5) RETURNING id;
RELEASE a;
INSERT INTO seen VALUES (3), (4), (5) RETURNING id;
COMMIT;
SELECT known('seen');

-- ROLLBACK TO SAVEPOINT takes back what came after it, released or not, and nothing else.
TRUNCATE seen;
BEGIN;
INSERT INTO seen VALUES (1);
SAVEPOINT a;
INSERT INTO seen VALUES (2);
SAVEPOINT b;
INSERT INTO seen VALUES (3);
RELEASE b;
SAVEPOINT c;
INSERT INTO seen VALUES (4);
ROLLBACK TO c;
SELECT known('seen');
INSERT INTO seen VALUES (4), (5) RETURNING id;
ROLLBACK TO a;
SELECT known('seen');
INSERT INTO seen VALUES (1), (2), (5) RETURNING id;
ROLLBACK TO a;
INSERT INTO seen VALUES (6);
COMMIT;
SELECT known('seen');

-- An exception that PL/pgSQL catches.
DO $$
BEGIN
  INSERT INTO seen VALUES (7);
  BEGIN
    INSERT INTO seen VALUES (7), (8);
    INSERT INTO events VALUES (8, 1);
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'after the exception: %, %', known('seen'), known('seen_events');
  END;
END $$;
SELECT known('seen'), known('seen_events');

-- A statement that fails takes none of its rows with it: neither the one that fails nor those before.
TRUNCATE seen_events, seen;
TRUNCATE events;
INSERT INTO events VALUES (1, 1), (2, 1), (3, 0), (4, 1);
SELECT known('seen_events');
INSERT INTO events VALUES (1, 1), (2, 1), (3, 1), (4, 1);
SELECT known('seen_events'), (SELECT array_agg(id) FROM events);
BEGIN;
INSERT INTO events VALUES (5, 1);
SAVEPOINT a;
INSERT INTO events VALUES (5, 1), (6, 1), (7, 0);
ROLLBACK TO a;
INSERT INTO events VALUES (5, 1), (6, 1), (7, 1) RETURNING id;
COMMIT;
-- An error at the very end of the transaction, too.
CREATE TABLE checked (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, repeat boolean);
CREATE TRIGGER zz BEFORE INSERT ON checked FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen', 'repeat', 'id');
BEGIN;
INSERT INTO checked VALUES (1), (1) RETURNING *;
COMMIT;
SELECT known('seen');
INSERT INTO checked VALUES (1) RETURNING *;

-- Thousands of subtransactions: every third one rolls back, each in a savepoint of its own or around
-- two more.
TRUNCATE seen;
DO $$
BEGIN
  FOR i IN 1 .. 3000 LOOP
    BEGIN
      INSERT INTO seen VALUES (i);
      BEGIN
        INSERT INTO seen VALUES (10000 + i);
        BEGIN
          INSERT INTO seen VALUES (20000 + i);
        END;
        IF i % 5 = 0 THEN RAISE division_by_zero; END IF;
      EXCEPTION WHEN division_by_zero THEN NULL;
      END;
      IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
  END LOOP;
END $$;
-- Every key is remembered or not as its savepoints say; of false positives there are none here.
SELECT j, streamfilter_test('seen', j * 10000 + i) AS known,
  i % 3 = 0 OR (j > 0 AND i % 5 = 0) AS rolled_back, count(*)
FROM generate_series(0, 2) j, generate_series(1, 3000) i GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT in_flight FROM streamfilter_stats WHERE filter = 'seen'::regclass;
-- A loop with transactions of its own.
TRUNCATE seen;
DO $$
BEGIN
  FOR i IN 1 .. 8 LOOP
    INSERT INTO seen VALUES (i);
    IF i % 2 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
  END LOOP;
END $$;
SELECT known('seen');

-- Cursors: what a cursor has added belongs to the subtransaction that fetched.
TRUNCATE seen;
BEGIN;
DECLARE c CURSOR FOR SELECT i, streamfilter_seen('seen', i) FROM generate_series(1, 6) i;
FETCH 2 FROM c;
SAVEPOINT a;
FETCH 2 FROM c;
ROLLBACK TO a;
FETCH 1 FROM c;
SELECT known('seen');
COMMIT;
SELECT known('seen');
-- A holdable cursor would be read to its end when the transaction commits.
TRUNCATE seen;
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT i, streamfilter_seen('seen', i) FROM generate_series(1, 3) i;
COMMIT;
SELECT known('seen');
INSERT INTO seen VALUES (1), (2), (3);

-- TRUNCATE: seen at once, undone by savepoints.
BEGIN;
TRUNCATE seen;
SELECT known('seen');
INSERT INTO seen VALUES (1), (4) RETURNING id;
SAVEPOINT a;
TRUNCATE seen;
INSERT INTO seen VALUES (1) RETURNING id;
SELECT known('seen');
ROLLBACK TO a;
INSERT INTO seen VALUES (1) RETURNING id;
SELECT known('seen');
ROLLBACK;
SELECT known('seen');
BEGIN;
INSERT INTO seen VALUES (5);
TRUNCATE seen;
INSERT INTO seen VALUES (6);
COMMIT;
SELECT known('seen');

-- DELETE likewise.
CREATE FOREIGN TABLE recent (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB', seed '1');
INSERT INTO recent VALUES (1), (2), (3);
BEGIN;
DELETE FROM recent WHERE id = 1;
DELETE FROM recent WHERE id = 1;
INSERT INTO recent VALUES (4);
SAVEPOINT a;
DELETE FROM recent WHERE id = 2;
DELETE FROM recent WHERE id = 4;
SELECT known('recent');
INSERT INTO recent VALUES (1), (2) RETURNING id;
SELECT known('recent');
ROLLBACK TO a;
SELECT known('recent');
INSERT INTO recent VALUES (1), (4) RETURNING id;
ROLLBACK;
SELECT known('recent');
BEGIN;
DELETE FROM recent WHERE id = 1;
INSERT INTO recent VALUES (1), (5) RETURNING id;
DELETE FROM recent WHERE id = 5;
DELETE FROM recent WHERE id = 2;
COMMIT;
SELECT known('recent');
DELETE FROM recent WHERE id = 3;
SELECT known('recent');

-- A merged value likewise.
TRUNCATE seen;
SELECT streamfilter_value('seen') AS empty \gset
CREATE TABLE saved AS
  SELECT streamfilter_agg(i, :'empty'::streamfilter) AS value FROM generate_series(1, 3) i;
BEGIN;
INSERT INTO seen VALUES (9);
SAVEPOINT a;
SELECT streamfilter_merge('seen', value) FROM saved;
SELECT known('seen');
INSERT INTO seen VALUES (3), (4) RETURNING id;
ROLLBACK TO a;
SELECT known('seen');
SELECT streamfilter_merge('seen', value) FROM saved;
TRUNCATE seen;
SELECT known('seen');
SELECT streamfilter_merge('seen', value) FROM saved;
INSERT INTO seen VALUES (3), (8) RETURNING id;
COMMIT;
SELECT known('seen');

-- A value taken inside a transaction has the transaction's own changes, and only while they last.
TRUNCATE seen, recent;
INSERT INTO recent VALUES (1);
BEGIN;
INSERT INTO seen VALUES (1);
INSERT INTO recent VALUES (2);
DELETE FROM recent WHERE id = 1;
SELECT streamfilter_value('seen') @> 1 AS own, streamfilter_value('recent') @> 1 AS deleted,
  streamfilter_value('recent') @> 2 AS own_recent;
SAVEPOINT a;
TRUNCATE seen;
INSERT INTO seen VALUES (2);
SELECT streamfilter_value('seen') @> 1 AS truncated, streamfilter_value('seen') @> 2 AS own;
ROLLBACK TO a;
SELECT streamfilter_value('seen') @> 1 AS own, streamfilter_value('seen') @> 2 AS undone;
ROLLBACK;
SELECT streamfilter_value('seen') @> 1 AS undone, streamfilter_value('recent') @> 1 AS kept;

-- DDL and keys in one transaction.
BEGIN;
CREATE FOREIGN TABLE short (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4');
INSERT INTO short VALUES (1), (1) RETURNING id;
SAVEPOINT a;
DROP FOREIGN TABLE short;
ROLLBACK TO a;
INSERT INTO short VALUES (1), (2) RETURNING id;
COMMIT;
BEGIN;
INSERT INTO short VALUES (3);
ALTER FOREIGN TABLE short OPTIONS (SET memory '16kB', SET k '5');
INSERT INTO short VALUES (1), (3), (4) RETURNING id;
ROLLBACK;
SELECT known('short');
BEGIN;
INSERT INTO short VALUES (3);
SAVEPOINT a;
ALTER FOREIGN TABLE short OPTIONS (SET memory '16kB', SET k '5');
INSERT INTO short VALUES (1), (3), (4) RETURNING id;
ROLLBACK TO a;
INSERT INTO short VALUES (1), (3), (5) RETURNING id;
COMMIT;
SELECT known('short');
BEGIN;
INSERT INTO short VALUES (6);
DROP FOREIGN TABLE short;
COMMIT;
-- The state of a filter that the transaction has created comes back, too.
BEGIN;
CREATE FOREIGN TABLE short (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4');
INSERT INTO short VALUES (1);
SAVEPOINT a;
ALTER FOREIGN TABLE short OPTIONS (SET memory '16kB', SET k '5');
INSERT INTO short VALUES (1), (2) RETURNING id;
ROLLBACK TO a;
INSERT INTO short VALUES (1), (2) RETURNING id;
SAVEPOINT b;
ALTER FOREIGN TABLE short OPTIONS (SET memory '16kB', SET k '5');
INSERT INTO short VALUES (1), (3) RETURNING id;
ALTER FOREIGN TABLE short OPTIONS (SET memory '32kB', SET k '6');
INSERT INTO short VALUES (1), (4) RETURNING id;
RELEASE b;
INSERT INTO short VALUES (1), (2) RETURNING id;
COMMIT;
SELECT known('short');
SELECT in_flight, created IS NOT NULL AS in_memory FROM streamfilter_stats WHERE filter = 'short'::regclass;
DROP FOREIGN TABLE short;
-- A filter whose first use is in a savepoint that rolls back.
CREATE FOREIGN TABLE short (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4');
BEGIN;
SAVEPOINT a;
INSERT INTO short VALUES (1);
ROLLBACK TO a;
INSERT INTO short VALUES (1) RETURNING id;
COMMIT;
SELECT known('short'), (SELECT in_flight FROM streamfilter_stats WHERE filter = 'short'::regclass);
DROP FOREIGN TABLE short;

-- PREPARE TRANSACTION keeps keys in flight until the end.
TRUNCATE seen;
BEGIN;
INSERT INTO seen VALUES (1);
SAVEPOINT a;
INSERT INTO seen VALUES (2);
ROLLBACK TO a;
SAVEPOINT b;
INSERT INTO seen VALUES (3);
RELEASE b;
PREPARE TRANSACTION 'kept';
SELECT known('seen');
SELECT in_flight FROM streamfilter_stats WHERE filter = 'seen'::regclass;
SET lock_timeout = '10ms';
-- Since 19 the server's own context tells the transaction, by its number.
DO $$
DECLARE context text;
BEGIN
  INSERT INTO seen VALUES (3);
EXCEPTION WHEN lock_not_available THEN
  GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
  RAISE NOTICE '%: %', SQLERRM, substring(context FROM 'while waiting for [^\n]*');
END $$;
RESET lock_timeout;
INSERT INTO seen VALUES (2) RETURNING id;
COMMIT PREPARED 'kept';
SELECT known('seen');
BEGIN;
INSERT INTO seen VALUES (4);
PREPARE TRANSACTION 'dropped';
ROLLBACK PREPARED 'dropped';
SELECT known('seen');
INSERT INTO seen VALUES (4) RETURNING id;
SELECT in_flight FROM streamfilter_stats WHERE filter = 'seen'::regclass;
-- A kind that learns from repeats; only new keys count as rolled back.
CREATE FOREIGN TABLE fading (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB', seed '1');
BEGIN;
INSERT INTO fading VALUES (1), (1), (1), (2);
PREPARE TRANSACTION 'repeats';
ROLLBACK PREPARED 'repeats';
SELECT tested, accepted, discarded, rolled_back, in_flight FROM streamfilter_stats
WHERE filter = 'fading'::regclass;
-- After what cannot be kept for later, PREPARE is refused; the transaction rolls back.
BEGIN;
INSERT INTO recent VALUES (1);
DELETE FROM recent WHERE id = 1;
PREPARE TRANSACTION 'refused';
BEGIN;
SELECT streamfilter_merge('seen', value) FROM saved;
PREPARE TRANSACTION 'refused';
-- TRUNCATE, ALTER and DROP wait for the end.
INSERT INTO recent VALUES (1), (2);
BEGIN;
INSERT INTO seen VALUES (5);
INSERT INTO recent VALUES (3);
TRUNCATE recent;
INSERT INTO recent VALUES (4);
PREPARE TRANSACTION 'emptied';
SELECT known('seen');
ROLLBACK PREPARED 'emptied';
SELECT known('seen'), known('recent');
BEGIN;
INSERT INTO recent VALUES (3);
TRUNCATE recent;
INSERT INTO recent VALUES (4);
PREPARE TRANSACTION 'emptied';
COMMIT PREPARED 'emptied';
SELECT known('recent');
BEGIN;
ALTER FOREIGN TABLE seen OPTIONS (SET k '5');
INSERT INTO seen VALUES (5);
PREPARE TRANSACTION 'altered';
ROLLBACK PREPARED 'altered';
SELECT known('seen');
BEGIN;
INSERT INTO seen VALUES (5);
DROP FOREIGN TABLE recent;
PREPARE TRANSACTION 'dropped';
ROLLBACK PREPARED 'dropped';
SELECT known('seen'), known('recent');
-- A filter that has no state stays locked.
CREATE FOREIGN TABLE unused (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '7');
BEGIN;
TRUNCATE unused;
PREPARE TRANSACTION 'accepted';
ROLLBACK PREPARED 'accepted';
BEGIN;
SAVEPOINT a;
TRUNCATE unused;
ROLLBACK TO a;
INSERT INTO seen VALUES (5);
PREPARE TRANSACTION 'accepted';
ROLLBACK PREPARED 'accepted';
-- A first use that a savepoint takes back changes nothing: what follows needs no image.
BEGIN;
SAVEPOINT a;
INSERT INTO unused VALUES (1);
ROLLBACK TO a;
COMMIT;
BEGIN;
INSERT INTO unused VALUES (2);
PREPARE TRANSACTION 'accepted';
ROLLBACK PREPARED 'accepted';
INSERT INTO unused VALUES (3);
SELECT last_saved IS NULL AS has_no_image FROM streamfilter_stats WHERE filter = 'unused'::regclass;
DROP FOREIGN TABLE unused;
-- Another part of the server may refuse it later.
BEGIN;
INSERT INTO seen VALUES (5);
CREATE TEMPORARY TABLE own (id int);
PREPARE TRANSACTION 'refused';
-- What a savepoint has undone does not stand in the way.
BEGIN;
SAVEPOINT a;
TRUNCATE recent;
ROLLBACK TO a;
INSERT INTO seen VALUES (5);
PREPARE TRANSACTION 'accepted';
ROLLBACK PREPARED 'accepted';
SELECT known('seen');
SELECT filter, in_flight FROM streamfilter_stats
WHERE filter IN ('seen'::regclass, 'recent'::regclass) ORDER BY filter::text;

-- A read-only transaction tests, and says why it does not remember.
BEGIN READ ONLY;
SELECT streamfilter_test('seen', 1), streamfilter_test('seen', 5);
SELECT id FROM seen WHERE id = 1;
SAVEPOINT a;
SELECT streamfilter_seen('seen', 1);
ROLLBACK TO a;
INSERT INTO seen VALUES (1);
ROLLBACK TO a;
DELETE FROM recent WHERE id = 1;
ROLLBACK TO a;
TRUNCATE seen;
ROLLBACK TO a;
SELECT streamfilter_merge('seen', value) FROM saved;
ROLLBACK;

-- With conflict 'admit' or 'discard' a single session notices no difference.
CREATE FOREIGN TABLE admitting (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '7', seed '1', conflict 'admit');
CREATE FOREIGN TABLE discarding (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '7', seed '1', conflict 'discard');
BEGIN;
INSERT INTO admitting VALUES (1), (1) RETURNING id;
INSERT INTO discarding VALUES (1), (1) RETURNING id;
SAVEPOINT a;
INSERT INTO admitting VALUES (1), (2) RETURNING id;
INSERT INTO discarding VALUES (1), (2) RETURNING id;
ROLLBACK TO a;
INSERT INTO admitting VALUES (1), (2) RETURNING id;
INSERT INTO discarding VALUES (1), (2) RETURNING id;
ROLLBACK;
INSERT INTO admitting VALUES (1) RETURNING id;
INSERT INTO discarding VALUES (1) RETURNING id;
-- A prepared transaction is another one, though.
BEGIN;
INSERT INTO admitting VALUES (3);
INSERT INTO discarding VALUES (3);
PREPARE TRANSACTION 'conflict';
INSERT INTO admitting VALUES (3) RETURNING id;
INSERT INTO discarding VALUES (3) RETURNING id;
ROLLBACK PREPARED 'conflict';
SELECT known('admitting'), known('discarding');
ALTER FOREIGN TABLE admitting OPTIONS (SET conflict 'never');

-- What the statistics count.
CREATE FOREIGN TABLE counted (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '7', seed '1');
BEGIN;
INSERT INTO counted VALUES (1), (2), (2);
SAVEPOINT a;
INSERT INTO counted VALUES (2), (3), (4), (5);
SELECT accepted, discarded, rolled_back, in_flight FROM streamfilter_stats
WHERE filter = 'counted'::regclass;
ROLLBACK TO a;
SELECT accepted, discarded, rolled_back, in_flight FROM streamfilter_stats
WHERE filter = 'counted'::regclass;
COMMIT;
BEGIN;
INSERT INTO counted VALUES (6);
ROLLBACK;
SELECT tested, accepted, discarded, rolled_back, in_flight, waits, overflowed
FROM streamfilter_stats WHERE filter = 'counted'::regclass;

-- A transaction with more keys than max_in_flight, which the statistics tell.
BEGIN;
INSERT INTO counted SELECT generate_series(1001, 1000 + current_setting('streamfilter.max_in_flight')::int);
SELECT in_flight = current_setting('streamfilter.max_in_flight')::int AS all_keys, overflowed
FROM streamfilter_stats WHERE filter = 'counted'::regclass;
INSERT INTO counted SELECT generate_series(1001, 2000) RETURNING id;
SAVEPOINT a;
TRUNCATE counted;
INSERT INTO counted VALUES (1) RETURNING id;
ROLLBACK TO a;
PREPARE TRANSACTION 'refused';
SELECT in_flight, overflowed FROM streamfilter_stats WHERE filter = 'counted'::regclass;
SELECT known('counted');

-- Windows inside one transaction: of rows, and of time.
CREATE FOREIGN TABLE of_rows (id int) SERVER streamfilter
  OPTIONS (kind 'timer', window '100 rows', keys '1000', fpr '1e-6', seed '1');
BEGIN;
INSERT INTO of_rows VALUES (0);
INSERT INTO of_rows SELECT generate_series(1, 50);
INSERT INTO of_rows VALUES (0) RETURNING id AS still_known;
INSERT INTO of_rows SELECT generate_series(51, 400);
INSERT INTO of_rows VALUES (0), (400) RETURNING id AS new_again;
COMMIT;
INSERT INTO of_rows VALUES (0), (400) RETURNING id;
CREATE FOREIGN TABLE of_time (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', window '10 minutes', keys '1000', fpr '1e-6', seed '1');
BEGIN;
INSERT INTO of_time VALUES (1, '2020-01-01 00:00'), (1, '2020-01-01 00:05'), (2, '2020-01-01 00:05') RETURNING *;
SAVEPOINT a;
INSERT INTO of_time VALUES (1, '2020-01-01 01:00') RETURNING *;
ROLLBACK TO a;
INSERT INTO of_time VALUES (1, '2020-01-01 00:09') RETURNING *;
INSERT INTO of_time VALUES (1, '2020-01-01 00:30') RETURNING *;
COMMIT;
INSERT INTO of_time VALUES (1, '2020-01-01 00:35'), (3, '2020-01-01 00:35') RETURNING *;

DROP FUNCTION known;
DROP TABLE events, checked, saved;
DROP FOREIGN TABLE seen, seen_events, recent, fading, admitting, discarding, counted, of_rows, of_time;

-- A filter is the same to the last bit whether keys come in one transaction, with repeats and a savepoint
-- that is rolled back, or each in a transaction of its own.
CREATE FOREIGN TABLE at_once (id int) SERVER streamfilter OPTIONS (kind 'clq', fpr '0.01', memory '64kB', seed '1');
CREATE FOREIGN TABLE one_by_one (id int) SERVER streamfilter
  OPTIONS (kind 'clq', fpr '0.01', memory '64kB', seed '1', persistence 'unlogged');
BEGIN;
SELECT count(*) FILTER (WHERE streamfilter_seen('at_once', i * i % 1009)) FROM generate_series(1, 1500) i;
SAVEPOINT a;
SELECT count(*) FILTER (WHERE streamfilter_seen('at_once', i)) FROM generate_series(1000, 1, -1) i;
ROLLBACK TO a;
SELECT count(*) FILTER (WHERE streamfilter_seen('at_once', i * i % 1009)) FROM generate_series(1501, 3000) i;
COMMIT;
DO $$
BEGIN
  FOR i IN 1..3000 LOOP
    PERFORM streamfilter_seen('one_by_one', i * i % 1009);
    COMMIT;
  END LOOP;
END
$$;
SELECT streamfilter_send(streamfilter_value('at_once')) =
       streamfilter_send(streamfilter_value('one_by_one')) AS same;
DROP FOREIGN TABLE at_once, one_by_one;
