-- ---- what filters hold and have done ------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_stat(filter oid,
  OUT kind text, OUT memory bigint, OUT params jsonb,
  OUT tested bigint, OUT accepted bigint, OUT discarded bigint,
  OUT rolled_back bigint, OUT in_flight bigint, OUT waits bigint,
  OUT fill double precision, OUT fpr_now double precision, OUT fpr_bound double precision,
  OUT distinct_estimate bigint, OUT window_keys bigint,
  OUT created timestamptz, OUT last_reset timestamptz,
  OUT last_saved timestamptz, OUT restored timestamptz, OUT overflowed bigint,
  OUT unremembered bigint, OUT mode text, OUT would_discard bigint, OUT diverted bigint, OUT null_keys bigint, OUT ahead bigint,
  OUT lost_estimate double precision, OUT stats_reset timestamptz, OUT dynamic_memory bigint, OUT resident bigint,
  OUT late bigint, OUT passed_overfull bigint, OUT overfull boolean, OUT state text, OUT error text)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_stat(oid) IS 'one row of the view streamfilter_stats';

-- A filter that cannot be read is a row with its error, here and in the other views.
CREATE VIEW streamfilter_stats AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, stat.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL _streamfilter.streamfilter_stat(ft.ftrelid) AS stat
WHERE stat.kind IS NOT NULL OR stat.error IS NOT NULL;
COMMENT ON VIEW streamfilter_stats IS 'all filters of this database: parameters, contents and counters';
COMMENT ON COLUMN streamfilter_stats.filter IS 'the filter';
COMMENT ON COLUMN streamfilter_stats.kind IS 'kind of filter, as in option kind';
COMMENT ON COLUMN streamfilter_stats.memory IS 'bytes that it takes where it is stored';
COMMENT ON COLUMN streamfilter_stats.params IS 'parameters that its options come to';
COMMENT ON COLUMN streamfilter_stats.tested IS 'rows and keys it was asked about';
COMMENT ON COLUMN streamfilter_stats.accepted IS 'of these, found new';
COMMENT ON COLUMN streamfilter_stats.discarded IS 'repeats that were discarded or marked';
COMMENT ON COLUMN streamfilter_stats.rolled_back IS 'keys of transactions that rolled back';
COMMENT ON COLUMN streamfilter_stats.in_flight IS 'keys of unfinished transactions';
COMMENT ON COLUMN streamfilter_stats.waits IS 'waits for another transaction with the same key';
COMMENT ON COLUMN streamfilter_stats.fill IS 'share of its cells in use, from 0 to 1';
COMMENT ON COLUMN streamfilter_stats.fpr_now IS 'estimated rate of false positives now';
COMMENT ON COLUMN streamfilter_stats.fpr_bound IS 'rate of false positives at most, by its parameters and what it holds';
COMMENT ON COLUMN streamfilter_stats.distinct_estimate IS 'estimated number of distinct keys seen';
COMMENT ON COLUMN streamfilter_stats.window_keys IS 'number of keys after which a key is still remembered with 99 percent';
COMMENT ON COLUMN streamfilter_stats.created IS 'when its state was made';
COMMENT ON COLUMN streamfilter_stats.last_reset IS 'when it was emptied last';
COMMENT ON COLUMN streamfilter_stats.last_saved IS 'when its image was saved last';
COMMENT ON COLUMN streamfilter_stats.restored IS 'when its state was read back last';
COMMENT ON COLUMN streamfilter_stats.overflowed IS 'transactions with more keys in flight than there was room for';
COMMENT ON COLUMN streamfilter_stats.unremembered IS 'transactions whose keys other servers have not taken';
COMMENT ON COLUMN streamfilter_stats.mode IS 'what it does with repeats: enforce, shadow or off';
COMMENT ON COLUMN streamfilter_stats.would_discard IS 'repeats that passed in mode shadow';
COMMENT ON COLUMN streamfilter_stats.diverted IS 'repeats that were diverted to another table';
COMMENT ON COLUMN streamfilter_stats.null_keys IS 'rows with a NULL in their key: they passed, and are not remembered';
COMMENT ON COLUMN streamfilter_stats.ahead IS 'events whose time was too far ahead';
COMMENT ON COLUMN streamfilter_stats.late IS 'events behind a newer one by more than lateness: they passed';
COMMENT ON COLUMN streamfilter_stats.passed_overfull IS 'repeats that passed because the filter held too much';
COMMENT ON COLUMN streamfilter_stats.overfull IS 'whether it holds more than its rate of false positives allows';
COMMENT ON COLUMN streamfilter_stats.lost_estimate IS 'estimated number of new rows that were discarded as repeats';
COMMENT ON COLUMN streamfilter_stats.stats_reset IS 'when the counters were set to zero last';
COMMENT ON COLUMN streamfilter_stats.dynamic_memory IS 'of resident, bytes beyond streamfilter.shared_memory';
COMMENT ON COLUMN streamfilter_stats.resident IS 'bytes that its state takes in memory; NULL if it is not loaded';
COMMENT ON COLUMN streamfilter_stats.state IS 'where its state is: loaded (and, if it is empty, why; or clock went back), saved, or set aside and why';
COMMENT ON COLUMN streamfilter_stats.error IS 'why the filter cannot be read; NULL if it can';

