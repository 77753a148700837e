# The workers of a subscription: large transactions that are streamed before they end (by several workers at a time since
# PostgreSQL 16), with savepoints that roll back; transactions in two phases. A key counts when its transaction commits here.
use Sf;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', q{
max_prepared_transactions = 10
logical_decoding_work_mem = '64kB'
fsync = off});
$publisher->start;
sql('CREATE TABLE events (id int, payload text); CREATE PUBLICATION events FOR TABLE events');

my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->append_conf('postgresql.conf', slurp_file("$root/test/streamfilter.conf"));
$subscriber->append_conf('postgresql.conf', q{
wal_retrieve_retry_interval = '100ms'
max_logical_replication_workers = 10
deadlock_timeout = '50ms'});
$subscriber->start;
$subscriber->safe_psql('postgres', q{
	CREATE EXTENSION streamfilter;
	CREATE TABLE events (id int, payload text);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
	CREATE TRIGGER zz_once BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	ALTER TABLE events ENABLE ALWAYS TRIGGER zz_once});
my $streaming = $subscriber->pg_version >= 16 ? 'parallel' : 'on';
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', qq{CREATE SUBSCRIPTION events CONNECTION '$connection' PUBLICATION events
	WITH (streaming = $streaming, two_phase = on)});
$subscriber->wait_for_subscription_sync($publisher, 'events');
ok($subscriber->poll_query_until('postgres', q{SELECT subtwophasestate = 'e' FROM pg_subscription}), 'two_phase is on');

sub publish { return sql($_[0]); }
sub here { return sql($_[0], $subscriber); }
sub catch_up { $publisher->wait_for_catchup('events'); }
sub rows { my ($from, $to) = @_; return here("SELECT count(*), count(DISTINCT id) FROM events WHERE id BETWEEN $from AND $to"); }
my $many = q{INSERT INTO events SELECT i %% %d + %d, repeat('x', 50) FROM generate_series(1, %d) i};

# ---- streams -----------------------------------------------------------------------------------------------
publish(sprintf $many, 5000, 0, 8000);
catch_up();
is(rows(0, 9999), '5000|5000', 'a streamed transaction, with repeats in it');
cmp_ok(publish(q{SELECT stream_txns FROM pg_stat_replication_slots}), '>', 0, '... it was streamed');
publish(sprintf $many, 6000, 0, 6000);
catch_up();
is(rows(0, 9999), '6000|6000', '... another one, most of which is known');

publish('BEGIN; ' . sprintf($many, 4000, 20000, 4000) . '; SAVEPOINT s; ' . sprintf($many, 4000, 30000, 4000)
	. '; ROLLBACK TO s; ' . sprintf($many, 4000, 22000, 4000) . '; COMMIT');
catch_up();
is(rows(20000, 39999), '6000|6000', 'a savepoint that rolls back in a stream leaves no row');
publish(sprintf $many, 4000, 30000, 4000);
catch_up();
is(rows(30000, 39999), '4000|4000', '... and no key');

publish('BEGIN; ' . sprintf($many, 4000, 40000, 4000) . '; ROLLBACK');
publish(sprintf $many, 4000, 40000, 4000);
catch_up();
is(rows(40000, 49999), '4000|4000', 'a stream that rolls back leaves no key');

# Two streams at a time with the same keys, in opposite orders. Parallel workers that wait for each other begin again, both,
# and with that the deadlock; streams that are applied when they have ended do not wait.
my @sessions = map { $publisher->background_psql('postgres') } 0, 1;
$_->query_safe('BEGIN') for @sessions;
$sessions[0]->query_safe(q{INSERT INTO events SELECT i, repeat('x', 50) FROM generate_series(50000, 53999) i});
$sessions[1]->query_safe(q{INSERT INTO events SELECT i, repeat('x', 50) FROM generate_series(53999, 50000, -1) i});
$_->query_safe('COMMIT') for @sessions;
$_->quit for @sessions;
if ($streaming eq 'parallel')
{
	ok($subscriber->poll_query_until('postgres', q{SELECT (SELECT apply_error_count > 0 FROM pg_stat_subscription_stats)
		OR EXISTS (SELECT FROM events WHERE id = 50000)}), 'two parallel streams with the same keys');
	here('ALTER SUBSCRIPTION events SET (streaming = on)');
}
catch_up();
is(rows(50000, 59999), '4000|4000', 'two streams with the same keys');
here("ALTER SUBSCRIPTION events SET (streaming = $streaming)");

