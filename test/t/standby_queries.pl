# On a standby filters can be tested; what would remember says why it does not.
# flavours: faults
use Sf;

my $primary = start_node('primary', q{max_prepared_transactions = 10}, allows_streaming => 1);
my $standby = start_standby('standby');

sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '7');
	CREATE TABLE events (id int);
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events VALUES (1)});
$primary->wait_for_catchup($standby);

sub fails_like
{
	my ($query, $message, $name) = @_;
	like(said($query, $standby), $message, $name);
	return;
}

is(knows('seen', 2, $standby), 'f', 'streamfilter_test works');
is(sql('SELECT count(*) FROM seen WHERE id = 2', $standby), '0', 'and so does SELECT');
is(sql(q{SELECT streamfilter_value('seen') @> 2}, $standby), 'f', 'and streamfilter_value');
is(sql('SELECT filter, accepted, in_flight FROM streamfilter_stats', $standby), 'seen|0|0', 'and streamfilter_stats');
fails_like(q{SELECT streamfilter_seen('seen', 2)},
	qr/cannot execute streamfilter_seen\(\) during recovery/, 'streamfilter_seen says why it does not');
fails_like(q{INSERT INTO seen VALUES (2)},
	qr/cannot execute INSERT in a read-only transaction/, 'nor INSERT');
fails_like(q{TRUNCATE seen}, qr/cannot execute TRUNCATE TABLE in a read-only transaction/, 'nor TRUNCATE');
fails_like(q{SELECT streamfilter_merge('seen', streamfilter_value('seen'))},
	qr/cannot execute streamfilter_merge\(\) during recovery/, 'nor streamfilter_merge');
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
