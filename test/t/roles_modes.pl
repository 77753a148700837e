# Modes of filters and restores: other sessions, connections that bring a setting along, restarts, dumps of rows.
# flavours: quick one_by_one
use Sf;

my $node = start_node('modes', q{
	streamfilter.lost_rows = warn
streamfilter.shared_memory = '24MB'
fsync = off
});

sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
	CREATE FOREIGN TABLE loose (id int) SERVER streamfilter
		OPTIONS (kind 'clq', memory '64kB', persistence 'unlogged', mode 'shadow');
	CREATE TABLE events (id int, payload text);
	CREATE TRIGGER zz_discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});

# --- Other sessions --------------------------------------------------------------------------------

my $owner = $node->background_psql('postgres');
my $writer = open_session('INSERT INTO events VALUES (1)');
$owner->query_safe(q{BEGIN; ALTER FOREIGN TABLE seen OPTIONS (ADD mode 'shadow')});
$owner->query_safe('ROLLBACK');
is($writer->query_safe('INSERT INTO events VALUES (1) RETURNING id'), '', 'an ALTER that rolled back changes nothing');
$owner->query_safe(q{ALTER FOREIGN TABLE seen OPTIONS (ADD mode 'shadow')});
is($writer->query_safe('INSERT INTO events VALUES (1) RETURNING id'), '1', 'one that commits is seen by a session that uses the filter');
$owner->query_safe(q{ALTER FOREIGN TABLE seen OPTIONS (SET mode 'off')});
is($writer->query_safe('INSERT INTO events VALUES (1), (2) RETURNING id'), "1\n2", 'off, too');
$owner->query_safe(q{ALTER FOREIGN TABLE seen OPTIONS (DROP mode)});
is($writer->query_safe('INSERT INTO events VALUES (1), (2) RETURNING id'), '2', 'and back again');
$owner->query_safe('SET streamfilter.mode = off');
is($writer->query_safe('INSERT INTO events VALUES (1), (2) RETURNING id'), '', 'the setting is that of one session');
$_->quit for $owner, $writer;

# --- Who brings a setting along ----------------------------------------------------------------------

sql(q{CREATE ROLE loader LOGIN; GRANT INSERT ON events TO loader; GRANT pg_read_all_data TO loader});
sub insert_as
{
	my ($role, %with) = @_;
	local $ENV{PGOPTIONS} = $with{options} // '';
	my ($out, $err);
	$node->psql('postgres', 'INSERT INTO events VALUES (1) RETURNING id', stdout => \$out, stderr => \$err,
		extra_params => [ '-U', $role, '-qAt' ]);
	return "$out$err";
}
my $superuser = sql('SELECT current_user');
is(insert_as($superuser, options => '-c streamfilter.mode=shadow'), '1', 'PGOPTIONS of a superuser');
like(insert_as('loader', options => '-c streamfilter.mode=shadow'), qr/permission denied to use filter "seen" in mode shadow/,
	'not of whoever may insert');
sql(q{ALTER ROLE loader SET streamfilter.mode = 'off'});
like(insert_as('loader'), qr/permission denied/, 'nor what a role could have set for itself');
sql(q{GRANT SET ON PARAMETER streamfilter.mode TO loader});
is(insert_as('loader'), '1', 'unless it was granted');
sql(q{REVOKE SET ON PARAMETER streamfilter.mode FROM loader; ALTER ROLE loader RESET streamfilter.mode});
sql(q{ALTER ROLE ALL SET streamfilter.mode = 'off'});
is(insert_as('loader'), '1', 'what a superuser has set for all');
sql(q{ALTER ROLE ALL RESET streamfilter.mode});
$node->append_conf('postgresql.conf', 'streamfilter.mode = shadow');
$node->reload;
ok(wait_for(q{SELECT current_setting('streamfilter.mode') = 'shadow'}), 'the configuration is read');
is(insert_as('loader'), '1', 'the configuration');
$node->append_conf('postgresql.conf', q{streamfilter.mode = ''});

# --- A restart ------------------------------------------------------------------------------------------

