# Random changes of definitions against an exact model: ALTER of size, persistence and seed, RENAME, TRUNCATE, DROP and CREATE, save,
# forget_saved, resize, savepoints and prepared transactions, with restarts, crashes, and promotions in between. A filter knows
# exactly the keys of the model, or it is empty where it has said so.
# STREAMFILTER_SECONDS: how long, STREAMFILTER_SEED: the random numbers ("day": others each day); without, always the same.
# flavours: quick faults
use Sf;
use Time::HiRes qw(time);

my $seconds = $ENV{STREAMFILTER_SECONDS} // 60;
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
my (%now, %prepared, $session, @script, %count);
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

sub connect_anew
{
	eval { $session->quit } if defined $session;
	$session = $node->background_psql('postgres', on_error_stop => 0);
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

sub restart
{
	my $mode = one_of('fast', 'immediate');
	push @script, "-- stop $mode";
	eval { $session->quit };
	undef $session;
	$node->stop($mode);
	$node->start;
	note_end($mode eq 'immediate');
	connect_anew();
	settle();
	$count{restart}++;
	return;
}

sub promote
{
	my ($standby) = @_;
	$node->wait_for_catchup($standby);
	push @script, '-- promotion';
	eval { $session->quit };
	undef $session;
	$node->stop(one_of('fast', 'immediate'));
	$standby->promote;
	($node, my $former) = ($standby, $node);
	$former->clean_node;
	on($node);
	note_end(1);
	connect_anew();
	settle();
	$count{promotion}++;
	return;
}

sub compare_standby
{
	my ($standby) = @_;
	$node->wait_for_catchup($standby);
	my $primary = $session;
	$session = $standby->background_psql('postgres', on_error_stop => 0);
	my $model = copy(\%now);
	for my $it (values %$model) { $it->{keys} = {} if $it->{persistence} eq 'unlogged'; $it->{lost} = 0; $it->{unsure} = 1 if $it->{unsaved} }
	compare($model, 'on the standby');
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
my ($end, $standby, $standbys) = (time + $seconds, undef, 0);
$count{$_} = 0 for qw(change restart promotion);
while (!$failed && time < $end)
{
	transact();
	last if $failed;
	compare(\%now, 'between transactions') if !chance(.3);
	resize() if chance(.08);
	end_prepared() if defined $prepared{model} && chance(.3);
	restart() if chance(.03);
	if (!defined $standby && chance(.004)) { $standby = start_standby('standby' . ++$standbys, undef, $node) }
	elsif (defined $standby && chance(.1)) { compare_standby($standby) }
	elsif (defined $standby && chance(.03)) { promote($standby); undef $standby }
	@script = @script[ -200 .. -1 ] if @script > 2000;
}
ok(!$failed, "$count{change} changes of definitions, $count{restart} restarts, $count{promotion} promotions");
eval { $session->quit };
done();
