-- ---- the type streamfilter: a filter as a value -----------------------------------------------

CREATE TYPE streamfilter;

CREATE FUNCTION streamfilter_in(cstring) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION streamfilter_out(streamfilter) RETURNS cstring
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION streamfilter_recv(internal) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE FUNCTION streamfilter_send(streamfilter) RETURNS bytea
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME';

CREATE TYPE streamfilter (
  INPUT = streamfilter_in,
  OUTPUT = streamfilter_out,
  RECEIVE = streamfilter_recv,
  SEND = streamfilter_send,
  INTERNALLENGTH = VARIABLE,
  ALIGNMENT = double,
  STORAGE = external
);
COMMENT ON TYPE streamfilter
IS 'an approximate set of keys: kind(option=value, ...), for example sbf(memory=64kB, fpr=0.01)';

-- Keys are "any", because anyelement refuses untyped literals. Hashing depends on nothing but the
-- key, in the way of the hash functions of the keys' types: immutable.

CREATE FUNCTION streamfilter_add(filter streamfilter, key "any") RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_add(streamfilter, "any")
IS 'a copy of the filter that remembers the key; ROW(...) for several columns';

CREATE FUNCTION streamfilter_contains(filter streamfilter, key "any") RETURNS boolean
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME';

CREATE FUNCTION streamfilter_union(streamfilter, streamfilter) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_union(streamfilter, streamfilter)
IS 'a filter that remembers what either remembers; kind, parameters and seed must be equal';

CREATE FUNCTION streamfilter_info(filter streamfilter) RETURNS jsonb
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_info(streamfilter)
IS 'kind, parameters, memory, fill, estimated false-positive rate and number of distinct keys';

CREATE OPERATOR @> (
  LEFTARG = streamfilter, RIGHTARG = "any",
  FUNCTION = streamfilter_contains
);
COMMENT ON OPERATOR @> (streamfilter, "any") IS 'does the filter (probably) remember the key?';

CREATE OPERATOR || (
  LEFTARG = streamfilter, RIGHTARG = streamfilter,
  FUNCTION = streamfilter_union
);
COMMENT ON OPERATOR || (streamfilter, streamfilter)
IS 'a filter that remembers what either remembers';

