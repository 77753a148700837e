# A logged filter is wherever its tables are: on a standby, after promotion, after recovery to a point
# in time, in a base backup. It is as old as they are, never newer.
# flavours: faults
use Sf;

my $primary = start_node('primary', q{
streamfilter.shared_memory = '16MB'
max_prepared_transactions = 10
wal_retrieve_retry_interval = '100ms'
statement_timeout = '30s'
lock_timeout = '10s'
fsync = off
}, allows_streaming => 1, has_archiving => 1);
# So large that a false positive is less likely than 1e-6 in the whole test.
sql(q{
	CREATE TABLE events (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', k '10');
	CREATE TRIGGER zz BEFORE INSERT ON events
	  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	-- Kinds whose state is more than bits.
	CREATE FOREIGN TABLE recent (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '256kB');
	CREATE FOREIGN TABLE quotient (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '256kB');
	CREATE FOREIGN TABLE notes (id int) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '64kB', k '10', persistence 'unlogged');
	INSERT INTO events SELECT generate_series(1, 1000);
	INSERT INTO recent SELECT generate_series(1, 1000);
	INSERT INTO quotient SELECT generate_series(1, 1000);
	INSERT INTO notes SELECT generate_series(1, 1000);});
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

sub catch_up { $primary->wait_for_catchup($standby) }

# --- Streaming ----------------------------------------------------------------------------------------

catch_up();
is(known('seen', 1, 2000, $standby), 1000, 'standby: all keys, no other');
is(known('recent', 1, 1000, $standby), 1000, 'standby: lru');
is(known('quotient', 1, 1000, $standby), 1000, 'standby: sqf');
is(known('notes', 1, 1000, $standby), 0, 'standby: an unlogged filter is empty');

sql('INSERT INTO events SELECT generate_series(1001, 1100)');
catch_up();
is(known('seen', 1, 2000, $standby), 1100, 'standby: follows');
sql(q{BEGIN; INSERT INTO events VALUES (1101); ROLLBACK;
	BEGIN; INSERT INTO events VALUES (1102); PREPARE TRANSACTION 'a';});
catch_up();
is(known('seen', 1101, 1102, $standby), 0, 'standby: nothing of what did not commit');
sql(q{COMMIT PREPARED 'a'});
catch_up();
is(known('seen', 1101, 1102, $standby), 1, 'standby: what was prepared, once it commits');
sql(q{INSERT INTO events SELECT generate_series(1103, 1200);
	SELECT streamfilter_save();});
catch_up();
is(known('seen', 1, 2000, $standby), 1199, 'standby: after a save');
is(known('recent', 1, 1000, $standby), 1000, 'standby: lru after a save');
is(known('quotient', 1, 1000, $standby), 1000, 'standby: sqf after a save');
sql(q{INSERT INTO events SELECT generate_series(1201, 1300)});
sql(q{VACUUM FREEZE _streamfilter.streamfilter_log});
catch_up();
is(known('seen', 1, 2000, $standby), 1299, 'standby: rows of the log that were frozen meanwhile');

# Several sessions ask while the filter is read anew.
my $script = PostgreSQL::Test::Utils::tempdir . '/ask.sql';
PostgreSQL::Test::Utils::append_to_file($script, join '',
	map { "SELECT count(*) FROM generate_series(1, 1000) i WHERE streamfilter_test('recent', i) AND streamfilter_test('quotient', i);\n" } 1 .. 40);
my @outs = ('') x 3;
my @runs = map {
	IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $standby->connstr('postgres'), '-f', $script ],
		'<', \undef, '>', \$outs[$_], IPC::Run::timeout(60))
} 0 .. 2;
sql(q{SELECT streamfilter_save('recent'); SELECT streamfilter_save('quotient')}) for 1 .. 10;
$_->finish for @runs;
is(join('', @outs), "1000\n" x 120, 'standby: nobody sees a filter that is being read anew');

# --- Under load ---------------------------------------------------------------------------------------

