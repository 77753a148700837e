
-- States of aggregates are as large as what they hold, so that the planner may hash groups.
CREATE OR REPLACE AGGREGATE streamfilter_agg(key "any", prototype streamfilter) (
  SFUNC = _streamfilter.streamfilter_agg_transition,
  STYPE = internal,
  SSPACE = 8192,
  FINALFUNC = _streamfilter.streamfilter_agg_final,
  COMBINEFUNC = _streamfilter.streamfilter_agg_combine,
  SERIALFUNC = _streamfilter.streamfilter_agg_serialize,
  DESERIALFUNC = _streamfilter.streamfilter_agg_deserialize,
  PARALLEL = SAFE
);

CREATE OR REPLACE AGGREGATE approx_count_distinct(key "any") (
  SFUNC = _streamfilter.approx_count_distinct_transition,
  STYPE = internal,
  SSPACE = 128,
  FINALFUNC = _streamfilter.approx_count_distinct_final,
  COMBINEFUNC = _streamfilter.streamfilter_agg_combine,
  SERIALFUNC = _streamfilter.streamfilter_agg_serialize,
  DESERIALFUNC = _streamfilter.streamfilter_agg_deserialize,
  PARALLEL = SAFE
);

CREATE OR REPLACE AGGREGATE approx_count_distinct(key "any", prototype streamfilter) (
  SFUNC = _streamfilter.approx_count_distinct_transition,
  STYPE = internal,
  SSPACE = 128,
  FINALFUNC = _streamfilter.approx_count_distinct_final,
  COMBINEFUNC = _streamfilter.streamfilter_agg_combine,
  SERIALFUNC = _streamfilter.streamfilter_agg_serialize,
  DESERIALFUNC = _streamfilter.streamfilter_agg_deserialize,
  PARALLEL = SAFE
);

-- Random bits do not compress: PostgreSQL need not try at every write. The columns that are there are told, too; their rows
-- stay as they are.
ALTER TYPE streamfilter SET (STORAGE = external);
DO $$
DECLARE
  relation regclass;
  kind text;
  "column" name;
BEGIN
  FOR relation, kind, "column" IN
    SELECT c.oid, CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, attname
    FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_class c ON c.oid = attrelid
    WHERE atttypid = (SELECT t.oid FROM pg_catalog.pg_type t
                      JOIN pg_catalog.pg_depend ON classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND objid = t.oid
                      JOIN pg_catalog.pg_extension e ON e.oid = refobjid
                      WHERE deptype = 'e' AND extname = 'streamfilter' AND typname = 'streamfilter')
      AND attstorage = 'x' AND NOT attisdropped AND relkind IN ('r', 'p', 'm') AND relpersistence <> 't'
      AND pg_catalog.pg_has_role(relowner, 'USAGE')
  LOOP
    EXECUTE pg_catalog.format('ALTER %s %s ALTER COLUMN %I SET STORAGE external', kind, relation, "column");
  END LOOP;
END $$;