-- What one looks at first.
CREATE VIEW streamfilter_filters AS
SELECT s.filter, s.kind, s.mode, pg_catalog.pg_size_pretty(s.memory) AS memory,
  pg_catalog.round((s.fill OPERATOR(pg_catalog.*) '100'::pg_catalog.float8)::pg_catalog.numeric, 1) AS "full",
  s.tested, s.discarded OPERATOR(pg_catalog.+) s.diverted OPERATOR(pg_catalog.+) s.would_discard AS repeats,
  pg_catalog.ltrim(pg_catalog.to_char(s.fpr_now, '9.9EEEE')) AS fpr_now,
  pg_catalog."left"(coalesce(s.error, s.state), 24) AS state
FROM streamfilter_stats AS s;
COMMENT ON VIEW streamfilter_filters IS 'the filters of this database in short; streamfilter_stats has all that is known of them';
COMMENT ON COLUMN streamfilter_filters.filter IS 'the filter';
COMMENT ON COLUMN streamfilter_filters.kind IS 'kind of filter, as in option kind';
COMMENT ON COLUMN streamfilter_filters.mode IS 'what it does with repeats: enforce, shadow or off';
COMMENT ON COLUMN streamfilter_filters.memory IS 'shared memory that it takes';
COMMENT ON COLUMN streamfilter_filters."full" IS 'percent of its cells in use';
COMMENT ON COLUMN streamfilter_filters.tested IS 'rows and keys it was asked about';
COMMENT ON COLUMN streamfilter_filters.repeats IS 'of these, repeats: discarded, marked, diverted, or let pass in mode shadow';
COMMENT ON COLUMN streamfilter_filters.fpr_now IS 'estimated rate of false positives now';
COMMENT ON COLUMN streamfilter_filters.state IS 'where its state is, or why the filter cannot be read';

CREATE FUNCTION _streamfilter.streamfilter_tune(filter oid)
RETURNS TABLE (factor double precision, memory bigint, found bigint,
  fnr double precision, fnr_low double precision, fnr_high double precision, error text)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 5 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_tune(oid) IS 'the rows of the view streamfilter_tuning for one filter';

