# Citus: statements about a filter act on all nodes in one transaction, or fail and say what to type. So do settings.
use Sf;
use CitusCluster;

my $citus = CitusCluster->new(workers => 2, checks => 73);
sub nodes { return $citus->nodes($_[0]); }

sub make
{
	sql(q{
		CREATE FOREIGN TABLE seen (key int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
		SELECT streamfilter_distribute('seen');
		CREATE TABLE events (id int, key int);
		SELECT create_distributed_table('events', 'key');
		CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'key')});
	return;
}

sub load { sql('INSERT INTO events SELECT i, i FROM generate_series(1, 1000) i'); return sql('SELECT count(*) FROM events'); }
make();
is(load(), 1000, 'rows');

# ---- TRUNCATE, DROP

sql('TRUNCATE events; BEGIN; TRUNCATE seen; ROLLBACK');
is(load(), 0, 'TRUNCATE that is rolled back');
sql('TRUNCATE events; TRUNCATE seen');
is(load(), 1000, 'TRUNCATE of table and filter, then the same rows again');
sql('BEGIN; TRUNCATE events, seen; INSERT INTO events SELECT i, i FROM generate_series(1, 500) i; COMMIT');
is(load(), 1000, 'in one transaction, with rows');
$citus->node(1)->safe_psql('postgres', 'TRUNCATE seen');
sql('TRUNCATE events');
is(load(), 1000, 'from a worker, too');
sql('TRUNCATE events; BEGIN; SAVEPOINT s; TRUNCATE seen; ROLLBACK TO s; COMMIT');
is(load(), 0, 'a savepoint takes it back');
is(nodes('SELECT count(*) FROM pg_prepared_xacts'), '0 0 0', 'nothing stays prepared');
sql('TRUNCATE seen');
load();
sql('BEGIN; DROP TABLE events; DROP FOREIGN TABLE seen; ROLLBACK');
is(nodes(q{SELECT to_regclass('seen') IS NULL}), 'f f f', 'DROP that is rolled back');
is(load(), 1000, '... takes nothing away');
sql('DROP FOREIGN TABLE seen CASCADE; DROP TABLE events');
is(nodes(q{SELECT to_regclass('seen') IS NULL}), 't t t', 'DROP reaches all nodes');
make();
is(load(), 1000, 'and a new filter of that name begins empty');
sql('SET citus.enable_ddl_propagation = off; TRUNCATE seen');
is(load(), 1000, 'with citus.enable_ddl_propagation off, statements act on their node');
$citus->everywhere(q{CREATE FOREIGN TABLE older (key int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000'); INSERT INTO older VALUES (1)});
sql('TRUNCATE older');
is(nodes(q{SELECT streamfilter_test('older', 1)}), 'f f f', 'also of filters that were made on each node');
sql('DROP FOREIGN TABLE older');
is(nodes(q{SELECT to_regclass('older') IS NULL}), 't t t', 'so does DROP');
$citus->node(1)->safe_psql('postgres', 'CREATE TABLE alone (key int); INSERT INTO alone VALUES (1)');
sql(q{CREATE FOREIGN TABLE alone (key int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000'); INSERT INTO alone VALUES (1);
	TRUNCATE alone; ALTER FOREIGN TABLE alone OPTIONS (SET keys '2000'); DROP FOREIGN TABLE alone});
is($citus->node(1)->safe_psql('postgres', 'SELECT count(*) FROM alone; DROP TABLE alone'), 1, 'what is no filter there is left alone');
like($citus->messages('CREATE ROLE nobody; SET ROLE nobody; TRUNCATE seen'), qr/permission denied/, 'TRUNCATE needs rights');
like($citus->messages('SET ROLE nobody; DROP FOREIGN TABLE seen CASCADE'), qr/must be owner/, 'so does DROP');
sql('TRUNCATE events');
is(load(), 0, 'and nothing has happened');
sql('TRUNCATE seen');
load();

# Refused on this node alone; typed as the hint says, it acts on all.
sub refused
{
	my ($statement) = @_;
	like($citus->messages($statement), qr/ERROR:.*would act on filter "\w+" of this node only.*HINT:  Type: SELECT \* FROM run_command_on_all_nodes\('.*'\)\.$/s,
		"$statement says what to type");
	return;
}

# From any node, in one transaction: nothing is left to be said.
is($citus->messages("$_; INSERT INTO events SELECT i, i FROM generate_series(1, 1000) i", $citus->node(1)), '', "$_ on a worker")
  for 'BEGIN; TRUNCATE seen; TRUNCATE events; COMMIT', 'BEGIN; TRUNCATE events, seen; COMMIT';
is(sql('SELECT count(*) FROM events'), 1000, 'both are empty on all nodes');

# A trigger for TRUNCATE would fire on one node: it is refused, before and after distribution.
my $follow = 'CREATE TRIGGER follow AFTER TRUNCATE ON %s EXECUTE FUNCTION streamfilter_forget($$seen$$)';
my $cannot = qr/ERROR:  trigger "follow" cannot follow TRUNCATE of distributed table "(\w+)"\n.*HINT:  .*: TRUNCATE public\.\g1, (?:public\.)?seen\./s;
like($citus->messages(sprintf $follow, 'events'), $cannot, 'a trigger for TRUNCATE of a distributed table');
sql(sprintf "CREATE TABLE early (key int); $follow; CREATE TRIGGER zz BEFORE INSERT ON early FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')", 'early');
like($citus->messages(q{SELECT create_distributed_table('early', 'key')}), $cannot, '... and of one that is to be distributed');
sql(q{DROP TRIGGER follow ON early; SELECT create_distributed_table('early', 'key'); INSERT INTO early SELECT generate_series(2001, 2100)});
unlike($citus->messages(q{SELECT undistribute_table('early')}), qr/does not know/, 'undistribute_table: the filter learns the rows, and says nothing');
sql('INSERT INTO early SELECT generate_series(2001, 2100); DROP TABLE early');
is(load(), 1000, 'and the other table goes on');

# A node takes many places for callbacks to work on a columnar shard of its own.
sql(q{CREATE EXTENSION citus_columnar; CREATE TABLE columns (key int) USING columnar; SELECT create_distributed_table('columns', 'key');
	CREATE TRIGGER zz BEFORE INSERT ON columns FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});
sql('INSERT INTO columns SELECT generate_series(3001, 4000)', $citus->node($_)) for 1, 0, 2;
is(sql('SELECT count(*), count(DISTINCT key) FROM columns'), '1000|1000', 'columnar shards, from each node');
sql('DROP TABLE columns; DROP EXTENSION citus_columnar');

# ---- ALTER, RENAME, SET SCHEMA, OWNER, GRANT

sql(q{CREATE ROLE keeper; CREATE ROLE reader; ALTER FOREIGN TABLE seen OPTIONS (ADD mode 'shadow')});
is(load(), 2000, 'ALTER of the mode');
sql(q{ALTER FOREIGN TABLE seen OPTIONS (SET mode 'enforce')});
is(load(), 2000, 'and back');
sql(q{BEGIN; ALTER FOREIGN TABLE seen OPTIONS (SET keys '300000'); ROLLBACK});
sql(q{ALTER FOREIGN TABLE seen OPTIONS (SET keys '200000')});
is(load(), 2000, 'ALTER of the keys keeps what the filter knows');
is(nodes(q{SELECT streamfilter_definition('seen') ~ $$keys '200000'$$}), 't t t', 'ALTER of the keys');
sql(q{BEGIN; ALTER FOREIGN TABLE seen OPTIONS (SET mode 'off'); ROLLBACK});
is(nodes(q{SELECT streamfilter_definition('seen') ~ $$mode 'enforce'$$}), 't t t', 'ALTER is undone on all nodes');
sql(q{GRANT SELECT, INSERT (key) ON seen TO reader WITH GRANT OPTION});
is(nodes(q{SELECT has_table_privilege('reader', 'seen', 'SELECT WITH GRANT OPTION') AND has_column_privilege('reader', 'seen', 'key', 'INSERT')}),
	't t t', 'GRANT');
sql(q{REVOKE ALL ON seen FROM reader CASCADE});
is(nodes(q{SELECT has_table_privilege('reader', 'seen', 'SELECT') OR has_column_privilege('reader', 'seen', 'key', 'INSERT')}), 'f f f', 'REVOKE');
sql(q{GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader});
is(nodes(q{SELECT has_table_privilege('reader', 'seen', 'SELECT')}), 't t t', 'GRANT ON ALL TABLES');
sql(q{CREATE SCHEMA filters; GRANT ALL ON SCHEMA filters TO keeper; ALTER FOREIGN TABLE seen RENAME TO "Known"; ALTER FOREIGN TABLE "Known" SET SCHEMA filters;
	ALTER FOREIGN TABLE filters."Known" RENAME COLUMN key TO k; ALTER FOREIGN TABLE filters."Known" OWNER TO keeper});
is(nodes(q{SELECT string_agg(c.oid::regclass || '/' || a.attname || '/' || c.relowner::regrole, ' ') FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = 1
	WHERE c.relkind = 'f'}), join(' ', ('filters."Known"/k/keeper') x 3), 'RENAME, SET SCHEMA, OWNER');
sql('ALTER SERVER streamfilter OWNER TO keeper; COMMENT ON COLUMN filters."Known".k IS $$the key$$');
is(nodes(q{SELECT srvowner::regrole || '/' || col_description('filters."Known"'::regclass, 1) FROM pg_foreign_server WHERE srvname = 'streamfilter'}),
	join(' ', ('keeper/the') x 3) =~ s{the}{the key}gr, 'ALTER SERVER OWNER, COMMENT ON COLUMN');
sql('ALTER SERVER streamfilter OWNER TO CURRENT_USER');
is(sql(q{SELECT count(*) FROM run_command_on_workers('SELECT 1')}), 2, 'nodes answer');
sql(q{ALTER FOREIGN TABLE filters."Known" OWNER TO CURRENT_USER; ALTER FOREIGN TABLE filters."Known" RENAME COLUMN k TO key;
	ALTER FOREIGN TABLE filters."Known" SET SCHEMA public; ALTER FOREIGN TABLE "Known" RENAME TO seen});
sql('TRUNCATE events; TRUNCATE seen');
is(load(), 1000, 'and the filter is found by its former name again');
refused('ALTER FOREIGN TABLE seen ADD COLUMN n int');

# Rights are those of the role that acts.
sql('ALTER ROLE reader LOGIN');
like($citus->messages(q{SET ROLE reader; ALTER FOREIGN TABLE seen OPTIONS (SET mode 'off')}), qr/must be owner/, 'the owner alters');

# ---- statements about single keys and nodes

sql(q{CREATE FOREIGN TABLE recent (key int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB'); SELECT streamfilter_distribute('recent')});
for my $statement (q{DELETE FROM recent WHERE key = 1}, q{SELECT streamfilter_test('seen', 1)}, q{SELECT streamfilter_warm('seen', 'events')})
{
	like($citus->messages($statement), qr/ERROR:.*this node only.*HINT:.*run_command_on_/s, "$statement says what to type");
}
like($citus->messages("SELECT * FROM streamfilter_$_"), qr/NOTICE:.*this node only.*HINT:.*run_command_on_all_nodes/s, "streamfilter_$_ says what it shows") for qw(stats triggers tuning metrics);
is(sql(q{SELECT bool_or(result::bool) FROM run_command_on_all_nodes($$SELECT streamfilter_test('seen', 7)$$)}), 't', 'asked as told');
sql(q{SELECT streamfilter_stats_reset('seen')});
is(nodes(q{SELECT max(tested) FROM streamfilter_stats}), '0 0 0', 'counters are reset on all nodes');
like($citus->messages("SELECT $_('seen')"), qr/ERROR:.*this node only.*HINT:.*run_command_on_all_nodes/s, $_)
  foreach qw(streamfilter_save streamfilter_forget_saved);

# ---- an identity of its own

sql('SET citus.enable_ddl_propagation = off; DROP TRIGGER zz ON events; DROP FOREIGN TABLE seen');
sql(q{CREATE FOREIGN TABLE seen (key int) SERVER streamfilter OPTIONS (kind 'bloom', keys '200000', fpr '1e-6', mode 'enforce')});
like($citus->messages(q{SELECT streamfilter_distribute('seen')}), qr/could not make filter "seen" on node.*is of another life.*HINT:  Drop the triggers that use it, type SELECT streamfilter_distribute\('public.seen'\)/s,
	'a new filter does not go on with one that was dropped here only');
sql(q{DROP TABLE events; SELECT run_command_on_workers('DROP FOREIGN TABLE seen CASCADE'); DROP FOREIGN TABLE seen});
make();
is(load(), 1000, 'after that it begins empty');

# ---- rows that were diverted

sql(q{CREATE FOREIGN TABLE known (key int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB'); SELECT streamfilter_distribute('known');
	CREATE TABLE visits (id int, key int); CREATE TABLE repeats (id int, key int); CREATE TABLE here (id int, key int);
	SELECT create_distributed_table(t, 'key') FROM unnest('{visits,repeats}'::text[]) t;
	CREATE TRIGGER zz BEFORE INSERT ON visits FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('known', 'repeats', 'key')});
$citus->everywhere('INSERT INTO known SELECT generate_series(501, 510)');
my $visits = 'INSERT INTO visits SELECT i, 1 + i % 510 FROM generate_series(1, 1020) i';
sql($visits);
is($citus->counts('visits', 'key') . ' ' . $citus->counts('repeats', 'key'), '500|500 520|510', 'repeats and false positives are diverted');
for my $tables (q{'repeats', 'visits'}, q{'here', 'visits', '{key}'}, q{'repeats', 'here', '{key}'})
{
	like($citus->messages("SELECT streamfilter_settle($tables)", $citus->node($_)), qr/ERROR:.*cannot settle rows of table "\w+", which Citus distributes.*HINT:  Type/s,
		"streamfilter_settle($tables) on node $_ says what to type") foreach $tables =~ /here/ ? 0 : (0, 1);
}
my ($recipe) = $citus->messages(q{SELECT streamfilter_settle('repeats', 'visits')}) =~ /HINT:  Type, in one transaction: (.*)\.$/m;
$recipe =~ s/\.\.\./id, key/;
sql("BEGIN; $recipe; COMMIT");
is($citus->counts('visits', 'key') . ' ' . $citus->counts('repeats', 'key'), '510|510 0|0', '... which brings back the first row of each key');
sql($visits);
is($citus->counts('visits', 'key'), '510|510', '... and repeats are diverted as before');
like($citus->messages('BEGIN; LOCK TABLE known'), qr/ERROR:.*cannot lock relation "known"/s, 'a filter cannot be locked');
sql('DROP FOREIGN TABLE known CASCADE; DROP TABLE visits, repeats, here');

# ---- settings

my $insert = 'INSERT INTO events SELECT i, i FROM generate_series(1, 1000) i';
like($citus->messages("SET streamfilter.mode = shadow; $insert"), qr/ERROR:.*streamfilter.mode.*does not reach.*HINT:.*citus.propagate_set_commands/s, 'SET of the mode');
like($citus->messages("SET streamfilter.mode = shadow; COPY events FROM PROGRAM 'echo 1 | sed s/1/1\\\\t1/'"), qr/ERROR:.*does not reach/, 'before COPY');
like($citus->messages("BEGIN; SET LOCAL streamfilter.mode = off; $insert; COMMIT"), qr/ERROR:.*does not reach/, 'SET LOCAL that does not travel');
{
	local $ENV{PGOPTIONS} = '-c streamfilter.mode=shadow';
	like($citus->messages($insert), qr/ERROR:.*does not reach/, 'PGOPTIONS');
}
like($citus->messages("SET streamfilter.enabled = off; $insert"), qr/ERROR:.*streamfilter.enabled.*does not reach/s, 'streamfilter.enabled');
is(sql('SELECT count(*) FROM events'), 1000, 'nothing is lost in silence');
my $told = $citus->messages("SET streamfilter.report = on; $insert; $insert");
is(() = $told =~ /NOTICE:  streamfilter\.report of this session does not reach the nodes/g, 1, 'a setting that changes no row: a NOTICE, once');
is(sql('SELECT count(*) FROM events'), 1000, '... and rows go on');
my $script = PostgreSQL::Test::Utils::tempdir() . '/restore.sql';
PostgreSQL::Test::Utils::append_to_file($script, join "\n", 'BEGIN;', q{SET LOCAL citus.propagate_set_commands = 'local';},
	'SET LOCAL streamfilter.mode = shadow;', "$insert;", 'COMMIT;');
$citus->coordinator->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-d', $citus->coordinator->connstr('postgres'), '-f', $script ],
	'the recipe of the hint');
is(sql('SELECT count(*) FROM events'), 2000, 'stores all rows');
sql(q{ALTER SYSTEM SET streamfilter.mode = shadow; SELECT pg_reload_conf()});
like($citus->messages($insert), qr/ERROR:.*does not reach/, 'the configuration of one node');
sql(q{ALTER SYSTEM SET streamfilter.mode = shadow}, $_) foreach map { $citus->node($_) } 1, 2;
$_->reload foreach map { $citus->node($_) } 1, 2;
sql($insert);
is(sql('SELECT count(*) FROM events'), 3000, 'and of all');

done_testing();
