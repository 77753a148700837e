# More keys than the table of keys in flight has room for: the table grows, sessions that add other keys do not wait,
# and the memory is given back. overflow_without_memory.pl has what happens without memory to grow.
# flavours: faults
use Sf;
use IO::Socket::UNIX;
use Time::HiRes qw(usleep);
use WaitingSessions;

my $node = start_node('overflow', q{
	streamfilter.max_in_flight = 1000
	max_prepared_transactions = 10
	restart_after_crash = on
});
for my $mode (qw(wait admit discard))
{
	sql(qq{
		CREATE FOREIGN TABLE $mode (key int) SERVER streamfilter
		  OPTIONS (kind 'bloom', keys '1e6', fpr '1e-9', seed '1', conflict '$mode')});
}

sub dynamic { return sql('SELECT dynamic FROM streamfilter_memory()'); }

# For a filter that another statement has for itself: it hands over with its next key.
sub insert_soon { return insert_within('3s', @_); }

sub nothing_is_left
{
	my ($name) = @_;
	stat_is($_, 'in_flight', 0, "$name: no key of '$_' in flight") foreach qw(wait admit discard);
	is(dynamic(), 0, "$name: and no memory taken");
	return;
}

my $one = session();
my $two = session();
is(dynamic(), 0, 'no dynamic memory at first');

# ---- one large transaction

foreach my $end (qw(COMMIT ROLLBACK))
{
	my $known = $end eq 'COMMIT';
	my $base = $known ? 0 : 100000;
	my @of_it = map { $base + $_ } (1, 2500, 5000);
	$one->query_safe("BEGIN; INSERT INTO wait SELECT generate_series($base + 1, $base + 5000)");
	stat_is('wait', 'in_flight, overflowed', '5000|0', 'five times max_in_flight: all keys are in flight');
	cmp_ok(dynamic(), '>', 0, 'in dynamic memory');
	is(insert_at_once('wait', $base + 70000 .. $base + 70400), join(' ', $base + 70000 .. $base + 70400), 'others add other keys at once');
	is(insert_at_once('wait', $_), 'waits', "and wait for its key $_") foreach @of_it;
	insert_and_wait($two, 'wait', $base + 5000);
	$one->query_safe($end);
	is(outcome($two), $known ? 'a repeat' : 'new: ' . ($base + 5000), "until its $end");
	pop @of_it;
	is(insert_at_once('wait', @of_it), $known ? '' : "@of_it", 'which decides');
	nothing_is_left($end);
}

# A savepoint.
$one->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(20001, 20100)');
$one->query_safe('SAVEPOINT a; INSERT INTO wait SELECT generate_series(20101, 25000)');
$one->query_safe('ROLLBACK TO a; INSERT INTO wait SELECT generate_series(25001, 25100)');
stat_is('wait', 'in_flight', 200, 'what the savepoint has added is not in flight any more');
is(dynamic(), 0, 'nor is memory taken for it');
is(insert_at_once('wait', 20101, 25000), '20101 25000', 'others may add it');
$one->query_safe('COMMIT');
is(insert_at_once('wait', 20001, 20100, 20101, 25000, 25001, 25100), '', 'all are remembered in the end');

# Two at once; each meets what the other has.
$one->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(30001, 35000)');
$two->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(36001, 56000)');
stat_is('wait', 'in_flight', 25000, 'two large transactions at once');
$two->query_until(qr//, "WITH n AS (INSERT INTO wait SELECT generate_series(34001, 36000) RETURNING key)\nSELECT 'new: ' || count(*) FROM n;\n");
wait_for(q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted});
$one->query_safe('COMMIT');
is(outcome($two), 'new: 1000', 'one waits for the other only for its keys');
$two->query_safe('ROLLBACK');
nothing_is_left('two large transactions');

# ---- conflict 'admit' and 'discard'

$one->query_safe('BEGIN; INSERT INTO admit SELECT generate_series(1, 5000); INSERT INTO discard SELECT generate_series(1, 5000)');
is(insert_at_once('admit', 1, 5000), '1 5000', q{conflict 'admit': others take its keys as new});
is(insert_at_once('discard', 1, 2500, 5000, 9999), '9999', q{conflict 'discard': as repeats, all of them});
$one->query_safe('COMMIT');
is(insert_at_once($_, 1, 2500, 5000), '', "conflict '$_': they are remembered") foreach qw(admit discard);
nothing_is_left('admit and discard');

