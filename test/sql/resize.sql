-- ALTER … OPTIONS (SET memory …) keeps what a filter knows.
CREATE FUNCTION known(filter regclass, first int, last int) RETURNS bigint LANGUAGE sql AS
  'SELECT count(*) FROM generate_series($2, $3) i WHERE streamfilter_test($1, i)';

-- ---- a kind that forgets --------------------------------------------------------------------------
CREATE FOREIGN TABLE sized (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '128kB', seed '3', fpr '0.01');
INSERT INTO sized SELECT generate_series(1, 30000);
SELECT known('sized', 1, 30000) AS before \gset
ALTER FOREIGN TABLE sized OPTIONS (SET memory '512kB');
SELECT known('sized', 1, 30000) = :before AS all_known, known('sized', 100001, 110000) < 250 AS keeps_its_rate;
SELECT memory BETWEEN 500000 AND 524288 AS larger, tested > 30000 AS counted_on, fpr_now <= fpr_bound AS within, state
FROM streamfilter_stats WHERE filter = 'sized'::regclass;
INSERT INTO sized SELECT generate_series(25001, 35000);
-- Smaller: the newest keys stay.
ALTER FOREIGN TABLE sized OPTIONS (SET memory '60kB');
SELECT known('sized', 34001, 35000) > 980 AS newest_known, known('sized', 1, 35000) < 34000 AS some_forgotten,
  known('sized', 100001, 110000) < 250 AS keeps_its_rate;

-- ---- transactions ---------------------------------------------------------------------------------
TRUNCATE sized;
INSERT INTO sized SELECT generate_series(1, 1000);
BEGIN;
INSERT INTO sized VALUES (2001);
ALTER FOREIGN TABLE sized OPTIONS (SET memory '256kB');
INSERT INTO sized VALUES (2002);
SELECT known('sized', 1, 2100);
SAVEPOINT s;
ALTER FOREIGN TABLE sized OPTIONS (SET memory '512kB');
INSERT INTO sized VALUES (2003);
SELECT known('sized', 1, 2100);
ROLLBACK TO s;
SELECT known('sized', 1, 2100);
ALTER FOREIGN TABLE sized OPTIONS (SET memory '300kB');
INSERT INTO sized VALUES (2004);
SELECT known('sized', 1, 2100);
ROLLBACK;
SELECT known('sized', 1, 2100), memory FROM streamfilter_stats WHERE filter = 'sized'::regclass;
BEGIN;
INSERT INTO sized VALUES (2001);
ALTER FOREIGN TABLE sized OPTIONS (SET memory '256kB');
INSERT INTO sized VALUES (2002);
ALTER FOREIGN TABLE sized OPTIONS (SET memory '512kB');
INSERT INTO sized VALUES (2003);
COMMIT;
SELECT known('sized', 1, 2100);
BEGIN;
ALTER FOREIGN TABLE sized OPTIONS (SET memory '256kB');
PREPARE TRANSACTION 'resized';
ROLLBACK PREPARED 'resized';
SELECT known('sized', 1, 2100), memory FROM streamfilter_stats WHERE filter = 'sized'::regclass;
BEGIN;
ALTER FOREIGN TABLE sized OPTIONS (SET memory '256kB');
INSERT INTO sized VALUES (2010);
PREPARE TRANSACTION 'resized';
COMMIT PREPARED 'resized';
SELECT known('sized', 1, 2100), memory FROM streamfilter_stats WHERE filter = 'sized'::regclass;
BEGIN;
ALTER FOREIGN TABLE sized OPTIONS (SET memory '512kB');
PREPARE TRANSACTION 'resized';
COMMIT PREPARED 'resized';

