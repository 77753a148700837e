CREATE FUNCTION _streamfilter.streamfilter_stat(filter oid,
  OUT kind text, OUT memory bigint, OUT params jsonb,
  OUT tested bigint, OUT accepted bigint, OUT discarded bigint,
  OUT rolled_back bigint, OUT in_flight bigint, OUT waits bigint,
  OUT fill double precision, OUT fpr_now double precision, OUT fpr_bound double precision,
  OUT distinct_estimate bigint, OUT window_keys bigint,
  OUT created timestamptz, OUT last_reset timestamptz,
  OUT last_saved timestamptz, OUT restored timestamptz, OUT overflowed bigint,
  OUT unremembered bigint, OUT mode text, OUT would_discard bigint, OUT diverted bigint, OUT ahead bigint,
  OUT lost_estimate double precision, OUT stats_reset timestamptz, OUT dynamic_memory bigint,
  OUT late bigint, OUT passed_overfull bigint, OUT overfull boolean, OUT state text, OUT error text)
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION _streamfilter.streamfilter_stat(oid)
IS 'one row of the view streamfilter_stats';

-- A filter that cannot be read is a row with its error, here and in the other views.
CREATE VIEW streamfilter_stats AS
SELECT ft.ftrelid::pg_catalog.regclass AS filter, stat.*
FROM pg_catalog.pg_foreign_table AS ft
CROSS JOIN LATERAL _streamfilter.streamfilter_stat(ft.ftrelid) AS stat
WHERE stat.kind IS NOT NULL OR stat.error IS NOT NULL;
COMMENT ON VIEW streamfilter_stats
IS 'all filters of this database: parameters, contents and counters';

