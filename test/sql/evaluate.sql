-- streamfilter_evaluate and streamfilter_profile: filters against the exact truth.
-- 20,000 rows over 5,000 keys; every key comes back at lags of 1 to some thousands.
CREATE TABLE events AS
SELECT i AS position,
       CASE WHEN i % 4 = 0 THEN i / 8 ELSE (i * 7919::bigint) % 5000 END AS key,
       (i % 10)::float8 AS importance
FROM generate_series(1, 20000) i;

-- ---- evaluate ---------------------------------------------------------------------------------------
-- One row per filter, in the array's order. Where memory is ample there are no errors at all.
SELECT filter, memory, rows, distinct_rows, false_positives, false_negatives, fpr, fnr,
       weighted_fpr, weighted_fnr, ns_per_row > 0 AS timed
FROM streamfilter_evaluate('SELECT key FROM events ORDER BY position',
       '{"bloom(memory=1MB, k=10)", "lru(memory=1MB)"}');

-- The truth, by SQL.
SELECT count(*) AS rows, count(DISTINCT key) AS distinct_rows FROM events;

-- Errors agree with a plain reference: the rows that streamfilter_distinct keeps are those that the
-- same filter has not seen, so its answers are known row by row.
CREATE TABLE answers AS
SELECT e.*, k.position IS NULL AS seen,
       row_number() OVER (PARTITION BY e.key ORDER BY e.position) > 1 AS repeat,
       e.position - lag(e.position) OVER (PARTITION BY e.key ORDER BY e.position) AS lag
FROM events e LEFT JOIN streamfilter_distinct(
  NULL::events, 'SELECT * FROM events ORDER BY position', 'sbf(memory=1kB)', '{key}') k USING (position);
CREATE VIEW reference AS
SELECT count(*) FILTER (WHERE seen AND NOT repeat) AS false_positives,
       count(*) FILTER (WHERE NOT seen AND repeat) AS false_negatives,
       sum(importance) FILTER (WHERE seen AND NOT repeat) / sum(importance) AS weighted_fpr,
       sum(importance) FILTER (WHERE NOT seen AND repeat) / sum(importance) AS weighted_fnr
FROM answers;
SELECT e.false_positives = r.false_positives AND e.false_positives > 0 AS false_positives,
       e.false_negatives = r.false_negatives AND e.false_negatives > 0 AS false_negatives,
       e.fpr = r.false_positives / e.distinct_rows::float8 AS fpr,
       e.fnr = r.false_negatives / (e.rows - e.distinct_rows)::float8 AS fnr,
       abs(e.weighted_fpr - r.weighted_fpr) < 1e-12 AS weighted_fpr,
       abs(e.weighted_fnr - r.weighted_fnr) < 1e-12 AS weighted_fnr
FROM streamfilter_evaluate('SELECT key, importance FROM events ORDER BY position',
       '{"sbf(memory=1kB)"}') e, reference r;

-- Within work_mem the truth is kept in memory, beyond it on disk, with the same result.
SET work_mem = '64kB';
SELECT e.false_positives = r.false_positives AND e.false_negatives = r.false_negatives AS same
FROM streamfilter_evaluate('SELECT key FROM events ORDER BY position', '{"sbf(memory=1kB)"}') e,
     reference r;
RESET work_mem;

-- Keys of any type, also of several columns; rows without a key are left out.
SELECT rows, distinct_rows FROM streamfilter_evaluate(
  'SELECT ROW(key, key % 3) FROM events', '{"lru(memory=1MB)"}');
SELECT rows, distinct_rows FROM streamfilter_evaluate(
  $$SELECT k::numeric FROM (VALUES ('1.0'), ('1.00'), ('2'), (NULL)) v(k)$$, '{"lru(memory=64kB)"}');
-- The third column is the time.
SELECT false_positives, false_negatives FROM streamfilter_evaluate(
  $$SELECT 1, 1.0, timestamptz '2026-01-01' + i * interval '4 minutes' FROM generate_series(0, 9) i$$,
  '{"timer(window=10 minutes, keys=100, memory=4kB)", "timer(window=3 minutes, tick=1 s, keys=100, memory=4kB)"}');

