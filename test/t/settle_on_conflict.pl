# A filter that forgets nearly everything before a unique index: many sessions insert the same keys at once, by ON CONFLICT DO
# NOTHING and by COPY with the trigger argument conflicting=skip. No statement fails, no key is lost, none is there twice.
# flavours: quick faults one_by_one
use Sf;

my $node = start_node('on_conflict', q{
	streamfilter.shared_memory = '16MB'
	deadlock_timeout = '50ms'
	statement_timeout = '60s'
	fsync = off});

my $dir = $node->basedir;
append_to_file("$dir/insert.sql", q{
\set first random(1, 3000)
\set end random(1, 5)
BEGIN;
INSERT INTO truth SELECT i FROM generate_series(:first, :first + 20) i;
INSERT INTO events SELECT i, 'insert' FROM generate_series(:first, :first + 20) i ON CONFLICT DO NOTHING;
\if :end = 1
ROLLBACK;
\else
COMMIT;
\endif
});
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

my $rows = join('', map { "$_\tcopy\n" } 2000 .. 3500) . "\\.\n";

for my $skip (0, 1)
{
	my $argument = $skip ? ", 'conflicting=skip'" : '';
	sql(qq{
		DROP TABLE IF EXISTS events, truth;
		DROP FOREIGN TABLE IF EXISTS seen;
		CREATE TABLE truth (id int);
		CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '4kB');
		CREATE TABLE events (id int, note text) PARTITION BY RANGE (id);
		CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (1500);
		CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (1500) TO (9000);
		CREATE UNIQUE INDEX ON events (id);
		CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen'$argument);
		INSERT INTO truth SELECT generate_series(2000, 3500) WHERE $skip = 1;});
	my @copies = map { begin_script('copy', "COPY events FROM stdin;\n$rows" x 4) } 1 .. 2 * $skip;
	my ($out) = run_command([
		'pgbench', '-n', '-c', 6, '-j', 2, '-t', 100, '-f', "$dir/insert.sql", '-h', $node->host, '-p', $node->port, 'postgres' ]);
	like($out, qr{actually processed: 600/600}, "conflicting skip $skip: no INSERT fails");
	$_->{psql}->finish for @copies;
	is(join('', map { $_->{error} // '' } @copies), '', "conflicting skip $skip: no COPY fails");
	is(sql(q{
		SELECT count(*) - count(DISTINCT id), (SELECT count(*) FROM (SELECT id FROM truth EXCEPT SELECT id FROM events) x),
			(SELECT count(*) FROM (SELECT id FROM events EXCEPT SELECT id FROM truth) x) FROM events}),
		'0|0|0', "conflicting skip $skip: each key once");
	is(sql(q{SELECT accepted > (SELECT count(*) FROM events) FROM streamfilter_stats WHERE filter = 'seen'::regclass}),
		't', 'the filter has forgotten many');
}

# A row that another transaction is about to insert, past the filter: the look-up waits for it.
sql('TRUNCATE events; TRUNCATE seen; SELECT streamfilter_stats_reset();');
for my $end ('COMMIT', 'ROLLBACK')
{
	my $other = open_session(q{BEGIN; SET LOCAL streamfilter.mode = 'off'; INSERT INTO events VALUES (7, 'other')});
	my $waits = begin_script('wait', q{INSERT INTO events VALUES (7, 'waits') RETURNING note;});
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted}) or BAIL_OUT('nobody waits');
	$other->query_safe($end);
	$waits->{psql}->finish;
	is($waits->{output}, $end eq 'COMMIT' ? '' : "waits\n", "after $end of the other one");
	$other->quit;
	sql('TRUNCATE events; TRUNCATE seen');
}

done();
