--
-- streamfilter_settle: what was diverted wrongly comes back, the rest goes
--
SET client_min_messages = warning;
CREATE FOREIGN TABLE seen (id bigint) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE events (n int GENERATED ALWAYS AS IDENTITY, id int, note text, twice int GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE repeats (LIKE events, diverted_at timestamptz, filter regclass);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
-- Keys that the filter knows and the table has not are what false positives are.
INSERT INTO seen SELECT generate_series(100, 104);
INSERT INTO events (id, note) VALUES (1, 'a'), (1, 'b'), (100, 'c'), (100, 'd'), (101, 'e'), (2, 'f'), (2, 'g'), (2, 'h');
SELECT id, note FROM events ORDER BY n;
SELECT n, id, note FROM repeats ORDER BY n;
SELECT * FROM streamfilter_settle('repeats', 'events');
SELECT n, id, note, twice FROM events ORDER BY n;
SELECT count(*) FROM repeats;
-- Again: nothing to do. What came back is known.
SELECT * FROM streamfilter_settle('repeats', 'events');
INSERT INTO events (id, note) VALUES (100, 'i'), (101, 'j');
SELECT * FROM streamfilter_settle('repeats', 'events');
-- The filter remembers what comes back.
INSERT INTO repeats VALUES (50, 7000, 'not known', 0, now(), 'seen');
SELECT streamfilter_test('seen', 7000);
SELECT * FROM streamfilter_settle('repeats', 'events');
SELECT streamfilter_test('seen', 7000);
INSERT INTO events (id) VALUES (7000);
SELECT confirmed FROM streamfilter_settle('repeats', 'events');
SELECT discarded, diverted FROM streamfilter_triggers WHERE filter = 'seen'::regclass;

-- It is part of the transaction.
INSERT INTO events (id, note) VALUES (103, 'k'), (1, 'l');
BEGIN;
SELECT * FROM streamfilter_settle('repeats', 'events');
SELECT note FROM events WHERE id = 103;
INSERT INTO events (id, note) VALUES (103, 'm');
SELECT * FROM streamfilter_settle('repeats', 'events');
ROLLBACK;
SELECT note FROM repeats ORDER BY n;
BEGIN;
SAVEPOINT s;
SELECT restored FROM streamfilter_settle('repeats', 'events');
ROLLBACK TO s;
SELECT restored FROM streamfilter_settle('repeats', 'events');
COMMIT;
SELECT count(*) FROM repeats;
-- Own rows of this transaction
BEGIN;
INSERT INTO events (id, note) VALUES (104, 'n'), (3, 'o'), (3, 'p');
SELECT * FROM streamfilter_settle('repeats', 'events');
COMMIT;

-- keep, since, most
INSERT INTO events (id, note) VALUES (1, 'q'), (1, 'r'), (2, 's');
INSERT INTO repeats SELECT 60 + i, 200 + i, 'old', 0, now() - interval '2 days', 'seen' FROM generate_series(0, 3) i;
INSERT INTO repeats VALUES (70, 300, 'new', 0, now(), 'seen'), (71, 300, 'new again', 0, now() + interval '1 s', 'seen');
SELECT * FROM streamfilter_settle('repeats', 'events', since => now() - interval '1 hour', keep => true);
SELECT note FROM events WHERE id = 300;
SELECT id, note FROM repeats WHERE id < 200 OR id >= 300 ORDER BY n;
SELECT * FROM streamfilter_settle('repeats', 'events', most => 2);
SELECT count(*) FROM repeats;
SELECT restored + confirmed AS settled FROM streamfilter_settle('repeats', 'events', most => 3);
SELECT restored + confirmed AS settled FROM streamfilter_settle('repeats', 'events', most => 3);
SELECT * FROM streamfilter_settle('repeats', 'events', most => 0);
SELECT count(*) FROM repeats;

-- Duplicates that stayed: the first row of each key is the one that lies first.
ALTER TABLE events DISABLE TRIGGER zz;
INSERT INTO events (id, note) VALUES (1, 'again'), (1, 'and again'), (2, 'again'), (NULL, 'none'), (NULL, 'none');
ALTER TABLE events ENABLE TRIGGER zz;
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'report');
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'delete');
SELECT note FROM events WHERE id IN (1, 2) OR id IS NULL ORDER BY n;
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'report');
DROP TABLE events, repeats;
DROP FOREIGN TABLE seen;

