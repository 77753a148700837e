# Rows a second on a cluster of Citus, and the time of each node: a table whose trigger judges by a bloom filter (half of the keys
# are repeats), the same without trigger, and ON CONFLICT DO NOTHING with a unique index. Run by
#
#   test/citus.sh --bench          as test/citus.sh runs its tests, on what was built; BENCH_ROWS=100000 is a short run
#
# A coordinator without shards and two workers on one machine: compare the columns, not machines. The gate of a filter
# (prepare_to_write()) is part of `ours`.
use Sf;
use CitusCluster;
use Time::HiRes qw(time);

my $rows  = $ENV{BENCH_ROWS} // 1_000_000;
my $citus = CitusCluster->new(workers => 2, checks => 12, settings => "shared_buffers = 128MB\ncitus.shard_count = 8\nstreamfilter.shared_memory = 128MB");
my $folder = PostgreSQL::Test::Utils::tempdir();
my %table = (trigger => '', plain => '', conflict => ' ON CONFLICT DO NOTHING');

sql('SELECT citus_set_node_property(' . $citus->place(0) . q{, 'shouldhaveshards', false)});
sql(qq{CREATE TABLE source (id bigint, key bigint, word text); CREATE TABLE other (id bigint, key bigint, word text);
	SELECT create_distributed_table('source', 'key'), create_distributed_table('other', 'id', colocate_with => 'none');
	INSERT INTO source SELECT i, i % ($rows / 2), repeat('x', 40) FROM generate_series(1, $rows) i; INSERT INTO other SELECT * FROM source;
	COPY (SELECT i, i % ($rows / 2), repeat('x', 40) FROM generate_series(1, $rows) i) TO '$folder/rows'});
append_to_file("$folder/one_$_.sql", "\\set k random(1, $rows)\nINSERT INTO $_ VALUES (:k, :k, 'one')$table{$_};\n") for keys %table;

sub make
{
	sql(qq{DROP TABLE IF EXISTS trigger, plain, conflict; DROP FOREIGN TABLE IF EXISTS seen CASCADE});
	sql(qq{CREATE FOREIGN TABLE seen (key bigint) SERVER streamfilter OPTIONS (kind 'bloom', keys '$rows', fpr '1e-6'); SELECT streamfilter_distribute('seen')});
	sql("CREATE TABLE $_ (id bigint, key bigint, word text" . ($_ eq 'conflict' ? ', UNIQUE (key)' : '') . "); SELECT create_distributed_table('$_', 'key', colocate_with => 'source')") for sort keys %table;
	sql(q{CREATE TRIGGER zz BEFORE INSERT ON trigger FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'key')});
	return;
}

# Seconds of user and system that the processes of a node have taken, those that have ended among them.
sub seconds_of
{
	my ($node) = @_;
	my ($main) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my $ticks = 0;
	for my $file (glob '/proc/[0-9]*/stat')
	{
		open my $handle, '<', $file or next;
		my $line = <$handle> // next;
		my ($process, @of) = ($line =~ /^(\d+)/, split / /, $line =~ s/^.*\) //r);
		$ticks += $of[11] + $of[12] if $of[1] == $main || $process == $main;
		$ticks += $of[13] + $of[14] if $process == $main;
	}
	return $ticks / 100;
}

my @ways = (
	[ 'COPY' => sub { my ($table) = @_; return $table eq 'conflict' ? undef : "COPY $table FROM '$folder/rows'" } ],
	[ 'INSERT … SELECT, pushed down' => sub { my ($table) = @_; return "INSERT INTO $table SELECT * FROM source$table{$table}" } ],
	[ 'INSERT … SELECT, through the coordinator' => sub { my ($table) = @_; return "INSERT INTO $table SELECT * FROM other$table{$table}" } ]);

sub measure
{
	my ($count, $run) = @_;
	my @before = map { seconds_of($_) } @{ $citus->{nodes} };
	my $started = time;
	$run->();
	my $took = time - $started;
	my @after = map { seconds_of($_) } @{ $citus->{nodes} };
	return { rate => $count / $took, cpu => [ map { 1e6 * ($after[$_] - $before[$_]) / $count } 0 .. $#after ] };
}

# The middle one of three rounds.
my %found;
for my $round (1 .. 3)
{
	for my $way (@ways)
	{
		make();
		for my $table (qw(plain trigger conflict))
		{
			my $statement = $way->[1]->($table) // next;
			push @{ $found{ $way->[0] }{$table} }, measure($rows, sub { sql($statement) });
		}
		is(sql('SELECT count(*) FROM trigger'), $rows / 2, "$way->[0]: rows are the keys") if $round == 1;
	}
	for my $table (qw(plain trigger conflict))
	{
		my $count = int($rows / 500);
		push @{ $found{'single rows, 2 clients'}{$table} },
		  measure($count, sub { $citus->coordinator->command_ok([ 'pgbench', '-n', '-c', 2, '-t', $count / 2, '-M', 'prepared', '-f', "$folder/one_$table.sql", '-d', $citus->coordinator->connstr('postgres') ], 'single rows') });
	}
}
diag(sprintf '%-42s %10s %10s %10s   µs of CPU a row: coordinator, workers; of them ours', '', qw(plain trigger conflict));
for my $way ((map { $_->[0] } @ways), 'single rows, 2 clients')
{
	my %middle = map { $_ => (sort { $a->{rate} <=> $b->{rate} } @{ $found{$way}{$_} })[1] } keys %{ $found{$way} };
	my @ours = map { sprintf '%.2f (%.2f)', $middle{trigger}{cpu}[$_], $middle{trigger}{cpu}[$_] - $middle{plain}{cpu}[$_] } 0 .. 2;
	diag(sprintf '%-42s %10s %10s %10s   %s', $way, (map { $middle{$_} ? sprintf '%.0f', $middle{$_}{rate} : '-' } qw(plain trigger conflict)), join(', ', @ours));
}
done_testing();
