# What a logged filter adds to the write-ahead log beyond an unlogged one: a row of the log for each transaction, and eight bytes
# for each key of many.
# flavours: faults
use Sf;

# Nothing writes but the rows.
my $node = start_node('wal', q{
streamfilter.shared_memory = '16MB'
wal_level = minimal
max_wal_senders = 0
full_page_writes = off
checkpoint_timeout = '1h'
max_wal_size = '4GB'
fsync = off});
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