-- There and back: the state in between is what counts, whichever savepoint it comes from.
BEGIN;
INSERT INTO sized VALUES (3001);
ALTER FOREIGN TABLE sized OPTIONS (SET memory '256kB');
INSERT INTO sized VALUES (3002);
ALTER FOREIGN TABLE sized OPTIONS (SET memory '512kB');
INSERT INTO sized VALUES (3003);
SAVEPOINT s;
ALTER FOREIGN TABLE sized OPTIONS (SET memory '256kB');
INSERT INTO sized VALUES (3004);
ALTER FOREIGN TABLE sized OPTIONS (SET memory '60kB');
INSERT INTO sized VALUES (3005);
SELECT known('sized', 3001, 3005) AS all_five;
ROLLBACK TO s;
SELECT known('sized', 3001, 3005) AS three;
ALTER FOREIGN TABLE sized OPTIONS (SET memory '60kB');
ALTER FOREIGN TABLE sized OPTIONS (ADD mode 'shadow');
ALTER FOREIGN TABLE sized OPTIONS (DROP mode);
INSERT INTO sized VALUES (3006);
COMMIT;
SELECT known('sized', 3001, 3006) AS four, memory < 70000 AS small FROM streamfilter_stats WHERE filter = 'sized'::regclass;
-- What is emptied in between stays empty.
BEGIN;
ALTER FOREIGN TABLE sized OPTIONS (SET memory '256kB');
TRUNCATE sized;
INSERT INTO sized VALUES (3007);
ALTER FOREIGN TABLE sized OPTIONS (SET memory '60kB');
COMMIT;
SELECT known('sized', 1, 3007) AS one;
BEGIN;
ALTER FOREIGN TABLE sized OPTIONS (SET memory '256kB');
TRUNCATE sized;
ALTER FOREIGN TABLE sized OPTIONS (SET memory '60kB');
COMMIT;
SELECT known('sized', 1, 3007) AS none;
-- Saved in between, and subtransactions of a block.
INSERT INTO sized SELECT generate_series(1, 1000);
DO $$BEGIN
  ALTER FOREIGN TABLE sized OPTIONS (SET memory '128kB');
  INSERT INTO sized VALUES (2001);
  PERFORM streamfilter_save('sized');
  BEGIN
    ALTER FOREIGN TABLE sized OPTIONS (SET memory '256kB');
    INSERT INTO sized VALUES (2002);
    RAISE EXCEPTION 'undone';
  EXCEPTION WHEN raise_exception THEN
    RAISE NOTICE '%', known('sized', 1, 2002);
  END;
  BEGIN
    ALTER FOREIGN TABLE sized OPTIONS (SET memory '512kB');
    INSERT INTO sized VALUES (2003);
  EXCEPTION WHEN raise_exception THEN
  END;
  ALTER FOREIGN TABLE sized OPTIONS (SET memory '60kB');
END$$;
SELECT known('sized', 1, 2003) AS these, memory < 70000 AS small FROM streamfilter_stats WHERE filter = 'sized'::regclass;
-- Nothing is saved before the transaction ends.
BEGIN;
SELECT count(*) AS images FROM _streamfilter.streamfilter_image WHERE filter = 'sized'::regclass \gset before_
ALTER FOREIGN TABLE sized OPTIONS (SET memory '128kB');
SELECT count(*) = :before_images AS as_before FROM _streamfilter.streamfilter_image WHERE filter = 'sized'::regclass;
COMMIT;

-- ---- every kind -----------------------------------------------------------------------------------
-- Twice the memory, and back: nothing that was known is forgotten but what there is no room for.
CREATE TABLE results (definition text, larger bool, lost_larger bigint, lost_back bigint, within_promise bool, known_after bigint, state text);
CREATE PROCEDURE resize(definition text, keys int) LANGUAGE plpgsql AS $$
DECLARE result results; fpr_promised float8;
BEGIN
  EXECUTE 'CREATE FOREIGN TABLE resized (id int) SERVER streamfilter OPTIONS (' || definition || $o$, memory '128kB', seed '5')$o$;
  INSERT INTO resized SELECT generate_series(1, keys);
  COMMIT;
  CREATE TEMP TABLE found AS SELECT i FROM generate_series(1, keys) i WHERE streamfilter_test('resized', i);
  ALTER FOREIGN TABLE resized OPTIONS (SET memory '256kB');
  COMMIT;
  result.definition := definition;
  SELECT s.memory > 250000, least(s.fpr_bound, 1), s.state INTO result.larger, fpr_promised, result.state
  FROM streamfilter_stats s WHERE s.filter = 'resized'::regclass;
  result.lost_larger := (SELECT count(*) FROM found WHERE NOT streamfilter_test('resized', i));
  result.within_promise := (SELECT count(*) FROM generate_series(1000001, 1020000) i WHERE streamfilter_test('resized', i))
    <= 20000 * fpr_promised * 1.1 + 60;
  INSERT INTO resized VALUES (-1);
  COMMIT;
  ALTER FOREIGN TABLE resized OPTIONS (SET memory '128kB');
  COMMIT;
  result.lost_back := (SELECT count(*) FROM found WHERE NOT streamfilter_test('resized', i));
  result.known_after := (SELECT count(*) FROM (VALUES (keys), (-1)) v(i) WHERE streamfilter_test('resized', i));
  INSERT INTO results VALUES (result.*);
  DROP TABLE found;
  DROP FOREIGN TABLE resized;
