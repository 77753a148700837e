# A server of slices that says what it must not, or nothing, or hangs up, at every point of a conversation
# (HostileProxy.pm). The server here lives, waits no longer than it was told, answers to a cancel, reports errors in
# whole characters, and loses no row; what the peer cannot be told is asked again later.
use Sf;
use Encode ();
use HostileProxy;
use Time::HiRes qw(time);

my @utf8   = (extra => [ '--encoding=UTF8', '--locale=C' ]);
my $node   = start_node('producer', "max_connections = 200\n", @utf8);
my $holder = start_node('holder', "max_connections = 200\n", @utf8);
my $proxy  = HostileProxy->start($holder->host . '/.s.PGSQL.' . $holder->port);
my $start  = sql('SELECT pg_postmaster_start_time()');

$node->safe_psql('postgres', sprintf q{
	CREATE SERVER peer FOREIGN DATA WRAPPER streamfilter
	  OPTIONS (host '127.0.0.1', port '%d', dbname 'postgres', sslmode 'disable', connect_timeout '500ms', timeout '500ms');
	CREATE USER MAPPING FOR CURRENT_USER SERVER peer;
	CREATE FOREIGN TABLE seen (id int) SERVER peer OPTIONS (kind 'bloom', memory '1MB', k '8', seed '1');
	CREATE TABLE events (id int);
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events VALUES (0)}, $proxy->port);

my @findings;
my $key = 0;
my %accepted;    # keys whose INSERT has succeeded
my ($errors, $warnings, $told) = (0, 0, 0);
my $all_said = '';

# Runs a statement in a session; notes what must not be.
sub try_statement
{
	my ($session, $sql, $name) = @_;
	my $begun = time;
	$session->{stderr} = '';
	$session->query($sql);
	my $said = $session->{stderr};
	$all_said .= $said;
	my $took = time - $begun;
	push @findings, "$name: took $took s" if $took > 10;
	my $text = eval { Encode::decode('UTF-8', $said, Encode::FB_CROAK | Encode::LEAVE_SRC) };
	push @findings, "$name: invalid characters in $said" unless defined $text;
	push @findings, "$name: control characters in $said" if $said =~ /[\x00-\x08\x0b-\x1f\x7f]/;
	push @findings, "$name: the session has ended: $said" if $said =~ /^(psql:\S+ )?(error: )?(server closed the connection|connection to server was lost)/m;
	push @findings, "$name: $said" if $said =~ /XX\d\d\d|TRAP/;
	++$errors   if $said =~ /ERROR:/;
	++$warnings if $said =~ /WARNING:/;
	return $said !~ /ERROR:/;
}

# The peer behaves again: waits until that is known.
sub come_back
{
	my ($session) = @_;
	$proxy->set('pass');
	for (1 .. 100)
	{
		$session->query(q{SELECT streamfilter_test('seen', 0)});
		return if $session->query('SELECT bool_or(lost) FROM streamfilter_slices') eq 'f';
		Time::HiRes::sleep(0.05);
	}
	push @findings, "the peer is not used again: $session->{stderr}";
	return;
}

sub new_session { return $node->background_psql('postgres', on_error_stop => 0); }

# How many statements were told of the peer since the last call.
sub told
{
	my $since = $errors + $warnings - $told;
	$told += $since;
	return $since;
}

# One new key, as a statement of its own.
sub insert_key
{
	my ($session, $name) = @_;
	++$key;
	$accepted{$key} = 1 if try_statement($session, "INSERT INTO events VALUES ($key)", $name);
	return;
}

# A transaction on a connection that stands, with the trick at its end.
sub insert_and_commit
{
	my ($session, $trick, $first, $name) = @_;
	come_back($session);
	++$key;
	try_statement($session, "BEGIN; INSERT INTO events VALUES ($key)", $name);
	$proxy->set($trick, $first);
	$accepted{$key} = 1 if try_statement($session, 'COMMIT', $name);
	return;
}