-- A filter that can forget does not, with the later row of a key that stays.
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB');
CREATE TABLE events (id int, note text);
CREATE TABLE repeats (LIKE events);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
CREATE TRIGGER follow AFTER DELETE ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen');
INSERT INTO events VALUES (1, 'a');
ALTER TABLE events DISABLE TRIGGER zz;
INSERT INTO events VALUES (1, 'b');
ALTER TABLE events ENABLE TRIGGER zz;
SELECT duplicates FROM streamfilter_settle('repeats', 'events', duplicates => 'delete');
TABLE events;
SELECT streamfilter_test('seen', 1);
DELETE FROM events;
SELECT streamfilter_test('seen', 1);
DROP TABLE events, repeats;
DROP FOREIGN TABLE seen;

-- Keys are compared as the filter compares them: collations, blanks, precision, several columns, NULLs.
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE FOREIGN TABLE seen (who text COLLATE nocase, amount numeric(8,1), "Odd ""name" char(4))
  SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6', nulls 'not distinct');
CREATE TABLE events (name varchar COLLATE "C", amount numeric(8,1), "Odd ""name" char(4), n int);
CREATE TABLE repeats (n text, "Odd ""name" char(4), amount numeric, name text);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats', name, amount, '"Odd ""name"');
INSERT INTO events VALUES ('Ann', 1.0, 'x', 1), ('ANN', 1, 'x ', 2), (NULL, 1, 'x', 3), (NULL, 1, 'x', 4), (NULL, NULL, NULL, 5), (NULL, NULL, NULL, 6);
INSERT INTO repeats VALUES ('7', 'y', 1.04, 'ann'), ('8', 'y', 1, 'aNN'), ('9', NULL, 1, 'Bob'), ('10', NULL, 1.0, 'bob');
SELECT * FROM streamfilter_settle('repeats', 'events');
SELECT n, name, amount, "Odd ""name" FROM events ORDER BY n;
TABLE repeats;
DROP TABLE events, repeats;
DROP FOREIGN TABLE seen;
DROP COLLATION nocase;

-- Many NULLs that are one key, without an index and with one
CREATE FOREIGN TABLE seen (a bigint, b text) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6', nulls 'not distinct');
CREATE TABLE events (b text, n int, a bigint);
CREATE TABLE repeats (a int, n int, b text);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats', a, b);
INSERT INTO events SELECT nullif(i % 200, 0)::text, i, nullif(i / 200, 7) FROM generate_series(1, 20000) i;
INSERT INTO events SELECT nullif(i % 200, 0)::text, i + 20000, nullif(i / 200, 7) FROM generate_series(1, 30000, 3) i;
INSERT INTO repeats SELECT nullif(i, 900), i, NULL FROM generate_series(501, 1000) i UNION ALL SELECT nullif(i, 900), i, NULL FROM generate_series(901, 1000) i;
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'report');
SELECT count(*), count(DISTINCT (a, b)) FROM events;
CREATE INDEX ON events (a, b);
INSERT INTO events SELECT NULL, i, i FROM generate_series(501, 900) i;
INSERT INTO repeats VALUES (5001, 1, NULL), (5001, 2, NULL), (NULL, 3, 'new');
SELECT * FROM streamfilter_settle('repeats', 'events', most => 3);
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'report');
SELECT count(*), count(DISTINCT (a, b)) FROM events;
DROP TABLE events, repeats;
DROP FOREIGN TABLE seen;

-- Partitioned tables, at both ends; without an index and with one; columns that the other has not.
CREATE FOREIGN TABLE seen (id bigint, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', window '10 years', keys '1000', fpr '1e-6');
CREATE TABLE events (id bigint, at timestamptz, note text DEFAULT 'none', gone int) PARTITION BY RANGE (at);
ALTER TABLE events DROP gone;
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE events_2 (note text, at timestamptz, id bigint);
ALTER TABLE events ATTACH PARTITION events_2 FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE TABLE repeats (at timestamptz, id bigint, more text) PARTITION BY HASH (id);
CREATE TABLE repeats_1 PARTITION OF repeats FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE repeats_2 PARTITION OF repeats FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
INSERT INTO events SELECT i, '2026-01-15', 'x' FROM generate_series(1, 20) i;
INSERT INTO events SELECT i, '2026-02-15', 'y' FROM generate_series(11, 30) i;
INSERT INTO repeats SELECT '2026-02-10', i FROM generate_series(31, 40) i;
INSERT INTO repeats SELECT '2026-01-10', i FROM generate_series(36, 45) i;
SELECT * FROM streamfilter_settle('repeats', 'events');
SELECT tableoid::regclass, count(*), count(DISTINCT id), min(id), max(id), min(note) FROM events GROUP BY 1 ORDER BY 1;
CREATE INDEX ON events (id);
INSERT INTO events SELECT i, '2026-02-15' FROM generate_series(1, 45) i;
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'report');
SELECT * FROM streamfilter_settle('repeats', 'events_2');
DROP TABLE events, repeats;
DROP FOREIGN TABLE seen;

