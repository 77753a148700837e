# What a server does that is lost while a transaction ends here. By then this side has committed: nothing may be
# raised any more, whatever the name of the server, the encoding of the client and the last words of the peer.
# flavours: faults
use Sf;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(time);

my ($node, $holder) = map { start_node($_, '', extra => [ '--encoding=UTF8', '--locale=C' ]) } 'producer', 'holder';
my $server = "\xd1\x81\xd0\xb5\xd1\x80\xd0\xb2\xd0\xb5\xd1\x80";    # six letters that LATIN1 does not have

# Passes on what client and server say, until the client says the word; then answers in place of the server, and hangs up.
# It answers with an error at the end of a connection, made of these bytes.
sub start_proxy
{
	my ($word, $message) = @_;
	my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die $!;
	my $pid = fork();
	return ($pid, $listener->sockport) if $pid;
	my %peer;
	my $select = IO::Select->new($listener);
	while (1)
	{
		for my $from ($select->can_read)
		{
			if ($from == $listener)
			{
				my $client = $listener->accept;
				my $up = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $holder->port) or POSIX::_exit(1);
				($peer{$client}, $peer{$up}) = ([ $up, 1 ], [ $client, 0 ]);
				$select->add($client, $up);
				next;
			}
			my ($to, $from_client) = @{ $peer{$from} };
			my $read = sysread $from, my $bytes, 65536;
			if ($read && $from_client && index($bytes, $word) >= 0)
			{
				my $fields = "SFATAL\0VFATAL\0C57P01\0M$message\0\0";
				syswrite $from, 'E' . pack('N', 4 + length $fields) . $fields;
				$read = 0;
			}
			syswrite $to, $bytes if $read;
			next if $read;
			$select->remove($from, $to);
			close $from;
			close $to;
		}
	}
}

$holder->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'");
$holder->append_conf('pg_hba.conf',     'host all all 127.0.0.1/32 trust');
$holder->restart;

my ($number, @proxies) = (0);
END { local $?; kill 'KILL', @proxies }

