# Every statement that administers a filter × every place where one can be: it acts everywhere, or it fails and says what to
# do. What there is to administer is taken from the extension itself: a function, a setting, an option or a statement of the
# documents that is not in the lists here fails.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use OptionExamples;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SliceServers;
use Test::More;

my $settings = "streamfilter.max_filters = 400\nmax_prepared_transactions = 4\n";
my %node = map { $_ => start_node($_, $settings) } qw(a b c q);
$node{p} = start_node('p', "$settings\nwal_level = replica\n", allows_streaming => 1);
my @holders = qw(a b c);
for my $producer (qw(p q))
{
	$node{$producer}->safe_psql('postgres', join '', 'CREATE ROLE keeper; CREATE ROLE reader; CREATE SCHEMA later;',
		map { server_sql($_, $node{$_}, q{connect_timeout '10s', timeout '60s'}) } @holders);
}
$node{$_}->safe_psql('postgres', 'CREATE SCHEMA later') for @holders;
$node{p}->safe_psql('postgres', 'CREATE DATABASE restored');
$node{p}->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node{p}, 'base', has_streaming => 1);
$standby->start;

sub sql { return $node{p}->safe_psql('postgres', $_[0]); }

sub said
{
	my ($statement, $node, %more) = @_;
	my ($code, $out, $err) = ($node // $node{p})->psql('postgres', $statement, %more);
	return wantarray ? ($code, $err, $out) : $err;
}

# ---- places ------------------------------------------------------------------------------------------------------

# For each: what makes filter f of a kind there, with keys 1 to 100; on which servers its parts are.
my %place = (
	one => { parts => [], make => sub { my ($columns, $given) = @_; return "CREATE FOREIGN TABLE f ($columns) SERVER streamfilter OPTIONS ($given)" } },
	servers => { parts => [qw(a b)], make => sub { my ($columns, $given) = @_; return "CREATE FOREIGN TABLE f ($columns) SERVER streamfilter OPTIONS (servers 'a, b', $given)" } },
	moved => { parts => [qw(a b c)], make => sub {
			my ($columns, $given) = @_;
			return "CREATE FOREIGN TABLE f ($columns) SERVER streamfilter OPTIONS (servers 'a, b', $given)";
		}, after => q{ALTER FOREIGN TABLE f OPTIONS (SET servers 'a, b, c', ADD home_servers '2');
			SELECT streamfilter_move_slice('f', 1, 'c')} },
	node => { parts => [], make => sub {
			my ($columns, $given) = @_;
			return "CREATE FOREIGN TABLE root ($columns) SERVER streamfilter OPTIONS ($given, seed '5');
				CREATE FOREIGN TABLE f ($columns) SERVER streamfilter OPTIONS ($given, seed '5', parent 'root')";
		} });

sub clean
{
	my ($place) = @_;
	my @parts = @{ $place{$place}{parts} };
	$node{$_}->safe_psql('postgres', q{SET client_min_messages = error; SET streamfilter.mode = off;
		SELECT format('DROP FOREIGN TABLE %s CASCADE', oid::regclass) FROM pg_class WHERE relkind = 'f' ORDER BY relname \gexec}) for 'p', @parts ? 'q' : (), @parts;
	return;
}

# Makes filter f. Says why it cannot be made.
sub make
{
	my ($place, $columns, $given) = @_;
	clean($place);
	my ($code, $err) = said($place{$place}{make}->($columns, $given) . '; INSERT INTO f (id) SELECT generate_series(1, 100);' . ($place{$place}{after} // ''));
	return $code == 0 ? '' : $err;
}

# Which of its keys are known: "111…"; or why that cannot be asked.
my $known = q{SELECT string_agg(streamfilter_test('f', i)::int::text, '' ORDER BY i) FROM generate_series(1, 100) i};
sub known
{
	my ($code, $err, $out) = said($known);
	return $code == 0 ? $out : $err;
}

# Options of f, and those of its parts.
my $options = q{SELECT string_agg(format('%s: %s %s', c.oid::regclass, c.relowner::regrole, t.ftoptions), chr(10) ORDER BY relname)
	FROM pg_class c JOIN pg_foreign_table t ON t.ftrelid = c.oid};
sub catalog { my ($place) = @_; return join "\n", map { $node{$_}->safe_psql('postgres', $options) } 'p', @{ $place{$place}{parts} }; }

# Does an error say what to do? Of what PostgreSQL itself raises, the message is what it is.
my $own = join '|', 'syntax error', 'is not a (?:table|view)', 'does not exist', 'cannot be changed (?:now|without restarting)', 'permission denied',
  'must be owner', 'in a read-only transaction', 'during recovery', 'cannot run inside a transaction block', 'not supported for foreign tables',
  'provided more than once', 'option "\w+" not found', 'cannot use 2PC', 'are distributed from the coordinator';
sub helps { my ($err) = @_; return $err =~ /HINT:/ || $err =~ /$own/; }

# Runs a statement on filter f of a place. It fails, helps, and has changed nothing; or it acts, says what was lost, and the
# filter goes on: in a new session, and for another producer, which is told otherwise. Returns whether it acted.
sub tried
{
	my ($place, $statement, %then) = @_;
	my ($before, $told) = (catalog($place), known());
	my ($code, $err) = said($statement, undef, %{ $then{with} // {} });
	my $what = "$place: $statement";
	if ($code != 0)
	{
		ok(helps($err), "$what fails, and says what to do") or diag($err);
		is(catalog($place), $before, "... and alters nothing") if !$then{alone};
		is(known(), $told, "... nor what is known");
		return 0;
	}
	# What has come from a node is known to its root as well.
	for my $check ($place eq 'node' && $then{root_knows} ? () : @{ $then{check} // [] })
	{
		my ($query, $wanted, $of) = @$check;
		for my $on ($of eq 'parts' ? @{ $place{$place}{parts} } : 'p')
		{
			my ($failed, $why, $found) = said($query, $node{$on});
			ok($failed ? $why =~ /HINT:/ : $found eq $wanted, "$what: on $on") or diag("$found\n$why");
		}
	}
	return 1 if $then{gone};
	my $now = known();
	ok($now eq $told || $err =~ /NOTICE|WARNING/ || $then{loses}, "$what: what was known is known, or it says so") or diag("$told\n$now\n$err");
	($code, $err) = said('INSERT INTO f (id) SELECT generate_series(90, 110)');
	ok($code == 0 || helps($err), "$what: the filter goes on") or diag($err);
	return 1 unless @{ $place{$place}{parts} } && !$then{here};
	($code, $err) = said($known, $node{q});
	ok($code == 0 || helps($err), "$what: another producer goes on, or is told what to do") or diag($err);
	return 1;
}

# A second producer that knows the filter as it was made.
sub other_producer
{
	my ($place, $columns, $given) = @_;
	return unless @{ $place{$place}{parts} };
	$node{q}->safe_psql('postgres', 'SET client_min_messages = error; ' . $place{$place}{make}->($columns, $given) . '; '
		. ($place eq 'moved' ? q{ALTER FOREIGN TABLE f OPTIONS (SET servers 'a, b, c', ADD home_servers '2'); } : '') . q{SELECT streamfilter_test('f', 1)});
	return;
}

# ---- what can be typed ---------------------------------------------------------------------------------------------

my $part = q{SELECT count(*) FROM pg_class WHERE relkind = 'f' AND relname ~ '^f(/|$)'};
my $none = q{SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_test('f', i)};

# Statements, as the documents name them: what is true afterwards.
my %statements = (
	'TRUNCATE f' => { loses => 1, root_knows => 1, check => [ [ $none, 0, 'p' ] ] },
	'DELETE FROM f WHERE id = 7' => { loses => 1, root_knows => 1, check => [ [ q{SELECT streamfilter_test('f', 7)}, 'f', 'p' ] ] },
	'DROP FOREIGN TABLE f' => { gone => 1, check => [ [ $part, 0, 'parts' ], [ $part, 0, 'p' ] ] },
	'DROP SCHEMA public CASCADE; CREATE SCHEMA public' => { skip => 'the extension is there' },
	'ALTER FOREIGN TABLE f RENAME TO g' => { gone => 1, check => [ [ $part, 0, 'parts' ], [ $none =~ s/'f'/'g'/r, 100, 'p' ] ] },
	'ALTER FOREIGN TABLE f RENAME COLUMN id TO key' => { gone => 1, check => [ [ $none, 100, 'p' ] ] },
	'ALTER FOREIGN TABLE f SET SCHEMA later' => { gone => 1, check => [ [ $none =~ s/'f'/'later.f'/r, 100, 'p' ] ] },
	'ALTER FOREIGN TABLE f OWNER TO keeper' => { gone => 1 },
	'ALTER FOREIGN TABLE f ADD COLUMN more int' => {},
	'ALTER FOREIGN TABLE f ALTER COLUMN id TYPE text' => { gone => 1 },
	'ALTER FOREIGN TABLE f DROP COLUMN id' => {},
	q{ALTER FOREIGN TABLE f ALTER COLUMN id OPTIONS (ADD role 'time')} => {},
	'GRANT SELECT, INSERT ON f TO reader' => { here => 1, check => [ [ q{SELECT has_table_privilege('reader', 'f', 'SELECT')}, 't', 'p' ] ] },
	'REVOKE ALL ON f FROM reader' => { here => 1 },
	'COMMENT ON FOREIGN TABLE f IS $$x$$' => { here => 1 },
	'REASSIGN OWNED BY reader TO keeper' => { here => 1 },
	'DROP OWNED BY reader' => { here => 1 },
	q{ALTER SERVER streamfilter OPTIONS (ADD max_filters '1000'); ALTER SERVER streamfilter OPTIONS (DROP max_filters)} => { here => 1 },
	'VACUUM f' => { here => 1 },
	'ANALYZE f' => { here => 1 },
	'BEGIN; LOCK TABLE f; COMMIT' => { here => 1 },
	q{BEGIN; ALTER FOREIGN TABLE f OPTIONS (SET memory '256kB'); INSERT INTO f VALUES (200); ROLLBACK} => {},
	'BEGIN; TRUNCATE f; ROLLBACK' => {},
	'BEGIN; DROP FOREIGN TABLE f; ROLLBACK' => {},
	'BEGIN; ALTER FOREIGN TABLE f RENAME TO g; ROLLBACK' => {},
	q{BEGIN; TRUNCATE f; PREPARE TRANSACTION 'x'; ROLLBACK PREPARED 'x'} => {},
	q{BEGIN; DROP FOREIGN TABLE f; PREPARE TRANSACTION 'x'; ROLLBACK PREPARED 'x'} => {},
	q{BEGIN; ALTER FOREIGN TABLE f OPTIONS (SET memory '256kB'); PREPARE TRANSACTION 'x'; ROLLBACK PREPARED 'x'} => {});

# What the documents say that is not about one filter, or is in the lists below.
my %else = map { $_ => 1 } 'ALTER EXTENSION', 'ALTER DATABASE', 'ALTER ROLE', 'ALTER SYSTEM', 'ALTER TABLE', 'ALTER SUBSCRIPTION', 'ALTER PUBLICATION', 'ALTER INDEX',
  'ALTER TYPE', 'ALTER VIEW', 'ALTER FUNCTION', 'ALTER TRIGGER', 'ALTER SCHEMA', 'ALTER OPERATOR', 'ALTER MATERIALIZED', 'ALTER USER',
  'DROP TRIGGER', 'DROP TABLE', 'DROP EXTENSION', 'DROP SERVER', 'DROP USER', 'DROP DATABASE', 'DROP FUNCTION', 'DROP SUBSCRIPTION', 'DROP INDEX', 'DROP VIEW',
  'DROP COLUMN', 'DROP SCHEMA', 'DROP ROLE';

# The functions about filters: what is typed. The others only read, are called by triggers and other servers, or work on values.
my %functions = (
	streamfilter_save => [ q{SELECT streamfilter_save('f')}, {} ],
	streamfilter_forget_saved => [ q{SELECT streamfilter_save('f'); SELECT streamfilter_forget_saved('f')}, {} ],
	streamfilter_stats_reset => [ q{SELECT streamfilter_stats_reset('f')}, { check => [ [ q{SELECT max(tested) FROM streamfilter_stats WHERE filter::text ~ '^.?f'}, 0, 'parts' ] ] } ],
	streamfilter_warm => [ q{CREATE TEMP TABLE t AS SELECT i AS id FROM generate_series(1, 100) i; SELECT streamfilter_warm('f', 't')}, {} ],
	streamfilter_resize => [ q{CALL streamfilter_resize('f', '256kB')}, {} ],
	streamfilter_merge => [ q{SELECT streamfilter_merge('f', streamfilter_value('f'))}, {} ],
	streamfilter_value => [ q{SELECT streamfilter_value('f')}, {} ],
	streamfilter_export => [ q{SELECT streamfilter_export('f', 0)}, {} ],
	streamfilter_import => [ q{SELECT streamfilter_import('f', 0, streamfilter_export('f', 0))}, {} ],
	streamfilter_move_slice => [ q{SELECT streamfilter_move_slice('f', 0, 'b')}, {} ],
	streamfilter_spread_slices => [ q{SELECT streamfilter_spread_slices('f')}, {} ],
	streamfilter_retire => [ q{SELECT streamfilter_retire('f', 'b')}, {} ],
	streamfilter_slice_places => [ q{SELECT streamfilter_slice_places('f')}, {} ],
	streamfilter_distribute => [ q{SELECT streamfilter_distribute('f')}, {} ],
	streamfilter_adopt_triggers => [ q{SELECT streamfilter_adopt_triggers()}, {} ],
	streamfilter_seen => [ q{SELECT streamfilter_seen('f', 500)}, {} ],
	streamfilter_test => [ q{SELECT streamfilter_test('f', 1)}, {} ],
	streamfilter_definition => [ q{SELECT streamfilter_definition('f')}, {} ]);
my %not_about_filters = map { ("streamfilter_$_" => 1) } qw(add advise agg contains counters discard distinct distinct_agg distinct_count distinct_error divert
  evaluate forget hash hash_agg in info mark memory out overlap profile recv send settle slice slice_of slices_needed union union_agg);
my $of_servers = qr/^streamfilter_(?:hashes|slice)_(?:alter|claim|define|erase|put|seen|test|close|fence|mark|take)$/;

# Settings: a value that a session gives, and what comes of it.
my %session = (
	'streamfilter.mode' => [ 'off', 'f' ], 'streamfilter.enabled' => [ 'off', 'f' ], 'streamfilter.batch_insert' => [ 'off', 't' ],
	'streamfilter.batch_scan' => [ 'off', 't' ], 'streamfilter.report' => [ 'on', 't' ], 'streamfilter.verbose' => [ 'on', 't' ],
	'streamfilter.commit_wait_timeout' => [ '10s', 't' ], 'streamfilter.min_log_size' => [ '1MB', 't' ], 'streamfilter.dynamic_memory' => [ '64MB', 't' ],
	'streamfilter.shared_memory' => [ '64MB', 't' ], 'streamfilter.max_filters' => [ '64', 't' ], 'streamfilter.max_in_flight' => [ '1000', 't' ],
	'streamfilter.restore_workers' => [ '1', 't' ]);

# ---- the lists are whole -----------------------------------------------------------------------------------------------

for my $function (split /\n/, sql(q{SELECT DISTINCT p.proname FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'streamfilter' WHERE p.pronamespace = 'public'::regnamespace AND p.prokind <> 'a' AND p.proname ~ '^streamfilter_'
	ORDER BY 1}))
{
	ok($functions{$function} || $not_about_filters{$function} || $function =~ $of_servers, "function $function has its line");
}
my @settings = split /\n/, sql(q{SELECT name FROM pg_settings WHERE name ~ '^streamfilter\.' ORDER BY name});
is(join(' ', @settings), join(' ', sort keys %session), 'settings have their lines');

# Whatever follows a word of administration in documents and hints.
my %named;
for my $file (glob("$FindBin::Bin/../../README.md $FindBin::Bin/../../docs/*.md $FindBin::Bin/../../docs/reference/*.md $FindBin::Bin/../../src/pg/*/*.cpp"))
{
	my $text = slurp_file($file);
	$text = join ' ', $text =~ /err(?:hint|msg)\w*\(((?:\s*"(?:[^"\\]|\\.)*")+)/g if $file =~ /cpp$/;
	$text =~ s/"\s*"//g;
	$named{$1} = $file =~ s{.*/}{}r while $text =~ /\b((?:TRUNCATE|REASSIGN OWNED|DROP OWNED|(?:ALTER|DROP) [A-Z]{4,}(?: TABLE)?|(?:VACUUM|GRANT|REVOKE|DELETE FROM|LOCK TABLE|COMMENT ON)))\b/g;
}
for my $words (sort keys %named)
{
	my $first = join ' ', (split / /, $words)[ 0 .. ($words =~ / / ? 1 : 0) ];
	ok($else{$first} || (grep { /(?:^|; )\Q$words\E/ } keys %statements), "$words has its line (in $named{$words})");
}

# ---- statements, functions, settings ---------------------------------------------------------------------------------------

my ($columns, $given) = ('id int', q{kind 'lru', memory '128kB', slices '4'});
my %tree = ('id int' => q{kind 'bloom', memory '128kB', k '4'});
for my $place (sort keys %place)
{
	my $of = $place eq 'node' ? $tree{$columns} : $given;
	my $acted = 1;
	my @all = ((map { [ $_, $statements{$_} ] } sort grep { !$statements{$_}{skip} } keys %statements), map { $functions{$_} } sort keys %functions);
	for my $case (@all)
	{
		my ($statement, $then) = @$case;
		is(make($place, $columns, $of), '', "$place: a filter") if $acted;
		other_producer($place, $columns, $of) if $acted;
		$acted = tried($place, $statement, %$then);
	}
	is(make($place, $columns, $of), '', "$place: a filter");
	my $key = 1000;
	for my $setting (@settings)
	{
		my ($value, $remembered) = @{ $session{$setting} };
		for my $session (0, 1)
		{
			local $ENV{PGOPTIONS} = $session ? "-c $setting=$value" : '';
			my $insert = sprintf q{SELECT count(streamfilter_seen('f', i)) FROM generate_series(%d, %d) i}, ++$key, $key + 10;
			my ($code, $err) = said($session ? $insert : 'SET ' . ($setting =~ s/(\w+)$/"$1"/r) . " = '$value'; $insert");
			my $what = "$place: " . ($session ? "PGOPTIONS of $setting" : "SET $setting");
			ok($code == 0 || helps($err), $what) or diag($err);
			local $ENV{PGOPTIONS} = '';
			is(sql("SELECT streamfilter_test('f', $key)"), $remembered, '... counts for all parts') if $code == 0;
			$key += 20;
		}
	}
}

# ---- every option -----------------------------------------------------------------------------------------------------------

# Of most kinds. What only some have is no other matter where slices have moved.
sub is_common { return $_[0] =~ /^(?:memory|keys|fpr|conflict|overfull|persistence|mode|probe|lost_slice|nulls|seed|slices)$/; }

for my $case (option_cases(sub { return scalar said($_[0]) }))
{
	my ($kind, $option, $with, $of, $first, $second) = @$case;
	$of =~ s/memory '64kB'/memory '256kB'/;
	next if "$of $option" =~ /parent|tree|top_down/;    # nodes are on one server
	for my $place (is_common($option) ? 'moved' : 'servers')
	{
		my $failed = make($place, $with, $of eq '' ? q{kind 'bloom'} : $of);
		$failed = make($place, $with, "$of, slices '4'") if $failed =~ /slices|more servers/ && $of !~ /slices/;
		if ($failed) { ok(helps($failed) || $failed =~ /DETAIL/, "$place: $kind for $option cannot be there") or diag($failed); next; }
		my $has = sql("SELECT count(*) FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = 'f'::regclass AND option_name = '$option'");
		tried($place, "ALTER FOREIGN TABLE f OPTIONS (" . ($has ? 'SET' : 'ADD') . " $option '$second')", here => 1);
		tried($place, "ALTER FOREIGN TABLE f OPTIONS (DROP $option)", here => 1) if is_common($option);
	}
}
# The value of first_places is a place that is not there: the next statement says so.
my %elsewhere = (
	servers => q{'a, b, c'}, home_servers => q{'2'}, producer => q{'{}'}, moved => q{'1:1@1'}, first_places => q{'1:1@1'}, retired => q{'2'}, retirements => q{'1'}, identity => q{'1/2/3'});
is(join(' ', sort keys %elsewhere), join(' ', options_elsewhere()), 'options of filters elsewhere have their lines');
for my $place (qw(one moved))
{
	for my $option (sort keys %elsewhere)
	{
		is(make($place, $columns, $given), '', "$place: a filter");
		my $has = sql("SELECT count(*) FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = 'f'::regclass AND option_name = '$option'");
		tried($place, "ALTER FOREIGN TABLE f OPTIONS (" . ($has ? 'SET' : 'ADD') . " $option $elsewhere{$option})", here => 1, loses => $option eq 'first_places');
	}
}

# ---- dump and restore, import, a standby ----------------------------------------------------------------------------------------

for my $place (qw(one servers moved))
{
	is(make($place, $columns, $given), '', "$place: a filter");
	my $dump = PostgreSQL::Test::Utils::tempdir() . "/$place.sql";
	$node{p}->safe_psql('postgres', 'DROP DATABASE restored');
	$node{p}->safe_psql('postgres', 'CREATE DATABASE restored');
	$node{p}->command_ok([ 'pg_dump', '-d', $node{p}->connstr('postgres'), '-f', $dump ], "$place: pg_dump");
	$node{p}->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node{p}->connstr('restored'), '-f', $dump ], '... is restored');
	my ($code, $out, $err) = $node{p}->psql('restored', $known);
	ok($code == 0 || helps($err), '... and the filter goes on') or diag($err);
	is($out, $place eq 'one' ? '0' x 100 : '1' x 100, '... with what is known there') if $code == 0;
	next if $place eq 'one';
	$node{q}->safe_psql('postgres', 'SET client_min_messages = error; IMPORT FOREIGN SCHEMA public LIMIT TO (f) FROM SERVER a INTO public');
	my ($failed, $why, $found) = said($known, $node{q});
	ok($failed ? $why =~ /HINT:/ : $found eq '1' x 100, "$place: IMPORT FOREIGN SCHEMA") or diag("$found\n$why");
}

is(make('one', $columns, $given), '', 'standby: a filter');
$node{p}->wait_for_catchup($standby, 'replay', $node{p}->lsn('insert'));
my $as_before = $standby->safe_psql('postgres', $known);
for my $statement ((sort grep { !$statements{$_}{skip} } keys %statements), map { $functions{$_}[0] } sort keys %functions)
{
	my ($code, $err) = said($statement, $standby);
	ok($code == 0 || helps($err), "standby: $statement") or diag($err);
}
is($standby->safe_psql('postgres', $known), $as_before, 'standby: nothing has changed');

# ---- Citus ---------------------------------------------------------------------------------------------------------------------

SKIP:
{
	skip 'Citus is not installed', 1 if sql(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'}) eq '0';
	require CitusCluster;
	my $citus = CitusCluster->new(workers => 2);
	$citus->query('CREATE ROLE keeper; CREATE ROLE reader; CREATE SCHEMA later');
	my @where = qw(coordinator worker);

	# What every node has: definitions, rights, and which keys are known.
	my $here = 'SET citus.enable_ddl_propagation = off;';
	my $state = $here . q{SELECT format('%s.%s %s %s %s %s', c.relnamespace::regnamespace, c.relname, c.relowner::regrole, c.relacl, t.ftoptions, obj_description(c.oid)),
			(SELECT string_agg(format('%s %s %s', a.attname, a.atttypid::regtype, a.attacl), ' ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0)
			FROM pg_class c JOIN pg_foreign_table t ON t.ftrelid = c.oid;
		SELECT srvoptions FROM pg_foreign_server WHERE srvname = 'streamfilter';
		SELECT string_agg(streamfilter_test(c.oid, i)::int::text, '' ORDER BY i) FROM pg_class c, generate_series(1, 210) i WHERE relkind = 'f'};
	my $states = sub { return map { my ($code, $err, $out) = said($state, $citus->node($_)); "$out$err" } 0 .. 2 };
	my $new = sub {
		my ($with, $of) = @_;
		$citus->everywhere("DROP FOREIGN TABLE IF EXISTS $_ CASCADE") foreach qw(f g later.f);
		my ($code, $err) = said("CREATE FOREIGN TABLE f ($with) SERVER streamfilter OPTIONS ($of)", $citus->coordinator);
		return $err if $code != 0;
		$citus->query(q{SELECT streamfilter_distribute('f')});
		$citus->everywhere('INSERT INTO f (id) SELECT generate_series(1, 100)');
		return '';
	};
	# On one of the nodes. Returns whether it acted.
	my $runs = sub {
		my ($number, $statement, $approximate) = @_;
		my @before = $states->();
		my ($code, $err) = said($statement, $citus->node($number));
		my @now = $states->();
		s/,?identity=[^,}]*//g foreach @before, @now;                                        # with the number of the node
		if ($approximate) { s/^[01]{210}$/($& =~ tr{1}{}) > 50/me foreach @before, @now }    # each node has its seed
		my $what = "$where[$number]: $statement";
		if ($code != 0)
		{
			ok(helps($err), "$what fails, and says what to do") or diag($err);
			is(join("\n", @now), join("\n", @before), '... and has changed nothing');
			return 0;
		}
		return 1 if $err =~ /NOTICE:.*of this node only.*HINT:/s;
		is($now[$_], $now[0], "$what acts on node $_, too") or diag($err) foreach 1, 2;
		return 1;
	};
	for my $number (0, 1)
	{
		my $acted = 1;
		for my $statement ((sort grep { !$statements{$_}{skip} } keys %statements), map { $functions{$_}[0] } sort keys %functions)
		{
			is($new->($columns, $given), '', 'a filter on Citus') if $acted;
			$acted = $runs->($number, $statement);
		}
	}
	for my $case (option_cases(sub { return scalar said($_[0]) }))
	{
		my ($kind, $option, $with, $of, $first, $second) = @$case;
		next if "$of $option" =~ /parent|tree|top_down/ || $new->($with, $of eq '' ? q{kind 'bloom'} : $of) ne '';
		my $has = $citus->query("SELECT count(*) FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE option_name = '$option'");
		$runs->(0, "ALTER FOREIGN TABLE f OPTIONS (" . ($has ? 'SET' : 'ADD') . " $option '$second')", 1);
	}

	# Sessions that load a table: what they set counts where rows are judged, or they are told.
	$new->('id int', $given);
	$citus->query(q{CREATE TABLE events (id int); SELECT create_distributed_table('events', 'id');
		CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('f')});
	my $last = 100;
	for my $case (map { my $setting = $_; map { [ $setting, @$_ ] } [ 0, 0 ], [ 0, 1 ], [ 1, 0 ], [ 1, 1 ] } @settings)
	{
		my ($setting, $session, $number) = @$case;
		local $ENV{PGOPTIONS} = $session ? "-c $setting=$session{$setting}[0]" : '';
		my $load = 'INSERT INTO events SELECT generate_series(1, ' . ($last + 1) . ')';
		my ($code, $err) = said($session ? $load : "SET $setting = '$session{$setting}[0]'; $load", $citus->node($number));
		my $what = "$where[$number]: " . ($session ? "PGOPTIONS of $setting" : "SET $setting");
		ok($code == 0 ? $setting =~ /batch_scan/ || $err =~ /NOTICE:.*HINT:/s : helps($err), "$what counts there, or says what to do") or diag($err);
		++$last if $code == 0;
		local $ENV{PGOPTIONS} = '';
		is($citus->query('SELECT count(*) FROM events'), $last - 100, '... and no row is lost, none stored twice');
	}
}

done_testing();
