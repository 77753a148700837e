# Every function, operator, aggregate, type and view of the extension, as the catalog lists them, with NULLs, empty and
# huge values and the ends of every type: by their owner, by the owner of a filter and by a role without any right. Nothing
# crashes, nothing is an internal error (XX000), nothing takes long, and no message is badly encoded.
use Sf;
use IPC::Run;

my $seed = $ENV{STREAMFILTER_SEED} // 7;
srand($seed);
my $most = $ENV{STREAMFILTER_CALLS} // 80;    # calls of one function by one role

my $node = start_node('functions', q{
streamfilter.shared_memory = '64MB'
max_prepared_transactions = 2
statement_timeout = '30s'
lock_timeout = '5s'
log_min_messages = warning
fsync = off
});
sql(q{
CREATE ROLE nobody LOGIN;
CREATE ROLE somebody LOGIN;
GRANT USAGE ON FOREIGN SERVER streamfilter TO somebody;
GRANT CREATE ON SCHEMA public TO somebody;
CREATE TABLE plain (a int, b text, gone int);
ALTER TABLE plain DROP gone;
CREATE INDEX plain_a ON plain (a);
CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0);
CREATE TABLE parted (a int) PARTITION BY LIST (a);
CREATE FOREIGN TABLE of_owner (a int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB');
SET ROLE somebody;
CREATE FOREIGN TABLE f (a int) SERVER streamfilter OPTIONS (memory '64kB');
CREATE FOREIGN TABLE g (a text, b numeric) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', nulls 'not distinct');
CREATE FOREIGN TABLE timed (a int, w float8 OPTIONS (role 'importance'), t timestamptz OPTIONS (role 'time'))
  SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', window '10 minutes', importance_range '0,10');
CREATE FOREIGN TABLE sliced (a int) SERVER streamfilter
  OPTIONS (kind 'bloom', memory '64kB', k '4', slices '4', slicing 'vertical', persistence 'unlogged');
CREATE FOREIGN TABLE root (a int) SERVER streamfilter OPTIONS (kind 'bloom', k '3', memory '64kB', seed '1');
CREATE FOREIGN TABLE leaf (a int) SERVER streamfilter
  OPTIONS (kind 'bloom', k '3', memory '64kB', parent 'root', tree 'sparse', seed '1');
INSERT INTO f VALUES (1), (2);
INSERT INTO g VALUES ('x', 1.5);});

# ---- values of every type -------------------------------------------------------------------------------------------

my $filled = sql(q{SELECT quote_literal(streamfilter_agg(i, 'sbf(memory=1kB)')::text) FROM generate_series(1, 50) i});
my @filters = (
	'NULL::streamfilter', q{'sbf(memory=1kB)'::streamfilter}, q{'lru(memory=1kB)'::streamfilter}, "$filled\::streamfilter",
	q{'bloom(memory=1kB, k=1)'::streamfilter}, q{'timer(memory=2kB, window=10 minutes, k=2)'::streamfilter},
	q{'clq(memory=1kB, importance_range="0,10", window="5 rows")'::streamfilter},
	q{'sqf(memory=1kB, fingerprint=integer, keys=100)'::streamfilter}, q{'dsqf(memory=1kB)'::streamfilter},
	q{'bloom(memory=2kB, k=4, slices=4, slicing=vertical)'::streamfilter}, q{'sbf(memory=1MB)'::streamfilter});
my @relations = (qw(f g timed sliced root leaf of_owner plain plain_a parted streamfilter_stats _streamfilter.streamfilter_log pg_class
  mood_missing));
