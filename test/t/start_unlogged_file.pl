# The file of unlogged filters, whatever has happened to it: the server starts, and a filter whose bytes are sound is there.
# An ordinary stop tells of no FATAL.
# flavours: quick
use Sf;

my $node = PostgreSQL::Test::Cluster->new('start_unlogged_file');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '1MB'
	streamfilter.dynamic_memory = '64MB'
	autovacuum = off});
$node->start;
sql(q{
	CREATE EXTENSION streamfilter;
	CREATE FUNCTION known(filter regclass) RETURNS bigint LANGUAGE sql AS
		'SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_test(filter, i)'});
my @filters = qw(small wide resized);
sql("CREATE FOREIGN TABLE $$_[0] (k bigint) SERVER streamfilter OPTIONS (kind 'clq', memory '$$_[1]', fpr '1e-7', persistence 'unlogged')")
	for [ small => '64kB' ], [ wide => '2MB' ], [ resized => '1MB' ];
my $file = $node->data_dir . '/streamfilter.unlogged';
my $log_from = 0;
sub fill { sql("INSERT INTO $_ SELECT generate_series(1, 100)") for @filters; return }
sub all_known { return join ' ', map { sql("SELECT known('$_')") } @filters }
sub log_since { my $text = slurp_file($node->logfile, $log_from); $log_from = -s $node->logfile; return $text }

# Another size than the definition derives, after a restart from what is saved.
fill();
sql(q{ALTER FOREIGN TABLE resized OPTIONS (SET persistence 'logged')});
$node->psql('postgres', q{CALL streamfilter_resize('resized', '2MB')});
crash();
fill();
sql(q{ALTER FOREIGN TABLE resized OPTIONS (SET persistence 'unlogged')});
log_since();
$node->restart;
is(all_known(), '100 100 100', 'a clean restart keeps all, in whatever size');
$node->stop;
unlike(log_since(), qr/FATAL/, 'an ordinary stop, and no FATAL');
$node->start;
sql(q{CREATE DATABASE other; SELECT 1});
$node->restart;
unlike(log_since(), qr/FATAL/, 'nor just after a start');

# One damaged byte anywhere costs at most one filter, unless it is in the file's own header.
for my $at (0, 20, 39, 45, 100, 400, map { int rand 100_000 } 1 .. 4)
{
	fill();
	$node->stop;
	open my $bytes, '+<:raw', $file or die "$file: $!";
	seek $bytes, $at, 0;
	read $bytes, my $was, 1;
	seek $bytes, $at, 0;
	print $bytes chr(ord($was) ^ 1);
	close $bytes or die $!;
	log_since();
	$node->start;
	my $whole = () = all_known() =~ /100/g;
	cmp_ok($whole, '>=', $at < 40 ? 0 : 2, "byte $at");
	like(log_since(), qr/"streamfilter.unlogged" is damaged or of another past/, '... the log tells');
}

# No right to read, another version, cut off, no room.
for my $case (
	[ 'no right to read', sub { chmod 0, $file } ],
	[ 'another version', sub { open my $f, '+<:raw', $file or die $!; print $f 'SFLU7'; close $f or die $! } ],
	[ 'cut off', sub { truncate $file, 3000 } ],
	[ 'of a server with other blocks, whose data directory is another', sub { open my $f, '+<:raw', $file or die $!; seek $f, 8, 0; print $f pack 'Q', 7; close $f or die $! } ],
	[ 'fewer filters', sub { $node->append_conf('postgresql.conf', 'streamfilter.max_filters = 1') } ])
{
	fill();
	$node->stop;
	$$case[1]->();
	log_since();
	$node->start;
	is(sql('SELECT 1'), 1, "$$case[0]: the server runs");
	like(log_since(), qr/streamfilter.unlogged|not enough room for an unlogged filter/, '... the log tells');
}
$node->append_conf('postgresql.conf', 'streamfilter.max_filters = 100');
$node->restart;

# The file cannot be written at the stop.
fill();
mkdir "$file.tmp" or die $!;
log_since();
$node->stop;
like(log_since(), qr/could not write file "streamfilter.unlogged", unlogged filters will be empty/, 'no room: the stop tells');
rmdir "$file.tmp" or die $!;
$node->start;
like(said(q{SELECT known('small')}), qr/WARNING:  filter "small" starts empty/, '... and so does the first use');

# A disk that is full: what is written goes to a device that has no room.
SKIP: {
	skip 'there is no /dev/full', 2 unless -c '/dev/full' && symlink '/dev/full', "$file.tmp";
	fill();
	log_since();
	$node->stop;
	like(log_since(), qr/could not write file "streamfilter.unlogged", unlogged filters will be empty: No space left/, 'a full disk: the stop tells');
	$node->start;
	like(said(q{SELECT known('small')}), qr/WARNING:  filter "small" starts empty/, '... and so does the first use');
}

# What does not fit says so, and its bytes wait for more room, or for the end of the filter.
sub with_memory { my ($size) = @_; $node->append_conf('postgresql.conf', "streamfilter.dynamic_memory = '$size'"); $node->restart; return }
fill();
log_since();
with_memory('1MB');
like(log_since(), qr/not enough room for an unlogged filter/, 'less memory');
for my $again ('', ', also after another restart')
{
	like(said(q{SELECT known('wide')}), qr/not enough shared memory for filter "wide".*HINT:.*streamfilter\.dynamic_memory/s, "... what does not fit says so$again");
	is(sql(q{SELECT known('small')}), 100, '... the others are there');
	$node->restart if !$again;
}
sql(q{INSERT INTO small SELECT generate_series(201, 300)});
with_memory('64MB');
is(all_known(), '100 100 100', '... and with more memory all of it is there');
is(sql(q{SELECT state FROM streamfilter_stats WHERE filter = 'wide'::regclass}), 'loaded', '... as ever');
with_memory('1MB');
like(said(q{ALTER FOREIGN TABLE wide OPTIONS (SET memory '64kB')}), qr/WARNING:  filter "wide" starts empty/, 'an ALTER lets go of it');
is(sql(q{SELECT known('wide')}), 0, '... and it can be used');
with_memory('64MB');
is(sql(q{SELECT known('wide')}), 0, '... nothing comes back');
with_memory('1MB');
crash();
with_memory('64MB');
like(said(q{SELECT known('resized')}), qr/WARNING:  filter "resized" starts empty/, 'a crash ends the life of what waits');
is(sql(q{SELECT state FROM streamfilter_stats WHERE filter = 'resized'::regclass}), 'loaded (lost with its server)', '... the statistics say why');
sql(q{INSERT INTO resized VALUES (1); TRUNCATE resized});
is(sql(q{SELECT state FROM streamfilter_stats WHERE filter = 'resized'::regclass}), 'loaded (truncated)', '... TRUNCATE ends that');
crash();
unlike(said(q{SELECT known('resized')}), qr/WARNING/, 'truncated on purpose, it says nothing');
done_testing();
