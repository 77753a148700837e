# A filter takes rows while it is restored, and the worker stands still between its two halves: others want to empty, alter and
# drop it, wait and are cancelled, are killed, prepare; the worker ends; what is damaged is found late; a standby is promoted.
# flavours: faults
use Sf;
use FaultPoints;

my $settings = q{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '2MB'
	streamfilter.dynamic_memory = '256MB'
	streamfilter.restore_workers = 1
	log_min_messages = debug1
	max_prepared_transactions = 5
	restart_after_crash = on
	statement_timeout = '60s'
	autovacuum = off
	full_page_writes = off};
my $node = start_node('attacked', $settings, allows_streaming => 1);
sql('CREATE DATABASE other', 'template1');
my $faults = FaultPoints->new($node);
$node->safe_psql('template1', q{CREATE FUNCTION streamfilter_fault(point text, action text) RETURNS void
	AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE});

sub unknown { return sql('SELECT count(*) FROM events WHERE NOT streamfilter_test(\'seen\', id)'); }
sub twice { return sql('SELECT count(*) - count(DISTINCT id) FROM events'); }
sub state_of { return sql(q{SELECT state FROM streamfilter_stats WHERE filter = 'seen'::regclass}); }
sub worker { return q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'streamfilter restore'}; }

# Two slices, and a key uses many lines: two ranges. One slice, and a key uses one line: 64.
my %options = (
	slices => q{kind 'bloom', layout 'scattered', memory '33MB', fpr '1e-9', slices '2'},
	lines => q{kind 'clq', memory '33MB', bits '32', slices '1'});
my %skips = (slices => 0, lines => 31);
my $divided = 'slices';

sub create
{
	my $create = create_text();
	$create =~ s/OPTIONS \(.*?\);/OPTIONS ($options{$divided});/;
	sql($create);
	return;
}

sub create_text { return q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', layout 'scattered', memory '33MB', fpr '1e-9', slices '2');
	CREATE TABLE events (id int);
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events SELECT generate_series(1, 200);
	SELECT streamfilter_save('seen');
	INSERT INTO events SELECT generate_series(201, 220)}; }

# Starts it so that nobody restores the filter before it is used, or before the worker is told where to stand.
sub start
{
	my ($stands) = @_;
	$node->start;
	await_launcher($node);
	sql("SELECT streamfilter_fault('restore_range', '$_')", 'template1') for $stands ? (('skip') x $skips{$divided}, 'stop') : ();
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

# The worker stands after half of the ranges. Returns a key whose half is there, and one whose half is not.
sub stand
{
	my ($open, $closed);
	for my $id (1 .. 60)
	{
		my ($code, undef, $said) = $node->psql('postgres', "SET lock_timeout = '400ms'; INSERT INTO events VALUES ($id)");
		$open = $id if $code == 0;
		$closed = $id if $said =~ /lock timeout/;
		last if $open && $closed;
	}
	$faults->reached('restore_range');
	ok($open && $closed, 'rows of one half go on, others wait until lock_timeout');
	return ($open, $closed);
}

sub restart
{
	stop('immediate');
	start(1);
	return stand();
}

sub end_worker
{
	sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'streamfilter restore'});
	$faults->set('restore_range', 'pass');
	ok(wait_for(worker()), 'the worker is ended');
	return;
}

# Waits for a session in that state, and returns its pid.
sub waiting
{
	my ($query) = @_;
	$query =~ s/'.*//;
	my $of = "FROM pg_stat_activity WHERE query LIKE '$query%' AND wait_event_type IN ('Extension', 'Lock')";
	wait_for("SELECT count(*) = 1 $of");
	return sql("SELECT pid $of");
}

# ---- who waits can be cancelled, by whatever means

create();
my ($open, $closed) = restart();
like($faults->run("SET statement_timeout = '300ms'; INSERT INTO events VALUES ($closed)"), qr/statement timeout/,
	'statement_timeout ends a wait');
my $session = $faults->start("INSERT INTO events VALUES ($closed)");
sql('SELECT pg_cancel_backend(' . waiting('INSERT INTO events') . ')');
like($faults->finish($session), qr/user request/, 'so does cancelling');
like($faults->run("SET lock_timeout = '300ms'; SELECT streamfilter_test('seen', $closed)"), qr/lock timeout/,
	'lock_timeout, for who needs all of it');
