# A standby remembers 512 ranges of ids that ran, beside the latest 32,768. Older ones with more gaps among them make it read the
# filter anew, once for each look at what is new: the answers stay right, and it follows row by row when they are gone.
# flavours: asserted
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', q{
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '16MB'
max_prepared_transactions = 40
synchronous_commit = off
autovacuum = off
fsync = off});
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION streamfilter;
	CREATE TABLE events (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sqf', fingerprint 'integer', keys '10000', fpr '1e-6');
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	-- Each second savepoint is given up, so its id does not run.
	CREATE PROCEDURE add_with_gaps(first int, last int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN first .. last LOOP
			BEGIN INSERT INTO events VALUES (i); EXCEPTION WHEN division_by_zero THEN NULL; END;
			BEGIN INSERT INTO events VALUES (-i); PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;
		END LOOP;
	END $$;
	INSERT INTO events SELECT generate_series(1, 100)});
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

sub known
{
	my ($first, $last) = @_;
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return $standby->safe_psql('postgres', "SELECT count(*) FROM generate_series($first, $last) i WHERE streamfilter_test('seen', i)");
}
sub restored { return $standby->safe_psql('postgres', q{SELECT restored FROM streamfilter_stats WHERE filter = 'seen'::regclass}); }

is(known(1, 1000), 100, 'the standby knows what the primary knows');
my $restored = restored();
$primary->safe_psql('postgres', join ';', map { sprintf q{BEGIN; CALL add_with_gaps(%d, %d); PREPARE TRANSACTION 'gaps %d'},
	10000 + $_ * 100, 10029 + $_ * 100, $_ } 1 .. 30);
$primary->safe_psql('postgres', 'INSERT INTO events VALUES (101)');
is(known(1, 1000), 101, 'a key beside 900 late ids with gaps');
is(restored(), $restored, 'the filter was not read anew');

$primary->safe_psql('postgres', 'DO $$ BEGIN FOR i IN 1 .. 33000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$');
for my $i (102 .. 104)
{
	$primary->safe_psql('postgres', "INSERT INTO events VALUES ($i)");
	is(known(1, 1000), $i, "a key beside 900 old ids with gaps: $i");
}
isnt(restored(), $restored, 'the filter was read anew');
is(known(10000, 13999), 0, 'nothing of what is prepared');
$primary->safe_psql('postgres', q{ROLLBACK PREPARED 'gaps 1'});
$primary->safe_psql('postgres', qq{COMMIT PREPARED 'gaps $_'}) for 2 .. 30;
is(known(10000, 13999), 29 * 30, 'all of it, once it commits');
$primary->safe_psql('postgres', 'DELETE FROM seen WHERE id IN (SELECT generate_series(10000, 13999))');
is(known(10000, 13999), 0, 'and nothing was played twice');

$restored = restored();
$primary->safe_psql('postgres', 'INSERT INTO events VALUES (105)');
is(known(1, 1000), 105, 'it follows again');
is(restored(), $restored, 'row by row');
done_testing();
