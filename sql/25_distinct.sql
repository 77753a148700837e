-- ---- first occurrences of a query's rows --------------------------------------------------------

CREATE FUNCTION streamfilter_distinct(row_type anyelement, query text, prototype streamfilter,
  key text[] DEFAULT NULL) RETURNS SETOF anyelement
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct(anyelement, text, streamfilter, text[])
IS 'first occurrences of the query''s rows by the key columns (default: all), in the constant memory of the prototype';

-- ---- first occurrences in a block of a stream, in parallel --------------------------------------

CREATE TYPE streamfilter_block AS (positions bigint[], filter streamfilter);
COMMENT ON TYPE streamfilter_block IS 'the positions of first occurrences in a block of a stream, and the filter after it';

CREATE FUNCTION _streamfilter.streamfilter_distinct_agg_transition(internal, key "any", "position" bigint,
  prototype streamfilter) RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_distinct_agg_combine(internal, internal) RETURNS internal
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_distinct_agg_serialize(internal) RETURNS bytea
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_distinct_agg_deserialize(bytea, internal) RETURNS internal
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE FUNCTION _streamfilter.streamfilter_distinct_agg_final(internal) RETURNS streamfilter_block
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

CREATE AGGREGATE streamfilter_distinct_agg(key "any", "position" bigint, prototype streamfilter) (
  SFUNC = _streamfilter.streamfilter_distinct_agg_transition,
  STYPE = internal,
  SSPACE = 1048576,
  FINALFUNC = _streamfilter.streamfilter_distinct_agg_final,
  COMBINEFUNC = _streamfilter.streamfilter_distinct_agg_combine,
  SERIALFUNC = _streamfilter.streamfilter_distinct_agg_serialize,
  DESERIALFUNC = _streamfilter.streamfilter_distinct_agg_deserialize,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE streamfilter_distinct_agg("any", bigint, streamfilter)
IS 'the positions of first occurrences, as if the rows had come one by one in the order of their positions, and the filter after them';