sql('INSERT INTO loose SELECT generate_series(1, 100)');
$node->restart;
is(sql(q{SELECT state, fill, fpr_now, distinct_estimate FROM streamfilter_stats WHERE filter = 'seen'::regclass}), 'saved|||',
	'what nobody has read back yet is not known');
is(sql(q{SELECT mode FROM streamfilter_stats WHERE filter = 'loose'::regclass}), 'shadow', 'modes stay');
sql(q{ALTER FOREIGN TABLE loose OPTIONS (DROP mode); ALTER FOREIGN TABLE seen OPTIONS (ADD mode 'shadow')});
is(sql(q{SELECT count(*) FROM generate_series(1, 100) i WHERE NOT streamfilter_seen('loose', i)}), 0,
	'an unlogged filter that is altered before its first use keeps its keys');
is(sql(q{INSERT INTO events VALUES (1), (2) RETURNING id}), "1\n2", 'likewise a logged one');
is(sql(q{SELECT would_discard, fill > 0 AND fill < .001, fpr_now > 0 AND fpr_now < 1e-6, distinct_estimate
	FROM streamfilter_stats WHERE filter = 'seen'::regclass}), '5|t|t|2', 'which is known by now, beside the three of before the restart');
sql(q{ALTER FOREIGN TABLE seen OPTIONS (DROP mode)});
crash();
is(sql('INSERT INTO events VALUES (1), (2), (3) RETURNING id'), '3', 'and so it is after a crash');

# --- A restore of rows ------------------------------------------------------------------------------------

