--
-- Aggregates whose parts run on different machines (docs/engines.md, Citus): what an engine does by
-- reading pg_aggregate. On every shard it runs the transition function; it takes the state through
-- its type's text or binary form; it runs the combine function over these, then the final function.
--
\getenv abs_builddir PG_ABS_BUILDDIR
\set file :abs_builddir '/results/partial_aggregates.bin'
SELECT set_config('test.file', :'file', false) IS NOT NULL AS ready;

-- ---- which aggregates an engine can take apart ----------------------------------------------------
-- It needs a combine function, and a state that has text and binary forms or is serialized; and it
-- hands over arguments only to functions that declare their very types.
CREATE FUNCTION can_combine(pg_aggregate) RETURNS boolean LANGUAGE sql AS $$
  SELECT $1.aggcombinefn <> 0 AND
    CASE WHEN $1.aggtranstype = 'internal'::regtype THEN $1.aggserialfn <> 0 AND $1.aggdeserialfn <> 0
         ELSE (SELECT typtype <> 'p' AND typinput <> 0 AND typoutput <> 0 AND typreceive <> 0 AND typsend <> 0
               FROM pg_type WHERE oid = $1.aggtranstype) END
$$;
CREATE FUNCTION can_be_pushed_down(pg_aggregate) RETURNS boolean LANGUAGE sql AS $$
  SELECT can_combine($1) AND (SELECT typtype <> 'p' FROM pg_type WHERE oid = $1.aggtranstype) AND
    (SELECT bool_and(typtype <> 'p') FROM pg_proc p, unnest(proargtypes) AS argument JOIN pg_type t ON t.oid = argument
     WHERE p.oid = $1.aggfnoid)
$$;
SELECT aggfnoid::regprocedure AS aggregate, aggtranstype::regtype AS state, can_combine(a), can_be_pushed_down(a),
       p.proparallel
FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid
WHERE p.proname ~ '^(streamfilter|approx)' ORDER BY p.proname, p.pronargs;

-- ---- the two halves of an aggregate -------------------------------------------------------------
-- partial_NAME is the aggregate without its final function; combine_NAME(state) is the rest of it.
SELECT format('CREATE AGGREGATE partial_%s (%s) (SFUNC = %s, STYPE = %s)',
              p.proname, pg_get_function_arguments(p.oid), aggtransfn, aggtranstype::regtype),
       format('CREATE AGGREGATE combine_%1$s (%2$s) (SFUNC = %3$s, STYPE = %2$s, FINALFUNC = %4$s)',
              p.proname, aggtranstype::regtype, aggcombinefn, aggfinalfn)
FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid
WHERE p.proname ~ '^(streamfilter|approx)' AND can_be_pushed_down(a) ORDER BY p.proname \gexec

-- A state on its way: through text, and through bytes.
CREATE TABLE through_text (name text, shard int, state text);
CREATE TABLE sent (name text, shard int, state streamfilter);
CREATE TABLE received (LIKE sent);
CREATE FUNCTION send_all() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE through_text, received;
  INSERT INTO through_text SELECT * FROM sent;
  EXECUTE format('COPY sent TO %L (FORMAT binary)', current_setting('test.file'));
  EXECUTE format('COPY received FROM %L (FORMAT binary)', current_setting('test.file'));
END $$;

