# Eight sessions add overlapping keys, in every way there is, with rollbacks, savepoints, prepared
# transactions, cancels and terminated backends, to a filter so large that false positives are
# practically nil (fewer than 1e6 keys in 1.3e8 bits, k = 10: below 1e-11 a key). What every client saw is
# held against the table that the filter guards:
#
# - no key that a client saw inserted and committed is missing;
# - with conflict 'wait' every key is there once, with 'discard' at most once;
# - with 'wait' and 'admit' no key is refused that nobody has committed;
# - at the end nothing is in flight, keys that rolled back are new, and all others are repeats.
#
# STREAMFILTER_STRESS_SECONDS: duration per value of option conflict, default 5.
# flavours: faults
use Sf;
use List::Util qw(sum0);

my $seconds  = $ENV{STREAMFILTER_STRESS_SECONDS} || 5;
my $sessions = 8;
my $scripts  = 4;     # per session, run in turn
my $length   = 60;    # transactions of a script
my %slicing  = (    # one slice per key, and several
	wait    => ", slices '40', slicing 'vertical'",
	discard => ", slices '8,5', slicing 'diced'",
	admit   => '');
my $dir      = PostgreSQL::Test::Utils::tempdir;
srand(20240817);

my $node = start_node('stress', q{
	streamfilter.max_in_flight = 1000
	max_prepared_transactions = 50
	deadlock_timeout = '20ms'
	log_statement = none
	log_min_messages = log
	log_min_error_statement = panic
});

# ---- What the sessions do --------------------------------------------------------------------------

sub chance { return rand() < $_[0] }

# One statement that tries keys and returns those it has inserted. The line with '?' says which are
# tried; the three ways are a trigger, streamfilter_seen and INSERT into the filter.
sub attempt
{
	my ($mode, @keys) = @_;
	my $values = join(', ', map { "(:k$_)" } @keys);
	my $way = int rand 3;
	my $statement =
	    $way == 0 ? "INSERT INTO guarded_$mode VALUES $values RETURNING 'I', key;"
	  : $way == 1 ? "INSERT INTO plain_$mode SELECT v.key FROM (VALUES $values) v (key)
	                 WHERE NOT streamfilter_seen('seen_$mode', v.key) RETURNING 'I', key;"
	  :             "WITH new AS (INSERT INTO seen_$mode VALUES $values RETURNING key)
	                 INSERT INTO plain_$mode SELECT key FROM new RETURNING 'I', key;";
	return '\echo ? ' . join(' ', map { ":k$_" } @keys) . "\n$statement\n";
}

sub some_keys { return map { 1 + int rand 4 } 1 .. 1 + int rand 3 }

# More keys than streamfilter.max_in_flight, of a range of their own, and one that all use.
sub bulk
{
	my ($mode) = @_;
	return "\\echo ?? :b\n"
	  . "INSERT INTO guarded_$mode SELECT -(:b * 50 + i) FROM generate_series(1, 1200) i RETURNING 'I', key;\n"
	  . attempt($mode, 1);
}

my $prepared = 0;

sub transaction
{
	my ($mode, $session) = @_;
	# All sessions look for keys near the same, slowly advancing number.
	my $text = 'SELECT b, ' . join(', ', map { 'b + ' . int(rand 12) . " AS k$_" } 1 .. 4)
	  . " FROM (SELECT nextval('clock') AS b) s \\gset\n";
	return "$text\\echo >auto\n" . attempt($mode, some_keys()) if chance(0.25);
	$text .= "\\echo >begin\nBEGIN;\n";
	$text .= bulk($mode) if $mode ne 'discard' && chance(0.02);
	for (1 .. 1 + int rand 3)
	{
		$text .= attempt($mode, some_keys());
		next unless chance(0.4);
		$text .= "\\echo >savepoint\nSAVEPOINT a;\n" . attempt($mode, some_keys());
		$text .= chance(0.5) ? "\\echo >rollback_to\nROLLBACK TO a;\n" : "\\echo >release\nRELEASE a;\n";
		$text .= attempt($mode, some_keys()) if chance(0.5);
	}
	$text .= sprintf("SELECT pg_sleep(%f);\n", rand 0.005) if chance(0.3);
	# If the end is cancelled the transaction may still be open, which only a new connection ends for sure.
	my $reconnect = "\\if :ERROR\n\\c -\n\\endif\n";
	return "$text\\echo >commit\nCOMMIT;\n$reconnect"     if chance(0.5);
	return "$text\\echo >rollback\nROLLBACK;\n$reconnect" if chance(0.5);
	# The name says how the transaction ends. Its session ends it, or else the finisher.
	my $end = chance(0.5) ? 'commit' : 'rollback';
	$text .= "\\set name ${end}_${session}_ :start _" . ++$prepared . "\n";
	$text .= "\\echo >prepare_$end\nPREPARE TRANSACTION :'name';\n$reconnect";
	$text .= "\\echo >finish\n" . uc($end) . " PREPARED :'name';\n" if chance(0.5);
	return $text;
}

