
-- ---- what was diverted wrongly -------------------------------------------------------------------------

CREATE FUNCTION streamfilter_settle(diverted regclass, target regclass, columns text[] DEFAULT NULL,
  since timestamptz DEFAULT NULL, keep boolean DEFAULT false, duplicates text DEFAULT 'ignore',
  most bigint DEFAULT NULL, OUT restored bigint, OUT confirmed bigint, OUT waiting bigint, OUT duplicates bigint)
RETURNS record
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_settle(regclass, regclass, text[], timestamptz, boolean, text, bigint)
IS 'moves diverted rows whose key is not in the table back into it, and deletes the others; returns the number of each';
