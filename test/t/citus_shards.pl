# Citus: rows that exist already are never judged, and keys are where their shard is. Tables that are distributed, altered
# and undistributed keep their rows; shards that are moved, split and rebalanced bring their keys along.
use Sf;
use CitusCluster;

my $citus = CitusCluster->new(workers => 3, checks => 44);

# Sends every event again: what is stored then.
sub replay
{
	my ($table, $last) = @_;
	sql("INSERT INTO $table (id, key) SELECT i, i FROM generate_series(1, $last) i");
	return $citus->counts($table, 'key');
}

sub trigger_on
{
	my ($table, $filter) = @_;
	sql("CREATE TRIGGER zz BEFORE INSERT ON $table FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$filter', 'key')");
	return;
}

sub make_filter
{
	my ($filter, $options) = @_;
	$citus->everywhere("CREATE FOREIGN TABLE $filter (key int) SERVER streamfilter OPTIONS ("
		  . ($options // q{kind 'bloom', keys '100000', fpr '1e-6'}) . ')');
	return;
}

# ---- a table with rows is distributed, altered, undistributed; the coordinator has shards, too

sql('SELECT citus_set_node_property(' . $citus->place(0) . q{, 'shouldhaveshards', true)});
make_filter('seen');
sql('CREATE TABLE events (id int, key int)');
trigger_on('events', 'seen');
sql('INSERT INTO events SELECT i, i FROM generate_series(1, 5000) i');
sql(q{SELECT create_distributed_table('events', 'key')});
is($citus->counts('events', 'key'), '5000|5000', 'create_distributed_table keeps the rows');
is(replay('events', 5000), '5000|5000', 'and the filters beside them know their keys');
sql(q{SELECT undistribute_table('events')});
is($citus->counts('events', 'key'), '5000|5000', 'undistribute_table keeps the rows');
is(replay('events', 5000), '5000|5000', 'and the coordinator knows their keys');
sql(q{SELECT create_distributed_table('events', 'key', shard_count => 3)});
is($citus->counts('events', 'key'), '5000|5000', 'distributed again, where every filter knows every key');
is(replay('events', 5000), '5000|5000', 'and known');
sql(q{SELECT alter_distributed_table('events', shard_count => 8, cascade_to_colocated => false)});
is($citus->counts('events', 'key'), '5000|5000', 'alter_distributed_table keeps the rows');
is(replay('events', 5100), '5100|5100', 'and their keys, and takes new ones');

# Duplicates that the table has are its own business; repeats of the same transaction are not.
sql(q{
	SELECT undistribute_table('events');
	ALTER TABLE events DISABLE TRIGGER zz;
	INSERT INTO events SELECT 0, i FROM generate_series(1, 100) i;
	ALTER TABLE events ENABLE TRIGGER zz});
sql(q{BEGIN; SELECT create_distributed_table('events', 'key'); INSERT INTO events SELECT i, i FROM generate_series(1, 200) i; COMMIT});
is($citus->counts('events', 'key'), '5200|5100', 'a copy keeps duplicates, an INSERT in the same transaction adds none');
sql(q{SELECT undistribute_table('events'); BEGIN; SELECT create_distributed_table('events', 'key'); ROLLBACK});
is($citus->counts('events', 'key'), '5200|5100', 'a rolled-back create_distributed_table');
is(replay('events', 5100), '5200|5100', 'leaves all as it was');

# A trigger that comes to a distributed table with rows.
make_filter('seen_late');
sql(q{CREATE TABLE late (id int, key int); SELECT create_distributed_table('late', 'key');
	INSERT INTO late SELECT i, i FROM generate_series(1, 1000) i});
trigger_on('late', 'seen_late');
is(replay('late', 1500), '1500|1500', 'CREATE TRIGGER learns what the shards have');

# Tables with partitions.
make_filter('seen_parted');
sql(q{CREATE TABLE parted (id int, key int) PARTITION BY RANGE (id);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (500);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (500) TO (100000)});
trigger_on('parted', 'seen_parted');
replay('parted', 1000);
sql(q{SELECT create_distributed_table('parted', 'key')});
is($citus->counts('parted', 'key'), '1000|1000', 'a table with partitions is distributed');
is(replay('parted', 1100), '1100|1100', 'with its keys');
sql(q{SELECT undistribute_table('parted')});
is(replay('parted', 1200), '1200|1200', 'and undistributed');
sql(q{SELECT create_distributed_table('parted', 'key')});

# ---- shards move

sql('SELECT citus_set_node_property(' . $citus->place(0) . q{, 'shouldhaveshards', false)});
make_filter('seen_moved');
sql(q{CREATE TABLE moved (id int, key int PRIMARY KEY)});
trigger_on('moved', 'seen_moved');
sql(q{SELECT create_distributed_table('moved', 'key', colocate_with => 'none', shard_count => 3)});
replay('moved', 3000);
foreach my $mode (qw(block_writes force_logical block_writes force_logical))
{
	is($citus->move_shard('moved', 0, $mode), '', "a shard moves: $mode");
	is(replay('moved', 3000), '3000|3000', 'its keys move with it');
}
is($citus->move_shard('parted', 0, 'block_writes'), '', 'a shard with partitions moves');
is(replay('parted', 1200), '1200|1200', 'its keys move with it');