my $finish_prepared = q{
	SELECT format('%s PREPARED %L', upper(split_part(gid, '_', 1)), gid) FROM pg_prepared_xacts \gexec};
my $victim = q{FROM pg_stat_activity WHERE application_name = 'stress' AND state <> 'idle'
	ORDER BY random() LIMIT 1};

sub disturbance
{
	my $text = "SELECT setseed(0.5);\n";
	for my $i (1 .. 50)
	{
		$text .= sprintf("SELECT pg_sleep(%f);\n%s\n", rand 0.03, $finish_prepared);
		$text .= ($i % 10 ? 'SELECT pg_cancel_backend(pid) ' : 'SELECT pg_terminate_backend(pid) ') . "$victim;\n";
	}
	return $text;
}

# What a session may be told: that it was disturbed, and what follows from it, also where it was its BEGIN that was cancelled, or a
# query whose result psql was to keep in a variable.
my $disturbed = qr/^(?:canceling statement due to user request|terminating connection due to administrator command|deadlock detected)$/;
my $follows = join '|', 'current transaction is aborted, commands ignored until end of transaction block',
  'there is (?:no|already a) transaction in progress', '(?:ROLLBACK TO |RELEASE )?SAVEPOINT can only be used in transaction blocks',
  'savepoint "a" does not exist', 'prepared transaction with identifier "[\w:]+" (?:does not exist|is busy)',
  'syntax error at or near ":"';

# ---- What the clients saw --------------------------------------------------------------------------

# Reads a client's output. Keys that are inserted belong to the topmost of @levels, savepoints or the
# transaction, until a tag says what has become of that.
sub read_log
{
	my ($file, $attempted, $committed, $refused) = @_;
	my (@levels, @tried, @inserted);
	my ($doing, $certain) = ('', 0);
	my $keep = sub { if ($certain) { $committed->{$_} = 1 for map { @$_ } @levels } };
	open(my $log, '<', $file) or die $!;
	while (my $line = <$log>)
	{
		chomp $line;
		if ($line =~ /^>(\w+)/)
		{
			$doing = $1;
			if ($doing eq 'begin' || $doing eq 'auto' || $doing eq 'start')
			{
				@levels  = ([]);
				$certain = $doing eq 'auto';    # a transaction is one if BEGIN was not cancelled
			}
		}
		elsif ($line =~ /^\? ([\d ]+)$/)
		{
			@tried    = split ' ', $1;
			@inserted = ();
			$attempted->{$_} = 1 for @tried;
		}
		elsif ($line =~ /^\?\? (\d+)$/)
		{
			@tried = map { -($1 * 50 + $_) } 1 .. 1200;
			@inserted = ();
			$attempted->{$_} = 1 for @tried;
		}
		elsif ($line =~ /^I\|(-?\d+)$/)
		{
			push @inserted, $1;
		}
		elsif ($line =~ /^INSERT 0 (\d+)$/)
		{
			$1 == @inserted or die "$file: INSERT 0 $1, but " . scalar(@inserted) . ' rows';
			push @{ $levels[-1] }, @inserted;
			my %own = map { $_ => 1 } map { @$_ } @levels;
			$refused->{$_} = 1 for grep { !$own{$_} } @tried;
			$keep->() if $doing eq 'auto';
			@tried = @inserted = ();
		}
		elsif ($line eq 'BEGIN')     { $certain = 1 }
		elsif ($line eq 'SAVEPOINT') { push @levels, [] }
		elsif ($line eq 'RELEASE')
		{
			my $top = pop @levels;
			push @{ $levels[-1] }, @$top;
		}
		elsif ($line eq 'ROLLBACK' && $doing eq 'rollback_to') { $levels[-1] = [] }    # the savepoint stays
		elsif ($line eq 'COMMIT' && $doing eq 'commit') { $keep->() }
		elsif ($line eq 'PREPARE TRANSACTION' && $doing eq 'prepare_commit') { $keep->() }
	}
	close $log;
	return;
}

sub load_keys
{
	my ($table, $keys) = @_;
	PostgreSQL::Test::Utils::append_to_file("$dir/$table", join('', map { "$_\n" } sort keys %$keys));
	sql("CREATE TABLE $table (key bigint); COPY $table FROM '$dir/$table'");
	return scalar keys %$keys;
}

# ---- One run per value of option conflict ----------------------------------------------------------