-- ---- for every kind whose filters merge -----------------------------------------------------------
CREATE TABLE events (shard int, key int, word text);
INSERT INTO events SELECT streamfilter_slice_of(i % 400, 3), i % 400, 'w' || i % 400 FROM generate_series(1, 400) i;
-- The bits of a Bloom filter in one slice, without the counters in front of them.
CREATE FUNCTION bits(f streamfilter) RETURNS text
LANGUAGE sql RETURN md5(substring(streamfilter_send(f) FROM 129 FOR length(streamfilter_send(f)) - 136));
CREATE TABLE kinds (name text, definition text);
INSERT INTO kinds VALUES
  ('bloom', 'bloom(memory=4kB, k=5)'), ('bloom, blocked', 'bloom(memory=4kB, k=5, layout=blocked)'),
  ('bloom, growing', 'bloom(memory=64kB, keys=100, grow=density)'),
  ('sbf', 'sbf(memory=32kB)'), ('rsbf', 'rsbf(memory=4kB)'), ('bsbf', 'bsbf(memory=4kB, k=2)'),
  ('bsbfsd', 'bsbfsd(memory=4kB, k=2)'), ('rlbsbf', 'rlbsbf(memory=4kB, k=2)'),
  ('sqf', 'sqf(memory=4kB)'), ('dsqf', 'dsqf(memory=8kB)'),
  ('ibf2c', 'ibf2c(memory=4kB)'), ('ibfmc', 'ibfmc(memory=4kB)'), ('ibfh', 'ibfh(memory=4kB)'),
  ('timer', 'timer(memory=16kB, k=4, window="10000 rows")'), ('clq', 'clq(memory=4kB)'),
  ('vqf', 'vqf(memory=4kB)'), ('ell', 'ell(memory=4kB)');

-- streamfilter_hash_agg: as the union of the filters of the shards, in their order; and while nothing
-- is forgotten, every key of any shard is there (the kinds by importance keep little of what has none).
INSERT INTO sent
SELECT name, shard, partial_streamfilter_hash_agg(streamfilter_hash(key), definition ORDER BY key)
FROM kinds, events GROUP BY name, shard;
SELECT send_all();
CREATE TABLE results AS
SELECT k.name, (SELECT combine_streamfilter_hash_agg(state::streamfilter ORDER BY shard) FROM through_text t WHERE t.name = k.name) AS by_text,
       (SELECT combine_streamfilter_hash_agg(state ORDER BY shard) FROM received r WHERE r.name = k.name) AS by_bytes,
       (SELECT streamfilter_hash_agg(streamfilter_hash(key), definition ORDER BY key) FROM events WHERE shard = 0) AS part_0,
       (SELECT streamfilter_hash_agg(streamfilter_hash(key), definition ORDER BY key) FROM events WHERE shard = 1) AS part_1,
       (SELECT streamfilter_hash_agg(streamfilter_hash(key), definition ORDER BY key) FROM events WHERE shard = 2) AS part_2
FROM kinds k;
SELECT name, streamfilter_send(by_text) = streamfilter_send(part_0 || part_1 || part_2) AS text,
       streamfilter_send(by_bytes) = streamfilter_send(part_0 || part_1 || part_2) AS bytes,
       (SELECT count(*) FILTER (WHERE by_text @> key) >= 0.9 * count(*) FROM events) OR name LIKE 'ibf%' AS remembers
FROM results ORDER BY name;
-- What never forgets is as if filled in one place.
SELECT name, bits(by_bytes) = (SELECT bits(streamfilter_agg(key, definition::streamfilter)) FROM events) AS same_bits
FROM results JOIN kinds USING (name) WHERE name IN ('bloom', 'bloom, blocked') ORDER BY name;

-- streamfilter_union_agg: of the filters that every shard has per word.
TRUNCATE sent;
INSERT INTO sent
SELECT name, shard, partial_streamfilter_union_agg(f ORDER BY part)
FROM (SELECT name, shard, key % 5 AS part, streamfilter_agg(key, definition::streamfilter ORDER BY key) AS f
      FROM kinds, events GROUP BY 1, 2, 3) AS filters
GROUP BY name, shard;
SELECT send_all();
SELECT k.name,
       (SELECT streamfilter_send(combine_streamfilter_union_agg(state::streamfilter ORDER BY shard)) FROM through_text t WHERE t.name = k.name)
         = streamfilter_send(whole) AS text,
       (SELECT streamfilter_send(combine_streamfilter_union_agg(state ORDER BY shard)) FROM received r WHERE r.name = k.name)
         = streamfilter_send(whole) AS bytes
FROM kinds k, LATERAL (SELECT streamfilter_union_agg(f ORDER BY shard) AS whole
  FROM (SELECT shard, streamfilter_union_agg(f ORDER BY part) AS f
        FROM (SELECT shard, key % 5 AS part, streamfilter_agg(key, definition::streamfilter ORDER BY key) AS f
              FROM events GROUP BY 1, 2) AS parts GROUP BY shard) AS shards) AS w
