-- ---- watching DDL ----------------------------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_check_ddl() RETURNS event_trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_check_ddl()
IS 'checks the definitions of filters and of triggers that use them';

