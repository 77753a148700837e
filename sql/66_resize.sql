
-- ---- another size while rows come -----------------------------------------------------------------------

CREATE PROCEDURE streamfilter_resize(filter regclass, memory text)
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON PROCEDURE streamfilter_resize(regclass, text)
IS 'gives a filter more or less memory while rows come; not in a transaction block';
