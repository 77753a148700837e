# Fan-in by logical replication: two ingest nodes discard what repeats there, a hub discards what both
# have. On the hub the trigger must be enabled ALWAYS, for workers run as replicas.
use Sf;

my $definition = q{
	CREATE EXTENSION streamfilter;
	CREATE TABLE events (id int, node text, n int);
	CREATE FOREIGN TABLE seen (id int)
	  SERVER streamfilter OPTIONS (kind 'bloom', keys '20000', fpr '1e-6', seed '1');
	CREATE TRIGGER zz BEFORE INSERT ON events
	  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');};

# ---- The ingest nodes ----------------------------------------------------------------------------------
my @ingest = map { PostgreSQL::Test::Cluster->new("ingest$_") } 0, 1;
foreach my $i (0, 1)
{
	$ingest[$i]->init(allows_streaming => 'logical');
	$ingest[$i]->append_conf('postgresql.conf', "shared_preload_libraries = 'streamfilter'");
	$ingest[$i]->start;
	$ingest[$i]->safe_psql(
		'postgres', qq{
		$definition
		CREATE PUBLICATION events FOR TABLE events WITH (publish = 'insert');
		INSERT INTO events SELECT i % 1000 + $i * 500, 'ingest$i', i FROM generate_series(1, 2000) i});
	is($ingest[$i]->safe_psql('postgres', 'SELECT count(*) FROM events'), '1000', "ingest $i discards its own repeats");
}

# ---- The hub -------------------------------------------------------------------------------------------
my $hub = PostgreSQL::Test::Cluster->new('hub');
$hub->init;
$hub->append_conf(
	'postgresql.conf', q{
	shared_preload_libraries = 'streamfilter'
	wal_retrieve_retry_interval = '100ms'
	deadlock_timeout = '50ms'});
$hub->start;
on($hub);
sql("$definition ALTER TABLE events ENABLE ALWAYS TRIGGER zz");

sub subscribe
{
	my ($i) = @_;
	my $connection = $ingest[$i]->connstr . ' dbname=postgres';
	sql("CREATE SUBSCRIPTION from$i CONNECTION '$connection' PUBLICATION events");
	$hub->wait_for_subscription_sync($ingest[$i], "from$i");
}

sub catch_up { $ingest[$_]->wait_for_catchup("from$_") for 0, 1; }

# Rows, distinct keys, and how many came from ingest 0.
sub hub_is
{
	my ($expected, $name) = @_;
	is(sql(q{SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE node = 'ingest0') FROM events}), $expected, $name);
}

subscribe(0);
hub_is('1000|1000|1000', 'the initial copy');
subscribe(1);
hub_is('1500|1500|1000', 'what a node has in common with the hub is discarded from its initial copy');

# What the nodes remember can be carried over without their rows.
my @values = map { sql(q{SELECT streamfilter_value('seen')}, $_) } @ingest;
sql(q{CREATE FOREIGN TABLE carried_over (id int)
	SERVER streamfilter OPTIONS (kind 'bloom', keys '20000', fpr '1e-6', seed '1')});
sql("SELECT streamfilter_merge('carried_over', '$_')") foreach @values;
is(sql(q{SELECT count(*) FILTER (WHERE streamfilter_test('carried_over', id)) = count(*),
	streamfilter_test('carried_over', 1500) FROM events}), 't|f', 'a filter takes over what two others remember');

# ---- The stream ----------------------------------------------------------------------------------------
sql(q{INSERT INTO events SELECT i, 'ingest0', 0 FROM generate_series(2000, 2099) i}, $ingest[0]);
catch_up();
sql(q{INSERT INTO events SELECT i, 'ingest1', 0 FROM generate_series(2050, 2149) i}, $ingest[1]);
catch_up();
hub_is('1650|1650|1100', 'the first to arrive stays');

# What a node changes later stays there: the publication is of insertions only.
sql(q{UPDATE events SET n = -1 WHERE id < 100; DELETE FROM events WHERE id = 2000}, $ingest[0]);
sql(q{BEGIN; INSERT INTO events SELECT i, 'ingest0', 0 FROM generate_series(2500, 2599) i; ROLLBACK}, $ingest[0]);
sql(q{INSERT INTO events SELECT i, 'ingest1', 0 FROM generate_series(2500, 2599) i}, $ingest[1]);
catch_up();
hub_is('1750|1750|1100', 'updates, deletions and what was rolled back do not arrive');

