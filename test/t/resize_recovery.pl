# Recovery to a point in time before, between and after calls of streamfilter_resize(): the filter has the size and the keys of that
# moment.
# flavours: quick
use Sf;

my $node = start_node('resized', q{
	streamfilter.shared_memory = '2MB'
	streamfilter.dynamic_memory = '32MB'
	statement_timeout = '120s'}, has_archiving => 1, allows_streaming => 1);
sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (memory '1MB', fpr '1e-9', slices '4');
	CREATE TABLE events (id int);
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events SELECT generate_series(1, 1000)});
$node->backup('base');

# Each point: a name, the size of the filter there, and how many rows.
my @points;
sub point
{
	my ($name, $size, $rows) = @_;
	sql("SELECT pg_create_restore_point('$name')");
	push @points, [ $name, $size, $rows ];
	return;
}
sql('INSERT INTO events SELECT generate_series(1001, 2000)');
point('before', 'small', 2000);
sql(q{CALL streamfilter_resize('seen', '4MB')});
point('swapped', 'large', 2000);
sql('INSERT INTO events SELECT generate_series(1, 3000)');
point('after', 'large', 3000);
sql(q{CALL streamfilter_resize('seen', '1MB')});
sql('INSERT INTO events SELECT generate_series(2500, 4000)');
point('back', 'small', 4000);
$node->stop;

for my $point (@points)
{
	my ($name, $size, $rows) = @$point;
	my $copy = PostgreSQL::Test::Cluster->new("at_$name");
	$copy->init_from_backup($node, 'base', has_restoring => 1, standby => 0);
	$copy->append_conf('postgresql.conf', "recovery_target_name = '$name'\nrecovery_target_action = 'promote'\narchive_mode = off");
	$copy->start;
	$copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die "$name: no end of the recovery";
	my $ask = sub { return sql($_[0], $copy); };
	is($ask->('SELECT count(*) FROM events'), $rows, "$name: the rows of that moment");
	is($ask->(q{SELECT count(*) FROM events WHERE NOT streamfilter_test('seen', id)}), 0, 'all are known');
	is($ask->(q{SELECT CASE WHEN memory < 1500000 THEN 'small' ELSE 'large' END FROM streamfilter_stats WHERE filter = 'seen'::regclass}),
		$size, "the filter is $size");
	is($ask->("SELECT count(*) FROM generate_series($rows + 1, 5000) i WHERE streamfilter_test('seen', i)"), 0, 'what came later is not');
	$ask->('INSERT INTO events SELECT generate_series(1, 5000)');
	is($ask->('SELECT count(*) - count(DISTINCT id) FROM events'), 0, 'it goes on');
	$copy->stop('immediate');
}
done_testing();
