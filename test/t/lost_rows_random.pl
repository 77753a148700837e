# Random queries that ask a filter about the rows of a table, run in every way: each is refused, and the filter remembers nothing, or it
# gives or stores exactly the rows that the filter remembers. Where it is read to its end, these are the rows that the question asked by
# hand, row by row, lets pass. STREAMFILTER_CASES: how many queries of each seed, STREAMFILTER_SEED: the only one. The seed of the day is
# tried, too; what it finds is told, and fails nothing.
# flavours: quick
use Sf;

my $cases = $ENV{STREAMFILTER_CASES} // 400;
my $node  = start_node('random', "fsync = off\njit = off\n");
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;

# ---- the grammar: a query that gives a column id --------------------------------------------------------------------

sub any { return $_[ int rand @_ ] }
sub chance { return rand() < $_[0] }

sub question
{
	my ($key) = @_;
	my $call = "streamfilter_seen('seen', $key)";
	return any(("NOT $call") x 20, "$call IS FALSE", "$call IS NOT TRUE", "$call = false", "(NOT $call AND $key > 20) IS TRUE",
		"($key > 20 AND NOT $call)", "(NOT $call OR $key < 5)", "($key < 5 OR NOT $call)", "CASE WHEN NOT $call THEN $key > 10 END",
		"coalesce(NOT $call, false)", "(SELECT NOT $call)", "is_new($key)", "is_new_sql($key)", "NOT $call AND is_new($key + 100)",
		"is_new_sql($key) AND NOT $call", "is_new($key) AND NOT $call");
}

sub condition { my ($key) = @_; return any("$key > " . int rand 30, "$key % 2 = 0", "costly($key)", "leaky($key)", "$key IN (SELECT id FROM known)") }

# A condition that asks, among others that do not.
sub conditions
{
	my ($key, $asks) = @_;
	my @all = map { condition($key) } 1 .. int rand 3;
	splice @all, int rand(@all + 1), 0, question($key) if $asks;
	return @all ? 'WHERE ' . join(' AND ', @all) : '';
}

sub source { return any('staged', 'staged', 'parts', '(SELECT id FROM staged)', '(VALUES (1), (7), (12), (30))', 'generate_series(1, 25)') }

sub base
{
	return any(
		(sub { my $from = source(); "SELECT x.id FROM $from AS x(id) " . conditions('x.id', 1) }) x 6,
		sub { 'SELECT id FROM new_staged ' . conditions('id', 0) },
		sub { 'SELECT id FROM new_barrier ' . conditions('id', 0) },
		sub { 'SELECT r AS id FROM ' . any('new_rows()', 'new_rows_pl()', 'new_rows_loop()') . ' AS r ' . conditions('r', 0) },
		sub { 'SELECT ' . any('new_rows()', 'new_rows_pl()') . ' AS id' },
		sub { "SELECT id FROM (SELECT id, streamfilter_seen('seen', id) AS r FROM staged" . any('', ' OFFSET 0') . ') v WHERE ' .
			join ' AND ', any('NOT r', 'r IS FALSE'), map { condition('id') } 1 .. int rand 2 },
		sub { my $q = question('s.id'); "SELECT s.id FROM staged s WHERE EXISTS (SELECT FROM known k WHERE k.id = s.id AND $q)" },
		sub { 'SELECT s.id FROM staged s WHERE s.id IN (SELECT k.id FROM known k ' . conditions('k.id', 1) . ')' },
		sub { my $q = question('id'); "SELECT id FROM staged GROUP BY id HAVING " . any($q, "$q AND count(*) > 0", "max(id) > 9 AND $q") },
		sub { 'SELECT id FROM (SELECT id, lag(id) OVER (ORDER BY id) AS l FROM staged ' . conditions('id', 1) . ') v' . any('', ' WHERE l > 3') },
		sub { "SELECT s.id FROM staged s, LATERAL (SELECT streamfilter_seen('seen', s.id) AS r" . any('', ' OFFSET 0') . ') v WHERE NOT r' },
		sub { 'SELECT id FROM ROWS FROM (new_rows_pl(), generate_series(1, 3)) AS f (id, place)' . any('', ' WHERE place > 1') },
		sub { 'SELECT x.id FROM parts x TABLESAMPLE BERNOULLI (60) REPEATABLE (1) ' . conditions('x.id', 1) },
		sub { 'SELECT x.id FROM staged x LEFT JOIN known k ON k.id = x.id ' . conditions('x.id', 1) },
		sub { my $q = question('KEY'); join ' UNION ALL ', map { "SELECT $_ AS id WHERE " . $q =~ s/KEY/$_/gr } 7, 8, 9 },
		sub { 'SELECT u AS id FROM docs, unnest(ids) u ' . conditions('u', 1) },
		sub { "SELECT id FROM staged GROUP BY id HAVING " . any('bool_or', 'bool_and') . '(' . question('id') . ')' . any('', ' AND id > 30') },
		sub { "SELECT s.id FROM staged s WHERE NOT EXISTS (SELECT 1 WHERE streamfilter_seen('seen', s.id))" . any('', ' AND s.id > 9') },
	)->();
}

