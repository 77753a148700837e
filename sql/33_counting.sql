
-- ---- how many keys a filter has seen, and two have in common ------------------------------------

CREATE FUNCTION streamfilter_distinct_count(filter streamfilter) RETURNS bigint
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_count(streamfilter)
IS 'estimated number of distinct keys that the filter has seen';

CREATE OPERATOR # (
  RIGHTARG = streamfilter,
  FUNCTION = streamfilter_distinct_count
);
COMMENT ON OPERATOR # (NONE, streamfilter) IS 'how many distinct keys the filter has seen, estimated';

CREATE FUNCTION streamfilter_distinct_error(filter streamfilter) RETURNS double precision
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_error(streamfilter)
IS 'the relative standard error of the count for many keys; NULL where none is stated';

CREATE FUNCTION streamfilter_overlap(a streamfilter, b streamfilter, OUT in_first bigint, OUT in_both bigint,
  OUT in_second bigint, OUT error double precision)
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_overlap(streamfilter, streamfilter)
IS 'estimated numbers of distinct keys seen by the first filter, by both and by the second, and the standard error of the number in both, in keys';
