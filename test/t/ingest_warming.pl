# streamfilter_warm() interrupted in every way, beside another one and beside traffic, and in batches that can be taken up
# again: all of a call is remembered, or nothing.
use Sf;

my $node = start_node('warming', q{
streamfilter.shared_memory = '64MB'
deadlock_timeout = '50ms'
fsync = off
});
sql(q{
	CREATE TABLE slow AS SELECT i AS id FROM generate_series(1, 20000) i;
	CREATE TABLE events (id int);
	CREATE FUNCTION wait_at(id int, int) RETURNS bool LANGUAGE plpgsql AS
		'BEGIN IF id = $2 THEN PERFORM pg_advisory_xact_lock_shared(1); END IF; RETURN true; END';
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
	CREATE TRIGGER zz_once BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});

sub known_rows { return sql(q{SELECT count(*) FROM slow WHERE streamfilter_test('seen', id)}); }

# A warm that has come to the middle of the table and waits there until it is let go.
my $gate;
sub hold { $gate = $node->background_psql('postgres'); $gate->query_safe('SELECT pg_advisory_lock(1)'); return; }
sub let_go { $gate->query_safe('SELECT pg_advisory_unlock(1)'); $gate->quit; return; }

sub start_half
{
	my ($what) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_until(qr/begun/, qq{\\echo begun
		SELECT streamfilter_warm('seen', '@{[ $what // 'slow' ]}', NULL, 'wait_at(id, 10000)');\n});
	ok(wait_for("SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $pid AND wait_event = 'advisory'"), 'a warm has come to the middle');
	cmp_ok(sql("SELECT done FROM streamfilter_progress WHERE pid = $pid"), '>=', 9000, '... which the view says');
	return ($session, $pid);
}

# ---- interrupted in the middle ---------------------------------------------------------------------------
for my $end ('pg_cancel_backend', 'pg_terminate_backend')
{
	hold();
	my ($session, $pid) = start_half();
	sql("SELECT $end($pid)");
	ok(wait_for('SELECT count(*) = 0 FROM streamfilter_progress'), "$end ends it");
	let_go();
	eval { $session->quit };
	is(known_rows(), 0, '... and nothing is known of it');
	is(sql(q{SELECT count(*) FROM streamfilter_stats WHERE in_flight > 0}), 0, '... nor in flight');
}
for my $end ('kill9', 'immediate')
{
	hold();
	my ($session, $pid) = start_half();
	if ($end eq 'immediate') { $node->stop('immediate'); $node->start }
	else
	{
		sql('ALTER SYSTEM SET restart_after_crash = on; SELECT pg_reload_conf()');
		my $killed = () = crashes($node);
		expect_crash($node);
		kill 'KILL', $pid;
		for (1 .. 100) { last if crashes($node) > $killed; select undef, undef, undef, 0.1; }
		ok($node->poll_query_until('postgres', 'SELECT 1', '1'), 'the server has come back');
	}
	eval { $session->quit };
	eval { $gate->quit };
	is(known_rows(), 0, "$end: nothing is known of it");
}
is(sql(q{SELECT streamfilter_warm('seen', 'slow')}), 20000, 'it can be begun again');
is(known_rows(), 20000, '... and knows all');
crash();
is(known_rows(), 20000, '... after a crash, too');

# ---- beside traffic: new keys pass at once; keys that it has read wait for its end, as for any transaction -------------
sql('TRUNCATE seen');
hold();
my ($session) = start_half();
sql('INSERT INTO events VALUES (30001)');
is(sql('SELECT count(*) FROM events WHERE id = 30001'), 1, 'a key that it has not read passes meanwhile');
sql('INSERT INTO events VALUES (15000)');
is(sql('SELECT count(*) FROM events WHERE id = 15000'), 1, '... also one that it will read');
like(($node->psql('postgres', q{SET lock_timeout = '200ms'; INSERT INTO events VALUES (5000)}))[2], qr/lock timeout/,
	'... one that it has read waits');
my $other = $node->background_psql('postgres');
$other->query_until(qr/begun/, "\\echo begun\nINSERT INTO events VALUES (5000), (30002);\n");
ok(wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'transactionid'}), '... (it waits)');
let_go();
$other->quit;
$session->quit;
is(sql('SELECT string_agg(id::text, $$ $$ ORDER BY id) FROM events'), '15000 30001 30002', '... and is a repeat when the warm has ended');
is(known_rows(), 20000, 'all is known');

# ---- two at once ------------------------------------------------------------------------------------------
sql(q{TRUNCATE seen; SELECT streamfilter_stats_reset('seen')});
hold();
($session) = start_half();
$other = $node->background_psql('postgres');
$other->query_until(qr/begun/, "\\echo begun\nSELECT streamfilter_warm('seen', 'slow');\n");
ok(wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'transactionid'}), 'a second warm waits for the first');
is(sql('SELECT count(*) FROM streamfilter_progress'), 2, '... both are seen');
let_go();
$other->quit;
$session->quit;
is(known_rows(), 20000, '... together they know all');
is(sql(q{SELECT accepted, discarded FROM streamfilter_stats WHERE filter = 'seen'::regclass}), '20000|20000', '... each key once');

# In opposite orders they may wait for each other: one fails, the other one has all.
sql('TRUNCATE seen; CREATE VIEW backwards AS SELECT id FROM slow ORDER BY id DESC');
hold();
($session) = start_half();
$other = $node->background_psql('postgres', on_error_stop => 0);
$other->query_until(qr/begun/, "\\echo begun\nSELECT streamfilter_warm('seen', 'backwards');\n");
ok(wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'transactionid'}), 'two in opposite orders wait');
let_go();
eval { $_->quit } for $session, $other;
is(known_rows(), 20000, '... one of them has all');

# ---- in batches: what has committed stays, the rest is taken up again ------------------------------------------------
sql(q{
	TRUNCATE seen;
	CREATE PROCEDURE warm_by_parts(first int, last int, size int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR at IN first .. last BY size LOOP
			PERFORM streamfilter_warm('seen', 'slow', NULL,
				format('t.id BETWEEN %s AND %s AND wait_at(t.id, 10000)', at, least(at + size - 1, last)));
			COMMIT;
		END LOOP;
	END $$});
hold();
$session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_until(qr/begun/, "\\echo begun\nCALL warm_by_parts(1, 20000, 3000);\n");
ok(wait_for("SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $pid AND wait_event = 'advisory'"), 'batches');
sql('INSERT INTO events VALUES (5001)');
is(sql('SELECT count(*) FROM events WHERE id = 5001'), 0, 'a row that an earlier batch has read does not wait');
sql("SELECT pg_terminate_backend($pid)");
ok(wait_for("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"), 'ended in the fourth');
let_go();
eval { $session->quit };
is(known_rows(), 9000, 'three are known');
sql('CALL warm_by_parts(9001, 20000, 3000)');
is(known_rows(), 20000, 'the rest is taken up again');

done();
