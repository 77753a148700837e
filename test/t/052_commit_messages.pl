# What a server does that is lost while a transaction ends here. By then this side has committed: nothing may be
# raised any more, whatever the name of the server, the encoding of the client and the last words of the peer.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

sub start_node
{
	my ($name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
	$node->append_conf('postgresql.conf', q{
		shared_preload_libraries = 'streamfilter'
		streamfilter.shared_memory = '16MB'
		autovacuum = off});
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION streamfilter');
	return $node;
}

my $node   = start_node('producer');
my $holder = start_node('holder');
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
				my $up = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $holder->port) or die $!;
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

sub sql { return $node->safe_psql('postgres', $_[0]); }

my $listen = $holder->safe_psql('postgres', 'SHOW listen_addresses');
$holder->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'");
$holder->append_conf('pg_hba.conf',     'host all all 127.0.0.1/32 trust');
$holder->restart;

sub make_filter
{
	my ($name, $server, $host, $port) = @_;
	sql(qq{
		CREATE SERVER "$server" FOREIGN DATA WRAPPER streamfilter
		  OPTIONS (host '$host', port '$port', dbname 'postgres', connect_timeout '1s', timeout '2s');
		CREATE USER MAPPING FOR CURRENT_USER SERVER "$server";
		CREATE FOREIGN TABLE $name (id int) SERVER "$server" OPTIONS (kind 'bloom', memory '64kB', k '4');
		CREATE TABLE rows_$name (id int);
		CREATE TRIGGER discard BEFORE INSERT ON rows_$name
		  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$name')});
}

my $last = 0;
sub log_has
{
	my ($what) = @_;
	return slurp_file($node->logfile, $last) =~ $what;
}

sub unremembered { return sql(qq{SELECT unremembered FROM streamfilter_stats WHERE filter = '$_[0]'::regclass}); }

# Runs statements in a session with an encoding, which loses its server in between. A server that was lost is left alone
# for a second, so that is waited for.
sub run_session
{
	my ($encoding, $lose, $ready, @statements) = @_;
	$last = -s $node->logfile;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query("SET client_encoding = '$encoding'");
	$session->query('SELECT pg_sleep(1.2)');
	$session->query($_) for @$ready;
	$lose->();
	$session->query($_) for @statements;
	my $said = $session->{stderr};
	my $alive = $session->query('SELECT 1');
	$session->quit;
	return ($said, $alive);
}

sub end_connections
{
	$holder->safe_psql('postgres',
		q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'streamfilter'});
}

# ---- a name that the client's encoding does not have ------------------------------------------------------------------

make_filter('named', $server, $holder->host, $holder->port);
for my $encoding (qw(LATIN1 UTF8))
{
	my $start = sql('SELECT coalesce(max(id), 0) FROM rows_named');
	my ($said, $alive) = run_session($encoding, \&end_connections,
		[ "BEGIN", "INSERT INTO rows_named SELECT $start + generate_series(1, 10)" ], 'COMMIT', 'SELECT 2');
	is($alive, 1, "$encoding: the session goes on");
	ok(!log_has(qr/PANIC/), "$encoding: the server goes on");
	my $shown = $encoding eq 'UTF8' ? $server : '\?' x 6;
	like($said, qr/WARNING:  server "$shown" does not remember the keys of a transaction/,
		"$encoding: the next statement says what was lost");
	is(sql('SELECT count(*) FROM rows_named WHERE id > ' . $start), 10, "$encoding: the rows are there");
}
is(unremembered('named'), 2, 'both are counted');

# A savepoint, and a whole transaction, that roll back.
for my $case ([ 'ROLLBACK TO a' => 'a savepoint' ], [ 'ROLLBACK' => 'a transaction' ])
{
	my ($statement, $what) = @$case;
	my ($said, $alive) = run_session('LATIN1', \&end_connections,
		[ 'BEGIN', 'SAVEPOINT a', 'INSERT INTO rows_named VALUES (10000)' ],
		$statement, 'ROLLBACK', 'SELECT 2');
	is($alive, 1, "$what rolls back: the session goes on");
	ok(!log_has(qr/PANIC/), "$what rolls back: the server goes on");
}

# ---- last words of the peer -------------------------------------------------------------------------------------------

my %words = (
	'cut within a character' => 'x' . "\xd0\xb5" x 200,
	'invalid bytes'          => "\xff\xfe broken \xd0",
	'long'                   => 'word ' x 5000);
my $number = 0;
for my $case (sort keys %words)
{
	++$number;
	my ($pid, $port) = start_proxy('COMMIT', $words{$case});
	make_filter("told$number", "peer$number", '127.0.0.1', $port);
	my ($said, $alive) = run_session('UTF8', sub { },
		[ 'BEGIN', "INSERT INTO rows_told$number SELECT generate_series(1, 10)" ], 'COMMIT', 'SELECT 2');
	kill 'TERM', $pid;
	waitpid $pid, 0;
	is($alive, 1, "$case: the session goes on");
	ok(utf8::decode(my $copy = $said), "$case: the client gets valid characters");
	ok(!log_has(qr/PANIC|invalid byte sequence/), "$case: the server goes on");
	like($said, qr/WARNING:  server "peer$number" does not remember the keys of a transaction/, "$case: it is said");
	is(sql("SELECT count(*) FROM rows_told$number"), 10, "$case: the rows are there");
	is(unremembered("told$number"), 1, "$case: it is counted");
}

done_testing();
