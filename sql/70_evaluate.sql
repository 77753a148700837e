-- ---- filters against the exact truth ------------------------------------------------------------

CREATE FUNCTION streamfilter_evaluate(query text, filters streamfilter[])
RETURNS TABLE (filter text, memory bigint, rows bigint, distinct_rows bigint,
  false_positives bigint, false_negatives bigint, fpr double precision, fnr double precision,
  weighted_fpr double precision, weighted_fnr double precision, ns_per_row double precision)
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_evaluate(text, streamfilter[])
IS 'error rates of filters on the rows of a query: key, optional importance, optional time';

CREATE FUNCTION streamfilter_profile(query text, filters streamfilter[], by text)
RETURNS TABLE (filter text, "from" double precision, "to" double precision, rows bigint,
  distinct_rows bigint, false_positives bigint, false_negatives bigint, fpr double precision,
  fnr double precision, fill double precision)
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_profile(text, streamfilter[], text)
IS 'error rates of streamfilter_evaluate by lag (rows since the last sight), position (along the query) or importance';
