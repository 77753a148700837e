# A table of postgres_fdw that stands for a filter on another server, wherever a filter is taken: functions, triggers,
# the root of a tree; with savepoints, and with the commit that is the wrapper's.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use Servers;
use Sessions;
use Test::More;

my ($far, $node) = map { start_node($_, "statement_timeout = '30s'") } 'far', 'near';
$far->safe_psql('postgres', q{
	CREATE FOREIGN TABLE seen (user_id int, url text) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
	CREATE FOREIGN TABLE root (user_id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '100000', fpr '1e-6');
	CREATE TABLE rows (user_id int)});

sub query { return $node->safe_psql('postgres', $_[0]); }
sub fails { my ($code, undef, $error) = $node->psql('postgres', $_[0]); return $code ? $error : 'no error'; }
sub there { return $far->safe_psql('postgres', $_[0]); }

query(sprintf q{
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw
	  OPTIONS (host '%s', port '%d', dbname 'postgres', batch_size '100', options '-c lock_timeout=500ms');
	CREATE USER MAPPING FOR CURRENT_USER SERVER far;
	CREATE FOREIGN TABLE far_seen (user_id int, link text OPTIONS (column_name 'url')) SERVER far OPTIONS (table_name 'seen');
	CREATE FOREIGN TABLE far_root (user_id int) SERVER far OPTIONS (table_name 'root');
	CREATE FOREIGN TABLE far_rows (user_id int) SERVER far OPTIONS (table_name 'rows')}, $far->host, $far->port);

# ---- Functions -------------------------------------------------------------------------------------------
is(query(q{SELECT streamfilter_seen('far_seen', 1, 'a'), streamfilter_seen('far_seen', 1, 'a'),
	streamfilter_seen('far_seen', 1, 'b')}), 'f|t|f', 'streamfilter_seen: within a statement');
is(query(q{SELECT streamfilter_seen('far_seen', 1, 'a'), streamfilter_test('far_seen', 1, 'b'),
	streamfilter_test('far_seen', 2, 'b'), streamfilter_test('far_seen', NULL, 'b')}), 't|t|f|f', 'and from session to session');
is(there(q{SELECT streamfilter_test('seen', 1, 'a'), streamfilter_test('seen', 2, 'b')}), 't|f', 'the keys are there');
is(query(q{SELECT count(*) FROM generate_series(1, 500) i WHERE NOT streamfilter_seen('far_seen', i % 200, 'many')}), '200',
	'in WHERE');
query('CREATE TABLE numbers AS SELECT i % 100 AS n FROM generate_series(1, 300) i');
is(query(q{SELECT count(*), count(DISTINCT n) FROM numbers WHERE NOT streamfilter_seen('far_seen', n, 'scan')}), '100|100',
	'and over a table, where a filter of this server would be read ahead for');
like(fails(q{SELECT streamfilter_seen('far_rows', 1)}), qr/"far_rows" is not a filter/, 'what stands for a table is refused');
is(there('SELECT count(*) FROM rows'), '0', 'before a row is there');
there('INSERT INTO rows VALUES (1)');
like(fails(q{SELECT streamfilter_seen('far_rows', 1)}), qr/"far_rows" is not a filter/, 'likewise with rows');
like(fails(q{SELECT streamfilter_value('far_seen')}), qr/streamfilter_value cannot be used on filter "far_seen"/,
	'its state cannot be had from here');
like(fails(q{SELECT streamfilter_merge('far_seen', streamfilter_value('far_seen'))}), qr/cannot be used on filter/, 'nor changed');

query('ALTER FOREIGN TABLE far_seen OPTIONS (ADD updatable $$false$$)');
like(fails(q{SELECT streamfilter_seen('far_seen', 1, 'a')}), qr/"far_seen" does not allow inserts/, 'a table that may only be read');
query('ALTER FOREIGN TABLE far_seen OPTIONS (DROP updatable)');

