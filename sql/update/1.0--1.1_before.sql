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

