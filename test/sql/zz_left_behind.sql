-- A test leaves nothing that another one could meet, for they may run in any order. (Roles belong to the server.)
SELECT DISTINCT pg_catalog.pg_describe_object(s.classid, s.objid, 0) AS left_behind
FROM (SELECT 'pg_class'::regclass AS classid, oid AS objid FROM pg_class WHERE relkind IN ('r', 'v', 'm', 'f', 'p', 'S')
      UNION ALL SELECT 'pg_proc'::regclass, oid FROM pg_proc
      UNION ALL SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typrelid = 0 AND typelem = 0
      UNION ALL SELECT 'pg_namespace'::regclass, oid FROM pg_namespace WHERE nspname NOT LIKE 'pg\_temp%' AND nspname NOT LIKE 'pg\_toast\_temp%'
      UNION ALL SELECT 'pg_foreign_server'::regclass, oid FROM pg_foreign_server
      UNION ALL SELECT 'pg_extension'::regclass, oid FROM pg_extension WHERE extname NOT IN ('plpgsql', 'streamfilter')) AS s
WHERE s.objid >= 16384
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = s.classid AND d.objid = s.objid AND d.deptype IN ('e', 'i'))
ORDER BY 1;
