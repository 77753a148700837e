-- ---- aggregates whose state travels between machines -------------------------------------------

CREATE FUNCTION streamfilter_hash(key "any", prototype streamfilter DEFAULT NULL) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hash("any", streamfilter)
IS 'the hash that a filter takes for the key; ROW(...) for several columns; by default of seed 0, as values have';

CREATE FUNCTION _streamfilter.streamfilter_agg_merge(streamfilter, streamfilter) RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_result(streamfilter) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_hash_agg_transition(streamfilter, hash bigint, prototype text)
RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_hash_transition(streamfilter, hash bigint)
RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_hash_final(streamfilter) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE AGGREGATE streamfilter_union_agg(streamfilter) (
  SFUNC = _streamfilter.streamfilter_agg_merge,
  STYPE = streamfilter,
  SSPACE = 1048576,
  FINALFUNC = _streamfilter.streamfilter_agg_result,
  COMBINEFUNC = _streamfilter.streamfilter_agg_merge,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE streamfilter_union_agg(streamfilter)
IS 'a filter that remembers what any of the filters remembers';

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
