-- ---- filters as relations --------------------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_fdw_handler() RETURNS fdw_handler
LANGUAGE C STRICT
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_fdw_handler()
IS 'handler of the foreign-data wrapper streamfilter';

CREATE FUNCTION _streamfilter.streamfilter_fdw_validator(options text[], catalog oid) RETURNS void
LANGUAGE C STRICT
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_fdw_validator(text[], oid)
IS 'checks the options of filters, their columns and their servers';

CREATE FOREIGN DATA WRAPPER streamfilter
HANDLER _streamfilter.streamfilter_fdw_handler VALIDATOR _streamfilter.streamfilter_fdw_validator;
COMMENT ON FOREIGN DATA WRAPPER streamfilter
IS 'filters of repeated keys, in shared memory';

-- Who creates filters needs USAGE on it, which PUBLIC does not have.
CREATE SERVER streamfilter FOREIGN DATA WRAPPER streamfilter;
COMMENT ON SERVER streamfilter
IS 'filters of repeated keys, in the shared memory of this server';
