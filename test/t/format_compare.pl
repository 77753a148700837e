# Cases of bench/compare by SQL: what a text becomes, what is refused, and each error of each filter are what the library says and
# counts, as values and as filters with options. bench/compare_sql.sh runs all of them; here are streams of 10,000 rows.
# flavours: faults
use Sf;
use Needs;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $program = "$dir/compare_cases";
sub config { my ($option) = @_; my $value = `$ENV{PG_CONFIG} --$option`; chomp $value; return $value }
$ENV{PG_CONFIG} //= 'pg_config';
my $compiler = $ENV{CXX} // 'g++';
needs(system("$compiler --version >$dir/version 2>&1") == 0, "no $compiler", 8);

# The library of `make install` has the core in it.
my @compile = ($compiler, '-std=c++20', '-O1', '-Isrc', '-I.', '-o', $program, 'bench/quality/compare_cases.cpp',
	config('libdir') . '/libstreamfilter.a', '-lm');
IPC::Run::run(\@compile) or BAIL_OUT("cannot compile: @compile");
{
	local $ENV{STREAMFILTER_TRACES} = "$dir/none";
	IPC::Run::run([ $program, $dir, '--quick' ], '>', "$dir/output") or BAIL_OUT('the program fails');
}

my $node = start_node('a', "fsync = off\nsynchronous_commit = off\n");
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
		'-f', 'bench/server/compare.sql',
		'-c', "\\copy rows FROM '$dir/rows.txt'",
		'-c', "\\copy cases (stream, definition, chosen, rows, distinct_rows, false_positives, false_negatives) FROM '$dir/cases.txt'" ],
	'load the cases');

# The many settings of a coin are alike: every tenth of them.
sql(q{
	CREATE INDEX ON rows (stream, n);
	DELETE FROM cases WHERE definition ~ 'admission' AND number % 10 <> 0});
my ($all, $kinds, $refused) = split /\|/, sql(q{
	SELECT count(*), count(DISTINCT substring(definition FROM '^\w+')), count(*) FILTER (WHERE chosen IS NULL) FROM cases});
cmp_ok($all, '>=', 2000, "$all cases");
cmp_ok($kinds, '>=', 16, "of $kinds kinds");
cmp_ok($refused, '>=', 1, "$refused of them are refused");

is(sql('SELECT compare_values()'), $all - $refused, 'all that are possible were measured as values');
is(sql('TABLE differences'), '', 'texts, refusals and errors are those of the library');

# One of each kind.
my $compared = sql(q{
	SET client_min_messages = error;
	DELETE FROM cases WHERE number NOT IN (SELECT DISTINCT ON (substring(definition FROM '^\w+')) number FROM cases
		WHERE stream = 'zipf' AND chosen IS NOT NULL ORDER BY substring(definition FROM '^\w+'), md5(definition));
	CALL compare_relations(1)});
cmp_ok($compared, '>=', 16, "$compared filters with options");
is(sql('TABLE differences'), '', 'their errors are those of the library, too');

done();
