# Servers come and go: what sessions know of them must not fill up shared memory for good.
use Sf;
use IO::Socket::INET;
use Time::HiRes qw(time);

my $node = start_node('producer', "streamfilter.shared_memory = '16MB'\n");
sql(q{
	CREATE ROLE plain LOGIN;
	GRANT USAGE ON FOREIGN DATA WRAPPER streamfilter TO plain;
	GRANT CREATE ON SCHEMA public TO plain});
my $port = PostgreSQL::Test::Cluster::get_free_port();    # where nobody listens

# Servers of a role without rights of its own, each used once, then dropped, committed or rolled back.
my $script = join '', map {
	my $end = $_ % 10 == 0 ? 'ROLLBACK' : 'COMMIT';
	qq{BEGIN;
	   CREATE SERVER s$_ FOREIGN DATA WRAPPER streamfilter OPTIONS (host '127.0.0.1', port '$port');
	   CREATE USER MAPPING FOR CURRENT_USER SERVER s$_ OPTIONS (user 'x', password 'x');
	   CREATE FOREIGN TABLE f$_ (id int) SERVER s$_ OPTIONS (kind 'bloom', memory '1kB', k '2', seed '1');
	   SELECT streamfilter_seen('f$_', 1);
	   $end;
	   DROP SERVER IF EXISTS s$_ CASCADE;\n}
} 1 .. 300;
my ($ret, $out, $err) = $node->psql('postgres', $script, extra_params => [ '-U', 'plain', '-q' ]);
is($ret, 0, '300 servers were made, used and dropped');
is(scalar(() = $out =~ /^f$/mg), 300, 'each key was new, for there was nobody to ask');
is(scalar(() = $err =~ /WARNING:  server "s\d+" is lost/g), 300, 'each loss was told');

# Another server that is lost is known to all sessions.
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die $!;
$node->safe_psql('postgres', sprintf q{
	CREATE SERVER last FOREIGN DATA WRAPPER streamfilter
	  OPTIONS (host '127.0.0.1', port '%d', connect_timeout '1500ms');
	CREATE USER MAPPING FOR CURRENT_USER SERVER last;
	CREATE FOREIGN TABLE last (id int) SERVER last OPTIONS (kind 'bloom', memory '1kB', k '2')}, $silent->sockport);
my $start = time;
is(sql(q{SELECT streamfilter_seen('last', 1)}), 'f', 'one more server is lost');
cmp_ok(time - $start, '>', 1.4, 'whoever finds out waits');
$start = time;
is(sql(q{SELECT streamfilter_seen('last', 1)}), 'f', 'it is lost for the next session');
cmp_ok(time - $start, '<', 1, 'which does not wait for it');
is(sql(q{SELECT bool_and(lost) FROM streamfilter_slices WHERE server = 'last'}), 't', 'the view says so');

# The slices of dropped filters are not counted any more, whichever session used them last.
is(sql('SELECT count(*) FROM streamfilter_slices'), '1', 'no slices of what was dropped');

# Nor do filters whose creation is rolled back take the room of others' counts.
$node->safe_psql('postgres', join '', map {
	qq{BEGIN;
	   CREATE FOREIGN TABLE rolled_back (id int) SERVER last
	     OPTIONS (kind 'bloom', memory '64kB', k '1', slices '128', seed '1');
	   INSERT INTO rolled_back SELECT generate_series(1, 2000);
	   ROLLBACK;\n}
} 1 .. 40);
sql(q{
	CREATE FOREIGN TABLE counted (id int) SERVER last OPTIONS (kind 'bloom', memory '1kB', k '2', seed '1');
	SELECT streamfilter_seen('counted', 1)});
is(sql(q{SELECT unanswered FROM streamfilter_slices WHERE filter = 'counted'::regclass}), '1', 'the slices of a new filter are counted');

done_testing();