# After the last trick the peer behaves; then all keys that are not there must be accepted, if they come again.
sub is_all_well
{
	my ($name) = @_;
	$proxy->set('pass');
	$proxy->hang_up;
	my $session = new_session();
	come_back($session);
	my @lost = grep { $_ ne '' } split /\n/, sql('SELECT k FROM unnest($${' . join(',', sort { $a <=> $b } keys %accepted)
		  . '}$$::int[]) k WHERE NOT EXISTS (SELECT FROM events WHERE id = k)');
	push @findings, "accepted, but not there: @lost" if @lost;
	$session->query("INSERT INTO events SELECT generate_series(1, $key)");
	my $missing = sql("SELECT count(*) FROM generate_series(1, $key) k WHERE NOT EXISTS (SELECT FROM events WHERE id = k)");
	push @findings, "$missing keys are remembered, but have no row" if $missing ne '0';
	my $before = sql('SELECT count(*) FROM events');
	$session->query("INSERT INTO events SELECT generate_series(1, $key)");
	my $more = sql('SELECT count(*) FROM events') - $before;
	push @findings, "$more keys were not remembered, though the peer behaved" if $more;
	push @findings, 'the server was restarted' if sql('SELECT pg_postmaster_start_time()') ne $start;
	$session->quit;
	is(join("\n", @findings), '', $name);
	@findings = ();
	return;
}

# ---- every trick ----------------------------------------------------------------------------------------

for my $trick (HostileProxy::names())
{
	# From the first exchange on, then on a connection that stands, then at COMMIT.
	$proxy->set($trick);
	$proxy->hang_up;
	my $session = new_session();
	insert_key($session, "$trick, connecting");
	come_back($session);
	$proxy->set($trick);
	insert_key($session, $trick);
	insert_key($session, "$trick, again");
	insert_and_commit($session, $trick, 1, "$trick, at COMMIT");
	$session->quit;
}
is_all_well('lies: rows, counts, NULLs, lengths, states, errors');
cmp_ok($errors, '>', 20, "which were told as errors ($errors) and warnings ($warnings)");
told();

# ---- cut and stalled at every message ------------------------------------------------------------------------

$proxy->set('pass');
$proxy->hang_up;
my $counting = new_session();
insert_key($counting, 'counting');
my $messages = $proxy->counted;
$counting->quit;
cmp_ok($messages, '>', 15, "a conversation has $messages messages");
for my $trick (qw(cut_once cut))
{
	for my $first ($trick eq 'cut' ? grep { $_ % 5 == 0 } 1 .. $messages : 1 .. $messages)
	{
		my $session = new_session();
		$proxy->set($trick, $first);
		$proxy->hang_up;
		insert_key($session, "$trick $first");
		come_back($session);
		$session->quit;
	}
	my $session = new_session();
	insert_and_commit($session, $trick, $_, "$trick $_ at COMMIT") for 1 .. 3;
	$session->quit;
}
is_all_well('connections that are cut');
cmp_ok(told(), '>', 0, 'which was told');

sql(q{ALTER SERVER peer OPTIONS (SET connect_timeout '300ms', SET timeout '300ms')});
for my $first (grep { $_ % 5 == 1 } 1 .. $messages)
{
	$proxy->set('stall', $first);
	$proxy->hang_up;
	my $session = new_session();
	insert_key($session, "stall $first");
	come_back($session);
	$session->quit;
}
my $session = new_session();
insert_and_commit($session, 'stall', $_, "stall $_ at COMMIT") for 1 .. 3;
$session->quit;
is_all_well('peers that stall');
cmp_ok(told(), '>', 0, 'which was told');

# ---- signals -----------------------------------------------------------------------------------------------------