# Rows that come while a shard moves: a writer of each kind of row, and all of it again afterwards.
foreach my $mode (qw(block_writes force_logical))
{
	make_filter("seen_$mode");
	sql("CREATE TABLE busy_$mode (id int, key int PRIMARY KEY)");
	trigger_on("busy_$mode", "seen_$mode");
	sql("SELECT create_distributed_table('busy_$mode', 'key', colocate_with => 'none', shard_count => 3)");
	my $script = $PostgreSQL::Test::Utils::tmp_check . "/busy_$mode.sql";
	PostgreSQL::Test::Utils::append_to_file($script, "\\set k random(1, 4000)\nINSERT INTO busy_$mode VALUES (:k, :k) ;\n");
	my @command = (qw(pgbench -n -c 3 -T 12 -f), $script, '-h', $citus->coordinator->host, '-p', $citus->coordinator->port, 'postgres');
	my ($out, $error) = ('', '');
	my $load = IPC::Run::start(\@command, '>', \$out, '2>', \$error);
	my $failed = '';
	foreach my $round (1 .. 2) { $failed .= $citus->move_shard("busy_$mode", $_, $mode) foreach 0 .. 2; }
	is($failed, '', "six moves under load: $mode");
	$load->finish;
	is($error, '', 'no client failed: a repeat that passes would meet the primary key');
	my $kept = $citus->counts("busy_$mode", 'key');
	sql("INSERT INTO busy_$mode SELECT key, key FROM busy_$mode");
	is($citus->counts("busy_$mode", 'key'), $kept, 'and every key is known where its shard is now');
}

# Online, a filter that follows its table forgets what is deleted during the move.
make_filter('seen_followed', q{kind 'clq', memory '256kB'});
sql(q{CREATE TABLE followed (id int, key int PRIMARY KEY)});
trigger_on('followed', 'seen_followed');
sql(q{CREATE TRIGGER follow AFTER DELETE ON followed FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen_followed', 'key');
	SELECT create_distributed_table('followed', 'key', colocate_with => 'none', shard_count => 2)});
replay('followed', 500);
is($citus->move_shard('followed', 0, 'force_logical'), '', 'a table that the filter follows moves');
# One by one: what deletes keys on several nodes at once cannot be prepared.
sql(join '', map { "DELETE FROM followed WHERE key = $_;\n" } 1 .. 30);
is(replay('followed', 500), '500|500', 'deleted rows can come again');

# Keys of rows that are gone stay behind, unless the filters are merged.
make_filter('seen_purged', q{kind 'bloom', keys '1000', fpr '1e-6', seed '7'});
sql(q{CREATE TABLE purged (id int, key int PRIMARY KEY)});
trigger_on('purged', 'seen_purged');
sql(q{SELECT create_distributed_table('purged', 'key', colocate_with => 'none', shard_count => 1)});
replay('purged', 200);
sql('DELETE FROM purged WHERE key <= 100');
is(replay('purged', 200), '100|100', 'repeats of purged events');
my ($old) = grep { $citus->node($_)->safe_psql('postgres', q{SELECT streamfilter_test('seen_purged', 1)}) eq 't' } 1 .. 3;
my $value = $citus->node($old)->safe_psql('postgres', q{SELECT streamfilter_value('seen_purged')});
$citus->node($old % 3 + 1)->safe_psql('postgres', "SELECT streamfilter_merge('seen_purged', '$value')");
is($citus->move_shard('purged', 0, 'block_writes'), '', 'a shard moves to a node whose filter has what the old one knew');
is(replay('purged', 210), '110|110', 'and they are repeats there');

# ---- shards split, and are spread anew

foreach my $mode (qw(block_writes force_logical))
{
	my ($shard, $lower, $upper) = split /\|/, sql(
		q{SELECT shardid, shardminvalue, shardmaxvalue FROM pg_dist_shard WHERE logicalrelid = 'moved'::regclass ORDER BY shardid LIMIT 1});
	my $middle = int(($lower + $upper) / 2);
	my @nodes = split /\n/, sql(q{SELECT nodeid FROM pg_dist_node WHERE shouldhaveshards ORDER BY nodeid LIMIT 2});
	sql("SELECT citus_split_shard_by_split_points($shard, ARRAY['$middle'], ARRAY[$nodes[0], $nodes[1]], '$mode')");
	is(replay('moved', 3000), '3000|3000', "a shard is split: $mode");
}
sql('SELECT citus_drain_node(' . $citus->place(3) . q{, shard_transfer_mode => 'block_writes')});
is(replay('moved', 3000), '3000|3000', 'a node is drained');
sql('SELECT citus_set_node_property(' . $citus->place(3) . q{, 'shouldhaveshards', true);
	SELECT rebalance_table_shards(shard_transfer_mode => 'block_writes')});
cmp_ok(sql('SELECT count(*) FROM citus_shards WHERE nodeport = ' . $citus->node(3)->port), '>', 0, 'shards are spread anew');
is(replay('moved', 3100), '3100|3100', 'with their keys');
is(replay('events', 5200), '5300|5200', 'of every table');

sql('CREATE TABLE online (id int, key int PRIMARY KEY)');
make_filter('seen_online');
trigger_on('online', 'seen_online');
replay('online', 2000);
sql(q{SELECT create_distributed_table_concurrently('online', 'key')});
is($citus->counts('online', 'key'), '2000|2000', 'create_distributed_table_concurrently');
is(replay('online', 2100), '2100|2100', 'with its keys');

done_testing();