my %values = (
	'text' => [
		'NULL', "''", "'x'", "'SELECT 1'", "'SELECT 1, 2.0, now()'", "'SELECT a FROM f'", "'SELECT 1/0'", "'DELETE FROM plain'",
		q{$$SELECT i, v::float8 FROM unnest('{inf,-inf,nan,1e308,0}'::text[]) WITH ORDINALITY u(v, i)$$},
		q{$$SELECT NULL::int, NULL::float8, 'infinity'::timestamptz FROM generate_series(1, 3)$$},
		"'sbf(memory=1kB)'", "'clq(                    importance_range=\"0,1\")'", "'public'", "'f'", "'64kB'", "'importance'",
		"'lag'", "'position'", "'wait'", "'logged'", "repeat('x', 100000)", "repeat('я', 1000)", "E'\\001\\n'",
		q{'SELECT * FROM streamfilter_evaluate(''SELECT 1'', ''{sbf(memory=1kB)}'')'} ],
	'text[]' => [
		'NULL', "'{}'", "'{NULL}'", "'{kind=sbf}'", "'{memory=64kB,memory=64kB}'", "'{a}'", "'{a,b}'", "'{{a,b},{c,d}}'",
		"'[5:6]={kind=lru,fpr=nan}'", "array_fill('kind=sbf'::text, '{10000}')", "ARRAY['servers=f,g']", "ARRAY[repeat('я', 500)]" ],
	'streamfilter' => \@filters,
	'streamfilter[]' => [
		'NULL', "'{}'", "'{NULL}'", "'{sbf(memory=1kB)}'", "'{{sbf(memory=1kB)},{lru(memory=1kB)}}'",
		q{array_fill('sbf(memory=1kB)'::streamfilter, '{64}')}, q{array_fill('sbf(memory=1kB)'::streamfilter, '{65}')},
		"ARRAY[" . join(', ', @filters[1 .. 9]) . "]" ],
	'regclass' => [ 'NULL', '0::regclass', '4294967295::regclass', map { "to_regclass('$_')" } @relations ],
	'oid' => [ 'NULL', '0::oid', '4294967295::oid', map { "to_regclass('$_')::oid" } @relations, 'pg_foreign_table', 'pg_foreign_server',
		'pg_user_mapping', 'pg_attribute', 'pg_foreign_data_wrapper' ],
	'integer' => [ 'NULL', 0, 1, -1, 3, 64, 2147483647, '(-2147483648)::int' ],
	'bigint' => [ 'NULL', 0, 1, -1, '9223372036854775807', '(-9223372036854775808)::bigint' ],
	'double precision' => [ 'NULL', 0, 1, -1, 0.5, "'inf'", "'-inf'", "'nan'", '1e308', '-1e308', '5e-324', '1e15' ],
	'bigint[]' => [ 'NULL', "'{}'", "'{1}'", "'{NULL}'", "'{1,2,3}'", "'{{1,2},{3,4}}'", "'[0:1]={9223372036854775807,-9223372036854775808}'",
		"array_fill(7::bigint, '{5000}')" ],
	'double precision[]' => [ 'NULL', "'{}'", "'{1}'", "'{NULL}'", "'{inf,-inf,nan}'", "'{{1,2},{3,4}}'", "'{1e308,0,-1e308}'" ],
	'bytea' => [ 'NULL', "''", "'\\x00'", "'\\x'::bytea || decode(repeat('ff', 600), 'hex')", "streamfilter_send('sbf(memory=1kB)')",
		"substr(streamfilter_send('sbf(memory=1kB)'), 1, 700)", "streamfilter_send('lru(memory=1kB)') || '\\x00'",
		"streamfilter_export('sliced', 0)", "substr(streamfilter_export('f', 0), 1, 100)" ],
	'cstring' => [ 'NULL', "''::cstring", "'x'::cstring", "'sbf(memory=1kB)'::cstring", "repeat('(', 10000)::cstring",
		"'sbf(memory=1kB):1:AAAA'::cstring" ],
	'anyelement' => [ 'NULL::plain', 'NULL::int', 'NULL::f', 'NULL::pg_class', 'NULL::text', "ROW(1, 'x')::plain", 'NULL::mood' ],
	'"any"' => [
		'NULL', 'NULL::text', '1', '9223372036854775807', "'lit'", "'x'::text", '1.5', "'nan'::numeric", "'inf'::float8",
		"'infinity'::timestamptz", "'-infinity'::date", "'(1,2)'::point", "ROW(1, 'a', NULL)", 'ROW()', "ROW(ROW(1), ARRAY[1])",
		'ARRAY[1,NULL]', "'{}'::int[]", "'{}'::json", "'{\"a\":[1]}'::jsonb", "repeat('x', 1000000)", "''::bytea", "B''", "B'0101'",
		"'[1,2)'::int4range", "'glad'::mood", '2::even', "'x'::cstring", "'x'::\"char\"", "'1 2'::oidvector", "'x'::name",
		"NULL::plain", "ROW(1, 'x')::plain", "'1'::xid", "'(0,1)'::tid", "'12:34'::timetz", "'1 day'::interval", "'a'::char(300)",
		"'::1'::inet", "'f'::regclass", "'sbf(memory=1kB)'::streamfilter", "array_fill(1, '{100,100}')", "to_tsvector('a b')",
		"gen_random_uuid()", "'1'::money", "'x' COLLATE \"C\"" ],
	'boolean' => [ 'NULL', 'true', 'false' ],
	'timestamp with time zone' => [ 'NULL', 'now()', "'infinity'::timestamptz", "'-infinity'::timestamptz" ],
	'internal' => ['NULL'],
);