-- Other triggers fire; one that drops a row drops none that was diverted.
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE events (id int, note text);
CREATE TABLE repeats (LIKE events);
CREATE TABLE log (id int);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
CREATE FUNCTION note_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.id); RETURN NEW; END $$;
CREATE TRIGGER aa BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION note_it();
INSERT INTO repeats VALUES (1, 'a'), (2, 'b');
SELECT * FROM streamfilter_settle('repeats', 'events');
TABLE log;
CREATE OR REPLACE FUNCTION note_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
INSERT INTO repeats VALUES (3, 'c');
SELECT * FROM streamfilter_settle('repeats', 'events');
TABLE repeats;
DROP TRIGGER aa ON events;
-- Several tables divert to one.
CREATE FOREIGN TABLE others_seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE others (LIKE events);
CREATE TRIGGER zz BEFORE INSERT ON others FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('others_seen', 'repeats');
SELECT * FROM streamfilter_settle('repeats', 'events');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER TABLE repeats ADD filter regclass DEFAULT 'seen';
INSERT INTO others VALUES (8, 'd'), (8, 'e');
SELECT * FROM streamfilter_settle('repeats', 'events');
SELECT * FROM streamfilter_settle('repeats', 'others');
DROP TABLE others;
DROP FOREIGN TABLE others_seen;
-- Without a trigger the columns are named, and compared as they are.
DROP TRIGGER zz ON events;
INSERT INTO repeats (id, note) VALUES (1, 'f'), (4, 'g'), (4, 'h'), (NULL, 'i');
SELECT * FROM streamfilter_settle('repeats', 'events');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT * FROM streamfilter_settle('repeats', 'events', '{nothing}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT * FROM streamfilter_settle('repeats', 'events', '{}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
-- Rules are not for rows that are moved.
CREATE RULE keep AS ON DELETE TO repeats DO INSTEAD NOTHING;
SELECT * FROM streamfilter_settle('repeats', 'events', '{id}');
DROP RULE keep ON repeats;
CREATE RULE more AS ON INSERT TO events DO ALSO INSERT INTO log VALUES (1);
SELECT * FROM streamfilter_settle('repeats', 'events', '{id}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP RULE more ON events;
CREATE RULE keep AS ON DELETE TO events DO INSTEAD NOTHING;
SELECT * FROM streamfilter_settle('repeats', 'events', '{id}', duplicates => 'delete');
DROP RULE keep ON events;
SELECT * FROM streamfilter_settle('repeats', 'events', '{id}', duplicates => 'report');
SELECT * FROM events ORDER BY id, note;
-- A filter in a tree
CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS (kind 'bloom', k '3', memory '64kB');
CREATE FOREIGN TABLE leaf (id int) SERVER streamfilter OPTIONS (kind 'bloom', k '3', memory '64kB', parent 'root', tree 'sparse');
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('leaf', 'repeats');
INSERT INTO repeats (id) VALUES (90);
SELECT restored, streamfilter_test('leaf', 90), streamfilter_test('root', 90) FROM streamfilter_settle('repeats', 'events');
SELECT streamfilter_test('leaf', 90), streamfilter_test('root', 90);

-- Arguments
SELECT format('SELECT * FROM streamfilter_settle(%s)', arguments) FROM unnest(ARRAY[
  $$NULL, 'events'$$, $$'repeats', NULL$$, $$'repeats', 'events', keep => NULL$$, $$'repeats', 'events', duplicates => NULL$$,
  $$'repeats', 'events', duplicates => 'drop'$$, $$'repeats', 'events', most => -1$$,
  $$'repeats', 'events', most => 1, keep => true$$, $$'repeats', 'events', since => now()$$,
  $$'repeats', 'events', '{id,note}'$$, $$'repeats', 'events', '{NULL}'$$, $$'repeats', 'repeats'$$, $$'seen', 'events'$$,
  $$'events', 'streamfilter_stats'$$, $$'events', 'pg_class'$$]) AS arguments \gexec
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM streamfilter_settle('repeats', 'events');
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM streamfilter_settle('repeats', 'events');
ROLLBACK;
-- Rights
CREATE ROLE regress_settler;
SET ROLE regress_settler;
SELECT * FROM streamfilter_settle('repeats', 'events');
RESET ROLE;
GRANT SELECT, DELETE ON repeats TO regress_settler;
GRANT SELECT ON events TO regress_settler;
SET ROLE regress_settler;
SELECT * FROM streamfilter_settle('repeats', 'events');
RESET ROLE;
GRANT INSERT ON events TO regress_settler;
INSERT INTO repeats VALUES (91);
-- A call locks the table, for which INSERT alone does not suffice.
SET ROLE regress_settler;
SELECT * FROM streamfilter_settle('repeats', 'events');
SELECT count(*) FROM pg_locks WHERE relation = 'events'::regclass AND mode ~ 'Exclusive';
RESET ROLE;
GRANT UPDATE ON events TO regress_settler;
SET ROLE regress_settler;
SELECT * FROM streamfilter_settle('repeats', 'events');
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'delete');
-- Rows from elsewhere would pass the trigger, which only the table's owner may want.
CREATE TEMP TABLE own (LIKE events);
INSERT INTO own VALUES (90);
SELECT * FROM streamfilter_settle('own', 'events');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
RESET ROLE;
-- Disabled, it judges nothing.
ALTER TABLE events DISABLE TRIGGER zz;
SET ROLE regress_settler;
SELECT restored FROM streamfilter_settle('own', 'events', '{id}');
DROP TABLE own;
RESET ROLE;
ALTER TABLE events ENABLE TRIGGER zz;
SELECT * FROM streamfilter_settle('events', 'repeats', '{id}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER TABLE events ENABLE ROW LEVEL SECURITY;
SET ROLE regress_settler;
SELECT * FROM streamfilter_settle('repeats', 'events');
RESET ROLE;
DROP TABLE events, repeats, log;
DROP FOREIGN TABLE seen, root, leaf;
DROP FUNCTION note_it;
DROP ROLE regress_settler;

-- Without an index the table is read a few times, not once for each row.
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
CREATE TABLE events (id int);
CREATE TABLE repeats (LIKE events);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
INSERT INTO events SELECT generate_series(1, 2000);
INSERT INTO events SELECT generate_series(1, 2000);
INSERT INTO repeats SELECT generate_series(2001, 4000);
ANALYZE events, repeats;
BEGIN;
SELECT * FROM streamfilter_settle('repeats', 'events');
SELECT pg_stat_get_xact_numscans('events'::regclass) < 9 AS a_few;
COMMIT;
DROP TABLE events, repeats;
DROP FOREIGN TABLE seen;

-- Duplicates that others refer to, or that take others along; domains
\set SHOW_CONTEXT never
CREATE DOMAIN key AS int CHECK (VALUE > 0);
CREATE TABLE events (a key, b int, n int PRIMARY KEY);
CREATE TABLE repeats (n int, b key, a smallint);
CREATE TABLE children (n int REFERENCES events ON DELETE CASCADE);
CREATE TABLE strict_children (n int REFERENCES events);
CREATE FOREIGN TABLE seen (b key, a key) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
INSERT INTO events VALUES (1, 2, 1), (2, 1, 2), (1, 2, 3), (1, 2, 4), (2, 1, 5), (NULL, 1, 6), (NULL, 1, 7);
INSERT INTO children SELECT n FROM events;
INSERT INTO strict_children VALUES (4);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats', b, a);
INSERT INTO repeats VALUES (8, 2, 1), (9, 3, 1), (10, 3, 1), (11, 1, 3), (12, NULL, 1), (13, NULL, 1);
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'delete');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM repeats) AS repeats, (SELECT count(*) FROM children) AS children;
TRUNCATE strict_children;
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'delete');
SELECT * FROM events ORDER BY n;
SELECT string_agg(n::text, ' ' ORDER BY n) FROM children;
TABLE repeats;
INSERT INTO repeats VALUES (14, 5, -5);
SELECT * FROM streamfilter_settle('repeats', 'events');
DROP TABLE children, strict_children, events, repeats;
DROP FOREIGN TABLE seen;
DROP DOMAIN key;

