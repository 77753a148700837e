# A batch scan reads rows ahead, and keeps few of their pages: queries of many partitions with wide rows work in the least
# memory that the server takes, for temporary tables as for others.
# flavours: faults one_by_one
use Sf;

my $node = start_node('main', q{
	streamfilter.lost_rows = warn
	shared_buffers = '16MB'
	temp_buffers = 100
	max_parallel_workers_per_gather = 0
	fsync = off});

# Of 40 rows in each partition, one page a row; every second key comes twice.
my $rows = 40;
for my $case ([ 'TEMPORARY', 1 ], [ 'TEMPORARY', 3 ], [ 'TEMPORARY', 40 ], [ '', 2 ], [ '', 80 ])
{
	my ($persistence, $partitions) = @$case;
	my $name = "$partitions partitions" . ($persistence ? ', temporary' : '');
	my $all = $rows * $partitions;
	my $out = sql(qq{
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS wide;
		DROP FOREIGN TABLE IF EXISTS seen, seen_too;
		CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-9', seed '1');
		CREATE FOREIGN TABLE seen_too (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-9', seed '1');
		CREATE $persistence TABLE wide (part int, id int, pad text) PARTITION BY LIST (part);
		ALTER TABLE wide ALTER pad SET STORAGE PLAIN;
		SELECT format('CREATE $persistence TABLE wide_%s PARTITION OF wide FOR VALUES IN (%s)', n, n)
		FROM generate_series(1, $partitions) n \\gexec
		INSERT INTO wide SELECT n % $partitions + 1, n / 2 * 2, repeat('x', 5000) FROM generate_series(0, $all - 1) n;
		EXPLAIN (COSTS OFF) SELECT id FROM wide WHERE NOT streamfilter_seen('seen', id);
		SELECT 'new: ' || count(*), sum(length(pad)) FROM wide WHERE NOT streamfilter_seen('seen', id);
		SELECT 'new: ' || count(*), sum(length(pad)) FROM (SELECT * FROM wide WHERE NOT streamfilter_seen('seen_too', id)
		ORDER BY part, id) w;});
	like($out, qr/Custom Scan \(streamfilter batch\)/, "$name: rows are read ahead");
	my $new = $all / 2;
	my $sum = $new * 5000;
	is_deeply([ $out =~ /^(new: .*)$/mg ], [ ("new: $new|$sum") x 2 ], "$name: each new row comes once, as it is");
}

done();
