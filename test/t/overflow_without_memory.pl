# More keys than the table of keys in flight takes, where it has no memory to grow (overflow_in_flight.pl has the rest); waiting for
# prepared transactions and for backends that are terminated.
# flavours: quick faults
use Sf;
use WaitingSessions;

my $node = start_node('transactions', q{
	streamfilter.max_in_flight = 1000
	streamfilter.dynamic_memory = 0
	max_prepared_transactions = 10
});
for my $mode (qw(wait admit discard))
{
	sql(qq{
		CREATE FOREIGN TABLE $mode (key int) SERVER streamfilter
		  OPTIONS (kind 'bloom', memory '1MB', k '10', seed '1', conflict '$mode')});
}

my $one = session();
my $two = session();

# ---- More keys than max_in_flight, conflict 'wait' -------------------------------------------------
is(insert_at_once('wait', 7777), '7777', 'a key from before');
$one->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(1, 5000)');
stat_is('wait', 'in_flight, overflowed', '5000|1', 'all keys are in flight, and the overflow is counted');
is(insert_at_once('wait', 1),     'waits', 'others wait for its first key,');
is(insert_at_once('wait', 5000),  'waits', 'for its last,');
is(insert_at_once('wait', 90000), 'waits', 'and for the whole filter');
is(insert_at_once('wait', 7777),  '',      'but not for keys that are remembered,');
is(sql(q{SELECT streamfilter_test('wait', 5000), streamfilter_test('wait', 7777)}), 'f|t', 'nor to test,');
is(insert_at_once('admit', 1, 5000), '1 5000', 'nor for other filters');
insert_and_wait($two, 'wait', 5000);
$one->query_safe('COMMIT');
is(outcome($two), 'a repeat', 'after its commit its keys are repeats');
is(insert_at_once('wait', 1, 2500, 5000, 90000), '90000', 'all of them, and no others');
stat_is('wait', 'in_flight', 0, 'nothing is left in flight');

$one->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(10001, 15000)');
insert_and_wait($two, 'wait', 15000);
$one->query_safe('ROLLBACK');
is(outcome($two), 'new: 15000', 'after its rollback its keys are new');
is(insert_at_once('wait', 10001, 12500, 15000), '10001 12500', 'all of them');
stat_is('wait', 'in_flight, rolled_back', '0|5000', 'and counted');

# Part of it in a savepoint that rolls back.
$one->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(20001, 20100)');
$one->query_safe('SAVEPOINT a; INSERT INTO wait SELECT generate_series(20101, 25000)');
$one->query_safe('ROLLBACK TO a; INSERT INTO wait SELECT generate_series(25001, 25100)');
stat_is('wait', 'in_flight', 200, 'what the savepoint has added is not in flight any more');
$one->query_safe('COMMIT');
is(insert_at_once('wait', 20001, 20100, 20101, 25000, 25001, 25100), '20101 25000', 'nor remembered');

# Two such transactions.
$one->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(30001, 35000)');
$two->query_until(qr//,
	"WITH n AS (INSERT INTO wait SELECT generate_series(34001, 38000) RETURNING key)\nSELECT 'new: ' || count(*) FROM n;\n");
wait_for(q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted});
$one->query_safe('COMMIT');
is(outcome($two), 'new: 3000', 'they take turns');

# It may have waited itself: a key that another has in flight.
$two->query_safe('BEGIN; INSERT INTO wait VALUES (44000)');
$one->query_until(qr//, "INSERT INTO wait SELECT generate_series(40001, 45000);\n");
wait_for(q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted});
$two->query_safe('COMMIT');
$one->query_safe('SELECT 1');
stat_is('wait', 'in_flight', 0, 'a large transaction that had to wait');
is(insert_at_once('wait', 40001, 44000, 45000), '', 'has added its keys');