-- What the table refuses stays, and its key is not remembered; all else settles, and a good row of the same key comes back.
\set SHOW_CONTEXT errors
CREATE TABLE shops (id int PRIMARY KEY);
INSERT INTO shops VALUES (1);
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE events (id int, shop int REFERENCES shops, n int CHECK (n >= 0) NOT NULL, note varchar(3));
CREATE TABLE repeats (id int, shop int, n int, note text);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
INSERT INTO repeats VALUES (1, 2, 1, 'FK'), (2, 1, -1, 'CHK'), (2, 1, 2, 'ok'), (2, 1, 3, 'too'), (3, 1, NULL, 'NN'), (4, 1, 4, 'too long'),
  (5, 1, 5, 'ok'), (NULL, 1, 6, 'ok'), (NULL, 2, 7, 'FK');
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events');
SELECT * FROM events ORDER BY n;
SELECT * FROM repeats ORDER BY id, n;
SELECT i, streamfilter_test('seen', i) FROM generate_series(1, 5) i;
INSERT INTO repeats VALUES (6, 1, 6, 'ok'), (7, 1, 7, 'ok');
SELECT restored, refused FROM streamfilter_settle('repeats', 'events', most => 2);
-- Values that can be no key, of either table
CREATE DOMAIN small AS int CHECK (VALUE < 100);
TRUNCATE events, repeats;
CREATE FOREIGN TABLE seen_small (id small) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
ALTER TABLE repeats ALTER id TYPE text;
INSERT INTO events VALUES (200, 1, 1), (50, 1, 1);
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_small', 'repeats');
INSERT INTO repeats VALUES ('200', 1, 1, 'big'), ('fifty', 1, 1, 'no'), ('50', 1, 1, 'yes'), ('51', 1, 1, 'new');
SELECT restored, confirmed, refused FROM streamfilter_settle('repeats', 'events', duplicates => 'report');
SELECT id FROM repeats ORDER BY id;
-- Constraints that are deferred are checked before it reports.
ALTER TABLE events ALTER CONSTRAINT events_shop_fkey DEFERRABLE INITIALLY DEFERRED;
DELETE FROM repeats;
INSERT INTO repeats VALUES ('60', 2, 1, 'FK'), ('61', 1, 1, 'ok');
BEGIN;
SELECT restored, refused FROM streamfilter_settle('repeats', 'events');
COMMIT;
SELECT id FROM repeats;
-- Rows that triggers insert meanwhile are judged as ever.
CREATE FUNCTION insert_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO events VALUES (61, 1, 100), (70, 1, 100);
  RETURN OLD;
