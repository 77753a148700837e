# Sessions that do anything at any time: keys, savepoints, cursors, definitions that change under them, prepared
# transactions, cancelled and terminated backends. Nothing crashes, nothing is an internal error, and when all are gone
# no key is in flight and no filter is broken.
#
# STREAMFILTER_SEED says which sequence, STREAMFILTER_SECONDS how long.
# flavours: faults
use Sf;
use IPC::Run;

my $seed = $ENV{STREAMFILTER_SEED} // 11;
my $seconds = $ENV{STREAMFILTER_SECONDS} // 15;
srand($seed);
note("seed $seed");

my $node = PostgreSQL::Test::Cluster->new('chaos');
$node->init;
$node->append_conf('postgresql.conf', q{
streamfilter.lost_rows = warn
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '16MB'
streamfilter.max_filters = 40
streamfilter.max_in_flight = 4000
max_prepared_transactions = 20
statement_timeout = '2s'
lock_timeout = '300ms'
deadlock_timeout = '100ms'
idle_in_transaction_session_timeout = '5s'
log_min_messages = warning
log_error_verbosity = verbose
log_line_prefix = '%m [%p] %q%a '
fsync = off});
$node->start;

my @filters = map { "f$_" } 1 .. 6;
my @definitions = (
	"memory '64kB'", "kind 'lru', memory '64kB'", "kind 'bloom', keys '1000'", "kind 'sbf', memory '64kB', conflict 'admit'",
	"kind 'bloom', memory '64kB', k '4', slices '4', slicing 'vertical'", "kind 'dsqf', memory '64kB', conflict 'discard'",
	"kind 'clq', memory '64kB', window '1 second', persistence 'unlogged'", "kind 'timer', memory '64kB', window '50 rows', keys '50'");
sub any { return $_[ rand @_ ] }
sub key { return int rand 300 }

sub create { return sprintf 'CREATE FOREIGN TABLE %s (k int) SERVER streamfilter OPTIONS (%s)', $_[0], any(@definitions) }

$node->safe_psql('postgres', join ";\n", 'CREATE EXTENSION streamfilter', 'CREATE TABLE t (k int)', 'CREATE TABLE u (k int, again bool)',
	'INSERT INTO t SELECT generate_series(1, 300)', 'ANALYZE t', map { create($_) } @filters);

# Statements, each as likely as often it is listed.
my @statements = (
	(sub { my $f = any(@filters); my $k = key(); "INSERT INTO $f SELECT generate_series($k, $k + " . int(rand 20) . ')' }) x 8,
	(sub { my $f = any(@filters); "SELECT count(*) FROM t WHERE k < " . key() . " AND NOT streamfilter_seen('$f', k)" }) x 6,
	(sub { sprintf 'SELECT * FROM %s WHERE k = %d', any(@filters), key() }) x 4,
	(sub { sprintf 'INSERT INTO u SELECT %d + i FROM generate_series(1, %d) i', key(), 1 + rand 30 }) x 6,
	(sub { sprintf 'DELETE FROM %s WHERE k = %d', any(@filters), key() }) x 3,
	(sub { sprintf 'SELECT count(*) FROM t LEFT JOIN %s USING (k)', any(@filters) }) x 2,
	sub { sprintf 'TRUNCATE %s', any(@filters) },
	sub { sprintf "SELECT streamfilter_merge('%s', streamfilter_value('%s'))", any(@filters), any(@filters) },
	sub { sprintf "SELECT streamfilter_import('%s', 0, streamfilter_export('%s', 0))", any(@filters), any(@filters) },
	sub { sprintf "SELECT streamfilter_save('%s')", any(@filters) },
	sub { sprintf 'DROP FOREIGN TABLE IF EXISTS %s CASCADE', any(@filters) },
	(sub { create(any(@filters)) }) x 3,
	sub { sprintf "ALTER FOREIGN TABLE %s OPTIONS (SET memory '%dkB')", any(@filters), 16 << rand 4 },
	sub { sprintf "ALTER FOREIGN TABLE %s OPTIONS (ADD persistence '%s')", any(@filters), any('logged', 'unlogged') },
	sub { sprintf 'ALTER FOREIGN TABLE %s ALTER k TYPE %s', any(@filters), any('int', 'bigint', 'text') },
	sub { my ($from, $to) = (any(@filters), any(@filters)); "ALTER FOREIGN TABLE $from RENAME TO $to" },
	sub { sprintf 'DROP TRIGGER IF EXISTS zz ON u' },
	(sub { sprintf "CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION %s", any(
			map { ("streamfilter_discard('$_')", "streamfilter_mark('$_', 'again')") } @filters) }) x 2,
	sub { sprintf "DECLARE c CURSOR FOR SELECT k FROM t WHERE NOT streamfilter_seen('%s', k)", any(@filters) },
	(sub { 'FETCH 5 c' }) x 3,
	(sub { 'SAVEPOINT s' }) x 5, (sub { 'ROLLBACK TO s' }) x 4, sub { 'RELEASE s' },
	(sub { 'BEGIN' }) x 6, (sub { 'COMMIT' }) x 5, (sub { 'ROLLBACK' }) x 3,
	sub { 'BEGIN ISOLATION LEVEL REPEATABLE READ' }, sub { 'BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY' },
	sub { sprintf "PREPARE TRANSACTION 'p%d'", rand 15 },
	(sub { sprintf "%s PREPARED 'p%d'", any('COMMIT', 'ROLLBACK'), rand 15 }) x 3,
	sub { 'SELECT count(*) FROM streamfilter_stats, streamfilter_tuning, streamfilter_slices' }, sub { 'TABLE streamfilter_tree' },
	sub { "DO \$\$ BEGIN INSERT INTO u VALUES (1), (2); RAISE division_by_zero; EXCEPTION WHEN OTHERS THEN END \$\$" },
	sub { "DO \$\$ BEGIN FOR i IN 1..5 LOOP INSERT INTO u VALUES (i); COMMIT; END LOOP; END \$\$" },
	sub { q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1} },
	sub { q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND random() < 0.3 ORDER BY random() LIMIT 1} },
	sub { 'DISCARD ALL' }, sub { 'VACUUM _streamfilter.streamfilter_log' }, sub { 'CHECKPOINT' });

