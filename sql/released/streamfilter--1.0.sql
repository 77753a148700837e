\echo Use "CREATE EXTENSION streamfilter" to load this file. \quit

-- ---- the type streamfilter: a filter as a value -----------------------------------------------

CREATE TYPE streamfilter;

CREATE FUNCTION streamfilter_in(cstring) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_in(cstring) IS 'I/O';

CREATE FUNCTION streamfilter_out(streamfilter) RETURNS cstring
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_out(streamfilter) IS 'I/O';

CREATE FUNCTION streamfilter_recv(internal) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_recv(internal) IS 'I/O';

CREATE FUNCTION streamfilter_send(streamfilter) RETURNS bytea
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_send(streamfilter) IS 'I/O';

CREATE TYPE streamfilter (
  INPUT = streamfilter_in,
  OUTPUT = streamfilter_out,
  RECEIVE = streamfilter_recv,
  SEND = streamfilter_send,
  INTERNALLENGTH = VARIABLE,
  ALIGNMENT = double,
  STORAGE = extended
);
COMMENT ON TYPE streamfilter
IS 'an approximate set of keys: kind(option=value, ...), for example sbf(memory=64kB, fpr=0.01)';

-- Keys are "any", because anyelement refuses untyped literals. Hashing depends on nothing but the
-- key, in the way of the hash functions of the keys' types: immutable.

CREATE FUNCTION streamfilter_add(filter streamfilter, key "any") RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_add(streamfilter, "any")
IS 'a copy of the filter that remembers the key; ROW(...) for several columns';

CREATE FUNCTION streamfilter_contains(filter streamfilter, key "any") RETURNS boolean
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_contains(streamfilter, "any")
IS 'does the filter (probably) remember the key?';

CREATE FUNCTION streamfilter_union(streamfilter, streamfilter) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_union(streamfilter, streamfilter)
IS 'a filter that remembers what either remembers; kind, parameters and seed must be equal';

CREATE FUNCTION streamfilter_info(filter streamfilter) RETURNS jsonb
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_info(streamfilter)
IS 'kind, parameters, memory, fill, estimated false-positive rate and number of distinct keys';

CREATE OPERATOR @> (
  LEFTARG = streamfilter, RIGHTARG = "any",
  FUNCTION = streamfilter_contains
);
COMMENT ON OPERATOR @> (streamfilter, "any") IS 'does the filter (probably) remember the key?';

CREATE OPERATOR || (
  LEFTARG = streamfilter, RIGHTARG = streamfilter,
  FUNCTION = streamfilter_union
);
COMMENT ON OPERATOR || (streamfilter, streamfilter)
IS 'a filter that remembers what either remembers';

-- ---- parts of a stream ------------------------------------------------------------------------

CREATE FUNCTION streamfilter_slice_of(key "any", n int) RETURNS int
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 2
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_of("any", int)
IS 'the part 0..n-1 of a stream that the key belongs to, the same on every server; ROW(...) for several columns';

-- ---- aggregates -------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_agg_transition(internal, key "any", prototype streamfilter)
RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_agg_transition(internal, "any", streamfilter)
IS 'aggregate transition function';

CREATE FUNCTION approx_count_distinct_transition(internal, key "any") RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION approx_count_distinct_transition(internal, "any")
IS 'aggregate transition function';

CREATE FUNCTION approx_count_distinct_transition(internal, key "any", prototype streamfilter)
RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION approx_count_distinct_transition(internal, "any", streamfilter)
IS 'aggregate transition function';

CREATE FUNCTION streamfilter_agg_combine(internal, internal) RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_agg_combine(internal, internal)
IS 'aggregate combine function';

CREATE FUNCTION streamfilter_agg_serialize(internal) RETURNS bytea
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_agg_serialize(internal)
IS 'aggregate serialization function';

CREATE FUNCTION streamfilter_agg_deserialize(bytea, internal) RETURNS internal
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_agg_deserialize(bytea, internal)
IS 'aggregate deserialization function';

CREATE FUNCTION streamfilter_agg_final(internal) RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_agg_final(internal)
IS 'aggregate final function';

CREATE FUNCTION approx_count_distinct_final(internal) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION approx_count_distinct_final(internal)
IS 'aggregate final function';

