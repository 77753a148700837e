# Images and the log take no more pages, however often the server crashes: autovacuum, whose statistics a crash loses, is not
# needed. What is added while a long transaction runs takes pages, as in every table, but once.
# flavours: faults
use Sf;
use Time::HiRes qw(usleep);

my $page = 8192;
my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	streamfilter.min_log_size = '64kB'
	max_prepared_transactions = 1
	fsync = off
});

my $filter_pages = 512 * 1024 / $page;
sql(q{CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '512kB')});

my $next = 1;

# Waits until an image has replaced the filter's log. It leaves rows of the transaction that made it due if that was slow to commit;
# then another transaction makes the next one due, after ten seconds.
my $another = 0;
sub wait_for_image
{
	my ($filter) = @_;
	for (1 .. 1800)
	{
		return if sql("SELECT sum(length(data)) < 20000 FROM _streamfilter.streamfilter_log WHERE filter = '$filter'::regclass") eq 't';
		sql("INSERT INTO $filter VALUES (-" . ++$another . ')');
		usleep(100_000);
	}
	die "no image of $filter came\n";
}

# As many keys as make an image due, and the image: the worker starts at once after a crash.
sub write_image
{
	crash();
	sql("INSERT INTO seen SELECT generate_series($next, $next + 69999)");
	$next += 70000;
	wait_for_image('seen');
	return;
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

sub write_images { for (1 .. $_[0]) { write_image(); } return; }

# The last image and the next; of the log the next one's rows, those that the last one has made superfluous, and room that a crash
# has lost from sight until it is vacuumed again.
my $log_pages = 70000 * 8.3 / $page;
write_images(8);
are_pages(2.5 * $filter_pages, 3.5 * $log_pages, 'eight images');

sql(q{BEGIN; CREATE TABLE old (); PREPARE TRANSACTION 'long'});
write_images(3);
my ($images, $log) = pages();
cmp_ok($images, '>', 3 * $filter_pages, 'an old transaction keeps what later images have replaced');
are_pages(8.5 * $filter_pages, 8.5 * $log_pages, 'and three images');
sql(q{COMMIT PREPARED 'long'});
write_images(1);
($images, $log) = pages();
write_images(4);
are_pages($images, $log + $log_pages, 'after its end, no more');
is(sql("SELECT streamfilter_test('seen', $next - 1)"), 't', 'the last key is known');

# Many filters share the log: without a crash at each image, nobody who reads it tidies its pages.
my $filters = 6;
sql("SELECT format('CREATE FOREIGN TABLE f_%s (id int) SERVER streamfilter OPTIONS (kind ''clq'', memory ''64kB'')', i) FROM generate_series(1, $filters) i \\gexec");

sub write_images_of_all
{
	my ($first) = @_;
	for my $i (1 .. $filters)
	{
		sql("INSERT INTO f_$i SELECT generate_series($first, $first + 19999)");
		wait_for_image("f_$i");
	}
	return;
}

sql('SELECT streamfilter_forget_saved()');
write_images_of_all(1);
$node->restart;
(undef, $log) = pages();
write_images_of_all(50000);
my (undef, $log_then) = pages();
cmp_ok($log_then, '<=', 1.5 * $log, "an image of each of $filters filters: $log pages of the log, another: $log_then");

done_testing();
