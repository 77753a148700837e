# Whose rows lie on a page of the log is kept in shared memory, so that nobody reads pages in vain. Nothing may be missed there: an
# image would leave rows in the log, and a key be unknown. Writers, images, VACUUM, other files, crashes, and what ends with
# databases and standbys.
# flavours: quick faults one_by_one
use Sf;
use IPC::Run ();

my $filters = 20;
my $keys_of_writer = 300;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	streamfilter.max_filters = 100
	max_prepared_transactions = 5
	hot_standby = on
	synchronous_commit = off
	fsync = off}, allows_streaming => 1);

# Keys may be lost by a crash, definitions may not.
sub create_filters
{
	my ($database) = @_;
	sql(qq{SET synchronous_commit = on; CREATE EXTENSION IF NOT EXISTS streamfilter; CREATE TABLE truth (f int, k int);
		SELECT format('CREATE FOREIGN TABLE f_%s (id int) SERVER streamfilter OPTIONS (kind ''bloom'', keys ''5000'', fpr ''0.01'')', i)
		FROM generate_series(1, $filters) i \\gexec}, $database);
	return;
}

# A key in a filter chosen by chance, and in a table, in each transaction.
sub write_keys
{
	my ($writer, $count) = @_;
	return qq{SELECT setseed(0.0$writer);
		DO \$\$ DECLARE f int; BEGIN FOR n IN 1 .. $count LOOP
			f := 1 + floor(random() * $filters);
			EXECUTE format('INSERT INTO f_%s VALUES (\$1)', f) USING $writer * 100000 + n;
			INSERT INTO truth VALUES (f, $writer * 100000 + n);
			COMMIT;
		END LOOP; END \$\$;};
}

# Does every filter know its keys, and does an image leave no row of the log behind?
sub is_whole
{
	my ($what, $database) = @_;
	is(sql(q{SELECT count(*) FROM truth WHERE NOT streamfilter_test(('f_' || f)::regclass, k)}, $database), 0, "$what: every key is known");
	sql("DO \$\$ BEGIN FOR i IN 1 .. $filters LOOP PERFORM streamfilter_save(format('f_%s', i)::regclass); COMMIT; END LOOP; END \$\$", $database);
	is(sql(q{SELECT count(*) FROM _streamfilter.streamfilter_log WHERE change NOT IN ('i', 'c')}, $database), 0, "$what: an image finds all rows");
	return;
}

sub start_session
{
	my ($query) = @_;
	my %session = (in => PostgreSQL::Test::Utils::tempdir() . '/query', out => '', err => '');
	append_to_file($session{in}, $query);    # not from memory, which would have to be pumped
	$session{run} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') ],
		'<', $session{in}, '>', \$session{out}, '2>', \$session{err}, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return \%session;
}

sub learn { return sql(q{SELECT count(*) FROM generate_series(1, 20) i WHERE streamfilter_test(('f_' || i)::regclass, -1)}, $_[0]); }

create_filters('postgres');
sql(write_keys(9, 300));
crash();
learn();
sql(write_keys(8, 300));
is_whole('rows after the pages were known');

# Pages are known from a first use; then a filter that had no row on them gets its first ones there.
sql(write_keys(97, 300));
crash();
learn();
for my $name ('late', 'later')
{
	sql("CREATE FOREIGN TABLE $name (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '5000', fpr '0.01')");
	sql("INSERT INTO $name VALUES ($_)") for 1 .. 3;
	my $rows = "SELECT count(*) FROM _streamfilter.streamfilter_log WHERE filter = '$name'::regclass AND change NOT IN ('i', 'c')";
	cmp_ok(sql($rows), '>=', 3, "$name: rows on pages that were known");
	sql("SELECT streamfilter_save('$name')");
	is(sql($rows), 0, "$name: an image finds the first rows of a filter");
	sql("DROP FOREIGN TABLE $name");
}
is_whole('filters beside it');

my $saves = "DO \$\$ BEGIN FOR i IN 1 .. $filters LOOP PERFORM streamfilter_save(format('f_%s', i)::regclass); COMMIT; END LOOP; END \$\$;\n";
my $log = '_streamfilter.streamfilter_log';
for my $round (1, 2)
{
	my @sessions = map { start_session(write_keys("$round$_", $keys_of_writer)) } 1 .. 4;
	push @sessions, start_session(join '', map { "VACUUM $log;\n$saves" } 1 .. 3);
	push @sessions, start_session(join '', map { "VACUUM FULL $log;\nSELECT pg_sleep(0.05);\n" } 1 .. 5);
	if ($round == 2)
	{
		$node->poll_query_until('postgres', q{SELECT count(*) >= 200 FROM truth WHERE k >= 2000000}) or die;
		$node->stop('immediate');
		for my $session (@sessions) { eval { $session->{run}->finish; 1 } or note 'a session ended with the server'; }
		$node->start;
		is_whole('after a crash in the middle');
		next;
	}
	for my $session (@sessions) { $session->{run}->finish; is($session->{err}, '', 'a session ends'); }
	is_whole('writers, images and VACUUM at a time');
	crash();
	is_whole('and after a crash');
}

