# Random tables, rows and statements: batches change nothing. test/equality/README.md tells how.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../equality";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Runner;

my $node = PostgreSQL::Test::Cluster->new('equality');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '24MB'
timezone = 'UTC'
lc_messages = 'C'
jit = off
autovacuum = off
max_prepared_transactions = 0
fsync = off});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION streamfilter');

my $seed = $ENV{STREAMFILTER_SEED} // 1 + int(rand(1_000_000_000));
my $cases = $ENV{STREAMFILTER_CASES} // 300;
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
note("STREAMFILTER_SEED=$seed");
is(Runner::run($seed, $cases, PostgreSQL::Test::Utils::tempdir_short(), sub { diag($_[0]) }, sub { $node->restart }),
	0, "$cases cases from seed $seed: the same in batches as row by row");

$node->stop;
done_testing();
