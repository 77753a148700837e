# Trees of filters over restarts and dumps, with a root on another server, and under sessions that bring
# the same keys to different leaves at once.
# flavours: faults
use Sf;

my $seconds = $ENV{STREAMFILTER_STRESS_SECONDS} || 3;
my $dir     = PostgreSQL::Test::Utils::tempdir;

my $node = start_node('trees');

# A root and two leaves; the leaves see each other's keys through it.
sub create_tree
{
	my ($name, $root, $options) = @_;
	my $shape = "kind 'bloom', memory '64kB', k '4'";
	sql("CREATE FOREIGN TABLE $name (id int) $root OPTIONS ($shape $options);
	     CREATE FOREIGN TABLE ${name}_a (id int) SERVER streamfilter
	       OPTIONS ($shape, parent '$name');
	     CREATE FOREIGN TABLE ${name}_b (id int) SERVER streamfilter
	       OPTIONS ($shape, parent '$name', tree 'dense')");
	return sql("INSERT INTO ${name}_a SELECT generate_series(1, 100);
	            INSERT INTO ${name}_b SELECT generate_series(101, 200)");
}

sub both_know
{
	my ($name) = @_;
	return sql("SELECT count(*) FILTER (WHERE streamfilter_test('${name}_a', i)),
	                   count(*) FILTER (WHERE streamfilter_test('${name}_b', i))
	            FROM generate_series(1, 200) i");
}

# ---- restarts --------------------------------------------------------------------------------------
# The seed is random and belongs to the root: what a leaf has saved is of no use under another one.
create_tree('logged', 'SERVER streamfilter', '');
create_tree('passing', 'SERVER streamfilter', ", persistence 'unlogged'");
is(both_know('logged'), '200|200', 'a tree knows the keys of all leaves');
$node->restart;
is(both_know('logged'),  '200|200', 'logged: after a restart');
is(both_know('passing'), '200|200', 'unlogged root: after a restart');
crash();
is(both_know('logged'), '200|200', 'logged: after a crash');
is(both_know('passing'), '0|0', 'unlogged root: all start empty after a crash');
is(sql("SELECT streamfilter_seen('passing_a', 1), streamfilter_seen('passing_b', 1)"), 'f|t', 'and work');

# ---- dump and restore ------------------------------------------------------------------------------
sql('CREATE DATABASE restored');
$node->command_ok(['pg_dump', '-f', "$dir/dump.sql", '-d', $node->connstr('postgres')], 'dump');
my ($out, $err);
$node->psql('restored', '', stdout => \$out, stderr => \$err, extra_params => ['-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/dump.sql"]);
is($err, '', 'a dump restores without a word');
is($node->safe_psql('restored',
		q{SELECT filter, parent, level FROM streamfilter_tree WHERE filter::text LIKE 'logged%'
		  ORDER BY level, filter::text}),
	"logged||0\nlogged_a|logged|1\nlogged_b|logged|1", 'the tree is there');

# ---- the root on another server --------------------------------------------------------------------
my $holder = start_node('holder');
sql(sprintf(q{CREATE SERVER holder FOREIGN DATA WRAPPER streamfilter
                OPTIONS (host '%s', port '%d', dbname 'postgres');
              CREATE USER MAPPING FOR CURRENT_USER SERVER holder}, $holder->host, $holder->port));
create_tree('far', 'SERVER holder', ", seed '5'");
is(both_know('far'), '200|200', 'root on another server');
is(sql(q{BEGIN; SELECT streamfilter_seen('far_a', 300); ROLLBACK;
         SELECT streamfilter_seen('far_b', 300), streamfilter_seen('far_a', 300)}),
	"f\nf|t", 'rolled back in the leaf and there');
is(sql('SELECT accepted - rolled_back FROM streamfilter_stats', $holder), '201', 'every key went there');
sql(q{ALTER FOREIGN TABLE far_a OPTIONS (ADD top_down '1')});
like(said(q{SELECT streamfilter_seen('far_a', 1000)}), qr/"far" cannot be tested top-down/, 'top-down tests need the root here');
like(said(q{CREATE FOREIGN TABLE unseeded (id int) SERVER holder OPTIONS (kind 'bloom', memory '64kB', k '4');
	  CREATE FOREIGN TABLE below (id int) SERVER streamfilter
	    OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'unseeded')}), qr/"unseeded" cannot be a parent without option seed/, 'its seed must be known');

# ---- the same keys to different leaves at once -----------------------------------------------------
# Keys follow the clock, so that all sessions try the same new ones. The root is so full that it takes
# nearly every key for a repeat; three leaves, one of them dense, are tested top-down.
sql(q{CREATE FOREIGN TABLE full_root (id int) SERVER streamfilter
        OPTIONS (kind 'bloom', memory '4kB', k '2')});
for my $leaf (qw(a b c))
{
	my $kind = $leaf eq 'b' ? 'dense' : 'sparse';
	sql("CREATE FOREIGN TABLE full_$leaf (id int) SERVER streamfilter
	       OPTIONS (kind 'bloom', memory '4kB', k '2', parent 'full_root', top_down '1', tree '$kind');
	     CREATE TABLE events_$leaf (id int);
	     CREATE TRIGGER zz BEFORE INSERT ON events_$leaf
	       FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('full_$leaf')");
	PostgreSQL::Test::Utils::append_to_file("$dir/$leaf.sql", qq{
		\\set end random(1, 4)
		BEGIN;
		INSERT INTO events_$leaf SELECT
		  (extract(epoch FROM clock_timestamp()) * 300)::bigint % 1000000 + i
		FROM generate_series(0, 2) i;
		\\if :end = 1
		ROLLBACK;
		\\else
		COMMIT;
		\\endif
	});
}
sql(q{INSERT INTO full_a SELECT i FROM generate_series(2000000, 2040000) i; TRUNCATE full_a});
$node->command_ok(
	['pgbench', '-n', '-c', '9', '-T', $seconds, '--max-tries=10',
		(map { ('-f', "$dir/$_.sql") } qw(a b c)), $node->connstr('postgres')],
	'sessions');
my $all = '(SELECT id FROM events_a UNION ALL SELECT id FROM events_b UNION ALL SELECT id FROM events_c)';
is(sql("SELECT count(*) - count(DISTINCT id) FROM $all AS events"), '0', 'no key is there twice');
is(sql("SELECT count(*) FROM $all AS events WHERE NOT streamfilter_test('full_c', id)"), '0', 'and none is forgotten');
cmp_ok(sql("SELECT count(*) FROM $all AS events"), '>', 100 * $seconds, 'there were many');
is(sql(q{SELECT sum(in_flight) FROM streamfilter_stats WHERE filter::text LIKE 'full%'}), '0', 'nothing is left in flight');

done();
