--
-- Aggregates: streamfilter_agg, streamfilter_union_agg, approx_count_distinct
--
CREATE TABLE events (id int, host int, word text);
INSERT INTO events SELECT i, i % 500, CASE WHEN i % 3 > 0 THEN 'w' || i % 100 END
FROM generate_series(1, 6000) i;
ANALYZE events;
-- The bits of a Bloom filter in one slice, without the counters in front of them.
CREATE FUNCTION bits(f streamfilter) RETURNS text
LANGUAGE sql RETURN md5(substring(streamfilter_send(f) FROM 129 FOR length(streamfilter_send(f)) - 136));

-- ---- streamfilter_agg: a filter of the keys of a table ------------------------

WITH f AS (SELECT streamfilter_agg(host, 'bloom(memory=4kB, k=5)') AS f FROM events)
SELECT (SELECT bool_and(f @> host) FROM events) AS holds_all,
       f @> 500 AS holds_another,
       streamfilter_info(f) -> 'arrivals' AS arrivals,
       streamfilter_info(f) -> 'distinct_estimate' AS distinct_estimate
FROM f;

-- Several columns, FILTER.
WITH f AS (SELECT streamfilter_agg(ROW(host, word), 'bloom(memory=4kB, k=5)') AS f,
                  streamfilter_agg(host, 'bloom(memory=4kB, k=5)') FILTER (WHERE host < 10) AS g
           FROM events)
SELECT f @> ROW(1, 'w1') AS has_1_w1, f @> ROW(1, 'w2') AS has_1_w2,
       g @> 9 AS below_10, g @> 10 AS not_below_10,
       streamfilter_info(f) -> 'arrivals' AS rows_without_null
FROM f;

-- One filter per group; the prototype may depend on the group.
SELECT host % 3 AS part, streamfilter_info(f) -> 'parameters' -> 'k' AS k,
       f @> 0 AS has_0, f @> 1 AS has_1, f @> 2 AS has_2
FROM (SELECT host % 3 AS host, streamfilter_agg(host, format('bloom(memory=4kB, k=%s)', 5 + host % 3)::streamfilter) AS f
      FROM events GROUP BY host % 3) AS groups
ORDER BY 1;

-- A filled prototype is where it starts from.
SELECT f @> 'before' AS before, f @> 'w1' AS w1
FROM (SELECT streamfilter_agg(word, streamfilter_add('bloom(memory=4kB, k=5)', 'before')) AS f
      FROM events) AS v;

-- No rows: NULL. NULL keys only: the prototype.
SELECT streamfilter_agg(host, 'bloom(memory=4kB, k=5)') IS NULL AS nothing FROM events WHERE false;
SELECT streamfilter_agg(NULL::int, 'bloom(memory=4kB, k=5)') FROM events;

-- The prototype from a table, and one that may be any.
SELECT streamfilter_agg(host, (SELECT 'bloom(memory=4kB, k=5)'::streamfilter)) @> 7 AS subquery,
       streamfilter_agg(host, p) @> 7 AS "column"
FROM events, (VALUES (streamfilter_add('bloom(memory=4kB, k=5)', 'x'))) AS v (p);

-- Large ones, which are not read for every row: groups alternate.
CREATE TABLE prototypes (name int, p streamfilter, definition text);
INSERT INTO prototypes SELECT i, d::streamfilter, d
FROM generate_series(1, 12) AS i, format('bloom(memory=1MB, k=%s, seed=%s)', 1 + i % 3, i) AS d;
SET statement_timeout = '60s';
SELECT count(*) AS groups, bool_and(n BETWEEN 9900 AND 10100) AS counted
FROM (SELECT name, approx_count_distinct(i, p) AS n FROM generate_series(1, 10000) AS i, prototypes GROUP BY name) AS g;
SELECT count(*) AS groups, bool_and(f @> 1 AND f @> 1000 AND NOT f @> 1001) AS filled
FROM (SELECT name, streamfilter_agg(i, p) AS f FROM generate_series(1, 1000) AS i, prototypes GROUP BY name) AS g;
SELECT count(*) AS groups, bool_and(f @> 1 AND f @> 1000) AS filled
FROM (SELECT name, streamfilter_hash_agg(streamfilter_hash(i, p), definition) AS f
      FROM generate_series(1, 1000) AS i, prototypes GROUP BY name) AS g;
