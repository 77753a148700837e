# On a standby filters can be tested; what would remember says why it does not.
# flavours: faults
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Servers;
use Test::More;

my $primary = start_node('primary', q{max_prepared_transactions = 10}, allows_streaming => 1);
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

$primary->safe_psql(
	'postgres', q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '7');
	CREATE TABLE events (id int);
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events VALUES (1)});
$primary->wait_for_catchup($standby);

sub fails_like
{
	my ($query, $message, $name) = @_;
	my ($status, $out, $err) = $standby->psql('postgres', $query);
	like($err, $message, $name);
	return;
}

is($standby->safe_psql('postgres', q{SELECT streamfilter_test('seen', 2)}), 'f', 'streamfilter_test works');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM seen WHERE id = 2'), '0', 'and so does SELECT');
is($standby->safe_psql('postgres', q{SELECT streamfilter_value('seen') @> 2}), 'f', 'and streamfilter_value');
is($standby->safe_psql('postgres', 'SELECT filter, accepted, in_flight FROM streamfilter_stats'),
	'seen|0|0', 'and streamfilter_stats');
fails_like(q{SELECT streamfilter_seen('seen', 2)},
	qr/cannot execute streamfilter_seen\(\) during recovery/, 'streamfilter_seen says why it does not');
fails_like(q{INSERT INTO seen VALUES (2)},
	qr/cannot execute INSERT in a read-only transaction/, 'nor INSERT');
fails_like(q{TRUNCATE seen}, qr/cannot execute TRUNCATE TABLE in a read-only transaction/, 'nor TRUNCATE');
fails_like(q{SELECT streamfilter_merge('seen', streamfilter_value('seen'))},
	qr/cannot execute streamfilter_merge\(\) during recovery/, 'nor streamfilter_merge');
is($standby->safe_psql('postgres', q{SELECT streamfilter_test('seen', 2)}), 'f', 'nothing was remembered');

# A transaction that was prepared on the primary may be ended here after a promotion.
$primary->safe_psql('postgres', q{BEGIN; INSERT INTO events VALUES (3); PREPARE TRANSACTION 'p'});
$primary->wait_for_catchup($standby);
$primary->stop;
$standby->promote;
is($standby->safe_psql('postgres', q{SELECT streamfilter_seen('seen', 2), streamfilter_seen('seen', 2)}),
	'f|t', 'after a promotion streamfilter_seen works');
$standby->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is($standby->safe_psql('postgres', 'SELECT array_agg(id ORDER BY id) FROM events'),
	'{1,3}', 'and prepared transactions end');
is($standby->safe_psql('postgres', 'SELECT in_flight FROM streamfilter_stats'), '0', 'with nothing in flight');
$standby->stop;

done_testing();
