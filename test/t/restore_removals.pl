# Filters are emptied while others work. COMMIT PREPARED of a TRUNCATE stands still in the middle: who does not need that filter
# does not wait, who does waits and can be cancelled, DROP and kill -9 come in between. TRUNCATE and DROP come while a worker
# restores the filter, and before anybody has: they read nothing of it.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('removals', q{
	streamfilter.shared_memory = '4MB'
	streamfilter.dynamic_memory = '256MB'
	streamfilter.restore_workers = 1
	log_min_messages = debug1
	max_prepared_transactions = 10
	restart_after_crash = on
	statement_timeout = '60s'});
my $faults = FaultPoints->new($node);
$node->safe_psql('template1', q{CREATE FUNCTION streamfilter_fault(point text, action text) RETURNS void
	AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE});
sql(q{CREATE FUNCTION streamfilter_locked_work(again boolean) RETURNS text AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE});

sub create
{
	my ($filter, $options) = @_;
	sql(qq{
		CREATE FOREIGN TABLE $filter (id int) SERVER streamfilter OPTIONS ($options);
		CREATE TABLE of_$filter (id int);
		CREATE TRIGGER discard BEFORE INSERT ON of_$filter FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$filter');
		INSERT INTO of_$filter SELECT generate_series(1, 200)});
	return;
}
sub insert { my ($filter, $ids) = @_; return "INSERT INTO of_$filter SELECT generate_series($ids)"; }
sub free_memory { return sql('SELECT free FROM streamfilter_memory()'); }

# One in shared memory, emptied in place, one that gets another block.
create('small', q{kind 'clq', memory '256kB', slices '4'});
create('large', q{kind 'clq', memory '70MB', slices '4'});
create('other', q{kind 'clq', memory '64kB'});

# A session that ends the prepared transaction stands before it empties the filter.
sub stand
{
	my ($filter, $end) = @_;
	sql("BEGIN; TRUNCATE $filter; " . insert($filter, '301, 310') . "; PREPARE TRANSACTION 'p'");
	my $session = $faults->stop_at('resolving', $end // q{COMMIT PREPARED 'p'});
	return $session;
}

sub go_on { my ($session, $what) = @_; is($faults->let_go('resolving', $session), '', $what); return; }

for my $filter ('small', 'large')
{
	my $session = stand($filter);
	my $limit = q{SET statement_timeout = '20s'; };
	is($faults->run($limit . insert('other', '301, 400')), '', "$filter: rows of another filter do not wait");
	is($faults->run($limit . q{
		CREATE FOREIGN TABLE fresh (id int) SERVER streamfilter OPTIONS (memory '64kB'); INSERT INTO fresh VALUES (1);
		TRUNCATE fresh; DROP FOREIGN TABLE fresh}), '', 'nor does a new one, nor TRUNCATE and DROP');
	is($faults->run($limit . 'BEGIN; INSERT INTO other VALUES (1000); TRUNCATE other; ROLLBACK'), '', 'nor TRUNCATE of it');
	like($faults->run("SET statement_timeout = '300ms'; " . insert($filter, '1, 1')), qr/statement timeout/,
		'its own rows wait, at most statement_timeout');
	my $row = $faults->start(insert($filter, '1, 1'));
	ok($faults->blocked($row), 'they are seen to wait');
	sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query ~ '^INSERT' AND state = 'active'});
	like($faults->finish($row), qr/user request/, 'and can be cancelled');
	my @rows = map { $faults->start(insert($filter, '1, 100')) } 1 .. 3;
	is(scalar(grep { $faults->blocked($_) } @rows), 3, 'several wait');
	go_on($session, 'the session that empties it goes on');
	is($faults->finish($_), '', 'so do the others') for @rows;
	is(known($filter, 1, 200), 100, 'it knows what has come since');
	is(known($filter, 301, 310), 10, 'and what came with TRUNCATE');
	is(sql("SELECT count(*) FROM (SELECT id FROM of_$filter WHERE id <= 100 GROUP BY id HAVING count(*) > 2) d"), 0, 'each row once');
}

# ---- DROP and another TRUNCATE in between

