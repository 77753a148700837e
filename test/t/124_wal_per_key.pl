# What a logged filter adds to the write-ahead log beyond an unlogged one: a row of the log for each transaction, and eight bytes
# for each key of many.
# flavours: faults
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Servers;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('wal');
$node->init;
# Nothing writes but the rows.
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '16MB'
wal_level = minimal
max_wal_senders = 0
full_page_writes = off
checkpoint_timeout = '1h'
max_wal_size = '4GB'
autovacuum = off
fsync = off});
$node->start;
$node->safe_psql('postgres', q{CREATE EXTENSION streamfilter});
for my $persistence ('logged', 'unlogged')
{
	$node->safe_psql('postgres', qq{
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
	my $position = sub { $node->safe_psql('postgres', q{SELECT pg_current_wal_insert_lsn() - '0/0'}) };
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
