# Partitions that tools make later: chunks of TimescaleDB (inheritance children, to which row triggers are copied), by the
# statements that it runs, and itself where it is installed; pg_partman, which makes partitions, and moves rows into them.
use Sf;

my $node = start_node('partitions', slurp_file("$root/test/streamfilter.conf") . 'client_min_messages = error');
sub available { return sql("SELECT count(*) FROM pg_available_extensions WHERE name = '$_[0]'"); }

# ---- chunks: children of their own schema, with the triggers of the hypertable ------------------------------
sql(q{
	CREATE TABLE readings (at timestamptz NOT NULL, sensor int, celsius real);
	CREATE FOREIGN TABLE seen_readings (sensor int, at timestamptz) SERVER streamfilter OPTIONS (kind 'clq', memory '256kB', fpr '1e-6');
	CREATE TRIGGER ts_insert_blocker BEFORE INSERT ON readings FOR EACH ROW WHEN (false) EXECUTE FUNCTION suppress_redundant_updates_trigger();
	CREATE TRIGGER zz_once BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_readings');
	CREATE SCHEMA _timescaledb_internal;
	CREATE FUNCTION make_chunk(n int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE definition text;
	BEGIN
		EXECUTE format($f$CREATE TABLE _timescaledb_internal._hyper_1_%1$s_chunk (
			CONSTRAINT c_%1$s CHECK (at >= timestamptz '2026-01-01' + %1$s * interval '1 day' AND at < timestamptz '2026-01-02' + %1$s * interval '1 day'))
			INHERITS (public.readings)$f$, n);
		FOR definition IN SELECT pg_get_triggerdef(oid) FROM pg_trigger
			WHERE tgrelid = 'readings'::regclass AND tgname <> 'ts_insert_blocker' LOOP
			EXECUTE replace(definition, ' ON public.readings ', format(' ON _timescaledb_internal._hyper_1_%s_chunk ', n));
		END LOOP;
	END $$;
	SELECT make_chunk(0)});
my $insert = q{INSERT INTO _timescaledb_internal._hyper_1_%d_chunk
	SELECT timestamptz '2026-01-01' + %d * interval '1 day' + i %% 600 * interval '1 s', i %% 3, 20 FROM generate_series(1, 900) i};
sql(sprintf $insert, 0, 0) for 1 .. 2;
is(sql('SELECT count(*), count(DISTINCT (sensor, at)) FROM readings'), '600|600', 'a chunk discards repeats');
sql('SELECT make_chunk(1)');
sql(sprintf $insert, 1, 1) for 1 .. 2;
is(sql('SELECT count(*), count(DISTINCT (sensor, at)) FROM readings'), '1200|1200', '... one that is made later, too, with the same filter');
like(sql('SET streamfilter.batch_insert = on; EXPLAIN ' . sprintf $insert, 1, 1), qr/Inserts: in batches/, '... in batches');
is(sql('SELECT count(*), sum(rows) FROM streamfilter_triggers WHERE rows > 0'), '2|3600', '... each is counted by itself');
sql('ALTER FOREIGN TABLE seen_readings RENAME TO known_readings');
sql(sprintf $insert, 1, 1);
is(sql('SELECT count(*) FROM readings'), '1200', '... and follows when the filter is renamed');
sql('SELECT make_chunk(2)');
sql(sprintf $insert, 2, 2);
is(sql('SELECT count(*) FROM readings'), '1800', '... so that a chunk made after that finds it');
is(($node->psql('postgres', 'DROP FOREIGN TABLE known_readings'))[0] != 0, 1, 'the filter cannot be dropped while chunks use it');
sql('DROP TABLE _timescaledb_internal._hyper_1_0_chunk');
is(sql('SELECT count(*) FROM streamfilter_triggers WHERE rows > 0'), '2', 'a chunk that is dropped is gone from the views');

# Rows that are moved into chunks go through their triggers: create_hypertable(migrate_data => true).
sql(q{ALTER TABLE readings DISABLE TRIGGER zz_once; INSERT INTO readings SELECT at - interval '1 day', sensor, 21 FROM ONLY _timescaledb_internal._hyper_1_2_chunk LIMIT 10});
is(sql(q{WITH moved AS (DELETE FROM ONLY readings RETURNING *)
	INSERT INTO _timescaledb_internal._hyper_1_1_chunk SELECT * FROM moved; SELECT count(*) FROM readings WHERE celsius = 21}), '0',
	'rows that are moved are repeats (the trap)');
sql(q{INSERT INTO readings SELECT at - interval '1 day', sensor, 21 FROM ONLY _timescaledb_internal._hyper_1_2_chunk LIMIT 10});
is(sql(q{SET streamfilter.mode = 'shadow'; WITH moved AS (DELETE FROM ONLY readings RETURNING *)
	INSERT INTO _timescaledb_internal._hyper_1_1_chunk SELECT * FROM moved; SELECT count(*) FROM readings WHERE celsius = 21}), '10',
	'... not in mode shadow');

# Two children that the statement itself names get the same rows, which is no routing.
sql(q{CREATE TABLE old (id int); CREATE TABLE old_a () INHERITS (old); CREATE TABLE old_b () INHERITS (old);
	CREATE FOREIGN TABLE seen_old (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '1e-6')});
sql("CREATE TRIGGER zz_once BEFORE INSERT ON $_ FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_old')") for qw(old old_a old_b);
like(($node->psql('postgres', 'WITH a AS (INSERT INTO old_a VALUES (1) RETURNING id) INSERT INTO old_b SELECT id FROM a'))[2],
	qr/would judge a row twice/, 'children that a statement fills by itself are two tables');
sql(q{CREATE TABLE other (id int); ALTER TABLE old_a INHERIT other; ALTER TABLE old_a NO INHERIT old; COPY old_a FROM PROGRAM 'seq 11 13'});
is(sql('SELECT count(*) FROM old_a'), '3', 'a child whose first parent is none any more');

SKIP:
{
	skip 'TimescaleDB is not installed', 16 unless available('timescaledb');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'timescaledb, streamfilter'\ntimescaledb.telemetry_level = off");
	$node->restart;
	sql('DROP SCHEMA _timescaledb_internal CASCADE');
	sql(q{
		CREATE EXTENSION timescaledb;
		CREATE TABLE hyper (at timestamptz NOT NULL, sensor int);
		CREATE FOREIGN TABLE seen_hyper (sensor int, at timestamptz) SERVER streamfilter OPTIONS (kind 'clq', memory '256kB', fpr '1e-6');
		SELECT create_hypertable('hyper', 'at', chunk_time_interval => interval '1 day');
		CREATE TRIGGER zz_once BEFORE INSERT ON hyper FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_hyper')});
	my $arrive = q{INSERT INTO hyper SELECT timestamptz '2026-01-01' + %d * interval '1 day' + i %% 600 * interval '10 min', i %% 3 FROM generate_series(1, 900) i};
	sql(sprintf $arrive, 0) for 1 .. 2;
	is(sql('SELECT count(*), count(DISTINCT (sensor, at)) FROM hyper'), '600|600', 'a hypertable discards repeats');
	sql(sprintf $arrive, 10) for 1 .. 2;
	is(sql('SELECT count(*), count(DISTINCT (sensor, at)) FROM hyper'), '1200|1200', '... in chunks that are made by the rows themselves');
	cmp_ok(sql(q{SELECT count(*) FROM streamfilter_triggers WHERE "table"::text ~ 'chunk' AND rows > 0}), '>', 6, '... each of which counts');
	my $file = $node->basedir . '/hyper.copy';
	sql("COPY (SELECT * FROM hyper) TO '$file'; COPY hyper FROM '$file'");
	is(sql('SELECT count(*) FROM hyper'), '1200', '... of COPY, too');
	sql("TRUNCATE hyper, seen_hyper; COPY hyper FROM '$file'; COPY hyper FROM '$file'");
	is(sql('SELECT count(*), count(DISTINCT (sensor, at)) FROM hyper'), '1200|1200', '... into a hypertable and a filter that were truncated');
	sql(q{BEGIN; INSERT INTO hyper VALUES ('2026-03-01', 1); ROLLBACK; INSERT INTO hyper VALUES ('2026-03-01', 1), ('2026-03-01', 1)});
	is(sql(q{SELECT count(*) FROM hyper WHERE at = '2026-03-01'}), '1', 'a chunk that is rolled back takes its keys along');
	sql('ALTER FOREIGN TABLE seen_hyper RENAME TO known_hyper');
	sql(q{INSERT INTO hyper VALUES ('2026-03-01', 1), ('2026-05-01', 1), ('2026-05-01', 1)});
	is(sql('SELECT count(*) FROM hyper'), '1202', 'the filter is renamed, and a chunk made after that');
	sql(q{CREATE TABLE early (at timestamptz NOT NULL, id int); CREATE FOREIGN TABLE seen_early (id int) SERVER streamfilter;
		SELECT create_hypertable('early', 'at');
		CREATE TRIGGER zz_once BEFORE INSERT ON early FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_early')});
	is(sql('SELECT streamfilter_adopt_triggers()'), '1', 'a trigger that no event trigger was told of is adopted');
	my ($chunk) = split /\n/, sql(q{SELECT c FROM show_chunks('hyper') c ORDER BY c});
	like(sql("SET streamfilter.batch_insert = on; EXPLAIN INSERT INTO $chunk SELECT timestamptz '2026-01-01', i FROM generate_series(1, 10) i"),
		qr/Inserts: in batches/, 'rows of an INSERT into a chunk go in batches');
	sql(q{SELECT drop_chunks('hyper', timestamptz '2026-01-10')});
	sql(sprintf $arrive, 0);
	is(sql(q{SELECT count(*) FROM hyper WHERE at < '2026-01-10'}), '0', 'rows of chunks that are dropped are still known');
	is(sql(q{SELECT streamfilter_warm('known_hyper', 'hyper') = count(*) FROM hyper}), 't', 'a filter is warmed from a hypertable');

	# A table that has rows and the trigger becomes a hypertable: its rows are moved into chunks.
	my $become = q{
		CREATE TABLE %1$s (at timestamptz NOT NULL, id int);
		CREATE FOREIGN TABLE seen_%1$s (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '256kB', fpr '1e-6');
		CREATE TRIGGER zz_once BEFORE INSERT ON %1$s FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_%1$s');
		INSERT INTO %1$s SELECT timestamptz '2026-01-01' + i * interval '1 h', i FROM generate_series(1, 100) i;
		SET streamfilter.mode = '%2$s';
		SELECT create_hypertable('%1$s', 'at', migrate_data => true);
		SELECT count(*) FROM %1$s};
	like(sql(sprintf $become, 'moved', 'shadow'), qr/^100$/m, 'create_hypertable(migrate_data) keeps all rows in mode shadow');
	like(sql(sprintf $become, 'judged', 'enforce'), qr/^0$/m, '... and without it all are lost: they are known (the trap)');

	like(($node->psql('postgres', q{INSERT INTO hyper VALUES ('2026-07-01', 1) ON CONFLICT DO NOTHING}))[2],
		qr/cannot tell whether a row is new.*Use a plain INSERT/s, 'ON CONFLICT into a hypertable is refused');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'streamfilter, timescaledb'");
	$node->restart;
	sql(q{TRUNCATE hyper, known_hyper});
	sql(sprintf $arrive, 20) for 1 .. 2;
	sql("COPY hyper FROM '$file'; COPY hyper FROM '$file'");
	is(sql('SELECT count(*), count(DISTINCT (sensor, at)) FROM hyper'), '1800|1800', 'preloaded in the other order, it does the same');

	SKIP:
	{
		skip 'this TimescaleDB has no compression', 1 if sql('SHOW timescaledb.license') ne 'timescale';
		sql(q{ALTER TABLE hyper SET (timescaledb.compress, timescaledb.compress_segmentby = 'sensor');
			SELECT count(compress_chunk(c)) FROM show_chunks('hyper') c;
			INSERT INTO hyper SELECT at, sensor FROM hyper;
			SELECT count(decompress_chunk(c)) FROM show_chunks('hyper') c});
		is(sql('SELECT count(*) = count(DISTINCT (sensor, at)) FROM hyper'), 't', 'compressing and decompressing loses no row and lets no repeat in');
	}
}

# ---- pg_partman ------------------------------------------------------------------------------------------
SKIP:
{
	skip 'pg_partman is not installed', 10 unless available('pg_partman');
	sql(q{
		CREATE SCHEMA partman;
		CREATE EXTENSION pg_partman SCHEMA partman;
		CREATE TABLE events (at timestamptz NOT NULL, id int) PARTITION BY RANGE (at);
		CREATE FOREIGN TABLE seen_events (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '256kB', fpr '1e-6');
		CREATE TRIGGER zz_once BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_events')});
	my $version = sql(q{SELECT extversion FROM pg_extension WHERE extname = 'pg_partman'});
	sql($version =~ /^4/ ? q{SELECT partman.create_parent('public.events', 'at', 'native', 'daily', p_premake := 1)}
		: q{SELECT partman.create_parent('public.events', 'at', '1 day', p_premake := 1)});
	sql(q{INSERT INTO events SELECT now() + i % 2 * interval '1 day', i % 500 FROM generate_series(0, 999) i});
	is(sql('SELECT count(*), count(DISTINCT id), count(DISTINCT tableoid) FROM events'), '500|500|2', 'partitions of pg_partman discard repeats');
	sql(q{UPDATE partman.part_config SET premake = 6; SELECT partman.run_maintenance()});
	sql(q{INSERT INTO events SELECT now() + i % 5 * interval '1 day', i % 1000 FROM generate_series(0, 1999) i});
	is(sql('SELECT count(*), count(DISTINCT id) FROM events'), '1000|1000', '... those that run_maintenance() makes, too');
	cmp_ok(sql(q{SELECT count(*) FROM streamfilter_triggers WHERE rows > 0 AND filter = 'seen_events'::regclass}), '>=', 4, '... each counts');

	# Rows for which there was no partition lie in the default one, and are moved when there is one.
	my $late = q{INSERT INTO events SELECT now() + interval '20 days', i FROM generate_series(5000, 5099) i};
	sql($late);
	is(sql('SELECT count(*) FROM ONLY events_default'), '100', 'rows without a partition go to the default one');
	sql(q{SELECT partman.partition_data_time('public.events')});
	is(sql('SELECT count(*) FROM events WHERE id >= 5000'), '0', 'partition_data_time() loses them: they are known (the trap)');
	sql(q{TRUNCATE seen_events; SELECT streamfilter_warm('seen_events', 'events')});
	sql($late);
	is(sql('SELECT count(*) FROM events WHERE id >= 5000'), '100', '... (again)');
	is(sql(q{SELECT count(*) FROM ONLY events_default}), '0', '... now there is a partition for them');
	my $later = q{INSERT INTO events SELECT now() + interval '25 days', i FROM generate_series(6000, 6099) i};
	sql($later);
	sql(q{SET streamfilter.mode = 'shadow'; SELECT partman.partition_data_time('public.events')});
	is(sql('SELECT count(*), count(DISTINCT tableoid) FROM events WHERE id >= 6000'), '100|1', 'in mode shadow it moves them');
	sql($later);
	is(sql('SELECT count(*) FROM events WHERE id >= 6000'), '100', '... and they are known');
	sql(q{CREATE TRIGGER follow AFTER DELETE ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen_events')});
	sql(q{INSERT INTO events SELECT now() + interval '30 days', i FROM generate_series(7000, 7099) i});
	sql(q{SELECT partman.partition_data_time('public.events')});
	is(sql('SELECT count(*), count(DISTINCT tableoid) FROM events WHERE id >= 7000'), '100|1', '... so it does with streamfilter_forget');
}

done_testing();
