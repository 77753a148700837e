
-- ---- triggers ------------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_discard() RETURNS trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_discard()
IS 'BEFORE INSERT FOR EACH ROW trigger: discards rows whose key was (probably) seen before; arguments: filter [, column ...]';

CREATE FUNCTION streamfilter_mark() RETURNS trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_mark()
IS 'BEFORE INSERT FOR EACH ROW trigger: sets a boolean column to whether the key was (probably) seen before; arguments: filter, boolean column [, column ...]';