CREATE AGGREGATE streamfilter_agg(key "any", prototype streamfilter) (
  SFUNC = streamfilter_agg_transition,
  STYPE = internal,
  SSPACE = 1048576,
  FINALFUNC = streamfilter_agg_final,
  COMBINEFUNC = streamfilter_agg_combine,
  SERIALFUNC = streamfilter_agg_serialize,
  DESERIALFUNC = streamfilter_agg_deserialize,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE streamfilter_agg("any", streamfilter)
IS 'the prototype, filled with the keys';

CREATE AGGREGATE approx_count_distinct(key "any") (
  SFUNC = approx_count_distinct_transition,
  STYPE = internal,
  SSPACE = 1048576,
  FINALFUNC = approx_count_distinct_final,
  COMBINEFUNC = streamfilter_agg_combine,
  SERIALFUNC = streamfilter_agg_serialize,
  DESERIALFUNC = streamfilter_agg_deserialize,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE approx_count_distinct("any")
IS 'the number of distinct keys, estimated in 1 MB of memory';

CREATE AGGREGATE approx_count_distinct(key "any", prototype streamfilter) (
  SFUNC = approx_count_distinct_transition,
  STYPE = internal,
  SSPACE = 1048576,
  FINALFUNC = approx_count_distinct_final,
  COMBINEFUNC = streamfilter_agg_combine,
  SERIALFUNC = streamfilter_agg_serialize,
  DESERIALFUNC = streamfilter_agg_deserialize,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE approx_count_distinct("any", streamfilter)
IS 'the number of distinct keys, estimated by a filter of the kind and memory of the prototype';

-- ---- aggregates whose state travels between machines -------------------------------------------

CREATE FUNCTION streamfilter_hash(key "any", prototype streamfilter DEFAULT NULL) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hash("any", streamfilter)
IS 'the hash that a filter takes for the key; ROW(...) for several columns; by default of seed 0, as values have';

CREATE FUNCTION streamfilter_agg_merge(streamfilter, streamfilter) RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_agg_merge(streamfilter, streamfilter)
IS 'aggregate transition and combine function';

CREATE FUNCTION streamfilter_agg_result(streamfilter) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_agg_result(streamfilter)
IS 'aggregate final function';

CREATE FUNCTION streamfilter_hash_agg_transition(streamfilter, hash bigint, prototype text)
RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hash_agg_transition(streamfilter, bigint, text)
IS 'aggregate transition function';

CREATE FUNCTION approx_count_distinct_hash_transition(streamfilter, hash bigint)
RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION approx_count_distinct_hash_transition(streamfilter, bigint)
IS 'aggregate transition function';

CREATE FUNCTION approx_count_distinct_hash_final(streamfilter) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION approx_count_distinct_hash_final(streamfilter)
IS 'aggregate final function';

CREATE AGGREGATE streamfilter_union_agg(streamfilter) (
  SFUNC = streamfilter_agg_merge,
  STYPE = streamfilter,
  SSPACE = 1048576,
  FINALFUNC = streamfilter_agg_result,
  COMBINEFUNC = streamfilter_agg_merge,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE streamfilter_union_agg(streamfilter)
IS 'a filter that remembers what any of the filters remembers';

CREATE AGGREGATE streamfilter_hash_agg(hash bigint, prototype text) (
  SFUNC = streamfilter_hash_agg_transition,
  STYPE = streamfilter,
  SSPACE = 1048576,
  FINALFUNC = streamfilter_agg_result,
  COMBINEFUNC = streamfilter_agg_merge,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE streamfilter_hash_agg(bigint, text)
IS 'a filter by this definition, filled with the keys that have these hashes';

CREATE AGGREGATE approx_count_distinct_hash(hash bigint) (
  SFUNC = approx_count_distinct_hash_transition,
  STYPE = streamfilter,
  SSPACE = 1048576,
  FINALFUNC = approx_count_distinct_hash_final,
  COMBINEFUNC = streamfilter_agg_merge,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE approx_count_distinct_hash(bigint)
IS 'the number of distinct keys that have these hashes, estimated in 1 MB of memory';
-- ---- first occurrences of a query's rows ------------------------------------------------------

CREATE FUNCTION streamfilter_distinct(row_type anyelement, query text, prototype streamfilter,
  key text[] DEFAULT NULL) RETURNS SETOF anyelement
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct(anyelement, text, streamfilter, text[])
IS 'first occurrences of the query''s rows by the key columns (default: all), in the constant memory of the prototype';

-- ---- first occurrences in a block of a stream, in parallel --------------------------------------

CREATE TYPE streamfilter_block AS (positions bigint[], filter streamfilter);
COMMENT ON TYPE streamfilter_block
IS 'the positions of first occurrences in a block of a stream, and the filter after it';

CREATE FUNCTION streamfilter_distinct_agg_transition(internal, key "any", "position" bigint,
  prototype streamfilter) RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_agg_transition(internal, "any", bigint, streamfilter)
IS 'aggregate transition function';

CREATE FUNCTION streamfilter_distinct_agg_combine(internal, internal) RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_agg_combine(internal, internal)
IS 'aggregate combine function';

CREATE FUNCTION streamfilter_distinct_agg_serialize(internal) RETURNS bytea
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_agg_serialize(internal)
IS 'aggregate serialization function';

CREATE FUNCTION streamfilter_distinct_agg_deserialize(bytea, internal) RETURNS internal
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_agg_deserialize(bytea, internal)
IS 'aggregate deserialization function';

CREATE FUNCTION streamfilter_distinct_agg_final(internal) RETURNS streamfilter_block
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_agg_final(internal)
IS 'aggregate final function';

CREATE AGGREGATE streamfilter_distinct_agg(key "any", "position" bigint, prototype streamfilter) (
  SFUNC = streamfilter_distinct_agg_transition,
  STYPE = internal,
  SSPACE = 1048576,
  FINALFUNC = streamfilter_distinct_agg_final,
  COMBINEFUNC = streamfilter_distinct_agg_combine,
  SERIALFUNC = streamfilter_distinct_agg_serialize,
  DESERIALFUNC = streamfilter_distinct_agg_deserialize,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE streamfilter_distinct_agg("any", bigint, streamfilter)
IS 'the positions of first occurrences, as if the rows had come one by one in the order of their positions, and the filter after them';
-- ---- filters as relations --------------------------------------------------------------------------

CREATE FUNCTION streamfilter_fdw_handler() RETURNS fdw_handler
LANGUAGE C STRICT
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_fdw_handler()
IS 'handler of the foreign-data wrapper streamfilter';

CREATE FUNCTION streamfilter_fdw_validator(options text[], catalog oid) RETURNS void
LANGUAGE C STRICT
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_fdw_validator(text[], oid)
IS 'checks the options of filters, their columns and their servers';

CREATE FOREIGN DATA WRAPPER streamfilter
HANDLER streamfilter_fdw_handler VALIDATOR streamfilter_fdw_validator;
COMMENT ON FOREIGN DATA WRAPPER streamfilter
IS 'filters of repeated keys, in shared memory';

-- Who creates filters needs USAGE on it, which PUBLIC does not have.
CREATE SERVER streamfilter FOREIGN DATA WRAPPER streamfilter;
COMMENT ON SERVER streamfilter
IS 'filters of repeated keys, in the shared memory of this server';
-- ---- functions on named filters ------------------------------------------------------------------

CREATE FUNCTION streamfilter_seen(filter regclass, VARIADIC key "any") RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_seen(regclass, VARIADIC "any")
IS 'was the key (probably) seen before? it is remembered now';

CREATE FUNCTION streamfilter_test(filter regclass, VARIADIC key "any") RETURNS boolean
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_test(regclass, VARIADIC "any")
IS 'was the key (probably) seen before? nothing is remembered';

CREATE FUNCTION streamfilter_value(filter regclass) RETURNS streamfilter
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_value(regclass)
IS 'the shared state of a filter as a value';

CREATE FUNCTION streamfilter_merge(filter regclass, value streamfilter) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_merge(regclass, streamfilter)
IS 'adds what a value remembers to the shared state of a filter';

CREATE FUNCTION streamfilter_slice(filter regclass, VARIADIC key "any") RETURNS int
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice(regclass, VARIADIC "any")
IS 'the slice of a filter that holds the key, 0 to slices - 1';

CREATE FUNCTION streamfilter_export(filter regclass, slice int) RETURNS bytea
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_export(regclass, int)
IS 'the state of one slice of a filter, for streamfilter_import';

CREATE FUNCTION streamfilter_import(filter regclass, slice int, state bytea) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_import(regclass, int, bytea)
IS 'adds what streamfilter_export has given of a slice to the same slice of a filter';

CREATE FUNCTION streamfilter_save(filter regclass) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_save(regclass)
IS 'saves the state of a logged filter now';

CREATE FUNCTION streamfilter_stat(filter oid,
  OUT kind text, OUT memory bigint, OUT params jsonb,
  OUT tested bigint, OUT accepted bigint, OUT discarded bigint,
  OUT rolled_back bigint, OUT in_flight bigint, OUT waits bigint,
  OUT fill double precision, OUT fpr_now double precision, OUT fpr_bound double precision,
  OUT distinct_estimate bigint, OUT window_keys bigint,
  OUT created timestamptz, OUT last_reset timestamptz,
  OUT last_saved timestamptz, OUT restored timestamptz, OUT overflowed bigint)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_stat(oid)
IS 'one row of the view streamfilter_stats';

CREATE VIEW streamfilter_stats AS
SELECT ft.ftrelid::regclass AS filter, stat.*
FROM pg_foreign_table ft
JOIN pg_foreign_server s ON s.oid = ft.ftserver
JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw
JOIN pg_proc handler ON handler.oid = w.fdwhandler AND handler.prosrc = 'streamfilter_fdw_handler'
CROSS JOIN LATERAL streamfilter_stat(ft.ftrelid) AS stat
WHERE stat.kind IS NOT NULL;
COMMENT ON VIEW streamfilter_stats
IS 'what every filter of this database is, holds and has done';
GRANT SELECT ON streamfilter_stats TO PUBLIC;

CREATE FUNCTION streamfilter_tune(filter oid)
RETURNS TABLE (factor double precision, memory bigint, found bigint,
  fnr double precision, fnr_low double precision, fnr_high double precision)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 5
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_tune(oid)
IS 'the rows of the view streamfilter_tuning for one filter';

CREATE VIEW streamfilter_tuning AS
SELECT s.filter, tuned.*
FROM streamfilter_stats s
CROSS JOIN LATERAL streamfilter_tune(s.filter) AS tuned;
COMMENT ON VIEW streamfilter_tuning
IS 'what filters would have missed with less and more memory, by what they have found so far';
GRANT SELECT ON streamfilter_tuning TO PUBLIC;

CREATE FUNCTION streamfilter_tree_node(filter oid,
  OUT parent regclass, OUT level int, OUT accesses bigint, OUT hits bigint)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_tree_node(oid)
IS 'one row of the view streamfilter_tree; NULL for a filter that is in no tree';

CREATE VIEW streamfilter_tree AS
SELECT stat.filter, node.*
FROM streamfilter_stats AS stat
CROSS JOIN LATERAL streamfilter_tree_node(stat.filter) AS node
WHERE node.level IS NOT NULL;
COMMENT ON VIEW streamfilter_tree
IS 'the nodes of trees of filters: how often a key has come to each, and how many repeats each has found';
GRANT SELECT ON streamfilter_tree TO PUBLIC;

-- ---- watching DDL ----------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_check_ddl() RETURNS event_trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_check_ddl()
IS 'checks the definitions of filters and of triggers that use them';

CREATE EVENT TRIGGER streamfilter_check_ddl ON ddl_command_end
WHEN TAG IN ('CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'ALTER TABLE', 'CREATE TRIGGER',
  'ALTER SERVER')
EXECUTE FUNCTION streamfilter_check_ddl();
COMMENT ON EVENT TRIGGER streamfilter_check_ddl
IS 'checks the definitions of filters and of triggers that use them';
-- ---- the state of logged filters -------------------------------------------------------------------
-- Written and read by the library alone. They are materialized views, not tables, because these
-- are heaps that neither SQL nor a publication FOR ALL TABLES touches.

CREATE MATERIALIZED VIEW streamfilter_log USING heap AS
SELECT NULL::oid AS filter, NULL::"char" AS change, NULL::bigint AS number, NULL::bigint AS identity,
       NULL::bytea AS data
WHERE false;
ALTER MATERIALIZED VIEW streamfilter_log ALTER COLUMN data SET STORAGE PLAIN;
COMMENT ON MATERIALIZED VIEW streamfilter_log
IS 'what committed transactions have added to filters since their last image; internal';

CREATE MATERIALIZED VIEW streamfilter_image USING heap AS
SELECT NULL::oid AS filter, NULL::int AS chunks, NULL::int AS number, NULL::bigint AS sum,
       NULL::bigint AS image, NULL::timestamptz AS saved, NULL::bytea AS data
WHERE false;
ALTER MATERIALIZED VIEW streamfilter_image ALTER COLUMN data SET STORAGE PLAIN;
COMMENT ON MATERIALIZED VIEW streamfilter_image
IS 'images of filters, in chunks; internal';

-- ---- triggers ------------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_discard() RETURNS trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_discard()
IS 'BEFORE INSERT FOR EACH ROW trigger: discards rows whose key was (probably) seen before; arguments: filter [, column ...]';

CREATE FUNCTION streamfilter_mark() RETURNS trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_mark()
IS 'BEFORE INSERT FOR EACH ROW trigger: sets a boolean column to whether the key was (probably) seen before; arguments: filter, boolean column [, column ...]';

-- ---- slices of filters on other servers ------------------------------------------------------------
-- Called by the servers whose filters have slices here, with the hashes of keys.

CREATE FUNCTION streamfilter_hashes_define(schema_name text, table_name text, wanted text,
  conflict text, persistence text, producer text, OUT definition text, OUT made boolean)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_define(text, text, text, text, text, text)
IS 'makes the relation that holds slices of a filter on another server, unless it is there';

CREATE FUNCTION streamfilter_hashes_test(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_test(regclass, bigint[], bigint[], double precision[])
IS 'was each hash seen before? nothing is remembered';

CREATE FUNCTION streamfilter_hashes_seen(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_seen(regclass, bigint[], bigint[], double precision[])
IS 'was each hash seen before? it is remembered now';

CREATE FUNCTION streamfilter_hashes_claim(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_claim(regclass, bigint[], bigint[], double precision[])
IS 'the same for one of several parts of a key: nobody else adds it until the transaction ends';

CREATE FUNCTION streamfilter_hashes_put(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_put(regclass, bigint[], bigint[], double precision[])
IS 'the same for the other parts of a key that is claimed';

CREATE FUNCTION streamfilter_hashes_erase(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_erase(regclass, bigint[], bigint[], double precision[])
IS 'was each hash there? it is forgotten now';

CREATE FUNCTION streamfilter_slice_stats(filter oid, OUT slice int, OUT server text,
  OUT lost boolean, OUT lost_since timestamptz, OUT answered bigint, OUT unanswered bigint,
  OUT messages bigint, OUT bytes_sent bigint, OUT bytes_received bigint) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 16
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_stats(oid)
IS 'the rows of a filter in the view streamfilter_slices';

CREATE VIEW streamfilter_slices AS
SELECT ft.ftrelid::regclass AS filter, slice.*
FROM pg_foreign_table ft
JOIN pg_foreign_server s ON s.oid = ft.ftserver
JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw
JOIN pg_proc handler ON handler.oid = w.fdwhandler AND handler.prosrc = 'streamfilter_fdw_handler'
CROSS JOIN LATERAL streamfilter_slice_stats(ft.ftrelid) AS slice;
COMMENT ON VIEW streamfilter_slices
IS 'the slices of filters on other servers: where they are, what they have done, whether they are lost';
GRANT SELECT ON streamfilter_slices TO PUBLIC;

CREATE FUNCTION streamfilter_save() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
  SELECT count(streamfilter_save(s.filter))
  FROM streamfilter_stats s JOIN pg_catalog.pg_class c ON c.oid = s.filter
  WHERE pg_catalog.pg_has_role(c.relowner, 'USAGE')
    -- Neither those whose state is elsewhere or not in memory, nor those that have lost their way to the root.
    AND s.created IS NOT NULL
    AND NOT EXISTS (SELECT FROM streamfilter_tree t WHERE t.filter = s.filter AND t.level < 0);
END;
COMMENT ON FUNCTION streamfilter_save()
IS 'saves the state of all logged filters of the current user that is on this server now';

CREATE FUNCTION streamfilter_slices_needed(lost int, places int DEFAULT 1,
  max_fpr double precision DEFAULT NULL, fpr double precision DEFAULT 0,
  max_fnr double precision DEFAULT NULL) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slices_needed(int, int, double precision, double precision,
  double precision)
IS 'how many slices keep a rate of false positives, or of false negatives, while some are lost';
-- ---- filters against the exact truth ---------------------------------------------------------------

CREATE FUNCTION streamfilter_evaluate(query text, filters streamfilter[])
RETURNS TABLE (filter text, memory bigint, rows bigint, distinct_rows bigint,
  false_positives bigint, false_negatives bigint, fpr double precision, fnr double precision,
  weighted_fpr double precision, weighted_fnr double precision, ns_per_row double precision)
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE COST 10000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_evaluate(text, streamfilter[])
IS 'error rates of filters on the rows of a query: key, optional importance, optional time';

CREATE FUNCTION streamfilter_profile(query text, filters streamfilter[], by text)
RETURNS TABLE (filter text, "from" double precision, "to" double precision, rows bigint,
  distinct_rows bigint, false_positives bigint, false_negatives bigint, fpr double precision,
  fnr double precision, fill double precision)
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE COST 10000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_profile(text, streamfilter[], text)
IS 'the same by lag (rows since the last sight), position (along the query) or importance';
-- ---- which filter for a stream ---------------------------------------------------------------------

CREATE FUNCTION streamfilter_advise(memory text, fpr double precision, rows double precision,
  distinct_rows double precision, gap double precision DEFAULT NULL)
RETURNS TABLE (prototype text, predicted_fpr double precision, predicted_fnr double precision,
  bits_per_key double precision, kind text, fpr_bound double precision, window_keys bigint,
  note text)
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100000 ROWS 16
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_advise(text, double precision, double precision, double precision,
  double precision)
IS 'the kinds of filters for a stream, best first, with the error rates that their models predict';
