# Values of enums whose labels were renamed keep their identity: over restarts, a crash, a dump and its restore, in other sessions and
# on a standby, and where the library is not preloaded.
# flavours: quick faults
use Sf;

my $node = start_node('main', '', allows_streaming => 1);
sql(q{
	CREATE TYPE mood AS ENUM ('open', 'closed');
	CREATE TABLE ev (id int, s mood);
	CREATE FOREIGN TABLE seen (id int, s mood) SERVER streamfilter OPTIONS (memory '64kB');
	CREATE TRIGGER zz BEFORE INSERT ON ev FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO ev VALUES (1, 'open');
	CREATE TABLE held AS SELECT streamfilter_agg(v, 'bloom(keys=100)') AS f FROM (VALUES ('open'::mood)) t (v);});

# A session that has hashed both labels before, and another one that renames them.
my $other = open_session(q{SELECT streamfilter_test('seen', 1, 'open'), streamfilter_test('seen', 1, 'closed')});
sql(q{ALTER TYPE mood RENAME VALUE 'open' TO 'opened'; ALTER TYPE mood RENAME VALUE 'closed' TO 'open'});
my $answers = q{SELECT streamfilter_test('seen', 1, 'opened'), streamfilter_test('seen', 1, 'open'), f @> 'opened'::mood, f @> 'open'::mood FROM held};
is($other->query_safe($answers), 't|f|t|f', 'a session that knew the former labels');
end_session($other);
is(sql($answers), 't|f|t|f', 'a new session');
is(sql(q{INSERT INTO ev VALUES (1, 'opened'), (1, 'open'); SELECT string_agg(s::text, ' ' ORDER BY s) FROM ev}), 'opened open', 'rows');
$node->restart;
is(sql($answers), 't|t|t|f', 'a restart');
crash();
is(sql($answers), 't|t|t|f', 'a crash');

my $standby = start_standby('standby');
sql(q{ALTER TYPE mood RENAME VALUE 'open' TO 'shut'; ALTER TYPE mood ADD VALUE 'open'});
$node->wait_for_catchup($standby);
my $three = q{SELECT streamfilter_test('seen', 1, 'opened'), streamfilter_test('seen', 1, 'shut'), streamfilter_test('seen', 1, 'open')};
is(sql($three, $standby), 't|t|f', 'a standby');
$standby->stop;

# A dump: the filter is empty, values of type streamfilter have what they had.
my $dump = $node->basedir . '/dump';
for my $how ([ 'plain', 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f' ], [ 'custom', 'pg_restore', '-e', '-d' ])
{
	my ($name, $restore, @options) = @$how;
	sql("CREATE DATABASE $name");
	$node->command_ok([ 'pg_dump', ($name eq 'custom' ? '-Fc' : ()), '-f', "$dump.$name", $node->connstr('postgres') ], "$name: dumped");
	$node->command_ok([ $restore, @options, ($name eq 'custom' ? ($node->connstr($name), "$dump.$name") : ("$dump.$name", $node->connstr($name))) ],
		'... and restored');
	is(sql(q{SELECT f @> 'opened'::mood, f @> 'shut'::mood, f @> 'open'::mood FROM held}, $name), 't|f|f', '... values');
	is(sql(q{SELECT streamfilter_warm('seen', 'ev')} . "; $three", $name), "2\nt|t|f", '... and a filter that is filled');
}

# Without preloading an event trigger sees what is renamed.
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;
sql(q{ALTER TYPE mood RENAME VALUE 'opened' TO 'ajar'});
is(sql(q{SELECT f @> 'ajar'::mood FROM held}), 't', 'a value, not preloaded');
sql(q{SELECT f @> 'ajar'::mood FROM held; ALTER TYPE mood RENAME VALUE 'ajar' TO 'wide'; ALTER TYPE mood RENAME VALUE 'wide' TO 'wider'});
is(sql(q{SELECT f @> 'wider'::mood FROM held}), 't', '... in a session that has loaded the library itself');

done();
