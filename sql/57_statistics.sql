-- ---- what triggers have done, and counting anew ------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_trigger_stat(trigger oid,
  OUT filter regclass, OUT kind text, OUT rows bigint, OUT discarded bigint, OUT diverted bigint,
  OUT would_discard bigint, OUT since timestamptz)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_trigger_stat(oid)
IS 'one row of the view streamfilter_triggers';

CREATE VIEW streamfilter_triggers AS
SELECT t.tgrelid::pg_catalog.regclass AS "table", t.tgname AS trigger, stat.*
FROM pg_catalog.pg_trigger AS t
CROSS JOIN LATERAL _streamfilter.streamfilter_trigger_stat(t.oid) AS stat
WHERE stat.kind IS NOT NULL;

CREATE FUNCTION streamfilter_stats_reset(filter regclass) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_stats_reset(regclass)
IS 'sets the counters of a filter, and of its triggers, to zero';

CREATE FUNCTION streamfilter_stats_reset() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'streamfilter_stats_reset_all';
REVOKE EXECUTE ON FUNCTION streamfilter_stats_reset() FROM PUBLIC;
COMMENT ON FUNCTION streamfilter_stats_reset()
IS 'sets the counters of all filters and triggers of the database to zero';

CREATE FUNCTION streamfilter_memory(OUT total bigint, OUT free bigint, OUT largest_free bigint,
  OUT dynamic bigint, OUT slots int, OUT slots_in_use int)
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_memory()
IS 'the shared memory of filters, in bytes, of all databases; NULLs where the library is not preloaded';