# ---- Triggers --------------------------------------------------------------------------------------------
query(q{
	CREATE TABLE clicks (user_id int, link text, n int);
	CREATE TRIGGER zz BEFORE INSERT ON clicks FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('far_seen');
	CREATE TABLE marked (u int, l text, again boolean);
	CREATE TRIGGER zz BEFORE INSERT ON marked FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('far_seen', 'again', 'u', 'l');
	CREATE TABLE kept (user_id int, link text);
	CREATE TABLE diverted (user_id int, link text, diverted_at timestamptz, filter regclass);
	CREATE TRIGGER zz BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('far_seen', 'diverted')});
query(q{INSERT INTO clicks SELECT i % 50, 'click', i FROM generate_series(1, 150) i});
is(query('SELECT count(*), count(DISTINCT user_id), max(n) FROM clicks'), '50|50|50', 'streamfilter_discard keeps the first');
query(q{INSERT INTO clicks SELECT i % 2000, repeat('many ', 20), i FROM generate_series(1, 3000) i});
is(query(q{SELECT count(*), count(DISTINCT user_id), max(n) FROM clicks WHERE link LIKE 'many%'}), '2000|2000|2000', 'of many rows, too');
query(q{DELETE FROM clicks WHERE link LIKE 'many%'});
query(q{INSERT INTO marked VALUES (1, 'm'), (2, 'm'), (1, 'm')});
is(query('SELECT string_agg(u || again::text, $$ $$) FROM marked'), '1false 2false 1true', 'streamfilter_mark');
query(q{INSERT INTO kept VALUES (1, 'd'), (1, 'd'), (2, 'd')});
is(query('SELECT (SELECT count(*) FROM kept), count(*), min(filter::text), count(diverted_at) FROM diverted'), '2|1|far_seen|1',
	'streamfilter_divert');
is(query(q{SELECT discarded FROM streamfilter_triggers WHERE "table" = 'clicks'::regclass}), '1100', 'their rows are counted');
like(fails('DROP FOREIGN TABLE far_seen'), qr/other objects depend on it/, 'a trigger is bound to it');
query('ALTER FOREIGN TABLE far_seen RENAME TO distant');
query(q{INSERT INTO clicks VALUES (0, 'click', 0), (60, 'click', 0)});
is(query('SELECT count(*) FROM clicks'), '51', 'and follows a renaming');
query('ALTER FOREIGN TABLE distant RENAME TO far_seen');
query('CREATE TABLE plain (user_id int)');
like(fails(q{CREATE TRIGGER f AFTER DELETE ON plain FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('far_root')}),
	qr/"far_root" is not a filter/, 'streamfilter_forget needs a filter of its own');

# Labels of enums, by which the other server hashes keys.
my $enum = q{CREATE TYPE level AS ENUM ('low', 'high')};
there("$enum; CREATE FOREIGN TABLE levels (id int, at level) SERVER streamfilter OPTIONS (memory '64kB')");
query("$enum;" . q{
	CREATE FOREIGN TABLE far_levels (id int, at level) SERVER far OPTIONS (table_name 'levels');
	CREATE TABLE measured (id int, at level);
	CREATE TRIGGER zz BEFORE INSERT ON measured FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('far_levels');
	INSERT INTO measured VALUES (1, 'low'), (1, 'high'), (1, 'low')});
is(query('SELECT string_agg(at::text, $$ $$ ORDER BY at) FROM measured'), 'low high', 'a key with an enum');
for my $fails (\&fails, sub { ($far->psql('postgres', $_[0]))[2] })
{
	like($fails->(q{ALTER TYPE level RENAME VALUE 'low' TO 'lowest'}),
		qr/cannot rename label "low" of type level.*Filter "(far_)?levels" remembers labels of column "at"/s,
		'whose label cannot be renamed on either server');
}
query(q{DROP TABLE measured; ALTER TYPE level RENAME VALUE 'low' TO 'lowest'});

