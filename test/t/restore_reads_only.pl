# Restoring an image only reads: no page of it is written again, though nobody has read it since it was saved and pages have
# checksums, and it drives no others out of the server's memory. What rolled back, or was saved anew since, is left out.
# flavours: quick faults
use Sf;
use constant { BYTES => 16 << 20, RING => 64, KEYS => 20_000 };
my $settings = q{
	streamfilter.shared_memory = '2MB'
	streamfilter.dynamic_memory = '64MB'
	streamfilter.restore_workers = 0
	streamfilter.min_log_size = '1GB'
};
my $node = start_node('reads', $settings, extra => ['--data-checksums']);
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
