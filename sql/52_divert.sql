
CREATE FUNCTION streamfilter_divert() RETURNS trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_divert()
IS 'BEFORE INSERT FOR EACH ROW trigger: puts rows whose key was (probably) seen before into another table; arguments: filter, table [, column ...]';
