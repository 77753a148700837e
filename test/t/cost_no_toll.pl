# A transaction that uses no filter pays for the library with a few tests of variables, however many filters there may be.
# Instructions of the library are counted by callgrind, in a stand-alone backend: the same on every run and however busy the
# machine is.
use Sf;
use Instructions;

skip_without_valgrind(81);

my $node = start_node('toll', q{
streamfilter.shared_memory = '16MB'
streamfilter.dynamic_memory = 0
fsync = off
});
my $rows = $node->basedir . '/rows';
PostgreSQL::Test::Utils::append_to_file($rows, join "\n", 1 .. 100, '');
sql('CREATE TABLE plain (id int);
	CREATE TABLE keyed (id int PRIMARY KEY, value int);
	INSERT INTO keyed VALUES (7, 0);
	CREATE FOREIGN TABLE used (id int) SERVER streamfilter OPTIONS (kind \'bloom\', k \'7\', memory \'8kB\');
	CREATE TABLE judged (id int);
	CREATE SEQUENCE ids;
	CREATE TRIGGER discard BEFORE INSERT ON judged FOR EACH ROW EXECUTE FUNCTION streamfilter_discard(\'used\')');
$node->stop;

my $instructions = Instructions->new($node);
sub per_round { return $instructions->per_round(40, 140, @_); }

my @few = ('streamfilter.max_filters=128');
my @many = ('streamfilter.max_filters=8192');

my @read = ('SELECT 1');
my ($without, $few, $many) = map { per_round(\@read, @$_) } ['shared_preload_libraries='], \@few, \@many;
is($without->{own}, 0, 'without the library it takes nothing');
note("SELECT 1: $without->{all} instructions without the library, $few->{own} and $many->{own} of the library");
cmp_ok($few->{own}, '<=', 150, 'SELECT 1 takes 150 instructions of the library at the most');
is($many->{own}, $few->{own}, 'and the same where there may be 8192 filters');
# What the server takes moves by some hundreds, with what lies in its catalogs.
cmp_ok($many->{all} - $without->{all}, '<=', 400, 'nor does the server take more for it');

# It may take more, but nothing that grows.
my @block = (
	'BEGIN', 'SAVEPOINT s', 'INSERT INTO plain VALUES (1)',
	'ROLLBACK TO SAVEPOINT s', 'RELEASE SAVEPOINT s', 'UPDATE plain SET id = 2',
	'DELETE FROM plain', 'CREATE TEMP TABLE t (id int) ON COMMIT DROP', 'COMMIT',
	'BEGIN', 'ROLLBACK');
($few, $many) = map { per_round(\@block, @$_) } \@few, \@many;
note("a block of writes: $few->{own} and $many->{own} of the library");
cmp_ok(abs($many->{own} - $few->{own}), '<=', 10, 'writing, savepoints and temporary tables take the same where there may be 8192 filters');

# So does a transaction that uses a filter, which is found by a hash of its relation, the first use of one, which finds a place
# and memory for it, and its end.
for my $of (
	[ 'a statement on a filter', q{SELECT streamfilter_test('used', 1)}, q{INSERT INTO used VALUES (1)} ],
	[ 'CREATE, first use and DROP', q{CREATE FOREIGN TABLE made (id int) SERVER streamfilter OPTIONS (kind 'bloom', k '7', memory '8kB')},
		q{SELECT streamfilter_test('made', 1)}, 'DROP FOREIGN TABLE made' ])
{
	my ($what, @statements) = @$of;
	($few, $many) = map { per_round(\@statements, @$_) } \@few, \@many;
	note("$what: $few->{own} and $many->{own} of the library");
	cmp_ok(abs($many->{own} - $few->{own}), '<=', .05 * $few->{own}, "$what takes the same where there may be 8192 filters");
}

# Statements on tables without a trigger of ours. Each count begins with the same tables, so that all instructions compare. The walk
# that looks for streamfilter_seen() shows where a query has few rows.
my $alike = Instructions->new($node, copies => 1);
for my $of (
	[ 'SELECT 1', 'SELECT 1' ],
	[ 'INSERT of 10 VALUES', 'INSERT INTO plain VALUES ' . join ', ', map { "($_)" } 1 .. 10 ],
	[ 'INSERT of 100 VALUES', 'INSERT INTO plain VALUES ' . join ', ', map { "($_)" } 1 .. 100 ],
	[ 'INSERT of a row', 'INSERT INTO plain VALUES (1)' ],
	[ 'a block of INSERTs', 'BEGIN', ('INSERT INTO plain VALUES (1)') x 10, 'COMMIT' ],
	[ 'UPDATE', 'UPDATE keyed SET value = value + 1 WHERE id = 7' ],
	[ 'DELETE', 'DELETE FROM keyed WHERE id = 7 AND value < 0' ],
	[ 'COPY', "COPY plain FROM '$rows'" ],
	[ 'INSERT ... SELECT', 'INSERT INTO plain SELECT i + 1 FROM generate_series(1, 10) AS i WHERE i % 3 <> 0' ],
	[ 'upsert', 'INSERT INTO keyed VALUES (7, 1) ON CONFLICT (id) DO UPDATE SET value = excluded.value' ])
{
	my ($what, @statements) = @$of;
	my $most = $what =~ /SELECT$/ ? 1.025 : $what =~ /block/ ? 1.015 : 1.01;
	($without, $few) = map { $alike->per_round(10, 60, \@statements, @$_) } ['shared_preload_libraries='], \@few;
	note(sprintf '%s: %d instructions without the library, %d with it (%.4f), %d of these of the library',
		$what, $without->{all}, $few->{all}, $few->{all} / $without->{all}, $few->{own});
	cmp_ok($few->{all}, '<=', $most * $without->{all}, "$what takes $most times as many with the library at the most");
}

# A row that comes alone, through the trigger of a logged filter: it does not resolve its trigger anew.
my ($plain, $judged) = map { per_round(["INSERT INTO $_ VALUES (nextval('ids'))"], @few) } qw(plain judged);
note(sprintf 'a row: %d instructions without a filter, %d with one, %d of these of the library', $plain->{all}, $judged->{all}, $judged->{own});
cmp_ok($judged->{own}, '<=', 10000, 'a row takes 10000 instructions of the library at the most');
cmp_ok($judged->{all} - $plain->{all}, '<=', 30000, 'and 30000 with what the server does for it');
done_testing();
