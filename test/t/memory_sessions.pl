# What a session keeps of each filter that it has used does not grow with the number of filters, and goes when the filter is
# dropped.
# flavours: quick faults
use Sf;

my $filters = 300;
my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	streamfilter.max_filters = 400
	fsync = off});
sql(qq{
	SELECT format('CREATE FOREIGN TABLE f_%s (id int, name text) SERVER streamfilter OPTIONS (kind ''sqf'', memory ''8kB'')', i)
	FROM generate_series(1, $filters) i \\gexec});

my $session = $node->background_psql('postgres');
my $of_handles = q{SELECT %s FROM pg_backend_memory_contexts WHERE name LIKE 'streamfilter%%handle%%'};
sub memory { return $session->query_safe(sprintf $of_handles, 'coalesce(sum(total_bytes), 0)'); }
sub contexts { return $session->query_safe(q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'streamfilter handle'}); }

sub use_filters
{
	my ($first, $last) = @_;
	$session->query_safe("DO \$\$ BEGIN FOR i IN $first .. $last LOOP
		EXECUTE format('INSERT INTO f_%s VALUES (1, ''x'')', i); END LOOP; END \$\$");
	return;
}

use_filters(1, $filters);
is(contexts(), $filters, 'a context for each filter');
my $each = memory() / $filters;
note("$each bytes a filter");
cmp_ok($each, '<=', 12 * 1024, "a filter takes at most 12 kB of a session ($each bytes)");

# Another session drops most of them.
sql(qq{
	SELECT format('DROP FOREIGN TABLE f_%s', i) FROM generate_series(11, $filters) i \\gexec});
use_filters(1, 1);
$session->query_safe('SELECT 1');
is(contexts(), 10, 'nothing is kept of filters that were dropped');
use_filters(1, 10);
is(contexts(), 10, 'the others go on');
$session->quit;

# Children are found, whenever their definition comes, and from whichever session.
$session = open_session(q{
	SET client_min_messages = warning;
	CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
	INSERT INTO root VALUES (1)});
sql(q{
	CREATE FOREIGN TABLE leaf (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'root', tree 'sparse');
	INSERT INTO leaf VALUES (2)});
is($session->query_safe(q{SELECT count(*) FROM streamfilter_tree}), 2, 'a session sees the child that another one has made');
is($session->query_safe(q{BEGIN; ALTER FOREIGN TABLE leaf OPTIONS (DROP parent, DROP tree); ROLLBACK;
	SELECT count(*) FROM streamfilter_tree}), 2, 'also after a rollback of what took it away');
sql(q{ALTER FOREIGN TABLE leaf RENAME TO leaf_2; ALTER FOREIGN TABLE root RENAME TO root_2;
	ALTER FOREIGN TABLE leaf_2 OPTIONS (SET parent 'root_2')});
is($session->query_safe(q{SELECT count(*) FROM streamfilter_tree}), 2, 'and under other names');
$session->quit;

done_testing();
