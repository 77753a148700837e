# Partitions on other servers by postgres_fdw: every shard has its filter and discards what repeats;
# and what holds of transactions, which commit there before they commit here.

# ---- Two shards and a coordinator ------------------------------------------------------------------
use Sf;

my @shards = map { PostgreSQL::Test::Cluster->new("shard$_") } 0, 1;
foreach my $shard (@shards)
{
	$shard->init;
	$shard->append_conf('postgresql.conf', "shared_preload_libraries = 'streamfilter'");
	$shard->start;
	$shard->safe_psql(
		'postgres', q{
		CREATE EXTENSION streamfilter;
		CREATE TABLE clicks (user_id int, n int);
		CREATE FOREIGN TABLE seen (user_id int)
		  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
		CREATE TRIGGER zz BEFORE INSERT ON clicks
		  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});
}
my $node = PostgreSQL::Test::Cluster->new('coordinator');
$node->init;
$node->append_conf('postgresql.conf', "statement_timeout = '30s'");
$node->start;
on($node);

# The answer of every shard.
sub on_shards { my ($statement) = @_; return join ' ', map { sql($statement, $_) } @shards; }

# Nothing is preloaded here: the extension is for streamfilter_slice_of.
sql('CREATE EXTENSION postgres_fdw; CREATE EXTENSION streamfilter');
foreach my $i (0, 1)
{
	sql(sprintf q{CREATE SERVER shard%d FOREIGN DATA WRAPPER postgres_fdw
		  OPTIONS (host '%s', port '%d', dbname 'postgres', batch_size '100', options '-c lock_timeout=500ms');
		CREATE USER MAPPING FOR CURRENT_USER SERVER shard%1$d}, $i, $shards[$i]->host, $shards[$i]->port);
}
sql(q{
	CREATE TABLE clicks (user_id int, n int) PARTITION BY HASH (user_id);
	CREATE FOREIGN TABLE clicks_0 PARTITION OF clicks FOR VALUES WITH (MODULUS 2, REMAINDER 0)
	  SERVER shard0 OPTIONS (table_name 'clicks');
	CREATE FOREIGN TABLE clicks_1 PARTITION OF clicks FOR VALUES WITH (MODULUS 2, REMAINDER 1)
	  SERVER shard1 OPTIONS (table_name 'clicks')});

# ---- Discarding --------------------------------------------------------------------------------------
like(sql(q{EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO clicks_0 VALUES (1, 1), (2, 2)}), qr/Batch Size: 100/, 'rows go in batches');
sql('INSERT INTO clicks SELECT i % 500, i FROM generate_series(1, 2000) i');
is(sql('SELECT count(*), count(DISTINCT user_id), max(n) FROM clicks'), '500|500|500',
	'of equal keys the first stays, within a batch and from batch to batch');
is(sql(q{WITH tag AS (INSERT INTO clicks SELECT i, i FROM generate_series(400, 599) i RETURNING user_id)
	SELECT count(*), min(user_id) FROM tag}), '100|500', 'RETURNING has what was kept');
sql("COPY clicks FROM PROGRAM 'seq -f %g,0 550 649' (FORMAT csv)");
is(sql('SELECT count(*) FROM clicks'), '650', 'COPY discards, too');
is(on_shards('SELECT count(*) > 200 FROM clicks'), 't t', 'both shards have their share');
is(on_shards(q{SELECT count(*) = accepted FROM clicks, streamfilter_stats GROUP BY accepted}), 't t', 'and as many keys as rows');

# ---- Transactions ------------------------------------------------------------------------------------
sql('BEGIN; INSERT INTO clicks SELECT i, 0 FROM generate_series(1000, 1099) i; ROLLBACK');
sql(q{BEGIN; INSERT INTO clicks VALUES (1100, 0), (1101, 0); SAVEPOINT a;
	INSERT INTO clicks SELECT i, 0 FROM generate_series(1102, 1199) i; ROLLBACK TO a; COMMIT});
my ($status) = $node->psql('postgres', 'INSERT INTO clicks SELECT i, 1 / (1299 - i) FROM generate_series(1200, 1299) i');
isnt($status, 0, 'a statement fails');
is(on_shards(q{SELECT count(*) FROM generate_series(1000, 1299) i WHERE streamfilter_test('seen', i)
	AND NOT EXISTS (SELECT FROM clicks WHERE user_id = i)}), '0 0', 'what was rolled back has left no key');
