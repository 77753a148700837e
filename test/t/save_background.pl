# The background save, copies of databases, dumps, wal_level minimal; a restore that is cancelled.
# flavours: faults
use Sf;

my $node = start_node('save', q{
streamfilter.shared_memory = '24MB'
wal_level = minimal
max_wal_senders = 0
max_prepared_transactions = 10
statement_timeout = '60s'
lock_timeout = '10s'
fsync = off
});
# So large that a false positive is less likely than 1e-3 in the whole test.
sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8MB', k '15')});

# --- The background save ------------------------------------------------------------------------------

my $images = q{SELECT count(*) FROM _streamfilter.streamfilter_image WHERE number = 0};
my $log = q{SELECT pg_size_pretty(sum(length(data))), count(*) FROM _streamfilter.streamfilter_log};
sql('INSERT INTO seen SELECT generate_series(1, 500000)');
is(sql($images), '0', '4 MB of log are not worth an image');
# A transaction that has not committed is in no image, and nothing of it gets lost.
sql(q{BEGIN; INSERT INTO seen VALUES (2000001); PREPARE TRANSACTION 'p'});
sql('INSERT INTO seen SELECT generate_series(500001, 1100000)');
for my $i (1 .. 20) { sql("INSERT INTO seen VALUES (1200000 + $i)"); }
ok(wait_for("SELECT ($images) = 1"), 'a log that outgrows the filter is replaced by an image');
ok(wait_for(q{SELECT last_saved IS NOT NULL FROM streamfilter_stats}), 'the statistics tell');
cmp_ok(sql('SELECT coalesce(sum(length(data)), 0) FROM _streamfilter.streamfilter_log'), '<', 5_000_000, 'the log starts again');
crash();
sql(q{COMMIT PREPARED 'p'});
is(known('seen', 1, 1100000), '1100000', 'wal_level minimal: a crash later, all is there');
is(known('seen', 1200001, 1200020), '20', 'also what came during the save');
is(known('seen', 2000001, 2000001), '1', 'and what was prepared before it');

# The worker ends when it is told to.
sql('INSERT INTO seen SELECT generate_series(3000001, 4100000)');
$node->restart;
is(known('seen', 3000001, 4100000), '1100000', 'a shutdown while the worker may be at it');

# --- Cancelled restore --------------------------------------------------------------------------------

$node->restart;
my $err;
isnt($node->psql('postgres', q{SET statement_timeout = '5ms'; SELECT streamfilter_test('seen', 1)}, stderr => \$err), 0,
	'a restore can be cancelled');
like($err, qr/canceling statement due to statement timeout/, 'as any statement');
is(known('seen', 1, 1100000), '1100000', 'the next one restores all');

# --- Bytes that another filter had --------------------------------------------------------------------

sql(q{
	CREATE FOREIGN TABLE sliced (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '1MB', slices '16');
	INSERT INTO sliced SELECT generate_series(1, 1000);
	SELECT streamfilter_save('sliced')});
$node->restart;
sql(q{
	CREATE FOREIGN TABLE former (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', k '15', slices '1');
	INSERT INTO former SELECT generate_series(1, 1000000);
	DROP FOREIGN TABLE former});
my $restored = $node->psql('postgres', q{SELECT count(*) FROM generate_series(1, 1000) i WHERE streamfilter_test('sliced', i)},
	stdout => \my $found, stderr => \$err);
is("$restored $found$err", '0 1000', 'an image is sound wherever it is restored');
sql('DROP FOREIGN TABLE sliced');

# --- Copies of a database -----------------------------------------------------------------------------

for my $round (1 .. 4)    # more than fit into memory, if one were left behind
{
	sql('CREATE DATABASE copy TEMPLATE postgres', 'template1');
	is(known('seen', 1, 1100000, 'copy'), '1100000', "TEMPLATE, round $round: the state comes with the definition");
	sql('INSERT INTO seen VALUES (5000000)', 'copy');
	sql('DROP DATABASE copy', 'template1');
}
is(known('seen', 5000000, 5000000), '0', 'what a copy learns is its own');

my $dump = $node->backup_dir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
unlike(slurp_file($dump), qr/streamfilter_(log|image)/, 'the state is not dumped');
sql('CREATE DATABASE restored', 'template1');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ], 'the dump restores');
is(known('seen', 1, 1000, 'restored'), '0', 'the filter is defined and empty');
is(sql('INSERT INTO seen VALUES (1), (1) RETURNING id', 'restored'), '1', 'and works');

# --- TRUNCATE of a filter that was not used since the start ----------------------------------------------

sql(q{
	CREATE FOREIGN TABLE seen_unlogged (id int) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '64kB', k '7', persistence 'unlogged');
	INSERT INTO seen_unlogged VALUES (1)});
$node->restart;
sql('TRUNCATE seen, seen_unlogged');
is(known('seen', 1, 1100000), '0', 'a restart and TRUNCATE: all is forgotten');
is(knows('seen_unlogged', 1), 'f', 'also of an unlogged filter');
crash();
is(known('seen', 1, 1100000), '0', 'and stays so');

# --- Dropped extension --------------------------------------------------------------------------------

sql('DROP EXTENSION streamfilter CASCADE; CREATE EXTENSION streamfilter', 'restored');
is(sql('SELECT count(*) FROM _streamfilter.streamfilter_log', 'restored'), '0', 'DROP EXTENSION takes the state along');

done_testing();
