# Citus: nodes that come and go, roles without rights of superusers, and statements about a filter while rows come.
use Sf;
use CitusCluster;
use IPC::Run qw(start timeout);

my $citus = CitusCluster->new(workers => 3, spare => 1, checks => 72);
sub nodes { return $citus->nodes($_[0]); }

sub make
{
	sql(q{
		CREATE FOREIGN TABLE seen (key int) SERVER streamfilter OPTIONS (kind 'lru', memory '256kB');
		SELECT streamfilter_distribute('seen');
		CREATE TABLE events (id int, key int);
		SELECT create_distributed_table('events', 'key');
		CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'key')});
	return;
}

sub load { sql('INSERT INTO events SELECT i, i FROM generate_series(1, 1000) i'); return sql('SELECT count(*) FROM events'); }

# Only when what a move has left behind is cleaned up.
sub move
{
	my ($query) = @_;
	$citus->clean_up;
	return sql($query);
}

sub rebalance { return move(q{SELECT rebalance_table_shards(shard_transfer_mode => 'block_writes')}); }

# ---- a node that is added later

make();
load();
sql(q{CREATE FOREIGN TABLE alone (key int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB'); SELECT streamfilter_distribute('alone')});
$citus->add_node(3);
rebalance();
is(load(), 1000, 'a node that is added later knows the keys of its shards');
sql(q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '512kB'); TRUNCATE events, seen});
is(load(), 1000, '... and statements act on it');
is(nodes(q{SELECT streamfilter_definition('seen') ~ '512kB'}), 't t t t', '... all of them');
sql(q{ALTER FOREIGN TABLE alone OPTIONS (SET memory '128kB')});
is(sql(q{SELECT streamfilter_distribute('alone')}), 3, 'a filter without a table gets there when it is distributed again');
is(nodes(q{SELECT streamfilter_definition('alone') ~ '128kB'}), 't t t t', '... as it is now');
sql('DROP FOREIGN TABLE alone');

# ---- a node that is removed, and comes again with what it knew

sub remove
{
	move('SELECT citus_drain_node(' . $citus->place(3) . q{, shard_transfer_mode => 'block_writes')});
	move('SELECT citus_remove_node(' . $citus->place(3) . ')');
	return;
}

sub come_again
{
	my $said = $citus->messages('SELECT citus_add_node(' . $citus->place(3) . ')');
	rebalance();
	return $said;
}

remove();
is(load(), 1000, 'without a node');
sql('TRUNCATE events, seen');
come_again();
is(sql('SELECT count(DISTINCT nodeport) FROM citus_shards'), 3, 'it holds shards again');
is(load(), 1000, 'what was emptied meanwhile is empty there, too');
is(load(), 1000, '... and repeats are discarded');
remove();
sql('DROP FOREIGN TABLE seen CASCADE; DROP TABLE events');
make();
come_again();
is(load(), 1000, 'nor does it go on with a filter that was dropped meanwhile');
is(load(), 1000, '... and repeats are discarded');
remove();
come_again();
is(load(), 1000, 'a node that comes again learns the keys of its shards');
move('SELECT citus_drain_node(' . $citus->place(3) . q{, shard_transfer_mode => 'block_writes')});
move('SELECT citus_disable_node(' . $citus->place(3) . ', synchronous => true)');
sql(q{TRUNCATE events, seen; ALTER FOREIGN TABLE seen OPTIONS (SET memory '512kB')});
sql('SELECT citus_activate_node(' . $citus->place(3) . ')');
sql('SELECT citus_set_node_property(' . $citus->place(3) . q{, 'shouldhaveshards', true)});
rebalance();
is(sql('SELECT count(DISTINCT nodeport) FROM citus_shards'), 3, 'a node that was disabled holds shards again');
is(load(), 1000, '... and has nothing of what it knew');
is(nodes(q{SELECT streamfilter_definition('seen') ~ '512kB'}), 't t t t', '... nor a former definition');
is(load(), 1000, '... and repeats are discarded');
sql('DROP FOREIGN TABLE seen CASCADE; DROP TABLE events');

# ---- all in one transaction

