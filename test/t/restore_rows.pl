# A filter that is restored by a worker takes rows before all of it is there: each row waits for its own part, and a
# statement that needs the whole filter waits for all of it. The worker is stopped between two parts, or ends there, by
# an error or by a signal.
# flavours: quick faults
use Sf;
use FaultPoints;

# The database that restores nothing by itself has the filter; the other one, which is always there, sets the fault points.
my $node = PostgreSQL::Test::Cluster->new('ranges');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '2MB'
	streamfilter.dynamic_memory = '384MB'
	streamfilter.restore_workers = 1
	log_min_messages = debug1
	max_prepared_transactions = 5
	restart_after_crash = on
	statement_timeout = '120s'
	autovacuum = off});
$node->start;
sql('CREATE DATABASE shop', $node);

on($node, 'shop');
sub restored { return sql(q{SELECT restored IS NOT NULL FROM streamfilter_stats WHERE filter = 'seen'::regclass}) eq 't'; }

sql(q{
	CREATE EXTENSION streamfilter;
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '33MB', fpr '1e-9', slices '200');
	CREATE TABLE events (id int, round int);
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events SELECT i, 0 FROM generate_series(1, 20000) i;
	SELECT streamfilter_save('seen');
	INSERT INTO events SELECT i, 0 FROM generate_series(20001, 22000) i});

# Nobody restores it until the first row comes; $set is called before.
sub restart
{
	my ($mode, $set) = @_;
	sql('ALTER DATABASE shop ALLOW_CONNECTIONS false', $node);
	$node->stop($mode);
	$node->start;
	await_launcher($node);
	$set->() if $set;
	sql('ALTER DATABASE shop ALLOW_CONNECTIONS true', $node);
	return;
}

my $key = 100_000;

# Old keys are known, new ones kept, whichever part they lie in; all are known later on.
sub check_rows
{
	my ($what) = @_;
	$key += 1000;
	sql("INSERT INTO events SELECT i, 1 FROM generate_series(1, 22000, 7) i");
	sql("INSERT INTO events SELECT i, 2 FROM generate_series($key, $key + 499) i");
	sql("BEGIN; INSERT INTO events SELECT i, 3 FROM generate_series($key + 500, $key + 599) i; ROLLBACK");
	is(sql('SELECT count(*) - count(DISTINCT id) FROM events'), 0, "$what: no row comes twice");
	is(sql("SELECT count(*) FROM events WHERE id BETWEEN $key AND $key + 999"), 500, 'and none is lost');
	is(sql('SELECT count(*) FROM events WHERE NOT streamfilter_test(\'seen\', id)'), 0, 'nothing is forgotten');
	is(sql("SELECT count(*) FROM generate_series($key + 500, $key + 999) i WHERE streamfilter_test('seen', i)"), 0,
		'nor remembered that was rolled back');
	ok(restored(), 'it is restored');
	return;
}

for my $mode ('fast', 'immediate')
{
	restart($mode);
	check_rows("after stop $mode");
}

# A transaction that is prepared has keys of its own in the log: then all of it comes first.
sql(q{BEGIN; INSERT INTO events SELECT i, 4 FROM generate_series(90001, 90100) i; PREPARE TRANSACTION 'p'});
restart('fast');
sql(q{INSERT INTO events VALUES (1, 4), (90200, 4)});
sql(q{COMMIT PREPARED 'p'});
check_rows('with a prepared transaction');
is(sql('SELECT count(*) FROM events WHERE round = 4'), 101, 'whose rows are there');

# One slice, or two, of kinds whose keys use one line each, come by ranges of lines; other kinds as a whole.
my %single = (
	a => q{kind 'clq', bits '32', slices '1'},
	b => q{kind 'bloom', layout 'blocked', keys '2000000', slices '2'},
	c => q{kind 'bloom', layout 'blocked', k '10', slices '1'},
	d => q{kind 'clq', bits '32', slices '1', lines '2'},
	e => q{kind 'bloom', layout 'scattered', k '10', slices '1'});
