# Filters that are built outside of the server, with libstreamfilter: equal to the last bit with what the server makes
# from the same keys, taken by COPY and by streamfilter_merge().
use Sf;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $builder = "$dir/build_filter";

sub config { my ($option) = @_; my $value = `$ENV{PG_CONFIG} --$option`; chomp $value; return $value }
$ENV{PG_CONFIG} //= 'pg_config';

# As a program outside would do it: with what `make install` has left beside libpq.
my @compile = (
	'cc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-I' . config('includedir'), '-o', $builder,
	'test/capi/build_filter.c', config('libdir') . '/libstreamfilter.a', '-lstdc++', '-lm');
IPC::Run::run(\@compile) or BAIL_OUT("cannot compile: @compile");

# The bytes of a filter of these rows, by the C library.
sub built
{
	my ($definition, $types, $rows, $form) = @_;
	my ($bytes, $errors);
	IPC::Run::run([ $builder, $definition, $types, $form // 'text' ], '<', \$rows, '>', \$bytes, '2>', \$errors)
	  or return "build_filter: $errors";
	return $bytes;
}

my $node = start_node('server', '', extra => [ '--encoding=UTF8', '--locale=C' ]);

# ---- every kind

sql(q{
	CREATE TABLE events AS
	SELECT n, (n * 7919 % 1500)::int AS id, 'name ' || n * 104729 % 13 AS name, (n % 100)::float8 AS importance,
	  timestamptz '2024-01-01 00:00Z' + n * interval '1 second' AS at
	FROM generate_series(1, 3000) n;
	CREATE TABLE received (filter streamfilter);});

my $rows = sql(q{COPY (SELECT id, name FROM events ORDER BY n) TO STDOUT});
my $numbers = sql(q{COPY (SELECT id FROM events ORDER BY n) TO STDOUT});
$_ .= "\n" for $rows, $numbers;

my @definitions = (
	'bloom(memory=16kB, keys=1000)', 'bloom(memory=16kB, keys=1000, layout=blocked, seed=18446744073709551615)',
	'bloom(memory=64kB, k=4, slicing=vertical, slices=4)', q{bloom(memory=64kB, k=4, slicing=diced, slices='4,2')},
	'bloom(memory=64kB, k1=2, k2=3, slices=8)', 'bloom(memory=64kB, k=3, grow=density)',
	'sbf(memory=16kB)', 'sbf(memory=16kB, layout=blocked, slices=3)',
	'bsbf(memory=16kB, k=2)', 'bsbfsd(memory=16kB, k=2)', 'rlbsbf(memory=16kB, k=2)',
	'sqf(memory=16kB)', 'dsqf(memory=16kB)',
	'ibf2c(memory=16kB)', 'ibfmc(memory=16kB)', 'ibfh(memory=16kB)',
	q{timer(memory=64kB, window='500 rows', seed=3)}, q{timer(memory=64kB, window='500 rows', k=3, grow=density)},
	'lru(memory=32kB)', 'lru(memory=32kB, policy=clock)', 'fplru(memory=32kB)',
	'clq(memory=16kB)', 'clq(memory=16kB, policy=fifo, seed=9)', 'ell(memory=16kB)',
	'auto(keys=1000, nulls=not distinct)');

# And of every kind that is not among these, what is advised.
for my $row (split /\n/, sql(q{SELECT DISTINCT ON (kind) kind, prototype FROM streamfilter_advise('64kB', 0.01, 5000, 1000) ORDER BY kind, prototype}))
{
	my ($kind, $prototype) = split /\|/, $row;
	push @definitions, $prototype unless grep { /^\Q$kind\E\(/ } @definitions;
}

# An aggregate over a growing filter spreads its keys over all that it may grow to, since it may be merged; added one by
# one they grow it as they come.
sql(q{
	CREATE FUNCTION added(filter streamfilter) RETURNS streamfilter LANGUAGE plpgsql AS $$
	DECLARE event record;
	BEGIN
		FOR event IN SELECT id, name FROM events ORDER BY n LOOP
			filter := streamfilter_add(filter, ROW(event.id, event.name));
		END LOOP;
		RETURN filter;
	END $$});

for my $definition (@definitions)
{
	(my $quoted = $definition) =~ s/'/''/g;
	my $here = built($definition, 'integer,text', $rows);
	my $there = sql($definition =~ /grow=/ ? qq{SELECT added('$quoted')}
		: qq{SELECT streamfilter_agg(ROW(id, name), '$quoted' ORDER BY n) FROM events});
	is($here, $there, "$definition: the same text");

	# The binary form, through COPY, which has its own header, length and trailer around a value.
	my $bytes = built($definition, 'integer,text', $rows, 'binary');
	my $file = "$dir/received";
	append_to_file($file, "PGCOPY\n\377\r\n\0" . pack('NN', 0, 0) . pack('nN', 1, length $bytes) . $bytes . pack('n', 0xFFFF));
	sql("TRUNCATE received; COPY received FROM '$file' (FORMAT binary)");
	unlink $file;
	is(sql('SELECT filter FROM received'), $there, "$definition: COPY takes the bytes");

	# Its text, through COPY and streamfilter_merge, into a named filter of the same parameters.
	my ($kind, $options) = $definition =~ /^(\w+)\((.*)\)$/ or die;
	sql("TRUNCATE received; COPY received FROM stdin;\n$here\n\\.\n");
	my ($name) = sql('SELECT filter FROM received') =~ /^(.*?\)):1:/;
	my ($parameters) = $name =~ /^\w+\((.*)\)$/;
	$kind = $name =~ s/\(.*//r;
	my @options = ("kind '$kind'");
	push @options, "$1 " . (defined $2 ? "'$2'" : "'$3'") while $parameters =~ /\G(?:, )?(\w+)=(?:'([^']*)'|([^,]*))/gc;
	push @options, "seed '0'" unless $parameters =~ /seed=/;
	sql('CREATE FOREIGN TABLE seen (id int, name text) SERVER streamfilter OPTIONS (' . join(', ', @options) . ')');
	my $merged = $node->psql('postgres', q{SELECT streamfilter_merge('seen', filter) FROM received}, stderr => \my $error);
	if ($merged != 0)
	{
		like($error, qr/cannot be merged/, "$definition: says that it cannot be merged");
	}
	else
	{
		my $named = $kind eq 'lru' ? $name =~ s/\)$/, fpr=1e-06)/r : $name;    # the default of a relation
		is(sql(q{SELECT streamfilter_value('seen')}),
			sql(qq{
				SELECT '$named'::streamfilter || filter FROM received}) =~ s/''/'/gr,
			"$definition: merged into a named filter")
		  unless $name =~ /'/;
		is(sql(q{SELECT count(*) FROM events e, received
			WHERE (filter @> ROW(id, name)) AND NOT streamfilter_test('seen', id, name)}),
			'0', "$definition: the named filter knows what was sent")
		  unless $kind eq 'fplru';    # which guesses, so that not all it calls known was sent
	}
	sql('DROP FOREIGN TABLE seen');
}

