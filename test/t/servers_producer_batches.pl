# Batches of several producers at once into a filter on three servers: no deadlocks that no server sees.
# flavours: alone
use Sf;
use HostileProxy;

# The servers are 20 ms away and back: what is compared is how often producers wait, not how many processors there are.
my $node   = start_node('producer', "log_statement = none\n");
my %holder = map { $_ => start_node($_, "log_statement = none\n") } qw(a b c);
my %far    = map { $_ => HostileProxy->start($holder{$_}->host . '/.s.PGSQL.' . $holder{$_}->port, delay => 0.01) } sort keys %holder;

sql(join '', map { server_sql($_, $far{$_}, q{sslmode 'disable', timeout '5s'}, '127.0.0.1') } sort keys %far);
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
		    base := extract(epoch FROM clock_timestamp() - stop + interval '10 s') * 500 + $first;
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
my %best;
for my $round (1 .. 3)
{
	my $single = add('single', race("single_$round", q{SERVER a OPTIONS (kind 'bloom', memory '1MB', k '6')}));
	for my $slicing (sort keys %slices)
	{
		my $share = add($slicing, race("${slicing}_$round", $slices{$slicing})) / $single;
		$best{$slicing} = $share if $share > ($best{$slicing} // 0);
		add("$slicing, apart", race("${slicing}_apart_$round", $slices{$slicing}, 1));
	}
}

# Batches that meet have their keys from the first of the three servers before they ask the others, and give up what they
# have got where others came before: two or three round trips more than with a single server, which needs two. In a vertical
# filter each server has a part of every key, so nobody else goes on meanwhile. Deadlocks would leave a hundredth.
my %enough = (horizontal => 0.3, vertical => 0.1);
for my $slicing (sort keys %slices)
{
	my ($good, $bad) = ($good{$slicing}, $bad{$slicing});
	cmp_ok($bad, '<', 0.01 * $good, "$slicing: fewer than one in a hundred fails ($good good, $bad bad)");
	my $share = $good / $good{"$slicing, apart"};
	cmp_ok($share, '>', 0.25, sprintf('%s: a quarter of what batches do that do not meet (%.2f)', $slicing, $share));
	cmp_ok($best{$slicing}, '>=', $enough{$slicing},
		sprintf('%s: %s of what a single server does (%.2f in the best round)', $slicing, $enough{$slicing}, $best{$slicing}));
}

done();
