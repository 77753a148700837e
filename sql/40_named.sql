-- ---- functions on named filters ------------------------------------------------------------------

CREATE FUNCTION streamfilter_seen(filter regclass, VARIADIC key "any") RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_seen(regclass, VARIADIC "any")
IS 'was the key (probably) seen before? it is remembered now';

CREATE FUNCTION streamfilter_test(filter regclass, VARIADIC key "any") RETURNS boolean
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_test(regclass, VARIADIC "any")
IS 'was the key (probably) seen before? nothing is remembered';

CREATE FUNCTION streamfilter_value(filter regclass) RETURNS streamfilter
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_value(regclass)
IS 'the shared state of a filter as a value';

CREATE FUNCTION streamfilter_merge(filter regclass, value streamfilter) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_merge(regclass, streamfilter)
IS 'adds what a value remembers to the shared state of a filter';

CREATE FUNCTION streamfilter_save(filter regclass) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_save(regclass)
IS 'saves the state of a logged filter now';

CREATE FUNCTION streamfilter_stat(filter oid,
  OUT kind text, OUT memory bigint, OUT params jsonb,
  OUT tested bigint, OUT accepted bigint, OUT discarded bigint,
  OUT rolled_back bigint, OUT in_flight bigint, OUT waits bigint,
  OUT fill double precision, OUT fpr_now double precision, OUT fpr_bound double precision,
  OUT distinct_estimate bigint, OUT window_keys bigint,
  OUT created timestamptz, OUT last_reset timestamptz,
  OUT last_saved timestamptz, OUT restored timestamptz, OUT overflowed bigint)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_stat(oid)
IS 'one row of the view streamfilter_stats';

CREATE VIEW streamfilter_stats AS
SELECT ft.ftrelid::regclass AS filter, stat.*
FROM pg_foreign_table ft
JOIN pg_foreign_server s ON s.oid = ft.ftserver
JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw
JOIN pg_proc handler ON handler.oid = w.fdwhandler AND handler.prosrc = 'streamfilter_fdw_handler'
CROSS JOIN LATERAL streamfilter_stat(ft.ftrelid) AS stat
WHERE stat.kind IS NOT NULL;
COMMENT ON VIEW streamfilter_stats
IS 'what every filter of this database is, holds and has done';
GRANT SELECT ON streamfilter_stats TO PUBLIC;

-- ---- watching DDL ----------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_check_ddl() RETURNS event_trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_check_ddl()
IS 'checks the definitions of filters and of triggers that use them';

CREATE EVENT TRIGGER streamfilter_check_ddl ON ddl_command_end
WHEN TAG IN ('CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'ALTER TABLE', 'CREATE TRIGGER')
EXECUTE FUNCTION streamfilter_check_ddl();
COMMENT ON EVENT TRIGGER streamfilter_check_ddl
IS 'checks the definitions of filters and of triggers that use them';
