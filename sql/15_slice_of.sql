-- ---- parts of a stream ------------------------------------------------------------------------

CREATE FUNCTION streamfilter_slice_of(key "any", n int) RETURNS int
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 2
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_of("any", int)
IS 'the part 0..n-1 of a stream that the key belongs to, the same on every server; ROW(...) for several columns';

