-- ---- the state of logged filters -------------------------------------------------------------------
-- Written and read by the library alone. They are materialized views, not tables, because these
-- are heaps that neither SQL nor a publication FOR ALL TABLES touches.

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
COMMENT ON MATERIALIZED VIEW _streamfilter.streamfilter_image
IS 'images of filters, in chunks; internal';
