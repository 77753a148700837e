# The bytes of a filter's log decide when an image is written. They are those of the rows that are there, whatever transactions
# and restarts have come in between, so that images do not come more and more often.
# flavours: quick faults
use Sf;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	streamfilter.min_log_size = '64kB'
	max_prepared_transactions = 5
	synchronous_commit = off
	fsync = off});
# Keys may be lost by a crash, definitions may not.
sql(q{
	SET synchronous_commit = on;
	CREATE FUNCTION log_bytes(regclass) RETURNS bigint AS '$libdir/streamfilter', 'streamfilter_log_bytes' LANGUAGE C STRICT;
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB');
	CREATE FOREIGN TABLE small (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB');
	CREATE PROCEDURE insert_one_by_one(first int, last int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN first .. last LOOP INSERT INTO seen VALUES (i); COMMIT; END LOOP;
	END $$});

sub log_bytes { return sql("SELECT log_bytes('$_[0]')"); }

# A tuple of a log row: 24 bytes of its header, 24 of columns, then the length of the data and the data.
my $truth = q{SELECT coalesce(sum(48 + 4 + length(data)), 0)
	FROM _streamfilter.streamfilter_log WHERE filter = '%s'::regclass};
sub is_true { my ($filter, $name) = @_; return is(log_bytes($filter), sql(sprintf $truth, $filter), $name); }

sql('INSERT INTO seen SELECT generate_series(1, 5000)');
is_true('seen', 'many keys');
sql('CALL insert_one_by_one(5001, 6000)');
is_true('seen', 'one by one');
crash();
sql('SELECT FROM seen WHERE id = 1');
is_true('seen', 'after a crash');
sql('CALL insert_one_by_one(6001, 6100)');
is_true('seen', 'and with what comes then');

sql(q{SELECT streamfilter_save('seen')});
is_true('seen', 'after an image');
my $at_rest = log_bytes('seen');
for my $round (1 .. 3)
{
	sql('CALL insert_one_by_one(' . 10000 * $round . ', ' . (10000 * $round + 300) . ')');
	sql('BEGIN; INSERT INTO seen SELECT generate_series(100000, 100300); ROLLBACK');
	sql(qq{BEGIN; INSERT INTO seen VALUES ($round + 50000); PREPARE TRANSACTION 'kept'});
	sql(qq{BEGIN; INSERT INTO seen VALUES ($round + 60000); PREPARE TRANSACTION 'undone'});
	sql(q{COMMIT PREPARED 'kept'});
	sql(q{ROLLBACK PREPARED 'undone'});
	sql(q{BEGIN; SAVEPOINT s; SELECT streamfilter_save('seen'); ROLLBACK TO s; INSERT INTO seen VALUES (70000); ROLLBACK});
	sql(q{SELECT streamfilter_save('seen')});
	is(log_bytes('seen'), $at_rest, "nothing is left after image $round");
}

# Images, counted: each comes of a log as large as its filter.
my $images = 0;
my $saved = '';
for my $part (0 .. 29)
{
	sql("INSERT INTO small SELECT generate_series($part * 100, $part * 100 + 99)");
	my $now = sql(q{SELECT coalesce(last_saved::text, '') FROM streamfilter_stats WHERE filter = 'small'::regclass});
	++$images if $now ne $saved;
	$saved = $now;
}
is($images, 0, '30 transactions of 100 keys write no image: their log is smaller than 64 kB');

# ==== WAL of a key ====================================================================================================
# What a logged filter adds to the write-ahead log beyond an unlogged one: a row of the log for each transaction, and eight bytes
# for each key of many.

# Nothing writes but the rows.
$node->stop;
$node = start_node('wal', q{
streamfilter.shared_memory = '16MB'
wal_level = minimal
max_wal_senders = 0
full_page_writes = off
checkpoint_timeout = '1h'
max_wal_size = '4GB'
fsync = off});
on($node);
for my $persistence ('logged', 'unlogged')
{
	sql(qq{
		CREATE TABLE $persistence (key bigint);
		CREATE FOREIGN TABLE seen_$persistence (key bigint) SERVER streamfilter
			OPTIONS (kind 'bloom', k '7', memory '1MB', persistence '$persistence');
		CREATE TRIGGER discard BEFORE INSERT ON $persistence FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_$persistence');
		INSERT INTO $persistence VALUES (-1)});
}

# Bytes for each of the keys that the statements insert.
sub bytes_per_key
{
	my ($keys, @statements) = @_;
	my $position = sub { sql(q{SELECT pg_current_wal_insert_lsn() - '0/0'}) };
	my $before = $position->();
	$node->safe_psql('postgres', join ';', @statements);
	return ($position->() - $before) / $keys;
}

sub added
{
	my ($keys, @statements) = @_;
	my %bytes;
	for my $table ('logged', 'unlogged') { $bytes{$table} = bytes_per_key($keys, map { s/TABLE/$table/r } @statements) }
	return $bytes{logged} - $bytes{unlogged};
}

my $single = added(1000, map { "INSERT INTO TABLE VALUES ($_)" } 1 .. 1000);
my $many = added(20000, 'INSERT INTO TABLE SELECT generate_series(10001, 30000)');
note("bytes of WAL for each key: $single singly, $many of 20,000");
cmp_ok($single, '<=', 130, 'a transaction of one key adds 130 bytes at the most');
cmp_ok($many, '<=', 8.5, 'one of many adds the eight bytes of their hashes, and half a byte for the rows that hold them');
done_testing();