# ---- two phases ----------------------------------------------------------------------------------------------
sub prepared { ok($subscriber->poll_query_until('postgres', "SELECT count(*) = $_[0] FROM pg_prepared_xacts"), $_[1]); }
publish(q{BEGIN; INSERT INTO events VALUES (60000), (60000), (60001); PREPARE TRANSACTION 'a'});
prepared(1, 'a prepared transaction is prepared here');
like(said(q{SET lock_timeout = '200ms'; INSERT INTO events VALUES (60000)}, $subscriber), qr/lock timeout/, '... others wait for its keys');
publish(q{ROLLBACK PREPARED 'a'});
prepared(0, '... until it ends');
here('INSERT INTO events VALUES (60000)');
is(rows(60000, 60000), '1|1', '... rolled back, its keys are new');
publish('BEGIN; ' . sprintf($many, 4000, 61000, 8000) . q{; PREPARE TRANSACTION 'b'});
prepared(1, 'a streamed transaction is prepared');
$subscriber->restart;
publish(q{COMMIT PREPARED 'b'});
prepared(0, '... and commits after a restart');
publish(sprintf $many, 4000, 61000, 4000);
catch_up();
is(rows(61000, 69999), '4000|4000', '... its keys are known');
publish(q{BEGIN; INSERT INTO events SELECT generate_series(70000, 70099); PREPARE TRANSACTION 'c'});
prepared(1, 'a prepared transaction');
crash($subscriber);
publish(q{COMMIT PREPARED 'c'});
prepared(0, '... that commits after a crash');
publish('INSERT INTO events SELECT generate_series(70000, 70199)');
catch_up();
is(rows(70000, 79999), '200|200', '... is remembered');

# ---- a worker that fails begins again, and nothing that it has not committed is known -------------------------
my $errors = here('SELECT apply_error_count FROM pg_stat_subscription_stats');
here(q{ALTER TABLE events ADD CHECK (id <> 80500)});
publish('BEGIN; INSERT INTO events SELECT generate_series(80000, 80499); INSERT INTO events VALUES (80500); COMMIT');
ok($subscriber->poll_query_until('postgres', "SELECT apply_error_count > $errors + 1 FROM pg_stat_subscription_stats"), 'a worker that fails, again and again');
here('ALTER TABLE events DROP CONSTRAINT events_id_check');
catch_up();
is(rows(80000, 89999), '501|501', '... loses nothing when the cause is gone');

# ---- a later trigger, or a second filter: a worker does not tell what becomes of a row, so it must not judge it ------------------
my $log = -s $subscriber->logfile;
here(q{CREATE FUNCTION drop_odd() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN CASE WHEN NEW.id % 2 = 0 THEN NEW END; END$$;
	CREATE TRIGGER zzz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION drop_odd();
	ALTER TABLE events ENABLE ALWAYS TRIGGER zzz});
publish('INSERT INTO events VALUES (90001), (90002), (90001)');
$subscriber->wait_for_log(qr/must be the last BEFORE INSERT row trigger of table "events"/, $log);
is(rows(90000, 90009), '0|0', 'a later trigger: no row is stored');
is(here(q{SELECT count(*) FROM generate_series(90000, 90009) i WHERE streamfilter_test('seen', i)}), 0, '... and no key remembered');
here('DROP TRIGGER zzz ON events');
catch_up();
is(rows(90000, 90009), '2|2', '... until it goes');
$log = -s $subscriber->logfile;
here(q{CREATE FOREIGN TABLE seen_payloads (payload text) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
	CREATE TRIGGER zzz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_payloads');
	ALTER TABLE events ENABLE ALWAYS TRIGGER zzz});
publish(q{INSERT INTO events VALUES (90011, 'a'), (90012, 'a')});
$subscriber->wait_for_log(qr/must be the last BEFORE INSERT row trigger of table "events"/, $log);
is(rows(90010, 90019), '0|0', 'a second filter, likewise');
here('DROP TRIGGER zzz ON events');
catch_up();
is(rows(90010, 90019), '2|2', '... until it goes');

sql('DROP SUBSCRIPTION events', $subscriber);
done_testing();