sql("CREATE EXTENSION streamfilter; " . create_text(), 'other');
is(sql(q{SELECT count(*) FROM events WHERE streamfilter_test('seen', id)}, 'other'), 220, 'another database is not held up');

# ---- one who waits is killed, and the server with it

$session = $faults->start("INSERT INTO events VALUES ($closed)");
expect_crash($node);
kill 'KILL', waiting('INSERT INTO events');
$faults->finish($session);
wait_for_server($node);
is(unknown() . ' ' . twice(), '0 0', 'after kill -9 of a session that waits nothing is forgotten');
is(sql(q{SELECT count(*) FROM events WHERE streamfilter_test('seen', id)}, 'other'), 220, 'nor in the other database');
sql('DROP DATABASE other WITH (FORCE)', 'template1');    # its filter would be restored, too, and the worker stand there

# ---- others want the filter for themselves; the worker goes on, or ends meanwhile

for my $end ('pass', 'terminate')
{
	for my $statement (
		'BEGIN; DROP FOREIGN TABLE seen CASCADE; ROLLBACK',
		q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '40MB')},
		'ALTER FOREIGN TABLE seen RENAME TO known; ALTER FOREIGN TABLE known RENAME TO seen',
		'BEGIN; TRUNCATE seen; ROLLBACK',
		'TRUNCATE seen, events; INSERT INTO events SELECT generate_series(301, 400)',
		'DROP TABLE events; DROP FOREIGN TABLE seen')
	{
		($open, $closed) = restart();
		my ($first) = $statement =~ /^(?:BEGIN; )?([^;]*)/;
		$session = $faults->start($statement);
		waiting($statement =~ /^BEGIN/ ? 'BEGIN' : $first);
		like($faults->run("SET lock_timeout = '300ms'; $first"), qr/lock timeout/, "$end: $first waits, at most lock_timeout");
		$end eq 'pass' ? $faults->set('restore_range', 'pass') : end_worker();
		is($faults->finish($session), $statement =~ /DROP.*CASCADE/ ? 'NOTICE:  drop cascades to trigger discard on table events' : '', 'then it goes on');
		create() if $statement =~ /^DROP/;
		sql(q{INSERT INTO events SELECT generate_series(100, 500)});
		is(unknown() . ' ' . twice(), '0 0', 'nothing is forgotten');
		is(known('seen', 501, 900), 0, 'nor remembered');
		sql("DROP TABLE events; DROP FOREIGN TABLE seen");
		create();
	}
}
ok(wait_for(q{SELECT free = total - (SELECT sum(memory) FROM streamfilter_stats) OR free > 100000000 FROM streamfilter_memory()}),
	'the memory is given back');

# ---- a prepared transaction with keys of the half that is there; the worker ends before it does

($open, $closed) = restart();
my $new = 0;
for my $id (1001 .. 1060)
{
	my ($code) = $node->psql('postgres', "SET lock_timeout = '400ms'; BEGIN; INSERT INTO events VALUES ($id); PREPARE TRANSACTION 'p'");
	$new = $id if $code == 0;
	last if $new;
}
ok($new, 'a transaction is prepared meanwhile');
end_worker();
like($faults->run("SET lock_timeout = '300ms'; INSERT INTO events VALUES ($new)"), qr/lock timeout/, 'its key keeps others waiting');
sql("COMMIT PREPARED 'p'");
is(unknown() . ' ' . twice(), '0 0', 'nothing is forgotten after the worker has ended');
sql("INSERT INTO events VALUES ($new), ($closed), ($open)");
is(twice(), 0, 'nor taken twice');

# ---- what is damaged is found when rows have come

# Zeroes the pointers to all rows of the second half of the image's pages, or changes one byte of each.
sub damage
{
	my ($file, $missing) = @_;
	open my $heap, '+<:raw', $file or die "$file: $!";
	my $pages = (-s $file) / 8192;
	for my $page (int($pages * .75) .. int($pages * .9))
	{
		seek $heap, $page * 8192 + ($missing ? 24 : 6000), 0;
		my $bytes = "\0" x 4;
		read $heap, $bytes, 4;
		seek $heap, -4, 1;
		print {$heap} $missing ? "\0" x 4 : ~$bytes & "\xff" x 4;
	}
	close $heap or die "$file: $!";
	return;
}