END $$;
CREATE TRIGGER more BEFORE DELETE ON repeats FOR EACH ROW WHEN (OLD.id = '62') EXECUTE FUNCTION insert_more();
DELETE FROM repeats;
INSERT INTO repeats VALUES ('62', 1, 2, 'new');
SELECT restored, refused FROM streamfilter_settle('repeats', 'events');
SELECT id, n FROM events WHERE id > 60 ORDER BY id, n;
SELECT id, n FROM repeats ORDER BY id;
-- A row whose trigger alters the table is refused, and the table is as it was.
CREATE TABLE plain (id int);
CREATE TABLE plain_repeats (id int);
CREATE FUNCTION alter_plain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  ALTER TABLE plain ALTER id TYPE text;
  RETURN OLD;
END $$;
CREATE TRIGGER alters BEFORE DELETE ON plain_repeats FOR EACH ROW EXECUTE FUNCTION alter_plain();
INSERT INTO plain_repeats VALUES (63);
SELECT restored, refused FROM streamfilter_settle('plain_repeats', 'plain', '{id}', duplicates => 'report');
-- So late that no row is refused, it is an error.
INSERT INTO plain VALUES (63);
SELECT restored, refused FROM streamfilter_settle('plain_repeats', 'plain', '{id}', duplicates => 'report');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT id, pg_typeof(id) FROM plain;
-- Columns that rows could keep, and the way to them
CREATE TABLE computed (id int GENERATED ALWAYS AS (1) STORED, n int);
CREATE TABLE other_repeats (id int, m int);
SELECT * FROM streamfilter_settle('other_repeats', 'computed', '{id}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
CREATE TABLE points (id int, n point, j json);
ALTER TABLE other_repeats ADD n date;
SELECT * FROM streamfilter_settle('other_repeats', 'points', '{id}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
ALTER TABLE other_repeats DROP n, ADD j json;
SELECT * FROM streamfilter_settle('other_repeats', 'points', '{j}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP TABLE events, repeats, shops, computed, other_repeats, points, plain, plain_repeats;
DROP FOREIGN TABLE seen, seen_small;
DROP DOMAIN small;
DROP FUNCTION insert_more, alter_plain;

-- A hash finds rows, equality decides: here all hashes are one.
CREATE TYPE number;
CREATE FUNCTION number_in(cstring) RETURNS number LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
CREATE FUNCTION number_out(number) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
CREATE TYPE number (INPUT = number_in, OUTPUT = number_out, LIKE = int8);
CREATE FUNCTION number_eq(number, number) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int8eq';
CREATE FUNCTION number_hash(number) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE FUNCTION number_hash_extended(number, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1::bigint';
CREATE OPERATOR = (LEFTARG = number, RIGHTARG = number, FUNCTION = number_eq, COMMUTATOR = =, HASHES);
CREATE OPERATOR CLASS number_ops DEFAULT FOR TYPE number USING hash AS
  OPERATOR 1 =, FUNCTION 1 number_hash(number), FUNCTION 2 number_hash_extended(number, bigint);
CREATE FOREIGN TABLE seen (id number) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE events (id number, note text);
CREATE TABLE repeats (LIKE events);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
INSERT INTO events VALUES ('1', 'a'), ('2', 'b'), ('3', 'c'), ('2', 'd'), ('1', 'e');
SELECT restored, confirmed FROM streamfilter_settle('repeats', 'events', duplicates => 'delete');
SELECT * FROM events ORDER BY note;
DROP TABLE events, repeats;
DROP FOREIGN TABLE seen;
DROP TYPE number CASCADE;

-- More keys than one look into an index takes; parts of a table that is larger than memory
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
CREATE TABLE events (id int, n int);
CREATE TABLE repeats (LIKE events);
INSERT INTO events SELECT i, 1 FROM generate_series(1, 30000) i UNION ALL SELECT i, 2 FROM generate_series(1, 30000, 10) i;
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
CREATE INDEX ON events (id);
ANALYZE events;
INSERT INTO repeats SELECT i, 3 FROM generate_series(20001, 40000) i;
SET maintenance_work_mem = '1MB';
SELECT * FROM streamfilter_settle('repeats', 'events', most => 100);
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'report');
SELECT * FROM streamfilter_settle('repeats', 'events', duplicates => 'delete');
RESET maintenance_work_mem;
-- Few keys are looked up in an index, also of text of a stated length.
CREATE FOREIGN TABLE seen_names (name varchar(20)) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
CREATE TABLE names (name varchar(20) UNIQUE);
INSERT INTO names SELECT 'name ' || i FROM generate_series(1, 30000) i;
CREATE TABLE other_names (name text);
CREATE TRIGGER zz BEFORE INSERT ON names FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_names', 'other_names');
INSERT INTO other_names VALUES ('name 1'), ('name 0');
ANALYZE names;
BEGIN;
SELECT restored, confirmed FROM streamfilter_settle('other_names', 'names');
SELECT pg_stat_get_xact_tuples_returned('names'::regclass) < 1000 AS by_index;
COMMIT;
DROP TABLE names, other_names;
DROP FOREIGN TABLE seen_names;
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE n = 3) FROM events;
DROP TABLE events, repeats;
DROP FOREIGN TABLE seen;

-- Columns of any two types, and filters of a third: every error is one of ours, and says what to do.
SET client_min_messages = error;
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE digit AS ENUM ('1', '2');
CREATE TYPE pair AS (a int, b text);
CREATE TABLE said (command text, state text, hint text);
CREATE PROCEDURE try(command text) LANGUAGE plpgsql AS $$
DECLARE state text; hint text;
BEGIN
  EXECUTE command;
  INSERT INTO said VALUES (command, '00000', NULL);
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
  INSERT INTO said VALUES (command, state, hint);
END $$;
DO $$
DECLARE types text[] := '{int,bigint,text,varchar(1),json,jsonb,point,"numeric(3,1)",positive,digit,int[],pair}';
  there text; here text; filter text; v text;
BEGIN
  FOREACH there IN ARRAY types LOOP
    FOREACH here IN ARRAY types LOOP
      EXECUTE format('CREATE TABLE events (k %s, n int GENERATED ALWAYS AS IDENTITY, g int GENERATED ALWAYS AS (1) STORED)', here);
      EXECUTE format('CREATE TABLE repeats (k %s, diverted_at timestamptz DEFAULT now())', there);
      FOREACH v IN ARRAY ARRAY['1', '12', '{"a":1}', '(1,2)', '{1}', NULL] LOOP
        CALL try(format('INSERT INTO repeats VALUES (%L)', v));
        CALL try(format('INSERT INTO events VALUES (%L)', v));
      END LOOP;
      CALL try($q$SELECT streamfilter_settle('repeats', 'events', '{k}', duplicates => 'report')$q$);
      CALL try($q$SELECT streamfilter_settle('repeats', 'events', '{n}')$q$);
      CALL try($q$SELECT streamfilter_settle('events', 'repeats', '{k}', keep => true)$q$);
      FOREACH filter IN ARRAY ARRAY[here, 'int', 'text'] LOOP
        CALL try(format($q$CREATE FOREIGN TABLE seen (k %s) SERVER streamfilter OPTIONS (memory '8kB', nulls 'not distinct')$q$, filter));
        CALL try($q$CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'k')$q$);
        CALL try($q$SELECT streamfilter_settle('repeats', 'events', duplicates => 'delete')$q$);
        CALL try($q$SELECT streamfilter_settle('repeats', 'events', since => now(), most => 1)$q$);
        DROP TRIGGER IF EXISTS zz ON events;
        DROP FOREIGN TABLE IF EXISTS seen;
      END LOOP;
      DROP TABLE events, repeats;
      COMMIT;
    END LOOP;
  END LOOP;
END $$;
SELECT state, hint <> '' AS says_what_to_do FROM said WHERE command LIKE 'SELECT%' GROUP BY 1, 2 ORDER BY 1;
DROP TABLE said;
DROP PROCEDURE try;
DROP TYPE digit, pair;
DROP DOMAIN positive;

-- Values that are too long are refused, not cut and taken for others.
CREATE TABLE short (id int, k varchar(3));
CREATE TABLE long (id int, k text);
INSERT INTO short VALUES (1, 'abc');
INSERT INTO long VALUES (2, 'abcdef'), (3, 'xyzw'), (4, 'xyz');
SELECT * FROM streamfilter_settle('long', 'short', '{k}');
SELECT * FROM long ORDER BY id;
SELECT * FROM short ORDER BY id;
DROP TABLE short, long;

-- An error that is no row's ends the call and its transaction, no more.
CREATE TABLE slow (id int);
CREATE TABLE slow_repeats (id int);
CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'too slow' USING ERRCODE = '57014'; END $$;
CREATE TRIGGER slow BEFORE INSERT ON slow FOR EACH ROW EXECUTE FUNCTION be_slow();
INSERT INTO slow_repeats VALUES (1);
SELECT * FROM streamfilter_settle('slow_repeats', 'slow', '{id}');
SELECT count(*) FROM slow_repeats;

-- Code of the table's owner alters the table for repeats after its types were looked at.
CREATE TABLE altering (k int, note text);
CREATE TABLE altered (k int8, note text);
CREATE FUNCTION alter_it() RETURNS void LANGUAGE plpgsql AS
  $$BEGIN EXECUTE 'ALTER TABLE altered ALTER note TYPE int8 USING 12345678'; END$$;
CREATE FUNCTION alters(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM public.alter_it(); RETURN true; END$$;
CREATE DOMAIN altering_int AS int;
ALTER TABLE altering ALTER k TYPE altering_int;
ALTER DOMAIN altering_int ADD CHECK (public.alters(1) AND VALUE > 0);
DROP TABLE altered;
CREATE TABLE altered (k int8, note text);
INSERT INTO altered VALUES (5, 'hello');
\c
SET client_min_messages = warning;
\set VERBOSITY terse
SELECT * FROM streamfilter_settle('altered', 'altering', '{k}');
SELECT count(*) FROM altering;
DROP TABLE slow, slow_repeats, altering, altered;
DROP DOMAIN altering_int;
DROP FUNCTION be_slow, alter_it, alters;

\set VERBOSITY default
-- Rows are settled by the columns that the trigger judges them by.
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE events (id int, other int, note text);
CREATE TABLE repeats (LIKE events);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
INSERT INTO events VALUES (1, 1, 'a');
INSERT INTO repeats VALUES (1, 2, 'b');
SELECT * FROM streamfilter_settle('repeats', 'events', '{other}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
SELECT * FROM streamfilter_settle('repeats', 'events', '{id}');
-- A trigger that fires again and changes the key
CREATE FUNCTION change_id() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := NEW.id + 1; RETURN NEW; END $$;
CREATE TRIGGER aa BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION change_id();
INSERT INTO repeats VALUES (2, 3, 'c');
SELECT restored, refused FROM streamfilter_settle('repeats', 'events');
SELECT i, streamfilter_test('seen', i) FROM generate_series(2, 3) i;
TABLE events;
DROP TRIGGER aa ON events;
-- Rules that do not fire
CREATE RULE more AS ON INSERT TO events DO INSTEAD NOTHING;
ALTER TABLE events DISABLE RULE more;
SELECT restored, refused FROM streamfilter_settle('repeats', 'events');
ALTER TABLE events ENABLE REPLICA RULE more;
SET session_replication_role = replica;
SELECT restored, refused FROM streamfilter_settle('repeats', 'events');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
RESET session_replication_role;
DROP RULE more ON events;
-- Rows that their own table does not give up
CREATE FUNCTION keep_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.note = 'error' THEN RAISE 'this row is kept'; END IF;
  IF OLD.note = 'null' THEN RETURN NULL; END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER keeps BEFORE DELETE ON repeats FOR EACH ROW EXECUTE FUNCTION keep_it();
INSERT INTO repeats VALUES (1, 1, 'error'), (1, 1, 'null'), (1, 1, 'ok'), (10, 1, 'error'), (10, 2, 'ok'), (11, 1, 'null'), (12, 1, 'ok');
SELECT restored, confirmed, refused FROM streamfilter_settle('repeats', 'events');
SELECT id, note FROM events ORDER BY id;
SELECT id, note FROM repeats ORDER BY id, note;
SELECT i, streamfilter_test('seen', i) FROM generate_series(10, 12) i;
TRUNCATE repeats;
-- A trigger that settles: of other statements it may, within settling not.
CREATE OR REPLACE FUNCTION keep_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM streamfilter_settle('repeats', 'events');
  RETURN coalesce(NEW, OLD);
END $$;
INSERT INTO repeats VALUES (20, 1, 'new'), (1, 1, 'repeat');
SELECT restored, confirmed, refused FROM streamfilter_settle('repeats', 'events');
DROP TRIGGER keeps ON repeats;
CREATE TRIGGER settles AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION keep_it();
INSERT INTO events VALUES (30, 1, 'a'), (31, 1, 'b'), (30, 2, 'c');
SELECT id, note FROM events WHERE id >= 20 ORDER BY id;
SELECT id, note FROM repeats ORDER BY id;
-- Partitions elsewhere
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
CREATE TABLE parts (LIKE events) PARTITION BY LIST (id);
CREATE FOREIGN TABLE far PARTITION OF parts FOR VALUES IN (1) SERVER nowhere;
SELECT * FROM streamfilter_settle('parts', 'events', '{id}');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
DROP FOREIGN DATA WRAPPER nowhere CASCADE;
DROP TABLE events, repeats, parts;
DROP FOREIGN TABLE seen;
DROP FUNCTION change_id, keep_it;

-- Several filters on a table: a row comes back only if each of them calls it new, and then all remember it. Else it stays, and is counted.
CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE FOREIGN TABLE seen_codes (code int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
CREATE TABLE events (id int, code int, again bool);
CREATE TABLE repeats (LIKE events);
CREATE TABLE other_repeats (LIKE events);
CREATE FUNCTION known(VARIADIC ids int[]) RETURNS TABLE (i int, seen bool, codes bool) LANGUAGE sql AS
$$SELECT i, streamfilter_test('seen', i), streamfilter_test('seen_codes', i) FROM unnest(ids) i ORDER BY i$$;
CREATE TRIGGER zy BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats', id);
CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_codes', code);
INSERT INTO events VALUES (1, 1);
INSERT INTO repeats VALUES (1, 5), (2, 1), (3, 3), (4, 4), (4, 6);
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events');
SELECT id, code FROM events ORDER BY id;
TABLE repeats;
SELECT * FROM known(1, 2, 3, 4, 5, 6);
-- the other one diverts, too, to a table of its own: nothing comes there
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_codes', 'other_repeats', code);
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events');
SELECT count(*) FROM other_repeats;
-- or marks: that keeps no row out
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen_codes', 'again', code);
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events');
SELECT * FROM events WHERE id = 2;
SELECT * FROM known(2);
-- Another row of the key comes back if each filter takes that one; a refused one leaves no key behind, in any of them.
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_codes', code);
ALTER TABLE events ADD CHECK (code <> 12);
INSERT INTO repeats VALUES (10, 1), (10, 10), (11, 1), (12, 12), (13, 13);
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events');
SELECT id, code FROM events WHERE id >= 10 ORDER BY id;
SELECT id, code FROM repeats ORDER BY id, code;
SELECT * FROM known(10, 11, 12, 13);
-- rolled back for both
BEGIN;
INSERT INTO repeats VALUES (14, 14);
SAVEPOINT s;
SELECT restored FROM streamfilter_settle('repeats', 'events');
SELECT * FROM known(14);
ROLLBACK TO s;
SELECT * FROM known(14);
ROLLBACK;
-- Two that divert to one table: `columns` says by which of them it settles; rows of the other stay.
DELETE FROM repeats;
CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen_codes', 'repeats', code);
INSERT INTO seen VALUES (20);
INSERT INTO seen_codes VALUES (21), (22);
INSERT INTO events VALUES (20, 20), (21, 21), (1, 22), (23, 1);
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events', keep => true);
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events', ARRAY['code']);
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events', ARRAY['id']);
SELECT id, code FROM events WHERE id >= 20 ORDER BY id;
TABLE repeats;
SELECT * FROM known(20, 21, 22, 23);
SELECT streamfilter_settle('repeats', 'events', ARRAY['again']);
-- a column "filter" tells them apart
ALTER TABLE repeats ADD filter regclass;
INSERT INTO seen VALUES (30);
INSERT INTO seen_codes VALUES (31);
INSERT INTO events VALUES (30, 30), (31, 31);
SELECT id, code, filter FROM repeats ORDER BY id;
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events');
SELECT restored, confirmed, waiting, refused FROM streamfilter_settle('repeats', 'events', ARRAY['code']);
SELECT id, code FROM events WHERE id >= 30 ORDER BY id;
DROP TABLE events, repeats, other_repeats;
DROP FOREIGN TABLE seen, seen_codes;
DROP FUNCTION known;