# The owner of the foreign table connects, whichever role inserts; he needs the right to.
query(q{CREATE ROLE writer; GRANT INSERT ON clicks TO writer});
is(query(q{SET ROLE writer; INSERT INTO clicks VALUES (61, 'click', 0), (61, 'click', 0); RESET ROLE;
	SELECT count(*) FROM clicks}), '52', 'a role without a user mapping inserts');
like(fails(q{SET ROLE writer; SELECT streamfilter_seen('far_seen', 1, 'a')}), qr/permission denied/, 'but has no right to ask');

# ---- Transactions ----------------------------------------------------------------------------------------
query(q{BEGIN; INSERT INTO clicks SELECT i, 'x', 0 FROM generate_series(1000, 1009) i; ROLLBACK});
query(q{BEGIN; INSERT INTO clicks VALUES (1010, 'x', 0); SAVEPOINT a; INSERT INTO clicks VALUES (1011, 'x', 0), (1012, 'x', 0);
	ROLLBACK TO a; INSERT INTO clicks VALUES (1013, 'x', 0); SAVEPOINT b; INSERT INTO clicks VALUES (1014, 'x', 0);
	RELEASE b; INSERT INTO clicks VALUES (1015, 'x', 0), (1014, 'x', 1); COMMIT});
is(query(q{SELECT string_agg(user_id::text, ' ' ORDER BY user_id) FROM clicks WHERE link = 'x'}), '1010 1013 1014 1015', 'savepoints');
is(there(q{SELECT string_agg(i::text, ' ' ORDER BY i) FROM generate_series(1000, 1020) i WHERE streamfilter_test('seen', i, 'x')}),
	'1010 1013 1014 1015', 'and no other key is left there');
# PL/pgSQL evaluates a simple expression without the executor, once prepared for the whole transaction.
is(query(q{CREATE FUNCTION ask(k int, fail boolean) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE answer boolean;
	BEGIN
	  answer := streamfilter_seen('far_seen', k, 'plpgsql');
	  BEGIN
	    answer := streamfilter_seen('far_seen', k + 1, 'plpgsql');
	    IF fail THEN RAISE division_by_zero; END IF;
	  EXCEPTION WHEN division_by_zero THEN NULL;
	  END;
	  RETURN answer || ' ' || streamfilter_seen('far_seen', k + 1, 'plpgsql');
	END $$;
	SELECT ask(10, false), ask(20, true)}), 'false true|false false', 'an exception block takes back its own keys only');
is(there(q{SELECT count(*) FROM generate_series(1, 30) i WHERE streamfilter_test('seen', i, 'plpgsql')}), '4', 'there as well');
query(q{CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$
	BEGIN FOR i IN 1..5 LOOP INSERT INTO clicks VALUES (i, 'step', 0), (i, 'step', 1); COMMIT; END LOOP; END $$; CALL steps()});
is(query(q{SELECT count(*) FROM clicks WHERE link = 'step'}), '5', 'a procedure that commits');

# What the wrapper has prepared is given back, at a commit and after an error that a savepoint has caught.
is(query(q{
	INSERT INTO clicks VALUES (2000, 'p', 0);
	BEGIN; INSERT INTO clicks VALUES (2001, 'p', 0); SAVEPOINT a; INSERT INTO clicks VALUES (2002, 'p', 0); ROLLBACK TO a;
	INSERT INTO clicks VALUES (2003, 'p', 0); COMMIT;
	CREATE FOREIGN TABLE far_prepared (statement text) SERVER far OPTIONS (schema_name 'pg_catalog', table_name 'pg_prepared_statements');
	SELECT count(*) FROM far_prepared}), '0', 'nothing stays prepared over there');