for my $name (sort keys %single)
{
	sql(qq{
		CREATE FOREIGN TABLE $name (id int) SERVER streamfilter OPTIONS ($single{$name}, memory '33MB');
		CREATE TABLE of_$name (id int);
		CREATE TRIGGER discard BEFORE INSERT ON of_$name FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$name');
		INSERT INTO of_$name SELECT generate_series(1, 20000);
		SELECT streamfilter_save('$name');
		INSERT INTO of_$name SELECT generate_series(20001, 22000)});
}
restart('immediate');
for my $name (sort keys %single)
{
	my $count = sql("SELECT count(*) FROM of_$name");
	sql("INSERT INTO of_$name SELECT generate_series(22000, 10, -37)");
	is(sql("SELECT count(*) FROM of_$name"), $count, "$single{$name}: every key is known");
	my $new = sql("INSERT INTO of_$name SELECT generate_series(50001, 50500); SELECT count(*) - $count FROM of_$name");
	cmp_ok($new, '>=', 480, 'and hardly another');
	is(sql("SELECT count(*) FROM of_$name WHERE NOT streamfilter_test('$name', id)"), 0, 'all of them later on');
	is(sql(qq{SELECT count(*) FROM (SELECT streamfilter_value('$name')::text::streamfilter) v}), 1, 'its counters are right');
}

SKIP:
{
	skip 'built without fault points', 25 unless $ENV{STREAMFILTER_FAULTS};
	sql('CREATE EXTENSION streamfilter', $node);
	my $faults = FaultPoints->new($node);

	# ---- it stands still after the first of two parts, and rows of that go on
	sql(q{
		CREATE FOREIGN TABLE halves (id int) SERVER streamfilter OPTIONS (kind 'bloom', layout 'scattered', memory '33MB', fpr '1e-9', slices '2');
		CREATE TABLE pairs (id int);
		CREATE TRIGGER discard BEFORE INSERT ON pairs FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('halves');
		INSERT INTO pairs SELECT generate_series(1, 100);
		SELECT streamfilter_save('halves')});
	restart('immediate', sub { $faults->set('restore_range', 'stop') });
	my ($judged, $cancelled) = (0, 0);
	for my $id (1 .. 40)
	{
		my ($code, undef, $said) = $node->psql('shop', "SET statement_timeout = '1s'; INSERT INTO pairs VALUES ($id), ($id)");
		++$judged if $code == 0;
		++$cancelled if $said =~ /statement timeout/;
		last if $judged && $cancelled;
	}
	$faults->reached('restore_range');
	ok($judged, 'rows of the part that is there are judged');
	ok($cancelled, 'others wait, and can be cancelled');
	is(sql(q{SELECT restored IS NULL FROM streamfilter_stats WHERE filter = 'halves'::regclass}), 't', 'not all is restored');
	my (undef, undef, $late) = $node->psql('shop', q{SET statement_timeout = '1s'; SELECT streamfilter_test('halves', 101)});
	like($late, qr/statement timeout/, 'who needs all of it waits');
	$faults->set('restore_range', 'pass');
	sql(q{INSERT INTO pairs SELECT generate_series(1, 110)});
	is(sql('SELECT count(*) FROM pairs'), 110, 'then the other one is there');

	# ---- the worker ends there
	my %struck = (
		fail      => qr/ERROR:  fault injected at restore_range/,
		terminate => qr/background worker "streamfilter restore[^"]*" \(PID \d+\) exited with exit code/,
		kill      => qr/background worker "streamfilter restore[^"]*" \(PID \d+\) was terminated by signal 9/);
	for my $how ('fail', 'terminate', 'kill')
	{
		my $from = -s $node->logfile;
		restart('immediate', sub { $faults->set('restore_range', $how eq 'terminate' ? 'stop' : $how) });
		$node->psql('shop', q{SET statement_timeout = '2s'; INSERT INTO events VALUES (1, 6)});
		if ($how eq 'terminate')
		{
			$faults->reached('restore_range');
			sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'streamfilter restore'});
			$faults->set('restore_range', 'pass');
		}
		for (1 .. 100) { last if slurp_file($node->logfile, $from) =~ $struck{$how}; select undef, undef, undef, 0.1; }
		like(slurp_file($node->logfile, $from), $struck{$how}, "$how: it strikes the worker");
		$node->poll_query_until('shop', 'SELECT 1', '1') if $how eq 'kill';
		check_rows("$how: the next one goes on");
	}
}
done_testing();