sql('INSERT INTO clicks SELECT i, 1 FROM generate_series(1000, 1299) i');
is(sql('SELECT count(*), count(DISTINCT user_id), count(*) FILTER (WHERE n = 0) FROM clicks WHERE user_id >= 1000'),
	'300|300|2', 'and can be inserted again');

# A key that another transaction has added is waited for on its shard, as long as lock_timeout allows:
# nobody finds out that transactions wait for each other on different shards.
my $holder = open_session('BEGIN; INSERT INTO clicks VALUES (1500, 0)');
like(said('INSERT INTO clicks VALUES (1499, 1), (1500, 1)'), qr/canceling statement due to lock timeout/, 'waiting on a shard is bounded');
end_session($holder, 'ROLLBACK');
sql('INSERT INTO clicks VALUES (1499, 2), (1500, 2)');
is(sql('SELECT count(*), min(n) FROM clicks WHERE user_id IN (1499, 1500)'), '2|2', 'and costs no key');

# The shards have committed when the coordinator fails: here a serialization failure, at the last moment.
sql('CREATE TABLE offsets (consumer int, at int); INSERT INTO offsets VALUES (1, 0), (2, 0)');
my $one = $node->background_psql('postgres', on_error_stop => 0);
my $two = $node->background_psql('postgres', on_error_stop => 0);
$one->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(at) FROM offsets');
$two->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(at) FROM offsets');
my $events = 'INSERT INTO clicks SELECT i, -7 FROM generate_series(2000, 2009) i';
$one->query_safe("UPDATE offsets SET at = 10 WHERE consumer = 1; $events");
$two->query_safe('UPDATE offsets SET at = 10 WHERE consumer = 2; COMMIT');
$one->query('COMMIT');
$_->quit for $one, $two;
is(sql('SELECT at FROM offsets WHERE consumer = 1'), '0', 'the coordinator has rolled back,');
is(sql('SELECT count(*) FROM clicks WHERE n = -7'), '10', 'the shards have not');
is(on_shards(q{SELECT count(*) FROM clicks WHERE n = -7 AND NOT streamfilter_test('seen', user_id)}), '0 0',
	'but a key is where its row is,');
sql("BEGIN; $events; UPDATE offsets SET at = 10 WHERE consumer = 1; COMMIT");
is(sql('SELECT count(*), (SELECT at FROM offsets WHERE consumer = 1) FROM clicks WHERE n = -7'), '10|10',
	'so that doing it again makes it right');

# ---- Partitions that are the same on every server -----------------------------------------------------
sql(q{
	CREATE TABLE visits (user_id int, n int) PARTITION BY LIST (streamfilter_slice_of(user_id, 2));
	CREATE FOREIGN TABLE visits_0 PARTITION OF visits FOR VALUES IN (0) SERVER shard0 OPTIONS (table_name 'visits');
	CREATE FOREIGN TABLE visits_1 PARTITION OF visits FOR VALUES IN (1) SERVER shard1 OPTIONS (table_name 'visits')});
foreach my $i (0, 1)
{
	# The shard refuses what is not its own.
	$shards[$i]->safe_psql(
		'postgres', qq{
		CREATE TABLE visits (user_id int CHECK (streamfilter_slice_of(user_id, 2) = $i), n int);
		CREATE FOREIGN TABLE visitors (user_id int)
		  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
		CREATE TRIGGER zz BEFORE INSERT ON visits
		  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('visitors')});
}
sql('INSERT INTO visits SELECT i % 300, i FROM generate_series(1, 900) i');
is(sql('SELECT count(*), count(DISTINCT user_id), max(n) FROM visits'), '300|300|300', 'by streamfilter_slice_of');
like(sql(q{EXPLAIN (COSTS OFF) SELECT * FROM visits WHERE streamfilter_slice_of(user_id, 2) = 1}),
	qr/^Foreign Scan on visits_1/, 'one part is asked where one is wanted');

# ---- Keys for a filter there -------------------------------------------------------------------------
# A table of postgres_fdw over a filter takes keys, to warm it; it is none for functions and triggers here.
sql(q{CREATE FOREIGN TABLE far_seen (user_id int) SERVER shard0 OPTIONS (table_name 'seen');
	INSERT INTO far_seen SELECT generate_series(100001, 100500)});
is(sql(q{SELECT count(*) FROM generate_series(100001, 100500) i WHERE streamfilter_test('seen', i)}, $shards[0]), '500',
	'INSERT into a table over a filter warms it');
like(said(q{SELECT streamfilter_test('far_seen', 1)}), qr/ERROR:  "far_seen" is not a filter\nHINT:/, 'it is no filter here');

done_testing();
