# On a standby filters can be tested; what would remember says why it does not.
# A standby follows row by row, whatever runs on the primary: transactions with more than 64 savepoints, whose ids PostgreSQL
# does not list any more, and many at once. The filter is not read anew for that. It is where more than 512 gaps lie between
# the rows of its log that have come: the answers stay right, and it follows row by row when an image has taken the place of those rows.
# flavours: faults
use Sf;
use FaultPoints;

my $primary = start_node('primary', q{
	streamfilter.shared_memory = '16MB'
	max_prepared_transactions = 40
	fsync = off}, allows_streaming => 1);
sql(q{
	CREATE TABLE events (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sqf', fingerprint 'integer', keys '10000', fpr '1e-6');
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	-- One id for each row, and none of them is used later.
	CREATE PROCEDURE add_in_savepoints(first int, last int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN first .. last LOOP
			BEGIN INSERT INTO events VALUES (i); EXCEPTION WHEN division_by_zero THEN NULL; END;
		END LOOP;
	END $$;
	INSERT INTO events SELECT generate_series(1, 100)});
my $faults = FaultPoints->new($primary);
my $standby = start_standby('standby');

# What the standby knows, once it is as the primary is.
sub known_there
{
	my ($first, $last) = @_;
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return known('seen', $first, $last, $standby);
}
sub restored { return sql(q{SELECT restored FROM streamfilter_stats WHERE filter = 'seen'::regclass}, $standby); }

is(known_there(1, 1000), 100, 'the standby knows what the primary knows');
my $restored = restored();
isnt($restored, '', 'and tells when it has read the filter');
my $apart = q{SELECT count(*) FROM pg_shmem_allocations WHERE name = 'streamfilter standby'};
is(sql($apart) . sql($apart, $standby), '01', 'only a standby has memory for what ran at its last look');

# --- While it runs, and when it commits ----------------------------------------------------------------------------------

my @sessions = map { $primary->background_psql('postgres') } 1 .. 3;
$_->query_safe('BEGIN') for @sessions;
# Ids of several transactions alternate.
for my $round (0 .. 9)
{
	$sessions[$_]->query_safe(sprintf 'CALL add_in_savepoints(%d, %d)', map { $_ + $round * 20 } 1000 * ($_ + 1) + 1, 1000 * ($_ + 1) + 20)
		for 0 .. 2;
}
for my $i (101 .. 105)
{
	sql("INSERT INTO events VALUES ($i)");
	is(known_there(1, 1000), $i, "a key beside transactions of 200 savepoints: $i");
}
is(known_there(1001, 3999), 0, 'nothing of what has not committed');
$sessions[0]->query_safe('COMMIT');
is(known_there(1001, 3999), 200, 'what one of them has added');
$sessions[1]->query_safe(q{PREPARE TRANSACTION 'two'});
is(known_there(1001, 3999), 200, 'not what is prepared');
$sessions[2]->query_safe('ROLLBACK');
is(known_there(1001, 3999), 200, 'nor what is rolled back');
sql(q{COMMIT PREPARED 'two'});
is(known_there(1001, 3999), 400, 'what was prepared, once it commits');
is(restored(), $restored, 'the filter was not read anew');
$_->quit for @sessions;

# --- More gaps among the running ids than there is room for ranges -------------------------------------------------------------

# Each second savepoint is given up, so its id does not run. Beyond 64 ids, PostgreSQL names none of a transaction's savepoints.
sql(q{
	CREATE PROCEDURE add_with_gaps(first int, last int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN first .. last LOOP
			BEGIN INSERT INTO events VALUES (i); EXCEPTION WHEN division_by_zero THEN NULL; END;
			BEGIN INSERT INTO events VALUES (-i); PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;
		END LOOP;
	END $$});
$primary->safe_psql('postgres', join ';', map { sprintf q{BEGIN; CALL add_with_gaps(%d, %d); PREPARE TRANSACTION 'gaps %d'},
	10000 + $_ * 100, 10029 + $_ * 100, $_ } 1 .. 30);
for my $i (106 .. 108)
{
	sql("INSERT INTO events VALUES ($i)");
	is(known_there(1, 1000), $i, "a key beside 900 ids with gaps: $i");
}
is(known_there(10000, 13999), 0, 'nothing of what is prepared');
sql(q{ROLLBACK PREPARED 'gaps 1'});
sql(qq{COMMIT PREPARED 'gaps $_'}) for 2 .. 30;
is(known_there(10000, 13999), 29 * 30, 'all of it, once it commits');
is(restored(), $restored, 'the filter was not read anew');

# --- Played once: a key that is deleted once is gone ------------------------------------------------------------------------

sql('DELETE FROM seen WHERE id IN (SELECT generate_series(1, 13999))');
is(known_there(1, 13999), 0, 'nothing was played twice');
is(restored(), $restored, 'and still the filter was not read anew');

# --- The same among ids that are older than the latest 32,768: what is played goes by numbers of rows -------------------------

$primary->safe_psql('postgres', join ';', map { sprintf q{BEGIN; CALL add_with_gaps(%d, %d); PREPARE TRANSACTION 'gaps %d'},
	20000 + $_ * 100, 20029 + $_ * 100, $_ } 1 .. 30);
sql(q{SET synchronous_commit = off;
	DO $$ BEGIN FOR i IN 1 .. 33000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$});
for my $i (1 .. 3)
{
	sql("INSERT INTO events VALUES ($i)");
	is(known_there(1, 1000), $i, "a key beside 900 old ids with gaps: $i");
}
is(restored(), $restored, 'the filter was not read anew');
is(known_there(20000, 23999), 0, 'nothing of what is prepared');
sql(q{ROLLBACK PREPARED 'gaps 1'});
sql(qq{COMMIT PREPARED 'gaps $_'}) for 2 .. 30;
is(known_there(20000, 23999), 29 * 30, 'all of it, once it commits');
sql('DELETE FROM seen WHERE id IN (SELECT generate_series(20000, 23999))');
is(known_there(20000, 23999), 0, 'and nothing was played twice');

$restored = restored();
sql('INSERT INTO events VALUES (4)');
is(known_there(1, 1000), 4, 'it follows again');
is(restored(), $restored, 'row by row');

# --- More gaps between the rows of the log than there is room for ---------------------------------------------------------------

# Each second row is of a transaction that rolls back; the first is prepared, and commits in the end.
$primary->safe_psql('postgres', join ';', q{BEGIN; INSERT INTO events VALUES (25000); PREPARE TRANSACTION 'first'},
	map { ("BEGIN; INSERT INTO events VALUES (@{[ 24000 + $_ ]}); PREPARE TRANSACTION 'gap'", "INSERT INTO events VALUES (@{[ 26000 + $_ ]})", q{ROLLBACK PREPARED 'gap'}) } 1 .. 520);
is(known_there(26001, 26520), 520, 'more than 512 gaps: all that has come is known');
is(known_there(24001, 25000), 0, '... and nothing else');
for my $i (521 .. 523)
{
	$restored = restored();
	sql("INSERT INTO events VALUES (@{[ 26000 + $i ]})");
	is(known_there(26001, 26999), $i, "... after another key: $i");
	isnt(restored(), $restored, '... for which all is read');
}
$restored = restored();
is(known_there(26001, 26999), 523, '... and as long as nothing comes');
is(restored(), $restored, '... it is not read again');
sql(q{COMMIT PREPARED 'first'; DELETE FROM seen WHERE id IN (SELECT generate_series(26001, 26999))});
is(known_there(24001, 26999), 1, 'nothing is lost, and nothing was played twice');
sql(q{SELECT streamfilter_save('seen')});
is(known_there(24001, 26999), 1, 'an image takes the place of all these rows');
$restored = restored();
sql('INSERT INTO events VALUES (27000)');
is(known_there(24001, 27000), 2, '... then it follows again');
is(restored(), $restored, '... row by row');

# --- A session that fails while it reads all of a new image --------------------------------------------------------------------

sql(q{INSERT INTO events VALUES (5); SELECT streamfilter_save('seen'); INSERT INTO events VALUES (6)});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$standby->safe_psql('postgres', q{SELECT streamfilter_fault('replay', 'fail')});
like(said(q{SELECT count(*) FROM seen WHERE id = 5}, $standby), qr/ERROR:  fault injected at replay/, 'a session fails while it reads the filter anew');
is(known_there(1, 1000), 6, 'the next one reads all of it');

# --- What a session asks here, and after a promotion -----------------------------------------------------------------------------

sql(q{
	DROP TABLE events;
	DROP FOREIGN TABLE seen;
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '7');
	CREATE TABLE events (id int);
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events VALUES (1)});
$primary->wait_for_catchup($standby);

is(knows('seen', 2, $standby), 'f', 'streamfilter_test works');
is(sql('SELECT count(*) FROM seen WHERE id = 2', $standby), '0', 'and so does SELECT');
is(sql(q{SELECT streamfilter_value('seen') @> 2}, $standby), 'f', 'and streamfilter_value');
is(sql('SELECT filter, accepted, in_flight FROM streamfilter_stats', $standby), 'seen|0|0', 'and streamfilter_stats');
like(said(q{SELECT streamfilter_seen('seen', 2)}, $standby), qr/cannot execute streamfilter_seen\(\) during recovery/, 'streamfilter_seen says why it does not');
like(said(q{INSERT INTO seen VALUES (2)}, $standby), qr/cannot execute INSERT in a read-only transaction/, 'nor INSERT');
like(said(q{TRUNCATE seen}, $standby), qr/cannot execute TRUNCATE TABLE in a read-only transaction/, 'nor TRUNCATE');
like(said(q{SELECT streamfilter_merge('seen', streamfilter_value('seen'))}, $standby), qr/cannot execute streamfilter_merge\(\) during recovery/, 'nor streamfilter_merge');
is(knows('seen', 2, $standby), 'f', 'nothing was remembered');

# A transaction that was prepared on the primary may be ended here after a promotion.
sql(q{BEGIN; INSERT INTO events VALUES (3); PREPARE TRANSACTION 'p'});
$primary->wait_for_catchup($standby);
$primary->stop;
$standby->promote;
is(sql(q{SELECT streamfilter_seen('seen', 2), streamfilter_seen('seen', 2)}, $standby), 'f|t', 'after a promotion streamfilter_seen works');
sql(q{COMMIT PREPARED 'p'}, $standby);
is(sql('SELECT array_agg(id ORDER BY id) FROM events', $standby), '{1,3}', 'and prepared transactions end');
is(sql('SELECT in_flight FROM streamfilter_stats', $standby), '0', 'with nothing in flight');

done();
