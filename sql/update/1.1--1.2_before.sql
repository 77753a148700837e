\echo Use "ALTER EXTENSION streamfilter UPDATE" to load this file. \quit

-- Objects of users that select from what is made anew would stop DROP, in an update that knows no CASCADE: they are named
-- before anything has changed.
DO $$
DECLARE
  dependents text;
BEGIN
  SELECT pg_catalog.string_agg(DISTINCT pg_catalog.pg_describe_object(object.classid, object.objid, 0), ', ')
  INTO dependents
  FROM pg_catalog.pg_depend d
    LEFT JOIN pg_catalog.pg_rewrite r ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND r.oid = d.objid
    CROSS JOIN LATERAL (SELECT CASE WHEN r.oid IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::pg_catalog.regclass END,
      coalesce(r.ev_class, d.objid)) AS object (classid, objid)
    CROSS JOIN pg_catalog.pg_class v
  WHERE v.oid IN ('streamfilter_metrics'::pg_catalog.regclass, 'streamfilter_stats'::pg_catalog.regclass)
    AND d.deptype = 'n'
    AND (d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = v.oid
      OR d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.refobjid = v.reltype)
    AND object.objid NOT IN ('streamfilter_metrics'::pg_catalog.regclass, 'streamfilter_stats'::pg_catalog.regclass);
  IF dependents IS NOT NULL THEN
    RAISE EXCEPTION 'cannot update extension streamfilter while other objects use its views'
      USING ERRCODE = 'dependent_objects_still_exist',
        DETAIL = pg_catalog.format('Views streamfilter_stats and streamfilter_metrics are made anew. They are used by: %s.', dependents),
        HINT = 'Keep the definitions (SELECT pg_get_viewdef(''...'');), drop these objects, type ALTER EXTENSION streamfilter UPDATE; and create them again.';
  END IF;
END $$;

-- What 1.2 makes anew is dropped first; the parts that follow are those of the full script.

DROP VIEW streamfilter_metrics;
DROP VIEW streamfilter_stats;
DROP FUNCTION streamfilter_stat(oid);
DROP INDEX IF EXISTS streamfilter_image_filter;