# Other files, also for a moment only.
sql(write_keys(7, 100));
sql("ALTER MATERIALIZED VIEW $log SET (fillfactor = 50); VACUUM FULL $log");
sql(write_keys(6, 100));
is_whole('rows after VACUUM FULL');
my $tablespace = PostgreSQL::Test::Utils::tempdir();
sql("CREATE TABLESPACE elsewhere LOCATION '$tablespace'");
sql(write_keys(5, 100));
sql("ALTER MATERIALIZED VIEW $log SET TABLESPACE elsewhere");
sql(write_keys(4, 100));
is_whole('rows after another tablespace');
sql("ALTER MATERIALIZED VIEW $log SET TABLESPACE pg_default; DROP TABLESPACE elsewhere");
sql(write_keys(3, 100));
sql(q{BEGIN; SELECT streamfilter_forget_saved(); INSERT INTO f_1 VALUES (-7); SELECT streamfilter_test('f_2', 1); ROLLBACK});
sql(write_keys(2, 100));
is_whole('a file that was rolled back');

# The end of the log is cut, and grows again.
sql("VACUUM $log");
sql(write_keys(1, 300));
learn();
is_whole('rows where the log was cut');

# A filter that is dropped takes its rows along.
sql('INSERT INTO f_20 VALUES (-8); DELETE FROM truth WHERE f IN (19, 20); DROP FOREIGN TABLE f_20; DROP FOREIGN TABLE f_19');
is(sql("SELECT count(*) FROM $log WHERE filter NOT IN (SELECT oid FROM pg_class)"), 0, 'no rows of a dropped filter');
sql(q{SELECT format('CREATE FOREIGN TABLE f_%s (id int) SERVER streamfilter OPTIONS (kind ''bloom'', keys ''5000'', fpr ''0.01'')', i)
	FROM generate_series(19, 20) i \gexec});
sql(q{INSERT INTO f_3 VALUES (-9); TRUNCATE f_3; DELETE FROM truth WHERE f = 3});
sql(q{BEGIN; INSERT INTO f_3 VALUES (-10); PREPARE TRANSACTION 'one'});
crash();
learn();
sql(q{COMMIT PREPARED 'one'; INSERT INTO truth VALUES (3, -10)});
is(sql(q{SELECT streamfilter_test('f_3', -9)}), 'f', 'TRUNCATE is found, too');
is_whole('a prepared transaction');

# Databases: those made by copying, and those that have another's OID, begin anew.
sql('CREATE DATABASE other');
create_filters('other');
sql(write_keys(1, 100), 'other');
crash();
learn('other');
learn();
sql(write_keys(2, 100), 'other');
is_whole('another database', 'other');
sql(write_keys(3, 100), 'other');
sql('CREATE DATABASE copied TEMPLATE other; DROP DATABASE other');
is(sql('SELECT count(*) > 0 FROM truth', 'copied'), 't', 'a database was copied');
sql(write_keys(4, 100), 'copied');
sql("DO \$\$ BEGIN FOR i IN 1 .. $filters LOOP PERFORM streamfilter_save(format('f_%s', i)::regclass); COMMIT; END LOOP; END \$\$", 'copied');
is(sql("SELECT count(*) FROM $log WHERE filter IN (SELECT oid FROM pg_class) AND change NOT IN ('i', 'c')", 'copied'), 0, 'and its rows are found');
sql('DROP DATABASE copied');
is_whole('the first database meanwhile');

# A standby, where rows come that nobody tells of.
my $standby = start_standby('standby');
$node->wait_for_catchup($standby);
sql(q{SELECT streamfilter_test(('f_' || i)::regclass, -1) FROM generate_series(1, 20) i}, $standby);
sql(write_keys(99, 200));
$node->wait_for_catchup($standby);
is(sql(q{SELECT count(*) FROM truth WHERE NOT streamfilter_test(('f_' || f)::regclass, k)}, $standby), 0, 'a standby knows every key');
$node->stop;
$standby->promote;
$node = $standby;
on($standby);
sql(write_keys(98, 100));
is_whole('a promoted standby');

done_testing();
