# Citus: the coordinator or a worker is lost between the statement about a filter and the end of its COMMIT on all nodes.
# Afterwards all nodes agree, the statement has happened as a whole or not at all, and no row is lost.
use Sf;
use CitusCluster;
use IPC::Run qw(start timeout);

# Only the session that wants it waits for a standby that is not there.
my $citus = CitusCluster->new(
	workers => 2,
	checks => 150,
	settings => "citus.recover_2pc_interval = -1\nsynchronous_standby_names = 'nobody'\nsynchronous_commit = local");
sub nodes { return $citus->nodes($_[0]); }

# A table with 1,000 rows, and its filter.
sub make
{
	$citus->everywhere("DROP FOREIGN TABLE IF EXISTS $_ CASCADE") foreach qw(seen known);
	sql(q{
		DROP TABLE IF EXISTS events;
		CREATE FOREIGN TABLE seen (key int) SERVER streamfilter OPTIONS (kind 'lru', memory '256kB');
		SELECT streamfilter_distribute('seen');
		CREATE TABLE events (id int, key int);
		SELECT create_distributed_table('events', 'key');
		CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'key')});
	load();
	return;
}

sub load { sql('INSERT INTO events SELECT i, i FROM generate_series(1, 1000) i'); return sql('SELECT count(*) FROM events'); }

# The statement; what is true on a node if it has happened; how many rows there are after the same are sent again, if it has not
# happened and if it has.
my $definition = q{SELECT coalesce(string_agg(format('%s %s', c.relname, regexp_replace(t.ftoptions::text, '@\d+', '')), ' '), 'none') FROM pg_class c JOIN pg_foreign_table t ON t.ftrelid = c.oid};
my @cases = (
	[ 'TRUNCATE seen', undef, 1000, 2000 ],
	[ 'TRUNCATE events, seen', undef, 1000, 1000 ],
	[ q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '512kB')}, qr/512kB/, 1000, 1000 ],
	[ q{ALTER FOREIGN TABLE seen OPTIONS (ADD mode 'off')}, qr/mode=off/, 1000, 2000 ],
	[ 'DROP FOREIGN TABLE seen CASCADE', qr/none/, 1000, 2000 ],
	[ 'ALTER FOREIGN TABLE seen RENAME TO known', qr/known/, 1000, 1000 ]);

# A session of the coordinator that has sent the statement to all nodes, within a transaction.
sub session
{
	my ($statement) = @_;
	my ($in, $out, $err) = ('', '', '');
	my $limit = timeout($PostgreSQL::Test::Utils::timeout_default);
	my $run = start([ 'psql', '-XqAt', '-d', $citus->coordinator->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \$err, $limit);
	my $session = { run => $run, in => \$in, out => \$out, err => \$err };
	$in .= "BEGIN; $statement; \\echo sent\n";
	$run->pump until $out =~ /sent/;
	return $session;
}

sub leave
{
	my ($session) = @_;
	${ $session->{in} } .= "\\q\n";
	eval { $session->{run}->finish; 1 } or $session->{run}->kill_kill;
	return;
}

# Sessions that a coordinator has with a node.
my $remote = q{application_name ~ '^citus_internal' AND backend_type = 'client backend'};

# A statement that cannot reach a node does nothing.
make();
my $at_first = nodes($definition);
$citus->node(2)->stop('immediate');
like($citus->messages($_->[0]), qr/ERROR/, "$_->[0] without a node fails") foreach @cases;
$citus->node(2)->start;
is(nodes($definition), $at_first, '... and alters nothing');
is(load(), 1000, '... nor what is known');

# The phases: each ends with all nodes up. 0: the statement must not have happened, 1: it must have.
my @phases = (
	[ 'the coordinator, before COMMIT', 0, sub { my ($session) = @_; $citus->node(0)->stop('immediate'); leave($session); $citus->node(0)->start; } ],
	[ 'a worker, before COMMIT', 0, sub { my ($session) = @_; $citus->node(2)->stop('immediate'); ${ $session->{in} } .= "COMMIT;\n"; leave($session); $citus->node(2)->start; } ],
	[ 'the coordinator, when one of two workers is prepared', 0, sub {
			my ($session) = @_;
			my $stopped = $citus->node(2)->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE $remote AND state = 'idle in transaction'");
			kill STOP => $stopped;
			${ $session->{in} } .= "COMMIT;\n";
			$session->{run}->pump_nb;
			wait_for('SELECT count(*) = 1 FROM pg_prepared_xacts', $citus->node(1));
			$citus->node(0)->stop('immediate');
			kill CONT => $stopped;
			wait_for("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $stopped", $citus->node(2));
			leave($session);
			$citus->node(0)->start;
		} ],
	[ 'the coordinator, when it has committed and the workers have not', 1, sub {
			my ($session) = @_;
			waits_for_standby($session);
			$citus->node(0)->stop('immediate');
			leave($session);
			$citus->node(0)->start;
		} ],
	[ 'a worker, when the coordinator has committed', 1, sub {
			my ($session) = @_;
			waits_for_standby($session);
			$citus->node(2)->stop('immediate');
			sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
			leave($session);
			$citus->node(2)->start;
		} ]);

# COMMIT has been written by the coordinator, which waits for a standby that is not there, and then would tell the workers.
sub waits_for_standby
{
	my ($session) = @_;
	${ $session->{in} } .= "SET synchronous_commit = on; COMMIT;\n";
	$session->{run}->pump_nb;
	wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}, $citus->node(0));
	wait_for('SELECT count(*) = 1 FROM pg_prepared_xacts', $citus->node($_)) foreach 1, 2;
	return;
}

for my $phase (@phases)
{
	my ($lost, $happened, $does) = @$phase;
	for my $case (@cases)
	{
		my ($statement, $mark, @rows) = @$case;
		make();
		my $before = nodes($definition);
		$does->(session($statement));
		sql('SELECT recover_prepared_transactions()');
		is(nodes('SELECT count(*) FROM pg_prepared_xacts'), '0 0 0', "$lost is lost: $statement: nothing stays prepared");
		my @now = map { $citus->node($_)->safe_psql('postgres', $definition) } 0 .. 2;
		is("$now[1] $now[2]", "$now[0] $now[0]", '... nodes agree');
		is("@now", $before, '... and have what they had') unless $happened;
		like($now[0], $mark, '... and it has happened') if $happened && defined $mark;
		is(load(), $rows[$happened], '... and the same rows again are judged accordingly');
		is(load(), $rows[$happened], '... and then discarded') if sql($definition) =~ /lru/ && sql($definition) !~ /mode=off/;
	}
}

done_testing();
