# Statements that are cancelled while other servers work for them: those give up at once, the connection is kept, and so
# is what the transaction has added before. Servers that hang cost one timeout, however many they are, wherever a
# transaction meets them.
use Sf;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(time);

my $node   = start_node('producer');
my %holder = map { $_ => start_node($_, "listen_addresses = '127.0.0.1'\n") } qw(a b c);

$holder{a}->append_conf('pg_hba.conf', 'host all all 127.0.0.1/32 trust');
$holder{a}->reload;
sql(join '', map { server_sql($_, $holder{$_}, q{connect_timeout '10s', timeout '60s'}, $_ eq 'a' ? '127.0.0.1' : undef) } sort keys %holder);

# ---- what a connection asks for over there --------------------------------------------------------------------------

$holder{a}->safe_psql('postgres', q{
	CREATE TABLE asked (name text, setting text);
	CREATE FUNCTION note_settings() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
	  INSERT INTO public.asked SELECT name, setting FROM pg_settings
	    WHERE name IN ('idle_in_transaction_session_timeout', 'tcp_keepalives_idle', 'tcp_keepalives_interval',
	      'tcp_keepalives_count', 'client_connection_check_interval');
	END $$;
	CREATE EVENT TRIGGER note_settings ON ddl_command_end WHEN TAG IN ('CREATE FOREIGN TABLE') EXECUTE FUNCTION note_settings()});
sql(q{CREATE FOREIGN TABLE seen (id int) SERVER a OPTIONS (kind 'bloom', memory '1MB', k '8');
      CREATE TABLE events (id int);
      CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
      INSERT INTO events VALUES (0)});
is(sql(q{SELECT string_agg(DISTINCT name || ' ' || setting, ', ' ORDER BY name || ' ' || setting) FROM asked}, $holder{a}),
	'client_connection_check_interval 200, idle_in_transaction_session_timeout 600000, tcp_keepalives_count 3, '
	  . 'tcp_keepalives_idle 30, tcp_keepalives_interval 10',
	'keepalives, and a limit for transactions that do nothing, are the default');
sql('DROP EVENT TRIGGER note_settings', $holder{a});

# ---- a wait for another transaction over there ----------------------------------------------------------------------

sub backends
{
	my ($holder) = @_;
	return split /\n/, sql(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'streamfilter' ORDER BY pid}, $holder);
}

# Runs a statement in a session; how long that took.
sub timed
{
	my ($session, $sql) = @_;
	$session->{stderr} = '';
	my $start = time;
	$session->query($sql);
	return time - $start;
}

my $other   = $node->background_psql('postgres', on_error_stop => 0);
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query('SET statement_timeout = 500; INSERT INTO events VALUES (1)');
my ($backend) = backends($holder{a});
$other->query(q{BEGIN; SELECT streamfilter_seen('seen', 100)});

# Each ends within the 60 s that the server would wait.
cmp_ok(timed($session, 'INSERT INTO events VALUES (100)'), '<', 10, 'a statement of its own is cancelled');
like($session->{stderr}, qr/canceling statement due to statement timeout/, 'and says so');
cmp_ok(timed($session, 'INSERT INTO events VALUES (2)'), '<', 10, 'the next one need not wait for it');
is($session->{stderr}, '', 'without a word');
ok((grep { $_ eq $backend } backends($holder{a})), 'on the same connection');

