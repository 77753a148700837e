
-- ---- watching ----------------------------------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_show_progress(OUT pid int, OUT command text, OUT filter regclass,
  OUT phase text, OUT done bigint, OUT total bigint, OUT unit text) RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 4
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_show_progress()
IS 'the rows of the view streamfilter_progress';

CREATE VIEW streamfilter_progress AS
SELECT pid, command, filter, phase, done, total, unit FROM _streamfilter.streamfilter_show_progress();
