# Rollups (docs/cookbook.md) in a partitioned table, filled by the trigger, and in a distributed table of Citus, where the function's
# INSERT … SELECT runs after each load, on the workers: each is what the rows make.
use Sf;
use CitusCluster;

my $add = q{INSERT INTO hourly AS h
	SELECT page, at / 3600, streamfilter_agg(visitor, 'ell(memory=16kB)') FROM added GROUP BY 1, 2 ORDER BY 1, 2
	ON CONFLICT (page, hour) DO UPDATE SET visitors = h.visitors || excluded.visitors};
my $wrong = q{SELECT count(*) > 20, count(*) FILTER (WHERE h.visitors::text IS DISTINCT FROM r.visitors::text)
	FROM hourly h FULL JOIN (SELECT page, at / 3600 AS hour, streamfilter_agg(visitor, 'ell(memory=16kB)') AS visitors
		FROM page_views GROUP BY 1, 2) r USING (page, hour)};

sub load
{
	my ($first) = @_;
	return "SELECT i * 7, i % 5, i % 777 + $first FROM generate_series(1, 4000) i";
}

my $node = start_node('partitioned', 'fsync = off');
sql(qq{
	CREATE TABLE page_views (at int NOT NULL, page int NOT NULL, visitor bigint);
	CREATE TABLE hourly (page int, hour int, visitors streamfilter NOT NULL, PRIMARY KEY (page, hour)) PARTITION BY RANGE (hour);
	CREATE TABLE hourly_0 PARTITION OF hourly FOR VALUES FROM (0) TO (4);
	CREATE TABLE hourly_4 PARTITION OF hourly FOR VALUES FROM (4) TO (8) PARTITION BY LIST (page);
	CREATE TABLE hourly_4_0 PARTITION OF hourly_4 FOR VALUES IN (0, 1);
	CREATE TABLE hourly_4_2 PARTITION OF hourly_4 DEFAULT;
	CREATE FUNCTION add_to_hourly() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN $add; RETURN NULL; END \$\$;
	CREATE TRIGGER add_to_hourly AFTER INSERT ON page_views
		REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_to_hourly()});
sql('INSERT INTO page_views ' . load($_)) for 0, 500;
is(sql($wrong), 't|0', 'a partitioned rollup');
sql('DROP TABLE hourly_0');
is(sql('SELECT min(hour) FROM hourly'), '4', 'hours that go');
$node->stop;

SKIP:
{
	my ($share) = run_command([ 'pg_config', '--sharedir' ]);
	skip 'Citus is not installed', 3 unless -e "$share/extension/citus.control";
	my $citus = CitusCluster->new(workers => 2);
	$citus->query(q{CREATE TABLE page_views (at int NOT NULL, page int NOT NULL, visitor bigint);
		CREATE TABLE added (LIKE page_views);
		CREATE TABLE hourly (page int, hour int, visitors streamfilter NOT NULL, PRIMARY KEY (page, hour));
		SELECT create_distributed_table(t, 'page') FROM unnest(ARRAY['page_views', 'added', 'hourly']) t});
	for my $first (0, 500)
	{
		$citus->query('INSERT INTO added ' . load($first));
		$citus->query('INSERT INTO page_views SELECT * FROM added');
		$citus->query($add);
		$citus->query('TRUNCATE added');
	}
	is($citus->query($wrong), 't|0', 'a distributed rollup');
	is($citus->query('SELECT count(*) > 2 FROM (SELECT DISTINCT nodename, nodeport, shardid FROM pg_dist_shard_placement
		JOIN pg_dist_shard USING (shardid) WHERE logicalrelid = $$hourly$$::regclass) p'), 't', 'its rows lie on the workers');
	is($citus->query('SELECT # streamfilter_union_agg(visitors) FROM hourly'),
		$citus->query(q{SELECT # streamfilter_agg(visitor, 'ell(memory=16kB)') FROM page_views}), 'merged over the servers');
}

done_testing();