sql(q{TRUNCATE events; TRUNCATE seen; INSERT INTO events SELECT i, 'event ' || i FROM generate_series(1, 20000) i});
my $dump = $node->basedir . '/events.sql';
my @connection = ('-h', $node->host, '-p', $node->port);
$node->command_ok([ 'pg_dump', @connection, '--data-only', '-t', 'events', '-f', $dump, 'postgres' ], 'the rows are dumped');
sub restore { $node->command_ok([ 'psql', @connection, '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, 'postgres' ], $_[0]) }

sql('TRUNCATE events');
restore('a restore into a table whose filter is in use succeeds');
is(sql('SELECT count(*) FROM events'), 0, 'but restores nothing: the trap');
{
	local $ENV{PGOPTIONS} = '-c streamfilter.mode=shadow';
	restore('it succeeds in mode shadow');
}
is(sql(q{SELECT count(*), count(DISTINCT id), min(payload) FROM events}), '20000|20000|event 1', 'every row is back');
is(sql(q{SELECT would_discard FROM streamfilter_stats WHERE filter = 'seen'::regclass}), 20000, 'and counted');
is(sql('INSERT INTO events SELECT generate_series(1, 20001) RETURNING id'), '20001', 'the filter knows them all');

# Into a database where the filter is new.
my $schema = $node->basedir . '/schema.sql';
$node->command_ok([ 'pg_dump', @connection, '--schema-only', '-f', $schema, 'postgres' ], 'definitions are dumped');
sql('CREATE DATABASE copy');
$node->command_ok([ 'psql', @connection, '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $schema, 'copy' ], 'and restored');
{
	local $ENV{PGOPTIONS} = '-c streamfilter.mode=shadow';
	$node->command_ok([ 'psql', @connection, '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, 'copy' ], 'then the rows');
}
is(sql('SELECT count(*) FROM events', 'copy'), 20000, 'all');
is(known('seen', 1, 20000, 'copy'), 20000, 'which the filter there knows');

# --- A filter that follows its table -------------------------------------------------------------------------

sql(q{
	CREATE FOREIGN TABLE members_seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '1e-6');
	CREATE TABLE members (id int);
	CREATE TRIGGER zz_once BEFORE INSERT ON members FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('members_seen');
	CREATE TRIGGER follow AFTER DELETE OR UPDATE ON members FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('members_seen');
	CREATE TRIGGER follow_all AFTER TRUNCATE ON members EXECUTE FUNCTION streamfilter_forget('members_seen');
	INSERT INTO members SELECT generate_series(1, 10)});
my ($one, $other) = map { $node->background_psql('postgres') } 1 .. 2;
$one->query_safe('BEGIN; DELETE FROM members WHERE id = 1; UPDATE members SET id = 12 WHERE id = 2');
my (undef, undef, $waited) = $node->psql('postgres', q{SET lock_timeout = '100ms'; INSERT INTO members VALUES (1), (2)});
like($waited, qr/lock timeout/, 'others wait until it is certain that the row has gone');
$one->query_safe('COMMIT');
is($other->query_safe('INSERT INTO members VALUES (1), (2), (12) RETURNING id'), "1\n2", 'and then it is not');
$one->query_safe('BEGIN; TRUNCATE members; ROLLBACK');
is($other->query_safe('INSERT INTO members VALUES (1), (10) RETURNING id'), '', 'a TRUNCATE that rolls back');
$one->query_safe('TRUNCATE members');
is($other->query_safe('INSERT INTO members VALUES (1), (10) RETURNING id'), "1\n10", 'and one that does not');
is($other->query_safe(q{SELECT rows FROM streamfilter_triggers WHERE trigger = 'follow'}), 2, 'what one session has done another sees');
$_->quit for $one, $other;

crash();
is(sql('INSERT INTO members VALUES (1), (3), (10) RETURNING id'), '3', 'a crash changes nothing in what was forgotten');
is(sql(q{SELECT rows, discarded FROM streamfilter_triggers WHERE trigger = 'zz_once'}), '3|2', 'triggers count since the start');

$node->command_ok([ 'pg_dump', @connection, '--schema-only', '-t', 'members*', '-f', $schema, 'postgres' ], 'its triggers are dumped');
sql('CREATE DATABASE following');
sql('CREATE EXTENSION streamfilter', 'following');
$node->command_ok([ 'psql', @connection, '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $schema, 'following' ], 'and restored');
is($node->safe_psql('following', 'INSERT INTO members VALUES (1), (1), (2); DELETE FROM members WHERE id = 1;
	INSERT INTO members VALUES (1), (2) RETURNING id'), '1', 'and follow');

# --- Filters on other servers ---------------------------------------------------------------------------------

my ($host, $port) = ($node->host, $node->port);
sql('CREATE DATABASE holder');
sql('CREATE EXTENSION streamfilter', 'holder');
sql(qq{
	CREATE SERVER holder FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'holder');
	CREATE USER MAPPING FOR CURRENT_USER SERVER holder OPTIONS (user '$superuser');
	CREATE SERVER gone FOREIGN DATA WRAPPER streamfilter OPTIONS (host '127.0.0.1', port '1', dbname 'nothing', timeout '1 s');
	CREATE USER MAPPING FOR CURRENT_USER SERVER gone;
	CREATE FOREIGN TABLE far (id int) SERVER holder OPTIONS (kind 'clq', memory '64kB', fpr '1e-6', mode 'shadow');
	CREATE FOREIGN TABLE lost (id int) SERVER gone OPTIONS (kind 'clq', memory '64kB', mode 'off')});
is(sql(q{SELECT count(*) FROM generate_series(1, 20) i WHERE NOT streamfilter_seen('far', i % 10)}), 20, 'shadow: all pass');
is(known('far', 1, 20), 9, 'and are remembered over there');
is(sql(q{SELECT accepted, discarded, would_discard, lost_estimate FROM streamfilter_stats WHERE filter = 'far'::regclass}),
	'10|0|10|', 'they are counted here, and what was lost nobody knows');
sql(q{ALTER FOREIGN TABLE far OPTIONS (DROP mode)});
is(sql(q{SELECT count(*) FROM generate_series(1, 20) i WHERE NOT streamfilter_seen('far', i % 10)}), 0, 'enforce: they are known');
is(sql(q{SELECT count(*) FROM generate_series(1, 20) i WHERE NOT streamfilter_seen('lost', i % 10)}), 20,
	'off: a server that is lost is not asked');
sql(q{CREATE TABLE far_rows (id int);
	CREATE TRIGGER zz BEFORE INSERT ON far_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('lost');
	INSERT INTO far_rows VALUES (1), (1)});
is(sql('SELECT count(*) FROM far_rows'), 2, 'nor by a trigger');

done();