# ---- prepared transactions

foreach my $end (qw(COMMIT ROLLBACK))
{
	my $base = $end eq 'COMMIT' ? 200000 : 300000;
	sql("BEGIN; INSERT INTO wait SELECT generate_series($base + 1, $base + 20000); PREPARE TRANSACTION 'large'");
	sql("BEGIN; INSERT INTO wait SELECT generate_series($base + 20001, $base + 30000); PREPARE TRANSACTION 'other'");
	stat_is('wait', 'in_flight', 30000, 'keys of large prepared transactions are in flight');
	is(insert_at_once('wait', $base + 70000), $base + 70000, 'others add other keys');
	insert_and_wait($two, 'wait', $base + 20000);
	sql("$end PREPARED 'large'");
	is(outcome($two), $end eq 'COMMIT' ? 'a repeat' : 'new: ' . ($base + 20000), "others wait for its $end PREPARED");
	# The other one outlives a crash.
	is(insert_at_once('wait', $base + 30000), 'waits', 'and still for the keys of the other');
	$_->quit foreach $one, $two;
	crash();
	is(insert_at_once('wait', $base + 30000), 'waits', 'also after a crash');
	stat_is('wait', 'in_flight', 10000, 'where all of them are in flight again');
	is(insert_at_once('wait', $base + 80000), $base + 80000, 'while others add other keys');
	sql("$end PREPARED 'other'");
	is(sql("SELECT count(*) FROM generate_series($base + 1, $base + 30000) i WHERE streamfilter_test('wait', i)"),
		$end eq 'COMMIT' ? 30000 : 1, 'all or none are remembered');
	nothing_is_left("$end PREPARED");
	($one, $two) = (session(), session());
}

# A key erased and added again by one that is prepared keeps no memory.
sql(q{BEGIN; INSERT INTO wait SELECT generate_series(400001, 405000); SAVEPOINT a; INSERT INTO wait SELECT generate_series(405001, 409000);
	ROLLBACK TO a; PREPARE TRANSACTION 'p'});
sql(q{ROLLBACK PREPARED 'p'});
nothing_is_left('a savepoint of a prepared transaction');

# ---- a statement on its own has the filter for itself until others come

# Has a statement the filter for itself by now, or handed it over, as it does before a function runs a query?
sub is_large
{
	my ($filter) = @_;
	return qq{SELECT count(*) > 0 FROM streamfilter_stats WHERE filter = '$filter'::regclass AND (in_flight > 500 OR EXISTS (
		SELECT FROM pg_locks WHERE locktype = 'object' AND objid = '$filter'::regclass AND mode = 'ExclusiveLock' AND granted))};
}

# Runs a statement in the background, and returns when it has more keys than half of max_in_flight.
sub statement_alone
{
	my ($statement) = @_;
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $statement ], '>', \my $out, '2>', \my $err);
	wait_for(is_large('wait'));
	return $run;
}

