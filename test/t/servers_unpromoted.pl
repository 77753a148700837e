# A server of a filter with two hosts, whose primary is lost and whose standby is not promoted: it is lost, as one that does
# not answer, and rows go on; once promoted, it knows what it has known.
# flavours: quick
use Sf;

my $producer = start_node('producer');
my $primary = start_node('primary', '', allows_streaming => 1);
my $standby = start_standby('standby', undef, $primary);

sub insert
{
	my ($from, $to) = @_;
	my ($status, $out, $said) = $producer->psql('postgres', "INSERT INTO events SELECT generate_series($from, $to)");
	return ($status, $said);
}

$producer->safe_psql('postgres', sprintf q{
	CREATE SERVER pair FOREIGN DATA WRAPPER streamfilter OPTIONS (host '%s,%s', port '%d,%d', dbname 'postgres', connect_timeout '2s', timeout '5s');
	CREATE USER MAPPING FOR CURRENT_USER SERVER pair;
	CREATE FOREIGN TABLE seen (id int) SERVER pair OPTIONS (kind 'bloom', memory '64kB', fpr '1e-6');
	CREATE TABLE events (id int);
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')},
	$primary->host, $standby->host, $primary->port, $standby->port);
is((insert(1, 100))[0], 0, 'rows');
$primary->wait_for_catchup($standby);
$primary->stop('immediate');

my ($status, $said) = insert(1, 110);
is($status, 0, 'the primary is gone: rows go on') or diag($said);
like($said, qr/WARNING:.*server "pair".*standby.*HINT:.*ALTER SERVER pair OPTIONS \(ADD target_session_attrs 'read-write'\)/s, 'with a WARNING and what to type');
is(sql('SELECT count(*) FROM events'), 210, 'and repeats pass, as of a lost server');

sql(q{ALTER SERVER pair OPTIONS (ADD target_session_attrs 'read-write')});
($status, $said) = insert(201, 210);
is($status, 0, 'with target_session_attrs likewise') or diag($said);
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'not promoted';
# It is tried again after a while.
my $known = 0;
for (1 .. 120)
{
	$known = knows('seen', 50) eq 't';
	last if $known;
	sleep 1;
}
ok($known, 'promoted, it is found, and knows what it has known');
sql('TRUNCATE events');
is((insert(1, 100))[0], 0, 'rows that were seen');
is(sql('SELECT count(*) FROM events'), 0, 'are repeats again');

done_testing();