END$$;
CALL resize($$kind 'clq'$$, 5000);
CALL resize($$kind 'sbf'$$, 5000);
CALL resize($$kind 'vqf', growth '2'$$, 5000);
CALL resize($$kind 'bloom', keys '50000', fpr '0.01'$$, 5000);
CALL resize($$kind 'bloom', keys '20000', grow 'density'$$, 5000);
CALL resize($$kind 'bloom', keys '20000', grow 'cardinality'$$, 5000);
CALL resize($$kind 'timer', window '4000 rows', fpr '0.01'$$, 4000);
CALL resize($$kind 'timer', window '1000 rows', grow 'density'$$, 1000);
CALL resize($$kind 'timer', window '1 hour', keys '8000', fpr '0.01'$$, 2000);
CALL resize($$kind 'lru'$$, 4000);
CALL resize($$kind 'lru', policy 'clock'$$, 4000);
CALL resize($$kind 'fplru', q '0'$$, 4000);
CALL resize($$kind 'ell'$$, 2000);
TABLE results;

-- ---- deleted keys -----------------------------------------------------------------------------------
-- They stay deleted when a filter that has grown shrinks: committed, in one transaction, and by a trigger.
CREATE FOREIGN TABLE kept (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '1e-6', seed '7');
INSERT INTO kept SELECT generate_series(1, 3000);
ALTER FOREIGN TABLE kept OPTIONS (SET memory '1MB');
INSERT INTO kept SELECT generate_series(3001, 4000);
DO $$BEGIN FOR i IN 1 .. 500 LOOP DELETE FROM kept WHERE id = i; DELETE FROM kept WHERE id = 3000 + i; END LOOP; END$$;
SELECT known('kept', 1, 500) AS deleted, known('kept', 501, 3000) AS old, known('kept', 3501, 4000) AS new;
ALTER FOREIGN TABLE kept OPTIONS (SET memory '64kB');
SELECT known('kept', 1, 500) + known('kept', 3001, 3500) AS deleted, known('kept', 501, 3000) AS old, known('kept', 3501, 4000) AS new;
BEGIN;
ALTER FOREIGN TABLE kept OPTIONS (SET memory '128kB');
DELETE FROM kept WHERE id = 501;
SAVEPOINT s;
DELETE FROM kept WHERE id = 502;
ALTER FOREIGN TABLE kept OPTIONS (SET memory '512kB');
DELETE FROM kept WHERE id = 503;
ROLLBACK TO s;
DELETE FROM kept WHERE id = 504;
ALTER FOREIGN TABLE kept OPTIONS (SET memory '64kB');
SELECT array_agg(i) AS deleted FROM generate_series(501, 505) i WHERE NOT streamfilter_test('kept', i);
COMMIT;
SELECT array_agg(i) AS deleted FROM generate_series(501, 505) i WHERE NOT streamfilter_test('kept', i);
CREATE TABLE keeps (id int);
CREATE TRIGGER follow AFTER DELETE ON keeps FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('kept');
CREATE TRIGGER zz BEFORE INSERT ON keeps FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('kept');
INSERT INTO keeps SELECT generate_series(10001, 10100);
ALTER FOREIGN TABLE kept OPTIONS (SET memory '256kB');
DELETE FROM keeps;
ALTER FOREIGN TABLE kept OPTIONS (SET memory '64kB');
INSERT INTO keeps SELECT generate_series(10001, 10100);
SELECT count(*) FROM keeps;
DROP TABLE keeps;
-- Where too many others would have to go, it starts empty.
ALTER FOREIGN TABLE kept OPTIONS (SET fpr '0.01');
INSERT INTO kept SELECT generate_series(1, 1000);
ALTER FOREIGN TABLE kept OPTIONS (SET memory '1MB');
ALTER FOREIGN TABLE kept OPTIONS (SET memory '64kB');
SELECT known('kept', 1, 1000);
ALTER FOREIGN TABLE kept OPTIONS (SET memory '1MB');
DELETE FROM kept WHERE id = 1;
ALTER FOREIGN TABLE kept OPTIONS (SET memory '2MB');
SELECT known('kept', 2, 1000);
ALTER FOREIGN TABLE kept OPTIONS (SET memory '64kB');
SELECT known('kept', 1, 1000);
-- Short entries of an exact buffer.
CREATE FOREIGN TABLE short (id int) SERVER streamfilter OPTIONS (kind 'lru', entry_bits '40', memory '128kB', seed '7');
INSERT INTO short SELECT generate_series(1, 3000);
ALTER FOREIGN TABLE short OPTIONS (SET memory '512kB');
DO $$BEGIN FOR i IN 1 .. 500 LOOP DELETE FROM short WHERE id = i; END LOOP; END$$;
ALTER FOREIGN TABLE short OPTIONS (SET memory '128kB');
SELECT known('short', 1, 500) AS deleted, known('short', 501, 3000) AS others;
DROP FOREIGN TABLE kept, short;

