# Random tables, rows and statements: batches change nothing. test/equality/README.md tells how.
use Sf;
use lib "$root/test/equality";
use Runner;

my $node = start_node('equality', q{
	streamfilter.shared_memory = '24MB'
	timezone = 'UTC'
	lc_messages = 'C'
	jit = off
	max_prepared_transactions = 0
	fsync = off});

my $seed = $ENV{STREAMFILTER_SEED} // 1 + int(rand(1_000_000_000));
my $cases = $ENV{STREAMFILTER_CASES};
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
note("STREAMFILTER_SEED=$seed");
my ($done, $different) = Runner::run(
	first => $seed,
	count => $cases // 300,
	seconds => $cases ? undef : 45,
	directory => PostgreSQL::Test::Utils::tempdir_short(),
	report => sub { diag($_[0]) },
	restart => sub { $node->restart });
is($different, 0, "$done cases from seed $seed: the same in batches as row by row");

done();