# A filter on a server that ends the connection when it hears a word.
sub make_filter
{
	my ($server, $word, $message, $options) = @_;
	$options //= q{kind 'bloom', memory '64kB', k '4'};
	my $name = 'filter' . ++$number;
	my ($pid, $port) = start_proxy($word, $message);
	push @proxies, $pid;
	sql(qq{
		CREATE SERVER "$server" FOREIGN DATA WRAPPER streamfilter
		  OPTIONS (host '127.0.0.1', port '$port', dbname 'postgres', connect_timeout '1s', timeout '2s');
		CREATE USER MAPPING FOR CURRENT_USER SERVER "$server";
		CREATE FOREIGN TABLE $name (id int) SERVER "$server" OPTIONS ($options);
		CREATE TABLE rows_$name (id int);
		CREATE TRIGGER discard BEFORE INSERT ON rows_$name
		  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$name')});
	return $name;
}

my $last = 0;
sub log_has { my ($what) = @_; return slurp_file($node->logfile, $last) =~ $what; }

sub unremembered { return sql(qq{SELECT unremembered FROM streamfilter_stats WHERE filter = '$_[0]'::regclass}); }

# What a session of this encoding is told, and whether it is still there in the end.
sub run_session
{
	my ($encoding, @statements) = @_;
	$last = -s $node->logfile;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query("SET client_encoding = '$encoding'");
	$session->query($_) for @statements;
	my $said = $session->{stderr};
	my $alive = $session->query('SELECT 1');
	$session->quit;
	return ($said, $alive);
}

# ---- a name that the client's encoding does not have ------------------------------------------------------------------

for my $encoding (qw(LATIN1 UTF8))
{
	my $name = make_filter($server . $encoding, "COMMIT\0", 'the end');
	my ($said, $alive) = run_session($encoding, 'BEGIN', "INSERT INTO rows_$name SELECT generate_series(1, 10)", 'COMMIT', 'SELECT 2');
	is($alive, 1, "$encoding: the session goes on");
	ok(!log_has(qr/PANIC/), "$encoding: the server goes on");
	my $shown = $encoding eq 'UTF8' ? $server : '\?' x 6;
	like($said, qr/WARNING:  server "$shown$encoding" does not remember the keys of a transaction.*\n.*the end/,
		"$encoding: the next statement says what was lost");
	is(sql("SELECT count(*) FROM rows_$name"), 10, "$encoding: the rows are there");
	is(unremembered($name), 1, "$encoding: it is counted");
}

# What was deleted is there still, which is the opposite of keys that are not remembered.
for my $change ([ 'DELETE', 'DELETE FROM %s WHERE id = 1' ], [ 'TRUNCATE', 'TRUNCATE %s' ])
{
	my ($what, $command) = @$change;
	my $name = make_filter("peer of $what", "COMMIT\0", 'the end', q{kind 'lru', memory '64kB'});
	# Its key comes by another way.
	my $port = sql(qq{SELECT option_value FROM pg_foreign_server, pg_options_to_table(srvoptions)
	                  WHERE srvname = 'peer of $what' AND option_name = 'port'});
	sql(sprintf qq{ALTER SERVER "peer of $what" OPTIONS (SET port '%d'); INSERT INTO $name VALUES (1);
	               ALTER SERVER "peer of $what" OPTIONS (SET port '$port')}, $holder->port);
	my ($said, $alive) = run_session('UTF8', 'BEGIN', sprintf($command, $name), 'COMMIT', 'SELECT 2');
	is($alive, 1, "$what: the session goes on");
	like($said, qr/WARNING:  server "peer of $what" still has the keys that a transaction of this session has deleted.*\n.*committed here.*the end.*\n.*HINT:  They count as repeats until DELETE or TRUNCATE is repeated/,
		"$what: the next statement says what has not happened");
	unlike($said, qr/does not remember/, "$what: and nothing else");
	is(unremembered($name), 1, "$what: it is counted");
}

# A savepoint, and a whole transaction, that roll back.
for my $case ([ 'ROLLBACK TO SAVEPOINT', 'ROLLBACK TO a', 'a savepoint' ], [ "ROLLBACK\0", 'ROLLBACK', 'a transaction' ])
{
	my ($word, $statement, $what) = @$case;
	my $name = make_filter("$server $what", $word, "\xff\xfe");
	my ($said, $alive) = run_session('LATIN1', 'BEGIN', 'SAVEPOINT a', "INSERT INTO rows_$name VALUES (1)",
		$statement, 'ROLLBACK', 'SELECT 2');
	is($alive, 1, "$what rolls back: the session goes on");
	ok(!log_has(qr/PANIC/), "$what rolls back: the server goes on");
	is(sql("SELECT count(*) FROM rows_$name") . unremembered($name), '00', "$what rolls back: nothing is left");
}

# ---- last words of the peer -------------------------------------------------------------------------------------------

my %words = (
	'cut within a character' => 'x' . "\xd0\xb5" x 200,
	'invalid bytes'          => "\xff\xfe broken \xd0",
	'long'                   => 'word ' x 5000);
for my $case (sort keys %words)
{
	my $name = make_filter("peer, $case", "COMMIT\0", $words{$case});
	my ($said, $alive) = run_session('UTF8', 'BEGIN', "INSERT INTO rows_$name SELECT generate_series(1, 10)", 'COMMIT', 'SELECT 2');
	is($alive, 1, "$case: the session goes on");
	ok(utf8::decode(my $copy = $said), "$case: the client gets valid characters");
	ok(!log_has(qr/PANIC|invalid byte sequence/), "$case: the server goes on");
	like($said, qr/WARNING:  server "peer, $case" does not remember the keys of a transaction/, "$case: it is said");
	is(sql("SELECT count(*) FROM rows_$name"), 10, "$case: the rows are there");
	is(unremembered($name), 1, "$case: it is counted");
}

# Many at once: the first are said one by one, the rest is counted.
my @names = map { make_filter("many $_", "COMMIT\0", 'the end') } 1 .. 12;
my ($said, $alive) = run_session('LATIN1', 'BEGIN', (map { "INSERT INTO rows_$_ VALUES (1)" } @names), 'COMMIT', 'SELECT 2');
is($alive, 1, 'many servers lost at once: the session goes on');
is(() = $said =~ /does not remember/g, 8, 'the first eight are named');
like($said, qr/WARNING:  4 more warnings of servers that were lost/, 'the others counted');
is(join('', map { unremembered($_) } @names), '1' x 12, 'all of them in the statistics');

# ==== transactions over several servers ===============================================================================
# Transactions with filters on other servers, and what must not be lost in them: by a cancel that a savepoint
# catches, a server that goes before COMMIT, a crash here after it, and servers that hang while it is sent.

$node->stop;
$node = start_node('spread', q{
	wal_writer_delay = 10s
	synchronous_commit = off
	fsync = on
});
on($node);
my %holder = map { $_ => start_node($_, 'fsync = on') } qw(a b c);

sql(join '', map { sprintf(
	q{CREATE SERVER %s FOREIGN DATA WRAPPER streamfilter
	  OPTIONS (host '%s', port '%d', dbname 'postgres', connect_timeout '1s', timeout '3s');
	  CREATE USER MAPPING FOR CURRENT_USER SERVER %s;},
	$_, $holder{$_}->host, $holder{$_}->port, $_) } sort keys %holder);
sql(q{CREATE FOREIGN TABLE seen (id int) SERVER a OPTIONS (kind 'bloom', memory '1MB', k '8');
      CREATE FOREIGN TABLE exact (id int) SERVER a OPTIONS (kind 'lru', memory '64kB');
      CREATE TABLE events (id int);
      CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
      INSERT INTO exact SELECT generate_series(1, 10)});

my $session = $node->background_psql('postgres', on_error_stop => 0);
my $other   = $node->background_psql('postgres', on_error_stop => 0);

# ---- a cancelled wait, caught by a savepoint ------------------------------------------------------------------

$other->query(q{BEGIN; SELECT streamfilter_seen('seen', 100)});
$session->query(q{BEGIN; INSERT INTO events SELECT generate_series(1, 20); SAVEPOINT s; INSERT INTO events VALUES (21)});
$session->query(q{SET LOCAL statement_timeout = 300; SELECT streamfilter_seen('seen', 100)});
like($session->{stderr}, qr/canceling statement due to statement timeout/, 'a wait for another transaction is cancelled');
$session->{stderr} = '';
$session->query('ROLLBACK TO SAVEPOINT s; SET LOCAL statement_timeout = 0; INSERT INTO events VALUES (22)');
$session->query('COMMIT');
is($session->{stderr}, '', 'the rest of the transaction goes on and commits');
$other->query('ROLLBACK');
sql('INSERT INTO events SELECT generate_series(1, 22)');
is(sql('SELECT count(*), count(DISTINCT id) FROM events'), '22|22', 'what it had added is remembered, what was rolled back is not');

$other->query(q{BEGIN; SELECT streamfilter_seen('seen', 101)});
$session->query(q{BEGIN; INSERT INTO events VALUES (31); SAVEPOINT s});
$session->query(q{SET LOCAL statement_timeout = 300; SELECT streamfilter_seen('seen', 101)});
$session->{stderr} = '';
$session->query('ROLLBACK TO SAVEPOINT s; COMMIT');
is($session->{stderr}, '', 'likewise if nothing comes between it and COMMIT');
$other->query('ROLLBACK');
sql('INSERT INTO events VALUES (31), (101)');
is(sql('SELECT count(*) FROM events WHERE id IN (31, 101)'), '2', 'with the same result');

# ---- a server that goes before COMMIT -------------------------------------------------------------------------------

for my $change (['DELETE', 'DELETE FROM exact WHERE id = 1'], ['TRUNCATE', 'TRUNCATE exact'])
{
	my ($name, $command) = @$change;
	$session->query(q{SELECT streamfilter_test('exact', 1)});
	$session->query("BEGIN; $command");
	$holder{a}->stop('immediate');
	$session->{stderr} = '';
	$session->query('COMMIT');
	like($session->{stderr}, qr/ERROR:  connection to server "a" was lost within the transaction/,
		"$name that cannot arrive any more: COMMIT says so");
	$holder{a}->start;
	for (1 .. 50) { last if knows('exact', 1) eq 't'; Time::HiRes::sleep(0.1); }
	is(knows('exact', 1), 't', 'and the key is there still');
}

# ---- a crash here, before anything is flushed by itself -------------------------------------------------------------

my $keys = 0;
for my $round (1 .. 3)
{
	my $from = 1000 * $round;
	sql("INSERT INTO events SELECT generate_series($from, $from + 199)") ;
	crash();
	sql("INSERT INTO events SELECT generate_series($from, $from + 199)");
	$keys += 200;
}
is(sql('SELECT count(*), count(DISTINCT id) FROM events WHERE id >= 1000'), "$keys|$keys",
	'after a crash no key is remembered whose row is gone');

# ---- servers that hang while COMMIT is sent ----------------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE wide (id int) SERVER streamfilter
        OPTIONS (servers 'a,b,c', kind 'bloom', memory '96kB', k '6', slicing 'vertical', slices '6');
      SELECT streamfilter_test('wide', 1)});
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query('BEGIN; INSERT INTO wide SELECT generate_series(1, 50)');
my @pids = map { split /\n/, sql(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'streamfilter'}, $_) } values %holder;
kill 'STOP', @pids;
my $start = time;
$session->query('COMMIT');
my $took = time - $start;
kill 'CONT', @pids;
$session->query('SELECT 1');
cmp_ok($took, '<', 6, "COMMIT with three hung servers takes one timeout and a bit, not three ($took s)");
like($session->{stderr}, qr/WARNING:  server "[abc]" does not remember the keys of a transaction of this session/, 'and warns');
$session->quit;

