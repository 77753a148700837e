--
-- streamfilter_advise: the kinds for a stream, with predicted error rates. See docs/advise.md.
--

-- ---- a sample call -------------------------------------------------------------------------------
SELECT kind, round(predicted_fpr::numeric, 4) AS predicted_fpr,
       round(predicted_fnr::numeric, 4) AS predicted_fnr, round(bits_per_key::numeric, 1) AS bits_per_key,
       round(fpr_bound::numeric, 4) AS fpr_bound, window_keys, note
FROM streamfilter_advise('1MB', 0.01, 10000000, 1000000);
SELECT prototype FROM streamfilter_advise('1MB', 0.01, 10000000, 1000000) LIMIT 3;
-- The same, where repeats come after 50,000 rows.
SELECT prototype, round(predicted_fpr::numeric, 4) AS predicted_fpr,
       round(predicted_fnr::numeric, 4) AS predicted_fnr
FROM streamfilter_advise('1MB', 0.01, 10000000, 1000000, gap => 50000) LIMIT 3;

SET client_min_messages = warning;  -- no progress reports

-- ---- against streamfilter_evaluate -----------------------------------------------------------------
-- Every row's prototype is a filter, and makes the errors predicted: within five standard errors
-- (whether a key is missed depends on the keys it meets, so there are as many trials as keys), five
-- errors in all, and 3 % of the rate for what the models simplify; 30 % for false negatives of kind
-- sqf at a gap, which its model underestimates. Odds of a correct model to fail: one in a million.
CREATE FUNCTION compare_advice(memory text, fpr float8, query text, gap float8, OUT compared bigint,
                               OUT unpredicted bigint, OUT failed text)
LANGUAGE plpgsql AS $$
DECLARE
  rows float8;
  keys float8;
BEGIN
  EXECUTE format('SELECT count(*), count(DISTINCT key) FROM (%s) s(key)', query) INTO rows, keys;
  WITH advice AS (SELECT * FROM streamfilter_advise(memory, fpr, rows, keys, gap) WITH ORDINALITY),
  measured AS (
    SELECT a.*, e.fpr, e.fnr
    FROM streamfilter_evaluate(query, (SELECT array_agg(prototype::streamfilter ORDER BY ordinality)
                                       FROM advice)) WITH ORDINALITY
           AS e(filter, memory, rows, distinct_rows, false_positives, false_negatives, fpr, fnr,
                weighted_fpr, weighted_fnr, ns_per_row, ordinality)
    JOIN advice a USING (ordinality)
    WHERE e.filter = a.prototype),
  bounds AS (
    SELECT *, 5 * sqrt(predicted_fpr * (1 - predicted_fpr) / keys) + 5 / keys
                + 0.03 * predicted_fpr AS fpr_error,
           5 * sqrt(predicted_fnr * (1 - predicted_fnr) / least(keys, rows - keys))
                + 5 / least(keys, rows - keys)
                + CASE WHEN kind = 'sqf' AND gap > 0 THEN 0.3 ELSE 0.03 END * predicted_fnr AS fnr_error
    FROM measured)
  SELECT count(predicted_fpr), count(*) FILTER (WHERE predicted_fpr IS NULL),
         string_agg(format('%s: fpr %s predicted %s, fnr %s predicted %s', prototype, b.fpr,
                           predicted_fpr, fnr, predicted_fnr), E'\n')
           FILTER (WHERE abs(b.fpr - predicted_fpr) > fpr_error OR abs(fnr - predicted_fnr) > fnr_error)
  INTO compared, unpredicted, failed FROM bounds b;
END $$;

CREATE VIEW uniform AS
SELECT (hashint8extended(i, 1) & 1048575) % 20000 AS key FROM generate_series(1, 100000) i;
CREATE VIEW mostly_new AS
SELECT (hashint8extended(i, 2) & 1048575) % 200000 AS key FROM generate_series(1, 80000) i;
-- A row is new with probability 0.4, otherwise the one 2000 rows before it.
CREATE VIEW at_gap AS
SELECT i % 2000 + 2000 * sum(((hashint8extended(i, 3) & 1048575) < 419430 OR i <= 2000)::int)
         OVER (PARTITION BY i % 2000 ORDER BY i) AS key
