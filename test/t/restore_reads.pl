# What a first use after a restart reads of the log, which is one heap for all filters: the first one reads its pages once, to
# learn whose rows are where; from then on each reads the pages with rows of its filter, and few others.
# flavours: quick faults
use Sf;
use constant { BYTES => 16 << 20, RING => 64, KEYS => 20_000 };

my $filters = 160;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	streamfilter.max_filters = 200
	max_locks_per_transaction = 256
	max_prepared_transactions = 5
	synchronous_commit = off
	fsync = off});
sql(qq{
	SET synchronous_commit = on;    -- the crash comes at once
	SELECT format('CREATE FOREIGN TABLE f_%s (id int) SERVER streamfilter OPTIONS (kind ''clq'', fpr ''0.01'', memory ''8kB'')', i)
	FROM generate_series(1, $filters) i \\gexec
	CREATE FOREIGN TABLE derived (id int) SERVER streamfilter OPTIONS (keys '1000');
	INSERT INTO derived VALUES (1);
	DO \$\$ BEGIN FOR key IN 1 .. 40 LOOP FOR i IN 1 .. $filters LOOP
		EXECUTE format('INSERT INTO f_%s VALUES (\$1)', i) USING key;
	END LOOP; COMMIT; END LOOP; END \$\$});

my $log = q{'_streamfilter.streamfilter_log'::regclass};
my $pages = sql("SELECT pg_relation_size($log) / 8192");
cmp_ok($pages, '>=', 100, "the log has $pages pages");

sub restart { $node->stop('immediate'); $node->start; return; }

sub own_pages
{
	my ($filter) = @_;
	return sql("SELECT count(DISTINCT (ctid::text::point)[0]) FROM _streamfilter.streamfilter_log WHERE filter = '$filter'::regclass");
}

# How often a statement asks for a page of the log, and its answer.
sub pages_asked
{
	my ($statement) = @_;
	my $fetched = "SELECT pg_stat_force_next_flush(); SELECT pg_stat_get_blocks_fetched($log);";
	my ($before, @lines) = grep { $_ ne '' } split /\n/, sql("$fetched $statement; $fetched");
	return (pop(@lines) - $before, @lines);
}

sub pages_read
{
	my ($filter) = @_;
	my ($asked, $known) = pages_asked("SELECT streamfilter_test('$filter', 1)");
	is($known, 't', "filter $filter has its key");
	return $asked;
}

# Of a page's word a filter has one of 252 bits, and reads the pages of those that have the same one: Binomial(159, 1/252) of
# them, over four with a probability of .0005. Which ones depends on OIDs.
sub bound
{
	my $most = sql("SELECT max(n) FROM (SELECT count(DISTINCT (ctid::text::point)[0]) n
		FROM _streamfilter.streamfilter_log GROUP BY filter) pages");
	return own_pages($_[0]) + 4 * $most + 2;
}

for my $filter (qw(f_1 f_2 f_160)) { cmp_ok(own_pages($filter), '<=', 8, "the rows of $filter lie together"); }

restart();
cmp_ok(pages_read('f_1'), '<=', $pages + bound('f_1'), 'the first use after a start reads the log once');
is(pages_read('f_1'), 0, 'the next use reads nothing');
for my $filter (qw(f_2 f_3 f_80 f_159 f_160)) { cmp_ok(pages_read($filter), '<=', bound($filter), "that of $filter reads its pages"); }
cmp_ok(pages_read('derived'), '<=', 2 * bound('derived'), 'twice where the memory is derived');

sql(q{BEGIN; INSERT INTO f_3 VALUES (100); PREPARE TRANSACTION 'one'});
restart();
cmp_ok(pages_read('f_1'), '<=', $pages + 2 * bound('f_1'), 'its pages once more while a transaction is prepared');
cmp_ok(pages_read('f_2'), '<=', 2 * bound('f_2'), 'that of another filter, too');
sql(q{COMMIT PREPARED 'one'});
is(knows('f_3', 100), 't', 'whose key is known, once it commits');
cmp_ok(pages_read('f_4'), '<=', bound('f_4'), 'once again afterwards');

