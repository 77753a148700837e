# What a server does that is lost while a transaction ends here. By then this side has committed: nothing may be
# raised any more, whatever the name of the server, the encoding of the client and the last words of the peer.
# flavours: faults
use Sf;
use IO::Select;
use IO::Socket::INET;
use POSIX ();

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
sub log_has
{
	my ($what) = @_;
	return slurp_file($node->logfile, $last) =~ $what;
}

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
	my ($said, $alive) = run_session($encoding, 'BEGIN', "INSERT INTO rows_$name SELECT generate_series(1, 10)",
		'COMMIT', 'SELECT 2');
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
	my ($said, $alive) = run_session('UTF8', 'BEGIN', "INSERT INTO rows_$name SELECT generate_series(1, 10)",
		'COMMIT', 'SELECT 2');
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

done_testing();
