# Real event streams, where they are at hand (STREAMFILTER_TRACES names their folder): evaluate and
# profile count exactly what truth.csv says, and sbf keeps its false-positive rate all along.
use Sf;

my $folder = $ENV{STREAMFILTER_TRACES} // '';
plan skip_all => 'no traces: set STREAMFILTER_TRACES to their folder' unless -r "$folder/truth.csv";

my $node = start_node('traces', "fsync = off\n");
sql(q{
	CREATE TABLE truth (file text, percent int, rows bigint, distinct_rows bigint, duplicates bigint);
	CREATE TABLE events (seq bigint, ts text, key text, weight float8);});
# The client reads the files, so that the server needs no access to them.
sub load
{
	my ($table, $program) = @_;
	sql("TRUNCATE $table");
	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
			'-c', "\\copy $table FROM PROGRAM '$program' WITH (FORMAT csv, HEADER)" ], "load $table");
}
load('truth', "cat $folder/truth.csv");

for my $file (map { s{.*/}{}r } sort glob "$folder/*.csv.gz")
{
	load('events', "gzip -dc $folder/$file");
	my $filters = q{'{"sbf(memory=16kB)", "sbf(memory=256kB)", "bloom(memory=4MB, k=8)"}'};
	is(sql(qq{
			SELECT bool_and(e.rows = t.rows AND e.distinct_rows = t.distinct_rows
			                AND e.false_positives BETWEEN 0 AND t.distinct_rows
			                AND e.false_negatives BETWEEN 0 AND t.duplicates),
			       bool_and(e.fpr <= 0.01) FILTER (WHERE e.filter LIKE 'sbf%'),
			       bool_and(e.false_negatives = 0) FILTER (WHERE e.filter LIKE 'bloom%')
			FROM streamfilter_evaluate('SELECT key, weight FROM events ORDER BY seq', $filters) e
			JOIN truth t ON t.file = '$file' AND t.percent = 100}),
		't|t|t', "$file: evaluate counts exactly and sbf keeps 1 %");
	# Ten equal parts, summed up, are the lines of truth.csv.
	is(sql(qq{
			WITH parts AS (
			  SELECT p."to", p.filter, sum(p.distinct_rows) OVER through AS distinct_rows,
			         sum(p.false_positives) OVER through AS false_positives
			  FROM streamfilter_profile('SELECT key FROM events ORDER BY seq', $filters, 'position') p
			  WINDOW through AS (PARTITION BY p.filter ORDER BY p."from"))
			SELECT count(*), bool_and(parts.distinct_rows = t.distinct_rows),
			       bool_and(parts.false_positives <= 0.01 * parts.distinct_rows)
			         FILTER (WHERE parts.filter LIKE 'sbf%')
			FROM parts JOIN truth t ON t.file = '$file' AND t.rows = parts."to"}),
		'30|t|t', "$file: so does profile in every tenth, and sbf keeps 1 % at all of them");
}

done_testing();
