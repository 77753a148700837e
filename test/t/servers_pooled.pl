# Sessions that stay open while connections between servers end, stall, or are refused for want of room: what
# happens to one connection is no loss of the server, and what is lost is found again by every session.
# flavours: faults
use Sf;
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

my $places = 12;
my $node   = start_node('producer', "fsync = on\n");
my $holder = start_node('holder', "fsync = on\nmax_connections = $places\n");
sub held { return sql($_[0], $holder); }

sql(sprintf q{
	CREATE SERVER a FOREIGN DATA WRAPPER streamfilter
	  OPTIONS (host '%s', port '%d', dbname 'postgres', connect_timeout '1s', timeout '1s');
	CREATE USER MAPPING FOR CURRENT_USER SERVER a;}, $holder->host, $holder->port);
for my $rule (qw(distinct duplicate))
{
	sql(qq{CREATE FOREIGN TABLE seen_$rule (id int) SERVER a
	         OPTIONS (kind 'bloom', memory '1MB', k '8', lost_slice '$rule');
	       CREATE TABLE rows_$rule (id int);
	       CREATE TRIGGER zz BEFORE INSERT ON rows_$rule
	         FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_$rule')});
}

sub pool { return map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. $_[0]; }

# What a session says of a key: t or f, or its error.
sub ask
{
	my ($session, $statement) = @_;
	$session->{stderr} = '';
	my $answer = $session->query($statement);
	return $answer ne '' ? $answer : $session->{stderr};
}

my $next = 1;

# Every session tells new keys from repeats, whatever the rule is for slices that are lost.
sub judge_right
{
	my ($sessions, $name) = @_;
	my @wrong;
	for my $rule (qw(distinct duplicate))
	{
		for my $i (0 .. $#$sessions)
		{
			my $key = $next++;
			my $new    = ask($sessions->[$i], "SELECT streamfilter_seen('seen_$rule', $key)");
			my $repeat = ask($sessions->[ ($i + 1) % @$sessions ], "SELECT streamfilter_seen('seen_$rule', $key)");
			push @wrong, "$rule, session $i: $new, $repeat" if $new ne 'f' || $repeat ne 't';
		}
	}
	is(join("\n", @wrong), '', $name);
}

sub backends { return split /\n/, held(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'streamfilter'}); }

# Returns when they are gone.
sub end_all { return held(q{SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = 'streamfilter'}); }

my @sessions = pool(4);
judge_right(\@sessions, 'pooled sessions agree');

# ---- a connection is ended there -----------------------------------------------------------------------

my ($first) = backends();
held("SELECT pg_terminate_backend($first)");
judge_right(\@sessions, 'one connection was ended: every session goes on as before, at once');
is(sql('SELECT bool_or(lost) FROM streamfilter_slices'), 'f', 'and the server does not count as lost');

held('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $$streamfilter$$');
judge_right(\@sessions, 'all connections were ended: likewise');

# While another session works, so that ends fall into the middle of calls and of transactions.
my $busy = q{DO $$ BEGIN
  FOR i IN 1 .. 400 LOOP
    BEGIN
      INSERT INTO rows_distinct VALUES (100000 + i % 200);
    EXCEPTION WHEN connection_failure THEN
      NULL;  -- the row was not accepted
    END;
    IF i % 200 = 0 THEN COMMIT; END IF;
    PERFORM pg_sleep(0.005);
  END LOOP;
END $$};
# Single statements, each of them tried again until it succeeds.
my @errors;
my $deadline = time + 3;
my $count = 0;
while (time < $deadline)
{
	my $session = $sessions[ $count % 4 ];
	my $key     = 200000 + int($count / 2);
	for (1 .. 20)
	{
		my $answer = ask($session, "INSERT INTO rows_distinct VALUES ($key)");
		last if $session->{stderr} !~ /ERROR/;
	}
	held('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $$streamfilter$$') if $count % 7 == 0;
	++$count;
}
is(sql('SELECT count(*), count(DISTINCT id) FROM rows_distinct WHERE id >= 200000'),
	join('|', (int(($count + 1) / 2)) x 2), 'rows while connections are ended again and again: none lost, none twice');

# ---- within a transaction --------------------------------------------------------------------------------

$_->query('SELECT 1') for @sessions;
my $session = $sessions[0];
$session->query('BEGIN; INSERT INTO rows_distinct SELECT generate_series(5001, 5020)');
end_all();
$session->{stderr} = '';
$session->query('INSERT INTO rows_distinct SELECT generate_series(5021, 5040)');
like($session->{stderr}, qr/ERROR:  connection to server "a" was lost within the transaction/,
	'a transaction whose keys went with its connection fails');
$session->query('ROLLBACK');
$session->query('BEGIN; INSERT INTO rows_distinct SELECT generate_series(5001, 5040)');
end_all();
$session->{stderr} = '';
$session->query('COMMIT');
like($session->{stderr}, qr/ERROR:  connection to server "a" was lost within the transaction/, 'also when that is found at its COMMIT');
is(sql('SELECT count(*) FROM rows_distinct WHERE id BETWEEN 5001 AND 5040'), '0', 'nothing of it is there');
$session->query('INSERT INTO rows_distinct SELECT generate_series(5001, 5040)') for 1 .. 2;
is(sql('SELECT count(*) FROM rows_distinct WHERE id BETWEEN 5001 AND 5040'), '40', 'and it can be repeated');

# A test alone adds nothing that could go.
$session->{stderr} = '';
$session->query(q{BEGIN; SELECT streamfilter_test('seen_distinct', 1)});
end_all();
is($session->query(q{SELECT streamfilter_seen('seen_distinct', 5001)}), 't', 'a transaction that only tested goes on');
$session->query('COMMIT');
is($session->{stderr}, '', 'without a word');

# ---- the table of connections there is full ------------------------------------------------------------------

end_all();
ask($sessions[1], q{SELECT streamfilter_seen('seen_distinct', 1)});    # keeps its connection
my @full = map { $holder->background_psql('postgres', on_error_stop => 0) } 2 .. $places;
isnt($holder->psql('postgres', 'SELECT'), 0, 'nobody can come any more');
for my $i (0, 2, 3)
{
	like(ask($sessions[$i], q{SELECT streamfilter_seen('seen_distinct', 1)}), qr/too many clients/,
		"no room for session $i: an error, but no guess");
}
is(ask($sessions[1], q{SELECT streamfilter_seen('seen_distinct', 1)}), 't', 'who has a connection uses it');
is(sql('SELECT bool_or(lost) FROM streamfilter_slices'), 'f', 'the server does not count as lost');
$_->quit for @full;
sleep 0.5;
judge_right(\@sessions, 'room again: all go on');

# ---- a server that stalls --------------------------------------------------------------------------------------

my @pids = backends();
kill 'STOP', @pids;
my $start = time;
is(ask($sessions[0], q{SELECT streamfilter_seen('seen_distinct', 900001)}), 'f', 'a stall: judged without the slice');
cmp_ok(time - $start, '<', 4, 'after its timeout');
like($sessions[0]->{stderr}, qr/WARNING:  server "a" is lost/, 'with a warning');
kill 'CONT', @pids;
sleep 2.1;
judge_right(\@sessions, 'two seconds after a stall all sessions judge right');
is(sql('SELECT bool_or(lost) FROM streamfilter_slices'), 'f', 'and know that the server is there');

# ---- a server that is down ---------------------------------------------------------------------------------------

$holder->stop('immediate');
for my $i (0 .. 3)
{
	is(ask($sessions[$i], q{SELECT streamfilter_seen('seen_distinct', 1)}), 'f', "down: session $i judges without it");
	like($sessions[$i]->{stderr}, qr/WARNING:  server "a" is lost/, 'and every client is told') ;
	ask($sessions[$i], q{SELECT streamfilter_seen('seen_distinct', 1)});
	is($sessions[$i]->{stderr}, '', 'once');
}
sleep 8;    # however long that takes
$holder->start;
sleep 2;
judge_right(\@sessions, 'two seconds after it is back all sessions judge right');

$_->quit for @sessions;

# ==== many servers ====================================================================================================
# Servers come and go: what sessions know of them must not fill up shared memory for good.

$node->stop;
$node = start_node('many', "streamfilter.shared_memory = '16MB'\n");
on($node);
sql(q{
	CREATE ROLE plain LOGIN;
	GRANT USAGE ON FOREIGN DATA WRAPPER streamfilter TO plain;
	GRANT CREATE ON SCHEMA public TO plain});
my $port = PostgreSQL::Test::Cluster::get_free_port();    # where nobody listens

# Servers of a role without rights of its own, each used once, then dropped, committed or rolled back.
my $script = join '', map {
	my $end = $_ % 10 == 0 ? 'ROLLBACK' : 'COMMIT';
	qq{BEGIN;
	   CREATE SERVER s$_ FOREIGN DATA WRAPPER streamfilter OPTIONS (host '127.0.0.1', port '$port');
	   CREATE USER MAPPING FOR CURRENT_USER SERVER s$_ OPTIONS (user 'x', password 'x');
	   CREATE FOREIGN TABLE f$_ (id int) SERVER s$_ OPTIONS (kind 'bloom', memory '1kB', k '2', seed '1');
	   SELECT streamfilter_seen('f$_', 1);
	   $end;
	   DROP SERVER IF EXISTS s$_ CASCADE;\n}
} 1 .. 300;
my ($ret, $out, $err) = $node->psql('postgres', $script, extra_params => [ '-U', 'plain', '-q' ]);
is($ret, 0, '300 servers were made, used and dropped');
is(scalar(() = $out =~ /^f$/mg), 300, 'each key was new, for there was nobody to ask');
is(scalar(() = $err =~ /WARNING:  server "s\d+" is lost/g), 300, 'each loss was told');

# Another server that is lost is known to all sessions.
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die $!;
$node->safe_psql('postgres', sprintf q{
	CREATE SERVER last FOREIGN DATA WRAPPER streamfilter
	  OPTIONS (host '127.0.0.1', port '%d', connect_timeout '1500ms');
	CREATE USER MAPPING FOR CURRENT_USER SERVER last;
	CREATE FOREIGN TABLE last (id int) SERVER last OPTIONS (kind 'bloom', memory '1kB', k '2')}, $silent->sockport);
$start = time;
is(sql(q{SELECT streamfilter_seen('last', 1)}), 'f', 'one more server is lost');
cmp_ok(time - $start, '>', 1.4, 'whoever finds out waits');
$start = time;
is(sql(q{SELECT streamfilter_seen('last', 1)}), 'f', 'it is lost for the next session');
cmp_ok(time - $start, '<', 1, 'which does not wait for it');
is(sql(q{SELECT bool_and(lost) FROM streamfilter_slices WHERE server = 'last'}), 't', 'the view says so');

# The slices of dropped filters are not counted any more, whichever session used them last.
is(sql('SELECT count(*) FROM streamfilter_slices'), '1', 'no slices of what was dropped');

# Nor do filters whose creation is rolled back take the room of others' counts.
$node->safe_psql('postgres', join '', map {
	qq{BEGIN;
	   CREATE FOREIGN TABLE rolled_back (id int) SERVER last
	     OPTIONS (kind 'bloom', memory '64kB', k '1', slices '128', seed '1');
	   INSERT INTO rolled_back SELECT generate_series(1, 2000);
	   ROLLBACK;\n}
} 1 .. 40);
sql(q{
	CREATE FOREIGN TABLE counted (id int) SERVER last OPTIONS (kind 'bloom', memory '1kB', k '2', seed '1');
	SELECT streamfilter_seen('counted', 1)});
is(sql(q{SELECT unanswered FROM streamfilter_slices WHERE filter = 'counted'::regclass}), '1', 'the slices of a new filter are counted');

done_testing();
