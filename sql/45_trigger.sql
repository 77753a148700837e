-- ---- triggers -----------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_discard() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_discard()
IS 'BEFORE INSERT FOR EACH ROW trigger: discards rows whose key was (probably) seen before; arguments: filter [, column ...]';

CREATE FUNCTION streamfilter_mark() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_mark()
IS 'BEFORE INSERT FOR EACH ROW trigger: sets a boolean column to whether the key was (probably) seen before; arguments: filter, boolean column [, column ...]';

CREATE FUNCTION streamfilter_divert() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_divert()
IS 'BEFORE INSERT FOR EACH ROW trigger: puts rows whose key was (probably) seen before into another table; arguments: filter, table [, column ...]';

CREATE FUNCTION streamfilter_forget() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_forget()
IS 'AFTER DELETE OR UPDATE FOR EACH ROW, or AFTER TRUNCATE trigger: the filter forgets keys that the table no longer has; arguments: filter [, column ...]';

CREATE FUNCTION streamfilter_adopt_triggers() RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION streamfilter_adopt_triggers() FROM PUBLIC;
COMMENT ON FUNCTION streamfilter_adopt_triggers()
IS 'binds triggers that are not bound yet, as after pg_upgrade, to the filters that they name, and writes the names of all; the number of those bound';

-- ---- what was diverted wrongly ------------------------------------------------------------------

CREATE FUNCTION streamfilter_settle(diverted regclass, target regclass, columns text[] DEFAULT NULL,
  since timestamptz DEFAULT NULL, keep boolean DEFAULT false, duplicates text DEFAULT 'ignore',
  most bigint DEFAULT NULL, OUT restored bigint, OUT confirmed bigint, OUT waiting bigint, OUT refused bigint,
  OUT duplicates bigint)
RETURNS record
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_settle(regclass, regclass, text[], timestamptz, boolean, text, bigint)
IS 'moves diverted rows whose key is not in the table back into it, and deletes the others but those that it refuses; returns the number of each';
