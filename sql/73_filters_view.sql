
-- ---- what one looks at first -------------------------------------------------------------------------

CREATE VIEW streamfilter_filters AS
SELECT s.filter, s.kind, s.mode, pg_catalog.pg_size_pretty(s.memory) AS memory,
  pg_catalog.round((s.fill OPERATOR(pg_catalog.*) '100'::pg_catalog.float8)::pg_catalog.numeric, 1) AS "full",
  s.tested, s.discarded OPERATOR(pg_catalog.+) s.diverted OPERATOR(pg_catalog.+) s.would_discard AS repeats,
  pg_catalog.ltrim(pg_catalog.to_char(s.fpr_now, '9.9EEEE')) AS fpr_now,
  pg_catalog."left"(coalesce(s.error, s.state), 24) AS state
FROM streamfilter_stats AS s;
COMMENT ON VIEW streamfilter_filters
IS 'the filters of this database in short; streamfilter_stats has all that is known of them';

GRANT SELECT ON streamfilter_stats, streamfilter_tuning, streamfilter_tree, streamfilter_slices,
  streamfilter_triggers, streamfilter_progress, streamfilter_metrics, streamfilter_filters TO PUBLIC;