# ---- calls ----------------------------------------------------------------------------------------------------------

# All combinations of the values of some types if they are few, else as many random ones.
sub combinations
{
	my ($count, @types) = @_;
	my @lists = map { $values{$_} // BAIL_OUT("no values of type $_") } @types;
	my $all = 1;
	$all *= @$_ for @lists;
	if ($all <= $count)
	{
		my @result = ([]);
		for my $list (@lists) { @result = map { my $before = $_; map { [ @$before, $_ ] } @$list } @result; }
		return @result;
	}
	# Every value of every argument at least once, beside random ones and, half of the time, a harmless one.
	my @result;
	for my $i (0 .. $count - 1)
	{
		push @result, [ map { $i < @$_ ? $_->[$i] : rand() < 0.5 ? $_->[ 1 % @$_ ] : $_->[ rand @$_ ] } @lists ];
		@{ $result[-1] } = map { $i % 3 == 0 || rand() < 0.6 ? $result[-1][$_] : $lists[$_][ rand @{ $lists[$_] } ] } 0 .. $#lists;
	}
	return @result;
}

# [name, kind, returns a set, type of result, variadic, types of arguments…]
my @functions = map { [ split /\t/ ] } split /\n/, sql(q{
SELECT concat_ws(E'\t', p.oid::regproc, p.prokind, p.proretset::int, p.prorettype::regtype, (p.provariadic <> 0)::int,
                 (SELECT string_agg(t::regtype::text, E'\t' ORDER BY n) FROM unnest(p.proargtypes) WITH ORDINALITY a(t, n)))
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'streamfilter' ORDER BY p.oid});
my %known = map { $_->[0] => 1 } @functions;
cmp_ok(scalar keys %known, '>', 50, 'the catalog lists the functions');

sub calls_of
{
	my ($name, $kind, $set, $result, $variadic, @types) = @{ $_[0] };
	my @calls;
	for my $arguments (combinations($most, @types))
	{
		push @calls, join ', ', @$arguments;
		next unless $variadic;
		my @any = @{ $values{'"any"'} };
		my $last = pop @$arguments;
		push @calls, join(', ', @$arguments), join(', ', @$arguments, map { $any[ rand @any ] } 1 .. 1 + rand 4),
		  join(', ', @$arguments, 'VARIADIC ' . (rand() < 0.5 ? 'ARRAY[1]' : 'NULL::int[]'));
	}
	@calls = @calls[ map { int rand @calls } 1 .. $most ] if @calls > 2 * $most;
	if ($kind eq 'a')
	{
		my @forms = (
			'SELECT %s', 'SELECT %s FROM generate_series(1, 5)', 'SELECT %s FROM plain', 'SELECT %s FILTER (WHERE false)',
			'SELECT %s OVER () FROM generate_series(1, 3)', 'SELECT %s FROM generate_series(1, 9) i GROUP BY i %% 2');
		my $i = 0;
		return map { sprintf $forms[ $i++ % @forms ], "$name($_)" } @calls;
	}
	return map { "CALL $name($_)" } @calls if $kind eq 'p';
	my @statements = map { "SELECT $name($_)" } @calls;
	push @statements, map { "SELECT * FROM $name($_) LIMIT 3" } @calls[ 0 .. ($#calls < 40 ? $#calls : 40) ] if $result eq 'record' || $set;
	return @statements;
}

my @operators = map { [ split /\t/ ] } split /\n/, sql(q{
SELECT concat_ws(E'\t', 'OPERATOR(' || n.nspname || '.' || o.oprname || ')', o.oprleft::regtype, o.oprright::regtype)
FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
JOIN pg_depend d ON d.classid = 'pg_operator'::regclass AND d.objid = o.oid AND d.deptype = 'e' ORDER BY o.oid});
cmp_ok(scalar @operators, '>=', 2, 'the catalog lists the operators');

my @types = split /\n/, sql(q{
SELECT t.oid::regtype FROM pg_type t JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
WHERE t.typtype = 'b' AND t.typelem = 0});
my @views = split /\n/, sql(q{
SELECT c.oid::regclass FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'});

# Readings of a type: texts of every length, broken in every way, and what other types cast to it.
sub readings
{
	my ($type) = @_;
	my @texts = map { "repeat('$_', 20000)" } 'x', '(', ',', ' ', 'я', '1';
	for my $text ($filled, "'sbf(memory=1kB, max=3)'", "'timer(window=''10 minutes'', k=2)'")
	{
		push @texts, map { "left($text, $_)" } map { int rand 60 } 1 .. 20;
		push @texts, map { "overlay($text placing '$_' from " . int(1 + rand 50) . ' for 1)' } 'я', ':', '=', ')', '0', '(';
	}
	return ((map { "SELECT ($_)::$type" } @texts), (map { "SELECT ($_)::text::$type" } @{ $values{'"any"'} }),
		(map { "SELECT ($_)::$type" } @{ $values{'"any"'} }), "SELECT 'sbf(memory=1kB)'::$type(1)");
}

# ---- what they answer -----------------------------------------------------------------------------------------------

sub is_utf8 { my $copy = shift; return utf8::decode($copy) }

# Runs statements one by one and returns those that went wrong, each with its message.
sub run_statements
{
	my ($role, @statements) = @_;
	my $file = $node->basedir . '/statements.sql';
	open my $out, '>:raw', $file or die "$file: $!";
	print $out map { s/\n/ /gr . ";\n" } @statements;
	close $out;
	my ($rows, $messages) = ('', '');
	IPC::Run::run([ 'psql', '-X', '-q', '-v', 'VERBOSITY=verbose', '-v', 'ON_ERROR_STOP=0', '-f', $file, '-o', '/dev/null',
			'-d', $node->connstr('postgres') . " user=$role client_encoding=UTF8" ], '<', \'', '>', \$rows, '2>', \$messages);
	my @bad;
	for my $message (split /^psql:\Q$file\E:/m, $messages)
	{
		next unless $message =~ /^(\d+): /;
		my $line = $1;
		my $is_bad = $message =~ /(?:ERROR|FATAL|PANIC|WARNING):\s+(?:XX|57)/ || $message =~ /server closed the connection|connection to server was lost/ || !is_utf8($message);
		push @bad, substr($statements[ $line - 1 ], 0, 300) . "\n  " . substr($message, 0, 300) if $is_bad;
	}
	my $errors = () = $messages =~ /ERROR:/g;
	return (\@bad, $errors);
}

sub ok_statements
{
	my ($what, $role, @statements) = @_;
	my ($bad, $errors) = run_statements($role, @statements);
	is(scalar @$bad, 0, sprintf '%s, %s: %d calls, %d errors', $what, $role, scalar @statements, $errors)
	  or diag(join "\n", @$bad[ 0 .. ($#$bad < 4 ? $#$bad : 4) ]);
	if (sql('SELECT pg_postmaster_start_time()') && slurp_file($node->logfile) =~ /terminated by signal \d+/)
	{
		BAIL_OUT("$what, $role: the server crashed");
	}
}

my $owner = sql('SELECT current_user');
for my $role ('nobody', 'somebody', $owner)
{
	ok_statements($_->[0], $role, calls_of($_)) for @functions;
	for my $operator (@operators)
	{
		my ($name, @types) = @$operator;
		my @operands = grep { $_ ne '-' } @types;    # of a prefix operator, the left one
		ok_statements($name, $role, map { 'SELECT ' . (@operands > 1 ? "($_->[0]) " : '') . "$name ($_->[-1])" } combinations($most, @operands));
	}
	ok_statements("type $_", $role, readings($_)) for @types;
	ok_statements("relation $_", $role, "TABLE $_", "SELECT count(*) FROM $_") for @views;
}

# Inside of a transaction that has used filters, and of one that is read-only.
my @some = map { my @calls = calls_of($_); @calls[ map { int rand @calls } 1 .. 8 ] } @functions;
ok_statements('in transactions', 'somebody',
	map { ('BEGIN', 'INSERT INTO f VALUES (3)', 'SAVEPOINT s', $_, 'ROLLBACK TO s', 'TRUNCATE g', $_, 'ROLLBACK') } @some);
ok_statements('read-only', 'somebody', map { ('BEGIN READ ONLY', $_, 'COMMIT') } @some);

is(sql('SELECT streamfilter_test(\'f\', 1)'), 't', 'a filter knows what it knew');

done();
