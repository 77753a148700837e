--
-- Sliced filters: where the bits of a key lie.
--
CREATE SCHEMA slicing;
SET search_path = slicing, public;

-- ---- Options --------------------------------------------------------------------------------------
CREATE FOREIGN TABLE horizontal (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', keys '10000', slices '40', slicing 'horizontal', fpr '0.01');
CREATE FOREIGN TABLE vertical (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', keys '10000', slices '40', slicing 'vertical', fpr '0.01');
CREATE FOREIGN TABLE hv (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', keys '10000', slices '8,5', slicing 'diced', fpr '0.01');
CREATE FOREIGN TABLE vh (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', keys '10000', slices '8,5', slicing 'diced', dice 'vh', fpr '0.01');
CREATE FOREIGN TABLE general (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '32kB', slices '40', k1 '2', k2 '3');
CREATE FOREIGN TABLE growing (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '256kB', keys '10000', slices '40', slicing 'vertical', grow 'density', fpr '0.01');

-- The parameters say how it is sliced.
SELECT filter, params FROM streamfilter_stats ORDER BY filter::text;
SELECT filter, fpr_bound <= 0.01 AS keeps FROM streamfilter_stats
  WHERE filter <> 'general'::regclass ORDER BY filter::text;
EXPLAIN (COSTS OFF) SELECT * FROM horizontal WHERE id = 1;
EXPLAIN (COSTS OFF) SELECT * FROM vertical WHERE id = 1;
EXPLAIN (COSTS OFF) INSERT INTO vh VALUES (1);
EXPLAIN (COSTS OFF) SELECT * FROM general WHERE id = 1;

-- What cannot be is refused, with the way out.
CREATE FUNCTION refusal(options text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE refused (id int) SERVER streamfilter OPTIONS (%s)', options);
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
\pset format unaligned
\pset tuples_only on
SELECT number, options, refusal(options) FROM (VALUES
  (1, $$kind 'sbf', slicing 'vertical'$$),
  (2, $$kind 'clq', slicing 'diced', slices '4,4'$$),
  (3, $$kind 'sqf', k1 '2', k2 '2'$$),
  (4, $$kind 'bloom', k '4', slicing 'diagonal'$$),
  (5, $$kind 'bloom', k '4', slicing 'diced'$$),
  (6, $$kind 'bloom', k '4', slicing 'diced', slices '8'$$),
  (7, $$kind 'bloom', k '4', slices '8,5'$$),
  (8, $$kind 'bloom', k '4', slicing 'diced', slices '8,5,2'$$),
  (9, $$kind 'bloom', k '4', slicing 'diced', slices '1000,1000'$$),
  (10, $$kind 'bloom', k '4', dice 'vh'$$),
  (11, $$kind 'bloom', k1 '4'$$),
  (12, $$kind 'bloom', k '6', k1 '4', k2 '2'$$),
  (13, $$kind 'bloom', k1 '4', k2 '2', slicing 'vertical'$$),
  (14, $$kind 'bloom', k1 '40', k2 '2'$$),
  (15, $$kind 'bloom', k '4', layout 'blocked', slicing 'vertical'$$),
  (16, $$kind 'bloom', k '4', memory '4kB', slices '40', slicing 'vertical'$$),
  (17, $$kind 'timer', k '4', window '1000 rows', slicing 'vertical'$$),
  (18, $$kind 'timer', k '4', window '1 h', equal_timers '2', slicing 'vertical'$$)) AS them (number, options) ORDER BY number;
\pset tuples_only off
\pset format aligned

-- ---- Keys -----------------------------------------------------------------------------------------
-- Each key is reported as new once; nothing is forgotten; counts are of keys, not of their places.
CREATE FUNCTION check_keys(filter regclass, count int)
RETURNS TABLE (few_mistakes boolean, all_seen boolean, few_false boolean) LANGUAGE plpgsql AS $$
BEGIN
  few_mistakes := (SELECT count(*) FROM generate_series(1, count) i
                   WHERE streamfilter_seen(filter, i)) <= 0.015 * count;
  all_seen := (SELECT bool_and(streamfilter_test(filter, i)) FROM generate_series(1, count) i);
  few_false := (SELECT count(*) FROM generate_series(1, count) i
                WHERE streamfilter_test(filter, -i)) <= 0.015 * count;
  RETURN NEXT;
END $$;
SELECT name, (check_keys(name::regclass, 10000)).*
  FROM unnest('{horizontal,vertical,hv,vh,growing}'::text[]) name;
SELECT (check_keys('general', 5000)).*;
SELECT filter, accepted > 0.985 * n AS accepted, accepted + discarded = n AS all,
       abs(distinct_estimate - accepted) < 0.02 * n AS counted, fpr_now < 0.015 AS fpr
  FROM streamfilter_stats, LATERAL (SELECT CASE filter::text WHEN 'general' THEN 5000 ELSE 10000 END) x (n)
  ORDER BY filter::text;

-- Such filters cannot forget one key, as before.
DELETE FROM vertical WHERE id = 1;

-- Inserting and looking up.
INSERT INTO vertical VALUES (-1), (-2), (-1);
SELECT * FROM vertical WHERE id = -1;
SELECT i FROM generate_series(-2, -1) i WHERE EXISTS (SELECT FROM vertical WHERE id = i) ORDER BY i;

-- ---- Transactions ---------------------------------------------------------------------------------
CREATE FOREIGN TABLE t (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '8', slices '16', slicing 'vertical');
BEGIN;
SELECT streamfilter_seen('t', 1), streamfilter_seen('t', 1);
SAVEPOINT s;
SELECT streamfilter_seen('t', 2);
ROLLBACK TO s;
SELECT streamfilter_test('t', 1), streamfilter_test('t', 2);
COMMIT;
SELECT streamfilter_test('t', 1), streamfilter_test('t', 2);
BEGIN;
SELECT streamfilter_seen('t', 3);
ROLLBACK;
SELECT streamfilter_test('t', 3);
SELECT accepted, rolled_back FROM streamfilter_stats WHERE filter = 't'::regclass;
-- Of many keys at once.
INSERT INTO t SELECT generate_series(100, 1099);
SELECT count(*) FROM generate_series(100, 1099) i WHERE streamfilter_test('t', i);
TRUNCATE t;
SELECT streamfilter_test('t', 1), fill FROM streamfilter_stats WHERE filter = 't'::regclass;

-- ---- Windows --------------------------------------------------------------------------------------
CREATE FOREIGN TABLE clicks (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
  OPTIONS (kind 'timer', memory '64kB', keys '1000', window '1 hour', tick '1 minute',
           slices '8', slicing 'vertical', fpr '0.01', seed '1');
CREATE FUNCTION click(id int, minute int) RETURNS boolean LANGUAGE sql AS
  $$SELECT streamfilter_seen('clicks', id, timestamptz '2020-01-01 UTC' + minute * interval '1 minute')$$;
SELECT click(1, 0) AS first, click(1, 30) AS repeat, click(1, 60) AS last, click(1, 62) AS later;
-- A late click is remembered for the rest of its window, and makes nothing shorter.
SELECT click(2, 32) AS late, click(2, 92) AS last, click(2, 94) AS later, click(1, 100) AS other;

-- ---- Values ---------------------------------------------------------------------------------------
SELECT streamfilter_info(streamfilter_agg(i, 'bloom(memory=8kB, k=6, slices=''4,2'', slicing=diced)'))
         - 'fpr_bound' - 'window_keys'
  FROM generate_series(1, 1000) i;
CREATE TABLE halves AS
  SELECT i % 2 AS half, streamfilter_agg(i, 'bloom(memory=8kB, slices=8, k1=2, k2=3)') AS value
  FROM generate_series(1, 1000) i GROUP BY 1;
SELECT bool_and(value @> i) FROM generate_series(1, 1000) i,
  (SELECT streamfilter_union_agg(value) AS value FROM halves) u;
SELECT value::text::streamfilter::text = value::text AS same FROM halves;
SELECT (SELECT value FROM halves WHERE half = 0) ||
       (SELECT streamfilter_agg(1, 'bloom(memory=8kB, slices=8, slicing=vertical, k=6)'));


-- ---- Slices ---------------------------------------------------------------------------------------
-- A key has several; they move one by one all the same, and together make the filter.
SELECT streamfilter_slice('vertical', 1);
CREATE FOREIGN TABLE moved (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '8', slices '16', slicing 'vertical', seed '1');
CREATE FOREIGN TABLE target (id int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '8', slices '16', slicing 'vertical', seed '1');
INSERT INTO moved SELECT generate_series(1, 1000);
BEGIN;
SELECT count(streamfilter_import('target', i, streamfilter_export('moved', i))) FROM generate_series(0, 14) i;
SELECT count(*) < 1000 AS some FROM generate_series(1, 1000) i WHERE streamfilter_test('target', i);
COMMIT;
SELECT count(*) < 1000 AS some FROM generate_series(1, 1000) i WHERE streamfilter_test('target', i);
SELECT streamfilter_import('target', 15, streamfilter_export('moved', 15));
SELECT count(*) FROM generate_series(1, 1000) i WHERE streamfilter_test('target', i);
-- Blocks of a stream are judged in their order.
SELECT cardinality((streamfilter_distinct_agg(i % 500, i, 'bloom(memory=8kB, slices=8, slicing=vertical, k=6)')).positions)
  FROM generate_series(1, 1000) i;

\set VERBOSITY terse
DROP SCHEMA slicing CASCADE;
