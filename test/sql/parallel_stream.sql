--
-- A stream in parallel: for any number of workers the answers of one that takes the rows in order
-- (docs/reference/values.md)
--
SELECT setseed(0.5);
CREATE TABLE events (position bigint, host int, word text) WITH (parallel_workers = 3);
INSERT INTO events
SELECT i, floor(5000 * power(random(), 3)), CASE WHEN i % 50 > 0 THEN 'w' || i % 700 END
FROM generate_series(1, 30000) i ORDER BY random();
ANALYZE events;

-- One after the other. These filters are far too small, so that they evict all the time.
CREATE TABLE filters (name text, prototype streamfilter);
INSERT INTO filters VALUES
  ('sqf', 'sqf(memory=4kB, slices=4)'), ('dsqf', 'dsqf(memory=4kB, slices=4)'),
  ('sqf, one slice', 'sqf(memory=4kB)'), ('clq', 'clq(memory=2kB)'), ('lru', 'lru(memory=8kB)');
CREATE FUNCTION sequential(prototype streamfilter, key text) RETURNS bigint[] LANGUAGE sql AS $$
  SELECT array_agg(position ORDER BY position)
  FROM streamfilter_distinct(NULL::events, 'SELECT * FROM events ORDER BY position', prototype, ARRAY[key])
$$;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
EXPLAIN (COSTS OFF)
SELECT streamfilter_distinct_agg(host, position, 'sqf(memory=4kB)') FROM events;
-- Whichever workers took part, in whatever order rows were met; and rows without a key are never repeats.
CREATE TABLE answers AS
SELECT name, prototype, (h).positions AS hosts, (w).positions AS words, (h).filter AS filter
FROM filters, LATERAL (SELECT streamfilter_distinct_agg(host, position, prototype) AS h,
                              streamfilter_distinct_agg(word, position, prototype) AS w FROM events) AS a;
SELECT name, hosts = sequential(prototype, 'host') AS hosts, words = sequential(prototype, 'word') AS words,
       cardinality(hosts) > (SELECT count(DISTINCT host) FROM events) AS it_forgets,
       streamfilter_info(filter) ->> 'arrivals' AS arrivals
FROM answers ORDER BY name;
SET parallel_leader_participation = off;
SELECT name, (a).positions = hosts AS positions, streamfilter_send((a).filter) = streamfilter_send(filter) AS filter
FROM answers, LATERAL (SELECT streamfilter_distinct_agg(host, position, prototype) AS a FROM events) AS again
ORDER BY name;
SET max_parallel_workers_per_gather = 0;
SELECT name, (a).positions = hosts AS positions, streamfilter_send((a).filter) = streamfilter_send(filter) AS filter
FROM answers, LATERAL (SELECT streamfilter_distinct_agg(host, position, prototype) AS a FROM events) AS again
ORDER BY name;
SET max_parallel_workers_per_gather = 3;

-- Block by block: the filter that one block leaves is what the next begins with.
CREATE FUNCTION in_blocks(prototype streamfilter, size int) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  block streamfilter_block;
  firsts bigint[] := '{}';
BEGIN
  block.filter := prototype;
  FOR part IN 0..29999 / size LOOP
    SELECT (a).positions, (a).filter INTO block.positions, block.filter
    FROM (SELECT streamfilter_distinct_agg(host, position, block.filter) AS a FROM events
          WHERE (position - 1) / size = part) AS part;
    firsts := firsts || block.positions;
  END LOOP;
  RETURN firsts;
END $$;
SELECT name, in_blocks(prototype, 7000) = hosts AS same FROM answers ORDER BY name;

-- ---- map, combine, reduce (Dutta et al. 2013, section 5.3) ----------------------------------------------------
-- map: key and position, by part. reduce: each part of the stream has a filter of its own, and takes
-- its rows by position; so parts can be taken by different workers, or servers.
CREATE FUNCTION part(part int, parts int, prototype streamfilter) RETURNS SETOF bigint LANGUAGE sql AS $$
  SELECT position
  FROM streamfilter_distinct(NULL::events,
         format('SELECT * FROM events WHERE streamfilter_slice_of(host, %s) = %s ORDER BY position', parts, part),
         prototype, '{host}')
$$;
-- The same as an aggregate over all parts, in one pass and in parallel.
CREATE TABLE by_part AS
SELECT streamfilter_slice_of(host, 4) AS part, streamfilter_distinct_agg(host, position, 'sqf(memory=1kB)') AS block
FROM events GROUP BY 1;
SELECT part, (block).positions = ARRAY(SELECT part(part, 4, 'sqf(memory=1kB)')) AS same,
       cardinality((block).positions) > 1500 AS it_forgets
FROM by_part ORDER BY part;
-- combine: of the rows of one block with the same key, only the first goes on to reduce. It is the
-- sequential answer as long as nothing is evicted between two of them, as here:
CREATE TABLE firsts AS SELECT host, min(position) AS position FROM events GROUP BY host;
SELECT (streamfilter_distinct_agg(host, position, 'sqf(memory=1MB)')).positions
     = sequential('sqf(memory=1MB)', 'host') AS same FROM firsts;
-- In a filter that evicts, the repeats that it would have missed are found; so it is another answer:
SELECT cardinality((streamfilter_distinct_agg(host, position, 'sqf(memory=4kB)')).positions)
     < cardinality(sequential('sqf(memory=4kB)', 'host')) AS fewer FROM firsts;

-- ---- partition-wise: each worker takes whole parts --------------------------------------------------
CREATE TABLE parted (LIKE events) PARTITION BY LIST (streamfilter_slice_of(host, 4));
SELECT format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES IN (%s) WITH (parallel_workers = 0)', i, i)
FROM generate_series(0, 3) i \gexec
INSERT INTO parted SELECT * FROM events;
ANALYZE parted;
SET enable_partitionwise_aggregate = on;
SET enable_sort = off;
CREATE FUNCTION nodes(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line !~ 'Group Key' THEN RETURN NEXT regexp_replace(line, ' on .*', ''); END IF;
  END LOOP;
END $$;
SELECT nodes($$
SELECT streamfilter_slice_of(host, 4) AS part, streamfilter_distinct_agg(host, position, 'sqf(memory=1kB)') AS block
FROM parted GROUP BY 1$$);
SELECT p.part, (p.block).positions = (b.block).positions AS same
FROM (SELECT streamfilter_slice_of(host, 4) AS part,
             streamfilter_distinct_agg(host, position, 'sqf(memory=1kB)') AS block
      FROM parted GROUP BY 1) AS p JOIN by_part b USING (part) ORDER BY part;

-- ---- errors, and nothing ----------------------------------------------------------------------------
SET max_parallel_workers_per_gather = 0;
SELECT streamfilter_distinct_agg(host, NULL, 'sqf(memory=1kB)') FROM events;
SELECT streamfilter_distinct_agg(host, position / 2, 'sqf(memory=1kB)') FROM events WHERE position < 10 AND position > 1;
SELECT streamfilter_distinct_agg(host, position, NULL) FROM events;
SELECT streamfilter_distinct_agg(host, position, prototype) FROM events, filters;
SELECT streamfilter_distinct_agg(host, position, 'sqf(memory=1kB)') IS NULL AS nothing FROM events WHERE false;
SELECT (streamfilter_distinct_agg(NULL::int, position, 'sqf(memory=1kB)')).positions FROM events WHERE position < 4;
DROP TABLE events, filters, answers, by_part, firsts, parted;
DROP FUNCTION sequential, in_blocks, part, nodes;