RESET statement_timeout;
SELECT approx_count_distinct(i, p) FROM generate_series(1, 3) AS i, prototypes;
SELECT streamfilter_hash_agg(streamfilter_hash(i, p), definition) FROM generate_series(1, 3) AS i, prototypes;
DROP TABLE prototypes;

-- Errors.
SELECT streamfilter_agg(host, NULL) FROM events;
SELECT streamfilter_agg(host, format('bloom(memory=4kB, k=%s)', 1 + id % 2)::streamfilter) FROM events;
SELECT streamfilter_agg(host, streamfilter_add('bloom(memory=4kB, k=1)', id)) FROM events;
SELECT streamfilter_agg(point(host, 0), 'bloom(memory=4kB, k=5)') FROM events;

-- ---- streamfilter_union_agg: a filter of filters ---------------------------------

WITH parts AS (SELECT host % 7 AS part, streamfilter_agg(host, 'bloom(memory=4kB, k=5)') AS f
               FROM events GROUP BY 1),
     whole AS (SELECT streamfilter_union_agg(f) AS f FROM parts)
SELECT bits(f) = (SELECT bits(streamfilter_agg(host, 'bloom(memory=4kB, k=5)')) FROM events) AS "as if at once"
FROM whole;
-- NULLs are left out; nothing is NULL.
SELECT streamfilter_union_agg(f) FROM (VALUES (NULL), ('bloom(memory=4kB, k=5)'::streamfilter), (NULL)) AS v (f);
SELECT streamfilter_union_agg(NULL) IS NULL AS nothing;
SELECT streamfilter_union_agg(f)
FROM (VALUES ('bloom(memory=4kB, k=5)'::streamfilter), ('bloom(memory=8kB, k=5)')) AS v (f);

-- ---- approx_count_distinct ----------------------------------------------------------

-- Close to the truth, NULLs not counted.
SELECT count(DISTINCT host) AS hosts, approx_count_distinct(host) AS about,
       count(DISTINCT word) AS words, approx_count_distinct(word) AS about
FROM events;
-- A row with a NULL in it counts, as for count(DISTINCT …); a column of NULLs does not.
SELECT count(DISTINCT (host % 2, word)), approx_count_distinct((host % 2, word)),
       count(DISTINCT NULL::text) AS "null", approx_count_distinct(NULL::text) AS "null"
FROM events;
SELECT approx_count_distinct(host) FROM events WHERE false;
-- Far more keys than in a hash table of the same megabyte.
SELECT approx_count_distinct(i) BETWEEN 990000 AND 1010000 AS within_one_percent
FROM generate_series(1, 1000000) i;
-- By group, and as a window function.
SELECT host % 2 AS odd, count(DISTINCT word), approx_count_distinct(word)
FROM events GROUP BY 1 ORDER BY 1;
SELECT id, approx_count_distinct(id % 3) OVER (ORDER BY id) AS so_far FROM events WHERE id <= 5;
SELECT approx_count_distinct('x') AS constant, approx_count_distinct(DISTINCT host) AS with_distinct
FROM events;
-- With a prototype: less memory, or another kind. One that forgets counts what it has called new:
-- keys that it had forgotten, more than once.
SELECT approx_count_distinct(host, 'bloom(memory=1kB, k=1)') AS in_a_kilobyte,
       approx_count_distinct(host, 'sbf(memory=64kB)') AS by_sbf
FROM events;
-- A filter that is full can only give a lower bound, and says so.
SELECT approx_count_distinct(id, 'bloom(memory=192, k=1)') FROM events;
-- Errors.
SELECT approx_count_distinct(host, NULL) FROM events;
SELECT approx_count_distinct(to_json(host)) FROM events;

-- ---- in parallel --------------------------------------------------------------------

SELECT bits(streamfilter_agg(host, 'bloom(memory=4kB, k=5)')) AS serial FROM events \gset
SELECT approx_count_distinct(word) AS serial_count FROM events \gset
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT streamfilter_agg(host, 'bloom(memory=4kB, k=5)') FROM events;
EXPLAIN (COSTS OFF) SELECT approx_count_distinct(word) FROM events;
-- The same results, whichever workers took part.
SELECT bits(streamfilter_agg(host, 'bloom(memory=4kB, k=5)')) = :'serial' AS filter,
       approx_count_distinct(word) = :serial_count AS count FROM events;
