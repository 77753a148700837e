# Without shared_preload_libraries: values work, named filters are defined but say what is missing,
# a dump restores, and after a restart with preloading everything is usable.
# flavours: quick faults
use Sf;

my $node = PostgreSQL::Test::Cluster->new('plain');
$node->init;
$node->start;

my ($out, $err);
$node->psql('postgres', 'CREATE EXTENSION streamfilter', stderr => \$err, on_error_stop => 0);
is($err, '', 'the extension is created without preloading');

is(sql(q{SELECT streamfilter_add('sbf(memory=4kB)', 'x') @> 'x'}), 't', 'values work without preloading');
is(sql(q{SELECT approx_count_distinct(i) FROM generate_series(1, 10) i}), '10', 'aggregates work without preloading');

$node->psql(
	'postgres', q{
	CREATE TABLE events (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB');
	CREATE TRIGGER zz_drop BEFORE INSERT ON events
	  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');},
	stderr => \$err);
like($err, qr/WARNING:  filter "seen" cannot be used yet: streamfilter is not preloaded/, 'CREATE warns');
like($err, qr/DETAIL:  Named filters are in shared memory, which the server lays out when it starts/, 'and says why');
like($err, qr/HINT:  ALTER SYSTEM SET shared_preload_libraries = 'streamfilter'; then restart/, 'and what to do');

for my $statement (
	q{SELECT streamfilter_seen('seen', 1)}, q{SELECT streamfilter_test('seen', 1)},
	q{INSERT INTO seen VALUES (1)}, q{SELECT * FROM seen WHERE id = 1},
	q{INSERT INTO events VALUES (1)}, q{SELECT streamfilter_value('seen')},
	q{TRUNCATE seen})
{
	isnt($node->psql('postgres', $statement, stderr => \$err), 0, "fails: $statement");
	like($err, qr/must be loaded via shared_preload_libraries/, 'with the reason');
	like($err, qr/DETAIL:  Every session needs the library, because any session may drop/, 'why no session can load it later');
	like($err, qr/HINT:  ALTER SYSTEM SET shared_preload_libraries/, 'and a hint');
}
is(sql('SELECT count(*) FROM events'), '0', 'no row came in unjudged');
is(sql(q{SELECT filter, kind, memory, accepted FROM streamfilter_stats}), 'seen|sbf|65536|0', 'the statistics work without preloading');

my ($status, $after) = $node->psql('postgres', q{
	LOAD 'streamfilter'; BEGIN; SELECT FROM streamfilter_stats; PREPARE TRANSACTION 'none'; ROLLBACK; SELECT 'here'},
	stderr => \$err, on_error_stop => 0);
like($err, qr/prepared transactions are disabled/, 'a transaction cannot be prepared');
like($after, qr/^here$/m, 'which does no harm to a session that loads the library itself');

# Settings may stand in the configuration before the library is preloaded, or after it no longer is.
$node->append_conf('postgresql.conf', q{
streamfilter.shared_memory = '64MB'
streamfilter.dynamic_memory = '0'
streamfilter.max_filters = 10
streamfilter.max_in_flight = 5000});
$node->reload;
$node->psql('postgres', q{SELECT streamfilter_info('sbf(memory=4kB)')}, stderr => \$err);
is($err, '', 'settings of preloading in the configuration do no harm without it');
is(sql(q{LOAD 'streamfilter'; SELECT string_agg(setting, ' ' ORDER BY name) FROM pg_settings
	WHERE name ~ '^streamfilter.(shared|dynamic|max)'}), '0 10 5000 65536', '... and are shown');
$node->psql('postgres', q{LOAD 'streamfilter'; SET streamfilter.shared_memory = '1GB'}, stderr => \$err);
like($err, qr/cannot be changed now/, '... and cannot be set by a session');
$node->psql('postgres', q{LOAD 'streamfilter'; SET streamfilter.shard_memory = '1GB'}, stderr => \$err);
like($err, qr/invalid configuration parameter name/, 'others are refused');

my $dump = $node->backup_dir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
sql('CREATE DATABASE copy');
$node->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('copy') ], 'the dump restores');
is(sql(q{SELECT filter, kind, memory FROM streamfilter_stats}, 'copy'), 'seen|sbf|65536', 'with its filter');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'streamfilter'");
$node->restart;
for my $database ('postgres', 'copy')
{
	is(sql('INSERT INTO events VALUES (1), (1), (2); SELECT count(*) FROM events', $database), '2', "$database: works after preloading");
}
is(sql(q{SELECT accepted, discarded FROM streamfilter_stats}), '2|1', 'each database has its own state');

done_testing();
