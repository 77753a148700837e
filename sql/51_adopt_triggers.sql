CREATE FUNCTION streamfilter_adopt_triggers() RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION streamfilter_adopt_triggers() FROM PUBLIC;
COMMENT ON FUNCTION streamfilter_adopt_triggers()
IS 'binds triggers that are not bound yet, as after pg_upgrade, to the filters that they name, and writes the names of all; the number of those bound';
