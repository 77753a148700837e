# ALTER … SET memory keeps what a filter knows over crashes before and after its commit, over a restart ahead of it, on a
# standby, and with another session that waits for it.
use Sf;

my $node = start_node('resize', q{streamfilter.shared_memory = '64MB'}, allows_streaming => 1);
sql(q{
	CREATE FUNCTION known(filter regclass, n int) RETURNS bigint LANGUAGE sql AS
		'SELECT count(*) FROM generate_series(1, n) i WHERE streamfilter_test(filter, i)';
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '256kB', keys '100000', fpr '0.01');
	CREATE FOREIGN TABLE queue (id int) SERVER streamfilter OPTIONS (memory '256kB');
	CREATE FOREIGN TABLE unsaved (id int) SERVER streamfilter OPTIONS (memory '256kB', persistence 'unlogged');
	INSERT INTO seen SELECT generate_series(1, 10000);
	INSERT INTO queue SELECT generate_series(1, 10000);
	INSERT INTO unsaved SELECT generate_series(1, 10000)});

sub all_known
{
	my ($what, $n, $server) = @_;
	$server //= $node;
	is(sql("SELECT known('seen', $n)", $server), $n, "$what: a Bloom filter");
	cmp_ok(sql("SELECT known('queue', $n)", $server), '>', $n - 20, "$what: a queue");
}

sub resize_to
{
	my ($memory) = @_;
	return qq{ALTER FOREIGN TABLE seen OPTIONS (SET memory '$memory');
		ALTER FOREIGN TABLE queue OPTIONS (SET memory '$memory');};
}

# --- A crash after the commit, and before it -----------------------------------------------------------------------

sql(resize_to('1MB'));
crash();
all_known('after a crash', 10000);
is(sql(q{SELECT count(*) FROM streamfilter_stats WHERE state LIKE 'loaded%'}), 2, 'nothing is set aside');

sql(q{INSERT INTO seen SELECT generate_series(10001, 12000); INSERT INTO queue SELECT generate_series(10001, 12000)});
my $session = open_session('BEGIN; ' . resize_to('4MB') . q{INSERT INTO seen SELECT generate_series(12001, 12100)});
$node->stop('immediate');
eval { $session->quit };
$node->start;
all_known('after a crash in the middle', 12000);
is(sql(q{SELECT count(*) FROM streamfilter_stats WHERE memory > 1100000}), 0, 'with the former definition');

# --- There and back in one transaction --------------------------------------------------------------------------------

sql('BEGIN; ' . resize_to('4MB') . resize_to('1MB') . 'COMMIT');
sql(q{INSERT INTO seen SELECT generate_series(12001, 12100); INSERT INTO queue SELECT generate_series(12001, 12100)});
crash();
all_known('there and back', 12100);

# --- The first use after a start is the ALTER -------------------------------------------------------------------------

$node->restart;
sql(resize_to('2MB'));
all_known('altered before it was read back', 12000);
$node->restart;
all_known('and after another restart', 12000);

# --- Changes in the same transaction, ahead of the ALTER and behind it --------------------------------------------------

sql(q{BEGIN; INSERT INTO seen SELECT generate_series(12001, 12500); INSERT INTO queue SELECT generate_series(12001, 12500);}
	. resize_to('4MB') . q{INSERT INTO seen SELECT generate_series(12501, 13000); INSERT INTO queue SELECT generate_series(12501, 13000);}
	. resize_to('8MB') . 'COMMIT');
all_known('changes beside it', 13000);
crash();
all_known('... after a crash', 13000);

# --- Again and again, with saves, down and up ---------------------------------------------------------------------------

for my $memory ('4MB', '2MB', '3MB', '1MB', '2MB') { sql(resize_to($memory) . 'SELECT streamfilter_save()'); }
crash();
is(sql("SELECT known('seen', 13000)"), 13000, 'many times');
cmp_ok(known('queue', 12001, 13000), '>', 990, 'a queue has the newest');
is(sql(q{SELECT count(DISTINCT filter) FROM (SELECT filter FROM _streamfilter.streamfilter_image GROUP BY filter, saved) s}), 2,
	'one image for each');

# --- Others wait, and see the new state -----------------------------------------------------------------------------------