my @uses = (
	'SELECT id FROM n', 'SELECT id FROM n LIMIT 2', 'SELECT id FROM n WHERE id > 20', 'SELECT id FROM n LIMIT 0',
	"SELECT id FROM n WHERE current_setting('work_mem') = 'none'", "SELECT id FROM n WHERE current_setting('work_mem') <> 'none'",
	'SELECT n.id FROM n JOIN known USING (id)', 'SELECT count(*)::int AS id FROM n WHERE false');

# What stands around a query.
my @around = (
	(sub { "SELECT id FROM ($_[0]) q ORDER BY id" . any('', '', ' DESC') }) x 2,
	(sub { "SELECT id FROM ($_[0]) q LIMIT " . int rand 8 }) x 2,
	sub { "SELECT id FROM ($_[0]) q ORDER BY id LIMIT " . int rand 8 },
	sub { "SELECT id FROM ($_[0]) q OFFSET " . int rand 3 },
	sub { "SELECT id FROM ($_[0]) q ORDER BY id % 5 FETCH FIRST 3 ROWS WITH TIES" },
	(sub { "SELECT id FROM ($_[0]) q " . conditions('id', 0) }) x 2,
	(sub { "SELECT id FROM (SELECT id FROM ($_[0]) p OFFSET 0) q " . conditions('id', 0) }) x 2,
	(sub { my $join = any('JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'); "SELECT q.id FROM ($_[0]) q $join known k ON k.id = q.id" }) x 3,
	sub { "SELECT q.id FROM known k LEFT JOIN ($_[0]) q ON k.id = q.id" },
	sub { "SELECT q.id FROM known k, LATERAL (SELECT id FROM ($_[0]) p LIMIT 3) q" },
	sub { "SELECT id FROM ($_[0]) q WHERE " . any('', 'NOT ') . 'EXISTS (SELECT FROM known k WHERE k.id = q.id)' },
	sub { "SELECT k.id FROM known k WHERE k.id " . any('IN', 'NOT IN') . " ($_[0])" },
	sub { "SELECT DISTINCT id FROM ($_[0]) q" },
	sub { "SELECT id FROM ($_[0]) q GROUP BY id" },
	sub { "SELECT max(id) AS id FROM ($_[0]) q" },
	sub { "SELECT id FROM ($_[0]) q " . any('UNION ALL', 'UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT') . ' SELECT id FROM known WHERE false' },
	(sub { "WITH n AS MATERIALIZED ($_[0]) " . any(@uses) }) x 2,
	sub { "WITH n AS MATERIALIZED ($_[0]) (" . any(@uses) . ') UNION ALL (' . any(@uses) . ')' },
	sub { "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS r FROM ($_[0]) p) q" . any('', ' WHERE r < 4') },
	sub { "SELECT unnest(ARRAY[id]) AS id FROM ($_[0]) q" },
	sub { "SELECT unnest(array_agg(id)) AS id FROM ($_[0]) q" . any('', ' GROUP BY id % 3') },
	sub { "SELECT unnest(ARRAY($_[0])) AS id" },
	sub { "SELECT (SELECT id FROM ($_[0]) p LIMIT 1) AS id" },
	sub { "SELECT id FROM known WHERE id = ANY (ARRAY($_[0]))" },
	sub { "SELECT id FROM staged WHERE id = 1 AND EXISTS ($_[0])" },
	sub { "SELECT id FROM ($_[0]) q " . any('FOR UPDATE', 'FOR SHARE SKIP LOCKED') });