for my $filter ('small', 'large')
{
	my $free = free_memory();
	my $session = stand($filter);
	my $drop = $faults->start("DROP TABLE of_$filter; DROP FOREIGN TABLE $filter; INSERT INTO other SELECT generate_series(501, 600)");
	is($faults->finish($drop), '', "$filter: DROP meanwhile");
	go_on($session, 'the session that empties it goes on');
	ok(wait_for("SELECT free > $free FROM streamfilter_memory()"), 'its memory is given back');
	is(known('other', 501, 600), 100, 'and the other filter is whole');
	create($filter, $filter eq 'small' ? q{kind 'clq', memory '256kB', slices '4'} : q{kind 'clq', memory '70MB', slices '4'});
	is(known($filter, 1, 200), 200, 'a new one of that name, too');
	$session = stand($filter);
	my $again = $faults->start("TRUNCATE $filter; " . insert($filter, '150, 200'));
	ok($faults->blocked($again), "$filter: TRUNCATE again waits");
	go_on($session, 'the first goes on');
	is($faults->finish($again), '', 'then the second');
	is(known($filter, 1, 200), 51, 'it knows what came last');
	sql("BEGIN; TRUNCATE $filter; PREPARE TRANSACTION 'q'; ROLLBACK PREPARED 'q'");
	is(known($filter, 1, 200), 51, 'a prepared one that is rolled back changes nothing');
}

# ---- kill -9 of the session that empties it

for my $filter ('small', 'large')
{
	sql("TRUNCATE $filter; " . insert($filter, '1, 200'));
	my $session = stand($filter);
	my $pid = sql(q{SELECT pid FROM pg_stat_activity WHERE query ~ '^COMMIT PREPARED' AND state = 'active'});
	expect_crash($node);
	kill 'KILL', $pid;
	eval { $faults->finish($session) };
	wait_for_server($node);
	is(known($filter, 1, 200), 0, "$filter: after kill -9 it is empty");
	is(known($filter, 301, 310), 10, 'but for what came with TRUNCATE');
	is(known('other', 501, 600), 100, 'another filter is whole');
}

# ---- across streamfilter_resize(): emptied, and keys

for my $point ('resize_slice', 'resize_copied', 'resize_saved')
{
	sql('TRUNCATE small; ' . insert('small', '1, 200'));
	my $resize = $faults->stop_at($point, q{CALL streamfilter_resize('small', '512kB')});
	sql(q{BEGIN; TRUNCATE small; INSERT INTO small SELECT generate_series(301, 310); PREPARE TRANSACTION 'p'});
	sql(q{COMMIT PREPARED 'p'});
	like($faults->let_go($point, $resize), qr/has changed while it was resized/, "$point: a prepared TRUNCATE ends it");
	is(known('small', 1, 200), 0, 'no key comes back');
	is(known('small', 301, 310), 10, 'what came with it is known');
	$resize = $faults->stop_at($point, q{CALL streamfilter_resize('small', '512kB')});
	sql('BEGIN; ' . insert('small', '401, 500') . q{; PREPARE TRANSACTION 'p'});
	$faults->set($point, 'pass');
	ok(wait_for(q{SELECT count(*) = 1 FROM streamfilter_progress WHERE phase = 'waiting for transactions'}),
		'the swap waits for a prepared transaction with keys');
	is($faults->run(insert('small', '601, 610')), '', '... and others meanwhile for nobody');
	sql(q{COMMIT PREPARED 'p'});
	is($faults->finish($resize), '', 'then it goes on');
	is(sql(q{SELECT count(*) FROM of_small WHERE id > 400 AND NOT streamfilter_test('small', id)}), 0, 'and has its keys');
	sql(q{ALTER FOREIGN TABLE small OPTIONS (SET memory '256kB')});
}

# ---- another database meanwhile, with filters of its own; DROP and ALTER while the filter is locked for the swap

sql('TRUNCATE small, of_small; ' . insert('small', '1, 200'));
for my $point ('resize_slice', 'resize_copied', 'resize_saved', 'resize_locked')
{
	sql(q{CREATE DATABASE second});
	$node->safe_psql('second', q{CREATE EXTENSION streamfilter;
		CREATE FOREIGN TABLE small (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '256kB', slices '4'); INSERT INTO small SELECT generate_series(1, 200)});
	my $resize = $faults->stop_at($point, q{CALL streamfilter_resize('small', '512kB')});
	sql(q{SET statement_timeout = '20s'; INSERT INTO small SELECT generate_series(201, 300); CALL streamfilter_resize('small', '512kB')}, 'second');
	is(known('small', 1, 300, 'second'), 300, "$point: another database resizes its own, and uses it");
	sql(q{SET statement_timeout = '20s'; ALTER FOREIGN TABLE small OPTIONS (SET memory '256kB'); TRUNCATE small; DROP FOREIGN TABLE small}, 'second');
	if ($point eq 'resize_locked')
	{
		like($faults->run("SET lock_timeout = '300ms'; $_"), qr/lock timeout/, "$_ waits for the swap, at most lock_timeout")
		  for 'TRUNCATE small', 'DROP FOREIGN TABLE small CASCADE', q{ALTER FOREIGN TABLE small OPTIONS (SET memory '128kB')}, insert('small', '1, 1');
	}
	sql('DROP DATABASE second');
	is($faults->let_go($point, $resize), '', 'it goes on, though that database is dropped');
	is(sql(q{SELECT count(*) FROM of_small WHERE NOT streamfilter_test('small', id)}), 0, 'and nothing is forgotten');
	sql(q{ALTER FOREIGN TABLE small OPTIONS (SET memory '256kB')});
}

