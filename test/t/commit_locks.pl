# A transaction that others wait for in COMMIT is prepared meanwhile: these go on waiting, but block nobody.
# flavours: faults
use Sf;
use FaultPoints;
use constant ROWS => 100;

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

my $first = open_session('BEGIN; INSERT INTO admitted VALUES (1)');
my $gate = open_session('SELECT pg_advisory_lock(1)');
my $prepared = $faults->start(q{BEGIN; INSERT INTO admitted VALUES (1); SELECT FROM pg_advisory_xact_lock(1); PREPARE TRANSACTION 'one'});
ok($faults->blocked($prepared, 'advisory'), 'two have added a key');
end_session($first, 'COMMIT');

# The mark of the one that is being prepared is there, and nothing else says that it is.
$faults->set('logged', 'stop');
$gate->query_safe('SELECT pg_advisory_unlock(1)');
$gate->quit;
$faults->reached('logged');
my $forgetting = $faults->start('DELETE FROM admitted WHERE id = 1');
ok($faults->blocked($forgetting), 'a DELETE waits for it');
$faults->let_go('logged', $prepared);
is(sql('SELECT gid FROM pg_prepared_xacts'), 'one', 'it is prepared');
ok(wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE query LIKE 'DELETE%' AND wait_event = 'transactionid'}), 'the DELETE waits for its end');
is(others_wait(), '', 'and nobody behind it');
sql(q{COMMIT PREPARED 'one'});
is($faults->finish($forgetting), '', 'then it goes on');
is(knows('admitted', 1), 'f', 'and forgets the key');

# A session that sleeps where a wait for a prepared transaction begins keeps nobody waiting, either.
$first = open_session('BEGIN; INSERT INTO admitted VALUES (2)');
sql(q{BEGIN; INSERT INTO admitted VALUES (2); PREPARE TRANSACTION 'two'});
end_session($first, 'COMMIT');
$forgetting = $faults->stop_at('commit_wait', 'DELETE FROM admitted WHERE id = 2');
is(others_wait(), '', 'who is about to wait keeps nobody waiting');
sql(q{SELECT streamfilter_save('admitted')});
sql(q{ROLLBACK PREPARED 'two'});
is($faults->let_go('commit_wait', $forgetting), '', 'it goes on');
is(knows('admitted', 2), 'f', 'and forgets its key');

# ==== locks of a commit ===============================================================================================
# Commits of logged filters take no lock exclusively that all filters share: only those of their keys and slices, which are
# counted. Where one erases keys, the order of commits is still that of their numbers, also if one stops while it draws its own.

$node->stop;
$node = start_node('locks', q{
	streamfilter.dynamic_memory = 0
	statement_timeout = '60s'});
on($node);
$faults = FaultPoints->new($node);
sql(q{CREATE FUNCTION streamfilter_exclusive_locks() RETURNS text AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE;
	CREATE TABLE events (id int); CREATE TABLE others (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '1MB', conflict 'admit');
	CREATE FOREIGN TABLE seen_others (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '1MB', conflict 'admit');
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	CREATE TRIGGER discard BEFORE INSERT ON others FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_others')});

# Of statements that are a transaction each: how often each lock was taken, by name.
sub taken
{
	my (@statements) = @_;
	my $answers = sql(join(";\n", @statements, 'SELECT streamfilter_exclusive_locks()'));
	$answers =~ s/.*\n--\n//s;
	return map { split / / } grep { /^streamfilter_\w+ \d+$/ } split /\n/, $answers;
}

# What a session does once comes before.
$first = "INSERT INTO events VALUES (-1); INSERT INTO others VALUES (-1); SELECT streamfilter_exclusive_locks(); SELECT '--'";
use constant ROWS => 100;
my %taken = taken($first, map { ("INSERT INTO events VALUES ($_)", "INSERT INTO others VALUES ($_)") } 1 .. ROWS);
my %shared = map { $_ => $taken{"streamfilter_$_"} // 0 } qw(directory prepared arrivals servers log_pages triggers);
note(join ', ', map { "$_ $taken{$_}" } sort keys %taken);
is($shared{$_}, 0, "commits of rows do not take $_ exclusively") for sort keys %shared;
cmp_ok($taken{streamfilter_slice}, '>=', 2 * ROWS, 'they take slices, which the count has');
is(scalar(grep { !/^streamfilter_(slice|in_flight)$/ } keys %taken), 0, 'and nothing beside them and keys in flight')
	or diag(join ' ', %taken);

# The same where they erase.
sql('INSERT INTO seen SELECT -i FROM generate_series(1000, 1099) i');
%taken = taken($first, map { 'DELETE FROM seen WHERE id = -' . (999 + $_) } 1 .. ROWS);
is(scalar(grep { !/^streamfilter_(slice|in_flight)$/ } keys %taken), 0, 'nor do commits that erase keys') or diag(join ' ', %taken);

# A fresh filter is what makes the directory's lock exclusive: the count can come out otherwise.
%taken = taken($first, q{CREATE FOREIGN TABLE fresh (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB')},
	'INSERT INTO fresh VALUES (1)', 'DROP FOREIGN TABLE fresh');
cmp_ok($taken{streamfilter_directory} // 0, '>', 0, 'a new filter takes that of the directory');

# What is dropped without having to do with a filter: a table, with triggers of others, with a foreign key, of another wrapper.
sql(q{CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE FOREIGN DATA WRAPPER none; CREATE SERVER none FOREIGN DATA WRAPPER none;
	CREATE TABLE plain (id int PRIMARY KEY); CREATE TABLE keyed (id int REFERENCES plain); CREATE FOREIGN TABLE foreign_one (id int) SERVER none;
	CREATE TRIGGER nothing BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION nothing();
	CREATE TABLE judged (id int); CREATE TRIGGER discard BEFORE INSERT ON judged FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});
%taken = taken($first, 'DROP TABLE keyed', 'DROP TABLE plain', 'DROP FOREIGN TABLE foreign_one');
is(scalar(keys %taken), 0, 'DROP of a table that has nothing to do with a filter takes no lock, nor has it work at its commit') or diag(join ' ', %taken);
%taken = taken($first, 'DROP TABLE judged');
cmp_ok($taken{streamfilter_triggers} // 0, '>', 0, '... of one that has, it does');

# One that adds a key stops while it draws its number; another one has added the key, too. Who erases it cannot know whether the
# first one comes before.
my $adds = $faults->stop_at('marking', 'INSERT INTO events VALUES (2000)');
sql('INSERT INTO events VALUES (2000)');
my (undef, undef, $error) = $node->psql('postgres', q{SET lock_timeout = '300ms'; DELETE FROM seen WHERE id = 2000},
	extra_params => [ '-v', 'VERBOSITY=sqlstate' ]);
like($error, qr/ERROR:  55P03/, 'who erases the key waits, and not for ever');
sql('DELETE FROM seen_others WHERE id = 1; INSERT INTO events VALUES (2001)');
is(sql(q{SELECT streamfilter_test('seen_others', 1), streamfilter_test('seen', 2001)}), 'f|t', 'of others nobody waits');
my $erases = $faults->start('DELETE FROM seen WHERE id = 2000');
ok($faults->blocked($erases), 'it waits');
$faults->set('marking', 'pass');
is($faults->finish($_), '', 'both commit') for $adds, $erases;
is(sql('SELECT count(*) FROM events WHERE id = 2000'), '2', 'two rows');
my $known = knows('seen', 2000);
note("the key is remembered: $known");
crash();
is(knows('seen', 2000), $known, 'a crash replays the same order');

done();