sub query
{
	my $query = base();
	$query = any(@around)->("$query") for 1 .. any(0, 0, 1, 1, 2, 3);
	return $query;
}

# ---- the ways to run it: statements that print the ids of the rows that somebody gets, or store them -----------------

sub block { my ($body) = @_; return "DO \$do\$ DECLARE got int; n int := 0; BEGIN $body END \$do\$" }

my @ways = (
	([ whole => sub { $_[0] } ]) x 8,
	([ whole => sub { "INSERT INTO outp $_[0]" } ]) x 4,
	[ whole => sub { "COPY ($_[0]) TO stdout" } ],
	[ whole => sub { "CREATE TABLE made AS $_[0]; SELECT id FROM made; DROP TABLE made" } ],
	[ whole => sub { "SET plan_cache_mode = force_generic_plan; PREPARE p AS $_[0]; EXECUTE p; DEALLOCATE p" } ],
	[ whole => sub { "WITH n AS MATERIALIZED ($_[0]), i AS (INSERT INTO outp SELECT id FROM n) SELECT -1 - count(*) FROM n" } ],
	[ whole => sub { block("FOR got IN $_[0] LOOP INSERT INTO outp VALUES (got); END LOOP;") } ],
	[ part => sub { "INSERT INTO uniq $_[0] ON CONFLICT DO NOTHING" } ],
	[ part => sub { "INSERT INTO uniq $_[0] ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING id" } ],
	[ part => sub { "MERGE INTO uniq u USING ($_[0]) m ON u.id = m.id WHEN NOT MATCHED THEN INSERT VALUES (m.id)" } ],
	[ part => sub { block("FOR got IN $_[0] LOOP INSERT INTO outp VALUES (got); n := n + 1; EXIT WHEN n = 3; END LOOP;") } ],
	[ part => sub { block("$_[0] INTO got; INSERT INTO outp VALUES (got);") } ],
	[ part => sub { block("FOR got IN $_[0] LOOP INSERT INTO outp VALUES (got); COMMIT; n := 1 / (3 - got % 4); END LOOP;") } ],
	[ part => sub { "CREATE FUNCTION pg_temp.f() RETURNS SETOF int LANGUAGE sql AS \$b\$$_[0]\$b\$; " .
		any('SELECT pg_temp.f() LIMIT 2', 'SELECT * FROM pg_temp.f() LIMIT 2', 'SELECT * FROM pg_temp.f() f WHERE f > 9', 'SELECT pg_temp.f()') .
		'; DROP FUNCTION pg_temp.f()' } ],
	[ part => sub { "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS \$b\$$_[0]\$b\$; SELECT pg_temp.f(); DROP FUNCTION pg_temp.f()" } ],
	[ part => sub { 'CREATE FUNCTION pg_temp.f() RETURNS SETOF int LANGUAGE plpgsql AS $do$ DECLARE got int; n int := 0; BEGIN ' .
		"FOR got IN $_[0] LOOP RETURN NEXT got; n := n + 1; EXIT WHEN n = 3; END LOOP; END \$do\$; SELECT pg_temp.f(); DROP FUNCTION pg_temp.f()" } ],
	[ part => sub { my $q = question('m.id'); my $other = condition('m.id'); "MERGE INTO uniq u USING staged m ON u.id = m.id " .
		any('', "WHEN MATCHED AND $other THEN DELETE ", "WHEN MATCHED AND $q THEN DELETE ") . 'WHEN NOT MATCHED AND ' .
		any($q, "$q AND $other", "$other AND $q") . ' THEN INSERT VALUES (m.id)' } ],
	[ part => sub { 'INSERT INTO asked SELECT id, id % 5 FROM staged WHERE ' . condition('id') . any('', '', ' ON CONFLICT DO NOTHING') } ],
	[ part => sub { "EXPLAIN ANALYZE $_[0]" } ],
	[ part => sub { "BEGIN; DECLARE c CURSOR FOR $_[0]; FETCH 3 FROM c; FETCH 1 FROM c; " . any('COMMIT', 'CLOSE c; COMMIT') } ],
	[ part => sub { "BEGIN; DECLARE c CURSOR FOR $_[0]; " . any('MOVE 2 IN c', 'FETCH RELATIVE 2 FROM c', 'FETCH ABSOLUTE 3 FROM c') .
		'; FETCH 3 FROM c; COMMIT' } ],
	[ part => sub { "BEGIN; DECLARE c CURSOR WITH HOLD FOR $_[0]; FETCH 2 FROM c; COMMIT; CLOSE c" } ],
	[ part => sub { "CREATE MATERIALIZED VIEW made AS $_[0]; REFRESH MATERIALIZED VIEW made; SELECT id FROM made; DROP MATERIALIZED VIEW made" } ],
	[ part => sub { "UPDATE staged SET url = '' WHERE id IN ($_[0]) RETURNING id" } ],
	[ part => sub { "DELETE FROM uniq WHERE id IN ($_[0]) RETURNING id" } ]);

