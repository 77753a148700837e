# A logged filter is wherever its tables are: on a standby, after promotion, after recovery to a point
# in time, in a base backup. It is as old as they are, never newer.
# flavours: faults
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Servers;
use Test::More;

my $primary = start_node('primary', q{
streamfilter.shared_memory = '16MB'
max_prepared_transactions = 10
wal_retrieve_retry_interval = '100ms'
statement_timeout = '30s'
lock_timeout = '10s'
fsync = off
}, allows_streaming => 1, has_archiving => 1);
# So large that a false positive is less likely than 1e-6 in the whole test.
$primary->safe_psql('postgres', q{
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

sub known
{
	my ($node, $filter, $from, $to) = @_;
	return $node->safe_psql('postgres',
		"SELECT count(*) FROM generate_series($from, $to) i WHERE streamfilter_test('$filter', i)");
}
sub catch_up { $primary->wait_for_catchup($standby) }

# --- Streaming ----------------------------------------------------------------------------------------

catch_up();
is(known($standby, 'seen', 1, 2000), 1000, 'standby: all keys, no other');
is(known($standby, 'recent', 1, 1000), 1000, 'standby: lru');
is(known($standby, 'quotient', 1, 1000), 1000, 'standby: sqf');
is(known($standby, 'notes', 1, 1000), 0, 'standby: an unlogged filter is empty');

$primary->safe_psql('postgres', 'INSERT INTO events SELECT generate_series(1001, 1100)');
catch_up();
is(known($standby, 'seen', 1, 2000), 1100, 'standby: follows');
$primary->safe_psql('postgres', q{BEGIN; INSERT INTO events VALUES (1101); ROLLBACK;
	BEGIN; INSERT INTO events VALUES (1102); PREPARE TRANSACTION 'a';});
catch_up();
is(known($standby, 'seen', 1101, 1102), 0, 'standby: nothing of what did not commit');
$primary->safe_psql('postgres', q{COMMIT PREPARED 'a'});
catch_up();
is(known($standby, 'seen', 1101, 1102), 1, 'standby: what was prepared, once it commits');
$primary->safe_psql('postgres', q{INSERT INTO events SELECT generate_series(1103, 1200);
	SELECT streamfilter_save();});
catch_up();
is(known($standby, 'seen', 1, 2000), 1199, 'standby: after a save');
is(known($standby, 'recent', 1, 1000), 1000, 'standby: lru after a save');
is(known($standby, 'quotient', 1, 1000), 1000, 'standby: sqf after a save');
$primary->safe_psql('postgres', q{INSERT INTO events SELECT generate_series(1201, 1300)});
$primary->safe_psql('postgres', q{VACUUM FREEZE _streamfilter.streamfilter_log});
catch_up();
is(known($standby, 'seen', 1, 2000), 1299, 'standby: rows of the log that were frozen meanwhile');

# Several sessions ask while the filter is read anew.
my $script = PostgreSQL::Test::Utils::tempdir . '/ask.sql';
PostgreSQL::Test::Utils::append_to_file($script, join '',
	map { "SELECT count(*) FROM generate_series(1, 1000) i WHERE streamfilter_test('recent', i) AND streamfilter_test('quotient', i);\n" } 1 .. 40);
my @outs = ('') x 3;
my @runs = map {
	IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $standby->connstr('postgres'), '-f', $script ],
		'<', \undef, '>', \$outs[$_], IPC::Run::timeout(60))
} 0 .. 2;
$primary->safe_psql('postgres', q{SELECT streamfilter_save('recent'); SELECT streamfilter_save('quotient')}) for 1 .. 10;
$_->finish for @runs;
is(join('', @outs), "1000\n" x 120, 'standby: nobody sees a filter that is being read anew');

# --- Under load ---------------------------------------------------------------------------------------

