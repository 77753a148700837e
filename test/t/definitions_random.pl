# Random changes of definitions against an exact model: ALTER of size, persistence and seed, RENAME, TRUNCATE, DROP and CREATE, save,
# forget_saved, resize, savepoints and prepared transactions, a tree, and a second session that adds keys, with restarts, crashes, sessions
# that are killed in the middle of a commit, promotions, and recovery to a point in time in between. A filter knows exactly the keys
# of the model, or it is empty where it has said so.
# STREAMFILTER_SECONDS: how long (60; in suite faults, 240), STREAMFILTER_SEED: the random numbers ("day": others each day); without,
# always the same; STREAMFILTER_RESTARTS: how many of a thousand transactions a restart follows (30).
# flavours: quick faults
use Sf;
use Time::HiRes qw(time);

my $seconds = $ENV{STREAMFILTER_SECONDS} // ($ENV{STREAMFILTER_FAULTS} ? 240 : 60);
my $seed = $ENV{STREAMFILTER_SEED} // 59;
$seed = int(time / 86400) if $seed eq 'day';
srand($seed);
note("seed $seed, $seconds s");
my $settings = q{
	streamfilter.dynamic_memory = '64MB'
	max_prepared_transactions = 5
	fsync = off
	wal_level = replica
	max_wal_senders = 5
	max_connections = 30
	restart_after_crash = on
	log_statement = none
	log_min_messages = warning};
my $node = start_node('first', $settings, allows_streaming => 1);
on($node);

my $keys = 200;
my @sizes = qw(64kB 128kB 192kB 256kB);
my %kinds = (
	bloom => q{kind 'bloom', keys '2000', fpr '1e-7'},
	lru   => q{kind 'lru'},
	sqf   => q{kind 'sqf', fingerprint 'integer', keys '2000'});

# Of each filter: name, kind, persistence, memory, seed (0: none is given), keys; unsaved: a restart may empty it,
# and of an unlogged filter nobody need say so, until a change; lost: it must say
# that it is empty; crashed: it may say so; unsure: it is empty or what is here.
my (%now, %prepared, $session, $other, @script, %count);
my %tree;    # the keys of both filters of the tree
my ($number, $failed) = (0, 0);

sub one_of { return $_[ int rand @_ ]; }
sub chance { return rand() < $_[0]; }
sub copy { my ($of) = @_; return { map { $_ => { %{ $of->{$_} }, keys => { %{ $of->{$_}{keys} } } } } keys %$of }; }

sub numbers { my ($it) = @_; return join ' ', sort { $a <=> $b } keys %{ $it->{keys} }; }

sub problem
{
	my ($what) = @_;
	fail($what);
	diag("seed $seed, after $count{change} changes; the last:\n", join "\n", @script > 60 ? @script[ -60 .. -1 ] : @script);
	$failed = 1;
	return;
}

sub disconnect
{
	for ($session, $other) { eval { $_->quit } if defined; undef $_ }
	return;
}

sub connect_anew
{
	disconnect();
	$_ = $node->background_psql('postgres', on_error_stop => 0) for $session, $other;
	return;
}

# Runs one statement; gives its output and messages.
sub run
{
	my ($statement) = @_;
	push @script, $statement;
	$session->{stderr} = '';
	my $out = $session->query($statement);
	my $said = $session->{stderr};
	push @script, "  -- $1" while $said =~ /((?:WARNING|ERROR|FATAL): .*)/g;
	return ($out, $said);
}

sub created
{
	my ($name) = @_;
	my $it = { name => $name, kind => one_of(sort keys %kinds), persistence => one_of('logged', 'unlogged'), memory => one_of(@sizes), seed => 0, keys => {} };
	return ($it, "CREATE FOREIGN TABLE $name (k int) SERVER streamfilter OPTIONS ($kinds{$it->{kind}}, memory '$it->{memory}', persistence '$it->{persistence}')");
}