FROM generate_series(1, 100000) i ORDER BY i;

SELECT * FROM compare_advice('64kB', 0.01, 'SELECT key FROM uniform', NULL);
SELECT * FROM compare_advice('64kB', 0.1, 'SELECT key FROM uniform', NULL);
SELECT * FROM compare_advice('256kB', 0.01, 'SELECT key FROM mostly_new', NULL);
SELECT * FROM compare_advice('64kB', 0.01, 'SELECT key FROM at_gap', 2000);

-- ---- any size of stream ------------------------------------------------------------------------------
SET statement_timeout = '20s';
SELECT count(*) > 10 AS advised, bool_and(predicted_fpr BETWEEN 0 AND 1) AS fpr,
       bool_and(predicted_fnr BETWEEN 0 AND 1) AS fnr
FROM streamfilter_advise('1GB', 0.001, 1e15, 1e14);
SELECT count(*) > 10 AS advised, bool_and(predicted_fpr BETWEEN 0 AND 1) AS fpr
FROM streamfilter_advise('1kB', 0.01, 1e15, 1e15, 1e6);
RESET statement_timeout;
-- Without repeats there is no rate of false negatives.
SELECT DISTINCT predicted_fnr FROM streamfilter_advise('64kB', 0.01, 1000, 1000);
-- NULL: no gap known, or nothing to say.
SELECT count(*) FROM (SELECT * FROM streamfilter_advise('64kB', 0.01, 1e6, 1e5, NULL)
                      EXCEPT SELECT * FROM streamfilter_advise('64kB', 0.01, 1e6, 1e5)) d;
SELECT count(*) FROM streamfilter_advise('64kB', 0.01, NULL, 1e5);

-- ---- bad input --------------------------------------------------------------------------------------
SELECT format('SELECT * FROM streamfilter_advise(%s)', arguments) FROM unnest(ARRAY[
  $$'much', 0.01, 1e6, 1e5$$, $$'100', 0.01, 1e6, 1e5$$, $$'1000TB', 0.01, 1e6, 1e5$$, $$'64kB', 0, 1e6, 1e5$$,
  $$'64kB', 1, 1e6, 1e5$$, $$'64kB', 'NaN', 1e6, 1e5$$, $$'64kB', 0.01, 0, 0$$, $$'64kB', 0.01, 'Infinity', 1e5$$,
  $$'64kB', 0.01, -1, 1$$, $$'64kB', 0.01, 1e6, 'NaN'$$, $$'64kB', 0.01, 1e6, 2e6$$, $$'64kB', 0.01, 1e6, 1e5, 0$$,
  $$'64kB', 0.01, 1e6, 1e5, 2e5$$, $$'64kB', 0.01, 1e6, 1e5, '-Infinity'$$]) AS arguments \gexec

DROP VIEW uniform, mostly_new, at_gap;
DROP FUNCTION compare_advice;

-- ---- from rows of a stream ------------------------------------------------------------------------
-- A sample of the keys, with a part of the memory: what every kind does on all rows is within four of
-- the stated errors (of 13 kinds, each with two rates, none by chance), and the order is right as far
-- as they are: no kind misses more than one that comes after it, by more than four errors of both.
SELECT setseed(0.25);
CREATE TABLE stream AS
SELECT i, floor(exp(random() * ln(80000)))::int AS key FROM generate_series(1, 400000) AS i;
CREATE TABLE advised AS
SELECT row_number() OVER () AS place, a.*
FROM streamfilter_advise('SELECT key FROM stream ORDER BY i', '128kB', 0.01) AS a;
CREATE TABLE truth AS
SELECT a.place, e.fpr, e.fnr
FROM streamfilter_evaluate('SELECT key FROM stream ORDER BY i',
  (SELECT array_agg(prototype::streamfilter ORDER BY place) FROM advised)) WITH ORDINALITY
  AS e(filter, memory, rows, distinct_rows, false_positives, false_negatives, fpr, fnr, weighted_fpr,
       weighted_fnr, ns_per_row, place)
