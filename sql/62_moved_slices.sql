
-- ---- slices on the move --------------------------------------------------------------------------

CREATE FUNCTION streamfilter_move_slice(filter regclass, slice int, server text) RETURNS boolean
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_move_slice(regclass, int, text)
IS 'moves a slice to another of the filter''s servers, while it is used; false: it is there already';

CREATE FUNCTION streamfilter_spread_slices(filter regclass) RETURNS int
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_spread_slices(regclass)
IS 'moves slices until all servers of the filter hold equally many; returns how many it has moved';

CREATE FUNCTION streamfilter_slice_places(filter regclass, OUT slice int, OUT server text,
  OUT epoch bigint) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE ROWS 16
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_places(regclass)
IS 'where each slice of a filter on other servers is now, as these say; epoch counts its moves';

-- Called by servers that move slices from here or to here.

CREATE FUNCTION streamfilter_slice_fence(filter regclass, slice int) RETURNS bytea
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_fence(regclass, int)
IS 'keeps others from the relation that holds a slice until the transaction ends; returns its state';

CREATE FUNCTION streamfilter_slice_take(schema_name text, table_name text, slice int, epoch int,
  definition text, conflict text, persistence text, state bytea) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_take(text, text, int, int, text, text, text, bytea)
IS 'makes the relation that holds a slice which comes from another server';

CREATE FUNCTION streamfilter_slice_close(filter regclass, slice int, server int, epoch int,
  producer text) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