# One session after the other, so that a terminated one has a successor, until the time is up.
sub start_worker
{
	my ($number) = @_;
	my $file = $node->basedir . "/chaos$number.sql";
	open my $out, '>', $file or die "$file: $!";
	print $out any(@statements)->() . ";\n" for 1 .. 400;
	close $out;
	my $worker = { messages => '', rows => '' };
	$worker->{handle} = IPC::Run::start([ 'psql', '-X', '-q', '-v', 'VERBOSITY=verbose', '-v', 'ON_ERROR_STOP=0', '-f', $file,
			'-o', '/dev/null', '-d', $node->connstr('postgres') ], '<', \'', '>', \$worker->{rows}, '2>', \$worker->{messages});
	return $worker;
}

my $until = time + $seconds;
my ($started, $messages) = (0, '');
my @workers = map { start_worker(++$started) } 1 .. 5;
while (time < $until)
{
	for my $worker (@workers)
	{
		$worker->{handle}->pump_nb if $worker->{handle}->pumpable;
		next if $worker->{handle}->pumpable;
		$worker->{handle}->finish;
		$messages .= $worker->{messages};
		$worker = start_worker(++$started);
	}
	select undef, undef, undef, 0.02;
}
for my $worker (@workers)
{
	$worker->{handle}->finish;
	$messages .= $worker->{messages};
}

my $log = slurp_file($node->logfile);
# A trigger that is dropped, by itself or with its filter, beside CREATE OR REPLACE TRIGGER: PostgreSQL reads the trigger's row
# before it locks the table.
$log =~ s/^\S+ \S+ \S+ \S+ \S+ ERROR:  XX000: tuple concurrently updated\n.*\n(?=.*STATEMENT:  DROP (?:TRIGGER|FOREIGN TABLE .* CASCADE))//mg;
my @internal = grep { /(?:ERROR|FATAL|PANIC|WARNING|LOG):\s+XX/ } split /\n/, $log;
is(scalar @internal, 0, sprintf 'no internal error in %d sessions, %d errors', $started, scalar(() = $messages =~ /ERROR:/g))
  or diag(join "\n", @internal[ 0 .. ($#internal < 9 ? $#internal : 9) ]);
unlike($log, qr/terminated by signal|PANIC|TRAP:/, 'no crash') or diag($log =~ /(.*(?:terminated by signal|PANIC|TRAP:).*)/);

# ---- afterwards -----------------------------------------------------------------------------------------------------

sql("ROLLBACK PREPARED '$_'") for split /\n/, sql('SELECT gid FROM pg_prepared_xacts');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'});
is(sql('SELECT coalesce(sum(in_flight), 0), count(*) - count(kind) FROM streamfilter_stats'), '0|0',
	'no key is in flight, every filter can be read');
my @left = split /\n/, sql('SELECT filter FROM streamfilter_stats');
for my $filter (@left)
{
	my ($status, $out, $error) = $node->psql('postgres', "TRUNCATE $filter; INSERT INTO $filter VALUES ('1'), ('1'), ('2'); SELECT count(*) FROM $filter WHERE k = '1'");
	is($out, '1', "$filter works") or diag($error);
}
$node->safe_psql('postgres', join '', map { "DROP FOREIGN TABLE $_ CASCADE;" } @left) if @left;
is(sql(q{CREATE FOREIGN TABLE whole (k int) SERVER streamfilter OPTIONS (kind 'lru', memory '15MB');
INSERT INTO whole VALUES (1); SELECT count(*) FROM whole WHERE k = 1}), '1', 'all memory is free again');
$node->restart;
is(sql('SELECT count(*) FROM whole WHERE k = 1'), '1', 'a restart finds what was there');

done();
