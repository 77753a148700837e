\echo Use "ALTER EXTENSION streamfilter UPDATE" to load this file. \quit

-- What 1.1 has made anew goes first; the parts that follow are those of the full script. Views of yours that use the views
-- below stand in the way: drop them before, and create them again.
DROP FUNCTION streamfilter_save();
DROP VIEW streamfilter_slices, streamfilter_tree, streamfilter_tuning,
  streamfilter_stats;
DROP FUNCTION streamfilter_slice_stats(oid), streamfilter_tree_node(oid),
  streamfilter_tune(oid), streamfilter_stat(oid);
DROP FUNCTION streamfilter_slices_needed(int, int, double precision, double precision, double precision);
DROP EVENT TRIGGER streamfilter_check_ddl;

CREATE FUNCTION streamfilter_forget_saved(filter regclass) RETURNS bigint
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_forget_saved(regclass)
IS 'deletes what is saved of a filter; returns the bytes of it';

CREATE FUNCTION streamfilter_forget_saved() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'streamfilter_forget_all_saved';
COMMENT ON FUNCTION streamfilter_forget_saved()
IS 'deletes what is saved of all filters of the database, also where it cannot be read; for superusers';

CREATE FUNCTION streamfilter_stat(filter oid,
  OUT kind text, OUT memory bigint, OUT params jsonb,
  OUT tested bigint, OUT accepted bigint, OUT discarded bigint,
  OUT rolled_back bigint, OUT in_flight bigint, OUT waits bigint,
  OUT fill double precision, OUT fpr_now double precision, OUT fpr_bound double precision,
  OUT distinct_estimate bigint, OUT window_keys bigint,
  OUT created timestamptz, OUT last_reset timestamptz,
  OUT last_saved timestamptz, OUT restored timestamptz, OUT overflowed bigint,
  OUT unremembered bigint, OUT mode text, OUT would_discard bigint, OUT diverted bigint, OUT ahead bigint,
  OUT lost_estimate double precision, OUT stats_reset timestamptz, OUT dynamic_memory bigint, OUT state text, OUT error text)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_stat(oid)
IS 'one row of the view streamfilter_stats';

-- A filter that cannot be read is a row with its error, here and in the other views.
CREATE VIEW streamfilter_stats AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, stat.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL streamfilter_stat(ft.ftrelid) AS stat
WHERE stat.kind IS NOT NULL OR stat.error IS NOT NULL;
COMMENT ON VIEW streamfilter_stats
IS 'what every filter of this database is, holds and has done';
GRANT SELECT ON streamfilter_stats TO PUBLIC;

CREATE FUNCTION streamfilter_tune(filter oid)
RETURNS TABLE (factor double precision, memory bigint, found bigint,
  fnr double precision, fnr_low double precision, fnr_high double precision, error text)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 5
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_tune(oid)
IS 'the rows of the view streamfilter_tuning for one filter';

CREATE VIEW streamfilter_tuning AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, tuned.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL streamfilter_tune(ft.ftrelid) AS tuned;
COMMENT ON VIEW streamfilter_tuning
IS 'what filters would have missed with less and more memory, by what they have found so far';
GRANT SELECT ON streamfilter_tuning TO PUBLIC;

CREATE FUNCTION streamfilter_tree_node(filter oid,
  OUT parent regclass, OUT level int, OUT accesses bigint, OUT hits bigint, OUT error text)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_tree_node(oid)
IS 'one row of the view streamfilter_tree; NULLs for a filter that is in no tree';

CREATE VIEW streamfilter_tree AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, node.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL streamfilter_tree_node(ft.ftrelid) AS node
WHERE node.level IS NOT NULL OR node.error IS NOT NULL;
COMMENT ON VIEW streamfilter_tree
IS 'the nodes of trees of filters: how often a key has come to each, and how many repeats each has found';
GRANT SELECT ON streamfilter_tree TO PUBLIC;

CREATE EVENT TRIGGER streamfilter_check_ddl ON ddl_command_end
WHEN TAG IN ('CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'IMPORT FOREIGN SCHEMA', 'ALTER TABLE',
  'ALTER SERVER', 'CREATE TRIGGER', 'ALTER TRIGGER', 'CREATE SCHEMA', 'ALTER SCHEMA',
  'REFRESH MATERIALIZED VIEW')