# Both at the same time, in opposite orders: the workers wait for each other, and where they would do so
# for ever one of them begins again.
sql(q{INSERT INTO events SELECT i, 'ingest0', 0 FROM generate_series(3000, 3999) i}, $ingest[0]);
sql(q{INSERT INTO events SELECT i, 'ingest1', 0 FROM generate_series(3999, 3000, -1) i}, $ingest[1]);
catch_up();
is(sql('SELECT count(*), count(DISTINCT id) FROM events WHERE id >= 3000'), '1000|1000', 'of keys that arrive at the same time one stays');

# ---- A crash of the hub: the progress of a subscription, its rows and its keys are of one transaction.
$hub->stop('immediate');
foreach my $i (0, 1)
{
	$ingest[$i]->safe_psql('postgres', "INSERT INTO events SELECT i, 'ingest$i', 0 FROM generate_series(1900, 2999) i");
}
$hub->start;
catch_up();
is(sql('SELECT count(*), count(DISTINCT id), count(DISTINCT id) FILTER (WHERE NOT streamfilter_test($$seen$$, id)) FROM events'),
	'3600|3600|0', 'after a crash of the hub nothing is lost and nothing is there twice');

# ---- Without ALWAYS, nothing is discarded.
sql('ALTER TABLE events ENABLE TRIGGER zz');
sql(q{INSERT INTO events VALUES (5000, 'ingest0', 0)}, $ingest[0]);
sql(q{INSERT INTO events VALUES (5000, 'ingest1', 0)}, $ingest[1]);
catch_up();
is(sql('SELECT count(*) FROM events WHERE id = 5000'), '2', 'an ordinary trigger does not fire');

sql('DROP SUBSCRIPTION from0; DROP SUBSCRIPTION from1');

# ---- The order of decoding: batches are written partition by partition.
SKIP:
{
	my $library = $ingest[0]->config_data('--pkglibdir');
	skip 'this server has no test_decoding', 3 unless -f "$library/test_decoding.so";
	$ingest[0]->safe_psql('postgres', q{
		CREATE TABLE parted (id int, part int) PARTITION BY LIST (part);
		CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0);
		CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
		CREATE FOREIGN TABLE seen_parted (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '1MB');
		CREATE TRIGGER zz BEFORE INSERT ON parted FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_parted');
		SELECT pg_create_logical_replication_slot('watched', 'test_decoding')});
	# How many rows were decoded, and how many of them after a row that came later: in their partition, in all.
	my $decoded = q{
		SELECT count(*), count(*) FILTER (WHERE id < in_part), count(*) FILTER (WHERE id < in_all) FROM (
			SELECT id, lag(id) OVER (PARTITION BY part ORDER BY place) AS in_part, lag(id) OVER (ORDER BY place) AS in_all FROM (
				SELECT place, substring(data FROM 'id.integer.:([0-9]+)')::int AS id, substring(data FROM 'part.integer.:([0-9]+)') AS part
				FROM pg_logical_slot_get_changes('watched', NULL, NULL) WITH ORDINALITY AS c (lsn, xid, data, place)
				WHERE data LIKE '%parted_%: INSERT:%') r) s};
	sql('INSERT INTO parted SELECT i, i % 2 FROM generate_series(1, 3000) i', $ingest[0]);
	like(sql($decoded, $ingest[0]), qr/^3000[|]0[|][0-9]+$/, 'rows of a partition are decoded as they came');
	sql(q{SET streamfilter.batch_insert = off; INSERT INTO parted SELECT i, i % 2 FROM generate_series(3001, 4000) i}, $ingest[0]);
	is(sql($decoded, $ingest[0]), '1000|0|0', 'all of them without batches');
	sql('INSERT INTO parted_0 SELECT i, 0 FROM generate_series(4001, 5000) i', $ingest[0]);
	is(sql($decoded, $ingest[0]), '1000|0|0', 'and where there is one table only');
	sql(q{SELECT pg_drop_replication_slot('watched')}, $ingest[0]);
}
done_testing();