# The commit there is before the one here: what fails in between leaves the keys there.
my $late = 'CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()';
query(qq{CREATE TABLE late (n int);
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN RAISE 'refused'; END \$\$; $late});
like(fails(q{BEGIN; INSERT INTO clicks VALUES (3000, 'late', 0); INSERT INTO late VALUES (1); COMMIT}), qr/refused/, 'a deferred check');
is(there(q{SELECT streamfilter_test('seen', 3000, 'late')}), 'f', 'comes before that commit');
my ($one, $two) = map { $node->background_psql('postgres', on_error_stop => 0) } 1, 2;
query('CREATE TABLE offsets (consumer int, at int); INSERT INTO offsets VALUES (1, 0), (2, 0)');
$_->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(at) FROM offsets') for $one, $two;
$one->query_safe(q{UPDATE offsets SET at = 10 WHERE consumer = 1; INSERT INTO clicks VALUES (3001, 'late', 0)});
$two->query_safe('UPDATE offsets SET at = 10 WHERE consumer = 2; COMMIT');
$one->query('COMMIT');
$_->quit for $one, $two;
is(query(q{SELECT count(*) FROM clicks WHERE user_id = 3001}), '0', 'a serialization failure at the last moment');
is(there(q{SELECT streamfilter_test('seen', 3001, 'late')}), 't', 'does not: the key is without its row, as the documents say');

# ---- Trees -----------------------------------------------------------------------------------------------
query(q{
	CREATE FOREIGN TABLE leaf_a (user_id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6', parent 'far_root');
	CREATE FOREIGN TABLE leaf_b (user_id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '2000', fpr '1e-6', parent 'far_root', tree 'dense');
	INSERT INTO leaf_a SELECT i % 300 FROM generate_series(1, 600) i;
	INSERT INTO leaf_b SELECT generate_series(200, 399)});
is(query(q{SELECT count(*) FILTER (WHERE streamfilter_test('leaf_a', i)), count(*) FILTER (WHERE streamfilter_test('leaf_b', i))
	FROM generate_series(0, 500) i}), '400|400', 'the root of a tree: every key is seen from every leaf');
is(there('SELECT accepted FROM streamfilter_stats WHERE filter = $$root$$::regclass'), '400', 'and is there once');
is(query(q{SELECT discarded, accepted FROM streamfilter_stats WHERE filter = 'leaf_b'::regclass}), '100|100', 'leaves count their answers');
is(query(q{WITH new AS (INSERT INTO leaf_a SELECT generate_series(390, 409) RETURNING user_id) SELECT count(*), min(user_id) FROM new}),
	'10|400', 'RETURNING has the new keys');
query('CREATE TABLE events (user_id int); CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard($$leaf_b$$)');
query('INSERT INTO events SELECT generate_series(400, 429)');
is(query('SELECT count(*), min(user_id) FROM events'), '20|410', 'a trigger on a leaf');
query('INSERT INTO events SELECT 10000 + i % 2000 FROM generate_series(1, 3000) i');
is(query('SELECT count(*), count(DISTINCT user_id) FROM events WHERE user_id >= 10000'), '2000|2000', 'likewise of many rows');
query(q{BEGIN; INSERT INTO leaf_a SELECT generate_series(600, 699); ROLLBACK});
is(query(q{SELECT count(*) FROM generate_series(600, 699) i WHERE streamfilter_test('leaf_a', i)}), '0', 'a rollback');
like(fails(q{CREATE FOREIGN TABLE leaf_c (user_id bigint) SERVER streamfilter OPTIONS (keys '1000', parent 'far_root')}),
	qr/does not fit its parent "far_root"/, 'its keys are the root\'s');
like(fails(q{ALTER FOREIGN TABLE leaf_a OPTIONS (ADD top_down '1'); INSERT INTO leaf_a VALUES (1)}), qr/cannot be tested top-down/,
	'top-down tests need the root here');

# ---- When the server is lost -----------------------------------------------------------------------------
$far->stop('immediate');
like(fails(q{INSERT INTO clicks VALUES (4000, 'lost', 0)}), qr/could not connect to server "far"/, 'a lost server fails the statement');
is(query(q{SELECT count(*) FROM clicks WHERE link = 'lost'}), '0', 'and no row is stored');
$far->start;
query(q{INSERT INTO clicks VALUES (4000, 'lost', 0), (4000, 'lost', 0)});
is(query(q{SELECT count(*) FROM clicks WHERE link = 'lost'}), '1', 'until it is back');

done_testing();
