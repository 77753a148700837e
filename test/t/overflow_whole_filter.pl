# Which statements lock a whole filter instead of entering each key: those in which nothing can wait for another session. The
# table of keys in flight cannot grow here, so each of the others counts as overflowed.
# flavours: faults
use Sf;

my $node = start_node('main', q{
streamfilter.lost_rows = warn
	streamfilter.max_in_flight = 1000
	streamfilter.dynamic_memory = 0
	fsync = off});
my $file = $node->basedir . '/numbers';

# Functions of PL/pgSQL may wait without running a query.
sql(qq{
	CREATE FOREIGN TABLE f (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1e6', fpr '1e-9');
	CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1e6', fpr '1e-9');
	CREATE TABLE numbers (i int, d int);
	INSERT INTO numbers SELECT generate_series(1, 2000);
	COPY (SELECT i FROM numbers) TO '$file';
	CREATE TABLE parent (id int PRIMARY KEY);
	CREATE SEQUENCE ids;
} . q{
	CREATE FUNCTION same(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN i; END $$;
	CREATE FUNCTION late(i int) RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN i; END $$;
	CREATE FUNCTION equal(i int, j int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN i = j; END $$;
	CREATE FUNCTION larger(i int, j int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN greatest(i, j); END $$;
	CREATE FUNCTION in_sql(i int) RETURNS int LANGUAGE sql STABLE AS 'SELECT i + count(*)::int FROM parent';
	CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
	CREATE FUNCTION asks() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN IF streamfilter_seen('f', NEW.id) THEN RETURN NULL; END IF; RETURN NEW; END $$;
	CREATE AGGREGATE largest (int) (sfunc = larger, stype = int, initcond = '0');
	CREATE OPERATOR ==== (leftarg = int, rightarg = int, function = equal);
	CREATE DOMAIN checked AS int CHECK (same(VALUE) > -2);
	CREATE TYPE number AS (i int);
	CREATE FUNCTION to_number(i int) RETURNS number LANGUAGE plpgsql AS $$ BEGIN RETURN ROW(i)::number; END $$;
	CREATE CAST (int AS number) WITH FUNCTION to_number(int) AS ASSIGNMENT});

# A table, and the same with our trigger, `judged_…`.
sub create_tables
{
	my (%tables) = @_;
	my $sql = '';
	for my $name (sort keys %tables)
	{
		$sql .= sprintf "CREATE TABLE %1\$s $tables{$name};\n", $_ for $name, "judged_$name";
		$sql .= "CREATE TRIGGER z BEFORE INSERT ON judged_$name FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('f');\n";
	}
	return sql($sql);
}

my @harmless = qw(plain computed indexed numbered);
create_tables(
	plain    => '(id int)',
	computed => '(id int CHECK (id > -5), at timestamptz DEFAULT now(), u uuid DEFAULT gen_random_uuid(), g int GENERATED ALWAYS AS (2 * id) STORED)',
	indexed  => '(id int); CREATE INDEX ON %1$s (id); CREATE INDEX ON %1$s ((id + 1)) WHERE id > 0',
	numbered => '(id int, s serial, n bigint GENERATED ALWAYS AS IDENTITY)');
my @waiting = qw(after before child composite defaults deferred excluded generated on_expression unique_number with_check with_operator where_same);
create_tables(
	after         => '(id int); CREATE TRIGGER a AFTER INSERT ON %1$s FOR EACH ROW EXECUTE FUNCTION stays()',
	before        => '(id int); CREATE TRIGGER a BEFORE INSERT ON %1$s FOR EACH ROW EXECUTE FUNCTION stays()',
	with_check    => '(id int CHECK (same(id) > 0))',
	child         => '(id int, parent int REFERENCES parent)',
	composite     => '(id int, n number DEFAULT 1)',
	with_operator => '(id int CHECK (id ==== id))',
	defaults      => '(id int, d int DEFAULT late(1))',
	deferred      => '(id int, n int UNIQUE DEFERRABLE INITIALLY DEFERRED)',
	excluded      => '(id int, r int4range, EXCLUDE USING gist (r WITH &&))',
	generated     => '(id int, g int GENERATED ALWAYS AS (same(id)) STORED)',
	on_expression => '(id int); CREATE INDEX ON %1$s (same(id))',
	unique_number => '(id int, n int UNIQUE)',
	where_same    => '(id int); CREATE INDEX ON %1$s (id) WHERE same(id) > 0');
sql(q{
	CREATE TABLE judged_when (id int);
	CREATE TRIGGER z BEFORE INSERT ON judged_when FOR EACH ROW WHEN (same(NEW.id) > 0) EXECUTE FUNCTION streamfilter_discard('f');
	CREATE TABLE judged_small (id smallint);
	CREATE TRIGGER z BEFORE INSERT ON judged_small FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('f');
	CREATE TABLE judged_domain (id checked);
	CREATE TRIGGER z BEFORE INSERT ON judged_domain FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('f');
	CREATE TABLE diverted (id int);
	CREATE TABLE judged_diverting (id int);
	CREATE TRIGGER z BEFORE INSERT ON judged_diverting FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('f', 'diverted');
	CREATE TABLE judged_rid (id int);
	CREATE FUNCTION goes() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN IF NEW.id = 1 THEN DROP TRIGGER a ON judged_rid; END IF; RETURN NEW; END $$;
	CREATE TRIGGER a BEFORE INSERT ON judged_rid FOR EACH ROW EXECUTE FUNCTION goes();
	CREATE TRIGGER z BEFORE INSERT ON judged_rid FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('f');
	CREATE TABLE asking (id int);
	CREATE TRIGGER z BEFORE INSERT ON asking FOR EACH ROW EXECUTE FUNCTION asks();
	CREATE TABLE hashed (id int) PARTITION BY HASH (id);
	CREATE TABLE parts (id int) PARTITION BY RANGE (id);
	CREATE TABLE part PARTITION OF parts DEFAULT;
	CREATE TABLE ruled (id int);
	CREATE RULE r AS ON INSERT TO ruled DO INSTEAD INSERT INTO plain SELECT same(NEW.id);
	CREATE VIEW calling AS SELECT same(i) AS i FROM numbers;
	CREATE VIEW choosing AS SELECT id FROM plain WHERE same(id) > 0 WITH CHECK OPTION;
	CREATE VIEW passing AS SELECT id FROM plain WHERE id > 0 WITH CHECK OPTION;
	CREATE VIEW instead AS SELECT id FROM plain;
	CREATE TRIGGER i INSTEAD OF INSERT ON instead FOR EACH ROW EXECUTE FUNCTION stays();
	CREATE FUNCTION loads() RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO judged_plain SELECT i FROM numbers; END $$;
	CREATE PROCEDURE loads_too() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO judged_plain SELECT i FROM numbers; END $$;
	CREATE FUNCTION in_one() RETURNS void LANGUAGE sql AS 'INSERT INTO judged_plain SELECT i FROM numbers'});

# How does the statement keep others from adding its keys: by a lock of the filter, or by an entry for each?
sub lock_of
{
	my ($statement) = @_;
	my $answer = sql(qq{TRUNCATE f, other; SELECT streamfilter_stats_reset('f');
		$statement;
		SELECT accepted, overflowed FROM streamfilter_stats WHERE filter = 'f'::regclass});
	my ($keys, $overflowed) = $answer =~ /^(\d+)\|(\d+)\z/m;
	return $keys < 2000 ? "only $keys keys" : $overflowed == 0 ? 'filter' : 'keys';
}

sub locks_filter { is(lock_of($_), 'filter', "as a whole: $_") foreach @_; return; }
sub locks_keys { is(lock_of($_), 'keys', "key by key: $_") foreach @_; return; }

my $seen = q{streamfilter_seen('f', i)};

# What a query calls, for keys of a trigger, of a condition, and of an INSERT into the filter.
my @sources = ('numbers', 'generate_series(1, 2000) i', '(SELECT i FROM numbers ORDER BY i LIMIT 5000) n',
	'numbers JOIN generate_series(1, 2000) j ON i = j', 'numbers TABLESAMPLE BERNOULLI (100)');
my @waiting_sources = ('calling', '(WITH l AS MATERIALIZED (SELECT i FROM numbers FOR UPDATE) SELECT i FROM l) n', 'numbers JOIN generate_series(1, 2000) j ON i ==== j',
	'generate_series(1, late(2000)) i', 'numbers, LATERAL same(i) s', '(SELECT same(i) FROM numbers) n (i)',
	'(SELECT max(i) OVER (ORDER BY i ROWS late(1) PRECEDING) AS i FROM numbers) n', '(SELECT largest(i) AS i FROM numbers GROUP BY numbers.i) n',
	'(SELECT i FROM numbers LIMIT late(5000)) n', '(WITH w AS MATERIALIZED (SELECT same(i) AS i FROM numbers) SELECT i FROM w) n',
	'numbers TABLESAMPLE BERNOULLI (late(100))', '(VALUES (1), (late(2))) v (s) JOIN numbers ON s = i % 2 + 1');
my @conditions = (q{hashint4(i)::text || now() || random() || clock_timestamp() <> ''}, 'EXISTS (SELECT FROM numbers WHERE d IS NULL)',
	q{CASE WHEN i = 2000 THEN gen_random_uuid() IS NOT NULL ELSE md5(format('%s', i)) <> '' END});
my @waiting_conditions = ('late(1) + random() > 0', 'in_sql(i) = i', 'i ==== i', 'i::checked > 0', q{('(' || i || ')')::number IS NOT NULL},
	'CASE WHEN i = 5000 THEN pg_advisory_xact_lock(7) IS NULL ELSE true END', 'CASE WHEN i = 5000 THEN pg_sleep(1) IS NULL ELSE true END',
	q{CASE WHEN i = 5000 THEN nextval('ids') > 0 ELSE true END}, q{CASE WHEN i = 5000 THEN pg_notify('a', 'b') IS NULL ELSE true END},
	'EXISTS (SELECT FROM parent WHERE id = same(i)) IS NOT NULL', 'i <> ALL (ARRAY[late(-1)])',
	q{CASE WHEN i = 5000 THEN table_to_xml('parent', true, true, '') IS NULL ELSE true END},
	q{CASE WHEN i = 5000 THEN pg_get_object_address('table', '{parent}', '{}') IS NULL ELSE true END},
	q{CASE WHEN i = 5000 THEN satisfies_hash_partition('hashed'::regclass, 2, 0, i) ELSE true END},
	q{NOT streamfilter_seen('other', i)}, 'i = ANY (SELECT same(j) FROM generate_series(1, 2000) j)');
for my $form (
	sub { "INSERT INTO judged_plain SELECT i FROM $_[0] WHERE $_[1]" },
	sub { "INSERT INTO plain SELECT i FROM $_[0] WHERE $_[1] AND NOT $seen" },
	sub { "CREATE TABLE made AS SELECT i FROM $_[0] WHERE $_[1] AND NOT $seen; DROP TABLE made" },
	sub { "INSERT INTO f SELECT i FROM $_[0] WHERE $_[1]" })
{
	locks_filter((map { $form->($_, 'true') } @sources), map { $form->('numbers', $_) } @conditions);
	locks_keys((map { $form->($_, 'true') } @waiting_sources), map { $form->('numbers', $_) } @waiting_conditions);
}

# What a row sets off in its table.
locks_filter(map { ("INSERT INTO judged_$_ (id) SELECT i FROM numbers", "INSERT INTO $_ (id) SELECT i FROM numbers WHERE NOT $seen",
	"COPY judged_$_ (id) FROM '$file'") } grep { $_ ne 'numbered' } @harmless);
locks_filter('INSERT INTO judged_numbered (id) SELECT i FROM numbers', "INSERT INTO numbered (id) SELECT i FROM numbers WHERE NOT $seen");
locks_keys(map { ("INSERT INTO judged_$_ (id) SELECT i FROM numbers", "INSERT INTO $_ (id) SELECT i FROM numbers WHERE NOT $seen",
	"COPY judged_$_ (id) FROM '$file'") } @waiting);
locks_filter('INSERT INTO judged_small SELECT i FROM numbers', "INSERT INTO passing SELECT i FROM numbers WHERE NOT $seen");
locks_keys(map { "INSERT INTO $_ SELECT i FROM numbers" } qw(judged_when judged_domain judged_diverting asking));
locks_keys(map { "INSERT INTO $_ SELECT i FROM numbers WHERE NOT $seen" } qw(parts part ruled choosing instead other));
locks_keys("COPY asking FROM '$file'", "COPY judged_plain FROM '$file' WHERE same(id) > 0", "COPY judged_plain FROM PROGRAM 'cat $file'");
locks_filter("COPY f FROM '$file'");

# A trigger that the statement has dropped fires to its end.
locks_keys('INSERT INTO judged_rid SELECT i FROM numbers');

# What runs the statement, and who reads its rows.
my $load = "SELECT i FROM numbers WHERE NOT $seen";
locks_filter("EXPLAIN (ANALYZE) INSERT INTO plain $load", "PREPARE p AS INSERT INTO plain $load; EXECUTE p",
	"CREATE TABLE made (i) AS SELECT * FROM ($load OFFSET 0) n; DROP TABLE made", "SELECT i INTO made FROM ($load) n; DROP TABLE made",
	q{SELECT streamfilter_warm('f', 'numbers', '{i}')}, q{SELECT streamfilter_warm('f', 'numbers', '{i}', 'i > 0')},
	"SET streamfilter.batch_scan = off; INSERT INTO plain $load", "SET streamfilter.batch_insert = off; INSERT INTO plain $load");
locks_keys($load, "SELECT count(*) FROM ($load) n", "INSERT INTO plain $load RETURNING id", "COPY ($load) TO '$file.out'",
	'INSERT INTO judged_plain SELECT i FROM numbers RETURNING id, id::text', "INSERT INTO plain SELECT i FROM numbers WHERE NOT $seen ON CONFLICT DO NOTHING RETURNING id",
	"COPY (INSERT INTO judged_plain SELECT i FROM numbers RETURNING id) TO '$file.out'",
	'WITH w AS (INSERT INTO judged_plain SELECT i FROM numbers RETURNING id) SELECT FROM w',
	"WITH w AS (INSERT INTO plain $load) SELECT", "BEGIN; INSERT INTO plain $load; COMMIT", 'SELECT loads()', 'SELECT in_one()', 'CALL loads_too()',
	'DO $$ BEGIN INSERT INTO judged_plain SELECT i FROM numbers; END $$', 'UPDATE numbers SET d = 1 RETURNING ' . $seen,
	"BEGIN; DECLARE c CURSOR FOR $load; FETCH ALL FROM c; COMMIT",
	q{SELECT streamfilter_warm('f', 'calling', '{i}')}, q{SELECT streamfilter_warm('f', 'numbers', '{i}', 'same(i) > 0')},
	q{SELECT streamfilter_warm('f', 'numbers', '{i}'), pg_advisory_xact_lock(7)}, q{SELECT streamfilter_warm('f', 'numbers', '{i}'), late(1)});

done_testing();
