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
like($faults->run('INSERT INTO events VALUES (1)'), qr/ERROR:  fault injected at pre_commit/,
	'before the commit record: the transaction fails');
is(events(1) . knows('seen', 1), '0f', 'it leaves neither row nor key');

my $first = $faults->stop_at('pre_commit', 'INSERT INTO events VALUES (2)');
is(events(2) . knows('seen', 2), '0f', 'nothing is to be seen before the commit record');
is($faults->let_go('pre_commit', $first), '', 'it goes on');
is(events(2) . knows('seen', 2), '1t', 'and is committed');

$first = $faults->stop_at('committed', 'INSERT INTO events VALUES (3)');
is(events(3), 1, 'after the commit record: the row is there');
my $second = $faults->start('INSERT INTO events VALUES (3) RETURNING id');
ok($faults->blocked($second), 'another session with the same key waits');
is($faults->let_go('committed', $first) . $faults->finish($second), '', 'both go on, the second without a row');
is(events(3) . knows('seen', 3), '1t', 'one row, one key');

$first = $faults->stop_at('applied', 'INSERT INTO events VALUES (4)');
is(knows('seen', 4), 't', 'in the filter, and still in flight: the key is known');
is(sql('INSERT INTO events VALUES (4) RETURNING id'), '', 'and a repeat');
$faults->let_go('applied', $first);
is(events(4) . knows('seen', 4), '1t', 'one row, one key');

# ---- prepared transactions ------------------------------------------------------------------------------------------

sql(q{BEGIN; INSERT INTO events VALUES (5); PREPARE TRANSACTION 'five'});
$first = $faults->stop_at('resolve', q{COMMIT PREPARED 'five'});
is(sql('INSERT INTO events VALUES (5) RETURNING id'), '',
	'while the one that has committed it stands still, whoever meets the key brings it in');
is(knows('seen', 5), 't', 'it is known');
$faults->let_go('resolve', $first);
is(events(5) . knows('seen', 5), '1t', 'one row, one key');

# ---- saving and loading ---------------------------------------------------------------------------------------------

$first = $faults->stop_at('save', q{SELECT streamfilter_save('seen')});
sql('INSERT INTO events VALUES (6)');
is($faults->let_go('save', $first), '', 'a save');
crash();
is(knows('seen', 6), 't', 'what was committed in the middle of a save survives a crash');

$node->restart;
$first = $faults->stop_at('load', q{SELECT streamfilter_test('seen', 6)});
$second = $faults->start(q{SELECT streamfilter_test('seen', 6)});
is($faults->let_go('load', $first) . $faults->finish($second), 'tt', 'two sessions that need a filter at once');

# ---- the end of the server ------------------------------------------------------------------------------------------

