# A key costs the same in a transaction that changes a few filters and in one that changes a thousand: neither the key, nor the
# statement, nor the commit looks through the filters of the transaction. Instructions of the library are counted, which are the
# same on every run.
use Sf;
use Instructions;

skip_without_valgrind(6);

my $filters = 1000;
my $node = start_node('many', qq{
	streamfilter.max_filters = $filters
	streamfilter.dynamic_memory = 0
	max_locks_per_transaction = 300
	fsync = off});
sql(qq{CREATE SEQUENCE keys;
	SELECT format('CREATE FOREIGN TABLE f_%s (id int) SERVER streamfilter OPTIONS (kind ''bloom'', k ''7'', memory ''8kB'')', i)
	FROM generate_series(1, $filters) i \\gexec});
$node->stop;
my $instructions = Instructions->new($node, copies => 1);    # a first use reads a log of the same length

# Of the library, for a key: each filter gets one in each round, which is a transaction. Rounds after the first do not use
# filters for the first time.
sub per_key
{
	my ($count) = @_;
	my $insert = "EXECUTE 'INSERT INTO f_' || i || ' VALUES (' || nextval('keys') || ')'";
	my $round = "DO \$\$ BEGIN FOR i IN 1 .. $count LOOP $insert; END LOOP; END \$\$";
	return $instructions->per_round(1, 3, [$round])->{own} / $count;
}

my ($few, $many) = map { per_key($_) } 50, $filters;
note(sprintf 'a key of one of 50 filters: %d instructions, of %d: %d', $few, $filters, $many);
cmp_ok($many, '<=', 1.1 * $few, "a key takes the same in a transaction of $filters filters");

# The filters know their keys, whatever the order of their changes.
$node->start;
sql("DO \$\$ BEGIN FOR i IN 1 .. 2 * $filters LOOP
	EXECUTE format('INSERT INTO f_%s VALUES (%s)', i % $filters + 1, i); END LOOP; END \$\$");
crash();
my $known = q{SELECT sum(streamfilter_test(('f_' || (i % 1000 + 1))::regclass, i)::int)};
is(sql("$known FROM generate_series(1, 2 * $filters) i"), 2 * $filters, 'all are known after a crash');

done();