-- ---- profile ----------------------------------------------------------------------------------------
-- By lag: the distance to the last sight, in powers of two; 0 are the keys never seen before.
SELECT p."from", p."to", p.rows = r.rows AS rows, p.distinct_rows,
       p.false_positives = r.false_positives AS false_positives,
       p.false_negatives = r.false_negatives AS false_negatives
FROM streamfilter_profile('SELECT key FROM events ORDER BY position', '{"sbf(memory=1kB)"}', 'lag') p
LEFT JOIN LATERAL (
  SELECT count(*) AS rows, count(*) FILTER (WHERE seen AND NOT repeat) AS false_positives,
         count(*) FILTER (WHERE NOT seen AND repeat) AS false_negatives
  FROM answers WHERE coalesce(lag, 0) BETWEEN p."from" AND p."to") r ON true;
-- By position: ten equal parts of the stream.
SELECT p."from", p."to", p.rows = r.rows AS rows, p.distinct_rows = r.distinct_rows AS distinct_rows,
       p.false_positives = r.false_positives AS false_positives,
       p.false_negatives = r.false_negatives AS false_negatives, p.fill BETWEEN 0.1 AND 0.3 AS fill
FROM streamfilter_profile('SELECT key FROM events ORDER BY position', '{"sbf(memory=1kB)"}',
                          'position') p
LEFT JOIN LATERAL (
  SELECT count(*) AS rows, count(*) FILTER (WHERE NOT repeat) AS distinct_rows,
         count(*) FILTER (WHERE seen AND NOT repeat) AS false_positives,
         count(*) FILTER (WHERE NOT seen AND repeat) AS false_negatives
  FROM answers WHERE position BETWEEN p."from" AND p."to") r ON true;
-- By importance, in powers of two: values from 0 to below 1, from 1 to below 2, and so on.
SELECT p."from", p."to", p.rows, p.false_negatives = r.false_negatives AS false_negatives
FROM streamfilter_profile('SELECT key, importance FROM events ORDER BY position',
                          '{"sbf(memory=1kB)"}', 'importance') p
LEFT JOIN LATERAL (
  SELECT count(*) FILTER (WHERE NOT seen AND repeat) AS false_negatives
  FROM answers WHERE importance >= p."from" AND importance < p."to") r ON true;

-- Any number is an importance: what has no octave of its own is in the first or the last one, and with
-- an infinite sum no weighted rate is known.
SELECT "from", "to", rows FROM streamfilter_profile(
  $$SELECT i, v::float8 FROM unnest('{inf,nan,-inf,1e300,1e19,0.5}'::text[]) WITH ORDINALITY u(v, i)$$,
  '{"lru(memory=64kB)"}', 'importance');
SELECT fpr, weighted_fpr, weighted_fnr FROM streamfilter_evaluate(
  $$SELECT i, v::float8 FROM unnest('{inf,nan,-inf,1e300,1e19,0.5}'::text[]) WITH ORDINALITY u(v, i)$$,
  '{"lru(memory=64kB)"}');

-- ---- bad input --------------------------------------------------------------------------------------
SELECT * FROM streamfilter_evaluate('DELETE FROM events', '{"sbf(memory=1kB)"}');
SELECT * FROM streamfilter_evaluate('SELECT 1; SELECT 2', '{"sbf(memory=1kB)"}');
SELECT * FROM streamfilter_evaluate('SELECT 1, 2, 3, 4', '{"sbf(memory=1kB)"}');
SELECT * FROM streamfilter_evaluate('SELECT point(1, 2)', '{"sbf(memory=1kB)"}');
SELECT * FROM streamfilter_evaluate($$SELECT 1, 'heavy'::text$$, '{"sbf(memory=1kB)"}');
SELECT * FROM streamfilter_evaluate('SELECT 1', '{}');
SELECT * FROM streamfilter_evaluate('SELECT 1', '{NULL}');
SELECT * FROM streamfilter_profile('SELECT 1', '{"sbf(memory=1kB)"}', 'size');
-- A query without rows has counts, but no rates.
SELECT rows, distinct_rows, fpr, fnr, ns_per_row
FROM streamfilter_evaluate('SELECT 1 WHERE false', '{"sbf(memory=1kB)"}');

DROP VIEW reference;
DROP TABLE events, answers;
