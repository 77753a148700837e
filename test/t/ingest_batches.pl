# INSERT in batches beside others: filters on other servers, trees below them, sessions with the same keys, a server
# that stops meanwhile.
use Sf;

my $settings = "max_prepared_transactions = 2\nfsync = off\nstreamfilter.lost_rows = warn\n";
my $holder = start_node('holder', $settings);
my $node = start_node('producer', $settings);
on($node);

sql(sprintf(q{CREATE SERVER a FOREIGN DATA WRAPPER streamfilter OPTIONS (host '%s', port '%d', dbname 'postgres');
              CREATE USER MAPPING FOR CURRENT_USER SERVER a},
	$holder->host, $holder->port));
sql(q{CREATE TABLE src (id int, key int);
      INSERT INTO src SELECT i, CASE WHEN i % 17 <> 0 THEN i % 1500 END FROM generate_series(1, 4000) i});

# ---- other servers ---------------------------------------------------------------------------------

my $shape = q{kind 'bloom', memory '64kB', k '6', seed '7'};

sub messages { return sql("SELECT sum(messages) FROM streamfilter_slices WHERE filter::text = '$_[0]'"); }

# Loads the rows into a table whose trigger asks the filter; what comes of it, and the messages of it.
sub load
{
	my ($filter, $remote, $switch) = @_;
	sql("CREATE TABLE t (id int, key int);
	     CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$filter')");
	my $before = messages($remote);
	sql("SET streamfilter.batch_insert = $switch; INSERT INTO t SELECT * FROM src");
	my $rows = sql("SELECT count(*), sum(id), md5(string_agg(t::text, ' ' ORDER BY ctid)) FROM t");
	my $sent = messages($remote) - $before;
	sql('DROP TABLE t');
	return ($rows, $sent);
}

sql("CREATE FOREIGN TABLE $_ (key int) SERVER a OPTIONS ($shape)") for qw(one other);
my ($rows, $sent) = load('one', 'one', 'on');
my ($rows_one_by_one, $sent_one_by_one) = load('other', 'other', 'off');
is($rows, $rows_one_by_one, 'a filter on another server: the same rows');
cmp_ok($sent_one_by_one, '>', 3000, 'row by row, each key is a message');
cmp_ok($sent, '<', 40, 'in batches, hundreds of keys are');

my $file = PostgreSQL::Test::Utils::tempdir() . '/rows';
append_to_file($file, join('', map { "$_\t" . (5000 + $_) . "\n" } 1 .. 400));
sql(q{CREATE TABLE t (id int CHECK (id <> 150), key int);
      CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('one')});
like(said("COPY t FROM '$file'"), qr/CONTEXT:  COPY t, line 150: "150\t5150"/, 'COPY: an error names the line, however many are asked about at once');
sql('DROP TABLE t');

for my $kind (qw(sparse dense))
{
	my (%loaded, %nodes);
	for my $switch (qw(on off))
	{
		my $name = "${kind}_$switch";
		sql("CREATE FOREIGN TABLE $name (key int) SERVER a OPTIONS ($shape);
		     CREATE FOREIGN TABLE below_$name (key int) SERVER streamfilter
		       OPTIONS (kind 'bloom', memory '64kB', k '6', parent '$name', tree '$kind');
		     CREATE FOREIGN TABLE leaf_$name (key int) SERVER streamfilter
		       OPTIONS (kind 'bloom', memory '64kB', k '6', parent 'below_$name', tree '$kind');
		     INSERT INTO below_$name SELECT generate_series(1000, 1100)");
		$loaded{$switch} = [ load("leaf_$name", $name, $switch) ];
		$nodes{$switch} = sql("SELECT string_agg(concat_ws('/', split_part(filter::text, '_', 1), tested, accepted, discarded, accesses, hits), ' ' ORDER BY filter::text)
		                       FROM streamfilter_stats JOIN streamfilter_tree USING (filter) WHERE filter::text LIKE '%$name'");
	}
	is($loaded{on}[0], $loaded{off}[0], "a $kind tree below another server: the same rows");
	is($nodes{on}, $nodes{off}, "$kind: the same counts of each node");
	cmp_ok($loaded{on}[1], '<', $loaded{off}[1] / 20, "$kind: far fewer messages");
}

# ---- rows that streamfilter_seen() lets pass ----------------------------------------------------------

# What comes of an INSERT of them with a filter of its own, and how many messages that takes.
my $filters = 0;
sub insert_new
{
	my ($switch, $insert, $tree) = @_;
	my $remote = 'far' . ++$filters;
	my $asked = $tree ? "leaf$filters" : $remote;
	sql("CREATE FOREIGN TABLE $remote (key int) SERVER a OPTIONS ($shape)");
	sql("CREATE FOREIGN TABLE $asked (key int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '6', parent '$remote', tree '$tree');
	     INSERT INTO $asked VALUES (7), (8)") if $tree;
	sql('TRUNCATE t');
	my $before = messages($remote);
	$insert =~ s/ASKED/$asked/g;
	my ($status, $printed, $error) = $node->psql('postgres', "SET streamfilter.batch_insert = $switch; $insert");
	my $sent = messages($remote) - $before;
	$error =~ s/"far\d+"/"far"/g;
	return (sql(qq{SELECT count(*), md5(string_agg(t::text, ' ' ORDER BY tableoid, ctid)),
	                      (SELECT concat_ws('/', tested, accepted, discarded, would_discard) FROM streamfilter_stats WHERE filter = '$asked'::regclass),
	                      (SELECT count(*) FROM src WHERE streamfilter_test('$asked', key)) FROM t}) . " $error", $sent);
}

sub is_asked_at_once
{
	my ($what, $insert, $limit, $tree) = @_;
	my ($got, $sent) = insert_new('on', $insert, $tree);
	my ($expected, $sent_one_by_one) = insert_new('off', $insert, $tree);
	is($got, $expected, "$what: the same rows, counts and keys");
	cmp_ok($sent, $limit < 1000 ? '<=' : '>=', $limit, "and $sent messages instead of $sent_one_by_one");
	return;
}

my $new = q{FROM src WHERE NOT streamfilter_seen('ASKED', key)};
sql('CREATE TABLE t (id int, key int)');
is_asked_at_once('NOT streamfilter_seen()', "INSERT INTO t SELECT * $new", 12);
is_asked_at_once('in another order', "INSERT INTO t SELECT id, key + 1 $new AND id > 3 ORDER BY key DESC, id", 12);
is_asked_at_once('from two tables', "INSERT INTO t SELECT * $new AND id < 3000 UNION ALL SELECT * $new AND id > 2000", 1000);
is_asked_at_once('from arrays', q{INSERT INTO t SELECT i.id, i.key
  FROM unnest((SELECT array_agg(id ORDER BY id) FROM src), (SELECT array_agg(key ORDER BY id) FROM src)) AS i (id, key) WHERE NOT streamfilter_seen('ASKED', i.key)}, 12);
is_asked_at_once('from a list', 'INSERT INTO t SELECT * FROM (VALUES ' . join(', ', map { "($_, $_ % 1400)" } 1 .. 2000) .
  q{) AS i (id, key) WHERE NOT streamfilter_seen('ASKED', key)}, 6);
is_asked_at_once('in mode shadow', "SET streamfilter.mode = 'shadow'; INSERT INTO t SELECT * $new", 12);
is_asked_at_once("a $_ tree below another server", "INSERT INTO t SELECT * $new", 14, $_) for qw(sparse dense);
is_asked_at_once('and taken back', "BEGIN; SAVEPOINT s; INSERT INTO t SELECT * $new; ROLLBACK TO s; INSERT INTO t SELECT * $new AND id > 100; COMMIT", 26);
is_asked_at_once('an error', "INSERT INTO t SELECT id / (id - 3000), key $new", 12);
# Others may not get more keys than rows, or may look at the filter meanwhile.
is_asked_at_once('the first rows only', "INSERT INTO t SELECT * $new ORDER BY id LIMIT 10", 1000);
is_asked_at_once('the first rows only, as they come', "INSERT INTO t SELECT * FROM (SELECT * $new LIMIT 1200) AS s", 1000);
is_asked_at_once('a join', "INSERT INTO t SELECT s.* FROM (SELECT * $new OFFSET 0) AS s JOIN generate_series(1, 4000) AS i ON i = s.id", 1000);
is_asked_at_once('returned rows', "INSERT INTO t SELECT * $new RETURNING id", 1000);
sql(q{DROP TABLE t;
      CREATE TABLE t (id int, key int) PARTITION BY RANGE (id);
      CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (1) TO (2000);
      CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (2000) TO (5000)});
is_asked_at_once('partitions', "INSERT INTO t SELECT * $new", 12);
sql(q{CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.key := -1; RETURN NEW; END $$;
      CREATE TRIGGER late BEFORE INSERT ON t2 FOR EACH ROW EXECUTE FUNCTION late()});
is_asked_at_once('a partition whose trigger may look', "INSERT INTO t SELECT * $new", 1000);
sql('DROP TRIGGER late ON t2; ALTER TABLE t2 ADD CHECK (id > 0)');
is_asked_at_once('a partition with a constraint of its own', "INSERT INTO t SELECT * $new", 1000);
sql('DROP TABLE t');

# A function that asks the filter, though it is said to be immutable, and counts what it is told.
sql(q{CREATE SEQUENCE looks;
      CREATE FUNCTION looks(key int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
        IF streamfilter_test(('far' || (SELECT count(*) FROM pg_class WHERE relname ~ '^far[0-9]+$'))::regclass, key + 1) THEN PERFORM nextval('looks'); END IF;
        RETURN key < 700; END $$;
      CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'});
my %looking = (
	'a generated column of a partition' => q{ATTACH: known boolean GENERATED ALWAYS AS (looks(key)) STORED},
	'an index of a partition' => q{CREATE INDEX ON t2 (looks(key))},
	'a partial index of a partition' => q{CREATE INDEX ON t2 (key) WHERE looks(key)},
	'the condition of an AFTER trigger of a partition' => q{CREATE TRIGGER told AFTER INSERT ON t2 FOR EACH ROW WHEN (looks(NEW.key)) EXECUTE FUNCTION nothing()},
	'the key of partitions' => q{CREATE TABLE t3 (LIKE t) PARTITION BY LIST (looks(key));
	   CREATE TABLE t3a PARTITION OF t3 FOR VALUES IN (true); CREATE TABLE t3b PARTITION OF t3 DEFAULT; ALTER TABLE t DETACH PARTITION t2;
	   ALTER TABLE t ATTACH PARTITION t3 FOR VALUES FROM (500) TO (5000)});
delete $looking{'a generated column of a partition'} if $node->pg_version < 16;  # which has that of the table
for my $what (sort keys %looking)
{
	my ($column) = $looking{$what} =~ /^ATTACH: (.*)/;
	sql('CREATE TABLE t (id int, key int' . ($column ? ', known boolean GENERATED ALWAYS AS (key > 0) STORED' : '') . ') PARTITION BY RANGE (id);
	     CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (1) TO (500);
	     CREATE TABLE t2 (id int, key int' . ($column ? ", $column" : '') . ');
	     ALTER TABLE t ATTACH PARTITION t2 FOR VALUES FROM (500) TO (5000)');
	sql($looking{$what}) unless $column;
	my %told;
	for my $switch (qw(on off))
	{
		sql(q{SELECT setval('looks', 1)});
		$told{$switch} = join ' ', (insert_new($switch, "INSERT INTO t (id, key) SELECT * $new"))[0], sql('SELECT last_value FROM looks');
	}
	is($told{on}, $told{off}, "$what sees the filter as with one row after the other");
	sql('DROP TABLE t; DROP TABLE IF EXISTS t2');
}

# ---- other sessions --------------------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE seen (key int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '6');
      CREATE TABLE t (id int, key int);
      CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});

sub both_sessions
{
	my ($end) = @_;
	sql('TRUNCATE t, seen');
	my $first = open_session('BEGIN; INSERT INTO t SELECT id, key FROM src WHERE key BETWEEN 100 AND 199;');
	my $second = $node->background_psql('postgres');
	my $pid = $second->query_safe('SELECT pg_backend_pid()');
	$second->query_until(qr/asked/, "\\echo asked\nINSERT INTO t SELECT id + 10000, key FROM src WHERE key < 300;\n");
	wait_for("SELECT wait_event = 'transactionid' FROM pg_stat_activity WHERE pid = $pid");
	$first->query_safe($end);
	$second->quit;
	$first->quit;
	return sql('SELECT count(*), count(*) FILTER (WHERE id < 10000) FROM t WHERE key IS NOT NULL');
}

SKIP:
{
	skip 'this server has no background_psql', 2 unless $node->can('background_psql');
	my $keys = sql('SELECT count(DISTINCT key) FROM src WHERE key < 300');
	my $own = sql('SELECT count(DISTINCT key) FROM src WHERE key BETWEEN 100 AND 199');
	is(both_sessions('COMMIT;'), "$keys|$own", 'a batch waits for another session, which keeps its keys');
	is(both_sessions('ROLLBACK;'), "$keys|0", 'and gets them if that rolls back');
}

# ---- a statement that ends early --------------------------------------------------------------------

sql('TRUNCATE t, seen');
for my $how ('1 / (20000 - i)', q{CASE WHEN i = 20000 THEN pg_terminate_backend(pg_backend_pid())::int END})
{
	my ($ret, $out, $err) = $node->psql('postgres', "INSERT INTO t SELECT $how, i FROM generate_series(1, 30000) i");
	isnt($ret, 0, 'the statement fails');
	is(sql(q{SELECT count(*), (SELECT count(*) FROM generate_series(1, 30000) i WHERE streamfilter_test('seen', i)) FROM t}),
		'0|0', 'neither rows nor keys are left');
}
sql('INSERT INTO t SELECT i, i FROM generate_series(1, 30000) i');
crash();
sql('INSERT INTO t SELECT i, i FROM generate_series(1, 30000) i');
my $lost = sql('SELECT 30000 - count(DISTINCT key) FROM t');
my $twice = sql('SELECT count(*) - count(DISTINCT key) FROM t');
is($twice, 0, 'after a crash the keys of rows that were committed are known');
cmp_ok($lost, '<', 3000, 'and few others');

done();
