# What loaders send, statement by statement: dbt, Airflow, connectors of Kafka, object-relational mappers, psycopg. Which
# rows stay, what is refused, and the traps that docs/tools.md warns of, each with what to do instead. The statements are
# those that the tools' documentation shows.
use Sf;

my $node = start_node('loads', slurp_file("$root/test/streamfilter.conf") . "client_min_messages = warning");

# A table with a trigger on a filter of its own, and 1500 rows, 1000 of them distinct, to be loaded.
sub fresh
{
	my (%other) = @_;
	sql(qq{
		SET client_min_messages = error;
		DROP TABLE IF EXISTS events, staged, events__dbt_backup CASCADE;
		DROP FOREIGN TABLE IF EXISTS seen CASCADE;
		CREATE TABLE events (id int, payload text);
		CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind '@{[$other{kind} // 'clq']}', memory '256kB', fpr '1e-6');
		@{[ $other{no_trigger} ? '' : q{CREATE TRIGGER zz_once BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');} ]}
		CREATE TABLE staged AS SELECT i % 1000 AS id, 'new' AS payload FROM generate_series(1, 1500) i});
}

sub rows { return sql('SELECT count(*), count(DISTINCT id) FROM events'); }

# ---- dbt: incremental models ---------------------------------------------------------------------------
fresh();
sql('INSERT INTO "postgres"."public"."events" ("id", "payload") (SELECT "id", "payload" FROM "staged")');
is(rows(), '1000|1000', 'dbt append: repeats are discarded');
sql('INSERT INTO "postgres"."public"."events" ("id", "payload") (SELECT "id", "payload" FROM "staged")');
is(rows(), '1000|1000', '... of a run that is repeated, too');

my $delete_insert = q{
	BEGIN;
	DELETE FROM "public"."events" WHERE (id) IN (SELECT (id) FROM "staged");
	INSERT INTO "public"."events" ("id", "payload") (SELECT "id", "payload" FROM "staged");
	COMMIT};
sql($delete_insert);
is(rows(), '0|0', 'delete+insert loses all: what was deleted is known (the trap)');
fresh();
sql(q{CREATE TRIGGER follow AFTER DELETE ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen')});
sql($delete_insert) for 1 .. 2;
is(rows(), '1000|1000', '... nothing with streamfilter_forget');

fresh(no_trigger => 1);
sql('INSERT INTO events (SELECT id, payload FROM (SELECT * FROM staged WHERE NOT streamfilter_seen($$seen$$, id)) AS model)') for 1 .. 2;
is(rows(), '1000|1000', 'a model that asks by itself');

fresh();
my $merge = q{
	MERGE INTO "public"."events" AS DBT_INTERNAL_DEST USING (SELECT DISTINCT ON (id) * FROM "staged") AS DBT_INTERNAL_SOURCE
	ON (DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id)
	WHEN MATCHED THEN UPDATE SET "payload" = DBT_INTERNAL_SOURCE."payload"
	WHEN NOT MATCHED THEN INSERT ("id", "payload") VALUES ("id", "payload")};
sql($merge);
is(rows(), '1000|1000', 'MERGE inserts what is new');
sql("UPDATE staged SET payload = 'newer'; $merge");
is(sql(q{SELECT count(*), count(DISTINCT id) FROM events WHERE payload = 'newer'}), '1000|1000', '... and updates what is there');

# ---- dbt: table models, Airflow: a table is built anew and swapped by names -----------------------------
fresh();
my $swap = q{
	BEGIN;
	CREATE TABLE "public"."events__dbt_tmp" AS (SELECT * FROM staged);
	ALTER TABLE "public"."events" RENAME TO "events__dbt_backup";
	ALTER TABLE "public"."events__dbt_tmp" RENAME TO "events";
	COMMIT;
	DROP TABLE IF EXISTS "public"."events__dbt_backup" CASCADE};
sql($swap);
is(sql('SELECT count(*) FROM events'), '1500', 'CREATE TABLE AS: the new table has no trigger');
is(sql('SELECT count(*) FROM streamfilter_triggers'), '0', '... and that of the old one is gone with it (the trap)');
fresh();
sql(q{CREATE TABLE once AS (SELECT id, payload FROM staged WHERE NOT streamfilter_seen('seen', id))});
is(sql('SELECT count(*), count(DISTINCT id) FROM once'), '1000|1000', 'CREATE TABLE AS that asks by itself');
is(sql(q{SELECT count(*) FROM (SELECT * FROM staged LIMIT 100) s WHERE NOT streamfilter_test('seen', id)}), '0', '... remembers its keys');
sql('DROP TABLE once');

# ---- full reloads, and tasks that run again for their interval ------------------------------------------
fresh();
sql('BEGIN; TRUNCATE events; INSERT INTO events SELECT * FROM staged; COMMIT') for 1 .. 2;
is(rows(), '0|0', 'TRUNCATE and INSERT again loses all (the trap)');
fresh();
sql(q{CREATE TRIGGER follow_truncate AFTER TRUNCATE ON events EXECUTE FUNCTION streamfilter_forget('seen')});
sql('BEGIN; TRUNCATE events; INSERT INTO events SELECT * FROM staged; COMMIT') for 1 .. 2;
is(rows(), '1000|1000', '... nothing with streamfilter_forget');

# ---- Kafka Connect, Debezium: upserts, and what counts their rows ---------------------------------------
fresh();
sql('ALTER TABLE events ADD PRIMARY KEY (id)');
my $upsert = q{INSERT INTO "events"("id","payload") VALUES (1,'a') ON CONFLICT ("id") DO UPDATE SET "payload"=EXCLUDED."payload"};
my ($status, undef, $error) = $node->psql('postgres', $upsert);
is($status, 0, 'insert.mode=upsert inserts what is new');
is(rows(), '1|1', '... and the filter knows it');
sql($upsert =~ s/'a'/'b'/r);
is(sql('SELECT payload FROM events'), 'a', '... a repeat updates nothing');
sql('TRUNCATE events; TRUNCATE seen');
($status, undef, $error) = $node->psql('postgres', q{INSERT INTO events VALUES (1, 'a') ON CONFLICT DO NOTHING});
is($status, 0, '... and so does DO NOTHING');
is(rows(), '1|1', '... and it inserts');
sql('TRUNCATE events; TRUNCATE seen');
sql('DROP TRIGGER zz_once ON events');
sql($upsert) for 1 .. 2;
is(rows(), '1|1', 'without the trigger an upsert is idempotent by itself');

# An insert.mode=insert sink adds up what the server says it has inserted, and fails if that is less than it has sent.
fresh();
sub tags { my ($out) = @_; my $sum = 0; $sum += $1 while $out =~ /^INSERT 0 (\d+)$/mg; return $sum; }
sub tags_of
{
	my ($statements) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'psql', '-X', '-d', $node->connstr('postgres') ], '<', \$statements, '>', \$out, '2>', \$err) or die $err;
	return tags($out);
}
my $batch = join '', map { "INSERT INTO \"events\"(\"id\",\"payload\") VALUES ($_,'x');\n" } 1, 2, 2, 3;
is(tags_of("BEGIN;\n${batch}COMMIT;"), 3, 'insert.mode=insert: discarded rows are not in the update count (the trap)');
fresh(no_trigger => 1);
sql(q{ALTER TABLE events ADD is_repeat boolean;
	CREATE TRIGGER zz_mark BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_mark('seen', 'is_repeat')});
is(tags_of("BEGIN;\n${batch}COMMIT;"), 4, '... marked rows are');
is(sql('SELECT count(*) FROM events WHERE NOT is_repeat'), '3', '... and a view without them has each once');

# ---- object-relational mappers -------------------------------------------------------------------------
fresh();
is(sql(q{INSERT INTO events VALUES (1, 'a'), (1, 'b'), (2, 'c') RETURNING id}), "1\n2", 'RETURNING: a discarded row has none (the trap)');
is(sql(q{INSERT INTO events VALUES (1, 'a') RETURNING id}), '', '... which mappers take for an error: mark instead');

# ---- psycopg ---------------------------------------------------------------------------------------------
SKIP:
{
	skip 'python3-psycopg is not installed', 5 if system(q{python3 -c 'import psycopg' 2>/dev/null}) != 0;
	fresh();
	my $script = "$PostgreSQL::Test::Utils::tmp_check/load.py";
	append_to_file($script, <<'PY');
import sys, psycopg
with psycopg.connect(sys.argv[1]) as conn:
    with conn.cursor() as cur:
        with cur.copy("COPY events (id, payload) FROM STDIN") as copy:
            for i in range(1500):
                copy.write_row((i % 1000, "copied"))
        print("copy", cur.rowcount)
    conn.commit()
    with conn.cursor() as cur:
        cur.executemany("INSERT INTO events VALUES (%s, %s)", [(i % 1200, "many") for i in range(500, 1500)])
        print("executemany", cur.rowcount)
    conn.commit()
    try:
        with conn.transaction(), conn.cursor() as cur:
            with cur.copy("COPY events (id, payload) FROM STDIN") as copy:
                for i in range(2000, 2100):
                    copy.write_row((i, "lost"))
                raise RuntimeError("the client fails in the middle")
    except Exception as error:
        print("failed", 1)
    with conn.cursor() as cur:
        cur.executemany("INSERT INTO events VALUES (%s, %s) RETURNING id", [(1999,""), (2000, "again"), (2000, "again")], returning=True)
        found = []
        while True:
            found.append(len(cur.fetchall()))
            if not cur.nextset():
                break
        print("returning", *found)
PY
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'python3', $script, $node->connstr('postgres') ], '>', \$out, '2>', \$err);
	is($err, '', 'psycopg has no error');
	my %said = map { split / /, $_, 2 } split /\n/, $out;
	is($said{copy}, '1000', 'psycopg copy: the row count is of what stays');
	is($said{executemany}, '200', '... executemany (a pipeline) likewise');
	is($said{returning}, '1 1 0', '... returning: nothing for a repeat; of a COPY that failed nothing is known');
	is(rows(), '1202|1202', '... and every key is there once');
}

done_testing();