CREATE VIEW streamfilter_tuning AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, tuned.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL _streamfilter.streamfilter_tune(ft.ftrelid) AS tuned;
COMMENT ON VIEW streamfilter_tuning IS 'estimated misses of each filter with less and more memory, from the repeats found so far';
COMMENT ON COLUMN streamfilter_tuning.filter IS 'the filter';
COMMENT ON COLUMN streamfilter_tuning.factor IS 'its memory times this';
COMMENT ON COLUMN streamfilter_tuning.memory IS 'bytes that this comes to';
COMMENT ON COLUMN streamfilter_tuning.found IS 'repeats that it would have found';
COMMENT ON COLUMN streamfilter_tuning.fnr IS 'estimated share of repeats that it would have missed';
COMMENT ON COLUMN streamfilter_tuning.fnr_low IS 'lower end of the interval that holds this share with 95 percent';
COMMENT ON COLUMN streamfilter_tuning.fnr_high IS 'upper end of that interval';
COMMENT ON COLUMN streamfilter_tuning.error IS 'why the filter cannot be read; NULL if it can';

CREATE FUNCTION _streamfilter.streamfilter_tree_node(filter oid,
  OUT parent regclass, OUT level int, OUT accesses bigint, OUT hits bigint, OUT error text)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_tree_node(oid)
IS 'one row of the view streamfilter_tree; NULLs for a filter that is in no tree';

CREATE VIEW streamfilter_tree AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, node.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL _streamfilter.streamfilter_tree_node(ft.ftrelid) AS node
WHERE node.level IS NOT NULL OR node.error IS NOT NULL;
COMMENT ON VIEW streamfilter_tree IS 'nodes of trees of filters: keys that have come to each, and repeats that each has found';
COMMENT ON COLUMN streamfilter_tree.filter IS 'the filter';
COMMENT ON COLUMN streamfilter_tree.parent IS 'the filter above it; NULL for the root';
COMMENT ON COLUMN streamfilter_tree.level IS 'its distance from the root';
COMMENT ON COLUMN streamfilter_tree.accesses IS 'in a tree: keys that have come to this node';
COMMENT ON COLUMN streamfilter_tree.hits IS 'in a tree: repeats that this node has found';
COMMENT ON COLUMN streamfilter_tree.error IS 'why the filter cannot be read; NULL if it can';

CREATE FUNCTION _streamfilter.streamfilter_slice_stats(filter oid, OUT slice int, OUT server text,
  OUT lost boolean, OUT lost_since timestamptz, OUT answered bigint, OUT unanswered bigint,
  OUT messages bigint, OUT bytes_sent bigint, OUT bytes_received bigint,
  OUT replaced bigint, OUT error text) RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 16 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_slice_stats(oid) IS 'the rows of a filter in the view streamfilter_slices';

CREATE VIEW streamfilter_slices AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, slice.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL _streamfilter.streamfilter_slice_stats(ft.ftrelid) AS slice;
COMMENT ON VIEW streamfilter_slices
IS 'the slices of filters on other servers: where they are, what they have done, whether they are lost';
COMMENT ON COLUMN streamfilter_slices.filter IS 'the filter';
COMMENT ON COLUMN streamfilter_slices.slice IS 'number of the slice';
COMMENT ON COLUMN streamfilter_slices.server IS 'foreign server that holds it';
COMMENT ON COLUMN streamfilter_slices.lost IS 'whether the server does not answer';
COMMENT ON COLUMN streamfilter_slices.lost_since IS 'since when it does not answer';
COMMENT ON COLUMN streamfilter_slices.answered IS 'keys that the slice has answered for';
COMMENT ON COLUMN streamfilter_slices.unanswered IS 'keys that it has not answered for';
COMMENT ON COLUMN streamfilter_slices.messages IS 'messages sent to it';
COMMENT ON COLUMN streamfilter_slices.bytes_sent IS 'bytes sent to it';
COMMENT ON COLUMN streamfilter_slices.bytes_received IS 'bytes received from it';
COMMENT ON COLUMN streamfilter_slices.replaced IS 'times that its server came with other keys than before';
COMMENT ON COLUMN streamfilter_slices.error IS 'why the filter cannot be read; NULL if it can';

CREATE FUNCTION streamfilter_memory(OUT total bigint, OUT free bigint, OUT largest_free bigint,
  OUT dynamic bigint, OUT slots int, OUT slots_in_use int)
