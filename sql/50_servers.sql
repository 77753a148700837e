-- ---- slices of filters on other servers ---------------------------------------------------------
-- Called by the servers whose filters have slices here, with the hashes of keys.

CREATE FUNCTION streamfilter_hashes_define(schema_name text, table_name text, wanted text,
  conflict text, persistence text, producer text, OUT definition text, OUT made boolean,
  OUT life bigint, OUT number bigint)
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_define(text, text, text, text, text, text)
IS 'makes the relation that holds slices of a filter on another server, unless it is there';

CREATE FUNCTION streamfilter_hashes_test(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_test(regclass, bigint[], bigint[], double precision[])
IS 'for each hash, true if it was seen before; remembers nothing';

CREATE FUNCTION streamfilter_hashes_seen(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_seen(regclass, bigint[], bigint[], double precision[])
IS 'for each hash, true if it was seen before; remembers the hashes';

CREATE FUNCTION streamfilter_hashes_reserve(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_reserve(regclass, bigint[], bigint[], double precision[])
IS 'streamfilter_hashes_seen for one of several parts of a key; no other transaction adds the key until this one ends';

CREATE FUNCTION streamfilter_hashes_put(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_put(regclass, bigint[], bigint[], double precision[])
IS 'streamfilter_hashes_seen for the other parts of a key that streamfilter_hashes_reserve has taken';

CREATE FUNCTION streamfilter_hashes_erase(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_erase(regclass, bigint[], bigint[], double precision[])
IS 'for each hash, true if it was there; forgets the hashes';

CREATE FUNCTION streamfilter_hashes_take_back(filter regclass, hashes bigint[],
  times bigint[] DEFAULT NULL, importances double precision[] DEFAULT NULL) RETURNS boolean[]
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_take_back(regclass, bigint[], bigint[], double precision[])
IS 'takes back hashes that the transaction has added; their rows were not stored';

CREATE FUNCTION streamfilter_hashes_alter(filter regclass, conflict text, persistence text, producer text)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_hashes_alter(regclass, text, text, text)
IS 'gives a relation that holds slices of a filter on another server other options; it keeps what it knows';

CREATE FUNCTION streamfilter_disconnect() RETURNS integer
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_disconnect()
IS 'closes connections of this session to other servers that its transaction does not need; returns how many';

-- ---- how many slices ----------------------------------------------------------------------------

CREATE FUNCTION streamfilter_slices_needed(lost int, places int DEFAULT 1,
  max_fpr double precision DEFAULT NULL, fpr double precision DEFAULT '0',
  max_fnr double precision DEFAULT NULL) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slices_needed(int, int, double precision, double precision,
  double precision)
IS 'how many slices keep a rate of false positives, or of false negatives, while some are lost';
