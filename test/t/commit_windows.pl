# Windows that last a microsecond: a session is stopped there, others act, and it goes on. And the proof that
# callbacks which must not raise are watched.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	max_prepared_transactions = 5
	restart_after_crash = on});
sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '10');
	CREATE TABLE events (id int);
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events VALUES (0)});
my $faults = FaultPoints->new($node);

sub events { return sql("SELECT count(*) FROM events WHERE id = $_[0]"); }

# ---- the end of a transaction -------------------------------------------------------------------------------------

$faults->set('pre_commit', 'fail');
like($faults->finish($faults->start('INSERT INTO events VALUES (1)')), qr/ERROR:  fault injected at pre_commit/,
	'before the commit record: the transaction fails');
is(events(1) . knows('seen', 1), '0f', 'it leaves neither row nor key');

$faults->set('pre_commit', 'stop');
my $first = $faults->start('INSERT INTO events VALUES (2)');
$faults->reached('pre_commit');
is(events(2) . knows('seen', 2), '0f', 'nothing is to be seen before the commit record');
$faults->set('pre_commit', 'pass');
is($faults->finish($first), '', 'it goes on');
is(events(2) . knows('seen', 2), '1t', 'and is committed');

$faults->set('committed', 'stop');
$first = $faults->start('INSERT INTO events VALUES (3)');
$faults->reached('committed');
is(events(3), 1, 'after the commit record: the row is there');
my $second = $faults->start('INSERT INTO events VALUES (3) RETURNING id');
ok($faults->blocked($second), 'another session with the same key waits');
$faults->set('committed', 'pass');
is($faults->finish($first) . $faults->finish($second), '', 'both go on, the second without a row');
is(events(3) . knows('seen', 3), '1t', 'one row, one key');

$faults->set('applied', 'stop');
$first = $faults->start('INSERT INTO events VALUES (4)');
$faults->reached('applied');
is(knows('seen', 4), 't', 'in the filter, and still in flight: the key is known');
is(sql('INSERT INTO events VALUES (4) RETURNING id'), '', 'and a repeat');
$faults->set('applied', 'pass');
$faults->finish($first);
is(events(4) . knows('seen', 4), '1t', 'one row, one key');

# ---- prepared transactions ------------------------------------------------------------------------------------------

sql(q{BEGIN; INSERT INTO events VALUES (5); PREPARE TRANSACTION 'five'});
$faults->set('resolve', 'stop');
$first = $faults->start(q{COMMIT PREPARED 'five'});
$faults->reached('resolve');
is(sql('INSERT INTO events VALUES (5) RETURNING id'), '',
	'while the one that has committed it stands still, whoever meets the key brings it in');
is(knows('seen', 5), 't', 'it is known');
$faults->set('resolve', 'pass');
$faults->finish($first);
is(events(5) . knows('seen', 5), '1t', 'one row, one key');

# ---- saving and loading ---------------------------------------------------------------------------------------------

$faults->set('save', 'stop');
$first = $faults->start(q{SELECT streamfilter_save('seen')});
$faults->reached('save');
sql('INSERT INTO events VALUES (6)');
$faults->set('save', 'pass');
is($faults->finish($first), '', 'a save');
crash();
is(knows('seen', 6), 't', 'what was committed in the middle of a save survives a crash');

$node->restart;
$faults->set('load', 'stop');
$first = $faults->start(q{SELECT streamfilter_test('seen', 6)});
$faults->reached('load');
$second = $faults->start(q{SELECT streamfilter_test('seen', 6)});
$faults->set('load', 'pass');
is($faults->finish($first) . $faults->finish($second), 'tt', 'two sessions that need a filter at once');

# ---- the end of the server ------------------------------------------------------------------------------------------

# psql that is refused may be gone before it is told what to ask.
sub wait_for_server
{
	for (1 .. 20) { return 1 if eval { $node->poll_query_until('postgres', 'SELECT 1', '1') } }
	return 0;
}

my $gone = qr/connection to server was lost/;
$faults->set('committed', 'kill');
like($faults->finish($faults->start('INSERT INTO events VALUES (7)')), $gone, 'a session is killed');
wait_for_server();
is(events(7) . knows('seen', 7), '1t', 'killed after the commit record: row and key are there');

# Another size, at every step of its commit: before the record the former definition and all that it knows, after it the new ones.
my @sized = (q{'clq', fpr '0.01'}, q{'lru'}, q{'timer', window '4000 rows', fpr '0.01'}, q{'bloom', keys '5000', fpr '0.01', grow 'density'},
	q{'ell'});
sql(join ';', map { "CREATE FOREIGN TABLE sized_$_ (id int) SERVER streamfilter OPTIONS (kind $sized[$_], memory '64kB');
	INSERT INTO sized_$_ SELECT generate_series(1, 400)" } 0 .. $#sized);
sql(join ';', 'CREATE TABLE known_keys (filter int, id int)', map { "INSERT INTO known_keys SELECT $_, i FROM generate_series(1, 400) i
	WHERE streamfilter_test('sized_$_'::regclass, i)" } 0 .. $#sized);
cmp_ok(sql('SELECT count(*) FROM known_keys'), '>', 390 * @sized, 'filters of several kinds');
my ($number, $memory) = (1000, 64);
for my $point ('pre_commit', 'save', 'logged', 'committed', 'applied')
{
	$number++;
	my $wanted = 192 - $memory;
	$faults->set($point, 'kill');
	like($faults->finish($faults->start(join ';', 'BEGIN', (map { "ALTER FOREIGN TABLE sized_$_ OPTIONS (SET memory '${wanted}kB');
		INSERT INTO sized_$_ VALUES ($number); INSERT INTO known_keys VALUES ($_, $number)" } 0 .. $#sized), 'COMMIT')), $gone,
		"killed at $point");
	ok(wait_for_server(), 'the server comes back');
	is(sql('SELECT count(*) FROM known_keys WHERE NOT streamfilter_test(format($$sized_%s$$, filter)::regclass, id)'), 0,
		"$point: every kind knows what it knew");
	my $is_committed = $point =~ /committed|applied/;
	is(sql("SELECT count(*) FROM known_keys WHERE id = $number"), $is_committed ? scalar @sized : 0, "$point: and what was committed");
	$memory = $wanted if $is_committed;
	is(sql("SELECT count(*) FROM pg_foreign_table WHERE ftrelid::regclass::text LIKE 'sized_%' AND ftoptions @> ARRAY['memory=${memory}kB']"),
		scalar @sized, "$point: in its size");
}

my $from = -s $node->logfile;
expect_crash($node, 6);
$faults->set('committed', 'fail');
$faults->finish($faults->start('INSERT INTO events VALUES (8)'));
wait_for_server();
like(slurp_file($node->logfile, $from), qr/streamfilter: an? [a-z ]+ where nothing may raise/,
	'a message after the commit record does not go unnoticed');
is(events(8) . knows('seen', 8), '1t', 'row and key are there');

done_testing();
