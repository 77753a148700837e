-- ---- the state of logged filters ----------------------------------------------------------------
-- Written and read by the library alone. They are materialized views, not tables, because these are heaps that neither SQL nor a
-- publication FOR ALL TABLES touches.

CREATE MATERIALIZED VIEW _streamfilter.streamfilter_log USING heap AS
SELECT NULL::pg_catalog.oid AS filter, NULL::pg_catalog."char" AS change,
       NULL::pg_catalog.int8 AS number, NULL::pg_catalog.int8 AS identity,
       NULL::pg_catalog.bytea AS data
WHERE false;
ALTER MATERIALIZED VIEW _streamfilter.streamfilter_log ALTER COLUMN data SET STORAGE PLAIN;
COMMENT ON MATERIALIZED VIEW _streamfilter.streamfilter_log
IS 'what committed transactions have added to filters since their last image; internal';

CREATE MATERIALIZED VIEW _streamfilter.streamfilter_image USING heap AS
SELECT NULL::pg_catalog.oid AS filter, NULL::pg_catalog.int4 AS chunks,
       NULL::pg_catalog.int4 AS number, NULL::pg_catalog.int8 AS sum,
       NULL::pg_catalog.int8 AS image, NULL::pg_catalog.timestamptz AS saved,
       NULL::pg_catalog.bytea AS data
WHERE false;
ALTER MATERIALIZED VIEW _streamfilter.streamfilter_image ALTER COLUMN data SET STORAGE PLAIN;
COMMENT ON MATERIALIZED VIEW _streamfilter.streamfilter_image IS 'images of filters, in chunks; internal';

-- The first use of a filter reads its own image only, and of that what a row needs first. The log has none: every commit would
-- pay for it.
CREATE INDEX streamfilter_image_filter ON _streamfilter.streamfilter_image
  USING btree (filter pg_catalog.oid_ops, number pg_catalog.int4_ops);

CREATE FUNCTION streamfilter_save(filter regclass) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_save(regclass) IS 'saves the state of a logged filter now';

CREATE FUNCTION streamfilter_save() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'streamfilter_save_all';
COMMENT ON FUNCTION streamfilter_save() IS 'saves the state of all logged filters of the current user that is on this server now';

CREATE FUNCTION streamfilter_forget_saved(filter regclass) RETURNS bigint
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_forget_saved(regclass) IS 'deletes the saved state of a filter; returns its bytes';

CREATE FUNCTION streamfilter_forget_saved() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'streamfilter_forget_all_saved';
COMMENT ON FUNCTION streamfilter_forget_saved()
IS 'deletes the saved state of all filters of the database, even where it cannot be read; for superusers';
