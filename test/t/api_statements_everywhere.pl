# Every statement that administers a filter × every place where one can be: it acts everywhere, or it fails and says what to
# do. What there is to administer is taken from the extension itself: a function, a setting, an option or a statement of the
# documents that is not in the lists here fails.
use Sf;
use IPC::Run;
use OptionExamples;

my $settings = "streamfilter.max_filters = 400\nmax_prepared_transactions = 4\n";
my %node = map { $_ => start_node($_, $settings) } qw(a b c q);
$node{p} = start_node('p', "$settings\nwal_level = replica\n", allows_streaming => 1);
on($node{p});
my @holders = qw(a b c);

# A server of filters, with user mappings of this role and of those that own a filter.
sub server_again
{
	my ($name) = @_;
	return server_sql($name, $node{$name}, q{connect_timeout '10s', timeout '60s'})
		. join '', map { "CREATE USER MAPPING FOR $_ SERVER $name OPTIONS (user :'USER', password_required 'false');" } qw(owner heir);
}

for my $producer (qw(p q))
{
	$node{$producer}->safe_psql('postgres', join '', 'CREATE ROLE keeper; CREATE ROLE reader; CREATE ROLE owner; CREATE ROLE heir; CREATE SCHEMA later;',
		map { server_again($_) } @holders);
}
$node{$_}->safe_psql('postgres', 'CREATE SCHEMA later') for @holders;
sql('CREATE DATABASE restored');
my $standby = start_standby('standby');

