-- ---- metrics ------------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_counters(OUT counts_of text, OUT name text, OUT metric text, OUT unit text, OUT help text) RETURNS SETOF record
LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 20 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_counters()
IS 'all counters of filters, of triggers, and of slices on other servers, with their units';

-- A row a value, in the manner of Prometheus: names end in their unit, those of counters in _total.
-- Names and labels stay as they are from version to version; rows are added.
CREATE VIEW streamfilter_metrics AS
WITH streamfilter_relation AS (
  SELECT c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
), streamfilter_filter AS (
  SELECT s.*, pg_catalog.jsonb_build_object('filter', r.name, 'kind', s.kind) AS labels
  FROM streamfilter_stats AS s JOIN streamfilter_relation AS r ON r.oid OPERATOR(pg_catalog.=) s.filter::pg_catalog.oid
), streamfilter_slice AS (
  SELECT s.*, pg_catalog.jsonb_build_object('filter', r.name, 'slice', s.slice::pg_catalog.text, 'server', s.server) AS labels
  FROM streamfilter_slices AS s JOIN streamfilter_relation AS r ON r.oid OPERATOR(pg_catalog.=) s.filter::pg_catalog.oid
  WHERE s.error IS NULL
), streamfilter_trigger AS (
  SELECT t.*, pg_catalog.jsonb_build_object('table', r.name, 'trigger', t.trigger, 'kind', t.kind, 'filter', f.name) AS labels
  FROM streamfilter_triggers AS t JOIN streamfilter_relation AS r ON r.oid OPERATOR(pg_catalog.=) t."table"::pg_catalog.oid
  LEFT JOIN streamfilter_relation AS f ON f.oid OPERATOR(pg_catalog.=) t.filter::pg_catalog.oid
), streamfilter_counted AS (
  SELECT 'filter' AS counts_of, f.labels, pg_catalog.to_jsonb(f) AS counts FROM streamfilter_filter AS f
  UNION ALL
  SELECT 'trigger', t.labels, pg_catalog.to_jsonb(t) FROM streamfilter_trigger AS t
  UNION ALL
  SELECT 'slice', s.labels, pg_catalog.to_jsonb(s) FROM streamfilter_slice AS s
)
SELECT streamfilter_metric.name, f.labels, streamfilter_metric.value, streamfilter_metric.unit, streamfilter_metric.help
FROM streamfilter_filter AS f CROSS JOIN LATERAL (VALUES
  ('streamfilter_readable', CASE WHEN f.error IS NULL THEN 1 ELSE 0 END::pg_catalog.float8, 'boolean', 'the definition of the filter can be read'),
  ('streamfilter_loaded', CASE WHEN pg_catalog.starts_with(f.state, 'loaded') OR f.state OPERATOR(pg_catalog.=) 'clock went back' THEN 1 ELSE 0 END::pg_catalog.float8, 'boolean', 'its state is in shared memory, and nothing saved was set aside'),
  ('streamfilter_set_aside', CASE WHEN f.error IS NOT NULL THEN NULL WHEN pg_catalog.starts_with(f.state, 'set aside') THEN 1 ELSE 0 END::pg_catalog.float8, 'boolean', 'what is saved does not fit the definition and is not used'),
  ('streamfilter_clock_went_back', CASE WHEN f.error IS NULL THEN CASE WHEN f.state OPERATOR(pg_catalog.=) 'clock went back' THEN 1 ELSE 0 END END::pg_catalog.float8, 'boolean', 'the server''s clock is behind what the filter knows'),
  ('streamfilter_enforcing', CASE WHEN f.mode OPERATOR(pg_catalog.=) 'enforce' THEN 1 WHEN f.mode IS NOT NULL THEN 0 END::pg_catalog.float8, 'boolean', 'its mode is enforce'),
  ('streamfilter_memory_bytes', f.memory::pg_catalog.float8, 'bytes', 'shared memory of the filter'),
  ('streamfilter_lost_rows', f.lost_estimate, 'rows', 'estimate of new rows that were taken for repeats'),
  ('streamfilter_in_flight', f.in_flight::pg_catalog.float8, 'keys', 'keys of unfinished transactions'),
  ('streamfilter_fill_ratio', f.fill, 'ratio', 'share of its cells in use'),
  ('streamfilter_fpr_now_ratio', f.fpr_now, 'ratio', 'estimated false-positive rate now'),
  ('streamfilter_overfull', f.overfull::pg_catalog.int4::pg_catalog.float8, 'boolean', 'it holds more than its false-positive rate allows'),
  ('streamfilter_fpr_bound_ratio', f.fpr_bound, 'ratio', 'false-positive rate at most, by its parameters and what it holds'),
  ('streamfilter_fpr_asked_ratio', (f.params OPERATOR(pg_catalog.->>) 'fpr')::pg_catalog.float8, 'ratio', 'false-positive rate that was asked for'),
  ('streamfilter_distinct_keys', f.distinct_estimate::pg_catalog.float8, 'keys', 'estimate of the distinct keys seen'),
  ('streamfilter_window_keys', f.window_keys::pg_catalog.float8, 'keys', 'keys after which one is still remembered with 99 %'),
  ('streamfilter_asked_keys', (f.params OPERATOR(pg_catalog.->>) 'keys')::pg_catalog.float8, 'keys', 'keys that were asked for'),
  ('streamfilter_created_seconds', pg_catalog.date_part('epoch', f.created), 'seconds', 'when its state was made, since 1970'),
  ('streamfilter_last_reset_seconds', pg_catalog.date_part('epoch', f.last_reset), 'seconds', 'when it was emptied last, since 1970'),
  ('streamfilter_last_saved_seconds', pg_catalog.date_part('epoch', f.last_saved), 'seconds', 'when its image was saved last, since 1970'),
  ('streamfilter_restored_seconds', pg_catalog.date_part('epoch', f.restored), 'seconds', 'when it was read back last, since 1970')
) AS streamfilter_metric (name, value, unit, help)
WHERE streamfilter_metric.value IS NOT NULL
UNION ALL
SELECT c.metric, s.labels, (s.counts OPERATOR(pg_catalog.->>) c.name)::pg_catalog.float8, c.unit, c.help
FROM streamfilter_counted AS s JOIN streamfilter_counters() AS c ON c.counts_of OPERATOR(pg_catalog.=) s.counts_of
WHERE s.counts OPERATOR(pg_catalog.->>) c.name IS NOT NULL
UNION ALL
SELECT 'streamfilter_slice_lost', s.labels, CASE WHEN s.lost THEN 1 ELSE 0 END::pg_catalog.float8, 'boolean', 'the server of the slice does not answer'
FROM streamfilter_slice AS s WHERE s.lost IS NOT NULL
UNION ALL
SELECT streamfilter_metric.name, '{}'::pg_catalog.jsonb, streamfilter_metric.value, streamfilter_metric.unit, streamfilter_metric.help
FROM streamfilter_memory() AS s CROSS JOIN LATERAL (VALUES
  ('streamfilter_shared_memory_bytes', s.total::pg_catalog.float8, 'bytes', 'shared memory for filters, of all databases'),
  ('streamfilter_shared_memory_free_bytes', s.free::pg_catalog.float8, 'bytes', 'of these, free'),
  ('streamfilter_shared_memory_largest_free_bytes', s.largest_free::pg_catalog.float8, 'bytes', 'of these, in one piece'),
  ('streamfilter_dynamic_memory_bytes', s.dynamic::pg_catalog.float8, 'bytes', 'dynamic memory that filters have taken'),
  ('streamfilter_slots', s.slots::pg_catalog.float8, 'filters', 'filters that there is room for: streamfilter.max_filters'),
  ('streamfilter_slots_in_use', s.slots_in_use::pg_catalog.float8, 'filters', 'filters that have state in shared memory, of all databases'),
  ('streamfilter_log_bytes', pg_catalog.pg_table_size('_streamfilter.streamfilter_log'::pg_catalog.regclass)::pg_catalog.float8, 'bytes', 'log of this database: what was added since filters were saved'),
  ('streamfilter_image_bytes', pg_catalog.pg_table_size('_streamfilter.streamfilter_image'::pg_catalog.regclass)::pg_catalog.float8, 'bytes', 'saved images of this database')
) AS streamfilter_metric (name, value, unit, help)
WHERE streamfilter_metric.value IS NOT NULL
UNION ALL
SELECT streamfilter_metric.name, pg_catalog.jsonb_build_object('pid', p.pid::pg_catalog.text, 'command', p.command, 'filter', r.name, 'phase', p.phase, 'unit', p.unit),
  streamfilter_metric.value, p.unit, streamfilter_metric.help
FROM streamfilter_progress AS p LEFT JOIN streamfilter_relation AS r ON r.oid OPERATOR(pg_catalog.=) p.filter::pg_catalog.oid CROSS JOIN LATERAL (VALUES
  ('streamfilter_progress_done', p.done::pg_catalog.float8, 'how far long work has come'),
  ('streamfilter_progress_total', p.total::pg_catalog.float8, 'how far it has to come, as far as is known')
) AS streamfilter_metric (name, value, help)
WHERE streamfilter_metric.value IS NOT NULL;
COMMENT ON VIEW streamfilter_metrics IS 'the statistics of this extension as metrics: a row a value, with its unit';
COMMENT ON COLUMN streamfilter_metrics.name IS 'name of the metric';
COMMENT ON COLUMN streamfilter_metrics.labels IS 'labels of the value, as JSON';
COMMENT ON COLUMN streamfilter_metrics.value IS 'its value';
COMMENT ON COLUMN streamfilter_metrics.unit IS 'unit of the value';
COMMENT ON COLUMN streamfilter_metrics.help IS 'meaning of the metric';

GRANT SELECT ON streamfilter_metrics TO PUBLIC;
