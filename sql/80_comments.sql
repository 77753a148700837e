
-- ---- comments on columns -------------------------------------------------------------------------------

COMMENT ON COLUMN streamfilter_filters.filter IS 'the filter';
COMMENT ON COLUMN streamfilter_filters.kind IS 'kind of filter, as in option kind';
COMMENT ON COLUMN streamfilter_filters.mode IS 'what it does with repeats: enforce, shadow or off';
COMMENT ON COLUMN streamfilter_filters.memory IS 'shared memory that it takes';
COMMENT ON COLUMN streamfilter_filters."full" IS 'percent of its cells in use';
COMMENT ON COLUMN streamfilter_filters.tested IS 'rows and keys it was asked about';
COMMENT ON COLUMN streamfilter_filters.repeats IS 'of these, repeats: discarded, marked, diverted, or let pass in mode shadow';
COMMENT ON COLUMN streamfilter_filters.fpr_now IS 'estimated rate of false positives now';
COMMENT ON COLUMN streamfilter_filters.state IS 'where its state is, or why the filter cannot be read';

COMMENT ON COLUMN streamfilter_stats.filter IS 'the filter';
COMMENT ON COLUMN streamfilter_stats.kind IS 'kind of filter, as in option kind';
COMMENT ON COLUMN streamfilter_stats.memory IS 'bytes of shared memory that it takes';
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
COMMENT ON COLUMN streamfilter_stats.ahead IS 'events whose time was too far ahead';
COMMENT ON COLUMN streamfilter_stats.late IS 'events that came later than window and lateness: not remembered';
COMMENT ON COLUMN streamfilter_stats.passed_overfull IS 'repeats that passed because the filter held too much';
COMMENT ON COLUMN streamfilter_stats.overfull IS 'whether it holds more than its rate of false positives allows';
COMMENT ON COLUMN streamfilter_stats.lost_estimate IS 'estimated number of new rows that were discarded as repeats';
COMMENT ON COLUMN streamfilter_stats.stats_reset IS 'when the counters were set to zero last';
COMMENT ON COLUMN streamfilter_stats.dynamic_memory IS 'of its memory, bytes beyond streamfilter.shared_memory';
COMMENT ON COLUMN streamfilter_stats.state IS 'where its state is: loaded (or clock went back), saved, or set aside and why';
COMMENT ON COLUMN streamfilter_stats.error IS 'why the filter cannot be read; NULL if it can';

COMMENT ON COLUMN streamfilter_tuning.filter IS 'the filter';
COMMENT ON COLUMN streamfilter_tuning.factor IS 'its memory times this';
COMMENT ON COLUMN streamfilter_tuning.memory IS 'bytes that this comes to';
COMMENT ON COLUMN streamfilter_tuning.found IS 'repeats that it would have found';
COMMENT ON COLUMN streamfilter_tuning.fnr IS 'estimated share of repeats that it would have missed';
COMMENT ON COLUMN streamfilter_tuning.fnr_low IS 'lower end of the interval that holds this share with 95 percent';
COMMENT ON COLUMN streamfilter_tuning.fnr_high IS 'upper end of that interval';
COMMENT ON COLUMN streamfilter_tuning.error IS 'why the filter cannot be read; NULL if it can';

COMMENT ON COLUMN streamfilter_tree.filter IS 'the filter';
COMMENT ON COLUMN streamfilter_tree.parent IS 'the filter above it; NULL for the root';
COMMENT ON COLUMN streamfilter_tree.level IS 'its distance from the root';
COMMENT ON COLUMN streamfilter_tree.accesses IS 'in a tree: keys that have come to this node';
COMMENT ON COLUMN streamfilter_tree.hits IS 'in a tree: repeats that this node has found';
COMMENT ON COLUMN streamfilter_tree.error IS 'why the filter cannot be read; NULL if it can';

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
COMMENT ON COLUMN streamfilter_slices.error IS 'why the filter cannot be read; NULL if it can';

COMMENT ON COLUMN streamfilter_triggers."table" IS 'the table, or partition, that the trigger fires for';
COMMENT ON COLUMN streamfilter_triggers.trigger IS 'name of the trigger';
COMMENT ON COLUMN streamfilter_triggers.filter IS 'the filter that it asks';
COMMENT ON COLUMN streamfilter_triggers.kind IS 'what it does: discard, mark, divert or forget';
COMMENT ON COLUMN streamfilter_triggers.rows IS 'rows that the trigger has judged';
COMMENT ON COLUMN streamfilter_triggers.discarded IS 'of these, discarded or marked';
COMMENT ON COLUMN streamfilter_triggers.diverted IS 'of these, diverted';
COMMENT ON COLUMN streamfilter_triggers.would_discard IS 'repeats that passed in mode shadow';
COMMENT ON COLUMN streamfilter_triggers.since IS 'when its counters were set to zero last';

