
-- ---- slices: how many servers were retired, as their producers know ------------------------------------
-- Called by servers that move slices from here or to here.

CREATE FUNCTION streamfilter_slice_fence(filter regclass, slice int, retirements text) RETURNS bytea
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_fence(regclass, int, text)
IS 'keeps others from the relation that holds a slice until the transaction ends; returns its state';

CREATE FUNCTION streamfilter_slice_mark(filter regclass, slice int, retirements text) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_mark(regclass, int, text)
IS 'from now on, only sessions that know of as many retired servers may move the slice';