# ---- The same with 'admit' and 'discard' ------------------------------------------------------------
$one->query_safe('BEGIN; INSERT INTO admit SELECT generate_series(10001, 15000); INSERT INTO discard SELECT generate_series(10001, 15000)');
stat_is('discard', 'in_flight, overflowed', '5000|1', q{conflict 'discard': the overflow is counted});
is(insert_at_once('admit', 10001, 15000), '10001 15000', q{conflict 'admit': others take its keys as new, as ever});
is(insert_at_once('discard', 10001, 15000), '15000', q{conflict 'discard': beyond the table, too});
$one->query_safe('COMMIT');
is(insert_at_once('admit', 10001, 12500, 15000), '', q{conflict 'admit': its keys are remembered});
is(insert_at_once('discard', 10001, 12500, 15000), '', q{conflict 'discard': its keys are remembered});
stat_is($_, 'in_flight, waits', '0|0', "conflict '$_': nothing is left, nobody waited") for qw(admit discard);

# ---- Keys that a transaction forgets ----------------------------------------------------------------
# Who inserts one waits, also where the table has no room for it.
sql(q{
	CREATE FOREIGN TABLE follows (key int) SERVER streamfilter OPTIONS (kind 'sqf', memory '1MB');
	CREATE TABLE followed (key int);
	CREATE TRIGGER zz BEFORE INSERT ON followed FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('follows');
	CREATE TRIGGER follow AFTER DELETE OR UPDATE ON followed FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('follows');
	INSERT INTO followed SELECT generate_series(1, 6000)});
my $deleting = 'BEGIN; DELETE FROM followed WHERE key';
$one->query_safe("$deleting <= 3000");
is(insert_at_once('followed', 1),    'waits', 'others wait for its first key,');
is(insert_at_once('followed', 3000), 'waits', 'for its last,');
insert_and_wait($two, 'followed', 2999);
$one->query_safe('ROLLBACK');
is(outcome($two), 'a repeat', 'after its rollback its keys are repeats');
is(insert_at_once('followed', 1, 2999, 3000), '', 'all of them');
$one->query_safe("$deleting <= 10");
is(insert_at_once('followed', 1),  'waits', 'so it is with a few');
is(insert_at_once('followed', 11), '',      'but other keys are judged at once');
$one->query_safe('DELETE FROM followed WHERE key <= 3000');
is(insert_at_once('followed', $_), 'waits', "key $_") for 1, 3000;
insert_and_wait($two, 'followed', 3000);
$one->query_safe('COMMIT');
is(outcome($two), 'new: 3000', 'after its commit its keys are new');
is(insert_at_once('followed', 1, 2999, 3000, 3001), '1 2999', 'all of them');
# One that has the whole filter, for what it has added, forgets keys as well.
$one->query_safe('BEGIN; INSERT INTO followed SELECT generate_series(10001, 15000); DELETE FROM followed WHERE key = 4000');
insert_and_wait($two, 'followed', 4000);
$one->query_safe('COMMIT');
is(outcome($two), 'new: 4000', 'it is waited for');
is(sql('SELECT count(*), count(DISTINCT key) FROM followed'), '8003|8003', 'no row is lost, none is there twice');
$_->query_safe('BEGIN') for $one, $two;
$one->query_safe('DELETE FROM followed WHERE key = 5000');
$two->query_safe('INSERT INTO followed SELECT generate_series(20001, 25000)');
$two->query_safe('ROLLBACK');
$one->query_safe('ROLLBACK');
stat_is('follows', 'in_flight', 0, 'nothing is left in flight');

# ---- Prepared transactions --------------------------------------------------------------------------
like(said(q{BEGIN; INSERT INTO wait SELECT generate_series(50001, 55000); PREPARE TRANSACTION 'large'}), qr/cannot PREPARE a transaction that has added so many keys.*max_in_flight, now 1000/s,
	'a transaction beyond max_in_flight cannot be prepared');