for (1 .. 100)
{
	sql(q{SELECT count(streamfilter_test('wide', i)) FROM generate_series(1, 20) i});
	last if sql('SELECT bool_or(lost) FROM streamfilter_slices') eq 'f';
	Time::HiRes::sleep(0.1);
}

# A session that is told to end does not wait for them.
sql("ALTER SERVER $_ OPTIONS (SET timeout '20s')") for sort keys %holder;
my $ending = IPC::Run::start([ 'psql', '-Xq', '-d', $node->connstr('postgres'), '-c', 'BEGIN', '-c',
		'INSERT INTO wide SELECT generate_series(51, 100)', '-c', 'SELECT pg_sleep(1)', '-c', 'COMMIT' ], '>', \my $printed, '2>', \my $complained);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(1)'});
@pids = map { split /\n/, sql(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'streamfilter'}, $_) } values %holder;
kill 'STOP', @pids;
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active'});
my $pid = sql(q{SELECT pid FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active'});
$start = time;
is(sql("SELECT pg_terminate_backend($pid, 15000)"), 't', 'COMMIT with hung servers can be terminated,');
$took = time - $start;
cmp_ok($took, '<', 3, "without waiting for their timeouts ($took s)");
kill 'CONT', @pids;
$ending->finish;
is(sql('SELECT bool_or(lost) FROM streamfilter_slices'), 'f', 'and nobody takes the servers for lost');
sql("ALTER SERVER $_ OPTIONS (SET timeout '3s')") for sort keys %holder;

# A new session that meets three hung servers connects to all of them at once.
@pids = map { my ($main) = split /\n/, slurp_file($_->data_dir . '/postmaster.pid'); $main } values %holder;
kill 'STOP', @pids;
$start = time;
is(sql(q{SELECT count(*) FILTER (WHERE streamfilter_test('wide', i)) FROM generate_series(1, 20) i}), '0', 'three servers hang:');
$took = time - $start;
cmp_ok($took, '<', 2.9, "they are given up after one connect_timeout of a second, not three ($took s)");
kill 'CONT', @pids;
for (1 .. 100)
{
	last if sql(q{SELECT count(*) FILTER (WHERE streamfilter_test('wide', i)) FROM generate_series(1, 20) i}) eq '20' && sql('SELECT bool_or(lost) FROM streamfilter_slices') eq 'f';
	Time::HiRes::sleep(0.1);
}

# ---- a producer that is frozen ----------------------------------------------------------------------------------------

# A busy machine must not take the server for lost.
sql(q{ALTER SERVER a OPTIONS (ADD idle_timeout '500ms', SET connect_timeout '20s', SET timeout '20s')});
my $frozen = $node->background_psql('postgres', on_error_stop => 0);
$frozen->query('BEGIN; INSERT INTO events VALUES (500)');
sql('INSERT INTO events VALUES (500)');    # waits until the other's transaction over there is ended
$frozen->query('COMMIT');
like($frozen->{stderr}, qr/ERROR:  connection to server "a" was lost within the transaction/,
	'a transaction that did nothing for too long is ended over there, and fails here');
$frozen->quit;
is(sql('SELECT count(*) FROM events WHERE id = 500'), '1', 'so that another producer can go on');
sql(q{ALTER SERVER a OPTIONS (DROP idle_timeout, SET connect_timeout '1s', SET timeout '3s')});

# ---- a server that is built anew ------------------------------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE spread (id int) SERVER streamfilter
        OPTIONS (servers 'a,b,c', kind 'bloom', memory '96kB', k '6', slices '6');
      INSERT INTO spread SELECT generate_series(1, 300)});