$primary->safe_psql('postgres', q{
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
	my ($rows, $missing) = split /\|/, $standby->safe_psql('postgres',
		q{SELECT count(*), count(*) FILTER (WHERE NOT streamfilter_test('seen_busy', id)) FROM busy});
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

$primary->safe_psql('postgres', q{BEGIN; TRUNCATE events; TRUNCATE seen; INSERT INTO events VALUES (5); COMMIT;});
catch_up();
is(known($standby, 'seen', 1, 2000), 1, 'standby: TRUNCATE');
$primary->safe_psql('postgres', q{INSERT INTO events SELECT generate_series(1, 1000)});

my ($out, $err);
for my $statement (q{INSERT INTO seen VALUES (1)}, q{SELECT streamfilter_seen('seen', 1)}, q{SELECT streamfilter_save('seen')})
{
	isnt($standby->psql('postgres', $statement, stderr => \$err), 0, "standby: fails: $statement");
	like($err, qr/read-only transaction|during recovery/, 'with the reason');
}

# An unlogged filter that becomes a logged one.
$primary->safe_psql('postgres', q{ALTER FOREIGN TABLE notes OPTIONS (SET persistence 'logged')});
catch_up();
is(known($standby, 'notes', 1, 2000), 1000, 'standby: a filter that was altered to logged');

# --- A point in time ----------------------------------------------------------------------------------

my $target = $primary->lsn('insert');
$primary->safe_psql('postgres', q{INSERT INTO events SELECT generate_series(1001, 1500)});
$primary->safe_psql('postgres', q{SELECT streamfilter_save('seen')});
$primary->safe_psql('postgres', q{SELECT pg_switch_wal()});
my $past = PostgreSQL::Test::Cluster->new('past');
$past->init_from_backup($primary, 'base', has_restoring => 1);
$past->append_conf('postgresql.conf',
	"recovery_target_lsn = '$target'\nrecovery_target_action = 'promote'\narchive_mode = off");
$past->start;
$past->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery does not end';
is($past->safe_psql('postgres', 'SELECT count(*) FROM events'), '1000', 'point in time: the table');
is(known($past, 'seen', 1, 2000), 1000, 'and its filter');
is($past->safe_psql('postgres', q{INSERT INTO events SELECT generate_series(901, 1100);
	SELECT count(*), max(id) FROM events}), '1100|1100',
	'later keys are accepted again, earlier ones are repeats');
$past->stop('immediate');
$past->start;
is(known($past, 'seen', 1, 2000), 1100, 'a crash later, the filter is still as its table');
$past->stop;

# --- A base backup that is taken under way ------------------------------------------------------------

$primary->backup('later');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($primary, 'later');
$copy->append_conf('postgresql.conf', 'archive_mode = off');
$copy->start;
is(known($copy, 'seen', 1, 2000), 1500, 'base backup: the filter comes with it');
is($copy->safe_psql('postgres', 'INSERT INTO events SELECT generate_series(1, 1500) RETURNING id'),
	'', 'and discards repeats');
$copy->stop;

# --- Promotion ----------------------------------------------------------------------------------------

$primary->safe_psql('postgres', q{
	BEGIN; INSERT INTO events VALUES (3001); PREPARE TRANSACTION 'b';
	BEGIN; INSERT INTO events VALUES (3002); PREPARE TRANSACTION 'c';});
catch_up();
is(known($standby, 'seen', 1, 4000), 1500, 'standby: before promotion');
$primary->stop('immediate');
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no promotion';
is($standby->safe_psql('postgres', 'INSERT INTO events SELECT generate_series(1, 1510) RETURNING id'),
	join("\n", 1501 .. 1510), 'promoted: duplicates of rows from before are discarded, new ones are not');
is($standby->safe_psql('postgres', q{SELECT in_flight FROM streamfilter_stats WHERE filter = 'seen'::regclass}),
	'2', 'promoted: prepared keys are in flight');
$standby->safe_psql('postgres', q{COMMIT PREPARED 'b'});
$standby->safe_psql('postgres', q{ROLLBACK PREPARED 'c'});
is(known($standby, 'seen', 3001, 3002), 1, 'promoted: and counted when they commit');
is(known($standby, 'recent', 1, 1000), 1000, 'promoted: lru');
$standby->stop('immediate');
$standby->start;
is(known($standby, 'seen', 1, 4000), 1511, 'promoted: all that after a crash, too');

done_testing();
