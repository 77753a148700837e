# Prepared transactions that end while a filter is being loaded, and more prepared transactions than sessions.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	streamfilter.max_in_flight = 1000
	streamfilter.restore_workers = 0
	max_prepared_transactions = 5});
sql(q{
	CREATE TABLE events (id int);
	CREATE TABLE others (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '10');
	CREATE FOREIGN TABLE others_seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '10');
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TRIGGER discard BEFORE INSERT ON others FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('others_seen');
	INSERT INTO events VALUES (0);
	INSERT INTO others VALUES (0)});
my $faults = FaultPoints->new($node);

# ---- COMMIT PREPARED while a filter is being loaded -------------------------------------------------------------------

sql(q{BEGIN; INSERT INTO events SELECT generate_series(1, 100); INSERT INTO others VALUES (1); PREPARE TRANSACTION 'one'});
sql(q{SELECT streamfilter_save('seen')});
$node->restart;
my $loading = $faults->stop_at('restore', q{SELECT streamfilter_test('seen', 0)});
is(sql(q{COMMIT PREPARED 'one'; SELECT streamfilter_test('others_seen', 1)}), 't',
	'committed meanwhile: its keys of another filter are known');
is($faults->let_go('restore', $loading), 't', 'a filter is loaded');
is(known('seen', 1, 100), 100, 'keys that were committed meanwhile are in it');
sql(q{SELECT streamfilter_save('seen')});
$node->restart;
is(known('seen', 1, 100), 100, 'and stay');

sql(q{BEGIN; INSERT INTO events SELECT generate_series(101, 200); PREPARE TRANSACTION 'two'});
$node->restart;
$loading = $faults->stop_at('restore', q{SELECT streamfilter_test('seen', 0)});
sql(q{ROLLBACK PREPARED 'two'});
is($faults->let_go('restore', $loading), 't', 'rolled back meanwhile');
is(known('seen', 101, 200), 0, 'its keys are not in it');
is(sql('INSERT INTO events VALUES (150) RETURNING id'), 150, 'and are new');

# ---- the first change of a filter is a prepared transaction -----------------------------------------------------------