push @ways, (
	[ part => sub { "PREPARE p AS $_[0]; EXPLAIN ANALYZE EXECUTE p; DEALLOCATE p" } ],
	[ part => sub { block("EXECUTE \$q\$$_[0]\$q\$ INTO got; INSERT INTO outp VALUES (got);") } ],
	[ part => sub { block('PERFORM id FROM (' . $_[0] . ') q' . any('', ' WHERE id = 7', ' LIMIT 1') . ';') } ],
	([ savepoint => sub { "BEGIN; DECLARE c CURSOR FOR $_[0]; SAVEPOINT a; FETCH 3 FROM c; " . any('ROLLBACK TO a', 'RELEASE a', 'FETCH 1 FROM c') . '; SAVEPOINT b; ' .
		any('CLOSE c', 'MOVE 1 IN c', 'FETCH 2 FROM c; SELECT 1 / 0') . '; ROLLBACK TO b; ' . any('COMMIT', 'CLOSE c; COMMIT') } ]) x 2,
	[ part => sub { "INSERT INTO dropping $_[0]" . any('', ' RETURNING id') } ],
	[ part => sub { "WITH n AS MATERIALIZED ($_[0]), i AS (INSERT INTO dropping SELECT id FROM n" . any('', ' RETURNING id') . ') SELECT -1 - count(*) FROM ' . any('n', 'known') } ],
	[ part => sub { block("FOR got IN WITH x AS (INSERT INTO uniq SELECT 1 WHERE false) SELECT id FROM ($_[0]) q LOOP INSERT INTO outp VALUES (got); n := n + 1; EXIT WHEN n = 3; END LOOP;") } ],
	[ whole => sub { block("FOR got IN WITH x AS (INSERT INTO uniq SELECT 1 WHERE false) SELECT id FROM ($_[0]) q LOOP INSERT INTO outp VALUES (got); END LOOP;") } ],
	[ part => sub { my $c = condition('id'); "WITH u AS (INSERT INTO scratch SELECT id FROM staged WHERE $c RETURNING id, streamfilter_seen('seen', id) AS r) SELECT id FROM u WHERE NOT r" .
		any('', ' LIMIT 2', ' AND id > 9') } ],
	[ part => sub { 'WITH v AS MATERIALIZED (SELECT id, streamfilter_seen(\'seen\', id) AS r FROM staged), i AS (INSERT INTO outp SELECT id FROM v WHERE NOT r' . any('', ' AND id > 9', ' LIMIT 3') .
		') SELECT -1 - count(*) FILTER (WHERE NOT r) FROM v' } ],
	[ part => sub { 'SELECT -1 - count(*) FROM staged WHERE ' . condition('id') . ' AND store_new(id)' . any('', ' AND id > 9') } ]);