EXECUTE FUNCTION streamfilter_check_ddl();
COMMENT ON EVENT TRIGGER streamfilter_check_ddl
IS 'checks the definitions of filters and of triggers that use them';

-- The first use of a filter reads its own image only. The log has none: every commit would pay for it.
CREATE INDEX streamfilter_image_filter ON streamfilter_image USING btree (filter pg_catalog.oid_ops);

CREATE FUNCTION streamfilter_adopt_triggers() RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
REVOKE EXECUTE ON FUNCTION streamfilter_adopt_triggers() FROM PUBLIC;
COMMENT ON FUNCTION streamfilter_adopt_triggers()
IS 'binds triggers of earlier versions to the filters that they name, and writes the names of all; the number of those bound';


CREATE FUNCTION streamfilter_divert() RETURNS trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_divert()
IS 'BEFORE INSERT FOR EACH ROW trigger: puts rows whose key was (probably) seen before into another table; arguments: filter, table [, column ...]';
CREATE FUNCTION streamfilter_forget() RETURNS trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_forget()
IS 'AFTER DELETE OR UPDATE FOR EACH ROW, or AFTER TRUNCATE trigger: the filter forgets what the table has no more; arguments: filter [, column ...]';

-- ---- a filter from a table ---------------------------------------------------------------------------

CREATE FUNCTION streamfilter_warm(filter regclass, "table" regclass, columns text[] DEFAULT NULL,
  "where" text DEFAULT NULL) RETURNS bigint
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_warm(regclass, regclass, text[], text)
IS 'remembers the rows of a table in a filter, newest last; returns how many rows it has read';

CREATE FUNCTION streamfilter_slice_stats(filter oid, OUT slice int, OUT server text,
  OUT lost boolean, OUT lost_since timestamptz, OUT answered bigint, OUT unanswered bigint,
  OUT messages bigint, OUT bytes_sent bigint, OUT bytes_received bigint, OUT error text) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 16
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_stats(oid)
IS 'the rows of a filter in the view streamfilter_slices';

CREATE VIEW streamfilter_slices AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, slice.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL streamfilter_slice_stats(ft.ftrelid) AS slice;
COMMENT ON VIEW streamfilter_slices
IS 'the slices of filters on other servers: where they are, what they have done, whether they are lost';
GRANT SELECT ON streamfilter_slices TO PUBLIC;

CREATE FUNCTION streamfilter_save() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'streamfilter_save_all';
COMMENT ON FUNCTION streamfilter_save()
IS 'saves the state of all logged filters of the current user that is on this server now';

CREATE FUNCTION streamfilter_slices_needed(lost int, places int DEFAULT 1,
  max_fpr double precision DEFAULT NULL, fpr double precision DEFAULT '0',
  max_fnr double precision DEFAULT NULL) RETURNS bigint
LANGUAGE C IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slices_needed(int, int, double precision, double precision,
  double precision)
IS 'how many slices keep a rate of false positives, or of false negatives, while some are lost';

-- ---- what triggers have done, and counting anew ------------------------------------------------------

CREATE FUNCTION streamfilter_trigger_stat(trigger oid,
  OUT filter regclass, OUT kind text, OUT rows bigint, OUT discarded bigint, OUT diverted bigint,
  OUT would_discard bigint, OUT since timestamptz)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_trigger_stat(oid)
IS 'one row of the view streamfilter_triggers';

CREATE VIEW streamfilter_triggers AS
SELECT t.tgrelid::pg_catalog.regclass AS "table", t.tgname AS trigger, stat.*
FROM pg_catalog.pg_trigger AS t
CROSS JOIN LATERAL streamfilter_trigger_stat(t.oid) AS stat
WHERE stat.kind IS NOT NULL;
COMMENT ON VIEW streamfilter_triggers
IS 'what the triggers of this database have done with the rows of each table';
GRANT SELECT ON streamfilter_triggers TO PUBLIC;

CREATE FUNCTION streamfilter_stats_reset(filter regclass) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_stats_reset(regclass)
IS 'sets the counters of a filter, and of its triggers, to zero';

