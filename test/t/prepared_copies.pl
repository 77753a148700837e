# Prepared transactions in between: recovery to points in time before and after their ends, logical replication that
# prepares on the subscriber, tablespaces, dump and restore. Wherever a copy goes its own way from, what is prepared
# there may end otherwise than where it came from; each time the filter knows exactly the keys of committed rows.
# flavours: faults
use Sf;

my $settings = q{
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '16MB'
max_prepared_transactions = 10
wal_retrieve_retry_interval = '100ms'
statement_timeout = '30s'
fsync = off};
# So large that a false positive is less likely than 1e-6 in the whole test.
my $definition = q{
	CREATE EXTENSION streamfilter;
	CREATE TABLE events (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', k '10');
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');};

sub prepare
{
	my ($node, $name, $from, $to) = @_;
	$node->safe_psql('postgres', "BEGIN; INSERT INTO events SELECT generate_series($from, $to); PREPARE TRANSACTION '$name'");
}

# The number of rows, if they are once each and the filter knows their keys and no other up to 2000.
sub rows
{
	my ($node, $database) = @_;
	return $node->safe_psql($database // 'postgres', q{
		SELECT CASE WHEN count(*) = count(DISTINCT id)
		         AND NOT EXISTS (SELECT FROM generate_series(1, 2000) i
		                         WHERE streamfilter_test('seen', i) <> EXISTS (SELECT FROM events e WHERE e.id = i))
		       THEN count(*)::text ELSE 'rows and keys differ' END FROM events});
}

sub in_flight { return sql('SELECT sum(in_flight) FROM streamfilter_stats', $_[0]) }

# Accepts neither what is committed nor, while they run, keys of the prepared.
sub waits_for
{
	my ($node, $key, $name) = @_;
	like(said("SET lock_timeout = '200ms'; INSERT INTO events VALUES ($key)", $node), qr/lock timeout/, $name);
}

my $node = PostgreSQL::Test::Cluster->new('origin');
$node->init(allows_streaming => 'logical', has_archiving => 1);
$node->append_conf('postgresql.conf', $settings . "\nallow_in_place_tablespaces = on");
$node->start;
sql($definition);
sql('INSERT INTO events SELECT generate_series(1, 100)');

# ---- points in time -------------------------------------------------------------------------------------------------

$node->backup('base');
prepare($node, 'a', 101, 200);
prepare($node, 'b', 201, 300);
sql('INSERT INTO events SELECT generate_series(301, 310)');
my $both_prepared = $node->lsn('insert');
sql(q{COMMIT PREPARED 'a'});
my $one_committed = $node->lsn('insert');
sql(q{ROLLBACK PREPARED 'b'});
my $all_ended = $node->lsn('insert');
sql(q{SELECT streamfilter_save('seen'); INSERT INTO events SELECT generate_series(311, 320); SELECT pg_switch_wal()});
is(rows($node), 220, 'origin: what has committed');

sub past
{
	my ($name, $lsn) = @_;
	my $past = PostgreSQL::Test::Cluster->new($name);
	$past->init_from_backup($node, 'base', has_restoring => 1);
	$past->append_conf('postgresql.conf', "recovery_target_lsn = '$lsn'\nrecovery_target_inclusive = off\nrecovery_target_action = 'promote'\narchive_mode = off");
	$past->start;
	$past->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery does not end';
	return $past;
}

my $past = past('prepared', $both_prepared);
waits_for($past, 150, 'both prepared: a key of the first is in flight');
is(in_flight($past), 200, 'all of their keys');
is(rows($past), 110, 'none is known');
sql(q{ROLLBACK PREPARED 'a'}, $past);
crash($past);
waits_for($past, 250, 'after a crash the second is in flight');
sql(q{COMMIT PREPARED 'b'}, $past);
is(rows($past), 210, 'they end the other way round');
is(sql('INSERT INTO events SELECT generate_series(1, 400) RETURNING id', $past), join("\n", 101 .. 200, 311 .. 400),
	'exactly what is not there is new');
crash($past);
is(rows($past), 400, 'also after a crash');
$past->stop;

$past = past('committed', $one_committed);
is(rows($past), 210, 'one committed: it is known');
is(in_flight($past), 100, 'the other is in flight');
sql(q{COMMIT PREPARED 'b'; SELECT streamfilter_save('seen')}, $past);
$past->restart;
is(rows($past), 310, 'both');
$past->stop;

$past = past('ended', $all_ended);
is(rows($past), 210, 'all ended: one committed, one rolled back');
is(sql('INSERT INTO events SELECT generate_series(201, 300) RETURNING id', $past), join("\n", 201 .. 300),
	'keys of the one that rolled back are new');
$past->stop;

# ---- logical replication --------------------------------------------------------------------------------------------

# The subscriber prepares, too; there the trigger judges what the origin has accepted, and a crash comes in between.
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->append_conf('postgresql.conf', $settings);
$subscriber->start;
sql("$definition ALTER TABLE events ENABLE ALWAYS TRIGGER zz", $subscriber);
sql(q{CREATE PUBLICATION events FOR TABLE events WITH (publish = 'insert')});
$subscriber->safe_psql('postgres', sprintf q{CREATE SUBSCRIPTION copy CONNECTION '%s' PUBLICATION events WITH (two_phase = true)},
	$node->connstr . ' dbname=postgres');
$subscriber->wait_for_subscription_sync($node, 'copy');
$subscriber->poll_query_until('postgres', q{SELECT subtwophasestate = 'e' FROM pg_subscription}) or die 'no two-phase commit';
is(rows($subscriber), 220, 'subscriber: the rows from before');
prepare($node, 'c', 401, 450);
prepare($node, 'd', 451, 500);
$node->wait_for_catchup('copy');
is(sql('SELECT count(*) FROM pg_prepared_xacts', $subscriber), 2, 'subscriber: both are prepared');
is(in_flight($subscriber), 100, 'their keys are in flight');
waits_for($subscriber, 420, 'others wait for them');
crash($subscriber);
is(rows($subscriber), 220, 'subscriber: a crash in between');
sql(q{COMMIT PREPARED 'c'; ROLLBACK PREPARED 'd'; INSERT INTO events VALUES (451)});
$node->wait_for_catchup('copy');
is(rows($subscriber), 271, 'subscriber: one committed, one rolled back, and a key of that again');
is(in_flight($subscriber), 0, 'nothing is in flight');
crash($subscriber);
# What is applied is not flushed at once, but asked for again.
$node->wait_for_catchup('copy');
is(rows($subscriber), 271, 'subscriber: as it was after a crash');
sql('DROP SUBSCRIPTION copy', $subscriber);
$subscriber->stop;

# ---- tablespaces ----------------------------------------------------------------------------------------------------

sql(q{CREATE TABLESPACE elsewhere LOCATION ''});
prepare($node, 'e', 501, 510);
for my $heap ('MATERIALIZED VIEW _streamfilter.streamfilter_log', 'TABLE events')
{
	like(said("SET lock_timeout = '200ms'; ALTER $heap SET TABLESPACE elsewhere"), qr/lock timeout/, "$heap does not move under a prepared transaction");
}
sql('ALTER MATERIALIZED VIEW _streamfilter.streamfilter_image SET TABLESPACE elsewhere');
sql(q{COMMIT PREPARED 'e'});
$node->safe_psql('postgres', "ALTER $_ SET TABLESPACE elsewhere") for 'MATERIALIZED VIEW _streamfilter.streamfilter_log', 'TABLE events';
prepare($node, 'f', 511, 520);
sql('INSERT INTO events VALUES (521)');
crash();
is(in_flight($node), 0, 'moved, after a crash: nothing is read before it is used');
is(rows($node), 282, 'moved: rows and keys');
is(in_flight($node), 10, 'the prepared keys are in flight');
sql(q{COMMIT PREPARED 'f'; SELECT streamfilter_save('seen')});
crash();
is(rows($node), 292, 'moved, saved there, and after another crash');

# ---- dump and restore -----------------------------------------------------------------------------------------------

prepare($node, 'g', 521, 540);
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('postgres') ], 'a dump beside a prepared transaction');
my ($status, $out, $error) = $node->psql('template1', 'CREATE DATABASE same TEMPLATE postgres');
like($error, qr/being accessed by other users/, 'no database is copied beside one');
sql('CREATE DATABASE restored', 'template1');
$node->command_ok([ 'pg_restore', '-d', $node->connstr('restored'), $dump ], 'the dump is restored');
is(sql('SELECT count(*) FROM events', 'restored'), 292, 'without what was prepared');
sql('INSERT INTO seen SELECT id FROM events', 'restored');
is(rows($node, 'restored'), 292, 'restored and warmed');
is(sql('INSERT INTO events SELECT generate_series(521, 545) RETURNING id', 'restored'), join("\n", 522 .. 545),
	'there the keys of the prepared transaction are new, and nobody waits');
sql(q{ROLLBACK PREPARED 'g'});
is(rows($node), 292, 'where it came from they are forgotten');
is(rows($node, 'restored'), 316, 'and there they stay');
crash();
is(rows($node) . ' ' . rows($node, 'restored'), '292 316', 'also after a crash');

done();