cmp_ok(timed($session, 'BEGIN; INSERT INTO events SELECT generate_series(10, 20); SAVEPOINT s; INSERT INTO events VALUES (21);
	SELECT streamfilter_seen($$seen$$, 100)'), '<', 10, 'behind a savepoint');
like($session->{stderr}, qr/canceling statement due to statement timeout/, 'likewise');
cmp_ok(timed($session, 'ROLLBACK TO SAVEPOINT s; INSERT INTO events VALUES (22); COMMIT'), '<', 10, 'the transaction goes on at once');
is($session->{stderr}, '', 'and commits');
ok((grep { $_ eq $backend } backends($holder{a})), 'on the same connection');

cmp_ok(timed($session, 'BEGIN; INSERT INTO events VALUES (30); SELECT streamfilter_seen($$seen$$, 100); ROLLBACK'), '<', 10,
	'a transaction that rolls back as a whole');
ok((grep { $_ eq $backend } backends($holder{a})), 'keeps the connection');
cmp_ok(timed($session, 'SET statement_timeout = 0; DO $$ BEGIN
	  INSERT INTO events VALUES (40);
	  FOR i IN 1 .. 3 LOOP
	    BEGIN
	      PERFORM pg_cancel_backend(pg_backend_pid()), streamfilter_seen($x$seen$x$, 100);
	    EXCEPTION WHEN query_canceled THEN INSERT INTO events VALUES (40 + i);
	    END;
	  END LOOP;
	END $$; SET statement_timeout = 500'), '<', 10, 'cancelled again and again within a transaction');
is($session->{stderr}, '', 'which commits');
$other->query('ROLLBACK');
sql('INSERT INTO events SELECT generate_series(1, 100)');
is(sql('SELECT count(*), count(DISTINCT id) FROM events WHERE id > 0'), '100|100',
	'what was kept is remembered, what was rolled back is not');

# ---- a request to cancel that comes late ----------------------------------------------------------------------------

# Between producer and server: requests to cancel take three seconds, all else no time.
my $proxy_port = PostgreSQL::Test::Cluster::get_free_port();
my $proxy = fork() // die "fork: $!";
if ($proxy == 0)
{
	my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $proxy_port, Listen => 10, ReuseAddr => 1) or POSIX::_exit(1);
	my (%peer, %is_late, @late);
	my $select = IO::Select->new($listener);
	for (;;)
	{
		for my $socket ($select->can_read(0.1))
		{
			if ($socket == $listener)
			{
				my $client = $listener->accept or next;
				my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $holder{a}->port) or POSIX::_exit(1);
				@peer{$client, $server} = ($server, $client);
				$select->add($client, $server);
				next;
			}
			my $got = sysread $socket, my $bytes, 65536;
			if (!$got)
			{
				$select->remove($socket);
				push @late, [ time + 4, $peer{$socket} ];    # closed behind what is late
			}
			elsif ($is_late{$socket} ||= $bytes =~ /pg_cancel_backend|^\0\0\0\x10\x04\xd2\x16\x2e/)
			{
				push @late, [ time + 3, $peer{$socket}, $bytes ];
			}
			else { syswrite $peer{$socket}, $bytes }
		}
		while (@late && time > $late[0][0])
		{
			my (undef, $socket, $bytes) = @{ shift @late };
			if (defined $bytes) { syswrite $socket, $bytes } else { shutdown $socket, 1 }
		}
		@late = sort { $a->[0] <=> $b->[0] } @late;
	}
}
END { local $?; kill 'KILL', $proxy if $proxy; }

# Keeps a key to itself for a while.
sub claim_for
{
	my ($key, $seconds) = @_;
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'BEGIN',
		'-c', "SELECT streamfilter_seen('seen', $key)", '-c', "SELECT pg_sleep($seconds) /* claims */", '-c', 'ROLLBACK' ]);
	$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep.*claims' AND state = 'active'});
	return $run;
}

sql("ALTER SERVER a OPTIONS (SET port '$proxy_port')");
$session->query('SELECT streamfilter_test($$seen$$, 1)');
my $claim = claim_for(300, 1.5);
timed($session, 'INSERT INTO events VALUES (300)');
like($session->{stderr}, qr/canceling statement due to statement timeout/, 'a statement is cancelled, and ends over there by itself');
$claim->finish;
$session->query('SET statement_timeout = 0');
$claim = claim_for(301, 5);
timed($session, 'INSERT INTO events VALUES (301)');
is($session->{stderr}, '', 'the request does not meet the next one');
is(sql('SELECT count(*) FROM events WHERE id IN (300, 301)'), '1', 'which is carried out');
$claim->finish;
sql(sprintf "ALTER SERVER a OPTIONS (SET port '%d')", $holder{a}->port);