ORDER BY k.name;

-- approx_count_distinct_hash: the very number that one place gets.
TRUNCATE sent;
INSERT INTO sent SELECT 'words', shard, partial_approx_count_distinct_hash(streamfilter_hash(word)) FROM events GROUP BY shard;
SELECT send_all();
SELECT (SELECT combine_approx_count_distinct_hash(state::streamfilter) FROM through_text) AS text,
       (SELECT combine_approx_count_distinct_hash(state) FROM received) AS bytes,
       (SELECT approx_count_distinct(word) FROM events) AS here, (SELECT count(DISTINCT word) FROM events) AS truth;
-- A shard without rows has no state; none at all is nothing.
SELECT combine_approx_count_distinct_hash(s) AS shards, combine_streamfilter_hash_agg(s) IS NULL AS nothing
FROM (VALUES (NULL::streamfilter), (NULL)) AS v (s);
SELECT streamfilter_info(combine_streamfilter_union_agg(s)) ->> 'arrivals' AS arrivals
FROM (VALUES (NULL), (streamfilter_add('bloom(memory=4kB, k=5)', 'x')), (NULL)) AS v (s);

-- ---- the aggregates over keys: their states are serialized from process to process ------------------
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
ALTER TABLE events SET (parallel_workers = 2);
SELECT name, (SELECT streamfilter_info(streamfilter_agg(key, definition::streamfilter)) ->> 'arrivals' FROM events) AS arrivals,
       (SELECT count(*) FILTER (WHERE f @> key) >= 0.9 * count(*) OR name LIKE 'ibf%'
        FROM events, (SELECT streamfilter_agg(key, definition::streamfilter) AS f FROM events) AS whole) AS remembers
FROM kinds ORDER BY name;
EXPLAIN (COSTS OFF) SELECT streamfilter_hash_agg(streamfilter_hash(key), 'bloom(memory=4kB, k=5)') FROM events;
SELECT bits(streamfilter_hash_agg(streamfilter_hash(key), 'bloom(memory=4kB, k=5)'))
     = bits(streamfilter_hash_agg(streamfilter_hash(key), 'bloom(memory=4kB, k=5)' ORDER BY key)) AS same_bits,
       approx_count_distinct_hash(streamfilter_hash(word)) FROM events;
RESET ALL;

-- ---- hashes -----------------------------------------------------------------------------------------
-- What a filter remembers by the hash it finds by the key: of its seed and its rule for NULLs.
SELECT f @> 7 AS has_7, f @> 8 AS has_8
FROM (SELECT streamfilter_hash_agg(streamfilter_hash(7, p), 'bloom(memory=4kB, k=5, seed=9)') AS f
      FROM (VALUES ('bloom(memory=4kB, k=5, seed=9)'::streamfilter)) AS v (p)) AS v;
SELECT streamfilter_hash(ROW(1, NULL)) IS NULL AS no_key,
       streamfilter_hash(ROW(1, NULL), 'bloom(memory=4kB, k=5, nulls="not distinct")') IS NULL AS no_key_either,
       streamfilter_hash(NULL::int) IS NULL AS of_null, streamfilter_hash(5) = streamfilter_hash(5::bigint) AS integers;
-- Errors.
SELECT streamfilter_hash_agg(1, NULL);
SELECT streamfilter_hash_agg(1, 'bloom(memory=4kB, k=5');
SELECT streamfilter_hash_agg(1, 'bloom(memory=4kB, k=5) and more');
SELECT streamfilter_hash_agg(key, format('bloom(memory=4kB, k=%s)', 1 + key % 2)) FROM events;
SELECT streamfilter_hash(point(1, 1));
DROP TABLE events, kinds, results, sent, received, through_text;
DROP AGGREGATE partial_streamfilter_hash_agg (bigint, text), combine_streamfilter_hash_agg (streamfilter),
  partial_streamfilter_union_agg (streamfilter), combine_streamfilter_union_agg (streamfilter),
  partial_approx_count_distinct_hash (bigint), combine_approx_count_distinct_hash (streamfilter);
DROP FUNCTION can_combine, can_be_pushed_down, send_all, bits;