sql('DROP FOREIGN TABLE spread', $holder{a});
is(sql(q{SELECT count(*) BETWEEN 100 AND 299 FROM generate_series(1, 300) i WHERE streamfilter_test('spread', i)}), 't',
	'the first server was built anew: it takes the seed of the others, whose slices go on');
sql('INSERT INTO spread SELECT generate_series(1, 300)');
is(known('spread', 1, 300), '300', 'as it does itself');

# ---- a tree whose root is lost ------------------------------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE root (id int) SERVER a
        OPTIONS (kind 'bloom', memory '64kB', k '4', seed '5', lost_slice 'duplicate');
      CREATE FOREIGN TABLE leaf (id int) SERVER streamfilter
        OPTIONS (kind 'bloom', memory '64kB', k '4', seed '5', parent 'root', tree 'dense');
      SELECT streamfilter_seen('leaf', 1)});
$holder{a}->stop('immediate');
is(sql(q{SELECT streamfilter_seen('leaf', 1), streamfilter_seen('leaf', 2)}), 't|t', 'the root is lost: all keys count as repeats');
$holder{a}->start;
for (1 .. 100)
{
	knows('root', 1);
	last if sql('SELECT bool_or(lost) FROM streamfilter_slices') eq 'f';
	Time::HiRes::sleep(0.1);
}
is(sql(q{SELECT streamfilter_seen('leaf', 1), streamfilter_seen('leaf', 2)}), 't|f', 'but no leaf has learned that for good');

$other->quit;
done_testing();
