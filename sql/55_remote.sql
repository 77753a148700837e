
-- ---- slices of filters on other servers ------------------------------------------------------------
-- Called by the servers whose filters have slices here, with the hashes of keys.

CREATE FUNCTION streamfilter_hashes_define(schema_name text, table_name text, wanted text,
  conflict text, persistence text, producer text, OUT definition text, OUT made boolean)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_define(text, text, text, text, text, text)
IS 'makes the relation that holds slices of a filter on another server, unless it is there';

CREATE FUNCTION streamfilter_hashes_test(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';

CREATE FUNCTION streamfilter_hashes_seen(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION streamfilter_hashes_reserve(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION streamfilter_hashes_put(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION streamfilter_hashes_erase(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';

