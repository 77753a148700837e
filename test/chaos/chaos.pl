# Producers on two servers share filters on four others, which are lost in every way that we know of; in runs of two minutes and
# more, while filters are altered, and emptied in vain. See test/chaos.sh.
use strict;
use warnings;
use ChaosModel;
use ChaosWorker;
use HostileProxy;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{STREAMFILTER_SECONDS} // 60;
my $seed    = $ENV{STREAMFILTER_SEED} // 1;
my $workers = 8;
use constant TIMEOUT => 2;    # seconds
srand $seed;
note("chaos: seed $seed, $seconds s");

# ---- servers: origins p and q; slices on a (behind the proxy), b, c with its standby, and d -------------------

my $settings = q{
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '96MB'
streamfilter.max_filters = 500
shared_buffers = 16MB
max_connections = 40
autovacuum = off
fsync = off
restart_after_crash = on
log_min_messages = warning
log_statement = none
};

# Administration takes its time.
my $administers = $seconds >= 120;

sub start_server
{
	my ($name) = @_;
	my $server = PostgreSQL::Test::Cluster->new($name);
	$server->init(allows_streaming => 1);
	$server->append_conf('postgresql.conf', $settings);
	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION streamfilter');
	return $server;
}

my %server = map { $_ => start_server($_) } qw(p q a b c d);
$server{c}->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($server{c}, 'base', has_streaming => 1);
$standby->start;
$server{c}->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
$server{c}->reload;

my $proxy = HostileProxy->start($server{a}->host . '/.s.PGSQL.' . $server{a}->port);
my %where = (
	a => sprintf("host '127.0.0.1', port '%d', sslmode 'disable'", $proxy->port),
	b => sprintf("host '%s', port '%d'", $server{b}->host, $server{b}->port),
	d => sprintf("host '%s', port '%d'", $server{d}->host, $server{d}->port),
	c => sprintf("host '%s,%s', port '%d,%d', target_session_attrs 'read-write'",
		$server{c}->host, $standby->host, $server{c}->port, $standby->port));

# A million bits for each key: no false positive will be found among lost rows.
my $bits = "kind 'bloom', memory '6MB', k '6'";
my $tags = "kind 'vqf', memory '6MB', fpr '1e-9'";
my %filter = (
	horizontal => [ "servers 'a, b, c', $bits, slices '6', seed '1'", qw(a b c) ],
	vertical   => [ "servers 'a, b, c', $bits, slicing 'vertical', slices '6', lost_slice 'votes:2', seed '2'", qw(a b c) ],
	diced      => [ "servers 'b, c, d', $bits, slicing 'diced', slices '6,3', seed '3'", qw(b c d) ],
	one        => [ "$tags, seed '4'", qw(c) ],
	# What a lost server leaves undecided fails: that one could not be reached excuses no repeat.
	strict     => [ "servers 'a, b, d', $tags, slices '6', lost_slice 'error', seed '6'" ],
	strict_vertical => [ "servers 'a, b, d', $bits, slicing 'vertical', slices '6', lost_slice 'error', seed '7'" ],
	tree       => [ "$bits, parent 'root'", qw(a d) ]);
my @tables = sort keys %filter;
my @spread = (qw(horizontal vertical diced root));

for my $origin (@server{qw(p q)})
{
	$origin->safe_psql('postgres', join ";\n",
		(map { "CREATE SERVER $_ FOREIGN DATA WRAPPER streamfilter
		          OPTIONS ($where{$_}, dbname 'postgres', connect_timeout '${\ TIMEOUT}s', timeout '${\ TIMEOUT}s', idle_timeout '5s')",
			"CREATE USER MAPPING FOR CURRENT_USER SERVER $_" } qw(a b c d)),
		"CREATE FOREIGN TABLE root (k bigint) SERVER streamfilter
		   OPTIONS (servers 'a, d', slices '4', $bits, seed '5')",
		map { sprintf q{CREATE FOREIGN TABLE %s (k bigint) SERVER %s OPTIONS (%s);
			CREATE TABLE rows_%1$s (k bigint, worker int, number int);
			CREATE TRIGGER zz BEFORE INSERT ON rows_%1$s FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('%1$s')},
			$_, $_ eq 'one' ? 'c' : 'streamfilter', $filter{$_}[0] } @tables);
}

