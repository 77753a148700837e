# Repeats that are diverted in batches, and streamfilter_settle(), failing or killed at each of their steps and at each of
# those of COMMIT: a row is in one of the two tables, as before the transaction or as after it.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('settle_faults', q{
	streamfilter.shared_memory = '4MB'
	restart_after_crash = on
	statement_timeout = '60s'});
my $faults = FaultPoints->new($node);

# Keys 1 to 1000 have come, 1001 to 1100 are known and in no table.
sub begin_tables
{
	sql(q{
		DROP TABLE IF EXISTS events, repeats;
		DROP FOREIGN TABLE IF EXISTS seen;
		CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-9');
		CREATE TABLE events (id int, n int);
		CREATE TABLE repeats (LIKE events, diverted_at timestamptz);
		CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
		INSERT INTO seen SELECT generate_series(1001, 1100);
		INSERT INTO events SELECT i, i FROM generate_series(1, 1000) i});
	return;
}

sub state
{
	return sql(q{SELECT (SELECT count(*) || ' ' || count(DISTINCT id) FROM events), (SELECT count(*) FROM repeats),
		(SELECT count(*) - count(DISTINCT n) FROM (SELECT n FROM events UNION ALL SELECT n FROM repeats) x)});
}

# The statement at a point where it is interrupted: what it says, and what is left of it.
sub interrupt
{
	my ($statement, $point, $action) = @_;
	$faults->set($point, $action);
	my $said = $faults->run($statement);
	wait_for_server($node) if $action eq 'kill';
	isnt($said, '', "$point, $action: the session hears of it");
	$faults->set($point, 'pass');
	return;
}

my @commit = qw(pre_commit logged committed applied);
my %steps  = (
	diverted => [ 'INSERT INTO events SELECT i, i + 10000 FROM generate_series(501, 1600) i', '1000 1000|0|0', '1500 1500|600|0' ],
	settled  => [ q{SELECT restored FROM streamfilter_settle('repeats', 'events') AS s}, '1500 1500|600|0', '1600 1600|0|0' ]);
my %points = (
	diverted => [ 'judge', 'diverted', @commit ],
	settled  => [ 'settle_confirmed', 'settle_taken', 'settle_restored', @commit ]);

for my $way ('diverted', 'settled')
{
	my ($statement, $before, $after) = @{ $steps{$way} };
	for my $point (@{ $points{$way} })
	{
		my $done = $point eq 'committed' || $point eq 'applied';
		for my $action ($done ? 'kill' : ('fail', 'kill'))
		{
			begin_tables();
			sql($steps{diverted}[0]) if $way eq 'settled';
			is(state(), $before, "$way, $point, $action: before");
			interrupt($statement, $point, $action);
			is(state(), $done ? $after : $before, $done ? 'all of it has happened' : 'nothing of it has happened');
			sql($statement) unless $done;
			is(state(), $after, 'again: each row is in one place');
			sql(q{SELECT * FROM streamfilter_settle('repeats', 'events')});
			is(state(), '1600 1600|0|0', 'at rest each key is there once');
			is(sql(q{SELECT count(*) FROM events WHERE NOT streamfilter_test('seen', id)}), 0, 'and known');
		}
	}
}

done();