# DROP looks at each page of its filter, and asks for one again with each row that it deletes.
for my $filter (qw(f_7 f_8))
{
	my $rows = sql("SELECT count(*) FROM _streamfilter.streamfilter_log WHERE filter = '$filter'::regclass");
	my $most = bound($filter) + 2 * $rows;
	my ($asked) = pages_asked("DROP FOREIGN TABLE $filter");
	note("DROP of a filter with $rows rows of $pages pages asks for $asked");
	cmp_ok($asked, '<=', $most, "DROP of $filter reads its pages");
	cmp_ok($most, '<', $pages, 'which is less than all');
}

# Another file, which nobody knows: it is read once.
sql('VACUUM FULL _streamfilter.streamfilter_log');
$pages = sql("SELECT pg_relation_size($log) / 8192");
cmp_ok(pages_read('f_5'), '<=', $pages + bound('f_5'), 'a log that VACUUM FULL has written anew is read once');
cmp_ok(pages_read('f_6'), '<=', bound('f_6'), 'and known from then on');

# ==== reads, only =====================================================================================================
# Restoring an image only reads: no page of it is written again, though nobody has read it since it was saved and pages have
# checksums, and it drives no others out of the server's memory. What rolled back, or was saved anew since, is left out.

my $settings = q{
	streamfilter.shared_memory = '2MB'
	streamfilter.dynamic_memory = '64MB'
	streamfilter.restore_workers = 0
	streamfilter.min_log_size = '1GB'
};
$node->stop;
$node = start_node('reads', $settings, extra => ['--data-checksums']);
on($node);
sql(q{CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', bits '32', memory '16MB', slices '5')});
my $has_buffers = $node->psql('postgres', 'CREATE EXTENSION pg_buffercache') == 0;

my $known = 0;

sub add
{
	my ($end) = @_;
	sql("INSERT INTO seen SELECT generate_series($known + 1, $known + " . KEYS . ')') if $end ne 'ROLLBACK';
	$known += KEYS if $end ne 'ROLLBACK';
	sql("BEGIN; SAVEPOINT one; SELECT streamfilter_save('seen'); RELEASE one; $end; CHECKPOINT");
	return;
}

# Returns the bytes of WAL that the restore wrote.
sub restore
{
	my ($what, $mode) = @_;
	$node->stop($mode);
	$node->start;
	my $place = 'SELECT pg_current_wal_insert_lsn() - \'0/0\';';
	my $restores = q{SELECT count(*) FROM generate_series(1, 10) i WHERE NOT streamfilter_test('seen', i);};
	my ($before, undef, $after) = split /\n/, sql("$place $restores $place");
	is(sql("SELECT count(*) FROM generate_series(1, $known) i WHERE NOT streamfilter_test('seen', i)"), 0, "$what: all is known");
	is(sql(q{SELECT state, restored IS NOT NULL FROM streamfilter_stats WHERE filter = 'seen'::regclass}), 'loaded|t', 'and loaded');
	return $after - $before;
}

for my $case (
	[ 'a first image' => 'fast', 'COMMIT' ],
	[ 'one in its place' => 'fast', 'COMMIT' ],
	[ 'after a crash' => 'immediate', 'COMMIT' ])
{
	my ($what, $mode, $end) = @$case;
	add($end);
	cmp_ok(restore($what, $mode), '<', BYTES / 32, 'nothing is written');
	next unless $has_buffers;
	my $image = q{pg_relation_filenode('_streamfilter.streamfilter_image')};
	cmp_ok(sql("SELECT count(*) FROM pg_buffercache WHERE relfilenode = $image"), '<=', RING, 'few pages stay in memory');
}
add('ROLLBACK');
restore('an image that rolled back', 'immediate');
is(sql("SELECT count(*) < 10 FROM generate_series(-1000, -1) i WHERE streamfilter_test('seen', i)"), 't', 'and nothing else');
done_testing();
