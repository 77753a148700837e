-- ---- which filter for a stream, by its numbers or its rows --------------------------------------

CREATE FUNCTION streamfilter_advise(memory text, fpr double precision, rows double precision,
  distinct_rows double precision, gap double precision DEFAULT NULL)
RETURNS TABLE (prototype text, predicted_fpr double precision, predicted_fnr double precision,
  bits_per_key double precision, kind text, fpr_bound double precision, window_keys bigint,
  note text)
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100000 ROWS 16 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_advise(text, double precision, double precision, double precision,
  double precision)
IS 'the kinds of filters for a stream, best first, with the error rates that their models predict';

CREATE FUNCTION streamfilter_advise(query text, memory text, fpr double precision)
RETURNS TABLE (prototype text, predicted_fpr double precision, fpr_error double precision,
  predicted_fnr double precision, fnr_error double precision, fnr_half double precision,
  fnr_half_error double precision, fnr_double double precision, fnr_double_error double precision,
  bits_per_key double precision, kind text, fpr_bound double precision, window_keys bigint, sampled_rows bigint, note text)
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE COST 100000 ROWS 16 AS 'MODULE_PATHNAME', 'streamfilter_advise_query';
COMMENT ON FUNCTION streamfilter_advise(text, text, double precision)
IS 'the kinds of filters for the stream that a query is a part of, best first, as tried on a sample of its keys';
