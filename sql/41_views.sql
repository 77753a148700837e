CREATE FUNCTION streamfilter_forget_saved(filter regclass) RETURNS bigint
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION streamfilter_forget_saved() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'streamfilter_forget_all_saved';

CREATE FUNCTION _streamfilter.streamfilter_tune(filter oid)
RETURNS TABLE (factor double precision, memory bigint, found bigint,
  fnr double precision, fnr_low double precision, fnr_high double precision, error text)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 5
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_tune(oid)
IS 'the rows of the view streamfilter_tuning for one filter';

CREATE VIEW streamfilter_tuning AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, tuned.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL _streamfilter.streamfilter_tune(ft.ftrelid) AS tuned;

CREATE FUNCTION _streamfilter.streamfilter_tree_node(filter oid,
  OUT parent regclass, OUT level int, OUT accesses bigint, OUT hits bigint, OUT error text)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_tree_node(oid)
IS 'one row of the view streamfilter_tree; NULLs for a filter that is in no tree';

CREATE VIEW streamfilter_tree AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, node.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL _streamfilter.streamfilter_tree_node(ft.ftrelid) AS node
WHERE node.level IS NOT NULL OR node.error IS NOT NULL;