SET parallel_leader_participation = off;
SELECT bits(streamfilter_agg(host, 'bloom(memory=4kB, k=5)')) = :'serial' AS filter,
       approx_count_distinct(word) = :serial_count AS count FROM events;
SELECT host % 3 AS part, approx_count_distinct(host) FROM events GROUP BY 1 ORDER BY 1;
-- Every process starts from a filled prototype; its keys are merged, not lost.
SELECT f @> 'before' AS before, f @> 499 AS "after"
FROM (SELECT streamfilter_agg(host, streamfilter_add('bloom(memory=4kB, k=5)', 'before')) AS f
      FROM events) AS v;
-- Kinds that forget merge, too; what they remember then is approximate in both ways.
SELECT streamfilter_info(streamfilter_agg(host, 'sbf(memory=64kB)')) -> 'arrivals' AS arrivals FROM events;
-- Over no row: the constant prototype, in whichever process. A prototype of the row is not known.
CREATE TABLE prototypes (definition text);
INSERT INTO prototypes VALUES ('bloom(memory=4kB, k=5)'), ('bloom(memory=64kB, keys=100, grow=density)'), ('rsbf(memory=4kB)'),
  ('clq(memory=4kB)'), ('ell'), ('ell(memory=1kB)'), ('lru(memory=4kB)'), ('dsqf(memory=4kB, fpr=0.1)');
CREATE FUNCTION is_prototype(definition text, condition text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE same boolean;
BEGIN
  EXECUTE format('SELECT streamfilter_agg(host, %1$L)::text = %1$L::streamfilter::text FROM events WHERE %2$s', definition, condition)
  INTO same;
  RETURN same;
END $$;
SELECT definition, is_prototype(definition, 'host + id < 0') AS parallel, is_prototype(definition, 'false') AS no_scan FROM prototypes;
SET parallel_leader_participation = on;
EXPLAIN (COSTS OFF) SELECT streamfilter_agg(host, 'ell') FROM events WHERE host + id < 0;
SET max_parallel_workers_per_gather = 0;
SELECT definition, is_prototype(definition, 'host + id < 0') AS serial FROM prototypes;
SELECT id, streamfilter_agg(host, 'clq(memory=4kB)') FILTER (WHERE host + id < 0) @> 1 AS filtered FROM events WHERE id < 3 GROUP BY id ORDER BY id;
PREPARE over_nothing(streamfilter) AS SELECT (# streamfilter_agg(host, $1)) AS keys FROM events WHERE host + id < 0;
SET plan_cache_mode = force_generic_plan;
EXECUTE over_nothing('ell(memory=4kB)');
EXECUTE over_nothing(NULL);
SET max_parallel_workers_per_gather = 2;
EXECUTE over_nothing('ell(memory=4kB)');
EXECUTE over_nothing(NULL);
RESET plan_cache_mode;
SELECT streamfilter_agg(host, (definition)::streamfilter) IS NULL AS unknown FROM events, prototypes WHERE host + id < 0;
SELECT approx_count_distinct(host), approx_count_distinct(host, 'ell'), approx_count_distinct(host, 'bloom(memory=1kB, k=5)')
FROM events WHERE host + id < 0;
-- Some processes meet no row, or only NULLs: what others have is as it would be alone.
SELECT bits(streamfilter_agg(host, 'clq(memory=4kB, seed=1)')) = bits(streamfilter_agg(host, 'clq(memory=4kB, seed=1)') FILTER (WHERE id < 9)) AS alone
FROM events WHERE host + id < 5;
-- So a rollup keeps what it has when an interval has no events; NULL adds nothing to a union.
SELECT (# ('ell'::streamfilter || NULL)), (# (NULL || streamfilter_add('ell', 1))), NULL::streamfilter || NULL IS NULL AS nothing,
       (# streamfilter_union(streamfilter_add('ell', 1), NULL)), (# (streamfilter_add('ell', 1) || streamfilter_agg(host, 'ell'))) AS rollup,
       streamfilter_union_agg(NULL::streamfilter) IS NULL AS no_union
FROM events WHERE host + id < 0;
DROP TABLE prototypes;
DROP FUNCTION is_prototype;
DEALLOCATE over_nothing;
DROP TABLE events;
DROP FUNCTION bits;
