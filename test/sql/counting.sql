-- Counting distinct keys: by groups, in windows, in values that are as small as what they hold. The same whatever
-- way the keys came.
CREATE TABLE visits AS
SELECT i % 50 AS page, i % 7 AS day, (i * 7919) % (20 + (i % 50) * 30) AS visitor FROM generate_series(1, 40000) i;
ANALYZE visits;
CREATE TABLE exact AS SELECT page, count(DISTINCT visitor) AS visitors FROM visits GROUP BY page;

-- ---- groups: the planner may hash them, and counts are those of count(DISTINCT) nearly ------------------------
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS off) SELECT page, approx_count_distinct(visitor) FROM visits GROUP BY page;
CREATE TABLE counted AS SELECT page, approx_count_distinct(visitor) AS visitors FROM visits GROUP BY page;
SELECT count(*), bool_and(abs(c.visitors - e.visitors) <= 3) FROM counted c JOIN exact e USING (page);
SET enable_hashagg = off;
SELECT count(*) FROM (SELECT page, approx_count_distinct(visitor) FROM visits GROUP BY page EXCEPT TABLE counted) x;
RESET enable_hashagg;

-- With workers, and with the memory of a few groups only.
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT count(*) FROM (SELECT page, approx_count_distinct(visitor) FROM visits GROUP BY page EXCEPT TABLE counted) x;
SELECT abs(approx_count_distinct(visitor) - (SELECT count(DISTINCT visitor) FROM visits)) <= 3 AS right FROM visits;
SET work_mem = '64kB';
SELECT count(*) FROM (SELECT page, approx_count_distinct(visitor) FROM visits GROUP BY page EXCEPT TABLE counted) x;
RESET work_mem;