-- Counting goes on, and merges count as before.
CREATE FOREIGN TABLE counted (id int) SERVER streamfilter OPTIONS (kind 'ell', memory '8kB', seed '1');
INSERT INTO counted SELECT generate_series(1, 100000);
ALTER FOREIGN TABLE counted OPTIONS (SET memory '32kB');
INSERT INTO counted SELECT generate_series(50001, 200000);
SELECT distinct_estimate BETWEEN 194000 AND 206000 AS counts_on FROM streamfilter_stats WHERE filter = 'counted'::regclass;
DROP FOREIGN TABLE counted;

-- ---- a Bloom filter -------------------------------------------------------------------------------
CREATE FOREIGN TABLE grown (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '20000', seed '1', fpr '0.01');
INSERT INTO grown SELECT generate_series(1, 2000);
ALTER FOREIGN TABLE grown OPTIONS (SET memory '256kB', SET keys '80000');
SELECT known('grown', 1, 2000), distinct_estimate BETWEEN 1990 AND 2010 AS counts_them FROM streamfilter_stats
WHERE filter = 'grown'::regclass;
INSERT INTO grown SELECT generate_series(2001, 50000);
SELECT known('grown', 1, 50000), distinct_estimate BETWEEN 49500 AND 50500 AS counts_them FROM streamfilter_stats
WHERE filter = 'grown'::regclass;
-- Too late to keep the promise: it says so.
ALTER FOREIGN TABLE grown OPTIONS (SET memory '512kB', SET keys '400000');
SELECT known('grown', 1, 50000);
SELECT streamfilter_save('grown');

-- ---- unlogged, sliced, with a role ------------------------------------------------------------------
CREATE FOREIGN TABLE unsaved (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', slices '4', slicing 'vertical', persistence 'unlogged', seed '1');
INSERT INTO unsaved SELECT generate_series(1, 3000);
ALTER FOREIGN TABLE unsaved OPTIONS (SET memory '300kB', SET persistence 'logged');
SELECT known('unsaved', 1, 3000);
CREATE FOREIGN TABLE weighed (id int, w float8 OPTIONS (role 'importance')) SERVER streamfilter
  OPTIONS (kind 'ibfmc', memory '64kB', importance_range '0,10', seed '1', fpr '0.01');
INSERT INTO weighed SELECT i, 9 FROM generate_series(1, 500) i;
ALTER FOREIGN TABLE weighed OPTIONS (SET memory '128kB');
SELECT count(*) FROM generate_series(1, 500) i WHERE streamfilter_test('weighed', i);

-- ---- what cannot be kept ----------------------------------------------------------------------------
CREATE FOREIGN TABLE quotients (id int) SERVER streamfilter OPTIONS (kind 'sqf', fingerprint 'integer', keys '100000', memory '64kB', fpr '0.01');
INSERT INTO quotients VALUES (1);
ALTER FOREIGN TABLE quotients OPTIONS (SET memory '128kB');
SELECT known('quotients', 1, 1);
ALTER FOREIGN TABLE weighed OPTIONS (SET kind 'ibfh');
ALTER FOREIGN TABLE sized OPTIONS (ADD bucket '20');
-- No room for both: nothing happens.
CREATE FOREIGN TABLE huge (id int) SERVER streamfilter OPTIONS (memory '30MB');
INSERT INTO huge VALUES (1);
DO $$BEGIN ALTER FOREIGN TABLE huge OPTIONS (SET memory '60MB');
EXCEPTION WHEN out_of_memory THEN RAISE NOTICE 'no room for both'; END$$;
SELECT known('huge', 1, 1);
DROP FOREIGN TABLE sized, grown, unsaved, weighed, quotients, huge;
DROP FUNCTION known;
DROP PROCEDURE resize;
DROP TABLE results;