sql(q{CREATE FOREIGN TABLE alone (key int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB');
	BEGIN; SET LOCAL statement_timeout = '120s'; SELECT streamfilter_distribute('alone'); SET LOCAL citus.shard_count = 1; CREATE TABLE one_shard (key int);
	SELECT create_distributed_table('one_shard', 'key', colocate_with => 'none');
	CREATE TRIGGER zz BEFORE INSERT ON one_shard FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('alone'); COMMIT;
	INSERT INTO one_shard VALUES (1), (1)});
is(sql('SELECT count(*) FROM one_shard'), 1, 'filter, table and trigger in one transaction, where not all nodes have shards');
sql('DROP FOREIGN TABLE alone CASCADE; DROP TABLE one_shard');

# ---- a role that owns table and filter, and nothing more

sql('CREATE ROLE owner LOGIN; CREATE ROLE loader LOGIN; GRANT ALL ON SCHEMA public TO owner; GRANT USAGE ON FOREIGN SERVER streamfilter TO owner');
is(nodes(q{SELECT has_server_privilege('owner', 'streamfilter', 'USAGE')}), 't t t t', 'GRANT on the server of filters');
sql('REVOKE USAGE ON FOREIGN SERVER streamfilter FROM owner; GRANT USAGE ON FOREIGN SERVER streamfilter TO owner WITH GRANT OPTION');
is(nodes(q{SELECT has_server_privilege('owner', 'streamfilter', 'USAGE WITH GRANT OPTION')}), 't t t t', '... and REVOKE');
sql('SELECT run_command_on_workers($$REVOKE USAGE ON FOREIGN SERVER streamfilter FROM owner$$)');
like($citus->messages(q{SET ROLE owner; CREATE FOREIGN TABLE denied (k int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB'); SELECT streamfilter_distribute('denied')}),
	qr/ERROR:  could not make filter "denied".*HINT:  .*USAGE on server streamfilter/s, 'a node where it is missing');
sql('DROP FOREIGN TABLE IF EXISTS denied; SELECT run_command_on_workers($$GRANT USAGE ON FOREIGN SERVER streamfilter TO owner WITH GRANT OPTION$$)');
sub as
{
	my ($role, $statement) = @_;
	my ($code, $out, $err) = $citus->coordinator->psql('postgres', $statement, extra_params => [ '-U', $role ]);
	return $code == 0 ? 'done' : $err;
}
is(as('owner', q{
	CREATE FOREIGN TABLE seen (key int) SERVER streamfilter OPTIONS (kind 'lru', memory '256kB');
	SELECT streamfilter_distribute('seen');
	CREATE TABLE events (id int, key int);
	SELECT create_distributed_table('events', 'key');
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'key');
	INSERT INTO events SELECT i, i FROM generate_series(1, 1000) i}), 'done', 'a role without rights makes table and filter');
is(as('owner', $_), 'done', $_)
  for q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '512kB')}, 'COMMENT ON FOREIGN TABLE seen IS $$mine$$', 'COMMENT ON COLUMN seen.key IS $$its key$$', 'GRANT SELECT ON seen TO loader', 'GRANT INSERT ON events TO loader',
  q{SELECT streamfilter_stats_reset('seen')}, 'BEGIN; TRUNCATE events, seen; ROLLBACK', 'SELECT * FROM streamfilter_stats';
is(nodes(q{SELECT streamfilter_definition('seen') ~ '512kB' AND has_table_privilege('loader', 'seen', 'SELECT') AND obj_description('seen'::regclass) = 'mine' AND col_description('seen'::regclass, 1) = 'its key'}),
	't t t t', 'on all nodes');
is(as('loader', 'INSERT INTO events SELECT i, i FROM generate_series(1, 1100) i'), 'done', 'another one inserts');
is(sql('SELECT count(*) FROM events'), 1100, '... and its repeats are discarded');
like(as('loader', $_), qr/permission denied|must be owner/, "$_: only the owner")
  for q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '1MB')}, 'TRUNCATE seen', 'DROP FOREIGN TABLE seen CASCADE', q{SELECT streamfilter_stats_reset('seen')},
  'COMMENT ON FOREIGN TABLE seen IS NULL', q{ALTER SERVER streamfilter OPTIONS (ADD max_filters '10')};
