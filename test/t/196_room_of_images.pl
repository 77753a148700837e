# Images and the log take no more pages, however often the server crashes: autovacuum, whose statistics a crash loses, is not
# needed. What is added while a long transaction runs takes pages, as in every table, but once.
# flavours: quick asserted
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = 8192;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '16MB'
	streamfilter.min_log_size = '64kB'
	max_prepared_transactions = 1
	autovacuum = off
	fsync = off});
$node->start;

sub sql { return $node->safe_psql('postgres', $_[0]); }
my $filter_pages = 512 * 1024 / $page;
sql(q{CREATE EXTENSION streamfilter; CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '512kB')});

my $next = 1;

# As many keys as make an image due, and the image. The worker starts at once after a crash, and otherwise after 10 seconds.
sub write_image
{
	my $before = sql('SELECT max(saved) FROM _streamfilter.streamfilter_image');
	$node->stop('immediate');
	$node->start;
	sql("INSERT INTO seen SELECT generate_series($next, $next + 69999)");
	$next += 70000;
	return $node->poll_query_until('postgres', "SELECT max(saved) IS DISTINCT FROM nullif('$before', '')::timestamptz FROM _streamfilter.streamfilter_image");
}

sub pages { return map { sql("SELECT pg_relation_size('_streamfilter.streamfilter_$_') / $page") } qw(image log); }
sub are_pages
{
	my ($most_of_images, $most_of_log, $name) = @_;
	my ($images, $log) = pages();
	cmp_ok($images, '<=', $most_of_images, "$name: $images pages of images");
	cmp_ok($log, '<=', $most_of_log, "$name: $log pages of the log");
	return;
}

sub write_images { for (1 .. $_[0]) { die "no image came\n" unless write_image(); } return; }

# The last image and the next; of the log the next one's rows and those that the last one has made superfluous.
my $log_pages = 70000 * 8.3 / $page;
write_images(8);
are_pages(2.5 * $filter_pages, 2.5 * $log_pages, 'eight images');

sql(q{BEGIN; CREATE TABLE old (); PREPARE TRANSACTION 'long'});
write_images(3);
my ($images, $log) = pages();
cmp_ok($images, '>', 3 * $filter_pages, 'an old transaction keeps what later images have replaced');
are_pages(5.5 * $filter_pages, 5.5 * $log_pages, 'and three images');
sql(q{COMMIT PREPARED 'long'});
write_images(1);
($images, $log) = pages();
write_images(4);
are_pages($images, $log, 'after its end, no more');
is(sql("SELECT streamfilter_test('seen', $next - 1)"), 't', 'the last key is known');

done_testing();
