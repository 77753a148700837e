# Batches of several producers at once into a filter on three servers: no deadlocks that no server sees.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SliceServers;
use Test::More;

my $node   = start_node('producer', "log_statement = none\n");
my %holder = map { $_ => start_node($_, "log_statement = none\n") } qw(a b c);
sub sql { return $node->safe_psql('postgres', $_[0]); }

sql(join '', map { server_sql($_, $holder{$_}, q{timeout '5s'}) } sort keys %holder);
sql(q{CREATE TABLE done (client int, good bool)});

# Clients insert sorted batches, each a transaction of its own, for two seconds: overlapping ones, or each its own keys.
sub race
{
	my ($filter, $options, $apart) = @_;
	sql("CREATE FOREIGN TABLE $filter (id int) $options; TRUNCATE done; SELECT streamfilter_test('$filter', 0)");
	my @runs = map {
		my $client = $_;
		my $first = $apart ? 1000000 * $client : 0;
		my $load = qq{DO \$\$ DECLARE base int; stop timestamptz := clock_timestamp() + interval '2 s'; BEGIN
		  WHILE clock_timestamp() < stop LOOP
		    base := extract(epoch FROM clock_timestamp() - stop + interval '10 s') * 30000 + $first;
		    BEGIN
		      INSERT INTO $filter SELECT generate_series(base, base + 400);
		      INSERT INTO done VALUES ($client, true);
		    EXCEPTION WHEN OTHERS THEN
		      RAISE LOG 'failed: %', SQLERRM;
		      INSERT INTO done VALUES ($client, false);
		    END;
		    COMMIT;
		  END LOOP;
		END \$\$};
		my $out = '';
		IPC::Run::start([ 'psql', '-X', '-q', '-d', $node->connstr('postgres'), '-c', $load ], '>&', \$out);
	} 1 .. 4;
	$_->finish for @runs;
	return split /\|/, sql('SELECT count(*) FILTER (WHERE good), count(*) FILTER (WHERE NOT good) FROM done');
}

# In turn, so that what else the machine does meets all of them; what they have done together counts.
my %slices = map { $_ => "SERVER streamfilter OPTIONS (servers 'a,b,c', kind 'bloom', memory '3MB', k '6', slices '6', slicing '$_')" }
  qw(horizontal vertical);
my (%good, %bad);
sub add
{
	my ($what, @counts) = @_;
	$good{$what} += $counts[0];
	$bad{$what}  += $counts[1];
	return $counts[0];
}
my $load = (split ' ', slurp_file('/proc/loadavg'))[0];
my $processors = () = slurp_file('/proc/cpuinfo') =~ /^processor/mg;
my %best;
for my $round (1 .. 4)
{
	my $single = add('single', race("single_$round", q{SERVER a OPTIONS (kind 'bloom', memory '1MB', k '6')}));
	for my $slicing (sort keys %slices)
	{
		my $share = add($slicing, race("${slicing}_$round", $slices{$slicing})) / $single;
		$best{$slicing} = $share if $share > ($best{$slicing} // 0);
		add("$slicing, apart", race("${slicing}_apart_$round", $slices{$slicing}, 1));
	}
}

# More processes do the work of each client, so where others take the processors it goes slower with several servers than
# with one, whoever waits for whom. Then only the first two of these say something.
my %enough = (horizontal => 0.5, vertical => 0.25);
for my $slicing (sort keys %slices)
{
	my ($good, $bad) = ($good{$slicing}, $bad{$slicing});
	cmp_ok($bad, '<', 0.01 * $good, "$slicing: fewer than one in a hundred fails ($good good, $bad bad)");
	my $share = $good / $good{"$slicing, apart"};
	cmp_ok($share, '>', 0.5, sprintf('%s: to wait for each other costs less than half (%.2f)', $slicing, $share));
	note(sprintf '%s: %.2f of what a single server does, in the best round', $slicing, $best{$slicing});
  SKIP:
	{
		skip 'others use the processors', 1 if $load > $processors;
		cmp_ok($best{$slicing}, '>=', $enough{$slicing}, "$slicing: they do $enough{$slicing} of what a single server does");
	}
}

done_testing();