# From key to key it takes its time, as long as a gate is shut.
sql(q{CREATE FUNCTION slowly(gate int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
	IF NOT pg_try_advisory_xact_lock_shared(gate) THEN PERFORM pg_sleep(0.1); END IF;
	RETURN true; END $$});
my $slowly = 'LATERAL (SELECT CASE WHEN i %% 100 = 0 AND i > %d THEN slowly(%d) END) s';
sub shut { return $one->query_safe("SELECT pg_advisory_lock($_[0])"); }
sub open_gate { return $one->query_safe("SELECT pg_advisory_unlock($_[0])"); }

shut(1);
my $run = statement_alone('INSERT INTO wait SELECT i FROM generate_series(410001, 440000) i, ' . sprintf($slowly, 420000, 1));
is(insert_soon('wait', 490000, 490001), '490000 490001', 'who comes gets the filter with its next key');
stat_is('wait', 'in_flight > 10000', 't', 'for all keys are in the table by now');
is(insert_at_once('wait', $_), 'waits', "and waits for key $_ of the statement") foreach 410001, 415000;
is(insert_at_once('wait', 490002 .. 490102), join(' ', 490002 .. 490102), 'as others do from then on');
open_gate(1);
$run->finish;
is(insert_at_once('wait', 410001, 440000, 490000, 490102), '', 'nothing is forgotten');
nothing_is_left('a statement on its own');

shut($_) foreach 2, 3;
$run = statement_alone("DO \$\$ BEGIN
	INSERT INTO wait SELECT generate_series(441001, 443000);
	BEGIN
		INSERT INTO wait SELECT generate_series(443001, 445000);
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	BEGIN
		INSERT INTO wait SELECT i FROM generate_series(445001, 465000) i, " . sprintf($slowly, 446000, 2) . ";
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	INSERT INTO wait SELECT i FROM generate_series(465001, 485000) i, " . sprintf($slowly, 465000, 3) . "; END \$\$");
is(insert_soon('wait', 491000), 491000, 'in a subtransaction: who comes gets the filter with its next key');
is(insert_at_once('wait', $_), 'waits', "and waits for key $_") foreach 441001, 445000, 445001;
open_gate(2);
my $rolled_back = 0;
foreach (1 .. 100) { last if $rolled_back = insert_at_once('wait', 445001) eq '445001'; }
ok($rolled_back, 'until the subtransaction has rolled back: its keys are new');
is(insert_at_once('wait', $_), 'waits', "not those of others: $_") foreach 441001, 445000;
open_gate(3);
$run->finish;
is(insert_at_once('wait', 441001, 445000, 445001, 445002, 465000, 485000), '445002 465000', 'the rest is remembered');
nothing_is_left('subtransactions');

# It hands over also where no new key comes any more.
for my $rest (q{FOR i IN 1 .. 300 LOOP PERFORM pg_sleep(0.1); END LOOP},
	'INSERT INTO wait SELECT 440003 FROM generate_series(1, 100000) i, LATERAL (SELECT pg_sleep(CASE WHEN i % 100 = 0 THEN 0.1 ELSE 0 END)) s')
{
	$run = statement_alone("DO \$\$ BEGIN INSERT INTO wait SELECT generate_series(440001, 443000); $rest; END \$\$");
	is(insert_soon('wait', 492000), 492000, 'no new key comes: who comes gets the filter nevertheless');
	is(insert_at_once('wait', 440001), 'waits', 'and waits for its keys');
	sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO%'});
	$run->finish;
	sql('TRUNCATE wait');
}

# In a pipeline the first statement is on its own until BEGIN comes.
my $pipeline = "$PostgreSQL::Test::Utils::tmp_check/pipeline.sql";
append_to_file($pipeline, join "\n", '\startpipeline', 'INSERT INTO wait SELECT generate_series(500001, 520000);', 'BEGIN;',
	q{PREPARE TRANSACTION 'pipeline';}, '\endpipeline', '');
$node->command_ok([ 'pgbench', '-n', '-M', 'extended', '-t', 1, '-f', $pipeline, $node->connstr('postgres') ],
	'a statement on its own that comes to be prepared hands the filter over');
is(insert_at_once('wait', 530000), '530000', 'others add keys');
is(insert_at_once('wait', $_), 'waits', "and wait for key $_") foreach 500001, 520000;
sql(q{COMMIT PREPARED 'pipeline'});
is(insert_at_once('wait', 500001, 520000), '', 'nothing is forgotten');
sql('TRUNCATE wait');

# The client sends no Sync behind its statement for a while: nothing at all, or what makes the server send its answer.
sub message { my ($type, $body) = @_; return $type . pack('N', 4 + length $body) . $body; }
foreach my $flush ('', message('H', ''))
{
	my $name = $flush ? 'Flush, but no Sync' : 'no Sync';
	my $client = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) // die $!;
	print $client message('', pack('N', 196608) . join("\0", user => scalar getpwuid($>), database => 'postgres') . "\0\0"),
	  message('P', "\0INSERT INTO wait SELECT generate_series(540001, 560000)\0\0\0"), message('B', "\0" x 8), message('E', "\0" x 5), $flush;
	$client->flush;
	wait_for(is_large('wait'));
	is(insert_soon('wait', 570000), 570000, "$name: others add keys");
	is(insert_at_once('wait', $_), 'waits', "and wait for key $_") foreach 540001, 560000;
	print $client message('S', ''), message('X', '');
	local $/ = undef;
	like(<$client>, qr/INSERT 0 20000/, 'until it goes on');
	is(insert_at_once('wait', 540001, 560000, 570000), '', 'nothing is forgotten');
	sql('TRUNCATE wait');
}

# A key that it has added, deleted and added again in a subtransaction that rolls back is still its key.
sql(q{CREATE FOREIGN TABLE deleting (key int) SERVER streamfilter OPTIONS (kind 'lru', memory '4MB');
	CREATE TABLE kept_by_others (key int)});
$one->query_safe('SELECT pg_advisory_lock(2)');
$run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', q{DO $$ BEGIN
	INSERT INTO deleting SELECT generate_series(1, 3000);
	BEGIN
		DELETE FROM deleting WHERE key = 5; DELETE FROM deleting WHERE key = 6;
		INSERT INTO deleting VALUES (5);
		FOR i IN 4001 .. 4100 LOOP
			INSERT INTO deleting VALUES (i);
			EXIT WHEN (SELECT count(*) FROM pg_locks WHERE relation = 'kept_by_others'::regclass) > 0;
			PERFORM pg_sleep(0.1);
		END LOOP;
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	PERFORM pg_advisory_lock_shared(2); END $$} ]);
wait_for(is_large('deleting'));
is(insert_soon('deleting', 200000), 200000, 'it hands over within a subtransaction');
$two->query_safe('BEGIN; LOCK kept_by_others IN ACCESS SHARE MODE');
wait_for(q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'});
$two->query_safe('COMMIT');
is(insert_at_once('deleting', $_), 'waits', "which rolls back: key $_ is still one of the statement") for 4, 5, 6;
is(insert_at_once('deleting', 4001), 4001, 'one of the subtransaction is not');
$one->query_safe('SELECT pg_advisory_unlock(2)');
$run->finish;
is(insert_at_once('deleting', 4, 5, 6, 3000, 4001, 4002), 4002, 'all of it is remembered');
sql('DROP TABLE kept_by_others; DROP FOREIGN TABLE deleting');

# It hands over before it waits itself, for the one that it waits for may come to add another key.
sub waits_for_lock { my ($where) = @_; return $node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND $where"); }

$one->query_safe('BEGIN; INSERT INTO wait VALUES (440000)');
$run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c',
		'INSERT INTO wait SELECT generate_series(440001, 445000) UNION ALL SELECT 440000' ], '>', \my $printed, '2>', \my $complaint);