$session = open_session('BEGIN; ' . resize_to('4MB'));
my $other = $node->background_psql('postgres');
$other->query_until(qr/begun/, "\\echo begun\nINSERT INTO seen VALUES (13000), (13001) RETURNING id;\n");
ok(wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'}), 'another session waits');
end_session($session, 'COMMIT');
$other->quit;
is(sql("SELECT known('seen', 13001), accepted > 0 FROM streamfilter_stats WHERE filter = 'seen'::regclass"), '13001|t',
	'... and has remembered its keys');

# --- Every kind: a crash after each step -----------------------------------------------------------------------------------

my %kinds = (
	lru => "kind 'lru'", clock => "kind 'lru', policy 'clock'", fplru => "kind 'fplru', q '0'",
	timer_rows => "kind 'timer', window '4000 rows', fpr '0.01'", timer_time => "kind 'timer', window '1 day', keys '8000', fpr '0.01'",
	timer_grow => "kind 'timer', window '1 hour', k '5', grow 'density'",
	bloom_grow => "kind 'bloom', keys '20000', grow 'density'", ell => "kind 'ell'", clq => "kind 'clq'");
my @kinds = sort keys %kinds;

sub of_all { my ($statement) = @_; return join ' ', map { $statement =~ s/FILTER/of_$_/gr . ';' } @kinds; }

# Keys that were found when they had just been added: a new one may have been taken for a repeat, which some kinds do not add.
sub none_lost
{
	my ($what, $on) = @_;
	is(($on // $node)->safe_psql('postgres', join ' UNION ALL ',
		map { "SELECT '$_' WHERE EXISTS (SELECT 1 FROM known_keys k WHERE k.filter = 'of_$_' AND NOT streamfilter_test('of_$_'::regclass, k.i))" } @kinds), '',
		$what);
}

sub fill_all
{
	my ($first, $last) = @_;
	sql(of_all("INSERT INTO FILTER SELECT generate_series($first, $last)"));
	sql(of_all("INSERT INTO known_keys SELECT 'FILTER', i FROM generate_series($first, $last) i WHERE streamfilter_test('FILTER'::regclass, i)"));
}

$node->safe_psql('postgres', 'CREATE TABLE known_keys (filter text, i int);'
	. join ' ', map { "CREATE FOREIGN TABLE of_$_ (id int) SERVER streamfilter OPTIONS ($kinds{$_}, memory '128kB');" } @kinds);
fill_all(1, 700);
cmp_ok(sql('SELECT count(*) FROM known_keys'), '>', 700 * @kinds * 0.98, 'all kinds are filled');
for my $memory ('256kB', '512kB', '256kB', '128kB')
{
	sql(of_all("ALTER FOREIGN TABLE FILTER OPTIONS (SET memory '$memory')"));
	none_lost("every kind in $memory");
	crash();
	none_lost("... after a crash");
}
fill_all(701, 900);
$session = open_session('BEGIN; ' . of_all(q{ALTER FOREIGN TABLE FILTER OPTIONS (SET memory '256kB')}) . of_all('INSERT INTO FILTER VALUES (-1)'));
crash();
eval { $session->quit };
none_lost('every kind after a crash in the middle');
sql('BEGIN;' . of_all(q{ALTER FOREIGN TABLE FILTER OPTIONS (SET memory '256kB')}) . 'ROLLBACK');
none_lost('... after a rollback');
# What was added in between belongs to the state that is altered back.
sql('BEGIN;' . of_all(q{ALTER FOREIGN TABLE FILTER OPTIONS (SET memory '256kB')}) . of_all('INSERT INTO FILTER VALUES (-2)')
	. of_all(q{INSERT INTO known_keys VALUES ('FILTER', -2)}) . of_all(q{ALTER FOREIGN TABLE FILTER OPTIONS (SET memory '128kB')}) . 'COMMIT');
none_lost('there and back');
crash();
none_lost('... after a crash');
sql('BEGIN;' . of_all(q{ALTER FOREIGN TABLE FILTER OPTIONS (SET memory '256kB')}) . 'SELECT streamfilter_save(); SAVEPOINT s;'
	. of_all(q{ALTER FOREIGN TABLE FILTER OPTIONS (SET memory '128kB')}) . of_all('INSERT INTO FILTER VALUES (-3)') . 'ROLLBACK TO s; COMMIT');
crash();
none_lost('saved in between, and rolled back to a savepoint');
is(sql(q{SELECT count(*) FROM streamfilter_stats WHERE filter::text LIKE 'of_%' AND state NOT LIKE 'loaded%'}), 0, 'nothing is set aside');
sql(of_all('DROP FOREIGN TABLE FILTER') . 'DROP TABLE known_keys');

# --- Deleted keys stay deleted: the log replays them, saved or not, and a standby that takes over makes it smaller ----------

sub deleted_and_kept
{
	my ($what, $server) = @_;
	is(($server // $node)->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE i <= 300), count(*) FILTER (WHERE i > 300)
		FROM generate_series(1, 1000) i WHERE streamfilter_test('kept', i)}), '0|700', "deleted keys: $what");
}

my $forget = 'DO $$BEGIN FOR i IN %d .. %d LOOP DELETE FROM kept WHERE id = i; END LOOP; END$$';
for my $saves (0, 1)
{
	sql(q{CREATE FOREIGN TABLE kept (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '1e-6')});
	sql(q{INSERT INTO kept SELECT generate_series(1, 1000)});
	sql(q{ALTER FOREIGN TABLE kept OPTIONS (SET memory '512kB')});
	sql(sprintf($forget, 1, 150));
	sql('SELECT streamfilter_save()') if $saves;
	sql(sprintf($forget, 151, 300));
	crash();
	deleted_and_kept('after a crash');
	sql(q{ALTER FOREIGN TABLE kept OPTIONS (SET memory '64kB')});
	deleted_and_kept('as small as before');
	crash();
	deleted_and_kept('... after a crash');
	sql('DROP FOREIGN TABLE kept');
}
sql(q{CREATE FOREIGN TABLE kept (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '1e-6');
	INSERT INTO kept SELECT generate_series(1, 1000)});
sql(q{ALTER FOREIGN TABLE kept OPTIONS (SET memory '512kB')});

# --- A standby ---------------------------------------------------------------------------------------------------------

my $standby = start_standby('standby');
$node->wait_for_catchup($standby);
is(sql("SELECT known('seen', 13001)", $standby), 13001, 'a standby');
sql(resize_to('8MB') . 'INSERT INTO seen SELECT generate_series(13002, 13100)');
sql(sprintf($forget, 1, 300));
$node->wait_for_catchup($standby);
is(sql("SELECT known('seen', 13100)", $standby), 13100, '... follows');
deleted_and_kept('on a standby', $standby);
$node->stop;
$standby->promote;
is(sql("SELECT known('seen', 13100)", $standby), 13100, '... and takes over');
sql(resize_to('2MB'), $standby);
is(sql("SELECT known('seen', 13100)", $standby), 13100, '... and is resized');
sql(q{ALTER FOREIGN TABLE kept OPTIONS (SET memory '64kB')}, $standby);
deleted_and_kept('made smaller there', $standby);

done();
