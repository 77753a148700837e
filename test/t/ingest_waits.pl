# A large load that has a filter for itself waits for a row that another transaction has locked, and that one adds a key
# to the filter: there is no deadlock, and no session waits longer than for the key that it adds itself.
# flavours: quick faults one_by_one
use Sf;

my $node = start_node('main', q{
	streamfilter.max_in_flight = 1000
	fsync = off});
sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1e6', fpr '1e-9');
	CREATE TABLE parent (id int PRIMARY KEY);
	INSERT INTO parent VALUES (1);
	CREATE TABLE of_parent (id int, parent int REFERENCES parent);
	CREATE TABLE with_key (id int, number int UNIQUE);
	CREATE TABLE keyed (id int, number int UNIQUE);
	CREATE TABLE plain (id int);
	CREATE TRIGGER discard BEFORE INSERT ON of_parent FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TRIGGER discard BEFORE INSERT ON with_key FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TRIGGER discard BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TABLE numbers (n int, base int);
	INSERT INTO numbers SELECT n, 0 FROM generate_series(0, 4999) n;
	CREATE FUNCTION add_number() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN INSERT INTO seen VALUES (NEW.base + NEW.n); RETURN NULL; END $$;
	CREATE TRIGGER add_number AFTER UPDATE OF base ON numbers FOR EACH ROW EXECUTE FUNCTION add_number();
	CREATE FUNCTION locked() RETURNS int LANGUAGE plpgsql AS $$
	DECLARE found int; BEGIN SELECT id INTO found FROM parent WHERE id = 1 FOR UPDATE; RETURN found; END $$;
	CREATE TABLE bare (id int);
	CREATE SEQUENCE calls;
	CREATE FUNCTION wait_late() RETURNS int LANGUAGE plpgsql AS $$
	DECLARE t text; BEGIN IF nextval('calls') % 5000 = 0 THEN t := pg_advisory_xact_lock(7)::text; END IF; RETURN 0; END $$;
	CREATE TABLE with_default (id int, waits int DEFAULT wait_late());
	CREATE TRIGGER discard BEFORE INSERT ON with_default FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TABLE bare_with_default (LIKE with_default INCLUDING ALL);
	CREATE FUNCTION wait_for_last() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE t text; BEGIN IF NEW.id % 100000 = 4999 THEN t := pg_advisory_xact_lock(7)::text; END IF; RETURN NEW; END $$;
	CREATE TABLE with_trigger (id int);
	CREATE TRIGGER before BEFORE INSERT ON with_trigger FOR EACH ROW EXECUTE FUNCTION wait_for_last();
	CREATE TRIGGER discard BEFORE INSERT ON with_trigger FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TABLE bare_with_trigger (id int);
	CREATE TRIGGER before BEFORE INSERT ON bare_with_trigger FOR EACH ROW EXECUTE FUNCTION wait_for_last()});

my $base = 0;

# `lock`: what the small transaction does first; `load`: what the large one does then, with keys from %1$d to %2$d.
sub try
{
	my ($name, $lock, $load) = @_;
	$base += 100_000;
	my $small = open_session("BEGIN; SET LOCAL lock_timeout = '20s'; $lock");
	my $large = open_session(q{SET application_name = 'large'});
	$large->query_until(qr//, sprintf("$load;\n", $base, $base + 4999));
	ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
		WHERE application_name = 'large' AND wait_event_type = 'Lock'}), "$name: the load waits");
	my $key = $base + 50_000;
	is($small->query("INSERT INTO seen VALUES ($key) RETURNING id"), $key, "$name: another key goes in at once");
	$small->query_safe('ROLLBACK');
	is($large->query(q{SELECT 'end'}), 'end', "$name: the load ends");
	is(sql("SELECT count(*) FROM generate_series($base, $base + 4999) i WHERE streamfilter_test('seen', i)"), 5000,
		"$name: with all its keys");
	$_->quit for $small, $large;
	return;
}

try('foreign key', 'SELECT FROM parent WHERE id = 1 FOR UPDATE', 'INSERT INTO of_parent SELECT i, 1 FROM generate_series(%d, %d) i');
try('unique index', 'INSERT INTO with_key VALUES (0, -1)',
	'INSERT INTO with_key SELECT i, CASE WHEN i %% 100000 = 4000 THEN -1 ELSE i END FROM generate_series(%d, %d) i');
try('streamfilter_seen', 'INSERT INTO keyed VALUES (0, -2)', q{INSERT INTO keyed SELECT i, CASE WHEN i %% 100000 = 4999 THEN -2 ELSE i END
	FROM generate_series(%d, %d) i WHERE NOT streamfilter_seen('seen', i)});
try('a function that locks', 'SELECT FROM parent WHERE id = 1 FOR UPDATE',
	'INSERT INTO seen SELECT i FROM generate_series(%d, %d) i WHERE i %% 100000 < 4999 OR locked() = 1');
try('rows that the source locks', 'SELECT FROM numbers WHERE n = 4999 FOR UPDATE',
	'INSERT INTO plain SELECT %1$d + n FROM (SELECT n FROM numbers FOR UPDATE) n');