# The same in the second session.
sub run_beside
{
	my ($statement) = @_;
	($session, $other) = ($other, $session);
	my @said = run($statement);
	($session, $other) = ($other, $session);
	$script[-1] .= ' -- beside';
	return @said;
}

# ---- the steps of a transaction: a statement, and what it does to the filter

my %steps = (
	add => sub {
		my ($it) = @_;
		my $from = 1 + int rand $keys;
		my $to = $from + int rand 10;
		$to = $keys if $to > $keys;
		return ("INSERT INTO $it->{name} SELECT generate_series($from, $to)", sub { $it->{unsaved} = 0 if grep { !$it->{keys}{$_} } $from .. $to; $it->{keys}{$_} = 1 for $from .. $to });
	},
	truncate => sub { my ($it) = @_; return ("TRUNCATE $it->{name}", sub { $it->{keys} = {}; @$it{qw(unsaved lost)} = (0, 0) }); },
	memory => sub {
		my ($it) = @_;
		my $size = one_of(@sizes);
		return ("ALTER FOREIGN TABLE $it->{name} OPTIONS (SET memory '$size')", sub { $it->{memory} = $size });
	},
	persistence => sub {
		my ($it) = @_;
		my $other = $it->{persistence} eq 'logged' ? 'unlogged' : 'logged';
		my $size = chance(.3) ? one_of(@sizes) : $it->{memory};
		return ("ALTER FOREIGN TABLE $it->{name} OPTIONS (SET persistence '$other', SET memory '$size')",
			sub { @$it{qw(persistence memory)} = ($other, $size); $it->{unsaved} = 0 });
	},
	seed => sub {
		my ($it) = @_;
		my $wanted = 1 + int rand 2;
		return ("ALTER FOREIGN TABLE $it->{name} OPTIONS (" . ($it->{seed} ? 'SET' : 'ADD') . " seed '$wanted')", sub { $it->{seed} = $wanted });
	},
	conflict => sub {
		my ($it) = @_;
		return $it->{conflict}
			? ("ALTER FOREIGN TABLE $it->{name} OPTIONS (DROP conflict)", sub { $it->{conflict} = 0 })
			: ("ALTER FOREIGN TABLE $it->{name} OPTIONS (ADD conflict 'admit')", sub { $it->{conflict} = 1 });
	},
	rename => sub {
		my ($it) = @_;
		my $name = 'n' . ++$number;
		return ("ALTER FOREIGN TABLE $it->{name} RENAME TO $name", sub { $it->{name} = $name });
	},
	again => sub {
		my ($it) = @_;
		my ($new, $create) = created($it->{name});
		return ("DROP FOREIGN TABLE $it->{name}; $create", sub { %$it = %$new });
	},
	save => sub { my ($it) = @_; return ("SELECT streamfilter_save('$it->{name}')", sub { $it->{unsaved} = 0 if $it->{persistence} eq 'logged' }); },
	forget => sub {
		my ($it) = @_;
		return ("SELECT streamfilter_test('$it->{name}', 1); SELECT streamfilter_forget_saved('$it->{name}')", sub { $it->{unsaved} = 1 });
	},
	use => sub { my ($it) = @_; return ("SELECT streamfilter_test('$it->{name}', 1)", sub { }); });
my @drawn = (('add') x 6, ('truncate') x 2, ('memory') x 4, ('persistence') x 4, 'seed', 'conflict', 'rename', 'again', 'save', 'forget', 'use');

# What a statement says of a filter that is empty: an ALTER that cannot keep the keys, or the first use of one that was lost.
sub heed
{
	my ($it, $step, $said, $do) = @_;
	my $empty = $said =~ /WARNING:  filter "$it->{name}" (?:starts empty|forgets what)/;
	if ($empty && $step !~ /memory|persistence|seed/ && !$it->{crashed} && !$it->{unsure}) { problem("$it->{name} starts empty without a cause") }
	$do->();
	$it->{lost} = 0 if $empty;
	$it->{keys} = {} if $empty && $step =~ /memory|persistence|seed/;
	$it->{keys} = {} if $empty && $it->{unsure} && $step ne 'add';
	return;
}