# ---- faults -----------------------------------------------------------------------------------------------

my $model = ChaosModel->new(servers => { map { my ($options, @on) = @{ $filter{$_} }; ($_ => \@on) } @tables });
my $failed_over;

sub where_c { return $failed_over ? $standby : $server{c}; }
sub holder { my ($name) = @_; return $name eq 'c' ? where_c() : $server{$name}; }
sub any { return $_[ rand @_ ]; }

sub main_pid
{
	my ($server) = @_;
	my ($pid) = split /\n/, slurp_file($server->data_dir . '/postmaster.pid');
	return $pid;
}

sub processes
{
	my ($server) = @_;
	my $main = main_pid($server);
	return ($main, split /\s+/, `ps -o pid= --ppid $main` =~ s/^\s+//r);
}

# Does the server answer? Asked by hand, for all ways to ask die if not.
sub answers { my ($server) = @_; return system(sprintf q{psql -XAtq -d '%s' -c 'SELECT 1' >/dev/null 2>&1}, $server->connstr('postgres')) == 0; }

sub wait_until_up
{
	my ($server) = @_;
	for (1 .. 600) { return if answers($server); sleep 0.05; }
	die 'server ' . $server->name . ' does not come back';
}

# Runs what makes a server unreachable, until it is back.
sub lose
{
	my ($name, $how) = @_;
	my $from = time;
	$how->(holder($name));
	wait_until_up(holder($name));
	$model->add_window($name, $from, time);
	return;
}

sub backends_of { my ($server, $condition) = @_; return split /\n/, $server->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE $condition"); }
my $ours = q{application_name = 'streamfilter'};
my $pooled = q{application_name = 'producer'};

sub start_again
{
	my ($server) = @_;
	# After kill -9 its children need a moment to go, and the shared memory with them.
	for (1 .. 100) { last if system('pg_ctl', '-s', '-w', '-D', $server->data_dir, '-l', $server->logfile, '-o', '--cluster-name=' . $server->name, 'start') == 0; sleep 0.1; }
	$server->_update_pid(1);
	return;
}

# Tries to get in for two seconds.
sub in_background
{
	my ($server, $sql) = @_;
	my $pid = fork // die $!;
	return $pid if $pid;
	my $deadline = time + 2;
	while (time < $deadline)
	{
		last if system("psql -Xq -d '" . $server->connstr('postgres') . "' -c \"$sql\" >/dev/null 2>&1") == 0;
		sleep 0.1;
	}
	require POSIX;
	POSIX::_exit(0);
}

sub freeze_one
{
	my ($server, $how_long) = @_;
	my ($pid) = backends_of($server, "$ours ORDER BY random() LIMIT 1");
	return unless $pid;
	kill STOP => $pid;
	sleep $how_long;
	kill CONT => $pid;
	return;
}

my %faults = (
	terminate => sub { my $s = holder(any(qw(a b c d))); $s->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE $ours"); },
	terminate_one => sub { my $s = holder(any(qw(a b c d))); $s->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE $ours ORDER BY random() LIMIT 1") for 1 .. 10; },
	terminate_producers => sub { $server{ any(qw(p q)) }->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE $pooled AND random() < 0.5"); },
	cancel => sub { my $s = $server{ any(qw(p q)) }; for (1 .. 10) { $s->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE $pooled"); sleep 0.05; } },
	kill_backend => sub { lose(any(qw(a b c d)), sub { my @pids = backends_of($_[0], $ours); kill KILL => $pids[0] if @pids; sleep 0.2; }); },
	kill_server => sub { lose(any(qw(a b c d)), sub { my ($s) = @_; kill KILL => processes($s); sleep rand 2; start_again($s); }); },
	kill_producer => sub { my $s = $server{q}; kill KILL => processes($s); sleep 0.5; start_again($s); wait_until_up($s); },
	stop => sub { lose(any(qw(a b c d)), sub { my @all = processes($_[0]); kill STOP => @all; sleep 0.5 + rand 4; kill CONT => @all; }); },
	restart => sub { lose(any(qw(a b c d)), sub { $_[0]->restart; }); },
	freeze_producer => sub { my @all = backends_of($server{ any(qw(p q)) }, $pooled); kill STOP => @all; sleep 0.5 + rand 2; kill CONT => @all; },
	# One connection of many says nothing: for less than an answer may take, or for longer, which is a loss.
	freeze_one => sub { freeze_one(holder(any(qw(a b c d))), 1); },
	hang_one => sub { lose(any(qw(a b c d)), sub { freeze_one($_[0], TIMEOUT + 0.5); }); },
	# Guests take every place, also those of sessions that are ended; then nobody finds room for two seconds.
	fill_up => sub
	{
		my $s = holder(any(qw(a b c d)));
		my @pids = map { in_background($s, 'SELECT pg_sleep(2)') } 1 .. 45;
		sleep 0.5;
		push @pids, in_background($s, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE $ours");
		waitpid $_, 0 for @pids;
	},
	hang => sub { lose('a', sub { $proxy->set('stall'); sleep 0.5 + rand 4; $proxy->set('pass'); }); },
	half_open => sub { lose('a', sub { $proxy->set('stall'); sleep TIMEOUT + 0.5 + rand 1; $proxy->hang_up; $proxy->set('pass'); }); },
	hang_up => sub { $proxy->hang_up; },
	cut => sub { for (1 .. 10) { $proxy->set('cut_once', 1 + int rand 60); sleep 0.1; } $proxy->set('pass'); },
	fail_over => sub
	{
		return if $failed_over;
		my $from = time;
		$server{c}->stop('immediate');
		$standby->promote;
		$failed_over = 1;
		wait_until_up($standby);
		$model->add_window('c', $from, time);
	});

# ---- administration ---------------------------------------------------------------------------------------

# What psql says. It is said again, as an administrator would, until it is done, has failed too often, or the run ends.
our $stops_at;

sub insist
{
	my ($origin, $sql, $out) = @_;
	my $said;
	for (1 .. 60)
	{
		$said = `psql -XAtq -v ON_ERROR_STOP=1 -d '${\ $origin->connstr('postgres')}' -c "$sql" 2>&1`;
		# What was done before the session ended is done.
		return $said if $? == 0 || $said =~ /ERROR:.*(?:is not on a server|provided more than once)/;
		print $out $said =~ /((?:ERROR|FATAL):.*(?:\nDETAIL:.*)?)/ ? $1 =~ s/\n/ /r . "\n" : "connection ended\n";
		if (time > $stops_at)
		{
			print $out "unfinished\n";
			return;
		}
		sleep 0.5;
	}
	print $out "given up: $sql\n";
	return;
}

sub alter_everywhere
{
	my ($filter, $change, $out, $what) = @_;
	my $done = grep { defined insist($_, "ALTER FOREIGN TABLE $filter OPTIONS ($change)", $out) } @server{qw(p q)};
	print $out "$what\n" if $done == 2;
	return;
}

# What changes nothing for a row: what is said of a filter that holds too much, and what is rolled back, to a savepoint or as a
# whole. Where a key has places on several servers the former has one value.
my %has_overfull;

sub alter
{
	my ($filter, $out) = @_;
	if ($filter =~ /horizontal|root/ && rand() < 0.4)
	{
		my $verb = $has_overfull{$filter}++ ? 'SET' : 'ADD';
		return alter_everywhere($filter, "$verb overfull '" . any(qw(pass discard)) . q{'}, $out, 'altered');
	}
	my $origin = $server{ any(qw(p q)) };
	my %change = (
		'altered in vain' => "BEGIN; ALTER FOREIGN TABLE $filter OPTIONS (ADD persistence 'unlogged'); TRUNCATE $filter; ROLLBACK",
		'altered in part' => "BEGIN; SAVEPOINT s; ALTER FOREIGN TABLE $filter OPTIONS (ADD persistence 'unlogged'); ROLLBACK TO s; COMMIT",
		'emptied in vain' => "BEGIN; TRUNCATE $filter; ROLLBACK");
	my $what = any(sort keys %change);
	my $said = insist($origin, $change{$what}, $out);
	print $out "$what\n" if defined $said && $said !~ /ERROR/;
	return;
}

sub administer
{
	my ($end, $log) = @_;
	open my $out, '>', $log or die "$log: $!";
	$out->autoflush(1);
	$stops_at = $end;
	while (time < $end)
	{
		alter(any(@spread), $out);
		sleep 1 + rand 2;
	}
	close $out;
	return;
}

# ---- the run ------------------------------------------------------------------------------------------------

my $start = time;
my $until = $start + $seconds;
my @logs;
my %pids;
for my $id (1 .. $workers)
{
	push @logs, "$PostgreSQL::Test::Utils::tmp_check/worker$id.log";
	my $pid = fork // die $!;
	if ($pid == 0)
	{
		my $worker = ChaosWorker->new(id => $id, connstr => $server{ $id % 2 ? 'p' : 'q' }->connstr('postgres'), log => $logs[-1],
			start => $start, until => $until, tables => \@tables, seed => $seed * 100 + $id);
		eval { $worker->run; $worker->drain; 1 } or print STDERR "# worker $id: $@";
		require POSIX;
		POSIX::_exit(0);
	}
	$pids{$pid} = 1;
}

my $administration = "$PostgreSQL::Test::Utils::tmp_check/administration.log";
my $administrator = fork // die $!;
if ($administrator == 0)
{
	srand $seed * 100 + 1;
	append_to_file($administration, '');
	eval { administer($until - 5, $administration) if $administers; 1 } or print STDERR "# administrator: $@";
	require POSIX;
	POSIX::_exit(0);
}
$pids{$administrator} = 1;

# First, quickly one after the other, what is no loss of a server: no row may be extra for it. Then all of them, with
# time between for the servers to be in use again.
my @lossless = qw(terminate terminate_one terminate_producers cancel kill_producer freeze_producer freeze_one fill_up hang_up cut);
my %done;

sub run_faults
{
	my ($end, $gap, @names) = @_;
	my @plan;
	while (time < $end)
	{
		@plan = map { $_->[1] } sort { $a->[0] <=> $b->[0] } map { [ rand, $_ ] } @names if !@plan;
		my $fault = shift @plan;
		note(sprintf '%6.2f %s', time - $start, $fault);
		$faults{$fault}->();
		++$done{$fault};
		sleep $gap->();
	}
	return;
}

sleep 2;
run_faults($start + $seconds / 3, sub { 0.2 + rand 0.6 }, sort @lossless);
run_faults($until - 5, sub { ChaosModel::GRACE + 0.5 + rand 1.5 }, sort keys %faults);
while (%pids) { my $pid = wait; last if $pid < 0; delete $pids{$pid}; }
# ---- the verdict --------------------------------------------------------------------------------------------

$model->read_log($_, $logs[ $_ - 1 ]) for 1 .. $workers;
note(sprintf 'faults: %s', join ', ', map { "$_ $done{$_}" } sort keys %done);
my %administered;
++$administered{ s/"[^"]*"|'[^']*'|[\d.]+/N/gr } for split /\n/, slurp_file($administration);
note("administration: $_ x $administered{$_}") for sort keys %administered;
cmp_ok($administered{altered} // 0, '>', 0, 'filters were altered') if $administers;
ok(!(grep { /^(?:given up|not told)/ } keys %administered), 'nothing was given up');
$proxy->stop;
note(sprintf 'transactions: %s; the slowest took %.1f s', join(', ', map { "$model->{count}{$_} $_" } sort keys %{ $model->{count} }), $model->{slowest});
note("errors: $model->{errors}{$_} x $_") for sort { $model->{errors}{$b} <=> $model->{errors}{$a} } keys %{ $model->{errors} };
for my $table (@tables)
{
	my @rows = map { split /\n/, $_->safe_psql('postgres', "SELECT k || ' ' || worker || ' ' || number FROM rows_$table") } @server{qw(p q)};
	my ($figure, @wrong) = $model->judge($table, @rows);
	note(sprintf '%-10s %d keys accepted, %d rows, %d lost, %d extra; %d while a server could not be reached', $table,
		@$figure{qw(accepted rows lost extra excused)});
	is(join("\n", @wrong[ 0 .. ($#wrong < 9 ? $#wrong : 9) ]), '', "$table: no row is lost, or there again") or diag(scalar @wrong);
}
cmp_ok($model->{slowest}, '<', 15, 'no transaction takes long');
for my $name (qw(a b c d))
{
	is(holder($name)->safe_psql('postgres', 'SELECT coalesce(sum(in_flight), 0) FROM streamfilter_stats'), '0', "no key is in flight on $name");
}
for my $log (map { $_->logfile } values %server, $standby)
{
	unlike(slurp_file($log), qr/PANIC|TRAP:|signal 11|signal 6|XX000/, "nothing broken in $log");
}
done_testing();