sub told_by
{
	my ($statement, $node, %more) = @_;
	my ($code, $out, $err) = ($node // $node{p})->psql('postgres', $statement, %more);
	return wantarray ? ($code, $err, $out) : $err;
}

# The same in a session that may fail to begin: then psql reads no statement.
sub said_with
{
	my ($options, $statement, $node) = @_;
	local $ENV{PGOPTIONS} = $options;
	my ($out, $err);
	my $done = IPC::Run::run([ 'psql', '-XAt', '-d', ($node // $node{p})->connstr('postgres'), '-c', $statement ], '<', \undef, '>', \$out, '2>', \$err);
	return ($done ? 0 : 1, $err, $out);
}

# ---- places ------------------------------------------------------------------------------------------------------

# For each: what makes filter f of a kind there, with keys 1 to 100; on which servers its parts are.
my %place = (
	one => { parts => [], make => sub { my ($columns, $given) = @_; return "CREATE FOREIGN TABLE f ($columns) SERVER streamfilter OPTIONS ($given)" } },
	servers => { parts => [qw(a b)], make => sub { my ($columns, $given) = @_; return "CREATE FOREIGN TABLE f ($columns) SERVER streamfilter OPTIONS (servers 'a, b', $given)" } },
	node => { parts => [], make => sub {
			my ($columns, $given) = @_;
			return "CREATE FOREIGN TABLE root ($columns) SERVER streamfilter OPTIONS ($given, seed '5');
				CREATE FOREIGN TABLE root2 ($columns) SERVER streamfilter OPTIONS ($given, seed '5');
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
	my ($code, $err) = told_by($place{$place}{make}->($columns, $given) . '; INSERT INTO f (id) SELECT generate_series(1, 100);' . ($place{$place}{after} // ''));
	return $code == 0 ? '' : $err;
}

# Which of its keys are known: "111…"; or why that cannot be asked.
my $known = q{SELECT string_agg(streamfilter_test('f', i)::int::text, '' ORDER BY i) FROM generate_series(1, 100) i};
sub known_now { my ($code, $err, $out) = told_by($known); return $code == 0 ? $out : $err; }

# Options of f, and those of its parts.
my $options = q{SELECT string_agg(format('%s: %s %s', c.oid::regclass, c.relowner::regrole, t.ftoptions), chr(10) ORDER BY relname)
	FROM pg_class c JOIN pg_foreign_table t ON t.ftrelid = c.oid};
sub catalog { my ($place) = @_; return join "\n", map { $node{$_}->safe_psql('postgres', $options) } 'p', @{ $place{$place}{parts} }; }

# Does an error say what to do? Of what PostgreSQL itself raises, the message is what it is.
my $own = join '|', 'syntax error', 'is not a (?:table|view)', 'does not exist', 'cannot be changed (?:now|without restarting)', 'permission denied',
  'must be owner', 'in a read-only transaction', 'during recovery', 'cannot run inside a transaction block', 'not supported for foreign tables',
  'provided more than once', 'current database cannot be renamed', 'is not a member of extension', 'option "\w+" not found', 'cannot use 2PC', 'are distributed from the coordinator';
sub helps { my ($err) = @_; return $err =~ /HINT:/ || $err =~ /$own/; }

# Runs a statement on filter f of a place. It fails, helps, and has changed nothing; or it acts, says what was lost, and the
# filter goes on: in a new session, and for another producer, which is told otherwise. Returns whether it acted.
sub tried
{
	my ($place, $statement, %then) = @_;
	my ($before, $told) = (catalog($place), known_now());
	my ($code, $err) = told_by($statement, undef, %{ $then{with} // {} });
	my $what = "$place: $statement";
	if ($code != 0)
	{
		ok(helps($err), "$what fails, and says what to do") or diag($err);
		is(catalog($place), $before, "... and alters nothing") if !$then{alone};
		is(known_now(), $told, "... nor what is known");
		return 0;
	}
	# What has come from a node is known to its root as well.
	for my $check ($place eq 'node' && $then{root_knows} ? () : @{ $then{check} // [] })
	{
		my ($query, $wanted, $of) = @$check;
		for my $on ($of eq 'parts' ? @{ $place{$place}{parts} } : 'p')
		{
			my ($failed, $why, $found) = told_by($query, $node{$on});
			ok($failed ? $why =~ /HINT:/ : $found eq $wanted || $then{elsewhere} && $why =~ /WARNING:  server "a" is lost/, "$what: on $on") or diag("$found\n$why");
		}
	}
	ok($err =~ $then{says}, "$what: what it does not do there, it says") or diag($err) if $then{says} && @{ $place{$place}{parts} };
	return 1 if $then{gone};
	my $now = known_now();
	ok(!$then{knows} || $now eq $told, "$what: it keeps every key") or diag($now);
	ok($now eq $told || $err =~ /NOTICE|WARNING/ || $then{loses}, "$what: what was known is known, or it says so") or diag("$told\n$now\n$err");
	($code, $err) = told_by('INSERT INTO f (id) SELECT generate_series(90, 110)');
	ok($code == 0 || helps($err), "$what: the filter goes on") or diag($err);
	return 1 unless @{ $place{$place}{parts} } && !$then{here};
	($code, $err) = told_by($known, $node{q});
	ok($code == 0 || helps($err), "$what: another producer goes on, or is told what to do") or diag($err);
	return 1;
}

# A second producer that knows the filter as it was made.
sub other_producer
{
	my ($place, $columns, $given) = @_;
	return unless @{ $place{$place}{parts} };
	$node{q}->safe_psql('postgres', 'SET client_min_messages = error; ' . $place{$place}{make}->($columns, $given) . '; '
		. q{SELECT streamfilter_test('f', 1)});
	return;
}

# ---- what can be typed ---------------------------------------------------------------------------------------------

my $part = q{SELECT count(*) FROM pg_class WHERE relkind = 'f' AND relname ~ '^f(/|$)'};
my $none = q{SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_test('f', i)};

# A table with a trigger; the same, and the filter, of a role of its own. Rows that the trigger then stores.
my $table = q{CREATE TABLE kept (id int); CREATE TRIGGER zz BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('f')};
my $granted = q{SELECT format('GRANT SELECT, INSERT ON %s TO owner, heir', oid::regclass) FROM pg_class WHERE relkind = 'f' \gexec
	SELECT format('GRANT USAGE ON FOREIGN SERVER %I TO owner, heir', srvname) FROM pg_foreign_server \gexec
	GRANT CREATE, USAGE ON SCHEMA public TO owner, heir, keeper;};
my $owned = "$table; $granted ALTER FOREIGN TABLE f OWNER TO owner; ALTER TABLE kept OWNER TO owner";
my $kept = 'DROP TABLE IF EXISTS kept';
my $mapped = q{SELECT format('CREATE USER MAPPING IF NOT EXISTS FOR owner SERVER %I OPTIONS (user %L, password_required %L)', srvname, current_user, 'false')
	FROM pg_foreign_server WHERE srvname <> 'streamfilter' \gexec
	};
my $owners = q{SELECT string_agg(relowner::regrole::text, ' ') FROM pg_class WHERE relname IN ('f', 'kept')};
my $stores = q{INSERT INTO kept VALUES (1), (500); SELECT string_agg(id::text, ' ' ORDER BY id) FROM kept};

# Statements, as the documents name them: what is true afterwards. setup: run before; undo: after; of: not everywhere.
my %statements = (
	'TRUNCATE f' => { loses => 1, root_knows => 1, check => [ [ $none, 0, 'p' ] ] },
	'DELETE FROM f WHERE id = 7' => { loses => 1, root_knows => 1, check => [ [ q{SELECT streamfilter_test('f', 7)}, 'f', 'p' ] ] },
	'DROP FOREIGN TABLE f' => { gone => 1, check => [ [ $part, 0, 'parts' ], [ $part, 0, 'p' ] ] },
	'DROP SCHEMA public CASCADE; CREATE SCHEMA public' => { skip => 'the extension is there' },
	'ALTER FOREIGN TABLE f RENAME TO g' => { gone => 1, check => [ [ $part, 0, 'parts' ], [ $none =~ s/'f'/'g'/r, 100, 'p' ] ] },
	'ALTER FOREIGN TABLE f RENAME COLUMN id TO key' => { gone => 1, check => [ [ $none, 100, 'p' ] ] },
	'ALTER FOREIGN TABLE f SET SCHEMA later' => { gone => 1, check => [ [ $none =~ s/'f'/'later.f'/r, 100, 'p' ] ] },
	'ALTER FOREIGN TABLE f OWNER TO keeper' => { gone => 1, says => qr/HINT:.*CREATE USER MAPPING FOR keeper/ },
	'ALTER FOREIGN TABLE f OWNER TO heir' => { setup => $granted, here => 1, knows => 1 },
	'ALTER FOREIGN TABLE f ADD COLUMN more int' => {},
	'ALTER FOREIGN TABLE f ALTER COLUMN id TYPE text' => { gone => 1 },
	'ALTER FOREIGN TABLE f DROP COLUMN id' => {},
	q{ALTER FOREIGN TABLE f ALTER COLUMN id OPTIONS (ADD role 'time')} => {},
	'GRANT SELECT, INSERT ON f TO reader' => { here => 1, check => [ [ q{SELECT has_table_privilege('reader', 'f', 'SELECT')}, 't', 'p' ] ] },
	'REVOKE ALL ON f FROM reader' => { here => 1 },
	'COMMENT ON FOREIGN TABLE f IS $$x$$' => { here => 1 },
	'REASSIGN OWNED BY owner TO heir' => { setup => $owned, undo => $kept, here => 1, knows => 1, check => [ [ $owners, 'heir heir', 'p' ], [ $stores, '500', 'p' ] ] },
	'REASSIGN OWNED BY owner TO keeper' => { setup => $owned, undo => $kept, gone => 1, says => qr/WARNING:.*HINT:.*keeper/s, check => [ [ $owners, 'keeper keeper', 'p' ] ] },
	'DROP OWNED BY owner' => { setup => $owned, undo => $mapped . $kept, gone => 1, says => qr/WARNING:.*dropped here only.*HINT:.*DROP FOREIGN TABLE/s,
		check => [ [ $part, 0, 'p' ], [ q{SELECT to_regclass('kept') IS NULL}, 't', 'p' ] ] },
	'BEGIN; DROP OWNED BY owner; ROLLBACK' => { setup => $owned, undo => $kept, knows => 1, here => 1 },
	'DROP SCHEMA later CASCADE' => { setup => 'ALTER FOREIGN TABLE f SET SCHEMA later', undo => 'CREATE SCHEMA IF NOT EXISTS later', lost => 1, gone => 1, check => [ [ $part, 0, 'parts' ], [ $part, 0, 'p' ] ] },
	'ALTER TABLE kept DISABLE TRIGGER zz' => { setup => $table, undo => $kept, knows => 1, here => 1, check => [ [ $stores, '1 500', 'p' ] ] },
	'ALTER TABLE kept DISABLE TRIGGER ALL; ALTER TABLE kept ENABLE TRIGGER zz' => { setup => $table, undo => $kept, knows => 1, here => 1, check => [ [ $stores, '500', 'p' ] ] },
	'ALTER TABLE kept ENABLE ALWAYS TRIGGER zz' => { setup => $table, undo => $kept, knows => 1, here => 1, check => [ [ $stores, '500', 'p' ] ] },
	'ALTER TABLE kept ENABLE REPLICA TRIGGER zz' => { setup => $table, undo => $kept, knows => 1, here => 1, check => [ [ $stores, '1 500', 'p' ] ] },
	'ALTER TRIGGER zz ON kept RENAME TO zy' => { setup => $table, undo => $kept, knows => 1, here => 1, check => [ [ $stores, '500', 'p' ] ] },
	q{CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('f', 'id')} => { setup => $table, undo => $kept, knows => 1, here => 1, check => [ [ $stores, '500', 'p' ] ] },
	'DROP TRIGGER zz ON kept' => { setup => $table, undo => $kept, knows => 1, here => 1, check => [ [ $stores, '1 500', 'p' ] ] },
	'DROP TABLE kept' => { setup => $table, undo => $kept, knows => 1, here => 1 },
	'ALTER EXTENSION streamfilter UPDATE' => { knows => 1 },
	'ALTER EXTENSION streamfilter SET SCHEMA later; ALTER EXTENSION streamfilter SET SCHEMA public' => { knows => 1 },
	'ALTER EXTENSION streamfilter SET SCHEMA later' => { gone => 1, undo => 'ALTER EXTENSION streamfilter SET SCHEMA public', check => [ [ $known =~ s/stream/later.stream/r, '1' x 100, 'p' ] ] },
	'ALTER EXTENSION streamfilter DROP FOREIGN TABLE f' => { knows => 1 },
	'DROP EXTENSION streamfilter' => {},
	'BEGIN; DROP EXTENSION streamfilter CASCADE; ROLLBACK' => { knows => 1 },
	'ALTER DATABASE postgres RENAME TO other' => {},
	'DROP SERVER streamfilter' => {},
	'DROP SERVER streamfilter CASCADE' => {},
	'DROP SERVER a' => { of => 'servers' },
	'BEGIN; DROP SERVER a CASCADE; ROLLBACK' => { of => 'servers', knows => 1 },
	'DROP SERVER a CASCADE' => { of => 'servers', undo => [ map { server_again($_) } 'a' ], gone => 1, check => [ [ $part, 0, 'parts' ], [ $part, 0, 'p' ] ] },
	'DROP USER MAPPING FOR CURRENT_USER SERVER a' => { of => 'servers', undo => q{CREATE USER MAPPING FOR CURRENT_USER SERVER a}, gone => 1, check => [ [ $known, '1' x 100, 'p' ] ] },
	q{ALTER USER MAPPING FOR CURRENT_USER SERVER a OPTIONS (ADD user 'nobody')} => { of => 'servers', undo => q{ALTER USER MAPPING FOR CURRENT_USER SERVER a OPTIONS (DROP user)}, gone => 1,
		check => [ [ $known, '1' x 100, 'p' ] ] },
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

# What the documents say that is not about filters. ALTER DATABASE, ROLE and SYSTEM are tried with each setting below.
my %else = map { $_ => 1 } 'ALTER ROLE', 'ALTER SYSTEM', 'ALTER SUBSCRIPTION', 'ALTER PUBLICATION', 'ALTER INDEX', 'ALTER TYPE', 'ALTER VIEW', 'ALTER FUNCTION',
  'ALTER SCHEMA', 'ALTER OPERATOR', 'ALTER MATERIALIZED', 'DROP DATABASE', 'DROP FUNCTION', 'DROP SUBSCRIPTION', 'DROP INDEX', 'DROP VIEW', 'DROP COLUMN', 'DROP ROLE';

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
	streamfilter_distribute => [ q{SELECT streamfilter_distribute('f')}, {} ],
	streamfilter_adopt_triggers => [ q{SELECT streamfilter_adopt_triggers()}, {} ],
	streamfilter_seen => [ q{SELECT streamfilter_seen('f', 500)}, {} ],
	streamfilter_test => [ q{SELECT streamfilter_test('f', 1)}, {} ],
	streamfilter_definition => [ q{SELECT streamfilter_definition('f')}, {} ]);
my %not_about_filters = map { ("streamfilter_$_" => 1) } qw(add advise agg contains counters disconnect discard distinct distinct_agg distinct_count distinct_error divert
  evaluate forget hash hash_agg in info mark memory out overlap profile recv send settle slice slice_of slices_needed union union_agg);
my $of_servers = qr/^streamfilter_(?:for_nodes|hashes_(?:alter|define|erase|put|reserve|seen|take_back|test))$/;

# Settings: a value that a session gives, and what comes of it.
my %session = (
	'streamfilter.mode' => [ 'off', 'f' ], 'streamfilter.enabled' => [ 'off', 'f' ], 'streamfilter.batch_insert' => [ 'off', 't' ],
	'streamfilter.batch_scan' => [ 'off', 't' ], 'streamfilter.report' => [ 'on', 't' ], 'streamfilter.lost_rows' => [ 'warn', 't' ],
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
for my $file (glob("$root/README.md $root/docs/*.md $root/docs/reference/*.md $root/src/pg/*/*.cpp"))
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
		next if $then->{of} && $then->{of} !~ /\b$place\b/;
		is(make($place, $columns, $of), '', "$place: a filter") if $acted;
		other_producer($place, $columns, $of) if $acted;
		sql("SET client_min_messages = error; $then->{setup}") if $then->{setup};
		$acted = tried($place, $statement, %$then);
		next unless $acted || $then->{setup};
		$acted = 1;
		sql("SET client_min_messages = error; DROP FOREIGN TABLE IF EXISTS later.f CASCADE") if $then->{lost};
		sql('SET client_min_messages = error; ' . (ref $then->{undo} ? join '', @{ $then->{undo} } : $then->{undo})) if $then->{undo};
	}
	is(make($place, $columns, $of), '', "$place: a filter");
	my $key = 1000;
	for my $setting (@settings)
	{
		my ($value, $remembered) = @{ $session{$setting} };
		for my $where ('SET', 'PGOPTIONS', 'ALTER DATABASE postgres', 'ALTER ROLE CURRENT_USER')
		{
			my $insert = sprintf q{SELECT count(streamfilter_seen('f', i)) FROM generate_series(%d, %d) i}, ++$key, $key + 10;
			my $set = ($setting =~ s/(\w+)$/"$1"/r) . " = '$value'";
			my ($code, $err) = $where =~ /ALTER/ ? told_by("$where SET $set") : (0, '');
			($code, $err) = said_with($where eq 'PGOPTIONS' ? "-c $setting=$value" : '', $where eq 'SET' ? "SET $set; $insert" : $insert) if $code == 0;
			sql("$where RESET ALL") if $where =~ /ALTER/;
			my $what = "$place: $where, $setting";
			ok($code == 0 || helps($err), $what) or diag($err);
			is(knows('f', $key), $remembered, '... counts for all parts') if $code == 0;
			$key += 20;
		}
	}
}

# ---- every option -----------------------------------------------------------------------------------------------------------

# Of most kinds.
sub is_common { return $_[0] =~ /^(?:memory|keys|fpr|conflict|overfull|persistence|mode|probe|lost_slice|nulls|seed|slices)$/; }

for my $case (option_cases(sub { return scalar told_by($_[0]) }))
{
	my ($kind, $option, $with, $of, $first, $second) = @$case;
	$of =~ s/memory '64kB'/memory '256kB'/;
	my $in_tree = "$of $option" =~ /parent|tree|top_down/;
	$of =~ s/, parent 'root'//;
	for my $place ('one', 'servers', $kind eq 'bloom' || $in_tree ? 'node' : ())
	{
		my $failed = make($place, $with, $of eq '' ? q{kind 'bloom'} : $of);
		$failed = make($place, $with, "$of, slices '4'") if $failed =~ /slices|more servers/ && $of !~ /slices/;
		if ($failed) { ok(helps($failed) || $failed =~ /DETAIL/, "$place: $kind for $option cannot be there") or diag($failed); next; }
		my $has = sql("SELECT count(*) FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = 'f'::regclass AND option_name = '$option'");
		tried($place, "ALTER FOREIGN TABLE f OPTIONS (" . ($has ? 'SET' : 'ADD') . " $option '$second')", here => 1);
		tried($place, "ALTER FOREIGN TABLE f OPTIONS (DROP $option)", here => 1) if is_common($option) || $place eq 'node';
	}
}

# ---- options of servers and of user mappings, as the library's source lists them -------------------------------------------------

# Good values, or addresses where nothing is.
my %of_server = (
	memory_limit => '1GB', max_filters => '1000', connect_timeout => '9s', timeout => '50s', idle_timeout => '1min', host => 'nowhere.invalid', hostaddr => '127.0.0.1',
	port => '1', dbname => 'template1', sslmode => 'prefer', sslcertmode => 'disable', sslrootcert => '/nowhere', sslcrl => '/nowhere', sslcrldir => '/nowhere',
	sslsni => '0', sslnegotiation => 'postgres', ssl_min_protocol_version => 'TLSv1.2', ssl_max_protocol_version => 'TLSv1.3', min_protocol_version => '3.0',
	max_protocol_version => '3.0', channel_binding => 'prefer', require_auth => 'none', requirepeer => scalar getpwuid($<), gssencmode => 'disable', krbsrvname => 'x',
	target_session_attrs => 'any', load_balance_hosts => 'disable', keepalives => '1', keepalives_idle => '10', keepalives_interval => '10', keepalives_count => '3',
	tcp_user_timeout => '1000', application_name => 'x');
my %of_mapping = (user => 'nobody_there', password => 'x', password_required => 'false', sslcert => '/nowhere', sslkey => '/nowhere', sslpassword => 'x');

my $source = slurp_file("$root/src/pg/catalog/server_options.cpp");
my %known_options = map { $_ => join ' ', sort +($source =~ /^constexpr Option $_\[\] = \{$(.*?)^\};$/ms)[0] =~ /^\s+\{"(\w+)"/mg } qw(kServerOptions kUserOptions);
my ($plain) = $source =~ /^constexpr const char\* kPlain\[\] = \{(.*?)\};$/ms;
is(join(' ', sort split(/ /, $known_options{kServerOptions}), $plain =~ /"(\w+)"/g), join(' ', sort keys %of_server), 'options of servers have their lines');
is($known_options{kUserOptions}, join(' ', sort keys %of_mapping), 'options of user mappings have their lines');

for my $place (qw(one servers))
{
	is(make($place, $columns, $given), '', "$place: a filter");
	my $server = $place eq 'one' ? 'streamfilter' : 'a';
	my %at = ("SERVER $server" => \%of_server, $place eq 'one' ? () : ("USER MAPPING FOR CURRENT_USER SERVER a" => \%of_mapping));
	for my $case (map { my $of = $_; map { [ $of, $_, $at{$of}{$_} ] } sort keys %{ $at{$of} } } sort keys %at)
	{
		my ($of, $option, $value) = @$case;
		my ($list, $catalog) = $of =~ /^USER/ ? qw(umoptions pg_user_mappings) : qw(srvoptions pg_foreign_server);
		my $former = sql("SELECT option_value FROM $catalog, pg_options_to_table($list) WHERE srvname = '$server' AND option_name = '$option'" . ($of =~ /^USER/ ? ' AND usename = CURRENT_USER' : ''));
		my $elsewhere = $option =~ /^(?:host|hostaddr|port|dbname|user|ssl(?:cert|key))$/;
		my $acted = tried($place, "ALTER $of OPTIONS (" . ($former eq '' ? 'ADD' : 'SET') . " $option '$value')", here => 1, $elsewhere ? (gone => 1, elsewhere => 1, check => [ [ $known, '1' x 100, 'p' ] ]) : (knows => 1));
		next if !$acted;
		sql("ALTER $of OPTIONS (" . ($former eq '' ? "DROP $option" : "SET $option '$former'") . ')');
		ok($node{p}->poll_query_until('postgres', $known, '1' x 100), "$place: $option of $of as before: every key is known");
	}
}

my %elsewhere = (servers => q{'a, b, c'}, producer => q{'{}'}, identity => q{'1/2/3'});
is(join(' ', sort keys %elsewhere), join(' ', options_elsewhere()), 'options of filters elsewhere have their lines');
for my $place (qw(one servers))
{
	for my $option (sort keys %elsewhere)
	{
		is(make($place, $columns, $given), '', "$place: a filter");
		my $has = sql("SELECT count(*) FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = 'f'::regclass AND option_name = '$option'");
		tried($place, "ALTER FOREIGN TABLE f OPTIONS (" . ($has ? 'SET' : 'ADD') . " $option $elsewhere{$option})", here => 1);
	}
}

# ---- dump and restore, import, a standby ----------------------------------------------------------------------------------------

for my $place (qw(one servers))
{
	is(make($place, $columns, $given), '', "$place: a filter");
	sql("$table; INSERT INTO kept SELECT generate_series(101, 120)");
	for my $options ([ [] ], [ map { ["--section=$_"] } qw(pre-data data post-data) ], [ ['--schema-only'], ['--data-only'] ])
	{
		my $dump = PostgreSQL::Test::Utils::tempdir() . "/$place.sql";
		sql('DROP DATABASE restored');
		sql('CREATE DATABASE restored');
		for my $part (@$options)
		{
			$node{p}->command_ok([ 'pg_dump', @$part, '-d', $node{p}->connstr('postgres'), '-f', $dump ], "$place: pg_dump @$part");
			local $ENV{PGOPTIONS} = "@$part" =~ /data-only/ ? '-c streamfilter.mode=shadow' : '';    # as the documents say
			$node{p}->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node{p}->connstr('restored'), '-f', $dump ], '... is restored');
		}
		is(sql('SELECT count(*) FROM kept', 'restored'), 20, '... with every row');
		my ($code, $out, $err) = $node{p}->psql('restored', $known);
		ok($code == 0 || helps($err), '... and the filter goes on') or diag($err);
		is($out, $place eq 'one' ? '0' x 100 : '1' x 100, '... with what is known there') if $code == 0;
		is(sql(q{SELECT tgenabled FROM pg_trigger WHERE tgname = 'zz'}, 'restored'), 'O', '... and its trigger');
	}
	sql($kept);
	next if $place eq 'one';
	sql('SET client_min_messages = error; IMPORT FOREIGN SCHEMA public LIMIT TO (f) FROM SERVER a INTO public', $node{q});
	my ($failed, $why, $found) = told_by($known, $node{q});
	ok($failed ? $why =~ /HINT:/ : $found eq '1' x 100, "$place: IMPORT FOREIGN SCHEMA") or diag("$found\n$why");
}

is(make('one', $columns, $given), '', 'standby: a filter');
$node{p}->wait_for_catchup($standby, 'replay', $node{p}->lsn('insert'));
my $as_before = sql($known, $standby);
for my $statement ((sort grep { !$statements{$_}{skip} } keys %statements), map { $functions{$_}[0] } sort keys %functions)
{
	my ($code, $err) = told_by($statement, $standby);
	ok($code == 0 || helps($err), "standby: $statement") or diag($err);
}
is(sql($known, $standby), $as_before, 'standby: nothing has changed');

# ---- Citus ---------------------------------------------------------------------------------------------------------------------

SKIP:
{
	skip 'Citus is not installed', 1 if sql(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'}) eq '0';
	require CitusCluster;
	my $citus = CitusCluster->new(workers => 2);
	$citus->query('CREATE ROLE keeper; CREATE ROLE reader; CREATE ROLE owner; CREATE ROLE heir; CREATE SCHEMA later');
	my @where = qw(coordinator worker);

	# What every node has: definitions, rights, and which keys are known.
	my $here = 'SET citus.enable_ddl_propagation = off; SET search_path = public, later;';
	my $state = $here . q{SELECT format('%s.%s %s %s %s %s', c.relnamespace::regnamespace, c.relname, c.relowner::regrole, c.relacl, t.ftoptions, obj_description(c.oid)),
			(SELECT string_agg(format('%s %s %s', a.attname, a.atttypid::regtype, a.attacl), ' ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0)
			FROM pg_class c JOIN pg_foreign_table t ON t.ftrelid = c.oid;
		SELECT srvoptions FROM pg_foreign_server WHERE srvname = 'streamfilter';
		SELECT extversion, extnamespace::regnamespace FROM pg_extension WHERE extname = 'streamfilter';
		SELECT relowner::regrole, tgname, tgenabled, tgfoid::regproc, tgargs FROM pg_class c LEFT JOIN pg_trigger ON tgrelid = c.oid AND tgname !~ '^truncate' WHERE relname = 'kept' ORDER BY tgname;
		SELECT string_agg(streamfilter_test(c.oid, i)::int::text, '' ORDER BY i) FROM pg_class c, generate_series(1, 210) i WHERE relkind = 'f'};
	my $states = sub { return map { my ($code, $err, $out) = told_by($state, $citus->node($_)); "$out$err" } 0 .. 2 };
	my $new = sub {
		my ($with, $of) = @_;
		$citus->everywhere("DROP FOREIGN TABLE IF EXISTS $_ CASCADE") foreach qw(f g later.f);
		my ($code, $err) = told_by("CREATE FOREIGN TABLE f ($with) SERVER streamfilter OPTIONS ($of)", $citus->coordinator);
		return $err if $code != 0;
		$citus->query(q{SELECT streamfilter_distribute('f')});
		$citus->everywhere('INSERT INTO f (id) SELECT generate_series(1, 100)');
		return '';
	};
	# On one of the nodes. Returns whether it acted.
	my $runs = sub {
		my ($number, $statement, $approximate) = @_;
		my @before = $states->();
		my ($code, $err) = told_by($statement, $citus->node($number));
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
		for my $case ((map { [ $_, $statements{$_} ] } sort grep { !$statements{$_}{skip} && !$statements{$_}{of} } keys %statements), map { $functions{$_} } sort keys %functions)
		{
			my ($statement, $then) = @$case;
			is($new->($columns, $given), '', 'a filter on Citus') if $acted;
			$citus->query($then->{setup} =~ s/(TABLE kept \(id int\);)/$1 SELECT create_distributed_table('kept', 'id');/r) if $then->{setup};
			$acted = $runs->($number, $statement);
			next unless $acted || $then->{setup};
			for my $check ($acted && $then->{setup} ? grep { $_->[0] eq $stores } @{ $then->{check} // [] } : ()) { is($citus->query($stores), $check->[1], '... for rows, too'); }
			$citus->query($then->{undo}) if $then->{undo};
			$acted = 1;
		}
	}
	for my $case (map { [ $_, $of_server{$_} ] } sort keys %of_server)
	{
		my ($option, $value) = @$case;
		for my $number (0, 1)
		{
			$new->($columns, $given);
			$citus->query("ALTER SERVER streamfilter OPTIONS (DROP $option)") if $runs->($number, "ALTER SERVER streamfilter OPTIONS (ADD $option '$value')");
		}
	}
	for my $case (option_cases(sub { return scalar told_by($_[0]) }))
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
		my $load = 'INSERT INTO events SELECT generate_series(1, ' . ($last + 1) . ')';
		my ($code, $err) = said_with($session ? "-c $setting=$session{$setting}[0]" : '', $session ? $load : "SET $setting = '$session{$setting}[0]'; $load", $citus->node($number));
		my $what = "$where[$number]: " . ($session ? "PGOPTIONS of $setting" : "SET $setting");
		ok($code == 0 ? $setting =~ /batch_scan/ || $err =~ /NOTICE:.*HINT:/s : helps($err), "$what counts there, or says what to do") or diag($err);
		++$last if $code == 0;
		is($citus->query('SELECT count(*) FROM events'), $last - 100, '... and no row is lost, none stored twice');
	}
}

done_testing();
