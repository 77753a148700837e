# What a first use after a restart reads of the log, which is one heap for all filters: its pages once; twice, where the memory is
# derived and so the saved geometry is looked up first; once more, while a transaction is prepared.
# flavours: quick asserted faults
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $filters = 160;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '16MB'
	streamfilter.max_filters = 200
	max_locks_per_transaction = 256
	max_prepared_transactions = 5
	synchronous_commit = off
	autovacuum = off
	fsync = off});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION streamfilter;
	SELECT format('CREATE FOREIGN TABLE f_%s (id int) SERVER streamfilter OPTIONS (kind ''clq'', fpr ''0.01'', memory ''8kB'')', i)
	FROM generate_series(1, $filters) i \\gexec
	CREATE FOREIGN TABLE derived (id int) SERVER streamfilter OPTIONS (keys '1000');
	INSERT INTO derived VALUES (1);
	DO \$\$ BEGIN FOR key IN 1 .. 20 LOOP FOR i IN 1 .. $filters LOOP
		EXECUTE format('INSERT INTO f_%s VALUES (\$1)', i) USING key;
	END LOOP; COMMIT; END LOOP; END \$\$});

my $log = q{'_streamfilter.streamfilter_log'::regclass};
my $pages = $node->safe_psql('postgres', "SELECT pg_relation_size($log) / 8192");
cmp_ok($pages, '>=', 25, "the log has $pages pages");

sub restart { $node->stop('immediate'); $node->start; return; }

sub pages_read
{
	my ($filter) = @_;
	my $fetched = "SELECT pg_stat_force_next_flush(); SELECT pg_stat_get_blocks_fetched($log);";
	my @lines = split /\n/, $node->safe_psql('postgres', "$fetched SELECT streamfilter_test('$filter', 1); $fetched");
	my ($before, $known, $after) = grep { $_ ne '' } @lines;
	is($known, 't', "filter $filter has its key");
	return $after - $before;
}

restart();
cmp_ok(pages_read('f_1'), '<=', $pages + 2, 'a first use reads the log once');
cmp_ok(pages_read('f_2'), '<=', $pages + 2, 'that of another filter, too');
is(pages_read('f_1'), 0, 'the next use reads nothing');
cmp_ok(pages_read('derived'), '<=', 2 * ($pages + 2), 'twice where the memory is derived');

$node->safe_psql('postgres', q{BEGIN; INSERT INTO f_3 VALUES (100); PREPARE TRANSACTION 'one'});
restart();
cmp_ok(pages_read('f_1'), '<=', 2 * ($pages + 2), 'once more while a transaction is prepared');
$node->safe_psql('postgres', q{COMMIT PREPARED 'one'});
is($node->safe_psql('postgres', q{SELECT streamfilter_test('f_3', 100)}), 't', 'whose key is known, once it commits');
cmp_ok(pages_read('f_4'), '<=', $pages + 2, 'once again afterwards');
done_testing();
