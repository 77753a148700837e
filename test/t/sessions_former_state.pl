# A session uses the state of a filter that its former transaction has left. Others may have emptied, resized, dropped or
# replaced it meanwhile, in whatever way: then the session finds what is there now, as a new session does.
# flavours: quick faults one_by_one
use Sf;

my $node = start_node('former', q{
	streamfilter.shared_memory = '16MB'
	streamfilter.dynamic_memory = '400MB'
	max_prepared_transactions = 5
	statement_timeout = '120s'
	fsync = off});

sql(q{CREATE TABLE t (id int);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '0.0001');
	CREATE TRIGGER discard BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});

my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
my $key = 0;

# Both sessions, in turn, accept a key once: what one remembers the other discards, and a third one tests.
sub agree
{
	my ($what) = @_;
	my ($one, $other) = @sessions;
	my @answers;
	for my $session ($one, $other, $one)
	{
		$session->query('INSERT INTO t VALUES (' . ++$key . ')');
		push @answers, (map { scalar $_->query("INSERT INTO t VALUES ($key); SELECT streamfilter_test('seen', $key)") } $one, $other),
		  sql("SELECT count(*) FROM t WHERE id = $key AND streamfilter_test('seen', $key)");
	}
	is("@answers", join(' ', ('t t 1') x 3), "$what: all sessions have one state");
	return;
}

# What the sessions remember of a key that they were given before.
sub both_know { my ($known) = @_; return join ' ', map { scalar $_->query("SELECT streamfilter_test('seen', $known)") } @sessions; }

agree('at first');
my $old = $key;

sql('TRUNCATE seen');
is(both_know($old), 'f f', 'TRUNCATE: the key is forgotten');
agree('TRUNCATE');

sql('BEGIN; TRUNCATE seen; INSERT INTO seen VALUES (-1); ROLLBACK');
is(both_know($key), 't t', 'TRUNCATE that rolls back: the key stays');
agree('TRUNCATE that rolls back');

$old = $key;
sql(q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '128kB')});
is(both_know($old), 't t', 'ALTER of memory: the key stays');
agree('ALTER of memory');
sql(q{BEGIN; ALTER FOREIGN TABLE seen OPTIONS (SET memory '256kB'); INSERT INTO seen VALUES (-2); ROLLBACK});
is(both_know($key), 't t', 'ALTER of memory that rolls back: the key stays');
agree('ALTER of memory that rolls back');
sql(q{CALL streamfilter_resize('seen', '256kB')});
is(both_know($key), 't t', 'streamfilter_resize: the key stays');
agree('streamfilter_resize');
sql(q{ALTER FOREIGN TABLE seen OPTIONS (ADD seed '7'); INSERT INTO seen VALUES (-3)});
agree('ALTER of the seed');

# In a transaction of its own, and in a savepoint of it.
my $own = $sessions[0];
$own->query('BEGIN; SAVEPOINT a; TRUNCATE seen; INSERT INTO t VALUES (-4); ROLLBACK TO a');
is(scalar $own->query("SELECT streamfilter_test('seen', $key)"), 't', 'TRUNCATE in a savepoint that rolls back: the key stays');
$own->query(q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '64kB'); INSERT INTO t VALUES (-5); SAVEPOINT b;
	ALTER FOREIGN TABLE seen OPTIONS (SET memory '32kB'); INSERT INTO t VALUES (-6); ROLLBACK TO b});
is(scalar $own->query(q{SELECT streamfilter_test('seen', -5), streamfilter_test('seen', -6)}), 't|f', 'ALTER in a savepoint: likewise');
$own->query('COMMIT');
agree('ALTER before a savepoint that rolls back');

for my $end ('COMMIT', 'ROLLBACK')
{
	$old = $key;
	sql("BEGIN; TRUNCATE seen; PREPARE TRANSACTION 'emptied'");
	sql("$end PREPARED 'emptied'");
	is(both_know($old), $end eq 'COMMIT' ? 'f f' : 't t', "TRUNCATE, prepared, $end: the key");
	agree("TRUNCATE, prepared, $end");
}

# A large filter gets another block.
sql(q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '65MB')});
agree('a large filter');
$old = $key;
sql('TRUNCATE seen');
is(both_know($old), 'f f', 'TRUNCATE of a large filter: the key is forgotten');
agree('TRUNCATE of a large filter');

sql(q{DROP TRIGGER discard ON t; DROP FOREIGN TABLE seen;
	CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '7');
	INSERT INTO other SELECT generate_series(1, 1000);
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '0.0001');
	CREATE TRIGGER discard BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});
is(both_know($key), 'f f', 'another filter in its place: the key is forgotten');
agree('another filter in its place');

for my $persistence ('unlogged', 'logged')
{
	$old = $key;
	sql("ALTER FOREIGN TABLE seen OPTIONS (" . ($persistence eq 'unlogged' ? 'ADD' : 'SET') . " persistence '$persistence')");
	agree("ALTER of persistence to $persistence");
	is(both_know($old), 't t', "ALTER of persistence to $persistence: the key stays");
}

$old = $key;
$_->quit for @sessions;
crash();
is(knows('seen', $old), 't', 'after a crash it knows the key');

done_testing();
