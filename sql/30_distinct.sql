-- ---- first occurrences of a query's rows ------------------------------------------------------

CREATE FUNCTION streamfilter_distinct(row_type anyelement, query text, prototype streamfilter,
  key text[] DEFAULT NULL) RETURNS SETOF anyelement
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct(anyelement, text, streamfilter, text[])
IS 'first occurrences of the query''s rows by the key columns (default: all), in the constant memory of the prototype';

