
-- ---- how many keys a filter has seen, and two have in common ------------------------------------

CREATE FUNCTION streamfilter_distinct_count(filter streamfilter) RETURNS bigint
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_count(streamfilter)
IS 'how many distinct keys the filter has seen, estimated';

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
IS 'how many distinct keys the first, both and the second have seen, and the standard error of those in both, in keys';
