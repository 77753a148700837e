-- ---- filters as relations -----------------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_fdw_handler() RETURNS fdw_handler
LANGUAGE C STRICT AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_fdw_handler() IS 'handler of the foreign-data wrapper streamfilter';

CREATE FUNCTION _streamfilter.streamfilter_fdw_validator(options text[], catalog oid) RETURNS void
LANGUAGE C STRICT AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_fdw_validator(text[], oid)
IS 'checks the options of filters, their columns and their servers';

CREATE FOREIGN DATA WRAPPER streamfilter
HANDLER _streamfilter.streamfilter_fdw_handler VALIDATOR _streamfilter.streamfilter_fdw_validator;
COMMENT ON FOREIGN DATA WRAPPER streamfilter IS 'filters of repeated keys, in shared memory';

-- Who creates filters needs USAGE on it, which PUBLIC does not have.
CREATE SERVER streamfilter FOREIGN DATA WRAPPER streamfilter;
COMMENT ON SERVER streamfilter IS 'filters of repeated keys, in the shared memory of this server';

-- ---- watching DDL -------------------------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_check_ddl() RETURNS event_trigger
LANGUAGE C AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_check_ddl() IS 'checks the definitions of filters and of triggers that use them';

CREATE EVENT TRIGGER streamfilter_check_ddl ON ddl_command_end
WHEN TAG IN ('CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'IMPORT FOREIGN SCHEMA', 'ALTER TABLE',
  'ALTER SERVER', 'ALTER TYPE', 'CREATE TRIGGER', 'ALTER TRIGGER', 'CREATE SCHEMA', 'ALTER SCHEMA',
  'REFRESH MATERIALIZED VIEW')
EXECUTE FUNCTION _streamfilter.streamfilter_check_ddl();
COMMENT ON EVENT TRIGGER streamfilter_check_ddl IS 'checks the definitions of filters and of triggers that use them';