-- ---- values: byte for byte the same in any order of rows, workers and merges ------------------------------------
CREATE TABLE prototypes (prototype streamfilter);
INSERT INTO prototypes VALUES ('ell(memory=1kB)'), ('ell(memory=16kB)'), ('ell(memory=256kB)'), ('ell(memory=64kB, slices=3)');
CREATE FUNCTION value_of(p streamfilter, parts text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  EXECUTE format(parts, quote_literal(p)) INTO result;
  RETURN md5(result);
END $$;
CREATE TABLE ways (way text);
INSERT INTO ways VALUES
  ('SELECT streamfilter_agg(visitor, %s) FROM visits'),
  ('SELECT streamfilter_agg(visitor, %s ORDER BY visitor DESC) FROM visits'),
  ('SELECT streamfilter_union_agg(f) FROM (SELECT streamfilter_agg(visitor, %s) f FROM visits GROUP BY day) x'),
  ('SELECT streamfilter_union_agg(f ORDER BY day DESC) FROM (SELECT day, streamfilter_agg(visitor, %s) f FROM visits GROUP BY day) x'),
  ('SELECT streamfilter_agg(visitor, %1$s) FILTER (WHERE day < 3) || streamfilter_agg(visitor, %1$s) FILTER (WHERE day >= 3) FROM visits');
SELECT prototype::text, count(DISTINCT value_of(prototype, way)) FROM prototypes, ways GROUP BY 1 ORDER BY 1;
SET max_parallel_workers_per_gather = 0;
SELECT prototype::text, count(DISTINCT value_of(prototype, way)) FROM prototypes, ways GROUP BY 1 ORDER BY 1;

-- Key by key, too; and through text and back.
DO $$
DECLARE
  f streamfilter;
BEGIN
  FOR key IN 1..60 LOOP f := streamfilter_add(coalesce(f, 'ell(memory=16kB)'), key % 50); END LOOP;
  ASSERT f::text = (SELECT streamfilter_agg(i % 50, 'ell(memory=16kB)')::text FROM generate_series(1, 60) i);
  ASSERT f::text::streamfilter::text = f::text;
END $$;

-- Random schedules of keys, unions and journeys through text: what becomes of a value is what an aggregate makes of
-- all its keys.
CREATE TEMP TABLE seen (who int, key int);
DO $$
DECLARE
  f streamfilter[]; a int; b int; key int; p streamfilter; all_of streamfilter;
BEGIN
  PERFORM setseed(.37);
  FOR round IN 1..200 LOOP
    p := (ARRAY['ell(memory=700)', 'ell(memory=4kB)', 'ell(memory=16kB)', 'ell(memory=64kB, slices=3)'])[1 + round % 4]::streamfilter;
    f := ARRAY[p, p, p];
    TRUNCATE seen;
    FOR step IN 1..12 LOOP
      a := 1 + floor(random() * 3);
      b := 1 + floor(random() * 3);
      key := floor(random() * 100);
      CASE floor(random() * 5)
      WHEN 0 THEN
        f[a] := f[a] || f[b];
        INSERT INTO seen SELECT a, s.key FROM seen s WHERE who = b;
      WHEN 1 THEN
        f[a] := f[a]::text::streamfilter;
      WHEN 2 THEN
        f[a] := streamfilter_add(f[a], key);
        INSERT INTO seen VALUES (a, key);
      WHEN 3 THEN
        SELECT streamfilter_union_agg(x) INTO all_of FROM unnest(f) x;
        f[a] := all_of;
        INSERT INTO seen SELECT a, s.key FROM seen s WHERE who <> a;
      ELSE
        SELECT f[a] || streamfilter_agg(i, p) INTO all_of FROM generate_series(key, key * 2) i;
        f[a] := all_of;
        INSERT INTO seen SELECT a, i FROM generate_series(key, key * 2) i;
      END CASE;
    END LOOP;
    FOR i IN 1..3 LOOP
      SELECT streamfilter_agg(s.key, p) INTO all_of FROM seen s WHERE who = i;
      ASSERT coalesce(all_of, p)::text = f[i]::text, format('schedule %s, value %s', round, i);
    END LOOP;
  END LOOP;
END $$;

-- ---- small values are small, out of line they are not compressed ----------------------------------------------------
SELECT keys, pg_column_size(streamfilter_agg(i, 'ell(memory=16kB)')) <= 2.5 * keys + 40 AS small
FROM (VALUES (0), (1), (10), (40), (1000)) k(keys), generate_series(1, keys) i GROUP BY keys ORDER BY keys;
SELECT typstorage FROM pg_type WHERE typname = 'streamfilter';
SELECT (streamfilter_agg(i, 'ell(memory=1MB)') @> 7) AS known, streamfilter_agg(i, 'ell(memory=1MB)') @> 700 AS unknown
FROM generate_series(1, 40) i;

-- ---- counts, errors, overlaps ------------------------------------------------------------------------------------
SELECT # streamfilter_agg(i, 'ell') AS count, streamfilter_distinct_count(streamfilter_agg(i, 'ell(memory=4kB)')) AS of_4_kb
FROM generate_series(1, 20) i;
SELECT round(streamfilter_distinct_error('ell(memory=64kB)')::numeric, 5) AS error, streamfilter_distinct_error('sbf') AS none;
SELECT o.in_first, o.in_both, o.in_second, o.error < 1 AS sure
FROM (SELECT streamfilter_agg(i, 'ell') FILTER (WHERE i <= 60) AS a, streamfilter_agg(i, 'ell') FILTER (WHERE i > 40) AS b
      FROM generate_series(1, 100) i) s, streamfilter_overlap(a, b) o;
SELECT o.in_both BETWEEN 19000 AND 21000 AS many, o.error BETWEEN 100 AND 1000 AS error
FROM (SELECT streamfilter_agg(i, 'ell(memory=64kB)') FILTER (WHERE i <= 60000) AS a,
             streamfilter_agg(i, 'ell(memory=64kB)') FILTER (WHERE i > 40000) AS b
      FROM generate_series(1, 100000) i) s, streamfilter_overlap(a, b) o;
SELECT streamfilter_overlap('ell(memory=4kB)', 'ell(memory=8kB)');
SELECT 'ell'::streamfilter::text = 'ell()'::streamfilter::text AS a_kind_alone, ' ell '::streamfilter IS NOT NULL AS with_blanks;
SELECT 'ell x'::streamfilter;

-- ---- windows: every row has its count --------------------------------------------------------------------------------
SELECT max(abs(n - expected)) <= 1 AS running FROM (
  SELECT approx_count_distinct(i % 300) OVER (ORDER BY i) AS n, least(i, 300) AS expected FROM generate_series(1, 2000) i) x;
SELECT max(abs(n - 10)) AS sliding FROM (
  SELECT i, approx_count_distinct(i) OVER (ORDER BY i ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS n
  FROM generate_series(1, 500) i) x WHERE i >= 10;
-- Far beyond what is held key by key; bound: 5 times the error of 1 MB.
SELECT abs(max(n) / 300000.0 - 1) < 5 * .0007 AS of_many FROM (
  SELECT approx_count_distinct(i) OVER (ORDER BY i / 50000) AS n FROM generate_series(1, 300000) i) x;

-- ---- keys that wait for the memory of a large state ---------------------------------------------------------------------
-- Whatever waits is there when somebody asks: after every row, by kinds of states that nothing waits for.
SELECT count(*), bool_and(a::text = b::text) AS same, bool_and(c::text = d::text) AS same_in_slices FROM (
  SELECT streamfilter_agg(i % 400, 'ell(memory=1kB)') OVER w AS a,
    streamfilter_hash_agg(streamfilter_hash(i % 400), 'ell(memory=1kB)') OVER w AS b,
    streamfilter_agg(i % 400, 'ell(memory=1kB, slices=2)') OVER w AS c,
    streamfilter_hash_agg(streamfilter_hash(i % 400), 'ell(memory=1kB, slices=2)') OVER w AS d
  FROM generate_series(1, 600) i WINDOW w AS (ORDER BY i ROWS UNBOUNDED PRECEDING)) x;
-- Many lengths of a stream, by which others than all wait.
SELECT count(*), bool_and(n = (SELECT # streamfilter_hash_agg(streamfilter_hash(i), 'ell(memory=1kB)') FROM generate_series(1, l) i)) AS same
FROM generate_series(1000, 1015) l, LATERAL (
  SELECT approx_count_distinct(i, 'ell(memory=1kB)') AS n FROM generate_series(1, l) i) x;

-- ---- wherever an aggregate may stand -----------------------------------------------------------------------------------
SELECT page, day, approx_count_distinct(visitor) = count(DISTINCT visitor) AS right
FROM visits WHERE page < 2 AND day < 2 GROUP BY GROUPING SETS ((page), (day), ()) ORDER BY page, day;
SELECT approx_count_distinct(DISTINCT visitor ORDER BY visitor) FILTER (WHERE page = 0) FROM visits;
CREATE TABLE parted (page int, visitor int) PARTITION BY LIST (page);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0);
CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
INSERT INTO parted SELECT page, visitor FROM visits WHERE page < 3;
SET enable_partitionwise_aggregate = on;
SELECT page, approx_count_distinct(visitor) FROM parted GROUP BY page ORDER BY page;
SELECT approx_count_distinct(visitor) = (SELECT count(DISTINCT visitor) FROM parted) FROM parted;
EXPLAIN (COSTS off) SELECT page, approx_count_distinct(visitor) FROM parted GROUP BY page;
EXPLAIN (COSTS off) SELECT streamfilter_agg(visitor, 'ell(memory=16kB)') FROM parted;
SELECT streamfilter_agg(visitor, 'ell(memory=16kB)')::text = (
  SELECT streamfilter_agg(visitor, 'ell(memory=16kB)')::text FROM visits WHERE page < 3) AS same FROM parted;
RESET enable_partitionwise_aggregate;
-- Unions likewise, from one level to the next; an aggregate in HAVING, ORDER BY, a lateral query.
CREATE TABLE by_day AS SELECT page, day, streamfilter_agg(visitor, 'ell(memory=16kB)') AS s FROM visits WHERE page < 3 GROUP BY page, day;
SELECT page, day, # streamfilter_union_agg(s) = (SELECT count(DISTINCT visitor) FROM visits v
  WHERE v.page < 3 AND v.page = coalesce(b.page, v.page) AND v.day = coalesce(b.day, v.day)) AS right
FROM by_day b GROUP BY ROLLUP (page, day) HAVING coalesce(day, 0) < 2
  AND # streamfilter_union_agg(s) > 1 ORDER BY page, # streamfilter_union_agg(s) DESC, day;
SELECT page, n FROM generate_series(0, 2) page, LATERAL (
  SELECT approx_count_distinct(visitor) FILTER (WHERE day > 3) AS n FROM visits v WHERE v.page = page.page) x ORDER BY page;
CREATE MATERIALIZED VIEW by_page AS SELECT page, streamfilter_agg(visitor, 'ell(memory=16kB)') AS s FROM visits GROUP BY page;
SELECT count(*), bool_and(# s = (SELECT # streamfilter_agg(visitor, 'ell(memory=16kB)') FROM visits v WHERE v.page = b.page))
FROM by_page b;
REFRESH MATERIALIZED VIEW by_page;
CREATE UNIQUE INDEX ON by_page (page);
CREATE TABLE before AS SELECT page, b.ctid::text AS place FROM by_page b;
REFRESH MATERIALIZED VIEW CONCURRENTLY by_page;
SELECT count(*) AS moved_though_equal FROM by_page b JOIN before USING (page) WHERE b.ctid::text <> place;

-- ---- values of other versions, and damaged ones ------------------------------------------------------------------------
SELECT 'ell(memory=1kB):2:AAAA'::streamfilter;
SELECT 'ell(memory=1kB):1:AAAA'::streamfilter;

-- As tables have them; the server's function returns its argument as it is.
CREATE FUNCTION stored(bytea, typmod int = -1, explicit boolean = true) RETURNS streamfilter
LANGUAGE internal IMMUTABLE STRICT AS 'bpchar';
CREATE FUNCTION bytes_of(streamfilter, typmod int = -1, explicit boolean = true) RETURNS bytea
LANGUAGE internal IMMUTABLE STRICT AS 'bpchar';
CREATE FUNCTION said_of(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  uses text[] := ARRAY['# %s', '# (%1$s || %1$s)', '%s::text', '%s @> 1', '# streamfilter_add(%s, 1)', 'streamfilter_send(%s)',
                       '(SELECT # streamfilter_union_agg(f) FROM (VALUES (%1$s), (%1$s)) v(f))'];
  answers text[] := '{}'; answer text;
BEGIN
  FOR i IN 1..cardinality(uses) LOOP
    BEGIN
      EXECUTE format('SELECT ' || uses[i], format('stored(%L::bytea)', bytes)) INTO answer;
      answer := 'an answer';
    EXCEPTION WHEN invalid_binary_representation THEN
      answer := SQLSTATE || ' ' || SQLERRM;
    END;
    answers := answers || answer;
  END LOOP;
  RETURN (SELECT string_agg(DISTINCT a, ' | ') FROM unnest(answers) a);
END $$;
CREATE TABLE good AS SELECT bytes_of(streamfilter_agg(i, 'ell(memory=1kB)')) AS bytes FROM generate_series(1, 9) i;
SELECT said_of(bytes) AS whole FROM good;
SELECT said_of(substr(bytes, 1, length(bytes) - 1)) AS cut_short FROM good;
SELECT said_of(bytes || '\x00') AS with_more FROM good;
SELECT said_of(set_byte(bytes, 4, 2)) AS later_version FROM good;
SELECT said_of(set_byte(bytes, 5, 3)) AS other_kind FROM good;
SELECT said_of(set_byte(bytes, 6, 255)) AS unknown_flags FROM good;
SELECT said_of(set_byte(bytes, 11, 127)) AS too_few_bytes FROM good;
SELECT said_of(substr(bytes, 1, 9) || '\x8008ff07'::bytea || convert_to(repeat('x', 4000), 'SQL_ASCII')) AS more_than_its_memory FROM good;
SELECT said_of(substr(bytes, 1, 12) || decode(repeat('00', length(bytes) - 12), 'hex')) AS unordered FROM good;
-- Every bit of it changed: an error, or what other keys make.
SELECT count(said_of(set_bit(bytes, i, 1 - get_bit(bytes, i)))) = count(*) AS no_crash
FROM good, generate_series(32, length(bytes) * 8 - 1) i;

DROP MATERIALIZED VIEW by_page;
DROP TABLE visits, exact, counted, prototypes, ways, parted, by_day, before;
DROP TABLE good;
DROP FUNCTION value_of, stored, bytes_of, said_of;