for my $mode (qw(wait admit discard))
{
	sql(qq{
		CREATE FOREIGN TABLE seen_$mode (key bigint) SERVER streamfilter
		  OPTIONS (kind 'bloom', memory '16MB', k '10', seed '1', conflict '$mode'$slicing{$mode});
		CREATE TABLE plain_$mode (key bigint);
		CREATE TABLE guarded_$mode (key bigint);
		CREATE TRIGGER zz BEFORE INSERT ON guarded_$mode
		  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_$mode');
		CREATE VIEW rows_$mode AS TABLE plain_$mode UNION ALL TABLE guarded_$mode;
		DROP SEQUENCE IF EXISTS clock;
		CREATE SEQUENCE clock});
	my @runs;
	my $end = time + $seconds;
	for my $session (1 .. $sessions)
	{
		for my $script (1 .. $scripts)
		{
			PostgreSQL::Test::Utils::append_to_file("$dir/${mode}_${session}_$script.sql",
				"\\echo >start\nSELECT nextval('clock') AS start \\gset\n"
				  . join('', map { transaction($mode, $session) } 1 .. $length));
		}
		my $connection = $node->connstr('postgres') . ' application_name=stress';
		push @runs, IPC::Run::start([ 'sh', '-c',
			qq{i=0; while [ \$(date +%s) -lt $end ]; do i=\$((i % $scripts + 1));
			   psql -X -A -t -d "$connection" -f $dir/${mode}_${session}_\$i.sql; done \\
			   >$dir/${mode}_$session.log 2>$dir/${mode}_$session.err} ]);
	}
	my $script = "$dir/disturb_$mode.sql";
	PostgreSQL::Test::Utils::append_to_file($script, disturbance());
	my $connection = $node->connstr('postgres');
	# It goes on until no session is left, since only it ends some of the prepared transactions.
	my $disturber = IPC::Run::start([ 'sh', '-c',
		qq{until [ -e $dir/done_$mode ]; do psql -X -q -d "$connection" -f $script; done >$dir/disturb_$mode.log 2>&1} ]);
	$_->finish for @runs;
	PostgreSQL::Test::Utils::append_to_file("$dir/done_$mode", '');
	$disturber->finish;
	$node->psql('postgres', $finish_prepared);
	# A terminated backend may still be rolling back when its client is gone.
	$node->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'stress'})
	  or die 'a session is left';

	my (%attempted, %committed, %refused);
	read_log("$dir/${mode}_$_.log", \%attempted, \%committed, \%refused) for 1 .. $sessions;
	my $attempted = load_keys("attempted_$mode", \%attempted);
	my $committed = load_keys("committed_$mode", \%committed);
	my $refused   = load_keys("refused_$mode",   \%refused);
	my ($rows, $distinct) = split /\|/, sql("SELECT count(*), count(DISTINCT key) FROM rows_$mode");
	my $disturbances = () = slurp_file("$dir/disturb_$mode.log") =~ /^ t$/mg;
	my (%errors, %following, %others);
	for (map { split /\n/, slurp_file("$dir/${mode}_$_.err") } 1 .. $sessions)
	{
		next unless /(?:ERROR|FATAL|PANIC|WARNING):  (.*)/;
		(my $message = $1) =~ s/\d+/N/g;
		($message =~ $disturbed ? \%errors : $message =~ /^(?:$follows)$/ ? \%following : \%others)->{$message}++;
	}
	note "conflict '$mode': $attempted keys tried, $committed seen committed, $refused refused; "
	  . "$rows rows, $distinct distinct; $disturbances sessions disturbed";
	note join(', ', map { my $of = $_; map { "$of->{$_} x $_" } sort keys %$of } \%errors, \%following);
	note sql("SELECT tested, accepted, discarded, rolled_back, waits, overflowed
		FROM streamfilter_stats WHERE filter = 'seen_$mode'::regclass");

	my $check = sub {
		my ($query, $expected, $name) = @_;
		is(sql($query), $expected, "conflict '$mode': $name");
	};
	is(join("\n", map { "$others{$_} x $_" } sort keys %others), '', "conflict '$mode': only what disturbs is told as an error");
	cmp_ok($disturbances, '>', 0, "conflict '$mode': $disturbances sessions were disturbed");
	cmp_ok(sum0(values %errors), '>', 0, "conflict '$mode': which they were told");
	cmp_ok($committed, '>', 50 * $seconds, "conflict '$mode': enough was committed");
	cmp_ok($refused, '>', 50 * $seconds, "conflict '$mode': enough was refused");
	$check->('SELECT count(*) FROM pg_prepared_xacts', 0, 'all prepared transactions have ended');
	$check->("SELECT in_flight FROM streamfilter_stats WHERE filter = 'seen_$mode'::regclass", 0, 'nothing is in flight');
	$check->("SELECT count(*) FROM (TABLE committed_$mode EXCEPT TABLE rows_$mode) k",
		0, "none of $committed keys that a client saw inserted and committed is missing");
	is($rows - $distinct, 0, "conflict '$mode': each of $distinct keys is there once") if $mode ne 'admit';
	$check->("SELECT count(*) FROM (TABLE refused_$mode EXCEPT TABLE rows_$mode) k",
		0, "each of $refused keys that were refused had been committed")
	  if $mode ne 'discard';
	$check->("SELECT count(*) FROM (SELECT DISTINCT key FROM rows_$mode) r
		WHERE NOT streamfilter_test('seen_$mode', key)", 0, 'every row is remembered');
	$check->("SELECT count(*) FROM (TABLE attempted_$mode EXCEPT TABLE rows_$mode) k
		WHERE streamfilter_seen('seen_$mode', key)", 0, 'every other key is accepted now');
}

done();
