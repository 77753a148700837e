-- ---- a filter from a table ---------------------------------------------------------------------------

CREATE FUNCTION streamfilter_warm(filter regclass, "table" regclass, columns text[] DEFAULT NULL,
  "where" text DEFAULT NULL) RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_warm(regclass, regclass, text[], text)
IS 'remembers the rows of a table in a filter, newest last; returns how many rows it has read';
