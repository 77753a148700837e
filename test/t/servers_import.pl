# Whatever has made a filter, its owner needs USAGE on the servers that hold it, and it depends on them: a role with
# USAGE on one server reaches no other, not even with the help of that server's administrator.
use Sf;

my $node = PostgreSQL::Test::Cluster->new('node');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '16MB'
	log_connections = on
	autovacuum = off});
# Who is no superuser connects to other servers by a password.
unlink $node->data_dir . '/pg_hba.conf';
$node->append_conf('pg_hba.conf', "local sa,sb joe scram-sha-256\nlocal all all trust\nhost all all all trust\n");
$node->start;
for my $name (qw(sa sb))
{
	sql("CREATE DATABASE $name");
	sql('CREATE EXTENSION streamfilter', $name);
}

my $as_joe = 'SET ROLE joe; SET search_path = of_joe, public; ';

my $host = $node->host;
my $port = $node->port;
sql(qq{
	CREATE EXTENSION streamfilter;
	CREATE ROLE joe LOGIN PASSWORD 'secret';
	CREATE SCHEMA of_joe AUTHORIZATION joe;
	GRANT USAGE ON FOREIGN SERVER streamfilter TO joe;
	CREATE SERVER sa FOREIGN DATA WRAPPER streamfilter
	  OPTIONS (host '$host', port '$port', dbname 'sa', timeout '20s');
	CREATE SERVER sb FOREIGN DATA WRAPPER streamfilter
	  OPTIONS (host '$host', port '$port', dbname 'sb', timeout '20s');
	GRANT USAGE ON FOREIGN SERVER sa TO joe;
	CREATE USER MAPPING FOR joe SERVER sa OPTIONS (user 'joe', password 'secret');
	CREATE USER MAPPING FOR PUBLIC SERVER sb OPTIONS (user 'joe', password 'secret');});
$node->safe_psql($_, 'GRANT USAGE ON FOREIGN SERVER streamfilter TO joe; CREATE SCHEMA of_joe AUTHORIZATION joe') for qw(sa sb);

my $log = -s $node->logfile;
sub connections_to_sb
{
	my $text = slurp_file($node->logfile, $log);
	return () = $text =~ /connection authorized: user=joe database=sb/g;
}

