# streamfilter_resize(): other sizes while sessions add keys and delete them, against a table that holds exactly the keys that
# the filter is to know; crashes; what refuses it, and leaves nothing behind.
#
# STREAMFILTER_TRANSACTIONS says how many transactions a client does (400).
# flavours: faults one_by_one
use Sf;

my $transactions = $ENV{STREAMFILTER_TRANSACTIONS} // 400;

my $node = start_node('meanwhile', q{
streamfilter.shared_memory = '16MB'
streamfilter.dynamic_memory = '64MB'
max_prepared_transactions = 5
statement_timeout = '120s'}, allows_streaming => 1);

sub resize { return "CALL streamfilter_resize('$_[0]', '$_[1]')"; }

sub fails
{
	my ($statements, $pattern, $what) = @_;
	my ($status, undef, $said) = $node->psql('postgres', $statements);
	isnt($status, 0, "$what: fails");
	like($said, $pattern, "... $what");
	return;
}

sub memory_of { return sql("SELECT memory FROM streamfilter_stats WHERE filter = '$_[0]'::regclass"); }

# --- Exactly the keys of the table, whatever the size --------------------------------------------------------------------

# A key is in the table and in the filter, or in neither. Who deletes a row has it locked, so its key is not on its way.
sql(q{
	CREATE FUNCTION forget_key(events regclass, filter regclass, key int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		gone int;
	BEGIN
		EXECUTE format('DELETE FROM %s WHERE id = $1', events) USING key;
		GET DIAGNOSTICS gone = ROW_COUNT;
		IF gone > 0 THEN EXECUTE format('DELETE FROM %s WHERE id = $1', filter) USING key; END IF;
	END $$});

my %filters = (
	logged => q{memory '512kB', fpr '1e-9', slices '8'},
	unlogged => q{memory '512kB', fpr '1e-9', slices '8', persistence 'unlogged'},
	one_slice => q{memory '256kB', fpr '1e-9', slices '1'},
	bloom => q{kind 'bloom', memory '256kB', keys '20000', fpr '0.001'},
	recent => q{kind 'lru', memory '1MB', persistence 'unlogged'},
	timer => q{kind 'timer', memory '512kB', window '1 day', keys '20000', fpr '0.001'});
my %forgets = map { $_ => 1 } qw(logged unlogged one_slice recent);
my @filters = sort keys %filters;
for my $filter (@filters)
{
	sql(qq{
		CREATE TABLE of_$filter (id int);
		CREATE INDEX ON of_$filter (id);
		CREATE FOREIGN TABLE $filter (id int) SERVER streamfilter OPTIONS ($filters{$filter});
		CREATE TRIGGER judge BEFORE INSERT ON of_$filter FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$filter');
		INSERT INTO of_$filter SELECT generate_series(1, 4000);});
}

my $dir = $node->basedir;

sub script
{
	my ($filter) = @_;
	my $forget = $forgets{$filter} ? "SELECT forget_key('of_$filter', '$filter', :gone);" : '';
	append_to_file("$dir/$filter.sql", qq{
\\set first random(1, 1000000)
\\set gone random(1, 8000)
\\set end random(1, 10)
INSERT INTO of_$filter VALUES (1 + :first % 8000);
$forget
BEGIN;
INSERT INTO of_$filter SELECT 1 + (:first + i) % 8000 FROM generate_series(1, 12) i ORDER BY 1;
\\if :end = 1
ROLLBACK;
\\else
COMMIT;
\\endif
});
	return "$dir/$filter.sql";
}

# Of new keys a Bloom filter takes some for repeats: they are in neither.
sub is_exact
{
	my ($filter, $what) = @_;
	is(sql("SELECT count(*) - count(DISTINCT id) FROM of_$filter"), 0, "$what: no row twice");
	is(sql("SELECT count(*) FROM of_$filter WHERE NOT streamfilter_test('$filter', id)"), 0, "$what: every row's key is known");
	my $more = sql("SELECT count(*) FROM generate_series(1, 8000) i WHERE streamfilter_test('$filter', i)
		AND NOT EXISTS (SELECT 1 FROM of_$filter WHERE id = i)");
	# Of 8,000 at .001, more than 40 come once in 10^14 tries.
	cmp_ok($more, '<=', $filters{$filter} =~ /0\.001/ ? 40 : 1, "$what: and no other");
	return;
}

for my $filter (@filters)
{
	my $script = script($filter);
	my ($out, $err) = ('', '');
	my $pgbench = IPC::Run::start(
		[ 'pgbench', '-n', '-c', 4, '-j', 2, '-t', $transactions, '--random-seed=5', '-f', $script, $node->connstr('postgres') ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(180));
	my $resized = 0;
	my @sizes = $filter eq 'one_slice' ? ('512kB', '1MB') : ('2MB', '1MB');
	while ($resized < 3 || $pgbench->pumpable)
	{
		my ($status, undef, $said) = $node->psql('postgres', resize($filter, $sizes[ $resized % 2 ]));
		is($status, 0, "$filter: resized") or diag $said;
		$resized++;
		last if $status != 0 || $resized > 40;
		$pgbench->pump_nb if $pgbench->pumpable;
	}
	$pgbench->finish;
	unlike($err, qr/ERROR|aborted/, "$filter: nobody fails") or diag $err;
	is_exact($filter, "$filter, resized $resized times");
}

crash();
is_exact($_, "$_, after a crash") for grep { !($filters{$_} =~ /unlogged/) } @filters;
$node->restart;
is_exact($_, "$_, after another start") for grep { !($filters{$_} =~ /unlogged/) } @filters;
is(sql(q{SELECT count(*) FROM (SELECT filter FROM _streamfilter.streamfilter_image GROUP BY filter, image HAVING count(*) > 0) i}),
	sql('SELECT count(DISTINCT filter) FROM _streamfilter.streamfilter_image'), 'one image for each');

# --- What is left as it was -----------------------------------------------------------------------------------------------

my $free = sql('SELECT free FROM streamfilter_memory()');
my $before = memory_of('logged');

sub is_as_before
{
	my ($what) = @_;
	is(memory_of('logged'), $before, "$what: the size is as before");
	is(sql('SELECT free FROM streamfilter_memory()'), $free, "$what: the memory is given back");
	is_exact('logged', $what);
	return;
}

my $sleeper = open_session('BEGIN; INSERT INTO of_logged VALUES (100001)');
my $told = said(q{SET streamfilter.commit_wait_timeout = '4s'; } . resize('logged', '8MB'));
like($told, qr/ERROR: .*transactions that use it do not end/, 'a transaction sleeps');
is(scalar(() = $told =~ /NOTICE: .*waits for transactions that use it/g), 1, 'after a second it says what it waits for, and then for seconds nothing');
sql('INSERT INTO of_logged VALUES (100002)');
$sleeper->query_safe('COMMIT');
is_as_before('after one that slept');
sql('BEGIN; INSERT INTO of_logged VALUES (100003); PREPARE TRANSACTION \'p\'');
fails(q{SET lock_timeout = '1s'; } . resize('logged', '8MB'), qr/transactions that use it do not end/, 'a prepared transaction');
sql(q{COMMIT PREPARED 'p'});
is_as_before('after one that was prepared');

# Those who wait for a sleeper's end meanwhile are not many, nor long.
$sleeper->query_safe('BEGIN; INSERT INTO of_logged VALUES (100004)');
my $resizer = $node->background_psql('postgres', on_error_stop => 0);
$resizer->query_until(qr/begun/, "\\echo begun\n" . resize('logged', '8MB') . ";\n");
ok(wait_for(q{SELECT count(*) = 1 FROM streamfilter_progress WHERE command = 'resize' AND done > 0
	AND phase = 'waiting for transactions'}), 'it waits, and says so');
fails(resize('logged', '4MB'), qr/is being resized by another session/, 'two at once');
fails(q{SELECT streamfilter_save('logged')}, qr/is being resized/, 'a save meanwhile');
sql("INSERT INTO of_logged VALUES ($_)") for 100005 .. 100009;
$sleeper->query_safe('COMMIT');
ok(wait_for(q{SELECT count(*) = 0 FROM streamfilter_progress WHERE command = 'resize'}), 'it goes on');
cmp_ok(memory_of('logged'), '>', 8000000, 'as soon as nobody uses the filter');
is_exact('logged', 'after it waited');
is(sql('SELECT count(*) FROM of_logged WHERE id > 100000'), 9, 'no row is lost');

# --- Cancelled, ended --------------------------------------------------------------------------------------------------------

($free, $before) = (sql('SELECT free FROM streamfilter_memory()'), memory_of('logged'));
for my $end ('pg_cancel_backend', 'pg_terminate_backend')
{
	$sleeper->query_safe('BEGIN; INSERT INTO of_logged VALUES (1)');
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/begun/, "\\echo begun\n" . resize('logged', '4MB') . ";\n");
	ok(wait_for(q{SELECT count(*) = 1 FROM streamfilter_progress WHERE phase = 'waiting for transactions'}), "$end: it waits");
	sql("SELECT $end(pid) FROM streamfilter_progress WHERE command = 'resize'");
	ok(wait_for(q{SELECT count(*) = 0 FROM streamfilter_progress}), "$end: it ends");
	$sleeper->query_safe('COMMIT');
	eval { $session->quit };
	ok(wait_for("SELECT free = $free FROM streamfilter_memory()"), "$end: the memory comes back");
	is_as_before($end);
}
$sleeper->quit;
$resizer->quit;

# --- What it refuses -----------------------------------------------------------------------------------------------------------

fails('BEGIN; ' . resize('logged', '4MB'), qr/inside a transaction block/, 'in a transaction block');
fails(resize('of_logged', '4MB'), qr/is not a filter/, 'a table');
fails(resize('logged', 'much'), qr/memory/, 'no size');
fails(resize('logged', '1GB'), qr/not enough shared memory.*For the new one \d+ of \d+ bytes are missing.*dynamic_memory/s, 'more than there is');
sql(q{CREATE ROLE nobody; GRANT ALL ON logged TO nobody});
fails('SET ROLE nobody; ' . resize('logged', '4MB'), qr/must be owner/, 'by another role');
sql(q{
	CREATE FOREIGN TABLE rows (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB');
	CREATE FOREIGN TABLE spread (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '0.01', slices '4', slicing 'vertical');
	CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB');
	CREATE FOREIGN TABLE leaf (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', parent 'root')});
for my $filter (qw(rows spread root leaf))
{
	my ($status, undef, $said) = $node->psql('postgres', resize($filter, $filter eq 'leaf' ? '512kB' : '256kB'));
	like($said, qr/cannot be resized while rows come/, "filter $filter");
	my ($typed) = $said =~ /HINT:  Type: (.*)\. Rows wait meanwhile\./;
	is(($node->psql('postgres', $typed, on_error_stop => 1))[0], 0, '... what the hint has does it');
	is(sql("SELECT streamfilter_definition('$filter') ~ '$1'"), 't', "... it has $1") if $typed =~ /\.$filter OPTIONS .*?'(\w+)'/;
}
is(memory_of('logged'), $before, 'after all that the size is as before');
like(said(resize('logged', '8MB')), qr/has this size already/, 'the same size');

# --- In shared memory that is reserved, and a standby -----------------------------------------------------------------------

$node->append_conf('postgresql.conf', q{streamfilter.dynamic_memory = 0});
$node->restart;
my $standby = start_standby('standby');
is(sql(q{SELECT count(*) FROM of_logged WHERE NOT streamfilter_test('logged', id)}, $standby), 0, 'a standby knows all');
sql(resize('logged', '2MB'));
sql('INSERT INTO of_logged SELECT generate_series(200001, 200500)');
$node->wait_for_catchup($standby);
is(sql(q{SELECT count(*) FROM of_logged WHERE NOT streamfilter_test('logged', id)}, $standby), 0, '... in the new size');
is(sql(q{SELECT memory < 3000000 FROM streamfilter_stats WHERE filter = 'logged'::regclass}, $standby), 't', '... which it has, too');
my ($status) = $standby->psql('postgres', resize('logged', '1MB'));
isnt($status, 0, 'a standby resizes nothing');
$node->stop;
$standby->promote;
sql(resize('logged', '4MB'), $standby);
is(sql(q{SELECT count(*) FROM of_logged WHERE NOT streamfilter_test('logged', id)}, $standby), 0, 'a promoted one does');

done_testing;
