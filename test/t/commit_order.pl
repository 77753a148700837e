# Changes that do not commute are logged and brought into the filter in one order, however long a commit takes: after a
# crash a filter has the keys that it had before.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	max_prepared_transactions = 5
	fsync = off});
sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB');
	CREATE FOREIGN TABLE admitted (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB', conflict 'admit');
	CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB');
	INSERT INTO seen SELECT generate_series(1, 50)});
my $faults = FaultPoints->new($node);

# A transaction that has done these statements, and commits when it is let go.
my $gate;
sub prepare_commit
{
	my ($statements) = @_;
	$gate = $node->background_psql('postgres');
	$gate->query_safe('SELECT pg_advisory_lock(1)');
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
	$faults->set('committed', 'stop');
	my $earlier = $faults->start('BEGIN; ' . sprintf($first, $filter, $key) . '; COMMIT');
	$faults->reached('committed');
	let_commit();
	ok($faults->blocked($later), "$what: the second commit waits for the first");
	$faults->set('committed', 'pass');
	is($faults->finish($earlier) . $faults->finish($later), '', "$what: both end");
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
$faults->set('committed', 'stop');
my $forgetting = $faults->start('DELETE FROM admitted WHERE id = 1');
$faults->reached('committed');
let_commit();
ok($faults->blocked($second_copy), 'admit: who adds the key waits for who forgets it');
$faults->set('committed', 'pass');
is($faults->finish($second_copy) . $faults->finish($forgetting), '', 'admit: both end');
is(knows('admitted', 1), 't', 'admit: the later one counts');
crash();
is(knows('admitted', 1), 't', 'admit: also after a crash');

# The same, and the one that adds it too is prepared: its place in the log is that of PREPARE.
sub admit_prepared
{
	my ($key, $gid) = @_;
	my $first = $node->background_psql('postgres');
	$first->query_safe("BEGIN; INSERT INTO admitted VALUES ($key)");
	sql("BEGIN; INSERT INTO admitted VALUES ($key); PREPARE TRANSACTION '$gid'");
	$first->query_safe('COMMIT');
	$first->quit;
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
$faults->set('committed', 'stop');
my $stopped = $faults->start(sprintf "BEGIN; $again; COMMIT", 'seen', 5);
$faults->reached('committed');
let_commit();
ok($faults->blocked($waiting), 'one waits');
crash();
$faults->finish($_) for $waiting, $stopped;
is(knows('seen', 5), 't', 'a crash meanwhile: the first one has committed, the second has not');

$waiting = prepare_commit(sprintf $forget, 'seen', 6);
$faults->set('logged', 'stop');
$stopped = $faults->start(sprintf "BEGIN; $again; COMMIT", 'seen', 6);
$faults->reached('logged');
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
$faults->set('committed', 'stop');
$stopped = $faults->start(sprintf $forget, 'seen', 7);
$faults->reached('committed');
cmp_ok(count_waits('seen'), '<=', 6, 'single other keys mostly do not wait for one that is forgotten');
is(count_waits('other'), 0, 'other filters do not');
$faults->set('committed', 'pass');
is($faults->finish($stopped), '', 'and it ends');
sql('DELETE FROM seen WHERE id = ' . $_) for 100 .. 119;
$faults->set('committed', 'stop');
$stopped = $faults->start('INSERT INTO seen SELECT generate_series(1001, 2000)');
$faults->reached('committed');
is(count_waits('seen'), 0, 'nobody who adds keys waits for a load');
$faults->set('committed', 'pass');
is($faults->finish($stopped), '', 'and it ends');

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