LANGUAGE C VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_memory()
IS 'the shared memory of filters, in bytes, of all databases; NULLs where the library is not preloaded';

-- ---- what triggers have done --------------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_trigger_stat(trigger oid,
  OUT filter regclass, OUT kind text, OUT rows bigint, OUT discarded bigint, OUT diverted bigint,
  OUT would_discard bigint, OUT since timestamptz)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_trigger_stat(oid) IS 'one row of the view streamfilter_triggers';

CREATE VIEW streamfilter_triggers AS
SELECT t.tgrelid::pg_catalog.regclass AS "table", t.tgname AS trigger, stat.*
FROM pg_catalog.pg_trigger AS t
CROSS JOIN LATERAL _streamfilter.streamfilter_trigger_stat(t.oid) AS stat
WHERE stat.kind IS NOT NULL;
COMMENT ON VIEW streamfilter_triggers IS 'rows of each table that triggers of this database have judged, discarded and diverted';
COMMENT ON COLUMN streamfilter_triggers."table" IS 'the table, or partition, that the trigger fires for';
COMMENT ON COLUMN streamfilter_triggers.trigger IS 'name of the trigger';
COMMENT ON COLUMN streamfilter_triggers.filter IS 'the filter that it asks';
COMMENT ON COLUMN streamfilter_triggers.kind IS 'what it does: discard, mark, divert or forget';
COMMENT ON COLUMN streamfilter_triggers.rows IS 'rows that the trigger has judged';
COMMENT ON COLUMN streamfilter_triggers.discarded IS 'of these, discarded or marked';
COMMENT ON COLUMN streamfilter_triggers.diverted IS 'of these, diverted';
COMMENT ON COLUMN streamfilter_triggers.would_discard IS 'repeats that passed in mode shadow';
COMMENT ON COLUMN streamfilter_triggers.since IS 'when its counters were set to zero last';

-- ---- counting anew ------------------------------------------------------------------------------

CREATE FUNCTION streamfilter_stats_reset(filter regclass) RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_stats_reset(regclass) IS 'sets the counters of a filter, and of its triggers, to zero';

CREATE FUNCTION streamfilter_stats_reset() RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'streamfilter_stats_reset_all';
REVOKE EXECUTE ON FUNCTION streamfilter_stats_reset() FROM PUBLIC;
COMMENT ON FUNCTION streamfilter_stats_reset() IS 'sets the counters of all filters and triggers of the database to zero';

-- ---- long work that runs -----------------------------------------------------------------------

CREATE FUNCTION _streamfilter.streamfilter_show_progress(OUT pid int, OUT command text, OUT filter regclass,
  OUT phase text, OUT done bigint, OUT total bigint, OUT unit text) RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 4 AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_show_progress() IS 'the rows of the view streamfilter_progress';

CREATE VIEW streamfilter_progress AS
SELECT pid, command, filter, phase, done, total, unit FROM _streamfilter.streamfilter_show_progress();
COMMENT ON VIEW streamfilter_progress
IS 'progress of long work in sessions of this database: advice, evaluations, streamfilter_distinct(), warming, restoring, resizing, settling';
COMMENT ON COLUMN streamfilter_progress.pid IS 'process of the session';
COMMENT ON COLUMN streamfilter_progress.command IS 'command that runs';
COMMENT ON COLUMN streamfilter_progress.filter IS 'the filter that it works on; NULL: none';
COMMENT ON COLUMN streamfilter_progress.phase IS 'present phase';
COMMENT ON COLUMN streamfilter_progress.done IS 'amount that is done';
COMMENT ON COLUMN streamfilter_progress.total IS 'amount in all; NULL: unknown';
COMMENT ON COLUMN streamfilter_progress.unit IS 'unit of these amounts';

GRANT SELECT ON streamfilter_stats, streamfilter_filters, streamfilter_tuning, streamfilter_tree, streamfilter_slices,
  streamfilter_triggers, streamfilter_progress TO PUBLIC;
