# TRUNCATE of a large filter in streamfilter.shared_memory moves it to dynamic memory without touching a page there; if
# dynamic memory has no room, the filter is cleared in place. So are filters of up to 256 MB, which keep their pages: the
# load after it waits for none. A worker touches the pages of a new filter.
# flavours: quick faults
use Sf;

my $node = start_node('reserved', q{
	streamfilter.shared_memory = '400MB'
	streamfilter.dynamic_memory = '400MB'
	statement_timeout = '120s'});
sub place { return sql("SELECT dynamic_memory > 0 FROM streamfilter_stats WHERE filter = '$_[0]'::regclass") eq 't' ? 'dynamic' : 'reserved'; }
sub create
{
	sql("CREATE FOREIGN TABLE $_[0] (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '257MB', fpr '1e-9');
		INSERT INTO $_[0] SELECT generate_series(1, 1000)");
	return;
}

create('seen');
is(place('seen'), 'reserved', 'it begins in reserved memory');
sql('BEGIN; TRUNCATE seen; INSERT INTO seen VALUES (5000); ROLLBACK');
is(known('seen', 1, 1000) . ' ' . place('seen'), '1000 reserved', 'a TRUNCATE that rolls back changes nothing');
my $lazy = slurp_file('/proc/sys/vm/overcommit_memory') != 2;
SKIP:
{
	skip 'the system promises no more memory than it has', 9 unless $lazy;
	sql('TRUNCATE seen');
	is(known('seen', 1, 1000) . ' ' . place('seen'), '0 dynamic', 'one that commits leaves the reserved memory');
	sql('INSERT INTO seen SELECT generate_series(1, 500)');
	is(known('seen', 1, 1000), 500, 'it takes keys');
	create('other');
	is(known('other', 1, 1000) . ' ' . place('other'), '1000 reserved', 'another filter takes its place');
	is(known('other', 2000, 9000), 0, 'and knows nothing of it');
	sql('TRUNCATE other');
	is(known('other', 1, 1000) . ' ' . place('other'), '0 reserved', 'without room for a second block it is cleared');
	sql('INSERT INTO other SELECT generate_series(1, 700)');
	sql('TRUNCATE seen; INSERT INTO seen SELECT generate_series(1, 300)');
	is(known('seen', 1, 1000) . ' ' . place('seen') . ' ' . known('other', 1, 1000), '300 dynamic 700', 'and again');
	crash();
	is(known('seen', 1, 1000) . ' ' . known('other', 1, 1000), '300 700', 'after a crash');
	sql('DROP FOREIGN TABLE seen; DROP FOREIGN TABLE other');
	ok(wait_for('SELECT free = total FROM streamfilter_memory()'), 'all is free in the end');
	create('seen');
	is(known('seen', 1, 1000) . ' ' . place('seen'), '1000 reserved', 'and can be taken');
}
sql('DROP FOREIGN TABLE IF EXISTS seen');

# --- Page faults of a session ----------------------------------------------------------------------------------------
SKIP:
{
	skip 'no /proc', 3 unless -r '/proc/self/stat';
	skip 'all pages are huge', 3 if sql(q{SELECT current_setting('huge_pages')}) eq 'on';
	sql(q{
		CREATE FOREIGN TABLE wide (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '65MB', k '1', persistence 'unlogged');
		CREATE TABLE numbers AS SELECT generate_series(1, 200000) i});
	my $session = $node->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $load = sub {
		my $before = (split / /, slurp_file("/proc/$pid/stat"))[9];
		$session->query_safe("INSERT INTO wide SELECT i + $_[0] FROM numbers");
		return (split / /, slurp_file("/proc/$pid/stat"))[9] - $before;
	};
	$session->query_safe("INSERT INTO wide VALUES (-1); SELECT count(*) FROM numbers");
	select undef, undef, undef, .1 for 1 .. 10;
	my $first = $load->(0);
	$load->(200_000);
	my $again = $load->(400_000);
	cmp_ok($first, '<', $again + 16_640 - 4_000, 'a worker touches pages of a new filter');
	$session->query_safe('TRUNCATE wide');
	cmp_ok($load->(0), '<', $again + 1_000, 'one that was emptied has kept its pages');
	cmp_ok(known('wide', 400_001, 500_000), '<', 1000, 'and forgotten its keys');
	$session->quit;
}
done_testing();