sql(q{
	CREATE SEQUENCE keys;
	CREATE TABLE busy (id bigint);
	CREATE FOREIGN TABLE seen_busy (id bigint) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '2MB', k '10', slices '40', slicing 'vertical');
	CREATE TRIGGER zz BEFORE INSERT ON busy
	  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_busy');});
my $insert = q{INSERT INTO busy SELECT nextval('keys') FROM generate_series(1, 3);};
my @load = map {
	my $session = $_;
	my $load = PostgreSQL::Test::Utils::tempdir . "/load_$session.sql";
	PostgreSQL::Test::Utils::append_to_file($load, join "\n", map {
			my $name = "load_${session}_$_";
			( $insert, "BEGIN; $insert SAVEPOINT a; $insert ROLLBACK TO a; $insert COMMIT;", "BEGIN; $insert ROLLBACK;",
				"BEGIN; $insert PREPARE TRANSACTION '$name'; " . ($_ % 2 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$name';",
				$_ % 20 ? '' : q{SELECT streamfilter_save('seen_busy');})
		} 1 .. 400);
	IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $primary->connstr('postgres'), '-f', $load ],
		'<', \undef, '>', \my $ignored, IPC::Run::timeout(60))
} 1 .. 2;
my ($looks, $unknown, $most) = (0, 0, 0);
for (1 .. 200)
{
	$_->pump_nb for grep { $_->pumpable } @load;
	last if $looks >= 10 && !grep { $_->pumpable } @load;
	my ($rows, $missing) = split /\|/, sql(q{SELECT count(*), count(*) FILTER (WHERE NOT streamfilter_test('seen_busy', id)) FROM busy}, $standby);
	$unknown += $missing;
	$most = $rows;
	$looks++;
}
$_->finish for @load;
catch_up();
diag("standby under load: looked $looks times, in the end at $most rows; $unknown not known");
is($unknown, 0, 'standby: under load, too, the filter is never older than the table');
is($standby->safe_psql('postgres', q{
		SELECT count(*) FILTER (WHERE (b.id IS NOT NULL) <> known)
		FROM (SELECT i, streamfilter_test('seen_busy', i) AS known
		      FROM generate_series(1, (SELECT last_value + 100 FROM keys)) i OFFSET 0) k
		LEFT JOIN busy b ON b.id = k.i}), '0', 'and in the end it knows its rows and no other key');

# --- TRUNCATE, ALTER, and what a standby refuses -------------------------------------------------------

sql(q{BEGIN; TRUNCATE events; TRUNCATE seen; INSERT INTO events VALUES (5); COMMIT;});
catch_up();
is(known('seen', 1, 2000, $standby), 1, 'standby: TRUNCATE');
sql(q{INSERT INTO events SELECT generate_series(1, 1000)});

my ($out, $err);
for my $statement (q{INSERT INTO seen VALUES (1)}, q{SELECT streamfilter_seen('seen', 1)}, q{SELECT streamfilter_save('seen')})
{
	isnt($standby->psql('postgres', $statement, stderr => \$err), 0, "standby: fails: $statement");
	like($err, qr/read-only transaction|during recovery/, 'with the reason');
}

# An unlogged filter that becomes a logged one.
sql(q{ALTER FOREIGN TABLE notes OPTIONS (SET persistence 'logged')});
catch_up();
is(known('notes', 1, 2000, $standby), 1000, 'standby: a filter that was altered to logged');

# --- A point in time ----------------------------------------------------------------------------------

my $target = $primary->lsn('insert');
sql(q{INSERT INTO events SELECT generate_series(1001, 1500)});
sql(q{SELECT streamfilter_save('seen')});
sql(q{SELECT pg_switch_wal()});
my $past = PostgreSQL::Test::Cluster->new('past');
$past->init_from_backup($primary, 'base', has_restoring => 1);
$past->append_conf('postgresql.conf', "recovery_target_lsn = '$target'\nrecovery_target_action = 'promote'\narchive_mode = off");
$past->start;
$past->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery does not end';
is(sql('SELECT count(*) FROM events', $past), '1000', 'point in time: the table');
is(known('seen', 1, 2000, $past), 1000, 'and its filter');
is($past->safe_psql('postgres', q{INSERT INTO events SELECT generate_series(901, 1100);
	SELECT count(*), max(id) FROM events}), '1100|1100',
	'later keys are accepted again, earlier ones are repeats');
crash($past);
is(known('seen', 1, 2000, $past), 1100, 'a crash later, the filter is still as its table');
$past->stop;

# --- A base backup that is taken under way ------------------------------------------------------------

$primary->backup('later');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($primary, 'later');
$copy->append_conf('postgresql.conf', 'archive_mode = off');
$copy->start;
is(known('seen', 1, 2000, $copy), 1500, 'base backup: the filter comes with it');
is(sql('INSERT INTO events SELECT generate_series(1, 1500) RETURNING id', $copy), '', 'and discards repeats');
$copy->stop;

# --- Promotion ----------------------------------------------------------------------------------------

sql(q{
	BEGIN; INSERT INTO events VALUES (3001); PREPARE TRANSACTION 'b';
	BEGIN; INSERT INTO events VALUES (3002); PREPARE TRANSACTION 'c';});
catch_up();
is(known('seen', 1, 4000, $standby), 1500, 'standby: before promotion');
$primary->stop('immediate');
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no promotion';
is(sql('INSERT INTO events SELECT generate_series(1, 1510) RETURNING id', $standby),
	join("\n", 1501 .. 1510), 'promoted: duplicates of rows from before are discarded, new ones are not');
is(sql(q{SELECT in_flight FROM streamfilter_stats WHERE filter = 'seen'::regclass}, $standby),
	'2', 'promoted: prepared keys are in flight');
sql(q{COMMIT PREPARED 'b'}, $standby);
sql(q{ROLLBACK PREPARED 'c'}, $standby);
is(known('seen', 3001, 3002, $standby), 1, 'promoted: and counted when they commit');
is(known('recent', 1, 1000, $standby), 1000, 'promoted: lru');
crash($standby);
is(known('seen', 1, 4000, $standby), 1511, 'promoted: all that after a crash, too');

done_testing();
