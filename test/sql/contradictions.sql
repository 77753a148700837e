-- Options that contradict each other: requests are refused, with what would fit; what has been accepted before is not.
SET client_min_messages = notice;

-- ---- filters --------------------------------------------------------------------------------------
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB', fpr '0.000001', entry_bits '16');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '0.001', bits '6', bucket '20');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '100000', fpr '0.001', k '2');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', fpr '0.001', k '2');
CREATE FOREIGN TABLE bad (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB', gap '10000', max '1', fpr '0.01');
-- What fits, or promises nothing, is accepted.
CREATE FOREIGN TABLE fits (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '8000', fpr '0.001', k '2');
CREATE FOREIGN TABLE unpromised (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB', entry_bits '16');
SELECT filter, fpr_bound <= 0.001 AS keeps FROM streamfilter_stats ORDER BY 1;
-- ALTER: neither option alone is wrong.
ALTER FOREIGN TABLE fits OPTIONS (SET k '1');
ALTER FOREIGN TABLE fits OPTIONS (SET fpr '0.0001');
ALTER FOREIGN TABLE fits OPTIONS (SET fpr '0.0001', DROP k);
DROP FOREIGN TABLE fits, unpromised;

-- A dump of a version that accepted it restores: pg_dump sets this.
SET check_function_bodies = off;
CREATE FOREIGN TABLE restored (id int) SERVER streamfilter
  OPTIONS (kind 'lru', memory '64kB', slices '1', fpr '0.000001', entry_bits '16');
CREATE TABLE prototypes AS
SELECT 'bloom(memory=64kB, keys=100000, fpr=0.001, k=2)'::streamfilter AS f;
RESET check_function_bodies;
INSERT INTO restored SELECT generate_series(1, 10);
-- It works, and is altered where that makes it no other filter.
ALTER FOREIGN TABLE restored OPTIONS (ADD conflict 'admit');
SELECT count(*) FROM generate_series(1, 10) i WHERE streamfilter_test('restored', i);
ALTER FOREIGN TABLE restored OPTIONS (ADD keys '5');
ALTER FOREIGN TABLE restored OPTIONS (SET fpr '0.2');
DROP FOREIGN TABLE restored;
-- So do values, which are written so that they read back.
SELECT f, f::text::streamfilter AS again, f @> 1 AS empty FROM prototypes;
SELECT streamfilter_agg(i, f) @> 7 AS filled FROM prototypes, generate_series(1, 10) i GROUP BY f::text;
SELECT streamfilter_add(f, 1) @> 1 AS added FROM prototypes;
DROP TABLE prototypes;

-- ---- values ---------------------------------------------------------------------------------------
SELECT 'lru(memory=64kB, fpr=0.000001, entry_bits=16)'::streamfilter;
SELECT 'sbf(memory=64kB, gap=10000, cell_bits=1)'::streamfilter;
SELECT streamfilter_hash_agg(i, 'bsbf(memory=64kB, fpr=0.01, k=2)') IS NULL FROM generate_series(1, 3) i;
-- What is written with a version is not judged, and has a whole body or none.
SELECT 'lru(memory=64kB, fpr=0.000001, entry_bits=16):1:'::streamfilter @> 1 AS known;
SELECT 'lru(memory=64kB, fpr=0.000001, entry_bits=16):2:'::streamfilter;
SELECT 'lru(memory=64kB, fpr=0.01, entry_bits=64):1:'::streamfilter;

-- ---- promises that nothing derived keeps ----------------------------------------------------------
-- A definition is a request also where it is only measured; without fpr and keys, anything is.
SELECT filter FROM streamfilter_evaluate('SELECT 1', '{"bloom(memory=16kB, keys=50000, grow=density)"}');
SELECT filter FROM streamfilter_evaluate('SELECT 1', '{"bsbf(memory=8kB)"}');
SELECT filter FROM streamfilter_profile('SELECT 1', '{"bloom(memory=16kB, keys=50000)"}', 'position');
SELECT streamfilter_info('timer(memory=1kB, window="1000000 rows")');
SELECT streamfilter_agg(i, 'bloom(memory=16kB, keys=50000)') IS NULL FROM generate_series(1, 3) i;
SELECT count(*) FROM streamfilter_distinct(NULL::int, 'SELECT 1', 'bsbf(memory=8kB)');
SELECT filter, fpr > 0.01 AS breaks_fpr
FROM streamfilter_evaluate('SELECT i % 50000 FROM generate_series(1, 60000) i',
  ARRAY['bloom(memory=16kB, k=1)', 'bsbf(memory=8kB, k=2)']::streamfilter[]);
-- What is stored is read, and goes on to be refused as a prototype.
SELECT i ->> 'fpr_bound' AS bound, i -> 'parameters' ->> 'keys' AS keys
FROM streamfilter_info('bloom(memory=16kB, slices=1, keys=50000, fpr=0.01, k=2):1:') i;
SELECT streamfilter_add('bloom(memory=16kB, slices=1, keys=50000, fpr=0.01, k=2):1:', 1);
SELECT approx_count_distinct(i, 'bloom(memory=16kB, slices=1, keys=50000, fpr=0.01, k=2):1:') FROM generate_series(1, 3) i;

-- ---- given, or derived by another version ---------------------------------------------------------
SELECT f, streamfilter_info(f) #> '{parameters,derived_now}' AS derived_now
FROM unnest('{"bloom(memory=64kB, keys=20000)", "bloom(memory=64kB, keys=20000, k=2)", "clq(memory=64kB, fpr=0.01, bits=20)",
  "sbf(memory=64kB, gap=10000, fpr=0.01)", "bloom(memory=64kB, k=2)"}'::streamfilter[]) f;

-- What a producer defines on another server is no request, either.
SELECT made FROM streamfilter_hashes_define('public', 'part', 'bloom(memory=64kB, keys=100000, fpr=0.001, k=2, seed=1)',
  'wait', 'logged', 'a producer');
DROP FOREIGN TABLE part;

-- What the rate is to be where nobody tells it, also where not even .01 is kept
CREATE FOREIGN TABLE untold (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000000', memory '64kB');
CREATE FOREIGN TABLE untold (id int) SERVER streamfilter OPTIONS (kind 'timer', window '1 day', keys '1000000', memory '64kB');
CREATE FOREIGN TABLE untold (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000000', memory '64kB', fpr '0.01');
CREATE FOREIGN TABLE untold (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '-3', memory '64kB');
CREATE FOREIGN TABLE untold (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB', k '3');
ALTER FOREIGN TABLE untold OPTIONS (DROP k);
SELECT ftoptions FROM pg_foreign_table WHERE ftrelid = 'untold'::regclass;
DROP FOREIGN TABLE untold;
