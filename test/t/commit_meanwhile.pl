# From the moment a row is visible its key is a repeat, and what is forgotten does not come back: sessions stop between
# the commit record and the application of their changes, and others look, add and delete.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('main', q{
	client_min_messages = warning
	streamfilter.shared_memory = '16MB'
	streamfilter.max_in_flight = 1000
	streamfilter.dynamic_memory = 0
	max_prepared_transactions = 5});
sql(q{
	CREATE TABLE events (id int);
	CREATE TABLE admitted (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '1MB');
	CREATE FOREIGN TABLE admits (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '1MB', conflict 'admit');
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TRIGGER discard BEFORE INSERT ON admitted FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('admits');
	INSERT INTO events VALUES (0);
	INSERT INTO admitted VALUES (0)});
my $faults = FaultPoints->new($node);

# Stops what commits `$first` before its changes are applied, has `$second` done meanwhile, and lets it go. Returns what
# the second one has printed.
sub while_committing
{
	my ($first, $second) = @_;
	$faults->set('committed', 'stop');
	my $committing = $faults->start($first);
	$faults->reached('committed');
	my $other = $faults->start($second);
	ok($faults->blocked($other), "waits: $second");
	$faults->set('committed', 'pass');
	is($faults->finish($committing), '', "commits: $first");
	return $faults->finish($other);
}

sub rows { return sql("SELECT count(*) FROM $_[0] WHERE id = $_[1]"); }

# ---- keys of released savepoints ------------------------------------------------------------------------------------

my $in_savepoint = 'BEGIN; SAVEPOINT s; INSERT INTO events VALUES (%d); RELEASE s; %s; COMMIT';

is(while_committing(sprintf($in_savepoint, 1, 'DELETE FROM events WHERE id = 1; DELETE FROM seen WHERE id = 1'),
	'INSERT INTO events VALUES (1) RETURNING id'), 1, 'added and deleted by the first: the row of the second stays');
is(rows('events', 1), 1, 'one row');
is(knows('seen', 1), 't', 'and its key');

is(while_committing(sprintf($in_savepoint, 2, 'SELECT'), 'INSERT INTO events VALUES (2) RETURNING id'), '', 'added by the first: a repeat');
is(rows('events', 2), 1, 'one row');

is(while_committing(sprintf($in_savepoint, 3, 'SELECT'),
	'DELETE FROM events WHERE id = 3; DELETE FROM seen WHERE id = 3'), '', 'added by the first, deleted by the second');
is(rows('events', 3) . knows('seen', 3), '0f', 'neither row nor key');

# ---- keys that the table of keys in flight does not have -------------------------------------------------------------

for my $filter ([ 'events', 'seen', 10000 ], [ 'admitted', 'admits', 20000 ])
{
	my ($table, $name, $from) = @$filter;
	my $load = sub {
		my $start = $from;
		$from += 2000;
		return ("INSERT INTO $table SELECT generate_series($start, $start + 1999)", $start + 1999);
	};
	my ($statement, $key) = $load->();
	is(while_committing($statement, "SELECT streamfilter_test('$name', $key)"), 't', "$table: a test knows the key");
	($statement, $key) = $load->();
	is(while_committing($statement, "SELECT id FROM $name WHERE id = $key"), $key, 'a scan knows it');
	($statement, $key) = $load->();
	is(while_committing($statement, "INSERT INTO $table VALUES ($key) RETURNING id"), '', 'it is a repeat');
	is(rows($table, $key), 1, 'one row');
	($statement, $key) = $load->();
	is(while_committing($statement, "DELETE FROM $table WHERE id = $key; DELETE FROM $name WHERE id = $key"), '', 'it is deleted');
	is(rows($table, $key) . knows("$name", $key), '0f', 'and does not come back');
}

# ---- keys that are forgotten ------------------------------------------------------------------------------------------

sql('INSERT INTO events VALUES (5)');
is(while_committing('BEGIN; DELETE FROM events WHERE id = 5; DELETE FROM seen WHERE id = 5; COMMIT',
	'INSERT INTO events VALUES (5) RETURNING id'), 5, 'once its row is gone, a key is new');
is(rows('events', 5) . knows('seen', 5), '1t', 'row and key are there');

# ---- a batch of keys that were looked up together ---------------------------------------------------------------------

# Stops an INSERT of 100 keys when all were looked up, has `$second` done meanwhile, and lets it go.
sub while_judging
{
	my ($first, $second) = @_;
	$faults->set('judge', 'stop');
	my $judging = $faults->start("INSERT INTO events SELECT generate_series($first, $first + 99)");
	$faults->reached('judge');
	sql($second);
	$faults->set('judge', 'pass');
	is($faults->finish($judging), '', "judges on: $second");
	return sql("SELECT count(*) FROM events WHERE id BETWEEN $first AND $first + 99");
}

is(while_judging(50000, 'INSERT INTO events VALUES (50050)'), 100, 'a key that came meanwhile is a repeat');
is(rows('events', 50050), 1, 'one row');

sql('INSERT INTO events VALUES (51050)');
is(while_judging(51000, 'BEGIN; DELETE FROM events WHERE id = 51050; DELETE FROM seen WHERE id = 51050; COMMIT'), 100,
	'a key that was deleted meanwhile is new');
is(rows('events', 51050) . knows('seen', 51050), '1t', 'row and key are there');

# ---- nobody waits for others ------------------------------------------------------------------------------------------

$faults->set('committed', 'stop');
my $committing = $faults->start('INSERT INTO admitted SELECT generate_series(30000, 31999)');
$faults->reached('committed');
is(sql("SET lock_timeout = '5s'; INSERT INTO events VALUES (6) RETURNING id; SELECT streamfilter_test('seen', 7)"), "6\nf",
	'another filter is not waited for');
is(sql("SET lock_timeout = '5s'; SELECT streamfilter_test('admits', 0)"), 't', 'nor is a key that is remembered');
$faults->set('committed', 'pass');
is($faults->finish($committing), '', 'it commits');

$faults->set('pre_commit', 'stop');
$committing = $faults->start('INSERT INTO admitted SELECT generate_series(40000, 41999)');
$faults->reached('pre_commit');
is(sql("SET lock_timeout = '5s'; SELECT streamfilter_test('admits', 41999)"), 'f', 'what is not committed yet is not waited for');
$faults->set('pre_commit', 'pass');
is($faults->finish($committing), '', 'it commits');

done_testing();