is(insert_at_once('wait', 50001, 55000), '50001 55000', 'and is forgotten');

my $key = 60000;
for my $end (qw(COMMIT ROLLBACK))
{
	my $expected = sub { $end eq 'COMMIT' ? 'a repeat' : "new: $_[0]" };
	$key += 2;
	# The session that prepared it is gone when another ends it.
	sql("BEGIN; INSERT INTO wait VALUES ($key); PREPARE TRANSACTION 'p'");
	insert_and_wait($one, 'wait', $key);
	sql("$end PREPARED 'p'");
	is(outcome($one), $expected->($key), "who waits for a prepared transaction sees its $end PREPARED");
	++$key;
	$two->query_safe("BEGIN; INSERT INTO wait VALUES ($key)");
	insert_and_wait($one, 'wait', $key);
	$two->query_safe("PREPARE TRANSACTION 'p'");
	sql('SELECT pg_sleep(0.1)');
	is(sql('SELECT count(*) FROM pg_locks WHERE NOT granted'), 1, 'PREPARE TRANSACTION does not end the waiting,');
	sql("$end PREPARED 'p'");
	is(outcome($one), $expected->($key), "but $end PREPARED does");
}
# Many keys in two of them.
sql(q{BEGIN; INSERT INTO wait SELECT generate_series(70001, 70400); PREPARE TRANSACTION 'p'});
sql(q{BEGIN; INSERT INTO discard SELECT generate_series(70001, 70200); PREPARE TRANSACTION 'q'});
stat_is('wait', 'in_flight', 400, 'the keys of prepared transactions are in flight');
sql(q{COMMIT PREPARED 'p'});
sql(q{ROLLBACK PREPARED 'q'});
is(sql(q{SELECT count(*) FILTER (WHERE streamfilter_test('wait', i)),
		count(*) FILTER (WHERE streamfilter_test('discard', i)) FROM generate_series(70001, 70400) i}),
	'400|0', 'and remembered or forgotten as they end');
stat_is('wait', 'in_flight', 0, 'nothing is left in flight');

# ---- A terminated backend ---------------------------------------------------------------------------
my $victim = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $victim->query_safe('SELECT pg_backend_pid()');
$victim->query_safe('BEGIN; INSERT INTO wait VALUES (80000); INSERT INTO discard VALUES (80000)');
insert_and_wait($one, 'wait', 80000);
sql("SELECT pg_terminate_backend($pid)");
is(outcome($one), 'new: 80000', 'the keys of a terminated backend are new');
is(insert_at_once('discard', 80000), '80000', 'for all');
eval { $victim->quit };
$_->quit for $one, $two;
stat_is($_, 'in_flight', 0, "conflict '$_': nothing is left in flight") for qw(wait admit discard);

# ---- A filter that only prepared transactions have used --------------------------------------------
sql(q{
	CREATE FOREIGN TABLE by_two_phases (key int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6')});
my $in_time = "SET statement_timeout = '10s'; SET lock_timeout = '5s'; BEGIN; INSERT INTO by_two_phases VALUES";
sql("$in_time (1); PREPARE TRANSACTION 'first'");
sql("COMMIT PREPARED 'first'");
sql("$in_time (2); PREPARE TRANSACTION 'second'");
my ($third, undef, $stderr) = $node->psql('postgres', "$in_time (3); PREPARE TRANSACTION 'third'");
is($third, 0, 'two prepared transactions at a time') or diag($stderr);
sql("COMMIT PREPARED 'second'; COMMIT PREPARED 'third'");
is(sql(q{SELECT string_agg(streamfilter_test('by_two_phases', i)::text, ' ') FROM generate_series(1, 4) i}),
	'true true true false', 'their keys are there');
crash();
is(sql(q{SELECT string_agg(streamfilter_test('by_two_phases', i)::text, ' ') FROM generate_series(1, 4) i}),
	'true true true false', 'and after a crash');

done();