sql(q{CREATE FOREIGN TABLE first (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB')});
sql(q{BEGIN; INSERT INTO first SELECT generate_series(1, 100); PREPARE TRANSACTION 'first'});
sub first_known { return sql("SELECT count(*) FROM generate_series($_[0], $_[1]) i WHERE streamfilter_test('first', i)"); }
for my $stop ('fast', 'immediate')
{
	$node->stop($stop);
	$node->start;
	is(first_known(1, 100), 0, "after a stop ($stop): not committed yet");
}
sql('INSERT INTO first SELECT generate_series(101, 200)');
crash();
is(first_known(1, 200), 100, 'what was committed meanwhile survives');
sql(q{COMMIT PREPARED 'first'});
is(first_known(1, 200), 200, 'the prepared keys are known once they are committed');
crash();
is(first_known(1, 200), 200, 'and survive');

# ---- keys that are not in the table of keys in flight ------------------------------------------------------------------

sql(q{ALTER FOREIGN TABLE seen OPTIONS (ADD conflict 'admit')});
my $first = $faults->{node}->background_psql('postgres');
$first->query_safe('BEGIN; INSERT INTO events VALUES (300)');
sql(q{BEGIN; INSERT INTO events VALUES (300); PREPARE TRANSACTION 'three'});
end_session($first, 'ROLLBACK');
my $ending = $faults->stop_at('resolve', q{COMMIT PREPARED 'three'});
is(sql(q{SELECT count(*) FROM events WHERE id = 300}), 1, 'a row that is admitted in spite of another is committed');
is(known('seen', 300, 300), 1, 'its key is known before its session has brought it in');
is(sql('INSERT INTO events VALUES (300) RETURNING id'), '', 'and a repeat');
$faults->let_go('resolve', $ending);
sql(q{ALTER FOREIGN TABLE seen OPTIONS (DROP conflict)});

# ---- COMMIT PREPARED cannot fail once it has taken effect ----------------------------------------------------------------

sql(q{BEGIN; INSERT INTO events VALUES (310); PREPARE TRANSACTION 'cancelled'});
$ending = $faults->stop_at('resolve', q{COMMIT PREPARED 'cancelled'});
sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'COMMIT PREPARED ''cancelled'''});
sleep 1;
is($faults->let_go('resolve', $ending), '', 'a request that is cancelled after it has taken effect does not fail');
is(known('seen', 310, 310), 1, 'its key is known');

# ---- the table of keys in flight is busy --------------------------------------------------------------------------------

sql(q{BEGIN; INSERT INTO events SELECT generate_series(1001, 1400); PREPARE TRANSACTION 'four'});
$node->restart;
# Each leaves as much as it takes.
my @busy = map { $node->background_psql('postgres') } 1 .. 3;
$busy[0]->query_safe('BEGIN; INSERT INTO others SELECT generate_series(1001, 1400)');
$busy[1]->query_safe('BEGIN; INSERT INTO others SELECT generate_series(2001, 2200)');
$busy[2]->query_safe('BEGIN; INSERT INTO others SELECT generate_series(3001, 3150)');
is(said(q{SELECT streamfilter_test('seen', 0)}), '', 'prepared keys have their places, whoever else has some');
is(said(q{
	SET lock_timeout = '5ms';
	DO $$
	DECLARE waits int := 0;
	BEGIN
	  FOR i IN 1001 .. 1400 LOOP
	    BEGIN
	      INSERT INTO events VALUES (i);
	    EXCEPTION WHEN lock_not_available THEN
	      waits := waits + 1;
	    END;
	  END LOOP;
	  IF waits < 400 THEN RAISE WARNING 'only % keys are in flight', waits; END IF;
	END $$}), '', 'who adds one of them waits for their transaction');
is(sql(q{SET lock_timeout = '1s'; INSERT INTO seen VALUES (5000) RETURNING id}), 5000, 'others do not wait');
for my $session (@busy) { end_session($session, 'COMMIT'); }
sql(q{COMMIT PREPARED 'four'});
is(known('seen', 1001, 1400), 400, 'all of them are known once they are committed');

# ---- many filters, few sessions ------------------------------------------------------------------------------------------

$node->append_conf('postgresql.conf', q{
	max_connections = 5
	superuser_reserved_connections = 0
	max_worker_processes = 0
	max_wal_senders = 0
	autovacuum_max_workers = 1});
sql(join(';', map { "CREATE FOREIGN TABLE many_$_ (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4');"
		. "INSERT INTO many_$_ VALUES (0)" } 1 .. 40));
$node->restart;
# Those of the first two alternate, filter by filter, once they are read back; the third comes last.
sql('BEGIN;' . join(';', map { "INSERT INTO many_$_ VALUES (1)" } 1 .. 40) . "; PREPARE TRANSACTION 'many1'");
sql('BEGIN;' . join(';', map { "INSERT INTO many_$_ VALUES (2)" } 1 .. 40) . "; PREPARE TRANSACTION 'many2'");
sql("BEGIN; INSERT INTO many_40 VALUES (3); PREPARE TRANSACTION 'many3'");
$node->restart;
sql(join(';', map { "SELECT streamfilter_test('many_$_', 0)" } 1 .. 40));
sql("COMMIT PREPARED 'many3'; SELECT streamfilter_save('many_40')");
is(knows('many_40', 3), 't', 'brought in, after many of others');
crash();
is(knows('many_40', 3), 't', 'and saved');
sql("COMMIT PREPARED 'many1'");
sql("ROLLBACK PREPARED 'many2'");
is(sql(join(' UNION ALL ', map { "SELECT streamfilter_test('many_$_', t) FROM generate_series(1, 2) t" } 1 .. 40)),
	join("\n", ('t', 'f') x 40), 'the others as they end');

# ---- another size, while what has committed is not yet in the filter: its session has let go of the relation by then ----

sql(q{CREATE FOREIGN TABLE sized (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '1MB'); INSERT INTO sized VALUES (1)});
sql(q{BEGIN; INSERT INTO sized VALUES (2); PREPARE TRANSACTION 'resized'});
my $late = $faults->stop_at('resolve', q{COMMIT PREPARED 'resized'});
sql(q{ALTER FOREIGN TABLE sized OPTIONS (SET memory '2MB')});
is($faults->let_go('resolve', $late), '', 'COMMIT PREPARED, and another size meanwhile');
is(sql(q{SELECT streamfilter_test('sized', 1), streamfilter_test('sized', 2)}), 't|t', 'knows what has committed');

done_testing();
