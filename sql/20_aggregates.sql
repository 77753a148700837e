-- ---- aggregates ---------------------------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_agg_transition(internal, key "any", prototype streamfilter)
RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_transition(internal, key "any") RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_transition(internal, key "any", prototype streamfilter)
RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_combine(internal, internal) RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_serialize(internal) RETURNS bytea
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_deserialize(bytea, internal) RETURNS internal
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_final(internal) RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_final(internal) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE AGGREGATE streamfilter_agg(key "any", prototype streamfilter) (
  SFUNC = _streamfilter.streamfilter_agg_transition,
  STYPE = internal,
  SSPACE = 8192,
  FINALFUNC = _streamfilter.streamfilter_agg_final,
  COMBINEFUNC = _streamfilter.streamfilter_agg_combine,
  SERIALFUNC = _streamfilter.streamfilter_agg_serialize,
  DESERIALFUNC = _streamfilter.streamfilter_agg_deserialize,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE streamfilter_agg("any", streamfilter) IS 'the prototype, filled with the keys; over no row the prototype, if it is constant';

CREATE AGGREGATE approx_count_distinct(key "any") (
  SFUNC = _streamfilter.approx_count_distinct_transition,
  STYPE = internal,
  SSPACE = 128,
  FINALFUNC = _streamfilter.approx_count_distinct_final,
  COMBINEFUNC = _streamfilter.streamfilter_agg_combine,
  SERIALFUNC = _streamfilter.streamfilter_agg_serialize,
  DESERIALFUNC = _streamfilter.streamfilter_agg_deserialize,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE approx_count_distinct("any") IS 'the number of distinct keys, estimated in 1 MB of memory';

CREATE AGGREGATE approx_count_distinct(key "any", prototype streamfilter) (
  SFUNC = _streamfilter.approx_count_distinct_transition,
  STYPE = internal,
  SSPACE = 128,
  FINALFUNC = _streamfilter.approx_count_distinct_final,
  COMBINEFUNC = _streamfilter.streamfilter_agg_combine,
  SERIALFUNC = _streamfilter.streamfilter_agg_serialize,
  DESERIALFUNC = _streamfilter.streamfilter_agg_deserialize,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE approx_count_distinct("any", streamfilter)
IS 'the number of distinct keys, estimated by a filter of the kind and memory of the prototype';

-- ---- aggregates whose state travels between machines --------------------------------------------

CREATE FUNCTION streamfilter_hash(key "any", prototype streamfilter DEFAULT NULL) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hash("any", streamfilter)
IS 'the hash that a filter takes for the key; ROW(...) for several columns; by default of seed 0, as values have';

CREATE FUNCTION _streamfilter.streamfilter_agg_merge(streamfilter, streamfilter) RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_result(streamfilter) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_hash_agg_transition(streamfilter, hash bigint, prototype text)
RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_hash_transition(streamfilter, hash bigint)
RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_hash_final(streamfilter) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE AGGREGATE streamfilter_union_agg(streamfilter) (
  SFUNC = _streamfilter.streamfilter_agg_merge,
  STYPE = streamfilter,
  SSPACE = 1048576,
  FINALFUNC = _streamfilter.streamfilter_agg_result,
  COMBINEFUNC = _streamfilter.streamfilter_agg_merge,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE streamfilter_union_agg(streamfilter) IS 'a filter that remembers what any of the filters remembers';

CREATE AGGREGATE streamfilter_hash_agg(hash bigint, prototype text) (
  SFUNC = _streamfilter.streamfilter_hash_agg_transition,
  STYPE = streamfilter,
  SSPACE = 1048576,
  FINALFUNC = _streamfilter.streamfilter_agg_result,
  COMBINEFUNC = _streamfilter.streamfilter_agg_merge,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE streamfilter_hash_agg(bigint, text)
IS 'a filter by this definition, filled with the keys that have these hashes';

CREATE AGGREGATE approx_count_distinct_hash(hash bigint) (
  SFUNC = _streamfilter.approx_count_distinct_hash_transition,
  STYPE = streamfilter,
  SSPACE = 1048576,
  FINALFUNC = _streamfilter.approx_count_distinct_hash_final,
  COMBINEFUNC = _streamfilter.streamfilter_agg_merge,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE approx_count_distinct_hash(bigint)
IS 'the number of distinct keys that have these hashes, estimated in 1 MB of memory';