JOIN advised AS a USING (place);
SELECT count(*) > 10 AS kinds, bool_and(sampled_rows BETWEEN 100000 AND 300000) AS sampled,
       bool_and(abs(a.predicted_fpr - t.fpr) < 4 * a.fpr_error) AS fpr_foretold,
       bool_and(abs(a.predicted_fnr - t.fnr) < 4 * a.fnr_error) AS fnr_foretold,
       bool_and(a.fnr_double <= a.predicted_fnr AND a.predicted_fnr <= a.fnr_half) AS more_is_better
FROM advised AS a JOIN truth AS t USING (place);
SELECT count(*) AS wrong_order
FROM advised AS a JOIN truth AS t USING (place), advised AS b JOIN truth AS u ON u.place = b.place
WHERE a.place < b.place AND a.fpr_bound <= 0.01 AND b.fpr_bound <= 0.01
  AND t.fnr > u.fnr + 4 * (a.fnr_error + b.fnr_error);
-- Half and double the memory, as filters of that size do.
SELECT bool_and(abs(a.fnr_half - e.fnr) < 4 * a.fnr_half_error) AS half_foretold
FROM streamfilter_evaluate('SELECT key FROM stream ORDER BY i', ARRAY['vqf(memory=64kB, fpr=0.01)', 'lru(memory=64kB)']::streamfilter[]) AS e
JOIN advised AS a ON split_part(e.filter, '(', 1) = a.kind AND a.prototype !~ 'keys';
SELECT bool_and(abs(a.fnr_double - e.fnr) < 4 * a.fnr_double_error) AS double_foretold
FROM streamfilter_evaluate('SELECT key FROM stream ORDER BY i', ARRAY['vqf(memory=256kB, fpr=0.01)', 'lru(memory=256kB)']::streamfilter[]) AS e
JOIN advised AS a ON split_part(e.filter, '(', 1) = a.kind AND a.prototype !~ 'keys';
-- All rows of a short stream, and several columns.
SELECT kind, sampled_rows, predicted_fnr FROM streamfilter_advise('SELECT ROW(i % 100, 1) FROM generate_series(1, 1000) AS i', '64kB', 0.01) LIMIT 1;
SELECT * FROM streamfilter_advise('SELECT 1 WHERE false', '64kB', 0.01);
SELECT * FROM streamfilter_advise('SELECT NULL::int', '64kB', 0.01);
SELECT * FROM streamfilter_advise('SELECT 1, 2', '64kB', 0.01);
SELECT * FROM streamfilter_advise('DELETE FROM stream', '64kB', 0.01);
-- What changes rows is not run, in WITH neither, of no function that runs queries.
SELECT * FROM streamfilter_advise('WITH gone AS (DELETE FROM stream RETURNING key) SELECT key FROM gone', '64kB', 0.01);
SELECT * FROM streamfilter_advise('WITH gone AS (DELETE FROM stream) SELECT 1', '64kB', 0.01);
SELECT * FROM streamfilter_evaluate('WITH gone AS (DELETE FROM stream RETURNING key) SELECT key FROM gone', '{lru(memory=64kB)}');
SELECT * FROM streamfilter_profile('WITH gone AS (UPDATE stream SET key = 1 RETURNING key) SELECT key FROM gone', '{lru(memory=64kB)}', 'lag');
SELECT * FROM streamfilter_distinct(NULL::stream, 'WITH gone AS (DELETE FROM stream RETURNING *) SELECT * FROM gone', 'lru(memory=64kB)');
SELECT count(*) > 0 AS still_there FROM stream;
SELECT * FROM streamfilter_advise('SELECT 1', '64kB', 2);
SELECT count(*) FROM streamfilter_advise(NULL, '64kB', 0.01);
DROP TABLE stream, advised, truth;
