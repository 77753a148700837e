# Restoring a filter takes a bounded amount of private memory, however long its log is: its rows are sorted within
# maintenance_work_mem, and what does not fit goes to temporary files.
# flavours: faults
use Sf;
use Needs;

needs(-r "/proc/$$/status", 'no /proc', 5);
needs(($ENV{LD_PRELOAD} // '') !~ /san/, 'sanitizers take their own memory', 5);

my $node = start_node('restore_memory', q{
	streamfilter.shared_memory = '16MB'
	streamfilter.min_log_size = '64MB'
	maintenance_work_mem = '1MB'
	temp_file_limit = 0
	log_temp_files = 0
	synchronous_commit = off
	fsync = off});
# Kind sqf counts: a row that was played twice would stay when its key is deleted once. Of the keys that are even the first half
# is deleted: that is right only where the rows are played in their order.
sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sqf', fingerprint 'integer', keys '200000', fpr '1e-6');
	CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'bloom', k '7', memory '1MB');
	CREATE PROCEDURE add_singly(filter text, first int, last int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN first .. last LOOP
			EXECUTE format('INSERT INTO %I VALUES ($1)', filter) USING i;
			COMMIT;
		END LOOP;
	END $$;
	INSERT INTO seen SELECT generate_series(100001, 101000);
	TRUNCATE seen;
	CALL add_singly('other', 1, 10000);
	CALL add_singly('seen', 1, 40000);
	DELETE FROM seen WHERE id IN (SELECT 2 * generate_series(1, 10000));
	-- The room of rows that are gone is taken by new ones: these lie in another order than they were written in.
	DROP FOREIGN TABLE other;
	VACUUM _streamfilter.streamfilter_log;
	CALL add_singly('seen', 40001, 60000)});

my $known = q{SELECT count(*) FILTER (WHERE id % 2 = 0 AND id <= 20000), count(*) FILTER (WHERE id % 2 = 1 OR id > 20000),
	bool_or(id > 60000) FROM (SELECT generate_series(1, 110000) AS id) ids WHERE streamfilter_test('seen', id)};
my $before = sql($known);
is($before, '0|50000|f', 'what the filter knows');

# Of the address space, in kB: freed memory counts, too.
sub size_of
{
	my ($pid, $what) = @_;
	my ($size) = slurp_file("/proc/$pid/status") =~ /^$what:\s+(\d+) kB/m;
	return $size;
}

$node->restart;
my $session = $node->background_psql('postgres');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
my $rows = $session->query_safe('SELECT count(*) FROM _streamfilter.streamfilter_log');
$session->query_safe(q{SELECT streamfilter_test('seen', 1) FROM (SELECT 1 LIMIT 0) nothing});
my $size = size_of($pid, 'VmSize');
$session->query_safe(q{SELECT streamfilter_test('seen', 1)});
my $growth = size_of($pid, 'VmPeak') - $size;
note("$rows rows of log, $growth kB");
cmp_ok($rows, '>=', 60000, 'a row for each transaction');
cmp_ok($growth, '<=', 3500, 'restoring takes little more than maintenance_work_mem, for a log of any length');
is($session->query_safe($known), $before, 'and the filter knows what it knew');
$session->quit;
like(slurp_file($node->logfile), qr/temporary file: path/, 'the rest was in temporary files, whatever temp_file_limit allows');
done_testing();
