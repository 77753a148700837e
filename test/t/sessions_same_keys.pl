# Several sessions on one filter at once: of equal keys exactly one is accepted, no key is lost, and
# the counters are exact.
# flavours: faults
use Sf;

my $sessions = 4;
my $keys     = 20000;

my $node = start_node('sessions');
sql(q{
	-- Large enough that false positives are practically nil: 1.3e-9 a key.
	CREATE FOREIGN TABLE same (id int) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '8MB', k '10', seed '1');
	CREATE FOREIGN TABLE own (id int) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '8MB', k '10', seed '1');
	CREATE TABLE rows_of_same (id int, session int);
	CREATE TRIGGER zz BEFORE INSERT ON rows_of_same
	  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('same', 'id');});

# Runs one script per session, all at once; dies if one fails.
sub run_together
{
	my ($script) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir . '/session.sql';
	PostgreSQL::Test::Utils::append_to_file($file, $script);
	my @runs = map {
		my $session = $_;
		IPC::Run::start(
			[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-v', "session=$session",
				'-d', $node->connstr('postgres'), '-f', $file ]);
	} 1 .. $sessions;
	$_->finish or die "a session failed" for @runs;
}

# Every session inserts the same keys in many small transactions; in the same order within each, for
# sessions that wait for one another's keys could deadlock, as with a unique index.
run_together(qq{
	DO \$\$
	BEGIN
	  FOR i IN 0 .. 99 LOOP
	    INSERT INTO rows_of_same
	      SELECT id, pg_backend_pid()
	      FROM generate_series(i * $keys / 100 + 1, (i + 1) * $keys / 100) id
	      ORDER BY id;
	    COMMIT;
	  END LOOP;
	END \$\$;});
is(sql('SELECT count(*), count(DISTINCT id) FROM rows_of_same'), "$keys|$keys", 'of equal keys exactly one is accepted');
is(sql(q{SELECT tested, accepted, discarded FROM streamfilter_stats
		              WHERE filter = 'same'::regclass}),
	join('|', $sessions * $keys, $keys, ($sessions - 1) * $keys),
	'counters of the shared keys');

# Every session inserts keys of its own.
run_together("INSERT INTO own SELECT :session * 1000000 + i FROM generate_series(1, $keys) i;");
is(sql(q{SELECT tested, accepted, discarded FROM streamfilter_stats
		              WHERE filter = 'own'::regclass}),
	join('|', $sessions * $keys, $sessions * $keys, 0),
	'counters of keys of their own');
is(sql(qq{SELECT count(*) FROM generate_series(1, $sessions) s, generate_series(1, $keys) i
		               WHERE streamfilter_test('own', s * 1000000 + i)}),
	$sessions * $keys,
	'no key is lost');

# A backend that dies takes all shared memory with it: the filters come back from what is saved.
sql(q{ALTER SYSTEM SET restart_after_crash = on; SELECT pg_reload_conf()});
my $victim = IPC::Run::start(
	[ 'psql', '-X', '-q', '-d', $node->connstr('postgres') . ' application_name=victim',
		'-c', 'SELECT pg_sleep(60)' ],
	'2>', \my $victim_err);
my $find_victim = q{SELECT pid FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active'};
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($find_victim) v") or die 'no victim';
my $victim_pid = sql($find_victim);
expect_crash($node);
kill 'KILL', $victim_pid;
$victim->finish;
# psql that is refused may be gone before it is told what to ask.
my $is_back;
for (1 .. 20) { last if $is_back = eval { $node->poll_query_until('postgres', 'SELECT 1', '1') } }
$is_back or die 'the server did not come back';
is(sql(q{SELECT tested FROM streamfilter_stats WHERE filter = 'own'::regclass}), '0', 'after a crash the counters start again');
is(sql(qq{SELECT count(*) FROM generate_series(1, $sessions) s, generate_series(1, $keys) i
		               WHERE streamfilter_test('own', s * 1000000 + i)}),
	$sessions * $keys,
	'no key is lost');
is(sql(q{SELECT streamfilter_seen('own', 1), streamfilter_seen('own', 1)}), 'f|t', 'and the filter works');

done_testing();
