# Citus: statements that lock a filter on all nodes, while rows come over several nodes, end in no deadlock. 200 of them: of
# filters alone, and of filters that two tables share.
use Sf;
use CitusCluster;
use IPC::Run qw(start timeout);

my $citus = CitusCluster->new(workers => 3, checks => 8);
my $folder = PostgreSQL::Test::Utils::tempdir();

sql('SELECT citus_set_node_property(' . $citus->place(0) . q{, 'shouldhaveshards', false)});
sql(q{CREATE FOREIGN TABLE seen (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000000', fpr '1e-6'); SELECT streamfilter_distribute('seen');
	CREATE TABLE a (k int); CREATE TABLE b (k int);
	SELECT create_distributed_table('a', 'k'), create_distributed_table('b', 'k', colocate_with => 'none');
	CREATE TRIGGER zz BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TRIGGER zz BEFORE INSERT ON b FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});

append_to_file("$folder/one.sql", "\\set b random(1, 900000)\nINSERT INTO a SELECT i FROM generate_series(:b, :b + 20) i;\n");
append_to_file("$folder/both.sql", "\\set b random(1, 900000)\nBEGIN;\nINSERT INTO a SELECT i FROM generate_series(:b, :b + 10) i;\n"
	  . "INSERT INTO b SELECT i FROM generate_series(:b + 11, :b + 20) i;\nCOMMIT;\n");
append_to_file("$folder/copy.sql", "\\set b random(1, 900000)\nBEGIN;\nINSERT INTO b VALUES (:b);\nINSERT INTO a VALUES (:b + 1);\nCOMMIT;\n");

my $runs = 0;

# A writer on each node while the statements run: "done, deadlocks", of all and of the writers.
sub while_writing
{
	my ($script, @statements) = @_;
	my @writers = map {
		my ($node, $output) = ($citus->node($_), "$folder/$script" . ++$runs);
		{ output => $output, run => start([ 'pgbench', '-n', '-c', '1', '-T', '600', '-f', "$folder/$script.sql", '--max-tries=1', '-d', $node->connstr('postgres') ], '<', \undef, '>', $output, '2>&1', timeout(900)) };
	} 0 .. 3;
	$citus->coordinator->poll_query_until('postgres', 'SELECT count(*) > 100 FROM a') or die 'no rows';
	my ($done, @errors) = (0);
	for (@statements)
	{
		my $said = $citus->messages("SET statement_timeout = '120s'; $_", $citus->node(0));
		$said =~ /ERROR/ ? push @errors, "$_: $said" : ++$done;
	}
	$_->{run}->signal('INT') foreach @writers;
	eval { $_->{run}->finish } foreach @writers;
	my @victims = grep { /ERROR|deadlock/ && !/canceling|cancel/i } map { split /\n/, slurp_file($_->{output}) } @writers;
	return join "\n", "$done done", @errors, @victims;
}

is(while_writing('one', (q{ALTER FOREIGN TABLE seen OPTIONS (ADD mode 'shadow')}, q{ALTER FOREIGN TABLE seen OPTIONS (DROP mode)}) x 25), '50 done', 'ALTER, while rows come over four nodes');
is(while_writing('one', ('TRUNCATE seen') x 30, ('TRUNCATE a, seen') x 20), '50 done', 'TRUNCATE');
is(while_writing('both', ('TRUNCATE seen') x 30, (q{ALTER FOREIGN TABLE seen RENAME TO other}, q{ALTER FOREIGN TABLE other RENAME TO seen}) x 10), '50 done', 'writers of two tables');
is(while_writing('copy', ('TRUNCATE seen') x 30), '30 done', '... in the other order');
is(while_writing('one', ('BEGIN; ALTER TABLE a ADD COLUMN z int; ALTER TABLE a DROP COLUMN z; TRUNCATE seen; COMMIT') x 20), '20 done', 'a table with its filter, in one transaction');
sql('TRUNCATE a, b, seen; INSERT INTO a SELECT generate_series(1, 5000); INSERT INTO a SELECT generate_series(1, 5000)');
is($citus->counts('a', 'k'), '5000|5000', 'and rows are judged as before');

# A writer that holds the gate keeps such a statement out no longer than lock_timeout says, on another node, too.
my $writer = $citus->node(1)->background_psql('postgres');
$writer->query_safe('BEGIN; INSERT INTO a VALUES (7)');
like($citus->messages("SET lock_timeout = '300ms'; TRUNCATE seen", $citus->node(2)), qr/lock timeout/, 'lock_timeout reaches the other nodes');
like($citus->messages("CREATE ROLE stranger; SET ROLE stranger; SELECT streamfilter_for_nodes('seen', NULL, NULL)"), qr/permission denied|must be owner/, 'nobody else closes a gate');
end_session($writer, 'COMMIT');
done_testing();