my @settings = map { "enable_$_" } qw(hashjoin mergejoin nestloop sort seqscan hashagg material);

sub draw
{
	my $query = query();
	my ($kind, $way) = @{ any(@ways) };
	my @off = grep { chance(.2) } @settings, 'streamfilter.batch_scan';
	my @on = grep { chance(.2) } 'enable_partitionwise_join', 'enable_partitionwise_aggregate';
	# By hand: the rows for which a filter that knows nothing is not asked at all.
	(my $by_hand = $query) =~ s/streamfilter_seen\('seen', /never_seen(/g;
	$by_hand =~ s/\b(is_new|is_new_sql|new_rows|new_rows_pl|new_rows_loop)\(/by_hand_$1(/g;
	$by_hand =~ s/\b(new_staged|new_barrier)\b/by_hand_$1/g;
	my $statements = $way->($query);
	return { query => $query, kind => $kind, role => chance(.15) ? 'reader' : 'NONE', statements => $statements, settings => join('', (map { "SET $_ = off; " } @off), map { "SET $_ = on; " } @on), by_hand => $by_hand };
}

# ---- the run --------------------------------------------------------------------------------------------------------

sub functions
{
	my ($prefix, $call) = @_;
	return join '', map { s/STREAM/$call/gr =~ s/PRE_/$prefix/gr } (
		q{CREATE FUNCTION PRE_is_new(int) RETURNS bool LANGUAGE plpgsql AS $q$BEGIN RETURN NOT STREAM$1); END$q$;},
		q{CREATE FUNCTION PRE_is_new_sql(int) RETURNS bool LANGUAGE sql AS $q$SELECT NOT STREAM$1)$q$;},
		q{CREATE FUNCTION PRE_new_rows() RETURNS SETOF int LANGUAGE sql AS $q$SELECT id FROM public.staged WHERE NOT STREAMid)$q$;},
		q{CREATE FUNCTION PRE_new_rows_pl() RETURNS SETOF int LANGUAGE plpgsql AS $q$BEGIN RETURN QUERY SELECT id FROM public.staged WHERE NOT STREAMid); END$q$;},
		q{CREATE FUNCTION PRE_new_rows_loop() RETURNS SETOF int LANGUAGE plpgsql AS $q$DECLARE r int; BEGIN FOR r IN SELECT id FROM public.staged WHERE NOT STREAMid) LOOP RETURN NEXT r; END LOOP; END$q$;},
		q{CREATE VIEW PRE_new_staged AS SELECT id FROM public.staged WHERE NOT STREAMid);},
		q{CREATE VIEW PRE_new_barrier WITH (security_barrier) AS SELECT id FROM public.staged WHERE NOT STREAMid);});
}

