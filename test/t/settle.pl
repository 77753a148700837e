# streamfilter_settle() interrupted in every way: a session that is killed, a crash, a prepared transaction that has a twin;
# beside COPY, piece by piece, and where the filter is on another server. Each row is in one place, whatever happens.
# flavours: quick faults
use Sf;

my $node = start_node('settle', q{
max_prepared_transactions = 4
restart_after_crash = on
deadlock_timeout = '50ms'
fsync = off
});
my ($host, $port) = ($node->host, $node->port);
sql(qq{
	CREATE SERVER over_there FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'other');
	CREATE USER MAPPING FOR CURRENT_USER SERVER over_there;
	CREATE DATABASE other;});
sql('CREATE EXTENSION streamfilter', 'other');

# Keys 1 to 1000 are in the table, and repeats of them were diverted; 1001 to 1100 were, twice each, and wrongly.
sub begin_with
{
	my ($server, $conflict) = @_;
	sql(qq{
		DROP TABLE IF EXISTS events, repeats;
		DROP FOREIGN TABLE IF EXISTS seen;
		CREATE FOREIGN TABLE seen (id int) SERVER $server OPTIONS (kind 'bloom', keys '100000', fpr '1e-6', conflict '$conflict');
		CREATE TABLE events (id int, note text);
		CREATE TABLE repeats (LIKE events, diverted_at timestamptz);
		CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');
		INSERT INTO seen SELECT generate_series(1001, 1100);
		INSERT INTO events SELECT i, 'first' FROM generate_series(1, 1100) i;
		INSERT INTO events SELECT i, 'second' FROM generate_series(1, 1100) i;});
	return;
}

my $settle = q{SELECT restored, confirmed, waiting FROM streamfilter_settle('repeats', 'events');};
my $state  = q{SELECT (SELECT count(*) || ' ' || count(DISTINCT id) FROM events), (SELECT count(*) FROM repeats)};

sub state_is { my ($wanted, $name) = @_; is(sql($state), $wanted, $name); return; }

# --- a session that ends ---------------------------------------------------------------------------------------------

begin_with('streamfilter', 'wait');
state_is('1000 1000|1200', 'diverted');
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid     = $session->query('SELECT pg_backend_pid()');
is($session->query("BEGIN; $settle"), '100|1100|0', 'settled');
state_is('1000 1000|1200', 'others see nothing of it');
sql("SELECT pg_terminate_backend($pid, 60000)");
eval { $session->quit };
state_is('1000 1000|1200', 'killed: nothing has happened');
$session = $node->background_psql('postgres', on_error_stop => 0);
is($session->query("BEGIN; $settle"), '100|1100|0', 'again');
$node->stop('immediate');
eval { $session->quit };
$node->start;
state_is('1000 1000|1200', 'a crash: nothing has happened');
is(sql($settle), '100|1100|0', 'settled at last');
crash();
state_is('1100 1100|0', 'and a crash after it changes nothing');
sql(q{INSERT INTO events SELECT i, 'third' FROM generate_series(1, 1100) i});
state_is('1100 1100|1100', 'the filter knows what has come back');
is(sql($settle), '0|1100|0', 'all of it is there');

# --- a twin that is prepared -----------------------------------------------------------------------------------------

for my $end ('COMMIT', 'ROLLBACK')
{
	begin_with('streamfilter', 'discard');
	sql(q{
		BEGIN;
		INSERT INTO events SELECT i, 'prepared' FROM generate_series(2001, 2010) i;
		PREPARE TRANSACTION 'twin';});
	sql(q{INSERT INTO events SELECT i, 'twin' FROM generate_series(2001, 2010) i});
	is(sql($settle), '100|1100|10', "$end PREPARED: ten wait");
	$node->restart;
	is(sql($settle), '0|0|10', 'after a restart, too');
	sql("$end PREPARED 'twin'");
	is(sql($settle), $end eq 'COMMIT' ? '0|10|0' : '10|0|0', 'until it has ended');
	state_is('1110 1110|0', 'each is in one place');
}

# --- piece by piece, beside others -----------------------------------------------------------------------------------

my $dir = $node->basedir;

# psql with these commands, beside everything else.
sub begin_script
{
	my ($name, $text) = @_;
	append_to_file("$dir/$name.sql", $text) unless -e "$dir/$name.sql";
	my $run = {};
	$run->{psql} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/$name.sql", $node->connstr('postgres') ],
		'<', '/dev/null', '>', \$run->{output}, '2>', \$run->{error});
	return $run;
}

my $copy  = "COPY events FROM stdin;\n" . join('', map { "$_\tcopy\n" } 900 .. 1300) . "\\.\n";
my $piece = "SELECT restored + confirmed FROM streamfilter_settle('repeats', 'events', most => 37);\n";

for my $server ('streamfilter', 'over_there')
{
	begin_with($server, 'wait');
	# Each adds what others add, too, and what is only just being settled.
	my @runs = map { begin_script('copy', $copy x 5) } 1 .. 3;
	push @runs, map { begin_script('settle', $piece x 40) } 1 .. 2;
	$_->{psql}->finish for @runs;
	is(join('', map { $_->{error} // '' } @runs), '', "$server: COPY and settling at once");
	my $left = 1;
	for (1 .. 1000)
	{
		$left = sql(q{SELECT restored + confirmed + waiting FROM streamfilter_settle('repeats', 'events', most => 500)});
		last if $left == 0;
	}
	is($left, 0, 'all settled');
	state_is('1300 1300|0', 'each key once, nothing is left');
}

done();