CREATE FUNCTION streamfilter_stats_reset() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'streamfilter_stats_reset_all';
REVOKE EXECUTE ON FUNCTION streamfilter_stats_reset() FROM PUBLIC;
COMMENT ON FUNCTION streamfilter_stats_reset()
IS 'sets the counters of all filters and triggers of the database to zero';


-- ---- watching ----------------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_show_progress(OUT pid int, OUT command text, OUT filter regclass,
  OUT phase text, OUT done bigint, OUT total bigint, OUT unit text) RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 4
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_show_progress()
IS 'the rows of the view streamfilter_progress';

CREATE VIEW streamfilter_progress AS
SELECT pid, command, filter, phase, done, total, unit FROM streamfilter_show_progress();
COMMENT ON VIEW streamfilter_progress
IS 'how far long work of sessions of this database has come: advice, evaluations, streamfilter_distinct(), warming, restoring, resizing';
GRANT SELECT ON streamfilter_progress TO PUBLIC;

CREATE FUNCTION streamfilter_memory(OUT total bigint, OUT free bigint, OUT largest_free bigint,
  OUT dynamic bigint, OUT slots int, OUT slots_in_use int)
LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_memory()
IS 'the shared memory of filters, in bytes, of all databases; NULLs where the library is not preloaded';

