# A filter that is wrong for a fifth of what is new, and a table without any index, at rest hold each key exactly once: random
# transactions of many sessions, some rolled back, some killed, some ended by a crash; settled all the while. What the table
# is to hold is in one that no filter judges, written in the same transactions.
#
# STREAMFILTER_TRANSACTIONS says how many transactions at least (4000), STREAMFILTER_CRASHES how many crashes (6),
# STREAMFILTER_SEED which. The long run: 200000 and 20.
# flavours: faults
use Sf;
use Time::HiRes qw(usleep);

my $transactions = $ENV{STREAMFILTER_TRANSACTIONS} // 4000;
my $crashes      = $ENV{STREAMFILTER_CRASHES}      // 6;
my $seed         = $ENV{STREAMFILTER_SEED}         // 7;
my $clients      = 8;
my $per_table    = 5;       # rounds, each with a crash, before table and filter are made anew
my $keys         = 20000;   # of a table; a load takes its own from 2000 of these, so that sessions meet
my $done         = 0;       # transactions
srand($seed);

my $node = start_node('exact', q{
streamfilter.shared_memory = '16MB'
restart_after_crash = on
statement_timeout = '60s'
deadlock_timeout = '50ms'
autovacuum_naptime = '1s'
fsync = off
});

# Keys that come in ascending order in every statement, so that sessions wait for each other, but not in a circle.
my $add = q{
\set first random(1, 1000000)
\set many random(1, 12)
\set end random(1, 10)
BEGIN;
INSERT INTO truth SELECT :base + (:first + i) % 2000 FROM generate_series(1, :many) i;
\if :end > 7
SAVEPOINT a;
\endif
INSERT INTO events SELECT id, :client_id FROM (SELECT :base + (:first + i) % 2000 AS id FROM generate_series(1, :many) i) k ORDER BY id;
\if :end = 10
ROLLBACK TO a;
INSERT INTO events SELECT id, :client_id FROM (SELECT :base + (:first + i) % 2000 AS id FROM generate_series(1, :many) i) k ORDER BY id;
\endif
\if :end = 1
ROLLBACK;
\else
COMMIT;
\endif
};
my $settle = q{
\set most random(1, 200)
INSERT INTO settled SELECT * FROM streamfilter_settle('repeats', 'events', most => :most);
};
my $dir = $node->basedir;
append_to_file("$dir/add.sql", $add);
append_to_file("$dir/settle.sql", $settle);

# So many transactions; true if all clients have come to their end.
sub run_load
{
	my ($count, $interrupt) = @_;
	my $each = int($count / $clients) + 1;
	my ($out, $error) = ('', '');
	my $load = IPC::Run::start(
		[
			'pgbench', '-n', '-c', $clients, '-j', 2, '-t', $each, '--max-tries', 100, "--random-seed=@{[int rand 1e9]}",
			'-D', "base=@{[1 + int rand($keys - 2000)]}", '-f', "$dir/add.sql\@9", '-f', "$dir/settle.sql\@1",
			'-h', $node->host, '-p', $node->port, 'postgres'
		],
		'<', \undef, '>', \$out, '2>', \$error);
	$interrupt->($load) if defined $interrupt;
	$load->finish;
	$done += $1 if $out =~ /actually processed: (\d+)/;
	return $load->result(0) == 0;
}

sub kill_some
{
	my ($load) = @_;
	for (1 .. 20)
	{
		usleep(20_000);
		$node->psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'pgbench' AND state <> 'idle' ORDER BY random() LIMIT 1});
	}
	return;
}

sub stop_at_once
{
	usleep(100_000 + int rand 500_000);
	$node->stop('immediate');
	return;
}

sub settle_all
{
	my ($name) = @_;
	my $left = 1;
	for (1 .. 1000)
	{
		$left = sql(q{SELECT restored + confirmed + waiting FROM streamfilter_settle('repeats', 'events')});
		last if $left == 0;
	}
	is($left, 0, "$name: all is settled");
	return;
}

# Tables, and a filter between them, that nothing has come to yet
sub begin_tables
{
	my ($conflict) = @_;
	sql(qq{
		DROP TABLE IF EXISTS truth, events, repeats;
		DROP FOREIGN TABLE IF EXISTS seen;
		CREATE TABLE truth (id int);
		CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '$keys', fpr '0.2', conflict '$conflict');
		CREATE TABLE events (id int, client int);
		CREATE TABLE repeats (LIKE events, diverted_at timestamptz, filter regclass);
		CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');});
	return;
}

# Each key once, and nothing left
sub check_rest
{
	my ($name) = @_;
	settle_all($name);
	is(sql(q{
		SELECT (SELECT count(*) FROM events) - (SELECT count(DISTINCT id) FROM truth),
			(SELECT count(*) FROM (SELECT id FROM truth EXCEPT SELECT id FROM events) x),
			(SELECT count(*) FROM (SELECT id FROM events EXCEPT SELECT id FROM truth) x),
			(SELECT count(*) FROM repeats),
			(SELECT duplicates FROM streamfilter_settle('repeats', 'events', duplicates => 'report'))}),
		'0|0|0|0|0', "$name: each key once, and nothing is left");
	return;
}

for my $conflict ('wait', 'discard')
{
	my $rounds = int(($crashes + 1) / 2);
	my $share  = int($transactions / $rounds / 2) + 1;
	sql(q{
		DROP TABLE IF EXISTS settled;
		CREATE TABLE settled (restored bigint, confirmed bigint, waiting bigint, refused bigint, duplicates bigint);});
	for my $round (1 .. $rounds)
	{
		my $before = $done;
		begin_tables($conflict) if $round % $per_table == 1;
		ok(run_load($share / 2), "$conflict, round $round: sessions end well");
		run_load($share / 4, \&kill_some);
		run_load($share / 4, \&stop_at_once);
		$node->start;
		check_rest("$conflict, round $round, after a crash");
		ok(run_load($share - $done + $before), "$conflict, round $round: sessions end well again") if $done - $before < $share;
		check_rest("$conflict, round $round");
	}
	note("$conflict: ", sql('SELECT count(*), sum(restored), sum(confirmed), sum(waiting) FROM settled'));
	is(sql('SELECT sum(restored) > 0 AND sum(confirmed) > 0 FROM settled'), 't', "$conflict: rows came back while others were inserted");
}
cmp_ok($done, '>=', $transactions, "$done transactions");

done();
