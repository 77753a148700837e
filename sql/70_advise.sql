-- ---- which filter for a stream ---------------------------------------------------------------------

CREATE FUNCTION streamfilter_advise(memory text, fpr double precision, rows double precision,
  distinct_rows double precision, gap double precision DEFAULT NULL)
RETURNS TABLE (prototype text, predicted_fpr double precision, predicted_fnr double precision,
  bits_per_key double precision, kind text, fpr_bound double precision, window_keys bigint,
  note text)
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100000 ROWS 16
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_advise(text, double precision, double precision, double precision,
  double precision)
IS 'the kinds of filters for a stream, best first, with the error rates that their models predict';