my $gone = qr/connection to server was lost/;
$faults->set('committed', 'kill');
like($faults->run('INSERT INTO events VALUES (7)'), $gone, 'a session is killed');
wait_for_server($node);
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
	like($faults->run(join ';', 'BEGIN', (map { "ALTER FOREIGN TABLE sized_$_ OPTIONS (SET memory '${wanted}kB');
		INSERT INTO sized_$_ VALUES ($number); INSERT INTO known_keys VALUES ($_, $number)" } 0 .. $#sized), 'COMMIT'), $gone,
		"killed at $point");
	ok(wait_for_server($node), 'the server comes back');
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
$faults->run('INSERT INTO events VALUES (8)');
wait_for_server($node);
like(slurp_file($node->logfile, $from), qr/streamfilter: an? [a-z ]+ where nothing may raise/,
	'a message after the commit record does not go unnoticed');
is(events(8) . knows('seen', 8), '1t', 'row and key are there');

# ==== from the moment that a row is visible ===========================================================================
# From the moment a row is visible its key is a repeat, and what is forgotten does not come back: sessions stop between
# the commit record and the application of their changes, and others look, add and delete.

$node->stop;
$node = start_node('meanwhile', q{
	client_min_messages = warning
	streamfilter.shared_memory = '16MB'
	streamfilter.max_in_flight = 1000
	streamfilter.dynamic_memory = 0
	max_prepared_transactions = 5});
on($node);
sql(q{
	CREATE TABLE events (id int);
	CREATE TABLE admitted (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '1MB');
	CREATE FOREIGN TABLE admits (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '1MB', conflict 'admit');
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TRIGGER discard BEFORE INSERT ON admitted FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('admits');
	INSERT INTO events VALUES (0);
	INSERT INTO admitted VALUES (0)});
$faults = FaultPoints->new($node);

# Stops what commits `$first` before its changes are applied, has `$second` done meanwhile, and lets it go. Returns what
# the second one has printed.
sub while_committing
{
	my ($first, $second) = @_;
	my $committing = $faults->stop_at('committed', $first);
	my $other = $faults->start($second);
	ok($faults->blocked($other), "waits: $second");
	is($faults->let_go('committed', $committing), '', "commits: $first");
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
	is(rows($table, $key) . knows($name, $key), '0f', 'and does not come back');
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
	my $judging = $faults->stop_at('judge', "INSERT INTO events SELECT generate_series($first, $first + 99)");
	sql($second);
	is($faults->let_go('judge', $judging), '', "judges on: $second");
	return sql("SELECT count(*) FROM events WHERE id BETWEEN $first AND $first + 99");
}

is(while_judging(50000, 'INSERT INTO events VALUES (50050)'), 100, 'a key that came meanwhile is a repeat');
is(rows('events', 50050), 1, 'one row');

sql('INSERT INTO events VALUES (51050)');
# Transactions that have forgotten keys, and ended in other ways, keep nobody from judging many together.
sql('BEGIN; DELETE FROM seen WHERE id = 51050; ROLLBACK');
sql('BEGIN; SAVEPOINT a; DELETE FROM seen WHERE id = 51050; ROLLBACK TO a; COMMIT');
my $leaver = open_session('BEGIN; DELETE FROM seen WHERE id = 51050');
sql("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE state = 'idle in transaction'");
eval { $leaver->quit };
is(while_judging(51000, 'BEGIN; DELETE FROM events WHERE id = 51050; DELETE FROM seen WHERE id = 51050; COMMIT'), 100,
	'a key that was deleted meanwhile is new');
is(rows('events', 51050) . knows('seen', 51050), '1t', 'row and key are there');

# ---- nobody waits for others ------------------------------------------------------------------------------------------

my $committing = $faults->stop_at('committed', 'INSERT INTO admitted SELECT generate_series(30000, 31999)');
is(sql("SET lock_timeout = '5s'; INSERT INTO events VALUES (6) RETURNING id; SELECT streamfilter_test('seen', 7)"), "6\nf",
	'another filter is not waited for');
is(sql("SET lock_timeout = '5s'; SELECT streamfilter_test('admits', 0)"), 't', 'nor is a key that is remembered');
is($faults->let_go('committed', $committing), '', 'it commits');

$committing = $faults->stop_at('pre_commit', 'INSERT INTO admitted SELECT generate_series(40000, 41999)');
is(sql("SET lock_timeout = '5s'; SELECT streamfilter_test('admits', 41999)"), 'f', 'what is not committed yet is not waited for');
is($faults->let_go('pre_commit', $committing), '', 'it commits');

# ==== one order =======================================================================================================
# Changes that do not commute are logged and brought into the filter in one order, however long a commit takes: after a
# crash a filter has the keys that it had before.

$node->stop;
$node = start_node('order', q{
	streamfilter.shared_memory = '16MB'
	max_prepared_transactions = 5
	fsync = off});
on($node);
sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB');
	CREATE FOREIGN TABLE admitted (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB', conflict 'admit');
	CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB');
	INSERT INTO seen SELECT generate_series(1, 50)});
$faults = FaultPoints->new($node);

# A transaction that has done these statements, and commits when it is let go.
my $gate;
sub prepare_commit
{
	my ($statements) = @_;
	$gate = open_session('SELECT pg_advisory_lock(1)');
	my $session = $faults->start("BEGIN; $statements; SELECT FROM pg_advisory_xact_lock(1); COMMIT");
	ok($faults->blocked($session, 'advisory'), 'it has done its changes');
	return $session;
}

sub let_commit { $gate->query_safe('SELECT pg_advisory_unlock(1)'); $gate->quit; }

my $again = 'DELETE FROM %s WHERE id = %d; INSERT INTO %1$s VALUES (%2$d)';
my $forget = 'DELETE FROM %s WHERE id = %d';
my $merge = q{SELECT FROM streamfilter_merge('%s', (SELECT streamfilter_value('%1$s')))};

# Two transactions; the first stops after its commit record. `known`: what the second leaves of the key.
sub try_order
{
	my ($what, $filter, $key, $first, $second, $known) = @_;
	my $later = prepare_commit(sprintf $second, $filter, $key);
	my $earlier = $faults->stop_at('committed', 'BEGIN; ' . sprintf($first, $filter, $key) . '; COMMIT');
	let_commit();
	ok($faults->blocked($later), "$what: the second commit waits for the first");
	is($faults->let_go('committed', $earlier) . $faults->finish($later), '', "$what: both end");
	is(knows($filter, $key), $known, "$what: the second one counts");
	crash();
	is(knows($filter, $key), $known, "$what: also after a crash");
}

try_order('added anew, forgotten', 'seen', 1, $again, $forget, 'f');
try_order('forgotten, added anew', 'seen', 2, $forget, $again, 't');
try_order('merged, forgotten', 'seen', 3, $merge, $forget, 'f');
try_order('forgotten, merged', 'seen', 4, $forget, $merge, 't');

# ---- conflict 'admit': two have added it, a third forgets it ------------------------------------------------------------

my $second_copy = prepare_commit('INSERT INTO admitted VALUES (1)');
sql('INSERT INTO admitted VALUES (1)');
my $forgetting = $faults->stop_at('committed', 'DELETE FROM admitted WHERE id = 1');
let_commit();
ok($faults->blocked($second_copy), 'admit: who adds the key waits for who forgets it');
is($faults->let_go('committed', $second_copy) . $faults->finish($forgetting), '', 'admit: both end');
is(knows('admitted', 1), 't', 'admit: the later one counts');
crash();
is(knows('admitted', 1), 't', 'admit: also after a crash');

# The same, and the one that adds it too is prepared: its place in the log is that of PREPARE.
sub admit_prepared
{
	my ($key, $gid) = @_;
	my $first = open_session("BEGIN; INSERT INTO admitted VALUES ($key)");
	sql("BEGIN; INSERT INTO admitted VALUES ($key); PREPARE TRANSACTION '$gid'");
	end_session($first, 'COMMIT');
}
admit_prepared(2, 'forgotten after it');
$forgetting = $faults->start('DELETE FROM admitted WHERE id = 2');
ok($faults->blocked($forgetting), 'who forgets a key waits for a prepared transaction that adds it, too');
sql(q{COMMIT PREPARED 'forgotten after it'});
is($faults->finish($forgetting), '', 'prepared: the other one ends');
is(knows('admitted', 2), 'f', 'prepared: the later one counts');
crash();
is(knows('admitted', 2), 'f', 'prepared: also after a crash');
admit_prepared(3, 'rolled back');
crash();
$forgetting = $faults->start('DELETE FROM admitted WHERE id = 3');
ok($faults->blocked($forgetting), 'also after a crash it waits');
sql(q{ROLLBACK PREPARED 'rolled back'});
is($faults->finish($forgetting), '', 'rolled back: the other one ends');
is(knows('admitted', 3), 'f', 'rolled back: the key is forgotten');
admit_prepared(4, 'another key');
is(sql('DELETE FROM admitted WHERE id = 1; INSERT INTO admitted VALUES (5)'), '', 'other keys do not wait for it');
sql(q{COMMIT PREPARED 'another key'});

# ---- a crash while one waits, and a first one that fails ----------------------------------------------------------------

my $waiting = prepare_commit(sprintf $forget, 'seen', 5);
my $stopped = $faults->stop_at('committed', sprintf "BEGIN; $again; COMMIT", 'seen', 5);
let_commit();
ok($faults->blocked($waiting), 'one waits');
crash();
$faults->finish($_) for $waiting, $stopped;
is(knows('seen', 5), 't', 'a crash meanwhile: the first one has committed, the second has not');

$waiting = prepare_commit(sprintf $forget, 'seen', 6);
$stopped = $faults->stop_at('logged', sprintf "BEGIN; $again; COMMIT", 'seen', 6);
let_commit();
ok($faults->blocked($waiting), 'one waits');
$faults->set('logged', 'fail');
like($faults->finish($stopped), qr/ERROR/, 'the first one fails at last');
is($faults->finish($waiting), '', 'and the second goes on');
is(knows('seen', 6), 'f', 'it counts');
crash();
is(knows('seen', 6), 'f', 'also after a crash');

# ---- who need not wait --------------------------------------------------------------------------------------------------

sub count_waits
{
	my ($filter) = @_;
	my $waits = 0;
	for my $key (100 .. 119)
	{
		my ($status) = $node->psql('postgres', "SET lock_timeout = '50ms'; INSERT INTO $filter VALUES ($key)");
		$waits += $status != 0;
	}
	return $waits;
}
$stopped = $faults->stop_at('committed', sprintf $forget, 'seen', 7);
cmp_ok(count_waits('seen'), '<=', 6, 'single other keys mostly do not wait for one that is forgotten');
is(count_waits('other'), 0, 'other filters do not');
is($faults->let_go('committed', $stopped), '', 'and it ends');
sql('DELETE FROM seen WHERE id = ' . $_) for 100 .. 119;
$stopped = $faults->stop_at('committed', 'INSERT INTO seen SELECT generate_series(1001, 2000)');
is(count_waits('seen'), 0, 'nobody who adds keys waits for a load');
is($faults->let_go('committed', $stopped), '', 'and it ends');

# ---- many at once -------------------------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', 'deadlock_timeout = 100ms');
$node->reload;
my $script = $node->basedir . '/order.sql';
append_to_file($script, q{
\set id random(1, 20)
BEGIN;
DELETE FROM seen WHERE id = :id;
INSERT INTO seen VALUES (:id);
DELETE FROM seen WHERE id = 21 - :id;
COMMIT;
});
for my $round (1 .. 3)
{
	$node->run_log([ 'pgbench', '-n', '-c', '8', '-j', '2', '-T', '3', '--max-tries=1000', '-f', $script, $node->connstr('postgres') ]);
	my $keys = q{SELECT string_agg(i::text, ' ' ORDER BY i) FROM generate_series(1, 20) i WHERE streamfilter_test('seen', i)};
	my $before = sql($keys) // '';
	crash();
	is(sql($keys), $before, "8 sessions that add and forget the same keys: a crash changes nothing ($before)");
}
done_testing();