is(built('sqf(memory=16kB, p=20, fingerprint=integer)', 'integer', $numbers),
	sql(q{SELECT streamfilter_agg(id, 'sqf(memory=16kB, p=20, fingerprint=integer)' ORDER BY n) FROM events}),
	'keys that are not hashed');

# ---- importance and time, which values do not have: a named filter, a transaction for each row

for my $case (
	[ q{kind 'ibfmc', importance_range '0,100'}, q{ibfmc(memory=16kB, importance_range='0,100'} ],
	[ q{kind 'ibfh', importance_levels '10,50'}, q{ibfh(memory=16kB, importance_levels='10,50'} ],
	[ q{kind 'clq', window '5 minutes'}, q{clq(memory=16kB, window='5 minutes'} ],
	[ q{kind 'timer', window '5 minutes', keys '500'}, q{timer(memory=16kB, window='5 minutes', keys=500} ])
{
	my ($options, $definition) = @$case;
	sql(qq{
		CREATE FOREIGN TABLE seen (id int, importance float8 OPTIONS (role 'importance'),
		  at timestamptz OPTIONS (role 'time'))
		SERVER streamfilter OPTIONS ($options, memory '16kB', seed '77', fpr '0.01');});
	my $columns = sql(q{COPY (SELECT id, importance,
		(extract(epoch FROM at) * 1000000)::bigint FROM events WHERE n <= 300 ORDER BY n) TO STDOUT}) . "\n";
	sql(sql(q{
		SELECT format('INSERT INTO seen VALUES (%s, %s, %L);', id, importance, at) FROM events WHERE n <= 300 ORDER BY n}));
	is(built("$definition, fpr=0.01, seed=77)", 'integer,importance,time', $columns),
		sql(q{SELECT streamfilter_value('seen')}), "$definition): importance and time");
	sql('DROP FOREIGN TABLE seen');
}

# ---- every type

sql(q{CREATE TYPE mood AS ENUM ('sad', 'happy')});
my $prototype = 'bloom(memory=4kB, k=4, seed=12345)';

# Of each: how the program takes it, the values, and an expression that writes $1 for the program.
my $count = 0;
for my $case (
	[ 'integer', 'smallint', '0, -1, 32767', '$1' ],
	[ 'integer', 'integer', '0, -1, 2147483647', '$1' ],
	[ 'integer', 'bigint', '0, -1, 9223372036854775807', '$1' ],
	[ 'integer', 'boolean', 'true, false', '$1::int' ],
	[ 'integer', 'oid', '1, 4294967295', '$1' ],
	[ 'integer', '"char"', q{'a', 'Z'}, 'ascii($1::text)' ],
	[ 'real', 'real', q{0.1, '-0', 'NaN', '-Infinity', 3e38}, '$1::float8' ],
	[ 'real', 'double precision', q{0.1, '-0', 'NaN', 'Infinity', 1e300}, '$1' ],
	[ 'numeric', 'numeric', q{0, -0.00, 1, 1.000, 10000, 12345678.90123, -0.0001, 1e30, 1.5e-30, 'NaN', 'Infinity', '-Infinity', 99990000, 123456789012345678901234567890.5}, '$1' ],
	[ 'numeric', 'numeric', '(repeat(\'1234567890\', 300) || \'.\' || repeat(\'98765\', 400))::numeric', '$1' ],
	[ 'text', 'text', q{'', 'a', 'grün', repeat('long ', 3000)}, '$1' ],
	[ 'text', 'varchar(10)', q{'a', 'b  '}, '$1' ],
	[ 'text', 'char(5)', q{'a', 'ab c'}, 'rtrim($1::text)' ],
	[ 'hex', 'bytea', q{'', '\x00ff10'}, q{encode($1, 'hex')} ],
	[ 'hex', 'uuid', q{'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'}, q{replace($1::text, '-', '')} ],
	[ 'hex', 'macaddr', q{'08:00:2b:01:02:03'}, q{replace($1::text, ':', '')} ],
	[ 'text', 'mood', q{'sad', 'happy'}, '$1' ],
	[ 'integer', 'date', q{'1999-12-31', '2024-02-29'}, q{$1 - date '2000-01-01'} ],
	[ 'integer', 'time', q{'00:00', '23:59:59.999999'}, '(extract(epoch FROM $1) * 1000000)::bigint' ],
	[ 'integer', 'timestamp', q{'1999-12-31 23:59:59.5', '2024-02-29 12:00'}, '(extract(epoch FROM $1) * 1000000)::bigint - 946684800000000' ],
	[ 'integer', 'timestamptz', q{'1999-12-31 23:59:59.5+01', '2024-02-29 12:00-08'}, '(extract(epoch FROM $1) * 1000000)::bigint - 946684800000000' ],
	[ 'interval', 'interval', q{'1 month', '30 days', '-1 day 2 hours'}, q{(extract(year FROM $1) * 12 + extract(month FROM $1)) || ':' || extract(day FROM $1) || ':' || (extract(epoch FROM $1 - date_trunc('day', $1)) * 1000000)::bigint} ],
	[ 'integers', 'integer[]', q{'{}', '{1}', '{1,-2,3}'}, q{array_to_string($1, ',')} ])
{
	my ($kind, $type, $values, $expression) = @$case;
	(my $written = $expression) =~ s/\$1/v/g;
	my $source = "unnest(ARRAY[$values]::${type}[]) WITH ORDINALITY AS s(v, n)";
	$source = "(VALUES " . join(', ', map { "(${_}::$type, 0)" } $values =~ /('\{.*?\}')/g) . ') AS s(v, n)' if $type =~ /\[\]/;
	my $columns = sql("COPY (SELECT $written FROM $source) TO STDOUT") . "\n";
	is(built($prototype, $kind, $columns), sql("SELECT streamfilter_agg(v, '$prototype') FROM $source"), "type $type");
}

is(built($prototype =~ s/\)/, nulls=not distinct)/r, 'integer,text', "1\tx\n\\N\ty\n2\t\\N\n"),
	sql("SELECT streamfilter_agg(ROW(a, b), 'bloom(memory=4kB, k=4, seed=12345, nulls=not distinct)')
		FROM (VALUES (1, 'x'), (NULL, 'y'), (2, NULL)) AS t(a, b)"), 'NULLs that are not distinct');
is(built($prototype, 'integer,text', "1\tx\n\\N\ty\n2\t\\N\n"),
	sql("SELECT streamfilter_agg(ROW(a, b), '$prototype')
		FROM (VALUES (1, 'x'), (NULL, 'y'), (2, NULL)) AS t(a, b)"), 'rows with a NULL have no key');

# ---- the examples

sql(q{CREATE FOREIGN TABLE lines (line text) SERVER streamfilter
	OPTIONS (kind 'bloom', keys '1000', fpr '0.01', seed '42')});
my $lines = join '', map { 'event ' . $_ * 7 % 30 . "\n" } 1 .. 100;
my $distinct = join '', map { 'event ' . $_ * 7 % 30 . "\n" } 1 .. 30;

sub check_example
{
	my ($name, @command) = @_;
	my ($out, $err);
	IPC::Run::run([ @command, 'bloom(keys=1000, seed=42)', "$dir/seen.copy" ], '<', \$lines, '>', \$out, '2>', \$err);
	is($out, $distinct, "$name: first occurrences") or diag($err);
	sql(qq{TRUNCATE received, lines; COPY received FROM '$dir/seen.copy'});
	is(sql(q{SELECT streamfilter_merge('lines', filter) FROM received;
			SELECT count(*) FROM generate_series(0, 40) i WHERE streamfilter_test('lines', 'event ' || i)}),
		"\n30", "$name: the server knows them");
	return;
}

my $example = "$dir/ingest";
IPC::Run::run([ 'cc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-I' . config('includedir'), '-o', $example,
	'examples/ingest.c', config('libdir') . '/libstreamfilter.a', '-lstdc++', '-lm' ]) or BAIL_OUT('cannot compile');
check_example('examples/ingest.c', $example);
my ($out, $err);
IPC::Run::run([ $example, 'blom()', '/dev/null' ], '<', \'', '>', \$out, '2>', \$err);
like($err, qr/unrecognized kind of filter "blom"\n  Perhaps you meant "bloom"/, 'a problem is explained');

SKIP:
{
	skip 'no python3', 2 if system('python3 -c "import ctypes" 2>/dev/null') != 0;
	local $ENV{LIBSTREAMFILTER} = config('libdir') . '/libstreamfilter.so.1';
	check_example('examples/ingest.py', 'python3', 'examples/ingest.py');
}

done();
