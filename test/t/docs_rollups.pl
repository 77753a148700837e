# A rollup kept by a statement trigger (docs/cookbook.md): what concurrent writers and rolled-back transactions leave is what
# the rows that are there make, to the last byte.
# flavours: quick faults
use Sf;
use CitusCluster;

my $node = start_node('rollups', q{
statement_timeout = '60s'
fsync = off});
sql(q{
CREATE TABLE page_views (at int NOT NULL, page int NOT NULL, visitor bigint);
CREATE TABLE hourly (page int, hour int, visitors streamfilter NOT NULL, PRIMARY KEY (page, hour));
CREATE FUNCTION add_to_hourly() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO hourly AS h
  SELECT page, at / 3600, streamfilter_agg(visitor, 'ell(memory=16kB)') FROM added GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (page, hour) DO UPDATE SET visitors = h.visitors || excluded.visitors;
  RETURN NULL;
END $$;
CREATE TRIGGER add_to_hourly AFTER INSERT ON page_views
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_to_hourly();
});

# The rollup, beside what the rows make.
sub is_right
{
	my ($what) = @_;
	is(sql(q{
		SELECT count(*) > 0, count(*) FILTER (WHERE h.visitors::text IS DISTINCT FROM r.visitors::text)
		FROM hourly h FULL JOIN (SELECT page, at / 3600 AS hour, streamfilter_agg(visitor, 'ell(memory=16kB)') AS visitors
		                         FROM page_views GROUP BY 1, 2) r USING (page, hour)}), 't|0', $what);
	return;
}

sql(q{INSERT INTO page_views SELECT i, i % 5, i % 777 FROM generate_series(1, 20000) i});
is_right('one statement');
sql("COPY page_views FROM STDIN;\n" . join('', map { "$_\t1\t$_\n" } 1 .. 3000) . "\\.\n");
is_right('COPY');
sql(q{
BEGIN;
INSERT INTO page_views SELECT i, i % 5, 1000000 + i FROM generate_series(1, 5000) i;
SAVEPOINT s;
INSERT INTO page_views VALUES (1, 1, -1);
ROLLBACK TO s;
INSERT INTO page_views VALUES (1, 1, -2);
ROLLBACK;
BEGIN;
INSERT INTO page_views VALUES (1, 1, -3);
SAVEPOINT s;
INSERT INTO page_views VALUES (1, 1, -4);
ROLLBACK TO s;
COMMIT;
});
is_right('rolled-back transactions and savepoints leave nothing');

# Four at once, in few rows of the rollup, the pages of each statement in another order.
my $script = $node->basedir . '/writer.sql';
append_to_file($script, q{
\set seed random(1, 1000000)
INSERT INTO page_views SELECT (i * :seed) % 7200, (i * :seed) % 5, (i * :seed) % 100003 FROM generate_series(1, 50) i;
});
$node->command_ok([ 'pgbench', '-n', '-c', '4', '-t', '30', '-f', $script, 'postgres' ], 'writers at the same time');
is(sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"), '0', 'no deadlock');
is_right('concurrent writers');

# Hours to days, and hours that go.
is(sql(q{
	SELECT bool_and(d.n = r.n) FROM
	  (SELECT page, # streamfilter_union_agg(visitors) AS n FROM hourly GROUP BY page) d
	  JOIN (SELECT page, # streamfilter_agg(visitor, 'ell(memory=16kB)') AS n FROM page_views GROUP BY page) r USING (page)}),
	't', 'merged to days');

# ==== partitioned and distributed rollups =============================================================================
# Rollups (docs/cookbook.md) in a partitioned table, filled by the trigger, and in a distributed table of Citus, where the function's
# INSERT … SELECT runs after each load, on the workers: each is what the rows make.

my $add = q{INSERT INTO hourly AS h
	SELECT page, at / 3600, streamfilter_agg(visitor, 'ell(memory=16kB)') FROM added GROUP BY 1, 2 ORDER BY 1, 2
	ON CONFLICT (page, hour) DO UPDATE SET visitors = h.visitors || excluded.visitors};
my $wrong = q{SELECT count(*) > 20, count(*) FILTER (WHERE h.visitors::text IS DISTINCT FROM r.visitors::text)
	FROM hourly h FULL JOIN (SELECT page, at / 3600 AS hour, streamfilter_agg(visitor, 'ell(memory=16kB)') AS visitors
		FROM page_views GROUP BY 1, 2) r USING (page, hour)};

sub load { my ($first) = @_; return "SELECT i * 7, i % 5, i % 777 + $first FROM generate_series(1, 4000) i"; }

$node->stop;
$node = start_node('partitioned', 'fsync = off');
on($node);
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