COMMENT ON COLUMN streamfilter_progress.pid IS 'process of the session';
COMMENT ON COLUMN streamfilter_progress.command IS 'command that runs';
COMMENT ON COLUMN streamfilter_progress.filter IS 'the filter that it works on; NULL: none';
COMMENT ON COLUMN streamfilter_progress.phase IS 'present phase';
COMMENT ON COLUMN streamfilter_progress.done IS 'amount that is done';
COMMENT ON COLUMN streamfilter_progress.total IS 'amount in all; NULL: unknown';
COMMENT ON COLUMN streamfilter_progress.unit IS 'unit of these amounts';

COMMENT ON COLUMN streamfilter_metrics.name IS 'name of the metric';
COMMENT ON COLUMN streamfilter_metrics.labels IS 'labels of the value, as JSON';
COMMENT ON COLUMN streamfilter_metrics.value IS 'its value';
COMMENT ON COLUMN streamfilter_metrics.unit IS 'unit of the value';
COMMENT ON COLUMN streamfilter_metrics.help IS 'meaning of the metric';

-- ---- functions and views ----------------------------------------------------------------------------------

COMMENT ON FUNCTION streamfilter_in(cstring)
IS 'reads the text form';
COMMENT ON FUNCTION streamfilter_out(streamfilter)
IS 'writes the text form';
COMMENT ON FUNCTION streamfilter_recv(internal)
IS 'reads the binary form';
COMMENT ON FUNCTION streamfilter_send(streamfilter)
IS 'writes the binary form';
COMMENT ON FUNCTION streamfilter_contains(streamfilter, "any")
IS 'true if the filter (probably) remembers the key';
COMMENT ON FUNCTION streamfilter_seen(regclass, VARIADIC "any")
IS 'true if the key was (probably) seen before; remembers the key';
COMMENT ON FUNCTION streamfilter_test(regclass, VARIADIC "any")
IS 'true if the key was (probably) seen before; remembers nothing';
COMMENT ON FUNCTION streamfilter_forget_saved(regclass)
IS 'deletes the saved state of a filter; returns its bytes';
COMMENT ON FUNCTION streamfilter_forget_saved()
IS 'deletes the saved state of all filters of the database, even where it cannot be read; for superusers';
COMMENT ON VIEW streamfilter_tuning
IS 'estimated misses of each filter with less and more memory, from the repeats found so far';
COMMENT ON VIEW streamfilter_tree
IS 'nodes of trees of filters: keys that have come to each, and repeats that each has found';
COMMENT ON FUNCTION streamfilter_forget()
IS 'AFTER DELETE OR UPDATE FOR EACH ROW, or AFTER TRUNCATE trigger: the filter forgets keys that the table no longer has; arguments: filter [, column ...]';
COMMENT ON FUNCTION streamfilter_hashes_test(regclass, bigint[], bigint[], double precision[])
IS 'for each hash, true if it was seen before; remembers nothing';
COMMENT ON FUNCTION streamfilter_hashes_seen(regclass, bigint[], bigint[], double precision[])
IS 'for each hash, true if it was seen before; remembers the hashes';
COMMENT ON FUNCTION streamfilter_hashes_reserve(regclass, bigint[], bigint[], double precision[])
IS 'streamfilter_hashes_seen for one of several parts of a key; no other transaction adds the key until this one ends';
COMMENT ON FUNCTION streamfilter_hashes_put(regclass, bigint[], bigint[], double precision[])
IS 'streamfilter_hashes_seen for the other parts of a key that streamfilter_hashes_reserve has taken';
COMMENT ON FUNCTION streamfilter_hashes_erase(regclass, bigint[], bigint[], double precision[])
IS 'for each hash, true if it was there; forgets the hashes';
COMMENT ON VIEW streamfilter_triggers
IS 'rows of each table that triggers of this database have judged, discarded and diverted';
COMMENT ON VIEW streamfilter_progress
IS 'progress of long work in sessions of this database: advice, evaluations, streamfilter_distinct(), warming, restoring, resizing, settling';
COMMENT ON FUNCTION streamfilter_profile(text, streamfilter[], text)
IS 'error rates of streamfilter_evaluate by lag (rows since the last sight), position (along the query) or importance';