# Those that docs/servers.md lists, each said at every place of a conversation by one session or another, and at COMMIT.
my ($list) = slurp_file("$root/docs/servers.md") =~ /^## Signals\n(.*?)^## /ms;
my @signals = map { my ($severity, $codes) = /^\| ([A-Z]+) \| (.*?) \|/ ? ($1, $2) : (); map { "$severity:$_" } ($codes // '') =~ /`([0-9A-Z]{5})`/g } split /\n/, $list // '';
cmp_ok(scalar @signals, '>', 15, 'docs/servers.md lists signals');
sql(q{ALTER SERVER peer OPTIONS (SET connect_timeout '500ms', SET timeout '500ms')});
for my $number (0 .. $#signals)
{
	my $signal = $signals[$number];
	for my $first (grep { ($_ + $number) % 4 == 0 } 1 .. $messages)
	{
		my $session = new_session();
		$proxy->set($signal, $first);
		$proxy->hang_up;
		insert_key($session, "$signal at message $first");
		come_back($session);
		$session->quit;
	}
	my $session = new_session();
	insert_and_commit($session, $signal, $_, "$signal $_ at COMMIT") for 1 .. 2;
	$session->quit;
}
is_all_well('signals that nobody expects');
cmp_ok(told(), '>', 0, 'which was told');

# ---- a server that says why it does not take the session is not lost ----------------------------------------------

# While it is known as lost, sessions wait only a moment for it.
sub refuses
{
	my ($trick, $why, $name) = @_;
	for my $before (qw(pass stall))
	{
		$proxy->set($before);
		$proxy->hang_up;
		my $session = new_session();
		$before eq 'pass' ? come_back($session) : insert_key($session, 'a server that is lost');
		$session->quit;
		Time::HiRes::sleep(1.2) if $before eq 'stall';    # until a session may ask it again
		$proxy->set($trick);
		$proxy->hang_up;
		$session = new_session();
		++$key;
		ok(!try_statement($session, "INSERT INTO events VALUES ($key)", $name) && $session->{stderr} =~ $why, "$name, after $before")
		  or diag($session->{stderr});
		is(sql("SELECT count(*) FROM events WHERE id = $key"), '0', '... and no row is stored');
		$session->quit;
	}
	return;
}
refuses("FATAL:$_:stall", qr/ERROR:  could not connect to server "peer"\nDETAIL:  .*FATAL:  $_: signal $_/, "$_ and then silence") for qw(53300 28P01 3D000 42501);
refuses('nonsense', qr/ERROR:  could not connect to server "peer"\nDETAIL:  .*expected authentication request/, 'what is no PostgreSQL server');
is_all_well('and goes on when the server does');

# ---- the last word of a connection -----------------------------------------------------------------------------

# It says that it ends, but the socket is still open when this server looks.
$session = new_session();
$session->query_safe(q{BEGIN; INSERT INTO events VALUES (-2)});
$proxy->set('linger');
$holder->safe_psql('postgres', q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
	WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
$session->{stderr} = '';
$session->query('COMMIT');
like($session->{stderr}, qr/ERROR:  connection to server "peer" was lost within the transaction/,
	'a transaction whose server has said that it ends its part does not commit');
$session->quit;
$proxy->set('pass');
$proxy->hang_up;
sql('INSERT INTO events VALUES (-2)');
sql('INSERT INTO events VALUES (-2)');
is(sql('SELECT count(*) FROM events WHERE id = -2'), 1, 'its row is there once when it is repeated');
sql('DELETE FROM events WHERE id = -2');

# ---- more than was asked for -----------------------------------------------------------------------------------

# It is cut off before it has taken memory or time: docs/security.md states the kilobytes.
my $most_taken = 30_000;
sql(q{ALTER SERVER peer OPTIONS (SET connect_timeout '60s', SET timeout '60s')});
my $peak = q{SELECT substring(pg_read_file('/proc/self/status') from 'VmHWM:\s+(\d+)')::int};
for my $trick (HostileProxy::floods())
{
	$session = new_session();
	come_back($session);
	my $before = -r '/proc/self/status' ? $session->query($peak) : undef;
	$proxy->set($trick);
	$proxy->hang_up if $trick =~ /start/;
	$all_said = '';
	my $begun = time;
	insert_key($session, $trick) for 1 .. 3;
	insert_and_commit($session, $trick, 1, "$trick, at COMMIT");
	cmp_ok(time - $begun, '<', 30, "$trick: it is not waited for");
	cmp_ok($session->query($peak) - $before, '<', $most_taken, "$trick: kB of memory that it takes") if defined $before;
	like($all_said, qr/it sends more than was asked for/, "$trick: and why the connection has ended");
	$session->quit;
}
is_all_well('peers that send without end');

# ---- cancel --------------------------------------------------------------------------------------------------

sql(q{ALTER SERVER peer OPTIONS (SET connect_timeout '60s', SET timeout '60s')});
# When it connects, when it sets up, and when it asks; not when it commits.
for my $first (1, $messages / 2, $messages - 7)
{
	$proxy->set('stall', int $first);
	$proxy->hang_up;
	my $begun = time;
	like(said('SET statement_timeout = 300; INSERT INTO events VALUES (-1)'), qr/canceling statement due to statement timeout/, "a wait can be cancelled at message " . int $first);
	cmp_ok(time - $begun, '<', 10, 'at once');
}
$proxy->set('pass');
$proxy->hang_up;
sql('DELETE FROM events WHERE id = -1');
is_all_well('and nothing is lost by it');

unlike(slurp_file($node->logfile), qr/\] (\S+ )?PANIC:|TRAP|was terminated by signal/, 'the log is clean');

done();
