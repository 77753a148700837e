CREATE FUNCTION _streamfilter.streamfilter_slice_stats(filter oid, OUT slice int, OUT server text,
  OUT lost boolean, OUT lost_since timestamptz, OUT answered bigint, OUT unanswered bigint,
  OUT messages bigint, OUT bytes_sent bigint, OUT bytes_received bigint, OUT error text) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 16
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_slice_stats(oid)
IS 'the rows of a filter in the view streamfilter_slices';

CREATE VIEW streamfilter_slices AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, slice.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL _streamfilter.streamfilter_slice_stats(ft.ftrelid) AS slice;
COMMENT ON VIEW streamfilter_slices
IS 'the slices of filters on other servers: where they are, what they have done, whether they are lost';

CREATE FUNCTION streamfilter_save() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'streamfilter_save_all';
COMMENT ON FUNCTION streamfilter_save()
IS 'saves the state of all logged filters of the current user that is on this server now';

CREATE FUNCTION streamfilter_slices_needed(lost int, places int DEFAULT 1,
  max_fpr double precision DEFAULT NULL, fpr double precision DEFAULT '0',
  max_fnr double precision DEFAULT NULL) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slices_needed(int, int, double precision, double precision,
  double precision)
IS 'how many slices keep a rate of false positives, or of false negatives, while some are lost';

