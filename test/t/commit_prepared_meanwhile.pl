# A transaction that others wait for in COMMIT is prepared meanwhile: these go on waiting, but block nobody.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	max_prepared_transactions = 5
	fsync = off});
sql(q{
	CREATE FOREIGN TABLE admitted (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB', conflict 'admit');
	SELECT format('CREATE FOREIGN TABLE other_%s (id int) SERVER streamfilter OPTIONS (kind ''sqf'', memory ''8kB'')', i)
	FROM generate_series(1, 70) i \gexec});
my $faults = FaultPoints->new($node);

sub others_wait
{
	my ($status, $out, $err) = $node->psql('postgres', q{
		SET lock_timeout = '10s'; SET streamfilter.commit_wait_timeout = '10s';
		SELECT format('INSERT INTO admitted VALUES (%s)', i) FROM generate_series(101, 250) i
		UNION ALL SELECT 'INSERT INTO admitted SELECT generate_series(301, 400)'
		UNION ALL SELECT format('INSERT INTO other_%s VALUES (1)', i) FROM generate_series(1, 70) i \gexec},
		on_error_stop => 1);
	return $err;
}

my $first = $node->background_psql('postgres');
$first->query_safe('BEGIN; INSERT INTO admitted VALUES (1)');
my $gate = $node->background_psql('postgres');
$gate->query_safe('SELECT pg_advisory_lock(1)');
my $prepared = $faults->start(
	q{BEGIN; INSERT INTO admitted VALUES (1); SELECT FROM pg_advisory_xact_lock(1); PREPARE TRANSACTION 'one'});
ok($faults->blocked($prepared, 'advisory'), 'two have added a key');
$first->query_safe('COMMIT');
$first->quit;

# The mark of the one that is being prepared is there, and nothing else says that it is.
$faults->set('logged', 'stop');
$gate->query_safe('SELECT pg_advisory_unlock(1)');
$gate->quit;
$faults->reached('logged');
my $forgetting = $faults->start('DELETE FROM admitted WHERE id = 1');
ok($faults->blocked($forgetting), 'a DELETE waits for it');
$faults->set('logged', 'pass');
$faults->finish($prepared);
is(sql('SELECT gid FROM pg_prepared_xacts'), 'one', 'it is prepared');
ok(wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE query LIKE 'DELETE%' AND wait_event = 'transactionid'}), 'the DELETE waits for its end');
is(others_wait(), '', 'and nobody behind it');
sql(q{COMMIT PREPARED 'one'});
is($faults->finish($forgetting), '', 'then it goes on');
is(knows('admitted', 1), 'f', 'and forgets the key');

# A session that sleeps where a wait for a prepared transaction begins keeps nobody waiting, either.
$first = $node->background_psql('postgres');
$first->query_safe('BEGIN; INSERT INTO admitted VALUES (2)');
sql(q{BEGIN; INSERT INTO admitted VALUES (2); PREPARE TRANSACTION 'two'});
$first->query_safe('COMMIT');
$first->quit;
$faults->set('commit_wait', 'stop');
$forgetting = $faults->start('DELETE FROM admitted WHERE id = 2');
$faults->reached('commit_wait');
is(others_wait(), '', 'who is about to wait keeps nobody waiting');
sql(q{SELECT streamfilter_save('admitted')});
sql(q{ROLLBACK PREPARED 'two'});
$faults->set('commit_wait', 'pass');
is($faults->finish($forgetting), '', 'it goes on');
is(knows('admitted', 2), 'f', 'and forgets its key');

done_testing();