# ---- while a worker restores it

sub start
{
	my ($stands) = @_;
	$node->start;
	await_launcher($node);
	sql("SELECT streamfilter_fault('restore_range', '$_')", 'template1') for $stands ? ('skip', 'stop') : ();
	sql('ALTER DATABASE postgres ALLOW_CONNECTIONS true', 'template1');
	return;
}

sub stop
{
	my ($mode) = @_;
	sql('ALTER DATABASE postgres ALLOW_CONNECTIONS false', 'template1');
	$node->stop($mode);
	return;
}

# Rows of heaps that the session has read or written.
sub counted
{
	my ($statement) = @_;
	my @lines = split /\n/, sql("SELECT streamfilter_locked_work(true); $statement; SELECT streamfilter_locked_work(false)");
	return (split / /, $lines[-1])[5];
}

my $wanted = "FROM pg_locks WHERE relation = 'large'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted";
sql('DROP TABLE of_small; DROP FOREIGN TABLE small');
my $is_not_restored = q{SELECT restored IS NULL FROM streamfilter_stats WHERE filter = 'large'::regclass};
for my $statement ("BEGIN; TRUNCATE large; $is_not_restored; COMMIT", "BEGIN; TRUNCATE large; $is_not_restored; ROLLBACK",
	'DROP TABLE of_large; DROP FOREIGN TABLE large')
{
	sql('TRUNCATE large, of_large; ' . insert('large', '1, 200') . q{; SELECT streamfilter_save('large'); } . insert('large', '201, 220'));
	stop('immediate');
	start(1);
	$node->psql('postgres', "SET lock_timeout = '300ms'; " . insert('large', '1, 200'));    # starts a worker
	$faults->reached('restore_range');
	my $session = $faults->start($statement);
	ok(wait_for("SELECT count(*) = 1 $wanted"), "$statement waits for the worker");
	is($faults->let_go('restore_range', $session), $statement =~ /DROP/ ? '' : 't', 'which gives way with most of it to do');
	if ($statement =~ /DROP/)
	{
		create('large', q{kind 'clq', memory '70MB', slices '4'});
		is(known('large', 1, 200), 200, 'a new one is whole');
		next;
	}
	is(known('large', 1, 200), $statement =~ /ROLLBACK/ ? 200 : 0, 'afterwards it knows what it should');
	sql(insert('large', '1, 300'));
	is(sql(q{SELECT count(*) FROM of_large WHERE NOT streamfilter_test('large', id)}), 0, 'nothing is forgotten');
}

# ---- before anybody has restored it

for my $end ('COMMIT', 'ROLLBACK', 'ROLLBACK TO one; COMMIT', q{PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'}, q{PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'})
{
	my $stays = $end =~ /ROLLBACK/;
	sql('TRUNCATE large, of_large; ' . insert('large', '1, 200') . q{; SELECT streamfilter_save('large'); } . insert('large', '201, 220'));
	$node->append_conf('postgresql.conf', 'streamfilter.restore_workers = 0');
	crash();
	my $rows = counted("BEGIN; SAVEPOINT one; TRUNCATE large; INSERT INTO large SELECT generate_series(1001, 1010); $end");
	cmp_ok($rows, '<', 300, "TRUNCATE, $end: reads the log, and nothing of an image of thousands of rows");
	is(known('large', 1, 200), $stays ? 200 : 0, 'it knows what it should');
	is(known('large', 1001, 1010), $stays ? 0 : 10, '... and what came with it');
	$node->restart;
	is(known('large', 1, 200), $stays ? 200 : 0, '... after a restart, too');
	sql(insert('large', '1, 220'));
	is(sql(q{SELECT count(*) - count(DISTINCT id) FROM of_large}), $stays ? 0 : 220, 'rows are judged so');
	sql('TRUNCATE of_large, large');
	$node->append_conf('postgresql.conf', 'streamfilter.restore_workers = 1');
	$node->restart;
	sql(insert('large', '1, 2'));
}
done_testing();
