-- ---- the state of logged filters -------------------------------------------------------------------
-- Written and read by the library alone. They are materialized views, not tables, because these
-- are heaps that neither SQL nor a publication FOR ALL TABLES touches.

CREATE MATERIALIZED VIEW streamfilter_log USING heap AS
SELECT NULL::oid AS filter, NULL::"char" AS change, NULL::bigint AS number, NULL::bigint AS identity,
       NULL::bytea AS data
WHERE false;
ALTER MATERIALIZED VIEW streamfilter_log ALTER COLUMN data SET STORAGE PLAIN;
COMMENT ON MATERIALIZED VIEW streamfilter_log
IS 'what committed transactions have added to filters since their last image; internal';

CREATE MATERIALIZED VIEW streamfilter_image USING heap AS
SELECT NULL::oid AS filter, NULL::int AS chunks, NULL::int AS number, NULL::bigint AS sum,
       NULL::bigint AS image, NULL::timestamptz AS saved, NULL::bytea AS data
WHERE false;
ALTER MATERIALIZED VIEW streamfilter_image ALTER COLUMN data SET STORAGE PLAIN;
COMMENT ON MATERIALIZED VIEW streamfilter_image
IS 'images of filters, in chunks; internal';