is(as('owner', 'TRUNCATE events, seen'), 'done', 'the owner empties both');
is(load(), 1000, '... and the same rows are stored again');
is(as('owner', 'DROP FOREIGN TABLE seen CASCADE; DROP TABLE events'), 'done', 'and drops them');
is(nodes(q{SELECT to_regclass('seen') IS NULL}), 't t t t', 'on all nodes');

# ---- a trigger of the filter, and its server

make();
$citus->everywhere(q{CREATE OR REPLACE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'});
like($citus->messages('CREATE TRIGGER one BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION nothing()'), qr/this node only.*HINT/s, 'a trigger of a filter is made on one node');
sql('SET citus.enable_ddl_propagation = off; CREATE TRIGGER one BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION nothing()');
like($citus->messages('ALTER TRIGGER one ON seen RENAME TO two'), qr/this node only.*HINT/s, 'a trigger of a filter is renamed on one node');
sql(q{ALTER SERVER streamfilter OPTIONS (ADD max_filters '77')});
is(nodes(q{SELECT srvoptions FROM pg_foreign_server WHERE srvname = 'streamfilter'}), join(' ', ('{max_filters=77}') x 4), 'limits of the server are those of all nodes');
sql('ALTER SERVER streamfilter RENAME TO filters');
is(nodes(q{SELECT srvname FROM pg_foreign_server}), join(' ', ('filters') x 4), '... and its name');
sql('ALTER SERVER filters RENAME TO streamfilter');
sql(q{ALTER SERVER streamfilter OPTIONS (DROP max_filters); DROP FOREIGN TABLE seen CASCADE; DROP TABLE events});

# ---- what is saved

sub on_all_nodes { my ($command) = @_; sql("SELECT * FROM run_command_on_all_nodes(\$\$$command\$\$)"); return; }

# An INSERT fails, until what its hint has is typed.
sub fails_until
{
	my ($what, $last) = @_;
	my $said = $citus->messages("INSERT INTO events SELECT i, i FROM generate_series(1, $last) i");
	my ($typed) = $said =~ /HINT:  Type: (SELECT \* FROM run_command_on_all_nodes\(.*?\))\./;
	like($said, qr/^$|ERROR:.*cannot PREPARE a transaction that replaces what is saved.*HINT/s, "$what: an INSERT may say what to type");
	sql($typed) if $said ne '';
	sql("INSERT INTO events SELECT i, i FROM generate_series(1, $last) i");
	is($citus->counts('events', 'key'), "$last|$last", '... and then goes on') or diag($said);
	return;
}
make();
load();
on_all_nodes(q{DELETE FROM seen WHERE key = 7});
is(load(), 1001, 'DELETE of a key, typed as the hint says');
sql('DELETE FROM events WHERE id = 7');

# Another size while rows come: node after node, and again if one of them fails.
sub memories { return nodes(q{SELECT substring(streamfilter_definition('seen') from 'memory ''(\w+)''')}); }
sql(q{CALL streamfilter_resize('seen', '512kB')});
is(memories(), '512kB 512kB 512kB 512kB', 'streamfilter_resize() reaches all nodes');
is(load(), 999, '... and repeats are discarded');
my $sleeper = $citus->node(2)->background_psql('postgres');
$sleeper->query_safe(q{SET citus.enable_ddl_propagation = off; BEGIN; SELECT streamfilter_test('seen', 1)});
$citus->node(2)->safe_psql('postgres', q{ALTER SYSTEM SET streamfilter.commit_wait_timeout = '1s'; SELECT pg_reload_conf()});
like($citus->messages(q{CALL streamfilter_resize('seen', '1MB')}), qr/changed on 3 of 4 nodes of Citus.*DETAIL:.*transactions that use it do not end.*HINT:  Type the same again/s,
	'of a node that fails it tells');
is(memories(), '1MB 1MB 512kB 1MB', '... and the others have another size');
is(load(), 999, '... and repeats are discarded');
end_session($sleeper, 'COMMIT');
$citus->node(2)->safe_psql('postgres', q{ALTER SYSTEM RESET streamfilter.commit_wait_timeout; SELECT pg_reload_conf()});
$citus->node(1)->safe_psql('postgres', q{CALL streamfilter_resize('seen', '1MB')});
is(memories(), '1MB 1MB 1MB 1MB', 'typed again, on a worker, it goes on');
is(load(), 999, '... and repeats are discarded');
sql(q{CALL streamfilter_resize('seen', '512kB')});
is(memories(), '512kB 512kB 512kB 512kB', 'and back');
like($citus->messages(q{CALL streamfilter_resize('seen', 'much')}), qr/ERROR:.*memory/, 'no size');
is(as('loader', q{CALL streamfilter_resize('seen', '1MB')}) =~ /must be owner/ ? 'refused' : '', 'refused', 'nor by another role');
on_all_nodes(q{DELETE FROM seen WHERE key = 7});
sql('INSERT INTO events VALUES (7, 7)');
on_all_nodes(q{SELECT streamfilter_forget_saved('seen')});
fails_until('what was saved is forgotten', 1100);
sql(q{ALTER FOREIGN TABLE seen OPTIONS (ADD persistence 'unlogged')});
fails_until('unlogged', 1200);
sql(q{ALTER FOREIGN TABLE seen OPTIONS (SET persistence 'logged')});
fails_until('logged', 1300);
sql('DROP FOREIGN TABLE seen CASCADE; DROP TABLE events');

# ---- dump and restore

make();
load();
my $folder = PostgreSQL::Test::Utils::tempdir();
$citus->coordinator->command_ok([ 'pg_dump', '-d', $citus->coordinator->connstr('postgres'), '-t', 'events', '-t', 'seen', '-f', "$folder/dump.sql" ], 'pg_dump');
sql('DROP FOREIGN TABLE seen CASCADE; DROP TABLE events');
$citus->coordinator->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $citus->coordinator->connstr('postgres'), '-f', "$folder/dump.sql" ], '... is restored');
sql(q{SELECT streamfilter_distribute('seen'); SELECT create_distributed_table('events', 'key')});
is(sql('SELECT count(*) FROM events'), 1000, '... with all rows');
is(load(), 1000, '... whose repeats are discarded');
sql('TRUNCATE events, seen');
is(load(), 1000, '... and statements act on all nodes');
sql('DROP FOREIGN TABLE seen CASCADE; DROP TABLE events');

