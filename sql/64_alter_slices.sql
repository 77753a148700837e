
-- ---- slices that are altered -----------------------------------------------------------------------
-- Called by the server where a filter with slices here is altered.

CREATE FUNCTION streamfilter_hashes_alter(filter regclass, conflict text, persistence text, producer text)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_alter(regclass, text, text, text)
IS 'gives a relation that holds slices of a filter on another server other options; it keeps what it knows';
