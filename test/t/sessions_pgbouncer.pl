# A pool of connections that changes hands between transactions (pgbouncer, pool_mode = transaction): what a filter knows
# belongs to transactions, so many clients may share few sessions. What belongs to sessions, settings, leaks.
use Sf;
use Needs;

my ($pgbouncer) = grep { -x $_ } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin', '/usr/local/sbin';
needs($pgbouncer, 'pgbouncer is not installed', 12);

my $node = start_node('pooled', slurp_file("$root/test/streamfilter.conf"));
sql(q{
	CREATE TABLE events (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '256kB', fpr '1e-6');
	CREATE TRIGGER zz_once BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});

# ---- the pool: four connections to database postgres, one to `narrow`, which is the same -----------------
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();
append_to_file("$dir/pgbouncer.ini", qq{
[databases]
postgres = host=@{[$node->host]} port=@{[$node->port]} dbname=postgres user=@{[scalar getpwuid($<)]} pool_size=4
narrow = host=@{[$node->host]} port=@{[$node->port]} dbname=postgres user=@{[scalar getpwuid($<)]} pool_size=1
[pgbouncer]
listen_port = $port
unix_socket_dir = $dir
auth_type = any
pool_mode = transaction
ignore_startup_parameters = extra_float_digits,options
logfile = $dir/log
pidfile = $dir/pid
});
my $pool = IPC::Run::start([ $pgbouncer, '-q', "$dir/pgbouncer.ini" ], '<', \undef, '>', \my $out, '2>', \my $err);
END { local $?; $pool->kill_kill if defined $pool; }
for (1 .. 100) { last if -S "$dir/.s.PGSQL.$port"; select undef, undef, undef, 0.1 }
ok(-S "$dir/.s.PGSQL.$port", 'the pool runs') or BAIL_OUT($err // '');

sub pooled
{
	my ($sql, $database) = @_;
	my ($answer, $error) = ('', '');
	IPC::Run::run([ 'psql', '-XAtq', '-h', $dir, '-p', $port, '-d', $database // 'postgres' ], '<', \$sql, '>', \$answer, '2>', \$error);
	chomp($answer, $error);
	return wantarray ? ($answer, $error) : $answer;
}

# ---- many clients, few sessions --------------------------------------------------------------------------
# Three of four transactions commit.
append_to_file("$dir/commit.sql", "\\set id random(1, 400)\nBEGIN;\nINSERT INTO events VALUES (:id);\nCOMMIT;\n");
append_to_file("$dir/rollback.sql", "\\set id random(1, 400)\nBEGIN;\nINSERT INTO events VALUES (:id);\nROLLBACK;\n");
command_ok([ 'pgbench', '-n', '-h', $dir, '-p', $port, '-c', 16, '-t', 60, '-f', "$dir/commit.sql\@3", '-f', "$dir/rollback.sql\@1", 'postgres' ],
	'sixteen clients');
is(sql('SELECT count(*) = count(DISTINCT id) FROM events'), 't', '... no key is there twice');
cmp_ok(sql(q{SELECT count(*) FROM pg_stat_activity WHERE application_name !~ 'psql' AND backend_type = 'client backend' AND pid <> pg_backend_pid()}),
	'<=', 4, '... on four sessions');
pooled('INSERT INTO events SELECT generate_series(1, 400)');
is(sql('SELECT count(*), count(DISTINCT id) FROM events'), '400|400', '... nothing that rolled back is known');

# ---- a client that goes in the middle of a transaction ---------------------------------------------------
pooled('BEGIN; INSERT INTO events VALUES (1000);');
is(pooled('WITH i AS (INSERT INTO events VALUES (1000) RETURNING 1) SELECT count(*) FROM i'), '1', 'what its client left unfinished is not known');
is(pooled('WITH i AS (INSERT INTO events VALUES (1000) RETURNING 1) SELECT count(*) FROM i'), '0', '... what was finished is, in each session');

# ---- a transaction that is prepared in one session and ends in another -----------------------------------
pooled(q{BEGIN; INSERT INTO events VALUES (2000), (2001); PREPARE TRANSACTION 'pooled'});
pooled(q{COMMIT PREPARED 'pooled'});
pooled('INSERT INTO events VALUES (2000), (2001), (2002)') for 1 .. 4;
is(sql('SELECT count(*) FROM events WHERE id BETWEEN 2000 AND 2002'), '3', 'prepared transactions');

# ---- settings of a session go to the next client ------------------------------------------------------
pooled(q{SET streamfilter.mode = 'shadow'}, 'narrow');
pooled('INSERT INTO events VALUES (1000)', 'narrow');
is(sql('SELECT count(*) FROM events WHERE id = 1000'), '2', 'SET streamfilter.mode stays for the next client (the trap)');
pooled('RESET streamfilter.mode', 'narrow');
pooled(q{BEGIN; SET LOCAL streamfilter.mode = 'shadow'; INSERT INTO events VALUES (1000); COMMIT}, 'narrow');
pooled('INSERT INTO events VALUES (1000)', 'narrow');
is(sql('SELECT count(*) FROM events WHERE id = 1000'), '3', '... SET LOCAL ends with its transaction');

# ---- a filter on a server behind the pool --------------------------------------------------------------------
sql(sprintf q{
	CREATE SERVER pooled FOREIGN DATA WRAPPER streamfilter OPTIONS (host '%s', port '%d', dbname 'narrow', connect_timeout '1s');
	CREATE USER MAPPING FOR CURRENT_USER SERVER pooled;
	CREATE SCHEMA away;
	CREATE FOREIGN TABLE away.seen (id int) SERVER pooled OPTIONS (kind 'bloom', keys '1000')}, $dir, $port);
my @said = map { ($node->psql('postgres', q{SELECT streamfilter_test('away.seen', 1)}))[2] } 1 .. 2;
my $needs = qr/HINT:  Is it a pooler\? pgbouncer needs pool_mode = session and ignore_startup_parameters = options\./;
like("@said", $needs, 'pool_mode = transaction: the HINT says what it needs');

sub configure { my ($from, $to) = @_; my $ini = slurp_file("$dir/pgbouncer.ini"); $ini =~ s/\Q$from\E/$to/; unlink "$dir/pgbouncer.ini"; append_to_file("$dir/pgbouncer.ini", $ini); kill 'HUP', slurp_file("$dir/pid"); sleep 1; return; }
configure('parameters = extra_float_digits,options', 'parameters = extra_float_digits');
like(($node->psql('postgres', q{SELECT streamfilter_test('away.seen', 1)}))[2], qr/could not connect to server "pooled"\nDETAIL:  .*unsupported startup parameter: options\n$needs/,
	'... and as pgbouncer is installed');

done_testing();
