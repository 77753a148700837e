# Memory beyond streamfilter.shared_memory: taken and given back while the server runs, used by sessions that were there
# before, over crashes and restarts, and where the system has none.
use Sf;
use IPC::Run qw(run);

my $node = start_node('dynamic', q{
streamfilter.shared_memory = '2MB'
streamfilter.dynamic_memory = '40MB'
max_prepared_transactions = 5
logging_collector = on
restart_after_crash = on
}, allows_streaming => 1);
sql(q{
	CREATE FUNCTION known(filter regclass, n int) RETURNS bigint LANGUAGE sql AS
		'SELECT count(*) FROM generate_series(1, n) i WHERE streamfilter_test(filter, i)'});

sub dynamic { return sql('SELECT dynamic FROM streamfilter_memory()'); }

# What the file without a name has of pages, in kB.
sub resident
{
	my ($pid) = (@_, $node->{_pid});
	for my $fd (glob "/proc/$pid/fd/*")
	{
		return int((stat $fd)[12] / 2) if (readlink($fd) // '') =~ m{/dev/shm/streamfilter|/memfd:streamfilter};
	}
	return;
}

sub number_in { my ($path, $name) = @_; return (eval { slurp_file($path) } // '') =~ /^$name(\d+)/m ? $1 : undef; }
sub gives_pages_late { return (number_in('/proc/sys/vm/overcommit_memory', '') // 2) != 2 }

# The process that collects the log outlives a crash, and what it has mapped before with it.
sub find_logger
{
	for my $pid (map { m{(\d+)$} } glob '/proc/[0-9]*')
	{
		my ($name, $status) = map { eval { slurp_file("/proc/$pid/$_") } // '' } qw(cmdline status);
		return $pid if $name =~ /logger/ && $status =~ /^PPid:\s+$node->{_pid}$/m;
	}
	return;
}

# --- Taken when a filter needs it --------------------------------------------------------------------------------------

my $before = open_session('SELECT 1');
sql(q{CREATE FOREIGN TABLE small (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', k '7');
	CREATE FOREIGN TABLE large (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '16MB', k '7')});
is(resident(), 0, 'nothing is taken before a filter is used') if -r "/proc/$node->{_pid}/fd";
sql(q{INSERT INTO small SELECT generate_series(1, 1000); INSERT INTO large VALUES (1)});
SKIP: {
	skip 'pages are given at once here', 1 unless defined resident() && gives_pages_late();
	cmp_ok(resident(), '<', 1024, 'a filter of 16 MB with one row has taken a few pages');
}
sql(q{INSERT INTO large SELECT generate_series(2, 1000)});
is(sql(q{SELECT string_agg(filter || ' ' || (dynamic_memory > 0), ' ' ORDER BY filter::text) FROM streamfilter_stats}),
	'large true small false', 'the small filter fits beside, the large one does not');
cmp_ok(dynamic(), '>=', 16 << 20, 'dynamic memory is counted');
is($before->query_safe(q{SELECT known('large', 1000)}), 1000, 'a session that was there before sees the keys');
$before->query_safe(q{INSERT INTO large SELECT generate_series(1001, 2000)});
is(sql(q{SELECT known('large', 2000)}), 2000, 'and adds some');
SKIP: {
	skip 'no /proc', 2 unless defined resident();
	cmp_ok(resident(), '>=', 1 << 10, 'pages come with the rows');
	cmp_ok(resident(), '<', 17 << 10, 'and no more than needed');
}

# --- Too much, and the limit raised without a restart -------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE third (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '32MB', k '7')});
my (undef, undef, $refused) = $node->psql('postgres', q{\set VERBOSITY verbose
	INSERT INTO third VALUES (1)});
like($refused, qr/53200: not enough shared memory for filter "third"/, 'a filter beyond both is refused');
like($refused, qr/raise streamfilter.dynamic_memory \(now 40960kB\) and reload/, 'the hint needs no restart');
$node->append_conf('postgresql.conf', q{streamfilter.dynamic_memory = '64MB'});
$node->reload;
$node->poll_query_until('postgres', q{SHOW streamfilter.dynamic_memory}, '64MB');
is(sql(q{INSERT INTO third VALUES (1); SELECT known('third', 1)}), 1, 'after a reload there is room');
$node->append_conf('postgresql.conf', q{streamfilter.dynamic_memory = 0});
$node->reload;
$node->poll_query_until('postgres', q{SHOW streamfilter.dynamic_memory}, '0');
is(sql(q{SELECT known('third', 1), free < 2 << 20, total > 48 << 20 FROM streamfilter_memory()}), '1|t|t',
	'a limit below what is in use keeps the filters, and lets no more in');
$node->append_conf('postgresql.conf', q{streamfilter.dynamic_memory = '64MB'});
$node->reload;
$node->poll_query_until('postgres', q{SHOW streamfilter.dynamic_memory}, '64MB');

# --- Given back --------------------------------------------------------------------------------------------------------

sql(q{BEGIN; DROP FOREIGN TABLE third; ROLLBACK});
is(sql(q{SELECT known('third', 1)}), 1, 'a DROP that rolls back keeps it');
sql(q{DROP FOREIGN TABLE third});
SKIP: {
	skip 'no /proc', 1 unless defined resident();
	cmp_ok(resident(), '<', 17 << 10, 'DROP gives the memory back');
}
cmp_ok(dynamic(), '<', 17 << 20, 'and the room');
sql(q{CREATE FOREIGN TABLE fourth (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '32MB', k '7')});
is(sql(q{SELECT known('fourth', 1000)}), 0, 'the next filter there begins empty');
sql(q{INSERT INTO fourth SELECT generate_series(1, 100); DROP FOREIGN TABLE fourth});

for my $i (1 .. 20)
{
	sql(qq{BEGIN; CREATE FOREIGN TABLE undone (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '32MB', k '7');
		INSERT INTO undone VALUES ($i); ROLLBACK});
}
cmp_ok(dynamic(), '<', 17 << 20, 'filters of transactions that roll back leave nothing');
sql(q{TRUNCATE large; INSERT INTO large SELECT generate_series(1, 500)});
is(sql(q{SELECT known('large', 500)}), 500, 'TRUNCATE');
sql(q{ALTER FOREIGN TABLE small OPTIONS (SET memory '4MB')});
is(sql(q{SELECT known('small', 1000)}) . sql(q{SELECT dynamic_memory > 0 FROM streamfilter_stats WHERE filter = 'small'::regclass}),
	'1000t', 'a filter that grows moves into it');
sql(q{ALTER FOREIGN TABLE small OPTIONS (SET memory '1MB')});
is(sql(q{SELECT known('small', 1000)}) . sql(q{SELECT dynamic_memory FROM streamfilter_stats WHERE filter = 'small'::regclass}),
	'10000', 'one that shrinks moves out');

# --- Large filters: what they leave goes back behind the statement ---------------------------------------------------------

$node->append_conf('postgresql.conf', q{streamfilter.dynamic_memory = '400MB'});
$node->reload;
$node->poll_query_until('postgres', q{SHOW streamfilter.dynamic_memory}, '400MB');
for my $persistence (qw(logged unlogged))
{
	sql(qq{CREATE FOREIGN TABLE wide (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '300MB', k '1', persistence '$persistence');
		INSERT INTO wide SELECT generate_series(1, 100000)});
	my $filled = resident();
	my $other = open_session(q{SELECT known('wide', 1000)});
	sql(q{BEGIN; TRUNCATE wide; ROLLBACK});
	is($other->query_safe(q{SELECT known('wide', 1000)}), 1000, "$persistence: TRUNCATE that rolls back");
	sql(q{BEGIN; TRUNCATE wide; INSERT INTO wide VALUES (1), (7); COMMIT});
	is(join('|', sql(q{SELECT known('wide', 1000), dynamic_memory = (300 << 20) + 448 FROM streamfilter_stats WHERE filter = 'wide'::regclass}),
		$other->query_safe(q{SELECT known('wide', 1000)})), '2|t|2', 'a filter that is emptied has what came after');
	SKIP: {
		skip 'no /proc', 1 unless defined $filled && gives_pages_late();
		for (1 .. 600) { last if resident() < $filled - (32 << 10); select(undef, undef, undef, .1) }
		cmp_ok(resident(), '<', $filled - (32 << 10), 'its pages go back to the system');
	}
	sql(q{INSERT INTO wide SELECT generate_series(1, 50000)});
	$other->quit;
	is(sql(q{SELECT known('wide', 50000)}), 50000, 'and it is filled again');
	# There is room for one: the next waits for what the former leaves.
	sql(q{DROP FOREIGN TABLE wide});
}
sql(q{CREATE FOREIGN TABLE wide (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '300MB', k '1')});
for my $workers (8, 0)
{
	$node->append_conf('postgresql.conf', qq{max_worker_processes = $workers});
	$node->restart;
	sql(qq{TRUNCATE wide; INSERT INTO wide VALUES ($workers)});
	is(sql(q{SELECT known('wide', 100)}), $workers > 0 ? 1 : 0, "with $workers workers");
}
$node->append_conf('postgresql.conf', q{max_worker_processes = 8});
$before->quit;
$node->restart;
$before = $node->background_psql('postgres');
sql(q{DROP FOREIGN TABLE wide});
wait_for(q{SELECT dynamic < 17 << 20 FROM streamfilter_memory()});

# --- Prepared transactions, crashes, restarts, a standby ---------------------------------------------------------------

sql(q{BEGIN; INSERT INTO large VALUES (-1); PREPARE TRANSACTION 'one'});
$before->query_safe(q{COMMIT PREPARED 'one'});
is(sql(q{SELECT streamfilter_test('large', -1)}), 't', 'COMMIT PREPARED by a session that never used the filter');

my $standby = start_standby('dynamic_standby');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(sql(q{SELECT known('large', 500)}, $standby), 500, 'on a standby');
$standby->stop;

my $logger = find_logger();
my $pid = $before->query_safe('SELECT pg_backend_pid()');
expect_crash($node);
kill 'KILL', $pid;
# psql that is refused may be gone before it is told what to ask.
for (1 .. 20) { last if eval { $node->poll_query_until('postgres', 'SELECT true') } }
eval { $before->quit };
is(sql(q{SELECT known('large', 500)}), 500, 'after a session was killed');
SKIP: {
	skip 'no /proc', 2 unless defined resident();
	cmp_ok(resident(), '<', 17 << 10, 'what was before the crash is given back');
	cmp_ok(resident($logger), '==', 0, 'also by the process that outlives the crash');
}
sql(q{CREATE FOREIGN TABLE unsaved (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8MB', k '7', persistence 'unlogged');
	INSERT INTO unsaved SELECT generate_series(1, 300)});
$node->restart;
is(sql(q{SELECT known('large', 500), known('unsaved', 300)}), '500|300', 'after a restart, logged and unlogged');
is(sql(q{SELECT count(*) FROM streamfilter_stats WHERE dynamic_memory > 0}), 2, 'and both in dynamic memory');
is(scalar(() = glob '/dev/shm/streamfilter*'), 0, 'no file is left in /dev/shm');

# --- The file of unlogged filters, read before there are processes ---------------------------------------------------------

my $unlogged = $node->data_dir . '/streamfilter.unlogged';
my %read;    # how much of each file of the log lies before what is looked at
sub log_files { return ($node->logfile, glob $node->data_dir . '/log/*') }
sub skip_log { %read = map { $_ => -s $_ } log_files(); return }
sub log_since { return join '', map { slurp_file($_, $read{$_} // 0) } log_files() }
sub files { return join ' ', sort map { /unlogged(.*)/ } glob "$unlogged*" }
sub damage
{
	open my $file, '+<:raw', $unlogged or die "$unlogged: $!";
	seek $file, 4 << 20, 0;
	print $file "\xff" x 8;
	close $file or die $!;
	return;
}

is(files(), '', 'no file is left once it is read');
my $used = dynamic();
$node->stop;
damage();
skip_log();
$node->start;
is(sql(q{SELECT known('large', 500), known('unsaved', 300)}), '500|0', 'the server starts where a filter in the file is damaged');
like(log_since(), qr/file "streamfilter.unlogged" is damaged or of another past/, 'and says so');
is(files(), '.aside', 'the file is set aside');
# A filter of the file has no room for other slices.
cmp_ok(abs(dynamic() - $used), '<', 65536, 'what its filter had taken there is given back');
sql(q{INSERT INTO unsaved SELECT generate_series(1, 300)});
$node->stop;
my $damaged = slurp_file("$unlogged.aside");
rename $unlogged, "$unlogged.reading" or die $!;
skip_log();
$node->start;
is(sql(q{SELECT known('large', 500), known('unsaved', 300)}), '500|0', 'a file that an earlier start died of is not read again');
like(log_since(), qr/file "streamfilter.unlogged.reading" was not read to its end by an earlier start/, 'and the log says so');
is(files(), '.aside', 'it is set aside');
ok(slurp_file("$unlogged.aside") ne $damaged, 'in place of the former');
sql(q{INSERT INTO unsaved SELECT generate_series(1, 300)});
$node->restart;
is(sql(q{SELECT known('unsaved', 300)}) . files(), '300.aside', 'and stays when the next file is read');

# --- /dev/shm too small, and the machine ---------------------------------------------------------------------------------

# In user and mount namespaces of its own, where the system allows them: root there may mount, and a second user
# namespace makes him an ordinary user again.
$node->stop;
sub in_small_shm
{
	return ('unshare', '--user', '--map-root-user', '--mount', 'sh', '-c',
		'mount -t tmpfs -o size=4m tmpfs /dev/shm && exec unshare --user --map-user=1000 "$@"', 'sh');
}
SKIP: {
	skip 'no namespaces for users here', 1 unless run([ in_small_shm(), 'true' ], '&>', \my $said);
	# Its own dynamic memory is elsewhere.
	$node->append_conf('postgresql.conf', q{dynamic_shared_memory_type = mmap});
	run([ in_small_shm(), 'pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, 'start' ], '&>', \$said)
		or die "could not start with a small /dev/shm: $said";
	$node->_update_pid(1);
	is(sql(q{SELECT known('large', 500), known('unsaved', 300)}), '500|300', 'a small /dev/shm is enough');
	$node->stop;
	$node->append_conf('postgresql.conf', q{dynamic_shared_memory_type = posix});
}

# With less memory than the filter needs. The file is read once: a filter without room is empty.
sub with_memory
{
	my ($meminfo) = @_;
	return ('unshare', '--user', '--map-root-user', '--mount', 'sh', '-c',
		"mount --bind '$meminfo' /proc/meminfo && exec unshare --user --map-user=1000 \"\$@\"", 'sh');
}
SKIP: {
	my $meminfo = $node->basedir . '/meminfo';
	append_to_file($meminfo, "MemAvailable:       4096 kB\nSwapFree:       0 kB\n");
	skip 'what the system has left is not asked, or cannot be changed', 3
		unless gives_pages_late() && run([ with_memory($meminfo), 'true' ], '&>', \my $said);
	skip_log();
	run([ with_memory($meminfo), 'pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, 'start' ], '&>', \$said)
		or die "could not start with less memory: $said";
	$node->_update_pid(1);
	like(log_since(), qr/not enough room for an unlogged filter of \d+ bytes/, 'less memory than a filter had');
	is(files(), '.aside .waiting', 'its bytes wait');
	like(($node->psql('postgres', q{SELECT known('unsaved', 300)}))[2], qr/could not get dynamic shared memory for filter "unsaved"/,
		'its use says what it needs');
	$node->stop;
}
$node->start;
SKIP: {
	my ($total, $available, $swap) = map { number_in('/proc/meminfo', "$_:\\s+") // 0 } qw(MemTotal MemAvailable SwapFree);
	my $most = $total - (64 << 10);
	skip 'what the system has left is not known', 3
		if !gives_pages_late() || defined number_in('/sys/fs/cgroup/memory.max', '') || $available + $swap + (16 << 10) > $most
		|| $most < 1 << 20;
	$node->append_conf('postgresql.conf', qq{streamfilter.dynamic_memory = '${total}kB'});
	$node->reload;
	$node->poll_query_until('postgres', q{SELECT setting::bigint > 100000 FROM pg_settings WHERE name = 'streamfilter.dynamic_memory'});
	my $taken = dynamic();
	my (undef, undef, $full) = $node->psql('postgres', qq{\\set VERBOSITY verbose
		CREATE FOREIGN TABLE vast (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '${most}kB', k '7', slices '64');
		INSERT INTO vast VALUES (1)});
	like($full, qr/53200: could not get dynamic shared memory for filter "vast": Cannot allocate memory/, 'more than the machine has left');
	like($full, qr/It needs \d+ bytes; the system has \d+ left/, 'and the error says how much that is');
	is(dynamic(), $taken, 'nothing of it stays taken');
}
done_testing();