# What the one who controls sa says there of filter `name`.
sub told
{
	my ($name, $options, $columns) = @_;
	$columns //= '[{"name": "id", "type": "integer"}]';
	$options = '{"kind": "bloom", "memory": "256kB", "k": "4", "servers": "a,b"' . ($options // '') . '}';
	my $servers = join ', ', map { qq({"name": "$_", "host": "$host", "port": "$port", "dbname": "$_"}) } qw(sa sb);
	return $node->safe_psql('sa', sprintf
		  q{CREATE SCHEMA IF NOT EXISTS told; DROP FOREIGN TABLE IF EXISTS told.%1$s;
		    CREATE FOREIGN TABLE told.%1$s (hash bigint) SERVER streamfilter
		      OPTIONS (kind 'bloom', memory '8kB', k '4', producer $p${"columns": %2$s, "options": %3$s, "servers": [%4$s]}$p$);
		    GRANT USAGE ON SCHEMA told TO PUBLIC;},
		$name, $columns, $options, $servers);
}
my $import = $as_joe . 'IMPORT FOREIGN SCHEMA told FROM SERVER sa INTO of_joe';
told('f');

# ---- checked by the command ------------------------------------------------------------------------

like(said($import), qr/permission denied for foreign server sb\nDETAIL:  The owner of filter "f", role "joe", needs USAGE/,
	'IMPORT needs USAGE on all servers of what it makes');
is(sql(q{SELECT to_regclass('of_joe.f') IS NULL}), 't', 'and makes nothing then');

# ---- checked where it is used ----------------------------------------------------------------------

sql('ALTER EVENT TRIGGER streamfilter_check_ddl DISABLE');
sql($import);
sql('ALTER EVENT TRIGGER streamfilter_check_ddl ENABLE');
my $use = q{SELECT streamfilter_seen('of_joe.f', 1)};
for my $role ('SET ROLE joe; ', '')
{
	like(said($role . $use), qr/permission denied for foreign server sb/, 'what was made without a check is not used');
	like(said($role . 'INSERT INTO of_joe.f VALUES (1)'), qr/permission denied for foreign server sb/, 'in no way');
}
is(sql(q{SELECT filter::text, kind IS NULL, error LIKE 'permission denied for foreign server sb%' FROM streamfilter_stats}),
	'of_joe.f|t|t', 'the view says why');
is(connections_to_sb(), 0, 'nobody has connected');

sql('GRANT USAGE ON FOREIGN SERVER sb TO joe');
my $depends = q{SELECT string_agg(srvname, ',' ORDER BY srvname) FROM pg_depend d JOIN pg_foreign_server s ON s.oid = refobjid
	WHERE classid = 'pg_class'::regclass AND objid = 'of_joe.f'::regclass AND refclassid = 'pg_foreign_server'::regclass};
is(sql($depends), 'streamfilter', 'without the event trigger, it depends on its own server only');
is(knows('of_joe.f', 1), 'f', 'with USAGE it can be used');
is(sql($depends), 'streamfilter', 'looking changes nothing');
is(sql($use), 'f', 'remembers');
is(sql($depends), 'sa,sb,streamfilter', 'the first change records what it depends on');
is(sql("$use; $depends"), "t\nsa,sb,streamfilter", 'once');
cmp_ok(connections_to_sb(), '>', 0, 'it has connected now');

sql('REVOKE USAGE ON FOREIGN SERVER sb FROM joe');
like(said($use), qr/permission denied for foreign server sb/, 'REVOKE is noticed');
is(sql('CREATE ROLE users; GRANT users TO joe; GRANT USAGE ON FOREIGN SERVER sb TO users; ' . $use), 't',
	'USAGE by membership in a role counts');
like(said('REVOKE users FROM joe; ' . $use), qr/permission denied for foreign server sb/, 'and its end is noticed');
{
	# A session that has used the filter before.
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	sql('GRANT users TO joe');
	like($session->query($use), qr/t/, 'a session uses it');
	sql('REVOKE users FROM joe');
	$session->query($use);
	like($session->{stderr}, qr/permission denied for foreign server sb/, 'and no more when the right has gone');
	$session->quit;
}
sql('CREATE ROLE jim; GRANT CREATE ON SCHEMA of_joe TO jim');
like(said('ALTER FOREIGN TABLE of_joe.f OWNER TO jim'), qr/permission denied for foreign server sa/, 'a new owner needs USAGE too');
sql('REASSIGN OWNED BY joe TO jim');
like(said($use), qr/permission denied for foreign server sa/, 'however he came to it');
sql('ALTER FOREIGN TABLE of_joe.f OWNER TO CURRENT_USER; ALTER SCHEMA of_joe OWNER TO joe;
	DROP FOREIGN TABLE of_joe.f; GRANT USAGE ON FOREIGN SERVER sb TO joe');

# ---- dependencies ----------------------------------------------------------------------------------

sql($import);
is(sql($depends), 'sa,sb,streamfilter', 'IMPORT records what a filter depends on');
like(said('DROP SERVER sb'), qr/cannot drop server sb because other objects depend on it/, 'which DROP names');
sql('CREATE FOREIGN TABLE other (id int) SERVER streamfilter');
sql('DROP SERVER sb CASCADE');
is(sql('SELECT filter, error IS NULL FROM streamfilter_stats'), 'other|t', 'CASCADE drops it, and views go on');
sql(qq{CREATE SERVER sb FOREIGN DATA WRAPPER streamfilter
	  OPTIONS (host '$host', port '$port', dbname 'sb', timeout '20s');
	CREATE USER MAPPING FOR PUBLIC SERVER sb OPTIONS (user 'joe', password 'secret');
	GRANT USAGE ON FOREIGN SERVER sb TO joe});

# Of servers at one place, one that may be used is taken.
sql(qq{CREATE SERVER aa FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'sb')});
sql('ALTER SERVER sb RENAME TO zz');
sql($import);
is(sql(q{SELECT ftoptions @> '{"servers=sa,zz"}' FROM pg_foreign_table WHERE ftrelid = 'of_joe.f'::regclass}), 't',
	'a server that the user may use is found by its place');
sql('DROP FOREIGN TABLE of_joe.f; ALTER SERVER zz RENAME TO sb');

# ---- what the other side says ----------------------------------------------------------------------

my @hostile = (
	['unknown option', ', "colour": "red"', undef, qr/definition of filter "f" on server "sa" cannot be read here\nDETAIL:  invalid option "colour"/],
	['unknown kind', ', "kind": "blume"', undef, qr/cannot be read here/],
	['quotes', q{, "conflict": "wait'); DROP TABLE kept; --"}, undef, qr/cannot be read here\nDETAIL:  invalid value/],
	['name of an option', q{, "x'); DROP TABLE kept; --": "1"}, undef, qr/invalid option "x'\); DROP/],
	['origin of slices', ', "producer": "{}"', undef, qr/gives an incomplete definition of filter "f"/],
	['parent', ', "parent": "other"', undef, qr/cannot have a parent/],
	['type', '', '[{"name": "id", "type": "int); DROP TABLE kept; --"}]', qr/syntax error|invalid type name/],
	['set of', '', '[{"name": "id", "type": "SETOF int"}]', qr/invalid type name/],
	['collation', '', '[{"name": "id", "type": "text", "collation": "x); DROP TABLE kept"}]', qr/does not exist|invalid name/],
	['role', '', '[{"name": "id", "type": "int", "role": "x) DROP TABLE kept"}]', qr/invalid value for option "role"/],
	['no name', '', '[{"type": "int"}]', qr/gives an incomplete definition of filter "f"/],
	['no columns', '', '[]', qr/has no key column/],
	['twice', '', '[{"name": "id", "type": "int"}, {"name": "id", "type": "int"}]', qr/specified more than once/]);
sql('CREATE TABLE kept ()');
for my $case (@hostile)
{
	my ($name, $options, $columns, $message) = @$case;
	told('f', $options, $columns);
	like(said($import), $message, "hostile definition: $name");
}
told('good');
sql('SET ROLE joe; IMPORT FOREIGN SCHEMA told EXCEPT (f) FROM SERVER sa INTO of_joe');
is(sql(q{SELECT string_agg(filter::text, ',') FROM streamfilter_stats WHERE filter::text LIKE 'of_joe.%'}), 'of_joe.good',
	'those that are left out need not be read');
is(sql(q{SELECT to_regclass('kept') IS NOT NULL, to_regclass('of_joe.f') IS NULL}), 't|t', 'nothing was done');

done();
