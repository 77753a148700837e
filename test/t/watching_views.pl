# The view streamfilter_progress, seen by other sessions: it moves, says no more than it may, and a session that ends
# in whatever way is gone from it. And streamfilter_triggers: what is dropped makes room.
# flavours: quick
use Sf;

my $node = start_node('watching', q{
streamfilter.shared_memory = '64MB'
fsync = off
});
sql(q{
	CREATE ROLE stranger LOGIN;
	CREATE ROLE monitor LOGIN IN ROLE pg_read_all_stats;
	CREATE TABLE slow AS SELECT i AS id FROM generate_series(1, 100000) i;
	ANALYZE slow;
	CREATE FUNCTION wait_a_bit(id int) RETURNS bool LANGUAGE plpgsql AS
		'BEGIN IF id % 1000 = 0 THEN PERFORM pg_sleep(0.1); END IF; RETURN true; END';
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8MB', keys '1000000')});

my @work = (
	[ 'warm', q{SELECT streamfilter_warm('seen', 'slow', NULL, 'wait_a_bit(id)')}, 'seen' ],
	[ 'evaluate', q{SELECT * FROM streamfilter_evaluate('SELECT id FROM slow WHERE wait_a_bit(id)', '{sbf(memory=1kB)}')}, '' ],
	[ 'profile', q{SELECT * FROM streamfilter_profile('SELECT id FROM slow WHERE wait_a_bit(id)', '{sbf(memory=1kB)}', 'lag')}, '' ],
	[ 'distinct', q{SELECT count(*) FROM streamfilter_distinct(NULL::slow, 'SELECT id FROM slow WHERE wait_a_bit(id)', 'sbf(memory=1kB)')}, '' ]);
for my $case (@work)
{
	my ($command, $query, $filter) = @$case;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_until(qr/begun/, "\\echo begun\n$query;\n");
	ok($node->poll_query_until('postgres', qq{SELECT done > 2000 FROM streamfilter_progress WHERE pid = $pid AND command = '$command'}),
		"$command is seen");
	is(sql(qq{SELECT command, filter, phase, total > 1000, unit FROM streamfilter_progress WHERE pid = $pid}),
		"$command|$filter|reading rows|t|rows", '... with all that it is');
	my $before = sql("SELECT done FROM streamfilter_progress WHERE pid = $pid");
	ok($node->poll_query_until('postgres', "SELECT done > $before FROM streamfilter_progress WHERE pid = $pid"), '... and moves');
	is($node->safe_psql('postgres', "SELECT * FROM streamfilter_progress WHERE pid = $pid", extra_params => [ '-U', 'stranger' ]),
		"$pid||||||", '... to others, no more than that it is there');
	is($node->safe_psql('postgres', "SELECT command FROM streamfilter_progress WHERE pid = $pid", extra_params => [ '-U', 'monitor' ]),
		$command, '... but to those who may read all statistics');
	is(sql('CREATE EXTENSION streamfilter; SELECT count(*) FROM streamfilter_progress; DROP EXTENSION streamfilter', 'template1'),
		0, '... not in another database');
	like(sql(q{SELECT name, labels ->> 'command', value > 0, unit FROM streamfilter_metrics
		WHERE name LIKE 'streamfilter_progress%' ORDER BY 1}), qr/^streamfilter_progress_done\|$command\|t\|rows\n/, '... as a metric, too');
	my $end = $command eq 'evaluate' ? 'pg_terminate_backend' : 'pg_cancel_backend';
	sql("SELECT $end($pid)");
	ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM streamfilter_progress'), "... and is gone after $end");
	if ($end eq 'pg_terminate_backend') { eval { $session->quit } }
	else { $session->quit }
}
is(sql(q{SELECT count(*) FROM slow WHERE streamfilter_test('seen', id)}), 0, 'a warm that was cancelled leaves nothing');
is(sql(q{SELECT streamfilter_warm('seen', 'slow')}), 100000, '... and can be begun again');

$node->restart;
is(sql(q{SELECT count(*) FROM slow WHERE streamfilter_test('seen', id)}), 100000, 'a restore');
is(sql('SELECT count(*) FROM streamfilter_progress'), 0, '... shows nothing when it is done');

# ---- triggers that come and go -------------------------------------------------------------------------
# There is room for 4096. More than that are used and dropped: by themselves, with their table, and in the transaction
# that made them.
sql(q{
	CREATE FOREIGN TABLE seen_often (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB', mode 'shadow');
	CREATE TABLE often (id int);
	CREATE PROCEDURE use_triggers(count int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. count LOOP
			CREATE TRIGGER zz BEFORE INSERT ON often FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_often');
			IF i % 3 > 0 THEN COMMIT; END IF;
			INSERT INTO often VALUES (1);
			IF i % 2 > 0 THEN COMMIT; END IF;
			DROP TRIGGER zz ON often;
			COMMIT;
		END LOOP;
	END $$;
	CREATE TABLE parted (id int) PARTITION BY LIST (id);
	CREATE TRIGGER zz BEFORE INSERT ON parted FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_often');
	DO $$BEGIN FOR i IN 1 .. 300 LOOP EXECUTE format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES IN (%s)', i, i); END LOOP; END$$;
	INSERT INTO parted SELECT generate_series(1, 300);
	CALL use_triggers(3000)});
is(sql('SELECT count(*), sum(rows) FROM streamfilter_triggers'), '300|300', 'triggers of partitions count');
sql(q{BEGIN; DROP TABLE parted; ROLLBACK});
is(sql('SELECT count(*), sum(rows) FROM streamfilter_triggers'), '300|300', '... still after a DROP that rolls back');
sql(q{BEGIN; SAVEPOINT s; DROP TABLE parted; ROLLBACK TO s; COMMIT});
is(sql('SELECT count(*), sum(rows) FROM streamfilter_triggers'), '300|300', '... or to a savepoint');
sql(q{BEGIN; SAVEPOINT s; DROP TABLE parted; RELEASE s; COMMIT});
sql('CALL use_triggers(1200)');
sql(q{
	CREATE TRIGGER zz BEFORE INSERT ON often FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_often');
	INSERT INTO often VALUES (1)});
is(sql('SELECT rows FROM streamfilter_triggers'), '1', 'after 4500 that were dropped, the next one counts');

SKIP: {
	skip 'wait events of extensions have names since PostgreSQL 17', 1 if $node->pg_version < 17;
	is(sql(q{SELECT string_agg(name, ' ' ORDER BY name) FROM pg_wait_events WHERE name ~ '^Streamfilter'}),
		'StreamfilterArrivals StreamfilterCommits StreamfilterConnect StreamfilterGrow StreamfilterLoad StreamfilterMemory StreamfilterPrepared StreamfilterRemote '
		. 'StreamfilterResize', 'what sessions wait for has names');
}

done();
