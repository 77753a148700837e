# Citus: filters on every node. They are made where they are missing, nodes come and go, reference tables are refused, a
# worker takes events, and connections of one transaction know each other.
use Sf;
use CitusCluster;

my $citus = CitusCluster->new(workers => 3, spare => 1, checks => 40);

sub replay
{
	my ($last, $node) = @_;
	($node // $citus->coordinator)->safe_psql('postgres', "INSERT INTO events SELECT i, i FROM generate_series(1, $last) i");
	return $citus->counts('events', 'key');
}

my $trigger = q{FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'key')};
sql(qq{
	CREATE ROLE reader;
	CREATE FOREIGN TABLE seen (key int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
	GRANT SELECT ON seen TO reader;
	CREATE TABLE events (id int, key int);
	CREATE TRIGGER zz BEFORE INSERT ON events $trigger});
like($citus->messages(q{SELECT create_distributed_table('events', 'key')}),
	qr/filter public.seen does not exist on this node.*HINT:.*streamfilter_distribute\('public.seen'\)/s, 'a filter that is missing on a node');
is(sql(q{SELECT streamfilter_distribute('seen')}), 2, 'is made there');
is(sql(q{SELECT streamfilter_distribute('seen')}), 2, 'once');
is($citus->node(1)->safe_psql('postgres', q{SELECT has_table_privilege('reader', 'seen', 'SELECT'), has_table_privilege('reader', 'seen', 'INSERT')}),
	't|f', 'with its rights');
# A worker's identity of the filter ends with its number.
my $definition = q{SELECT regexp_replace(streamfilter_definition('seen'), '@\d+', '')};
is($citus->node(1)->safe_psql('postgres', $definition), sql($definition), 'and defined as here');
sql(q{SELECT create_distributed_table('events', 'key')});
is(replay(1000), '1000|1000', 'the table is distributed');
is(replay(1100), '1100|1100', 'and judged');

$citus->node(1)->safe_psql('postgres', q{SET citus.enable_ddl_propagation = off; ALTER FOREIGN TABLE seen OPTIONS (SET keys '200000')});
like($citus->messages(q{SELECT streamfilter_distribute('seen')}), qr/defined otherwise on node.*keys '200000'/s, 'a definition that differs');
$citus->node(1)->safe_psql('postgres', q{SET citus.enable_ddl_propagation = off; ALTER FOREIGN TABLE seen OPTIONS (SET keys '100000')});
# Its state did not fit: it learns again what its shards have.
sql(qq{DROP TRIGGER zz ON events; CREATE TRIGGER zz BEFORE INSERT ON events $trigger});
is(replay(1100), '1100|1100', 'CREATE TRIGGER fills a filter that has lost its keys');
like($citus->messages(q{SET ROLE reader; SELECT streamfilter_distribute('seen')}), qr/must be owner/, 'by its owner only');
like($citus->messages(q{SELECT streamfilter_distribute('seen')}, $citus->node(1)), qr/from the coordinator/, 'and from the coordinator');
like($citus->messages(q{SET citus.enable_ddl_propagation = off; DROP FOREIGN TABLE seen}), qr/other objects depend on it/, 'DROP of a filter that triggers use');

# ---- a node comes

$citus->add_node(3);
is($citus->node(3)->safe_psql('postgres', $definition), sql($definition), 'citus_add_node brings the filter');
sql(q{SELECT rebalance_table_shards(shard_transfer_mode => 'block_writes')});
cmp_ok(sql('SELECT count(*) FROM citus_shards WHERE nodeport = ' . $citus->node(3)->port), '>', 0, 'shards go there');
is(replay(1200), '1200|1200', 'with their keys');

# ---- tables that cannot be judged

like($citus->messages(qq{
		CREATE TABLE copied (id int, key int);
		SELECT create_reference_table('copied');
		CREATE TRIGGER zz BEFORE INSERT ON copied $trigger}),
	qr/cannot judge rows of reference table "copied".*HINT:  Distribute the table/s, 'a trigger on a reference table');
like($citus->messages(qq{
		CREATE TABLE copied_later (id int, key int);
		CREATE TRIGGER zz BEFORE INSERT ON copied_later $trigger;
		SELECT create_reference_table('copied_later')}),
	qr/cannot judge rows of reference table "copied_later"/, 'a reference table with a trigger');
like($citus->messages(qq{
		CREATE TABLE by_id (id int, key int);
		SELECT create_distributed_table('by_id', 'id');
		CREATE TRIGGER zz BEFORE INSERT ON by_id $trigger}),
	qr/WARNING:.*not distributed by a part of the key.*"id"/s, 'a distribution column outside of the key');
sql('DROP TABLE by_id, copied, copied_later');

# ---- through a worker that has shards, first of all after a restart

foreach my $rounds (1, 2)
{
	$citus->node($_)->restart foreach 0 .. 3;
	is(replay(1200 + 100 * $rounds, $citus->node(1)), join('|', (1200 + 100 * $rounds) x 2), "the first INSERT goes through a worker: $rounds");
}

# ---- several connections of one transaction to a node: a key of one is a repeat for the others, which do not wait

sql(qq{CREATE TABLE others (id int, key int); SELECT create_distributed_table('others', 'key', colocate_with => 'none', shard_count => 5);
	CREATE TRIGGER zz BEFORE INSERT ON others $trigger});
my %place = map { split /\|/ } split /\n/, sql(q{SELECT shardid, nodeport FROM citus_shards});
my $elsewhere = grep { my ($one, $other) = split /\|/; $place{$one} != $place{$other} } split /\n/, sql(
	q{SELECT get_shard_id_for_distribution_column('events', k), get_shard_id_for_distribution_column('others', k) FROM generate_series(70001, 70400) k});
sql(q{SET statement_timeout = '60s'; BEGIN; SET LOCAL citus.force_max_query_parallelization = on;
	INSERT INTO events SELECT k, k FROM generate_series(70001, 70400) k;
	INSERT INTO others SELECT k, k FROM generate_series(70001, 70400) k; COMMIT});
is(sql('SELECT count(*) FROM others'), $elsewhere, 'one filter for two tables, in one transaction');
sql('DELETE FROM events WHERE key > 70000');

# ---- more keys than max_in_flight

foreach my $node (map { $citus->node($_) } 0 .. 3)
{
	$node->append_conf('postgresql.conf', "streamfilter.max_in_flight = 1000\nstreamfilter.dynamic_memory = 0");
	$node->restart;
}
my $started = time;
like($citus->messages('INSERT INTO events SELECT i, i FROM generate_series(10001, 60000) i'),
	qr/too many keys of one distributed transaction.*streamfilter.max_in_flight, now 1000/s, 'without memory to grow, more keys in a transaction are refused, and told why');
cmp_ok(time - $started, '<', 60, 'soon');
is(sql('SELECT count(*) FROM events'), 1400, 'and nothing is stored');
sql("INSERT INTO events SELECT i, i FROM generate_series(10000 + 400 * $_, 10399 + 400 * $_) i") foreach 1 .. 20;
is(sql('SELECT count(*), count(DISTINCT key) FROM events'), '9400|9400', 'in parts they are stored');

# A large table: its filters read the shards before the trigger comes.
sql(q{
	CREATE FOREIGN TABLE seen_large (key int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
	SELECT streamfilter_distribute('seen_large');
	CREATE TABLE large (id int, key int);
	SELECT create_distributed_table('large', 'key');
	INSERT INTO large SELECT i, i FROM generate_series(1, 20000) i});
my $on_large = q{CREATE TRIGGER zz BEFORE INSERT ON large FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_large', 'key')};
like($citus->messages($on_large), qr/cannot PREPARE a transaction that has added so many keys/, 'nor does a trigger learn more at once');
is(sql(q{SELECT bool_and(success), sum(result::int)
	FROM run_command_on_shards('large', $$SELECT streamfilter_warm('seen_large', '%s', '{key}')$$)}), 't|20000', 'each shard for itself is read');
sql("INSERT INTO large SELECT i, i FROM generate_series(20001, 20200) i; $on_large");
sql('INSERT INTO large SELECT i, i FROM generate_series(19000, 20400) i');
is($citus->counts('large', 'key'), '20400|20400', 'and the trigger learns the rest');

foreach my $node (map { $citus->node($_) } 0 .. 3)
{
	$node->append_conf('postgresql.conf', 'streamfilter.dynamic_memory = 256MB');
	$node->reload;
}
sql('INSERT INTO events SELECT i, i FROM generate_series(10001, 60000) i');
is($citus->counts('events', 'key'), '51400|51400', 'with memory to grow they are stored in one transaction');
sql('INSERT INTO events SELECT i, i FROM generate_series(10001, 60000) i');
is($citus->counts('events', 'key'), '51400|51400', 'and repeats after it');
sql(q{SET statement_timeout = '60s'; BEGIN; SET LOCAL citus.force_max_query_parallelization = on;
	INSERT INTO events SELECT k, k FROM generate_series(100001, 120000) k;
	INSERT INTO others SELECT k, k FROM generate_series(100001, 120000) k; ROLLBACK});
is(replay(1400), '51400|51400', 'what rolls back is not');
sql(q{DROP TRIGGER zz ON large; SELECT run_command_on_all_nodes('TRUNCATE seen_large')});
sql($on_large);
sql('INSERT INTO large SELECT i, i FROM generate_series(1, 50000) i');
is($citus->counts('large', 'key'), '50000|50000', 'a trigger learns all that a table has');
is($citus->node($_)->safe_psql('postgres', q{SELECT sum(in_flight) FROM streamfilter_stats}), 0, "nothing is left in flight on node $_") foreach 0 .. 3;
is($citus->node($_)->safe_psql('postgres', q{SELECT dynamic FROM streamfilter_memory()}), 0, "nor any memory taken on node $_") foreach 0 .. 3;

done_testing();
