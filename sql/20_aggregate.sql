-- ---- aggregates -------------------------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_agg_transition(internal, key "any", prototype streamfilter)
RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_transition(internal, key "any") RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_transition(internal, key "any", prototype streamfilter)
RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_combine(internal, internal) RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_serialize(internal) RETURNS bytea
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_deserialize(bytea, internal) RETURNS internal
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_agg_final(internal) RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.approx_count_distinct_final(internal) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';

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
COMMENT ON AGGREGATE streamfilter_agg("any", streamfilter)
IS 'the prototype, filled with the keys';

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
COMMENT ON AGGREGATE approx_count_distinct("any")
IS 'the number of distinct keys, estimated in 1 MB of memory';

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

