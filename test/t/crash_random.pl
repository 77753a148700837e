# Restarts and crashes at random moments, under load: afterwards the filter knows every key whose row
# is in the table, and no other. STREAMFILTER_CRASH_CYCLES says how often (20), STREAMFILTER_SEED
# which moments.
# flavours: quick faults
use Sf;
use Time::HiRes qw(sleep time);

my $cycles   = $ENV{STREAMFILTER_CRASH_CYCLES} // 20;
my $seed     = $ENV{STREAMFILTER_SEED}         // 7;
my $sessions = 3;
srand($seed);

my $node = start_node('crash', q{
streamfilter.shared_memory = '16MB'
max_prepared_transactions = 600
restart_after_crash = on
statement_timeout = '30s'
lock_timeout = '10s'
autovacuum_naptime = '1s'
fsync = off
});
# False positives: with 2 MB and k = 10 below 1e-9 a key as long as there are fewer than 200000, so
# one in a whole run is less likely than 1e-3.
sql(q{
	CREATE SEQUENCE keys;
	CREATE TABLE events (id bigint);
	CREATE TABLE cycles (cycle int);
	CREATE FOREIGN TABLE seen (id bigint) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '2MB', k '10');
	CREATE TRIGGER zz BEFORE INSERT ON events
	  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TABLE notes (id bigint);
	CREATE FOREIGN TABLE unlogged (id bigint) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '64kB', k '10', persistence 'unlogged');
	CREATE TRIGGER zz BEFORE INSERT ON notes
	  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('unlogged');});

# --- The load ----------------------------------------------------------------------------------------

my $new = q{INSERT INTO events SELECT nextval('keys') FROM generate_series(1, %d);};

sub insert { return sprintf $new, 1 + int rand shift }

# One transaction of a session.
sub transaction
{
	my ($name) = @_;
	my $dice = rand;
	return insert(3) if $dice < 0.40;
	return 'BEGIN;' . insert(5) . 'SAVEPOINT a;' . insert(5) . 'SAVEPOINT b;' . insert(5)
	  . (rand() < 0.5 ? 'ROLLBACK TO a;' : 'ROLLBACK TO b;') . insert(5) . 'COMMIT;'
	  if $dice < 0.55;
	return 'BEGIN;' . insert(5) . 'ROLLBACK;' if $dice < 0.65;
	return 'BEGIN;' . insert(5) . 'SELECT 1 / 0;' . 'COMMIT;' if $dice < 0.70;
	return insert(300) if $dice < 0.73;
	# A repeat, and a key that may belong to a transaction that was prepared.
	return q{INSERT INTO events SELECT greatest(last_value - 20, 1) FROM keys;} if $dice < 0.80;
	return q{SELECT streamfilter_save('seen');} if $dice < 0.82;
	return q{BEGIN; TRUNCATE events; TRUNCATE seen;} . insert(20) . (rand() < 0.5 ? 'COMMIT;' : 'ROLLBACK;') if $dice < 0.825;
	return "BEGIN;" . insert(5) . "SAVEPOINT a;" . insert(5) . "PREPARE TRANSACTION '$name';"
	  . (rand() < 0.4 ? '' : rand() < 0.5 ? "COMMIT PREPARED '$name';" : "ROLLBACK PREPARED '$name';");
}

sub start_session
{
	my ($cycle, $session) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir . "/load_${cycle}_$session.sql";
	my $script = "SET lock_timeout = '50ms';\n";
	$script .= 'SET synchronous_commit = ' . ($session % 2 ? 'off' : 'on') . ";\n";
	$script .= transaction("p${cycle}_${session}_$_") . "\n" for 1 .. 3000;
	PostgreSQL::Test::Utils::append_to_file($file, $script);
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start([ 'psql', '-X', '-q', '-d', $node->connstr('postgres') . ' application_name=load', '-f', $file ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(60));
	return { run => $run, said => \$err };
}

# What sessions say of their own transactions, and of the end of the server.
my $meant = join '|', 'division by zero', 'canceling statement due to lock timeout', 'deadlock detected',
  'current transaction is aborted, commands ignored until end of transaction block',
  'savepoint "\w" does not exist', 'prepared transaction with identifier "\w+" does not exist', 'there is no transaction in progress',
  'terminating connection due to (?:administrator command|immediate shutdown command|unexpected postmaster exit)',
  'terminating connection because of crash of another server process',
  'connection to server was lost';

# Waits for its end, and returns what it has said besides.
sub end_load
{
	my ($session) = @_;
	eval { $session->{run}->finish; 1 } or do { $session->{run}->kill_kill; die "a session does not end: $@" };
	return grep { !/^(?:$meant)$/ } ${ $session->{said} } =~ /(?:error|WARNING|ERROR|FATAL|PANIC): +(.*)/g;
}

# Waits until all sessions are at work, and one row is there that survives a crash from now on.
sub begin_cycle
{
	my ($cycle, $last) = @_;
	wait_for(qq{SELECT (SELECT count(*) = $sessions FROM pg_stat_activity WHERE application_name = 'load')
		AND EXISTS (SELECT FROM events WHERE id > $last)});
	sql("INSERT INTO cycles VALUES ($cycle)");
	return;
}

# --- The end of a server -----------------------------------------------------------------------------

my %ends = (
	'clean restart' => sub { $node->stop('fast') },
	'immediate stop' => sub { $node->stop('immediate') },
	'checkpoint and immediate stop' => sub {
		sql('CHECKPOINT');
		$node->stop('immediate');
	},
	'kill -9 of the postmaster' => sub { $node->kill9 },
	'kill -9 of a backend' => sub {
		my @pids = split /\n/, sql(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'load'});
		expect_crash($node);
		kill('KILL', $pids[ rand @pids ]) == 1 or die 'nobody is killed';
	});