-- A row a value, in the manner of Prometheus: names end in their unit, those of counters in _total.
-- Names and labels stay as they are from version to version; rows are added.
CREATE VIEW streamfilter_metrics AS
WITH streamfilter_relation AS (
  SELECT c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
), streamfilter_filter AS (
  SELECT s.*, pg_catalog.jsonb_build_object('filter', r.name, 'kind', s.kind) AS labels
  FROM streamfilter_stats AS s JOIN streamfilter_relation AS r ON r.oid OPERATOR(pg_catalog.=) s.filter::pg_catalog.oid
)
SELECT streamfilter_metric.name, f.labels, streamfilter_metric.value, streamfilter_metric.unit, streamfilter_metric.help
FROM streamfilter_filter AS f CROSS JOIN LATERAL (VALUES
  ('streamfilter_readable', CASE WHEN f.error IS NULL THEN 1 ELSE 0 END::pg_catalog.float8, 'boolean', 'the definition of the filter can be read'),
  ('streamfilter_loaded', CASE WHEN f.state OPERATOR(pg_catalog.=) 'loaded' THEN 1 ELSE 0 END::pg_catalog.float8, 'boolean', 'its state is in shared memory, and nothing saved was set aside'),
  ('streamfilter_set_aside', CASE WHEN f.error IS NOT NULL THEN NULL WHEN pg_catalog.starts_with(f.state, 'set aside') THEN 1 ELSE 0 END::pg_catalog.float8, 'boolean', 'what is saved does not fit the definition and is not used'),
  ('streamfilter_enforcing', CASE WHEN f.mode OPERATOR(pg_catalog.=) 'enforce' THEN 1 WHEN f.mode IS NOT NULL THEN 0 END::pg_catalog.float8, 'boolean', 'its mode is enforce'),
  ('streamfilter_memory_bytes', f.memory::pg_catalog.float8, 'bytes', 'shared memory of the filter'),
  ('streamfilter_tested_total', f.tested::pg_catalog.float8, 'rows', 'rows and keys it was asked about'),
  ('streamfilter_accepted_total', f.accepted::pg_catalog.float8, 'rows', 'of these, found new'),
  ('streamfilter_discarded_total', f.discarded::pg_catalog.float8, 'rows', 'repeats that were discarded or marked'),
  ('streamfilter_would_discard_total', f.would_discard::pg_catalog.float8, 'rows', 'repeats that passed in mode shadow'),
  ('streamfilter_diverted_total', f.diverted::pg_catalog.float8, 'rows', 'repeats that were diverted to another table'),
  ('streamfilter_lost_rows', f.lost_estimate, 'rows', 'estimate of new rows that were taken for repeats'),
  ('streamfilter_rolled_back_total', f.rolled_back::pg_catalog.float8, 'keys', 'keys of transactions that rolled back'),
  ('streamfilter_in_flight', f.in_flight::pg_catalog.float8, 'keys', 'keys of unfinished transactions'),
  ('streamfilter_waits_total', f.waits::pg_catalog.float8, 'waits', 'waits for another transaction with the same key'),
  ('streamfilter_overflowed_total', f.overflowed::pg_catalog.float8, 'transactions', 'transactions with more keys in flight than there was room for'),
  ('streamfilter_unremembered_total', f.unremembered::pg_catalog.float8, 'keys', 'keys that other servers have not taken'),
  ('streamfilter_ahead_total', f.ahead::pg_catalog.float8, 'rows', 'events whose time was too far ahead'),
  ('streamfilter_fill_ratio', f.fill, 'ratio', 'share of its cells in use'),
  ('streamfilter_fpr_now_ratio', f.fpr_now, 'ratio', 'estimated false-positive rate now'),
  ('streamfilter_fpr_bound_ratio', f.fpr_bound, 'ratio', 'false-positive rate that its parameters imply at most'),
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
SELECT streamfilter_metric.name, pg_catalog.jsonb_build_object('table', r.name, 'trigger', t.trigger, 'kind', t.kind, 'filter', f.name),
  streamfilter_metric.value, streamfilter_metric.unit, streamfilter_metric.help
FROM streamfilter_triggers AS t JOIN streamfilter_relation AS r ON r.oid OPERATOR(pg_catalog.=) t."table"::pg_catalog.oid
LEFT JOIN streamfilter_relation AS f ON f.oid OPERATOR(pg_catalog.=) t.filter::pg_catalog.oid CROSS JOIN LATERAL (VALUES
  ('streamfilter_trigger_rows_total', t.rows::pg_catalog.float8, 'rows', 'rows that the trigger has judged'),
  ('streamfilter_trigger_discarded_total', t.discarded::pg_catalog.float8, 'rows', 'of these, discarded or marked'),
  ('streamfilter_trigger_diverted_total', t.diverted::pg_catalog.float8, 'rows', 'of these, diverted'),
  ('streamfilter_trigger_would_discard_total', t.would_discard::pg_catalog.float8, 'rows', 'repeats that passed in mode shadow')
) AS streamfilter_metric (name, value, unit, help)
WHERE streamfilter_metric.value IS NOT NULL
UNION ALL
SELECT streamfilter_metric.name, pg_catalog.jsonb_build_object('filter', r.name, 'slice', s.slice::pg_catalog.text, 'server', s.server),
  streamfilter_metric.value, streamfilter_metric.unit, streamfilter_metric.help
FROM streamfilter_slices AS s JOIN streamfilter_relation AS r ON r.oid OPERATOR(pg_catalog.=) s.filter::pg_catalog.oid CROSS JOIN LATERAL (VALUES
  ('streamfilter_slice_lost', CASE WHEN s.lost THEN 1 ELSE 0 END::pg_catalog.float8, 'boolean', 'the server of the slice does not answer'),
  ('streamfilter_slice_answered_total', s.answered::pg_catalog.float8, 'keys', 'keys that the slice has answered for'),
  ('streamfilter_slice_unanswered_total', s.unanswered::pg_catalog.float8, 'keys', 'keys that it has not answered for'),
  ('streamfilter_slice_messages_total', s.messages::pg_catalog.float8, 'messages', 'messages sent to it'),
  ('streamfilter_slice_sent_bytes_total', s.bytes_sent::pg_catalog.float8, 'bytes', 'bytes sent to it'),
  ('streamfilter_slice_received_bytes_total', s.bytes_received::pg_catalog.float8, 'bytes', 'bytes received from it')
) AS streamfilter_metric (name, value, unit, help)
WHERE streamfilter_metric.value IS NOT NULL AND s.error IS NULL
UNION ALL
SELECT streamfilter_metric.name, '{}'::pg_catalog.jsonb, streamfilter_metric.value, streamfilter_metric.unit, streamfilter_metric.help
FROM streamfilter_memory() AS s CROSS JOIN LATERAL (VALUES
  ('streamfilter_shared_memory_bytes', s.total::pg_catalog.float8, 'bytes', 'shared memory for filters, of all databases'),
  ('streamfilter_shared_memory_free_bytes', s.free::pg_catalog.float8, 'bytes', 'of these, free'),
  ('streamfilter_shared_memory_largest_free_bytes', s.largest_free::pg_catalog.float8, 'bytes', 'of these, in one piece'),
  ('streamfilter_dynamic_memory_bytes', s.dynamic::pg_catalog.float8, 'bytes', 'dynamic memory that filters have taken'),
  ('streamfilter_slots', s.slots::pg_catalog.float8, 'filters', 'filters that there is room for: streamfilter.max_filters'),
  ('streamfilter_slots_in_use', s.slots_in_use::pg_catalog.float8, 'filters', 'filters that have state in shared memory, of all databases'),
  ('streamfilter_log_bytes', pg_catalog.pg_table_size('streamfilter_log'::pg_catalog.regclass)::pg_catalog.float8, 'bytes', 'log of this database: what was added since filters were saved'),
  ('streamfilter_image_bytes', pg_catalog.pg_table_size('streamfilter_image'::pg_catalog.regclass)::pg_catalog.float8, 'bytes', 'saved images of this database')
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
COMMENT ON VIEW streamfilter_metrics
IS 'the statistics of this extension as metrics: a row a value, with its unit';
GRANT SELECT ON streamfilter_metrics TO PUBLIC;


-- ---- nodes of Citus ------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_definition(filter regclass) RETURNS text
LANGUAGE C STRICT STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_definition(regclass)
IS 'the commands that make such a filter elsewhere, with its owner and rights';

CREATE FUNCTION streamfilter_distribute(filter regclass) RETURNS integer
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_distribute(regclass)
IS 'makes the filter on all workers of Citus that lack it; how many have it now';

-- ---- slices on the move --------------------------------------------------------------------------

CREATE FUNCTION streamfilter_move_slice(filter regclass, slice int, server text) RETURNS boolean
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_move_slice(regclass, int, text)
IS 'moves a slice to another of the filter''s servers, while it is used; false: it is there already';

CREATE FUNCTION streamfilter_spread_slices(filter regclass) RETURNS int
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_spread_slices(regclass)
IS 'moves slices until all servers of the filter hold equally many; returns how many it has moved';

CREATE FUNCTION streamfilter_slice_places(filter regclass, OUT slice int, OUT server text,
  OUT epoch bigint) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE ROWS 16
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_places(regclass)
IS 'where each slice of a filter on other servers is now, as these say; epoch counts its moves';

-- Called by servers that move slices from here or to here.

CREATE FUNCTION streamfilter_slice_fence(filter regclass, slice int) RETURNS bytea
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_fence(regclass, int)
IS 'keeps others from the relation that holds a slice until the transaction ends; returns its state';

CREATE FUNCTION streamfilter_slice_take(schema_name text, table_name text, slice int, epoch int,
  definition text, conflict text, persistence text, state bytea) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_take(text, text, int, int, text, text, text, bytea)
IS 'makes the relation that holds a slice which comes from another server';

CREATE FUNCTION streamfilter_slice_close(filter regclass, slice int, server int, epoch int,
  producer text) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_slice_close(regclass, int, int, int, text)
IS 'the relation says from now on that a slice is on another server';
-- ---- which filter for a stream, by its rows -----------------------------------------------------------

CREATE FUNCTION streamfilter_advise(query text, memory text, fpr double precision)
RETURNS TABLE (prototype text, predicted_fpr double precision, fpr_error double precision,
  predicted_fnr double precision, fnr_error double precision, fnr_half double precision,
  fnr_half_error double precision, fnr_double double precision, fnr_double_error double precision,
  bits_per_key double precision, kind text, fpr_bound double precision, window_keys bigint, sampled_rows bigint, note text)
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE COST 100000 ROWS 16
AS 'MODULE_PATHNAME', 'streamfilter_advise_query';
COMMENT ON FUNCTION streamfilter_advise(text, text, double precision)
IS 'the kinds of filters for the stream that a query is a part of, best first, as tried on a sample of its keys';
-- Triggers of 1.0 named their filters; from now on they mean them.
SELECT streamfilter_adopt_triggers();

-- Dear enough to come behind most other conditions, and not to have a query compiled.
ALTER FUNCTION streamfilter_test(regclass, VARIADIC "any") COST 20;