# Of all filters that no prepared transaction has locked.
sub compare
{
	my ($model, $when, @those) = @_;
	my @them = grep { !$prepared{touched}{$_} } sort(@those ? @those : keys %$model);
	return if !@them;
	my ($out, $said) = run(join ' UNION ALL ', map { "SELECT '$_', coalesce(string_agg(k::text, ' ' ORDER BY k), '') FROM generate_series(1, $keys) k WHERE streamfilter_test('$model->{$_}{name}', k)" } @them);
	return problem("$when: $said") if $said =~ /ERROR|FATAL/;
	# A filter has at most a 50th less memory than it is given.
	my ($sizes) = run(q{SELECT string_agg(c.relname || '=' || s.memory, ' ') FROM streamfilter_stats s JOIN pg_class c ON c.oid = s.filter});
	my %size = map { /(\w+)=(\d+)/ ? ($1 => $2) : () } split / /, $sizes // '';
	for my $it (map { $model->{$_} } @them)
	{
		my ($memory, $given) = ($size{ $it->{name} } // 0, $it->{memory} * 1024);
		problem("$when: $it->{name} has $memory bytes, not $it->{memory}") if $memory > $given || $memory < $given * .98;
	}
	my %found = map { /^(\w+)\|(.*)$/ ? ($1 => $2) : () } split /\n/, $out;
	for my $one (@them)
	{
		my $it = $model->{$one};
		my $empty = $said =~ /WARNING:  filter "$it->{name}" starts empty/;
		my $wanted = numbers($it);
		if ($it->{unsure} && defined $found{$one} && ($found{$one} eq '' || $found{$one} eq ($it->{before} // '')))
		{
			$wanted = $found{$one};
			$it->{keys} = { map { $_ => 1 } split / /, $wanted };
		}
		problem("$when: $it->{name} ($it->{kind}, $it->{persistence}) knows '" . ($found{$one} // 'nothing at all') . "', not '$wanted'") if ($found{$one} // '-') ne $wanted;
		problem("$when: $it->{name} has lost its keys and says nothing") if $it->{lost} && !$empty && !$it->{unsure};
		problem("$when: $it->{name} says that it starts empty") if $empty && !$it->{crashed};
		@$it{qw(lost unsure)} = (0, 0);
	}
	return;
}

# The second session adds keys to a filter that the open transaction has not touched: both worlds have them.
sub add_beside
{
	my ($touched, @models) = @_;
	my @them = grep { !$touched->{$_} && !$prepared{touched}{$_} } sort keys %now or return;
	my $one = one_of(@them);
	my $from = 1 + int rand $keys - 3;
	my $to = $from + int rand 3;
	my (undef, $said) = run_beside("INSERT INTO $now{$one}{name} SELECT generate_series($from, $to)");
	$count{change}++;
	return problem("beside: $said") if $said =~ /ERROR|FATAL/;
	for my $it (map { $_->{$one} } \%now, @models)
	{
		heed($it, 'add', $said, sub { $it->{unsaved} = 0 if grep { !$it->{keys}{$_} } $from .. $to; $it->{keys}{$_} = 1 for $from .. $to });
	}
	return;
}

# ---- a session that is killed while it commits: before the commit record nothing has happened, after it everything

my @points = qw(pre_commit logged committed applied);
my $has_points = $ENV{STREAMFILTER_FAULTS} || ($node->psql('postgres', q{
	CREATE FUNCTION streamfilter_fault(point text, action text) RETURNS void AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE}))[0] == 0;
sql(q{CREATE FUNCTION streamfilter_fault(point text, action text) RETURNS void AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE})
	if $ENV{STREAMFILTER_FAULTS};

# Gives whether the transaction has committed; undef: no session was killed, and its COMMIT is still to come.
sub commit_killed
{
	my $point = one_of(@points);
	run_beside("SELECT streamfilter_fault('$point', 'kill')");
	my $said = '';
	eval { (undef, $said) = run('COMMIT'); 1 } and $said !~ /server closed the connection|connection to server was lost/
		and do { run_beside("SELECT streamfilter_fault('$point', 'pass')"); return 1 };
	push @script, "-- killed at $point";
	expect_crash($node);
	disconnect();
	wait_for_server($node) or problem("the server does not come back after a session was killed at $point");
	$count{killed}++;
	return $point =~ /committed|applied/ ? 2 : 0;
}

# ---- a tree, whose leaf gets keys; TRUNCATE empties both

sub use_tree
{
	my ($when) = @_;
	if (chance(.3))
	{
		my (undef, $said) = run('TRUNCATE tree_root, tree_leaf');
		problem("$when: $said") if $said =~ /WARNING|ERROR/;
		%tree = ();
	}
	my $from = 1 + int rand $keys - 10;
	my (undef, $said) = run("INSERT INTO tree_leaf SELECT generate_series($from, $from + 9)");
	problem("$when: $said") if $said =~ /WARNING|ERROR/;
	@tree{ $from .. $from + 9 } = ();
	$count{change} += 2;
	compare_tree($when);
	return;
}

sub compare_tree
{
	my ($when) = @_;
	my $wanted = join ' ', sort { $a <=> $b } keys %tree;
	for my $one (qw(tree_root tree_leaf))
	{
		my ($found, $said) = run("SELECT coalesce(string_agg(k::text, ' ' ORDER BY k), '') FROM generate_series(1, $keys) k WHERE streamfilter_test('$one', k)");
		problem("$when: $one knows '$found', not '$wanted' $said") if $found ne $wanted || $said =~ /WARNING/;
	}
	return;
}

sub transact
{
	my $model = copy(\%now);
	my @them = grep { !$prepared{touched}{$_} } sort keys %$model;
	return if !@them;
	my (%touched, @savepoints, $saved);
	run('BEGIN');
	for (1 .. 1 + int rand 5)
	{
		if (chance(.15)) { my $name = 's' . @savepoints; run("SAVEPOINT $name"); push @savepoints, [ $name, copy($model) ] }
		if (@savepoints && chance(.15)) { my $to = pop @savepoints; run("ROLLBACK TO $to->[0]; RELEASE $to->[0]"); $model = back_to($model, $to->[1]) }
		add_beside(\%touched, $model, map { $_->[1] } @savepoints) if chance(.1);
		my $one = one_of(@them);
		my $step = one_of(@drawn);
		next if $step eq 'forget' && $saved;
		$saved ||= $step eq 'save';
		my $it = $model->{$one};
		my ($statement, $do) = $steps{$step}->($it);
		my (undef, $said) = run($statement);
		$count{change}++;
		$touched{$one} = 1;
		if ($said =~ /ERROR|FATAL/) { problem("$statement: $said"); last }
		heed($it, $step, $said, $do);
		$now{$one}{lost} = 0 if $said =~ /WARNING:  filter "\w+" starts empty/ && $step !~ /memory|persistence|seed/;
	}
	return if $failed;
	compare($model, 'in a transaction', keys %touched) if %touched && chance(.3);
	my $end = one_of('COMMIT', 'COMMIT', 'COMMIT', 'COMMIT', 'ROLLBACK', defined $prepared{model} ? () : "PREPARE TRANSACTION 'p'");
	if ($end eq 'COMMIT' && $has_points && chance(.02))
	{
		my $committed = commit_killed();
		%now = %$model if $committed;
		# What a first use in the transaction said is said.
		if (!$committed) { $now{$_}{lost} &&= $model->{$_}{lost} for keys %now }
		restarted(1) if $committed != 1;
		return;
	}
	my (undef, $said) = run($end);
	if ($said =~ /ERROR/ && !($end =~ /PREPARE/ && $said =~ /cannot PREPARE/)) { return problem("$end: $said") }
	if ($end eq 'ROLLBACK' || $said =~ /ERROR/) { $now{$_}{lost} &&= $model->{$_}{lost} for keys %now; return }
	if ($end eq 'COMMIT') { %now = %$model; return }
	%prepared = (touched => \%touched, model => $model);
	return;
}

# A first use within the savepoint has said what it had to say.
sub back_to
{
	my ($from, $to) = @_;
	$to->{$_}{lost} &&= $from->{$_}{lost} for keys %$to;
	return $to;
}

sub resize
{
	my @them = grep { !$prepared{touched}{$_} && $now{$_}{kind} ne 'sqf' } sort keys %now or return;
	my $one = one_of(@them);
	my $it = $now{$one};
	my $size = one_of(@sizes);
	my (undef, $said) = run("CALL streamfilter_resize('$it->{name}', '$size')");
	$count{change}++;
	problem("resize: $said") if $said =~ /ERROR/ && $said !~ /cannot be resized while rows come/;
	$it->{memory} = $size unless $said =~ /ERROR/;
	$it->{lost} = 0 if $said =~ /starts empty/;
	return;
}

sub end_prepared
{
	my $commits = chance(.6);
	my (undef, $said) = run(($commits ? 'COMMIT' : 'ROLLBACK') . " PREPARED 'p'");
	problem("PREPARED: $said") if $said =~ /ERROR/;
	my ($touched, $model) = @prepared{qw(touched model)};
	for my $one (keys %$touched)
	{
		my $it = $now{$one};
		# A first use in the transaction has said what it had to say.
		$commits ? ($now{$one} = $model->{$one}) : ($it->{lost} &&= $model->{$one}{lost});
		# What it has added to an unlogged filter is forgotten by a restart.
		@{ $now{$one} }{qw(unsure before)} = (1, numbers($it)) if $it->{unsure};
	}
	%prepared = ();
	settle();
	return;
}

# Looks at what may be empty or not, before anything is added to it.
sub settle
{
	my @unsure = grep { $now{$_}{unsure} && !$prepared{touched}{$_} } keys %now;
	compare(\%now, 'what may be lost', @unsure) if @unsure;
	return;
}

# ---- what happens between transactions

sub note_end
{
	my ($crash) = @_;
	$prepared{crashed} = 1 if $crash && defined $prepared{model};
	for my $one (keys %now)
	{
		my $it = $now{$one};
		my $locked = $prepared{touched}{$one};
		$it->{unsure} = $it->{crashed} = 1 if $it->{unsaved} || $locked && ($it->{persistence} eq 'unlogged' || $prepared{model}{$one}{persistence} eq 'unlogged');
		$_->{crashed} = 1 for $it, $locked ? $prepared{model}{$one} : ();
		next unless $crash && $it->{persistence} eq 'unlogged' && !$locked;
		$it->{lost} = 1 if %{ $it->{keys} };
		$it->{keys} = {};
	}
	return;
}

# Gives whether it was a crash: also where a walsender of PostgreSQL fails an assertion while it stops, since its standby still asks.
sub stop_somehow
{
	my $mode = one_of('fast', 'immediate');
	my $from = -s $node->logfile;
	push @script, "-- stop $mode";
	disconnect();
	$node->stop($mode);
	my $failed = slurp_file($node->logfile, $from) =~ /FailedAssertion\("!pgStatLocal\.shmem->is_shutdown"/;
	expect_crash($node, 6) if $failed;
	return $failed || $mode eq 'immediate';
}

sub restart
{
	my $crash = stop_somehow();
	$node->start;
	$count{restart}++;
	restarted($crash);
	return;
}

sub restarted
{
	my ($crash) = @_;
	note_end($crash);
	connect_anew();
	chance(.5) ? use_tree('after a start') : compare_tree('after a start');
	settle();
	return;
}

sub promote
{
	my ($standby) = @_;
	$node->wait_for_catchup($standby);
	push @script, '-- promotion';
	stop_somehow();
	$standby->promote;
	go_on_with($standby);
	$count{promotion}++;
	return;
}

sub go_on_with
{
	my ($next) = @_;
	($node, my $former) = ($next, $node);
	$former->clean_node;
	on($node);
	restarted(1);
	return;
}

# Goes back to a moment, which a standby that replays no further keeps.
sub go_back
{
	my ($past) = @_;
	my ($then, @keys) = (copy(\%now), keys %tree);
	run("SELECT pg_create_restore_point('moment')");
	run('SELECT pg_switch_wal()');    # a crash must not lose the point
	transact() for 1 .. 1 + int rand 5;
	return if $failed;
	end_prepared() if defined $prepared{model};
	$past->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or return problem('no recovery to a moment');
	push @script, '-- back to the moment';
	disconnect();
	$node->stop('immediate');
	%now = %$then;
	%tree = map { $_ => undef } @keys;
	go_on_with($past);
	$count{past}++;
	return;
}

# PostgreSQL keeps locks of transactions that a crash has ended on a standby as long as an older transaction is prepared.
sub compare_standby
{
	my ($standby) = @_;
	return if $prepared{crashed};
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));    # also of locks
	my $primary = $session;
	$session = $standby->background_psql('postgres', on_error_stop => 0);
	my $model = copy(\%now);
	for my $it (values %$model) { $it->{keys} = {} if $it->{persistence} eq 'unlogged'; $it->{lost} = 0; $it->{unsure} = 1 if $it->{unsaved} }
	compare($model, 'on the standby');
	compare_tree('on the standby');
	$session->quit;
	$session = $primary;
	return;
}

connect_anew();
for my $one (map { "f$_" } 1 .. 6)
{
	my ($it, $create) = created($one);
	run($create);
	$now{$one} = $it;
}
run(join ';', map { "CREATE FOREIGN TABLE $_ (k int) SERVER streamfilter OPTIONS ($kinds{bloom}" . ($_ eq 'tree_leaf' ? q{, parent 'tree_root')} : ')') } qw(tree_root tree_leaf));
my ($end, $standby, $standbys, $past) = (time + $seconds, undef, 0, undef);
$count{$_} = 0 for qw(change restart killed promotion past);
while (!$failed && time < $end)
{
	transact();
	last if $failed;
	compare(\%now, 'between transactions') if !chance(.3);
	resize() if chance(.08);
	use_tree('between transactions') if chance(.1);
	end_prepared() if defined $prepared{model} && chance(.3);
	restart() if chance(($ENV{STREAMFILTER_RESTARTS} // 30) / 1000);
	if (!defined $standby && !defined $past && !defined $prepared{model} && chance(.001))
	{
		$past = start_standby('past' . ++$standbys, "recovery_target_name = 'moment'\nrecovery_target_action = 'promote'", $node);
	}
	elsif (defined $past && !defined $prepared{model} && chance(.1)) { go_back($past); undef $past }
	elsif (defined $past) { }
	elsif (!defined $standby && chance(.004)) { $standby = start_standby('standby' . ++$standbys, "recovery_target_name = ''", $node) }
	elsif (defined $standby && chance(.1)) { compare_standby($standby) }
	elsif (defined $standby && chance(.03)) { promote($standby); undef $standby }
	@script = @script[ -200 .. -1 ] if @script > 2000;
}
ok(!$failed, "$count{change} changes of definitions, $count{restart} restarts, $count{killed} sessions killed, $count{promotion} promotions, $count{past} times back to a moment");
disconnect();
done();
