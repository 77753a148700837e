# Who waits long is told how long: for a filter that another session restores, and for the transactions that a resize waits for.
# Each such wait ends by statement_timeout, lock_timeout or cancelling, and leaves all as it was.
# flavours: faults
use Sf;
use FaultPoints;
use IPC::Run;

my $node = start_node('told', q{
	streamfilter.shared_memory = '2MB'
	streamfilter.dynamic_memory = '256MB'
	streamfilter.restore_workers = 1
	log_min_messages = debug1
	max_prepared_transactions = 5
	statement_timeout = '120s'}, allows_streaming => 1);
my $faults = FaultPoints->new($node);
$node->safe_psql('template1', q{CREATE FUNCTION streamfilter_fault(point text, action text) RETURNS void
	AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE});
sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '33MB', slices '4');
	CREATE TABLE events (id int);
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events SELECT generate_series(1, 200);
	SELECT streamfilter_save('seen')});

# Starts the server anew; nobody restores the filter before it is used, and a session that does stands at the point, where that is told.
sub restart
{
	my ($point, @actions) = @_;
	sql('ALTER DATABASE postgres ALLOW_CONNECTIONS false', 'template1');
	crash();
	await_launcher($node);
	sql("SELECT streamfilter_fault('$point', '$_')", 'template1') for @actions;
	sql('ALTER DATABASE postgres ALLOW_CONNECTIONS true', 'template1');
	return;
}

# A session that waits, and goes on waiting until it is told what for. The last statement is what it waits in.
sub start
{
	my ($statements, $of) = @_;
	my %session = (out => '', err => '');
	$session{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', ($of // $node)->connstr('postgres'), map { ('-c', $_) } ref $statements ? @$statements : $statements ],
		'<', \undef, '>', \$session{out}, '2>', \$session{err}, IPC::Run::timeout(110));
	return \%session;
}

sub is_told
{
	my ($session, $pattern, $what) = @_;
	$session->{run}->pump until $session->{err} =~ $pattern || !$session->{run}->pumpable;
	like($session->{err}, $pattern, $what);
	return;
}

sub finish
{
	my ($session) = @_;
	$session->{run}->finish;
	return $session->{err};
}

# Each way to end a wait.
sub ends
{
	my ($statement, $what, $locked) = @_;
	$locked //= qr/lock timeout/;
	like(finish(start([ q{SET statement_timeout = '400ms'}, $statement ])), qr/statement timeout/, "$what: statement_timeout ends it");
	like(finish(start([ q{SET lock_timeout = '400ms'}, $statement ])), $locked, '... so does lock_timeout');
	my $session = start("/* waits */ $statement");
	my $of = q{FROM pg_stat_activity WHERE query ~ '^/. waits' AND wait_event_type IN ('Extension', 'Lock')};
	wait_for("SELECT count(*) = 1 $of");
	wait_for("SELECT count(pg_cancel_backend(pid)) = 0 $of");
	like(finish($session), qr/user request/, '... so does cancelling');
	return;
}

# ---- a filter that another session restores, before anything of it can be used

my $row = 'INSERT INTO events VALUES (1)';
restart('restore', 'stop');
my $restorer = start($row);
$faults->reached('restore');
ends($row, 'restored by another');
my @told = map { start($_) } $row, q{SELECT streamfilter_test('seen', 1)};
is_told($_, qr/NOTICE:  waiting for filter "seen" to be restored: /, 'who waits longer is told') for @told;
$faults->set('restore', 'pass');
unlike(finish($_), qr/ERROR/, 'it goes on') for @told, $restorer;
is(sql('SELECT count(*) - count(DISTINCT id) FROM events'), 0, 'and nothing is forgotten');

# ---- by a worker, range by range: of the rest it is known how long it takes

restart('restore_range', ('skip') x 31, 'stop');
my ($closed) = grep { (said("SET lock_timeout = '400ms'; INSERT INTO events VALUES ($_)")) =~ /lock timeout/ } 1 .. 60;
ok($closed, 'a worker stands before the range of a key');
$faults->reached('restore_range');
ends("INSERT INTO events VALUES ($closed)", 'restored by a worker');
my $told = start("INSERT INTO events VALUES ($closed)");
is_told($told, qr/NOTICE:  waiting for filter "seen" to be restored: about \d+ s left/, 'who waits longer is told how long it takes');
$faults->set('restore_range', 'pass');
unlike(finish($told), qr/ERROR/, 'it goes on');
is(sql('SELECT count(*) - count(DISTINCT id) FROM events'), 0, 'and nothing is forgotten');

# ---- another size: the swap waits for a session that sleeps with keys of the former block

my $memory = sql(q{SELECT memory FROM streamfilter_stats WHERE filter = 'seen'::regclass});
my $sleeper = open_session('BEGIN; INSERT INTO events VALUES (1001)');
my $resize = q{CALL streamfilter_resize('seen', '40MB')};
ends($resize, 'streamfilter_resize()', qr/transactions that use it do not end/);
is(sql(q{SELECT memory FROM streamfilter_stats WHERE filter = 'seen'::regclass}), $memory, 'the filter is as it was');
$told = start($resize);
is_told($told, qr/NOTICE:  filter "seen" is ready in its new size, and waits for transactions that use it\nDETAIL:  It gives up in \d+ s\./,
	'who waits longer is told how long');
$sleeper->query_safe('COMMIT');
unlike(finish($told), qr/ERROR/, 'it goes on when the session has ended');
$sleeper->quit;
cmp_ok(sql(q{SELECT memory FROM streamfilter_stats WHERE filter = 'seen'::regclass}), '>', $memory, 'and has its new size');
is(sql('SELECT count(*) FROM events WHERE NOT streamfilter_test(\'seen\', id)'), 0, 'and nothing is forgotten');
done_testing();
