-- ---- the type streamfilter: a filter as a value -------------------------------------------------

CREATE TYPE streamfilter;

CREATE FUNCTION streamfilter_in(cstring) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_in(cstring) IS 'reads the text form';

CREATE FUNCTION streamfilter_out(streamfilter) RETURNS cstring
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_out(streamfilter) IS 'writes the text form';

CREATE FUNCTION streamfilter_recv(internal) RETURNS streamfilter
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_recv(internal) IS 'reads the binary form';

CREATE FUNCTION streamfilter_send(streamfilter) RETURNS bytea
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_send(streamfilter) IS 'writes the binary form';

CREATE TYPE streamfilter (
  INPUT = streamfilter_in,
  OUTPUT = streamfilter_out,
  RECEIVE = streamfilter_recv,
  SEND = streamfilter_send,
  INTERNALLENGTH = VARIABLE,
  ALIGNMENT = double,
  STORAGE = external
);
COMMENT ON TYPE streamfilter IS 'an approximate set of keys: kind(option=value, ...), for example sbf(memory=64kB, fpr=0.01)';

-- Keys are "any", because anyelement refuses untyped literals. Hashing depends on nothing but the key, in the way of the hash
-- functions of the keys' types: immutable.

CREATE FUNCTION streamfilter_add(filter streamfilter, key "any") RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_add(streamfilter, "any")
IS 'a copy of the filter that remembers the key; ROW(...) for several columns';

CREATE FUNCTION streamfilter_contains(filter streamfilter, key "any") RETURNS boolean
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_contains(streamfilter, "any") IS 'true if the filter (probably) remembers the key';

CREATE FUNCTION streamfilter_union(streamfilter, streamfilter) RETURNS streamfilter
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_union(streamfilter, streamfilter)
IS 'a filter that remembers what either remembers; NULL adds nothing; kind, parameters and seed must be equal';

CREATE FUNCTION streamfilter_info(filter streamfilter) RETURNS jsonb
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME';
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
COMMENT ON OPERATOR || (streamfilter, streamfilter) IS 'a filter that remembers what either remembers';

-- ---- how many keys a filter has seen, and two have in common ------------------------------------

CREATE FUNCTION streamfilter_distinct_count(filter streamfilter) RETURNS bigint
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_count(streamfilter) IS 'estimated number of distinct keys that the filter has seen';

CREATE OPERATOR # (
  RIGHTARG = streamfilter,
  FUNCTION = streamfilter_distinct_count
);
COMMENT ON OPERATOR # (NONE, streamfilter) IS 'how many distinct keys the filter has seen, estimated';

CREATE FUNCTION streamfilter_distinct_error(filter streamfilter) RETURNS double precision
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distinct_error(streamfilter)
IS 'the relative standard error of the count for many keys; NULL where none is stated';

CREATE FUNCTION streamfilter_overlap(a streamfilter, b streamfilter, OUT in_first bigint, OUT in_both bigint,
  OUT in_second bigint, OUT error double precision)
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_overlap(streamfilter, streamfilter)
IS 'estimated numbers of distinct keys seen by the first filter, by both and by the second, and the error of the number in both, in keys, which 68 % are within';

-- ---- parts of a stream --------------------------------------------------------------------------

CREATE FUNCTION streamfilter_slice_of(key "any", n int) RETURNS int
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 2 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_of("any", int)
IS 'the part 0..n-1 of a stream that the key belongs to, the same on every server; ROW(...) for several columns';