# ---- keys that come in while all of that is done

make();
append_to_file("$folder/rows$_.sql", join '', "SET statement_timeout = '60s';\n",
	map { my $first = 50 * $_; "INSERT INTO events SELECT i, i FROM generate_series($first + 1, $first + 100) i;\n" } 1 .. 60) foreach 1 .. 3;
append_to_file("$folder/admin.sql", join '', "SET statement_timeout = '60s';\n", map { "$_;\n" } map {
		(   q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '512kB')}, q{BEGIN; TRUNCATE events, seen; COMMIT}, q{BEGIN; TRUNCATE events, seen; ROLLBACK},
			q{SELECT * FROM run_command_on_all_nodes($$SELECT streamfilter_save('seen')$$)}, q{SELECT streamfilter_stats_reset('seen')},
			q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '256kB')}, q{BEGIN; ALTER FOREIGN TABLE seen OPTIONS (SET memory '1MB'); ROLLBACK})
	} 1 .. 4);
my @runs = map {
	my ($file, $output) = ("$folder/$_.sql", '');
	{ file => $file, output => \$output, run => start([ 'psql', '-Xq', '-d', $citus->coordinator->connstr('postgres'), '-f', $file ], '>', \$output, '2>&1', timeout(600)) };
} qw(rows1 rows2 rows3 admin);
$_->{run}->finish foreach @runs;
my @errors = map { split /\n/, ${ $_->{output} } } @runs;
is(join("\n", grep { /ERROR|WARNING/ && !/deadlock|canceling statement|starts empty/ } @errors), '', 'statements while rows come fail for no other reason than deadlocks');
sql('INSERT INTO events SELECT i, i FROM generate_series(51, 3100) i');
is($citus->counts('events', 'key'), '3050|3050', 'no key is lost, none is there twice');
is(nodes('SELECT count(*) FROM pg_prepared_xacts'), '0 0 0 0', 'nothing stays prepared');
my $definition = q{SELECT regexp_replace(streamfilter_definition('seen'), '@\d+', '')};
is(nodes($definition), join(' ', (sql($definition)) x 4), 'nodes agree');

done_testing();