my @plan = ('kill -9 of a backend', 'kill -9 of the postmaster', 'immediate stop',
	'kill -9 of a backend', 'kill -9 of the postmaster', 'checkpoint and immediate stop', 'clean restart');

# The children of a postmaster that was killed may still be there.
sub come_back
{
	my ($end) = @_;
	my $deadline = time + 60;
	if ($end ne 'kill -9 of a backend')
	{
		until ($node->start(fail_ok => 1))
		{
			die 'the server does not start' if time > $deadline;
			sleep 0.1;
			$node->stop('fast', fail_ok => 1);    # forgets the attempt
		}
	}
	# psql that is refused may be gone before it is told what to ask.
	until ((eval { $node->psql('postgres', 'SELECT 1', timeout => 10) } // 1) == 0)
	{
		die 'the server does not come back' if time > $deadline;
		sleep 0.05;
	}
}

# --- What must hold ----------------------------------------------------------------------------------

# rows, keys without a row, rows whose key is not known, keys that are known without a row
sub look
{
	return split /\|/, sql(q{
		SELECT count(e.id), count(*) - count(e.id),
		       count(*) FILTER (WHERE e.id IS NOT NULL AND NOT known),
		       count(*) FILTER (WHERE e.id IS NULL AND known)
		FROM (SELECT i, streamfilter_test('seen', i) AS known
		      FROM generate_series(1, (SELECT last_value + 1000 FROM keys)) i OFFSET 0) k
		LEFT JOIN events e ON e.id = k.i});
}

my %done;
my ($checked_rows, $checked_keys, $lost, $phantoms, $prepared_seen, $repeats) = (0) x 6;

sub check
{
	my ($rows, $keys, $missing, $more) = look();
	$checked_rows += $rows;
	$checked_keys += $keys;
	$lost += $missing;
	$phantoms += $more;
	return ($missing == 0 && $more == 0, "$rows rows, $keys other keys, $missing lost, $more too many");
}

my $began = time;
for my $cycle (1 .. $cycles)
{
	my $end = $plan[ $cycle % @plan ];
	my $last = sql('SELECT last_value FROM keys');
	my $from = -s $node->logfile;
	my @runs = map { start_session($cycle, $_) } 1 .. $sessions;
	begin_cycle($cycle, $last);
	sleep 0.1 + rand 0.5;
	$ends{$end}->();
	is(join("\n", map { end_load($_) } @runs), '', "cycle $cycle: what sessions have said");
	come_back($end);
	like(slurp_file($node->logfile, $from), $end eq 'clean restart' ? qr/database system was shut down at/
		: qr/database system was not properly shut down; automatic recovery in progress/, "cycle $cycle, $end");
	cmp_ok(sql("SELECT count(*) FROM events WHERE id > $last"), '>', 0, "cycle $cycle: it has rows");

	my ($good, $figures) = check();
	my @prepared = split /\n/, sql('SELECT gid FROM pg_prepared_xacts ORDER BY gid');
	$prepared_seen += @prepared;
	my $in_flight = sql(q{SELECT in_flight FROM streamfilter_stats WHERE filter = 'seen'::regclass});
	$good &&= (@prepared > 0) == ($in_flight > 0);
	$node->safe_psql('postgres', join "\n", map { (rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$_';" } @prepared);
	my ($after, $figures_after) = check();
	my $again = sql('BEGIN; INSERT INTO events SELECT id FROM events RETURNING id; ROLLBACK;');
	$repeats++ if $again ne '';
	ok($good && $after && $again eq '', "cycle $cycle: what is known")
	  or diag("$figures; after the prepared ones: $figures_after; repeats let in: " . length $again);
	note(sprintf "cycle %d, %s: %s; %d prepared, then: %s", $cycle, $end, $figures, scalar @prepared, $figures_after);
	$done{$end}++;
}
diag(sprintf "seed %d, %d cycles in %.0f s (%s): %d rows known, %d lost; %d other keys, %d too many; "
	  . '%d prepared transactions', $seed, $cycles, time - $began,
	join(', ', map { "$done{$_} x $_" } sort keys %done), $checked_rows - $lost, $lost,
	$checked_keys - $phantoms, $phantoms, $prepared_seen);
cmp_ok($checked_rows, '>', 100 * $cycles, 'there was something to lose');
cmp_ok($checked_keys, '>', 100 * $cycles, 'and something to keep out');
cmp_ok($prepared_seen, '>', 0, 'prepared transactions were met');

# --- An unlogged filter -------------------------------------------------------------------------------

my $known = q{SELECT count(*) FROM generate_series(1, 2000) i WHERE streamfilter_test('unlogged', i)};
sql('INSERT INTO notes SELECT generate_series(1, 1000)');
$node->restart;
is(sql($known), '1000', 'unlogged: a clean restart keeps all');
$node->restart;
is(sql($known), '1000', 'also if the filter was not used in between');
is(sql('INSERT INTO notes SELECT generate_series(1, 1001) RETURNING id'), '1001', 'and repeats are discarded');
is(sql(q{
		SELECT restored > pg_postmaster_start_time() - interval '1 min', last_saved IS NOT NULL, accepted
		FROM streamfilter_stats WHERE filter = 'unlogged'::regclass}), 't|t|1001',
	'the statistics tell, and go on');
crash();
is(sql($known), '0', 'unlogged: empty after a crash');
is(sql(q{SELECT restored IS NULL FROM streamfilter_stats WHERE filter = 'unlogged'::regclass}), 't', 'the statistics tell');
ok(!-e $node->data_dir . '/streamfilter.unlogged', 'and no file is left');

# From unlogged to logged and back, each with a crash at once.
sql(q{INSERT INTO unlogged SELECT generate_series(1, 10)});
sql(q{ALTER FOREIGN TABLE unlogged OPTIONS (SET persistence 'logged')});
crash();
is(sql($known), '10', 'altered to logged: saved at once');
sql(q{ALTER FOREIGN TABLE unlogged OPTIONS (SET persistence 'unlogged')});
$node->restart;
is(sql($known), '10', 'altered to unlogged: kept over a clean restart');
crash();
is(sql($known), '0', 'and empty after a crash');
sql(q{INSERT INTO unlogged VALUES (1500)});
is(sql(q{
		SELECT (SELECT count(*) FROM _streamfilter.streamfilter_log WHERE filter = 'unlogged'::regclass),
		       (SELECT count(*) FROM _streamfilter.streamfilter_image WHERE filter = 'unlogged'::regclass)}),
	'1|0', 'what was saved while it was logged is gone: its log says only that it is kept in memory');

# --- The log of transactions that a save must not miss ------------------------------------------------

# What the log is read by must not be lost with it.
sql(q{
	CREATE FOREIGN TABLE fresh (id bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '10');
	BEGIN; INSERT INTO fresh VALUES (1); PREPARE TRANSACTION 'first'});
sql(q{INSERT INTO fresh VALUES (2)});
sql(q{ROLLBACK PREPARED 'first'});
crash();
is(sql(q{SELECT streamfilter_test('fresh', 1), streamfilter_test('fresh', 2)}),
	'f|t', 'the first transaction of a filter is prepared and rolls back');

# Numbers of rows go on: what was prepared before a restart comes before a later TRUNCATE.
sql(q{
	BEGIN; INSERT INTO fresh VALUES (3); PREPARE TRANSACTION 'second'});
sql(q{SELECT streamfilter_save('fresh')});
$node->restart;
is(sql(q{SELECT streamfilter_test('fresh', 2), streamfilter_test('fresh', 3)}), 't|f', 'a prepared key is in flight');
sql(q{COMMIT PREPARED 'second'});
is(knows('fresh', 3), 't', 'and then known');
sql(q{TRUNCATE fresh});
$node->restart;
is(sql(q{SELECT streamfilter_test('fresh', 2), streamfilter_test('fresh', 3)}), 'f|f', 'TRUNCATE comes after it');

# --- The first use, wherever it is ---------------------------------------------------------------------

my $ask = q{SELECT count(*) FILTER (WHERE NOT streamfilter_test('seen', id)) FROM events};
for my $setting ('', 'SET default_transaction_isolation = serializable', 'SET default_transaction_read_only = on',
	'SET default_transaction_isolation = serializable; SET default_transaction_deferrable = on',
	'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0')
{
	$node->restart;
	is(sql("$setting; $ask"), '0', "first use: $setting");
	like(sql("$setting; EXPLAIN $ask"), qr/Gather/, 'that is parallel') if $setting =~ /parallel/;
}
$node->restart;
is(sql(q{
		DO $$ BEGIN PERFORM streamfilter_test('seen', 1), 1 / 0; EXCEPTION WHEN division_by_zero THEN END $$;
		BEGIN; SAVEPOINT a; INSERT INTO seen VALUES (-1); ROLLBACK TO a; INSERT INTO seen VALUES (-2); COMMIT;
		SELECT streamfilter_test('seen', -1), streamfilter_test('seen', -2);} . $ask), "f|t\n0",
	'first use: in a subtransaction that rolls back');

# It leaves nothing that keeps the next transaction from being prepared, or makes a commit write an image.
my $image = q{SELECT string_agg(DISTINCT image::text, ' ') FROM _streamfilter.streamfilter_image WHERE filter = 'seen'::regclass};
$node->restart;
my $before = sql($image);
is(sql(q{
		BEGIN; SAVEPOINT a; INSERT INTO seen VALUES (-3); ROLLBACK TO a; COMMIT;
		BEGIN; INSERT INTO seen VALUES (-4); PREPARE TRANSACTION 'after it'; COMMIT PREPARED 'after it';
		INSERT INTO seen VALUES (-5);
		SELECT streamfilter_test('seen', -3), streamfilter_test('seen', -4), streamfilter_test('seen', -5)}),
	'f|t|t', 'first use: a subtransaction that rolls back, and PREPARE after it');
is(sql($image), $before, '... without an image');

# --- What it costs ------------------------------------------------------------------------------------

# Bytes of WAL of `statements`, without images of pages.
sub wal_of
{
	my ($statements) = @_;
	my $before = sql(q{SELECT pg_current_wal_insert_lsn()});
	sql($statements);
	return sql("SELECT pg_current_wal_insert_lsn() - '$before'");
}
sql(q{
	ALTER SYSTEM SET full_page_writes = off; ALTER SYSTEM SET autovacuum = off; SELECT pg_reload_conf();
	CREATE FOREIGN TABLE cost_logged (id bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', k '10');
	CREATE FOREIGN TABLE cost_unlogged (id bigint) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '1MB', k '10', persistence 'unlogged');
	INSERT INTO cost_logged VALUES (0); INSERT INTO cost_unlogged VALUES (0);});
my %wal;
for my $name ('logged', 'unlogged')
{
	$wal{$name} = wal_of(qq{DO \$\$ BEGIN FOR i IN 1 .. 1000 LOOP INSERT INTO cost_$name VALUES (i); COMMIT; END LOOP; END \$\$});
	$wal{"bulk $name"} = wal_of("INSERT INTO cost_$name SELECT generate_series(10001, 110000)");
}
my ($row, $bulk_rows) = split /\|/, sql(q{
	SELECT round(avg(pg_column_size(l.*)) FILTER (WHERE length(data) = 8)),
	       sum(pg_column_size(l.*)) FILTER (WHERE length(data) > 512)
	FROM _streamfilter.streamfilter_log l WHERE filter = 'cost_logged'::regclass});
diag(sprintf 'WAL for a key: %.1f bytes more than unlogged in a transaction of its own, %.2f in bulk; '
	  . 'of the log: %d bytes in a transaction of its own, %.2f in bulk',
	($wal{logged} - $wal{unlogged}) / 1000, ($wal{'bulk logged'} - $wal{'bulk unlogged'}) / 100000,
	$row, $bulk_rows / 100000);
# 8 bytes of the hash; a row of a heap and a WAL record around them.
cmp_ok($wal{logged} - $wal{unlogged}, '<', 1000 * 200, 'a row of the log costs less than 200 bytes of WAL');
cmp_ok($wal{'bulk logged'} - $wal{'bulk unlogged'}, '<', 100000 * 10, 'and less than 10 a key in bulk');

done_testing();