# ---- servers that hang ----------------------------------------------------------------------------------------------

sql("ALTER SERVER $_ OPTIONS (SET timeout '3s', SET connect_timeout '3s')") for sort keys %holder;
sql(q{CREATE FOREIGN TABLE wide (id int) SERVER streamfilter
        OPTIONS (servers 'a,b,c', kind 'bloom', memory '96kB', k '6', slicing 'vertical', slices '6');
      SELECT streamfilter_test('wide', 1)});
$session->query('SET statement_timeout = 0');

# Until no server counts as lost. A key has places on some servers, twenty keys on all.
my $ask_all = q{SELECT count(streamfilter_test('wide', i)) FROM generate_series(1, 20) i};
sub come_back
{
	for (1 .. 200)
	{
		$session->query($ask_all);
		return if sql('SELECT bool_or(lost) FROM streamfilter_slices') eq 'f';
		Time::HiRes::sleep(0.1);
	}
	fail('the servers are used again');
	return;
}

# Stops the backends over there, at least one on each server, and returns their pids.
sub frozen
{
	my @pids;
	for my $name (sort keys %holder)
	{
		my @of = backends($holder{$name});
		kill('STOP', @of) == @of && @of or die "server $name: nobody is frozen";
		push @pids, @of;
	}
	return @pids;
}

my $key  = 1000;
my $some = 'SELECT generate_series(%1$d000, %1$d019)';
for my $case (
	[ 'a statement',  '',                     "INSERT INTO wide $some" ],
	[ 'a second one', "BEGIN; INSERT INTO wide $some", "INSERT INTO wide $some" ],
	[ 'ROLLBACK',         "BEGIN; INSERT INTO wide $some", 'ROLLBACK' ],
	[ 'a savepoint',      "BEGIN; SAVEPOINT s; INSERT INTO wide $some", 'ROLLBACK TO SAVEPOINT s' ],
	[ 'COMMIT',           "BEGIN; INSERT INTO wide $some", 'COMMIT' ],
	[ 'COMMIT of many savepoints', "BEGIN; SAVEPOINT s; INSERT INTO wide $some; SAVEPOINT t; INSERT INTO wide VALUES (1)", 'COMMIT' ])
{
	my ($name, $before, $statement) = @$case;
	come_back();
	$session->query(sprintf $before, ++$key) if $before ne '';
	my @pids = frozen();
	my $took = timed($session, sprintf $statement, ++$key);
	kill 'CONT', @pids;
	$session->query('ROLLBACK');
	cmp_ok($took, '>=', 2.9, "$name waits") or diag($session->{stderr}) if $statement =~ /^INSERT/;
	cmp_ok($took, '<', 5.5, sprintf('%s meets three servers that hang: one timeout of 3 s, not three (%.1f s)', $name, $took));
}

# A statement that is cancelled does not wait for their timeouts, nor one for each of them.
come_back();
sql("ALTER SERVER $_ OPTIONS (SET timeout '60s')") for sort keys %holder;
$session->query(q{SET statement_timeout = 500});
for my $what ('backends', 'servers')
{
	++$key;
	come_back();
	my @pids = frozen();
	push @pids, map { (split /\n/, slurp_file($_->data_dir . '/postmaster.pid'))[0] } values %holder if $what eq 'servers';
	kill 'STOP', @pids;
	my $took = timed($session, sprintf "INSERT INTO wide $some", $key);
	kill 'CONT', @pids;
	like($session->{stderr}, qr/canceling statement due to statement timeout/, "three $what hang: a statement is cancelled");
	cmp_ok($took, '>=', .45, 'after its timeout');
	cmp_ok($took, '<', 5, sprintf('which takes a moment (%.1f s)', $took));
	$session->query('SET statement_timeout = 0');
	come_back();
	is($session->query(sprintf "SELECT count(*) FROM ($some) k(i) WHERE streamfilter_test('wide', i)", $key), '0', 'and remembers nothing');
	$session->query('SET statement_timeout = 500');
}

$_->quit for $session, $other;
done_testing();