for ([ slices => 0 ], [ slices => 1 ], [ lines => 0 ], [ lines => 1 ])
{
	($divided, my $missing) = @$_;
	my $what = "$divided, " . ($missing ? 'missing rows' : 'damaged rows');
	sql('DROP TABLE events; DROP FOREIGN TABLE seen');
	create();
	sql(q{INSERT INTO events SELECT generate_series(10001, 14000)});
	sql(q{SELECT streamfilter_save('seen')});
	sql('VACUUM FULL _streamfilter.streamfilter_image; CHECKPOINT');
	sql('INSERT INTO events SELECT generate_series(20001, 20020)');
	my $file = $node->data_dir . '/' . sql(q{SELECT pg_relation_filepath('_streamfilter.streamfilter_image')});
	stop('fast');
	damage($file, $missing);
	my $from = -s $node->logfile;
	start(1);
	stand();
	my %rows = map { $_ => 0 } qw(come wait);
	for my $id (30001 .. 30030)
	{
		my ($code, undef, $said) = $node->psql('postgres', "SET lock_timeout = '200ms'; INSERT INTO events VALUES ($id)");
		++$rows{ $code == 0 && $said eq '' ? 'come' : $said =~ /^[^\n]*ERROR:  canceling statement due to lock timeout/ ? 'wait' : $said };
	}
	is(join(' ', sort keys %rows), 'come wait', "$what: rows come, or wait until lock_timeout");
	is(sql('SELECT count(*) FROM events WHERE id > 30000'), $rows{come}, 'which are there');
	cmp_ok($rows{$_}, '>', 0, "$rows{$_} $_") for qw(come wait);
	$faults->set('restore_range', 'pass');
	cmp_ok(unknown(), '>', 0, 'older keys are forgotten');
	like(slurp_file($node->logfile, $from), qr/the saved image of filter "seen" is damaged/, 'a WARNING is in the log');
	like(state_of(), qr/^set aside: damaged image: /, 'and streamfilter_stats says so');
	is(sql(q{SELECT count(*) FROM events WHERE id BETWEEN 20001 AND 20020 AND NOT streamfilter_test('seen', id)}), 0,
		'what the log has is known') unless $missing;
	is(sql(q{SELECT count(*) FROM events WHERE id > 30000 AND NOT streamfilter_test('seen', id)}), 0, 'and what was admitted');
	is(sql(q{SELECT streamfilter_value('seen')::text::streamfilter IS NOT NULL}), 't', 'its bytes are sound');
	sql(q{SELECT streamfilter_save('seen')});
	is(state_of(), 'loaded', 'a save ends that');
	stop('fast');
	start();
	is(sql(q{SELECT count(*) FROM events WHERE id > 30000 AND NOT streamfilter_test('seen', id)}), 0, 'and keeps them');
	is(state_of(), 'loaded', 'nothing is damaged any more');
}

$divided = 'slices';

# ---- a standby is promoted while a session reads the state

sql('DROP TABLE events; DROP FOREIGN TABLE seen');
create();
my $standby = start_standby('promoted', 'streamfilter.restore_workers = 0');
sql("BEGIN; INSERT INTO events VALUES (5000); PREPARE TRANSACTION 'p'");
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
my $there = bless { node => $standby }, 'FaultPoints';
$there->set('restore', 'stop');
$session = $there->start(q{SELECT streamfilter_test('seen', 220), streamfilter_test('seen', 5000)});
$there->reached('restore');
$node->stop('immediate');
$standby->promote;
$there->set('restore', 'pass');
is($there->finish($session), 't|f', 'it reads the filter to the end');
like($there->finish($there->start(q{SET lock_timeout = '300ms'; INSERT INTO events VALUES (5000)})), qr/lock timeout/,
	'a key of a prepared transaction keeps others waiting there');
sql("COMMIT PREPARED 'p'", $standby);
sql('INSERT INTO events VALUES (5000), (220), (1)', $standby);
is(sql('SELECT count(*) - count(DISTINCT id) FROM events', $standby), 0, 'and is a repeat then');
done_testing();
