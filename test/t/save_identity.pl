# A filter keeps the seed of its first keys, whichever transaction brings them: transactions that commit, roll back, are prepared and end before
# or after a crash, are saved in between. Every filter takes a random way; a failing one is repeated by STREAMFILTER_SEED.
use Sf;

my $seed = $ENV{STREAMFILTER_SEED} // time;
srand($seed);
note("seed $seed");
my $filters = 60;
my $rounds = 5;

my $node = PostgreSQL::Test::Cluster->new('main');
# A page is changed by hand below: without checksums, which are on since 18.
$node->init($node->pg_version >= 18 ? (extra => ['--no-data-checksums']) : ());
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '32MB'
	streamfilter.max_filters = 200
	max_prepared_transactions = 200
	autovacuum = off
	fsync = off});
$node->start;
sql('CREATE EXTENSION streamfilter');
$node->safe_psql('postgres', join ';', map {
	"CREATE FOREIGN TABLE f$_ (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '16kB')" } 1 .. $filters);

my (%known, %unknown, %prepared);    # keys of each filter; prepared: gid to keys
my $key = 0;
my $gid = 0;
my @way = map { '' } 0 .. $filters;

sub some_keys
{
	my $count = 1 + int rand 3;
	$key += $count;
	return $key - $count + 1 .. $key;
}
sub insert { my ($f, @keys) = @_; return "INSERT INTO f$f VALUES " . join ',', map { "($_)" } @keys; }

my %step = (
	commit => sub {
		my ($f) = @_;
		my @keys = some_keys();
		push @{ $known{$f} }, @keys;
		return insert($f, @keys);
	},
	rollback => sub {
		my ($f) = @_;
		my @keys = some_keys();
		push @{ $unknown{$f} }, @keys;
		return 'BEGIN; ' . insert($f, @keys) . '; ROLLBACK';
	},
	savepoint => sub {
		my ($f) = @_;
		my ($stays, $goes) = ($key + 1, $key + 2);
		$key += 2;
		push @{ $known{$f} }, $stays;
		push @{ $unknown{$f} }, $goes;
		return 'BEGIN; SAVEPOINT s; ' . insert($f, $goes) . '; ROLLBACK TO s; ' . insert($f, $stays) . '; COMMIT';
	},
	prepare => sub {
		my ($f) = @_;
		my @keys = some_keys();
		my $name = 'p' . ++$gid;
		$prepared{$f}{$name} = \@keys;
		return 'BEGIN; ' . insert($f, @keys) . "; PREPARE TRANSACTION '$name'";
	},
	commit_prepared => sub {
		my ($f) = @_;
		my ($name) = sort keys %{ $prepared{$f} // {} } or return '';
		push @{ $known{$f} }, @{ delete $prepared{$f}{$name} };
		return "COMMIT PREPARED '$name'";
	},
	rollback_prepared => sub {
		my ($f) = @_;
		my ($name) = reverse sort keys %{ $prepared{$f} // {} } or return '';
		push @{ $unknown{$f} }, @{ delete $prepared{$f}{$name} };
		return "ROLLBACK PREPARED '$name'";
	},
	save => sub { return "SELECT FROM streamfilter_save('f$_[0]')"; },
	test => sub { return "SELECT FROM streamfilter_test('f$_[0]', 0)"; },
);
my @steps = sort keys %step;

sub count_known
{
	my ($f, $keys) = @_;
	return 0 unless @{ $keys // [] };
	return sql("SELECT count(*) FROM unnest('{" . join(',', @$keys) . "}'::int[]) k WHERE streamfilter_test('f$f', k)");
}

for my $round (1 .. $rounds)
{
	my $script = '';
	for my $f (1 .. $filters)
	{
		for (1 .. 1 + int rand 3)
		{
			my $name = $steps[ rand @steps ];
			my $statement = $step{$name}->($f);
			$way[$f] .= " $name" if $statement;
			$script .= "$statement;\n" if $statement;
		}
		$way[$f] .= ' |';
	}
	sql($script);
	$round % 3 ? $node->stop('immediate') : $node->stop;
	$node->start;
	my (@lost, @too_many);
	for my $f (1 .. $filters)
	{
		next if rand() < 0.3;    # it is not used in this round
		push @lost, "f$f:$way[$f]" if count_known($f, $known{$f}) != @{ $known{$f} // [] };
		push @too_many, "f$f:$way[$f]" if count_known($f, $unknown{$f}) > 0;
	}
	is("@lost", '', "round $round: every filter knows what it has to");
	is("@too_many", '', "round $round: and nothing else");
}

# Without its header a log is of no use, and that is told.
sql(q{CREATE FOREIGN TABLE bare (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '16kB');
	INSERT INTO bare VALUES (1); INSERT INTO bare VALUES (2); CHECKPOINT});
my $place = sql(q{SELECT ctid FROM _streamfilter.streamfilter_log WHERE filter = 'bare'::regclass AND change = 'h'});
my ($page, $line) = $place =~ /\((\d+),(\d+)\)/;
my $file = $node->data_dir . '/' . sql(q{SELECT pg_relation_filepath('_streamfilter.streamfilter_log')});
$node->stop;
open my $heap, '+<:raw', $file or die $!;
seek $heap, $page * 8192 + 24 + 4 * ($line - 1), 0;
print $heap "\0" x 4;
close $heap;
$node->start;
like(said(q{SELECT streamfilter_test('bare', 1)}), qr/WARNING:  the saved log of filter "bare" is damaged\nDETAIL:  It has no header/, 'a log without a header is told');
$node->stop('immediate');    # with prepared transactions left
done_testing();
