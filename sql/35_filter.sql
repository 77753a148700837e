-- ---- functions on named filters -----------------------------------------------------------------

CREATE FUNCTION streamfilter_seen(filter regclass, VARIADIC key "any") RETURNS boolean
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_seen(regclass, VARIADIC "any")
IS 'true if the key was (probably) seen before; remembers the key';

CREATE FUNCTION streamfilter_test(filter regclass, VARIADIC key "any") RETURNS boolean
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 20 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_test(regclass, VARIADIC "any")
IS 'true if the key was (probably) seen before; remembers nothing';

CREATE FUNCTION streamfilter_value(filter regclass) RETURNS streamfilter
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_value(regclass) IS 'the shared state of a filter as a value';

CREATE FUNCTION streamfilter_merge(filter regclass, value streamfilter) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_merge(regclass, streamfilter) IS 'adds what a value remembers to the shared state of a filter';

CREATE FUNCTION streamfilter_slice(filter regclass, VARIADIC key "any") RETURNS int
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice(regclass, VARIADIC "any") IS 'the slice of a filter that holds the key, 0 to slices - 1';

CREATE FUNCTION streamfilter_export(filter regclass, slice int) RETURNS bytea
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_export(regclass, int) IS 'the state of one slice of a filter, for streamfilter_import';

CREATE FUNCTION streamfilter_import(filter regclass, slice int, state bytea) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_import(regclass, int, bytea)
IS 'adds what streamfilter_export has given of a slice to the same slice of a filter';

CREATE FUNCTION streamfilter_warm(filter regclass, "table" regclass, columns text[] DEFAULT NULL,
  "where" text DEFAULT NULL) RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_warm(regclass, regclass, text[], text)
IS 'remembers the rows of a table in a filter, newest last; returns how many rows it has read';

CREATE PROCEDURE streamfilter_resize(filter regclass, memory text)
LANGUAGE C AS 'MODULE_PATHNAME';
COMMENT ON PROCEDURE streamfilter_resize(regclass, text)
IS 'gives a filter more or less memory while rows come; not in a transaction block';
