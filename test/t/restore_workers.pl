# After a start a worker restores filters before any row asks for them: in all databases, the busiest first, on a standby, too.
# Nothing depends on it: rows that come before it is done, one filter that fails, and a worker that is terminated.
# flavours: quick
use Sf;

my $node = PostgreSQL::Test::Cluster->new('restore_workers');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '2MB'
	streamfilter.dynamic_memory = '64MB'
	streamfilter.restore_workers = 1
	statement_timeout = '120s'
	restart_after_crash = on
	autovacuum = off});
$node->start;
for my $database (qw(postgres other))
{
	sql('CREATE DATABASE other') if $database eq 'other';
	$node->safe_psql($database, q{
		CREATE EXTENSION streamfilter;
		CREATE FUNCTION known(filter regclass, n int) RETURNS bigint LANGUAGE sql AS
			'SELECT count(*) FROM generate_series(1, n) i WHERE streamfilter_test(filter, i)';
		CREATE FOREIGN TABLE large (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '16MB', fpr '1e-9');
		CREATE FOREIGN TABLE middle (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '512kB', fpr '1e-9');
		CREATE FOREIGN TABLE busy (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '128kB', fpr '1e-6');
		CREATE FOREIGN TABLE unused (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '128kB');
		CREATE FOREIGN TABLE passing (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '128kB', persistence 'unlogged');
		INSERT INTO large SELECT generate_series(1, 1000);
		INSERT INTO middle SELECT generate_series(1, 1000);
		INSERT INTO busy SELECT i % 100 FROM generate_series(1, 5000) i;
		INSERT INTO passing VALUES (1);
		SELECT streamfilter_save('large')});
}

my $all = q{SELECT count(*) = 3 FROM streamfilter_stats WHERE restored IS NOT NULL AND filter::text IN ('large', 'middle', 'busy')};
my $order = q{SELECT string_agg(filter::text, ' ' ORDER BY restored) FROM streamfilter_stats
	WHERE restored IS NOT NULL AND filter::text <> 'passing'};
my $gone = q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'streamfilter restore'};

# --- Nobody asks, and they are there -----------------------------------------------------------------------------------

$node->restart;
ok(wait_for($all, $node, $_), "the filters of database $_ are restored") for qw(postgres other);
ok(wait_for($gone), 'then the worker ends');
is(sql($order), 'busy large middle', 'the busiest came first, then the larger one');
is(sql(q{SELECT known('large', 1000), known('middle', 1000), known('busy', 99)}), '1000|1000|99', 'with what they remembered');

# After a crash nobody has counted: the larger ones come first.
crash();
ok(wait_for($all), 'after a crash, too');
is(sql($order), 'large middle busy', 'by their size');
is(sql(q{SELECT known('large', 1000), known('middle', 1000), known('busy', 99)}), '1000|1000|99', 'whole');

# After a crash of another process the first session that uses a filter starts them.
wait_for($gone);
is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ 'streamfilter'}), 0, 'no process stays');
my $victim = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'});
expect_crash($node);
kill 'KILL', $victim;
ok(wait_for_server($node), 'a crash of another process');
is(knows('busy', 1), 't', 'then one filter is used');
ok(wait_for($all), 'and all are restored');
is(sql(q{SELECT known('large', 1000), known('middle', 1000), known('busy', 99)}), '1000|1000|99', 'whole');

# --- As before, where it is asked for ----------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', 'streamfilter.restore_workers = 0');
$node->restart;
is(sql($order), '', 'with 0 workers a filter is restored when it is used');
is(sql(q{SELECT known('large', 1000)}) . ' ' . sql($order), '1000 large', 'that one, and no other');

# --- Rows that come meanwhile ------------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', 'streamfilter.restore_workers = 2');
for my $i (1 .. 4)
{
	$node->stop($i % 2 ? 'fast' : 'immediate');
	$node->start;
	sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'streamfilter restore'}) if $i > 2;
	my $next = 1000 + $i;
	sql("INSERT INTO large VALUES ($next)");
	is(sql("SELECT known('large', $next)"), $next, "round $i: nothing is forgotten");
	ok(wait_for($gone), 'the workers end');
}

# --- One that finds no room keeps none from the others -----------------------------------------------------------------

$node->append_conf('postgresql.conf', q{streamfilter.dynamic_memory = '1MB'});
my $from = -s $node->logfile;
$node->restart;
ok(wait_for(q{SELECT count(*) = 2 FROM streamfilter_stats WHERE restored IS NOT NULL AND filter::text IN ('middle', 'busy')}),
	'one does not fit, the others are restored');
like(slurp_file($node->logfile, $from), qr/not enough shared memory for filter "large"/, 'the log says so');
like(said('INSERT INTO large VALUES (5)'), qr/not enough shared memory for filter "large"/, 'and the row that needs it');
$node->append_conf('postgresql.conf', q{streamfilter.dynamic_memory = '64MB'});
$node->restart;
is(sql(q{SELECT known('large', 1000)}), 1000, 'with more room nothing of it is missing');

# --- A standby ---------------------------------------------------------------------------------------------------------

my $standby = start_standby('restored_standby');
ok(wait_for($all, $standby), 'a standby restores them, too');
sql('INSERT INTO large SELECT generate_series(2001, 2100)');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(sql(q{SELECT known('large', 2100) - known('large', 2000)}, $standby), 100, 'and follows');
$standby->promote;
is(sql(q{SELECT known('large', 1000)}, $standby), 1000, 'promoted');
done_testing();
