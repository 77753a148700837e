-- ALTER … OPTIONS (SET memory …) keeps what a filter knows.
CREATE FUNCTION known(filter regclass, first int, last int) RETURNS bigint LANGUAGE sql AS
  'SELECT count(*) FROM generate_series($2, $3) i WHERE streamfilter_test($1, i)';

-- ---- a kind that forgets --------------------------------------------------------------------------
CREATE FOREIGN TABLE sized (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '128kB', seed '3');
INSERT INTO sized SELECT generate_series(1, 30000);
SELECT known('sized', 1, 30000) AS before \gset
ALTER FOREIGN TABLE sized OPTIONS (SET memory '512kB');
SELECT known('sized', 1, 30000) = :before AS all_known, known('sized', 100001, 110000) < 250 AS keeps_its_rate;
SELECT memory BETWEEN 500000 AND 524288 AS larger, tested > 30000 AS counted_on, fpr_now <= fpr_bound AS within, state
FROM streamfilter_stats WHERE filter = 'sized'::regclass;
INSERT INTO sized SELECT generate_series(25001, 35000);
-- Smaller: the newest keys stay.
ALTER FOREIGN TABLE sized OPTIONS (SET memory '64kB');
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

-- ---- a Bloom filter -------------------------------------------------------------------------------
CREATE FOREIGN TABLE grown (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '20000', seed '1');
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
  OPTIONS (kind 'ibfmc', memory '64kB', importance_range '0,10', seed '1');
INSERT INTO weighed SELECT i, 9 FROM generate_series(1, 500) i;
ALTER FOREIGN TABLE weighed OPTIONS (SET memory '128kB');
SELECT count(*) FROM generate_series(1, 500) i WHERE streamfilter_test('weighed', i);

-- ---- what cannot be kept ----------------------------------------------------------------------------
CREATE FOREIGN TABLE quotients (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB');
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
