-- ---- nodes of Citus -----------------------------------------------------------------------------

CREATE FUNCTION streamfilter_definition(filter regclass) RETURNS text
LANGUAGE C STRICT STABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_definition(regclass)
IS 'the commands that make such a filter elsewhere, with its owner and rights';

CREATE FUNCTION streamfilter_distribute(filter regclass) RETURNS integer
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distribute(regclass)
IS 'makes the filter on all workers of Citus that lack it; how many have it now';

CREATE FUNCTION streamfilter_for_nodes(filter regclass, former text, life text) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_for_nodes(regclass, text, text)
IS 'called by statements about a filter on other nodes of Citus: its life before and from now on; NULLs keep its writers out until the transaction ends';
