\echo Use "ALTER EXTENSION streamfilter UPDATE" to load this file. \quit

-- What 1.2 makes anew is dropped first; the parts that follow are those of the full script.

DROP VIEW streamfilter_metrics;
DROP VIEW streamfilter_stats;
DROP FUNCTION streamfilter_stat(oid);
