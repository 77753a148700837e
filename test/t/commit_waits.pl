# A transaction that waits in COMMIT for a prepared one keeps nobody else waiting, and does not wait for ever.
# flavours: quick faults
use Sf;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	max_prepared_transactions = 5
	fsync = off});
sql(q{
	CREATE FOREIGN TABLE admitted (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB', conflict 'admit');
	SELECT format('CREATE FOREIGN TABLE other_%s (id int) SERVER streamfilter OPTIONS (kind ''sqf'', memory ''8kB'')', i)
	FROM generate_series(1, 70) i \gexec});

# Two have added the key, and one of them is prepared.
sub admit_prepared
{
	my ($key) = @_;
	my $first = open_session("BEGIN; INSERT INTO admitted VALUES ($key)");
	sql("BEGIN; INSERT INTO admitted VALUES ($key); PREPARE TRANSACTION 'key $key'");
	end_session($first, 'COMMIT');
	return;
}

# Each statement in a transaction of its own; what the first failure says.
sub run_each
{
	my ($statements) = @_;
	my ($status, $out, $err) = $node->psql('postgres', "SET lock_timeout = '10s'; $statements \\gexec", on_error_stop => 1);
	return $err;
}

# ---- nobody waits behind it ------------------------------------------------------------------------------------------

admit_prepared(1);
my $forgetting = open_session(q{SET application_name = 'forgetting'});
$forgetting->query_until(qr//, "DELETE FROM admitted WHERE id = 1;\n");
ok(wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE application_name = 'forgetting' AND wait_event = 'transactionid'}), 'a DELETE waits in COMMIT');
is(sql(q{SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
	WHERE application_name = 'forgetting' AND mode = 'ShareUpdateExclusiveLock'}), 0, 'it holds no lock of heaps');
is(run_each(q{SELECT format('INSERT INTO admitted VALUES (%s)', i) FROM generate_series(101, 250) i}), '',
	'inserts of other keys do not wait');
is(run_each(q{SELECT 'INSERT INTO admitted SELECT generate_series(301, 400)'}), '', 'nor of many keys');
is(run_each(q{SELECT format('INSERT INTO other_%s VALUES (1)', i) FROM generate_series(1, 70) i}), '', 'nor those into other filters');
is(run_each(q{SELECT 'DELETE FROM admitted WHERE id = 150'}), '', 'nor another DELETE');
sql(q{COMMIT PREPARED 'key 1'});
is($forgetting->query(q{SELECT 'end'}), 'end', 'it goes on when the prepared one has ended');
$forgetting->quit;
is(knows('admitted', 1), 'f', 'its key is forgotten');

# ---- it does not wait for ever ---------------------------------------------------------------------------------------

admit_prepared(2);
for my $setting ('lock_timeout', 'streamfilter.commit_wait_timeout')
{
	like(said("\\set VERBOSITY verbose\nSET $setting = '100ms'; BEGIN; DELETE FROM admitted WHERE id = 2; COMMIT"), qr/ERROR:  55P03: .*HINT:  Repeat the transaction.*while waiting for a prepared transaction/s,
		"$setting ends it");
	is(knows('admitted', 2), 't', "$setting: nothing is forgotten");
}
is(sql('SHOW lock_timeout'), '0', 'lock_timeout is what it was');
sql(q{ROLLBACK PREPARED 'key 2'; DELETE FROM admitted WHERE id = 2});
crash();
is(knows('admitted', $_), 'f', "after a crash key $_ is forgotten") for 1, 2;
is(knows('admitted', 150) . knows('admitted', 151), 'ft', 'after a crash the others are what they were');

done_testing();
