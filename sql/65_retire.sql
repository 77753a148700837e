
-- ---- servers that go ---------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_retire(filter regclass, server text) RETURNS int
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_retire(regclass, text)
IS 'takes a server out of those that hold the filter; returns how many slices it has moved from there';