try('rows that a part of the statement changes', 'SELECT FROM numbers WHERE n = 4999 FOR UPDATE',
	'WITH changed AS (UPDATE numbers SET n = n RETURNING n) INSERT INTO plain SELECT %1$d + n FROM changed');
try('rows whose trigger adds keys', 'SELECT FROM numbers WHERE n = 4999 FOR UPDATE', 'UPDATE numbers SET base = %1$d');

# A function that waits, without a query of its own.
my $lock = 'SELECT pg_advisory_xact_lock(7)';
my $last = q{(i %% 100000 < 4999 OR pg_advisory_xact_lock(7)::text = '')};
for my $of ([ 'trigger', 'INSERT INTO plain', 'true' ], [ 'streamfilter_seen', 'INSERT INTO bare', q{NOT streamfilter_seen('seen', i)} ],
	[ 'CREATE TABLE AS', 'CREATE TEMP TABLE made AS', q{NOT streamfilter_seen('seen', i)} ])
{
	my ($name, $target, $new) = @$of;
	try("$name, a function in the list", $lock, qq{$target SELECT i + CASE WHEN i %% 100000 = 4999
		THEN length(pg_advisory_xact_lock(7)::text) ELSE 0 END FROM generate_series(%d, %d) i WHERE $new});
	try("$name, a function in WHERE", $lock, "$target SELECT i FROM generate_series(%d, %d) i WHERE $last AND $new");
	try("$name, a function in WITH", $lock, qq{$target WITH waits AS MATERIALIZED (SELECT pg_advisory_xact_lock(7))
		SELECT i FROM generate_series(%d, %d) i WHERE (i %% 100000 < 4999 OR EXISTS (SELECT FROM waits)) AND $new});
}
try('trigger, a default', $lock, 'INSERT INTO with_default (id) SELECT generate_series(%d, %d)');
try('streamfilter_seen, a default', $lock, q{INSERT INTO bare_with_default (id) SELECT i FROM generate_series(%d, %d) i
	WHERE NOT streamfilter_seen('seen', i)});
try('trigger, an earlier trigger', $lock, 'INSERT INTO with_trigger SELECT generate_series(%d, %d)');
try('streamfilter_seen, a trigger', $lock, q{INSERT INTO bare_with_trigger SELECT i FROM generate_series(%d, %d) i
	WHERE NOT streamfilter_seen('seen', i)});
try('trigger, later in the block', $lock, q{DO $$ DECLARE t text; BEGIN INSERT INTO plain SELECT generate_series(%d, %d);
	t := pg_advisory_xact_lock(7)::text; END $$});
$node->safe_psql('postgres', sprintf 'CREATE TABLE warming AS SELECT i AS id FROM generate_series(%d, %d) i', $base + 100_000, $base + 104_999);
try('streamfilter_warm', $lock, q{CREATE TEMP TABLE warmed AS SELECT streamfilter_warm('seen', 'warming', '{id}',
	$$id %% 100000 < 4999 OR pg_advisory_xact_lock(7)::text = ''$$) WHERE %d < %d});

# A client sends some rows of a COPY, and nothing more for as long as it likes.
for my $target (qw(plain seen))
{
	$base += 100_000;
	my $slow = $node->background_psql('postgres');
	$slow->query_until(qr//, join "\n", "COPY $target FROM STDIN;", $base .. $base + 19_999, '');
	ok($node->poll_query_until('postgres', 'SELECT bytes_processed > 50000 FROM pg_stat_progress_copy'), "COPY $target: rows have come");
	my $key = $base + 50_000;
	is(sql("SET lock_timeout = '20s'; INSERT INTO seen VALUES ($key) RETURNING id"), $key, "COPY $target: another key goes in at once");
	is($slow->query("\\.\nSELECT 'end'"), 'end', "COPY $target: the load ends");
	$slow->quit;
	is(sql("SELECT count(*) FROM generate_series($base, $base + 19999) i WHERE streamfilter_test('seen', i)"), 20_000,
		"COPY $target: with all its keys");
}

# A load that waits for nobody has the filter for itself, and hands it over to who comes.
my $alone = $node->background_psql('postgres', on_error_stop => 0);
$alone->query_until(qr//, q{INSERT INTO seen SELECT i FROM generate_series(5000001, 5100000) i
	WHERE i < 5005000 OR (SELECT count(*) FROM generate_series(1, 20000 + i % 2)) > 0;
});
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks
	WHERE locktype = 'object' AND objid = 'seen'::regclass AND mode = 'ExclusiveLock' AND granted}), 'a load has the filter for itself');
is(sql(q{SET lock_timeout = '20s'; INSERT INTO seen VALUES (1) RETURNING id}), 1, 'and hands it over');
sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO seen%i % 2%'
	AND pid <> pg_backend_pid()});
$alone->quit;

# So a load of a table in which no row waits for another takes no memory.
sql('INSERT INTO plain SELECT generate_series(1, 5000)');
is(sql('SELECT dynamic FROM streamfilter_memory()'), 0, 'a plain table takes none');

done_testing();
