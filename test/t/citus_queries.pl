# Citus, where it is installed: a coordinator with shards of its own, and a worker. What is pushed down
# to the shards and combined, what is gathered, and discarding on shards.
use Sf;
use Needs;

my $node = PostgreSQL::Test::Cluster->new('coordinator');
$node->init;
$node->start;
my $installed = sql(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'});
needs($installed ne '0', 'Citus is not installed', 14);
my $worker = PostgreSQL::Test::Cluster->new('worker');
$worker->init;
$worker->start;
foreach my $one ($node, $worker)
{
	$one->append_conf(
		'postgresql.conf', q{
		shared_preload_libraries = 'citus,streamfilter'
		wal_level = logical
		max_prepared_transactions = 10
		citus.shard_count = 4
		citus.enable_statistics_collection = off
		citus.enable_unsafe_triggers = on});
	$one->restart;
	sql('CREATE EXTENSION citus; CREATE EXTENSION streamfilter', $one);
}

sql(sprintf q{
	SELECT citus_set_coordinator_host('%s', %d);
	SELECT citus_set_node_property('%1$s', %2$d, 'shouldhaveshards', true);
	SELECT citus_add_node('%3$s', %4$d)}, $node->host, $node->port, $worker->host, $worker->port);
sql(q{
	CREATE TABLE events (id int, key int, word text);
	SELECT create_distributed_table('events', 'key');
	INSERT INTO events SELECT i, i % 500, 'w' || i % 300 FROM generate_series(1, 3000) i});
is(sql('SELECT count(DISTINCT nodename || nodeport), count(*) FROM citus_shards'), '2|4', 'shards on both nodes');

# Aggregates over hashes: every shard sends its state.
my $pushed = qr/worker_(binary_)?partial_agg/;
my $count = 'SELECT approx_count_distinct_hash(streamfilter_hash(word)) FROM events';
like(sql("EXPLAIN (VERBOSE, COSTS OFF) $count"), $pushed, 'counting is pushed down');
is(sql($count), sql(q{SELECT approx_count_distinct('w' || i % 300) FROM generate_series(1, 3000) i}), 'and the count is that of one place');
my $fill = q{SELECT streamfilter_hash_agg(streamfilter_hash(key), 'bloom(memory=4kB, k=5)') AS f FROM events};
like(sql("EXPLAIN (VERBOSE, COSTS OFF) $fill"), $pushed, 'filling is pushed down');
is(sql("SELECT bool_and(f @> i), f @> 500 FROM ($fill) AS f, generate_series(0, 499) i GROUP BY 2"),
	't|f', 'and the filter holds the keys of all shards');
sql(q{
	CREATE TABLE filters (part int, f streamfilter);
	SELECT create_distributed_table('filters', 'part');
	INSERT INTO filters SELECT i, streamfilter_add('bloom(memory=4kB, k=5)', i) FROM generate_series(1, 20) i});
my $union = 'SELECT streamfilter_union_agg(f) AS f FROM filters';
like(sql("EXPLAIN (VERBOSE, COSTS OFF) $union"), $pushed, 'a union is pushed down');
is(sql("SELECT bool_and(f @> i) FROM ($union) AS f, generate_series(1, 20) i"), 't', 'and is whole');

# Aggregates over keys of any type: rows are gathered, except where groups do not cross shards.
my $any = 'SELECT approx_count_distinct(word) FROM events';
unlike(sql("EXPLAIN (VERBOSE, COSTS OFF) $any"), $pushed, 'counting keys of any type gathers rows');
is(sql($any), sql($count), 'and counts the same');
is(sql(q{SELECT f @> 7 FROM (SELECT streamfilter_agg(key, 'bloom(memory=4kB, k=5)') AS f FROM events) AS f}),
	't', 'filling with keys of any type');
is(sql('SELECT count(*), sum(n) FROM (SELECT key, approx_count_distinct(word) AS n FROM events GROUP BY key) AS t'),
	sql('SELECT count(*), sum(n) FROM (SELECT key, count(DISTINCT word) AS n FROM events GROUP BY key) AS t'),
	'groups by the distribution column');
# Why their state is internal: of polymorphic aggregates with another state, the call fails.
sql(q{
	CREATE FUNCTION count_one(bigint, anyelement) RETURNS bigint LANGUAGE sql AS 'SELECT $1 + 1';
	CREATE AGGREGATE count_any(anyelement)
	  (SFUNC = count_one, STYPE = bigint, INITCOND = '0', COMBINEFUNC = int8pl)});
like(said('SELECT count_any(word) FROM events'), qr/could not confirm type correctness/, 'the engine hands over declared types only');

# Discarding: the filter is on every node, the trigger on every shard; a key is always on one node.
sql(q{
	SELECT * FROM run_command_on_all_nodes($$CREATE FOREIGN TABLE seen (key int)
	  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6')$$);
	TRUNCATE events;
	-- A filter is read in at first use, in a subtransaction; which Citus would pass on amid a COPY.
	SELECT * FROM run_command_on_all_nodes($$SELECT streamfilter_test('seen', 0)$$);
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'key')});
sql('INSERT INTO events SELECT i, i % 500 FROM generate_series(1, 3000) i');
is(sql('SELECT count(*), count(DISTINCT key) FROM events'), '500|500', 'repeats are discarded on the shards');
sql('BEGIN; INSERT INTO events SELECT i, i FROM generate_series(1000, 1099) i; ROLLBACK');
sql('INSERT INTO events SELECT i, i FROM generate_series(900, 1099) i');
is(sql('SELECT count(*), count(DISTINCT key) FROM events'), '700|700', 'a rolled-back transaction leaves no key');

done_testing();