sub prepare
{
	return sql(q{
		CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-9');
		CREATE TABLE staged (id int PRIMARY KEY, url text); INSERT INTO staged SELECT i, 'u' || i FROM generate_series(1, 40) i;
		CREATE TABLE parts (id int) PARTITION BY RANGE (id);
		CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (20); CREATE TABLE high PARTITION OF parts FOR VALUES FROM (20) TO (100);
		INSERT INTO parts SELECT generate_series(1, 40);
		CREATE TABLE known (id int PRIMARY KEY); INSERT INTO known SELECT generate_series(2, 20, 2);
		CREATE TABLE docs (ids int[]); INSERT INTO docs SELECT array_agg(id) FROM staged GROUP BY id % 4;
		CREATE TABLE dropping (id int); CREATE TABLE scratch (id int);
		CREATE FUNCTION drop_some() RETURNS trigger LANGUAGE plpgsql AS $q$BEGIN IF NEW.id % 4 = 2 THEN RETURN NULL; END IF; RETURN NEW; END$q$;
		CREATE TRIGGER drop_some BEFORE INSERT ON dropping FOR EACH ROW EXECUTE FUNCTION drop_some();
		CREATE TABLE outp (id int); CREATE TABLE uniq (id int PRIMARY KEY);
		CREATE TABLE asked (id int, part int UNIQUE);
		CREATE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS
			$q$BEGIN IF streamfilter_seen('seen', NEW.id) THEN RETURN NULL; END IF; RETURN NEW; END$q$;
		CREATE TRIGGER ask BEFORE INSERT ON asked FOR EACH ROW EXECUTE FUNCTION ask();
		CREATE FUNCTION store_new(int) RETURNS bool LANGUAGE plpgsql AS
			$q$BEGIN IF streamfilter_seen('seen', $1) THEN RETURN false; END IF; INSERT INTO outp VALUES ($1); RETURN true; END$q$;
		ANALYZE;
		CREATE ROLE reader; GRANT ALL ON SCHEMA public TO reader; GRANT ALL ON ALL TABLES IN SCHEMA public TO reader;
		CREATE POLICY several ON staged USING (id % 7 <> 3); CREATE POLICY several ON parts USING (id % 7 <> 3); CREATE POLICY several ON known USING (id <> 4);
		ALTER TABLE staged ENABLE ROW LEVEL SECURITY; ALTER TABLE parts ENABLE ROW LEVEL SECURITY; ALTER TABLE known ENABLE ROW LEVEL SECURITY;
		CREATE FUNCTION never_seen(int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN false; END';
		CREATE FUNCTION costly(int) RETURNS bool LANGUAGE plpgsql COST 1000000 AS 'BEGIN RETURN $1 % 3 > 0; END';
		CREATE FUNCTION leaky(int) RETURNS bool LANGUAGE plpgsql COST .01 AS 'BEGIN RETURN $1 % 5 > 0; END';}
		. functions('', q{public.streamfilter_seen('public.seen', }) . functions('by_hand_', 'public.never_seen(')
		. 'GRANT ALL ON ALL TABLES IN SCHEMA public TO reader');
}

sub script
{
	my ($number, $case) = @_;
	my $statements = $case->{statements};
	$statements =~ s/;\s*/;\n/g unless $statements =~ /\$do\$/;
	return join "\n", 'TRUNCATE seen; TRUNCATE outp, uniq, asked, dropping, scratch; INSERT INTO uniq VALUES (3), (8), (21), (200);', "\\echo #case $number", $case->{settings},
		"SET ROLE $case->{role};", "$statements;", 'ROLLBACK; RESET ROLE;', 'RESET ALL; DEALLOCATE ALL; CLOSE ALL; DROP MATERIALIZED VIEW IF EXISTS made; DROP TABLE IF EXISTS made;', '\echo #stored',
		'SELECT id FROM outp UNION ALL SELECT id FROM asked UNION ALL SELECT id FROM dropping UNION ALL SELECT id FROM uniq WHERE id NOT IN (3, 8, 21, 200) ORDER BY 1;', '\echo #remembered',
		"SELECT i FROM generate_series(0, 300) i WHERE streamfilter_test('seen', i);", '\echo #byhand', "SET ROLE $case->{role};",
		$case->{kind} eq 'whole' ? "SELECT DISTINCT id FROM ($case->{by_hand}) h WHERE id IS NOT NULL ORDER BY 1;" : 'SELECT;', 'RESET ROLE;', '\echo #end', '';
}

sub run_script
{
	my ($script) = @_;
	my $folder = PostgreSQL::Test::Utils::tempdir_short();
	open my $file, '>', "$folder/in" or die $!;
	print $file $script;
	close $file;
	system("psql -XAtq -d postgres -v VERBOSITY=terse < '$folder/in' > '$folder/out' 2>&1");
	return slurp_file("$folder/out");
}

sub numbers { my ($text) = @_; my %ids = map { $_ => 1 } $text =~ /^(\d+)$/mg; return join ' ', sort { $a <=> $b } keys %ids }

my %told = (given => 0, refused => 0);

# What is wrong with a case.
sub wrong
{
	my ($case, $answer) = @_;
	my ($printed, $stored, $remembered, $by_hand) = $answer =~ /(.*)^#stored\n(.*)^#remembered\n(.*)^#byhand\n(.*)^#end/ms or return "no answer: $answer";
	my @errors = $printed =~ /ERROR:  (.*)/g;
	my @others = grep { !/^query may discard rows|cannot ask filter|current transaction is aborted|cursor "c" does not exist|"made" does not exist|division by zero|savepoint "[ab]" does not exist|portal "c" cannot be run|prepared statement "p" does not exist|more than one row returned by a subquery|null value in column|duplicate key value|cannot affect row a second time|FOR (UPDATE|SHARE) (is not allowed|cannot be applied)|WITH HOLD ... FOR|function pg_temp.f\(\) does not exist|pg_temp_\d+.f\(\)/ } @errors;
	return "unexpected: @others" if @others;
	my $given = numbers("$printed$stored");
	$remembered = numbers($remembered);
	my $refused = grep { /^query may discard|cannot ask/ } @errors;
	++$told{ $refused ? 'refused' : 'given' };
	return $remembered && "refused, remembered: $remembered" if $refused && $case->{kind} ne 'savepoint';
	my %known = map { $_ => 1 } split / /, $given;
	my @lost = grep { !$known{$_} } split / /, $remembered;
	return "given: $given\nremembered and not given: @lost" if @lost;
	return '' if $case->{kind} ne 'whole' || @errors || $case->{query} =~ /LIMIT|SKIP LOCKED/;
	my $expected = numbers($by_hand);
	return "given: $given\nby hand: $expected" if $given ne $expected;
	return '';
}

sub run_seed
{
	my ($seed) = @_;
	my @found;
	srand($seed);
	my @drawn = map { draw() } 1 .. $cases;
	my %answers = run_script(join '', map { script($_, $drawn[$_]) } 0 .. $#drawn) =~ /^#case (\d+)\n(.*?^#end)$/msg;
	for my $i (0 .. $#drawn)
	{
		my $wrong = wrong($drawn[$i], $answers{$i} // '') || next;
		push @found, "seed $seed, case $i, role $drawn[$i]{role}: $drawn[$i]{settings}$drawn[$i]{statements}\n$wrong";
	}
	return @found;
}

prepare();
for my $seed ($ENV{STREAMFILTER_SEED} // (1, 2, 3))
{
	my @found = run_seed($seed);
	diag($_) for @found[ 0 .. ($#found < 4 ? $#found : 4) ];
	is(scalar @found, 0, "seed $seed: $cases queries, each loses no row or is refused");
}
note("$told{given} have given rows, $told{refused} were refused");
cmp_ok($told{given}, '>', $cases / 10, 'many are not refused');
unless (defined $ENV{STREAMFILTER_SEED})
{
	my $seed  = int(time / 86400);
	my @found = run_seed($seed);
	diag("the day's seed: $_") for @found;
	note("seed $seed of the day: " . @found . ' of them lose rows');
}

done();
