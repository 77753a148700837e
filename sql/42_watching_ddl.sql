-- ---- watching DDL ----------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_check_ddl() RETURNS event_trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_check_ddl()
IS 'checks the definitions of filters and of triggers that use them';

