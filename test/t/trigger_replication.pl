# A trigger that fires in a logical replication worker: rows of a table without partitions are
# judged; in a partition a new row looks like one that an UPDATE has moved there, so the worker stops.
# flavours: quick faults one_by_one
use Sf;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->start;
my $subscriber = start_node('subscriber', '', allows_streaming => 'logical');

my $tables = q{
	CREATE TABLE flat (n int, id int);
	CREATE TABLE parted (k int, id int, PRIMARY KEY (k, id)) PARTITION BY LIST (k);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);};
sql("$tables CREATE PUBLICATION p FOR TABLE flat, parted WITH (publish_via_partition_root = true)");
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql(
	'postgres', qq{
	$tables
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter
	  OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
	CREATE TRIGGER zz BEFORE INSERT ON flat FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TRIGGER zz BEFORE INSERT ON parted FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	ALTER TABLE flat ENABLE ALWAYS TRIGGER zz;
	CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p;});
$subscriber->wait_for_subscription_sync($publisher, 's');

sql('INSERT INTO flat VALUES (1, 7), (2, 7), (3, 8); INSERT INTO parted VALUES (1, 7), (1, 9)');
$publisher->wait_for_catchup('s');
is(sql('SELECT string_agg(n::text, $$ $$ ORDER BY n) FROM flat', $subscriber), '1 3', 'repeats are discarded by the worker');
is(sql('SELECT count(*) FROM parted', $subscriber), '2', 'a trigger that is not enabled for replication does not fire there');

sql('UPDATE parted SET k = 2 WHERE id = 9');
$publisher->wait_for_catchup('s');
is(sql('SELECT tableoid::regclass FROM parted WHERE id = 9', $subscriber), 'parted_2', 'rows move between partitions');

# The subscriber's own statements are told apart in replica sessions, too.
sql('ALTER TABLE parted ENABLE ALWAYS TRIGGER zz', $subscriber);
is($subscriber->safe_psql(
		'postgres', q{
		SET session_replication_role = replica;
		INSERT INTO parted VALUES (1, 10), (2, 10);
		UPDATE parted SET k = 2 WHERE id = 10;
		SELECT tableoid::regclass FROM parted WHERE id = 10}),
	'parted_2',
	'statements of a replica session');

my $start = -s $subscriber->logfile;
sql('INSERT INTO parted VALUES (1, 11)');
my $error = qr/cannot tell whether a row is new in partition "parted_1" or moved there/;
ok($subscriber->poll_query_until('postgres',
		q{SELECT apply_error_count > 0 FROM pg_stat_subscription_stats}),
	'in a partition the worker fails');
like(slurp_file($subscriber->logfile, $start), $error, 'and says why');
is(sql('SELECT count(*) FROM parted WHERE id = 11', $subscriber), '0', 'no row is lost:');
sql('ALTER TABLE parted ENABLE TRIGGER zz', $subscriber);
$publisher->wait_for_catchup('s');
is(sql('SELECT count(*) FROM parted WHERE id = 11', $subscriber), '1', 'it comes when the trigger leaves replication alone');

sql('DROP SUBSCRIPTION s', $subscriber);
done_testing();
