# The first use of a filter after a start reads its own image, not those of all others.
use Sf;

my $filters = $ENV{STREAMFILTER_FILTERS} // 16;
my $megabytes = $ENV{STREAMFILTER_MEGABYTES} // 1;

my $room = ($filters + 1) * $megabytes + 8;
my $node = start_node('main', qq{
	streamfilter.shared_memory = '${room}MB'
	streamfilter.max_filters = 300
	fsync = off});
my $keys = $megabytes * 50000;    # on every page
for my $f (1 .. $filters)
{
	sql(qq{CREATE FOREIGN TABLE f$f (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '${megabytes}MB');
		INSERT INTO f$f SELECT generate_series(1, $keys)});
	sql("SELECT streamfilter_save('f$f')");
	sql('VACUUM _streamfilter.streamfilter_log');    # as autovacuum does; the log is read as a whole
}
my $blocks_of_log = sql(q{SELECT pg_relation_size('_streamfilter.streamfilter_log') / 8192});
my $blocks_of_image = sql(q{SELECT count(*) FROM _streamfilter.streamfilter_image WHERE filter = 'f1'::regclass});

# Blocks of the two heaps that were read, and how long it took.
sub first_use
{
	my ($statement) = @_;
	my $read = q{SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)) FROM pg_statio_all_tables
		WHERE relname ~ '^streamfilter_(log|image)$'};
	$node->restart;
	my $before = sql($read);
	my $time = sql(qq{\\timing on\n$statement}) =~ /Time: ([\d.]+) ms/ ? $1 : '?';
	wait_for("SELECT ($read) > $before");
	return (sql($read) - $before, $time);
}
my ($blocks, $time) = first_use(q{SELECT streamfilter_test('f3', 1)});
diag("$filters filters of $megabytes MB: the first use of one reads " . $blocks * 8 . " kB, its image has " . $blocks_of_image * 8
	. " kB, the log " . $blocks_of_log * 8 . " kB; $time ms");
cmp_ok($blocks, '<=', $blocks_of_image * 1.5 + $blocks_of_log + 50, 'the first use reads its own image');
is(known('f3', 1, 1000), 1000, 'all of it');

($blocks) = first_use('DROP FOREIGN TABLE f4');
cmp_ok($blocks, '<=', ($blocks_of_image + $blocks_of_log) * 3 + 50, 'so does DROP');

# Without the index, or while one is being built, it is as good, and slower.
sql('DROP INDEX _streamfilter.streamfilter_image_filter');
($blocks, $time) = first_use(q{SELECT streamfilter_test('f5', 1)});
diag("without the index: " . $blocks * 8 . " kB; $time ms");
is(known('f5', 1, 1000), 1000, 'without the index: all of it');
sql(q{INSERT INTO f5 VALUES (-1); SELECT streamfilter_save('f5')});
$node->restart;
is(sql("SELECT streamfilter_test('f5', -1)"), 't', 'and it is saved again');
done_testing();
