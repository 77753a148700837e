# Batches by PL/Proxy, where it is installed: SPLIT cuts a batch by streamfilter_slice_of, every partition
# inserts its part and discards what repeats; and what holds of transactions. The partitions are
# databases of one server here.
use Sf;
use Needs;

my $node = start_node('node');
my $installed = sql(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'plproxy'});
needs($installed ne '0', 'PL/Proxy is not installed', 10);

foreach my $part ('part0', 'part1')
{
	sql("CREATE DATABASE $part");
	$node->safe_psql(
		$part, q{
		CREATE EXTENSION streamfilter;
		CREATE TABLE events (key text, n int CHECK (n <> 13));
		CREATE FOREIGN TABLE seen (key text)
		  SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6');
		CREATE TRIGGER zz BEFORE INSERT ON events
		  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
		CREATE FUNCTION add_events(keys text[], ns int[]) RETURNS SETOF text LANGUAGE sql AS
		  'INSERT INTO events SELECT * FROM unnest(keys, ns) RETURNING key';
		CREATE FUNCTION count_events() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT count(*) FROM events'});
}

# ---- The proxy -------------------------------------------------------------------------------------------
my ($host, $port) = ($node->host, $node->port);
sql(qq{
	CREATE EXTENSION plproxy;
	CREATE SERVER events FOREIGN DATA WRAPPER plproxy OPTIONS (
	  p0 'dbname=part0 host=$host port=$port', p1 'dbname=part1 host=$host port=$port');
	CREATE USER MAPPING FOR CURRENT_USER SERVER events;
	CREATE FUNCTION add_events(keys text[], ns int[]) RETURNS SETOF text LANGUAGE plproxy AS '
	  CLUSTER ''events'';
	  SPLIT keys, ns;
	  RUN ON streamfilter_slice_of(keys, 2);
	';
	CREATE FUNCTION count_events() RETURNS SETOF bigint LANGUAGE plproxy AS '
	  CLUSTER ''events'';
	  RUN ON ALL;
	'});

sub add
{
	my ($keys) = @_;
	return "SELECT count(*) FROM add_events((SELECT array_agg('key ' || i ORDER BY i) FROM generate_series($keys) i),
		(SELECT array_agg(i ORDER BY i) FROM generate_series($keys) i))";
}

is(sql(add('1001, 2000')), '1000', 'a batch');
is(sql(add('1501, 2500')), '500', 'its repeats are discarded');
is(sql(q{SELECT count(*) FROM add_events('{a,b,a,c,b,a}', '{1,2,3,4,5,6}')}), '3', 'also within one batch');
is(sql('SELECT sum(n), min(n) > 500 FROM count_events() n'), '1503|t', 'the partitions share the keys');
foreach my $i (0, 1)
{
	is($node->safe_psql("part$i", q{SELECT count(*) FROM events WHERE streamfilter_slice_of(key, 2) <> } . $i),
		'0', "part$i has its own only");
}

# ---- Transactions: every partition commits on its own.
sql("BEGIN; " . add('3001, 3100') . "; ROLLBACK");
is(sql('SELECT sum(n) FROM count_events() n'), '1603', 'a rollback here does not roll back there');
my ($status) = $node->psql('postgres', q{SELECT add_events('{u,v,w,x,y,z}', '{1,2,3,4,13,6}')});
isnt($status, 0, 'a batch fails in one partition');
sql(q{SELECT add_events('{u,v,w,x,y,z}', '{1,2,3,4,5,6}')});
is(sql('SELECT sum(n) FROM count_events() n'), '1609', 'sent again, what is missing is added, once');
is(join(' ', map { $node->safe_psql($_, q{SELECT count(*) = (SELECT accepted - rolled_back FROM streamfilter_stats) FROM events}) } 'part0', 'part1'),
	't t', 'every partition has as many keys as rows');

done_testing();