waits_for_lock(q{locktype = 'transactionid'}) or die 'it does not wait';
is($one->query("INSERT INTO wait VALUES (446000) RETURNING 'new: ' || key"), 'new: 446000', 'one that it waits for adds another key');
is(insert_at_once('wait', 440001), 'waits', 'others wait for its keys');
$one->query_safe('COMMIT');
$run->finish;
is($complaint, '', 'nobody has to give way');
is(insert_at_once('wait', 440000, 440001, 445000, 446000), '', 'all are remembered');
nothing_is_left('a statement that waits');

sql(q{CREATE FOREIGN TABLE second (key int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1e6', fpr '1e-9', seed '1')});
$one->query_safe('SELECT pg_advisory_lock(1)');
my @both = map {
	my ($first, $other) = @$_;
	IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c',
			"DO 'BEGIN INSERT INTO $first SELECT generate_series(450001, 455000); PERFORM pg_advisory_lock_shared(1);
			 INSERT INTO $other VALUES (456000); END'" ], '>', \my $out, '2>', \$complaint);
} [qw(wait second)], [qw(second wait)];
wait_for(q{SELECT count(*) = 2 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'});
$one->query_safe('SELECT pg_advisory_unlock(1)');
$_->finish for @both;
is($complaint, '', 'two, each of which has what the other one needs');
is(known($_, 450001, 456000), 5001, "all keys are in '$_'") for qw(wait second);
nothing_is_left('two with two filters');

# ---- the setting says how much

sql(q{ALTER SYSTEM SET streamfilter.dynamic_memory = '1MB'});
sql('SELECT pg_reload_conf()');
$node->poll_query_until('postgres', q{SELECT current_setting('streamfilter.dynamic_memory') = '1MB'});
$one->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(500001, 510000)');
is(insert_at_once('wait', 590000), 590000, 'within half of dynamic_memory others add keys');
$one->query_safe('INSERT INTO wait SELECT generate_series(510001, 560000)');
stat_is('wait', 'in_flight, overflowed', '60000|1', 'beyond it the transaction has the filter for itself');
is(dynamic(), 0, 'without any memory for its keys');
is(insert_at_once('wait', 590001), 'waits', 'and others wait to add any key');
is(insert_at_once('admit', 590001), 590001, 'but for other filters');
like(said(q{BEGIN; INSERT INTO admit SELECT generate_series(600001, 660000); PREPARE TRANSACTION 'p'}), qr/cannot PREPARE a transaction that has added so many keys.*max_in_flight, now 1000.*dynamic_memory, now 1024kB/s,
	'and PREPARE is refused');
$one->query_safe('COMMIT');
is(known('wait', 500001, 560000), 60000, 'nothing is lost');
nothing_is_left('dynamic memory in use');
sql(q{ALTER SYSTEM RESET streamfilter.dynamic_memory});
sql('SELECT pg_reload_conf()');

# ---- a backend that is terminated, and one that is killed

my $victim = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $victim->query_safe('SELECT pg_backend_pid()');
$victim->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(700001, 705000)');
insert_and_wait($two, 'wait', 705000);
sql("SELECT pg_terminate_backend($pid)");
is(outcome($two), 'new: 705000', 'the keys of a terminated backend are new');
eval { $victim->quit };
nothing_is_left('a terminated backend');

$victim = $node->background_psql('postgres', on_error_stop => 0);
$pid = $victim->query_safe('SELECT pg_backend_pid()');
$victim->query_safe('BEGIN; INSERT INTO wait SELECT generate_series(800001, 805000)');
expect_crash($node);
kill 'KILL', $pid;
eval { $_->quit } foreach $victim, $one, $two;
foreach (1 .. 600)
{
	last if slurp_file($node->logfile) =~ /all server processes terminated; reinitializing/;
	usleep(100_000);
}
wait_for('SELECT true');
is(insert_at_once('wait', 800001, 805000, 705000), '800001 805000', 'and so are those of a killed one, after the restart');
nothing_is_left('a killed backend');

# ---- many at once: small and large transactions, commits and rollbacks

sql('CREATE TABLE kept (key int)');
my $script = PostgreSQL::Test::Utils::tempdir() . '/load.sql';
append_to_file($script, q{
\set base random(1, 60) * 1000
\set last :base + random(1, 4000)
\set fate random(1, 4)
BEGIN;
WITH n AS (INSERT INTO attack SELECT generate_series(:base, :last) RETURNING key) INSERT INTO kept SELECT key FROM n;
\if :fate < 2
ROLLBACK;
\else
COMMIT;
\endif
});
sql(q{
	CREATE FOREIGN TABLE attack (key int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1e6', fpr '1e-9', seed '1')});
# Statements on their own, which have the filter for themselves until others come; some fail in the end, some in a subtransaction.
append_to_file("$script.alone", q{
\set base random(1, 60) * 1000
\set last :base + random(1, 4000)
\set fate random(0, 4)
DO 'BEGIN
  BEGIN
    WITH n AS (INSERT INTO attack SELECT generate_series(:base, :last) RETURNING key) INSERT INTO kept SELECT key FROM n;
    IF :fate = 0 THEN RAISE division_by_zero; END IF;
  EXCEPTION WHEN division_by_zero THEN NULL;
  END;
  WITH n AS (INSERT INTO attack SELECT generate_series(:base + 1000, :last + 1000) RETURNING key) INSERT INTO kept SELECT key FROM n;
END';
});
$node->command_ok([ 'pgbench', '-n', '-c', '6', '-j', '2', '-T', '8', '--max-tries=100', '-f', $script, '-f', "$script.alone", 'postgres' ],
	'large and small transactions at once');
is(sql('SELECT count(*) - count(DISTINCT key) FROM kept'), 0, 'no key was kept twice');
is(sql(q{SELECT count(*) FROM kept WHERE NOT streamfilter_test('attack', key)}), 0, 'none is forgotten');
nothing_is_left('an attack');

done();
