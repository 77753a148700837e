# The file of unlogged filters, whatever has happened to it: the server starts, and a filter whose bytes are sound is there.
# An ordinary stop tells of no FATAL.
# flavours: quick
use Sf;
use File::Copy qw(copy);

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
sub all_known { return sql("SELECT string_agg(known(f::regclass)::text, ' ') FROM unnest('{@{[ join ',', @filters ]}}'::text[]) f") }
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

# One damaged byte anywhere costs at most one filter, unless it is in the file's own header: a byte of each field, which are
# of 8 bytes, of the header and of the first record; of its counters; and of the blocks.
for my $at ((map { 8 * $_ + int rand 8 } 0 .. 13), 115, 400, map { int rand 100_000 } 1 .. 4)
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
	like(log_since(), $at == 4 ? qr/of format version . cannot be read/ : qr/"streamfilter.unlogged" is damaged or of another past/, '... the log tells');
}

my $other = start_node('other');
sql(q{CREATE FOREIGN TABLE small (k bigint) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', persistence 'unlogged'); INSERT INTO small VALUES (1)}, $other);
$other->stop;
ok(-s $other->data_dir . '/streamfilter.unlogged', 'another server has such a file, too');

# No right to read, another version, cut off, no room.
for my $case (
	[ 'no right to read', sub { chmod 0, $file } ],
	[ 'another version', sub { open my $f, '+<:raw', $file or die $!; print $f 'SFLU7'; close $f or die $! } ],
	[ 'cut off', sub { truncate $file, 3000 } ],
	[ 'of another data directory, which one of a server with other blocks always is', sub { copy($other->data_dir . '/streamfilter.unlogged', $file) or die $! } ],
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

# Fewer places than filters: a filter that has none says so, and its bytes wait until there are more, or until it ends.
sub with_places { my ($count) = @_; $node->append_conf('postgresql.conf', "streamfilter.max_filters = $count"); $node->restart; return }
with_places(200);
sql(q{DO $$ BEGIN FOR i IN 1 .. 80 LOOP
	EXECUTE format('CREATE FOREIGN TABLE many_%s (k bigint) SERVER streamfilter OPTIONS (kind ''clq'', memory ''8kB'', fpr ''1e-7'', persistence ''unlogged'')', i);
	EXECUTE format('INSERT INTO many_%s SELECT generate_series(1, 100)', i);
	END LOOP; END $$;
	CREATE FOREIGN TABLE logged (k bigint) SERVER streamfilter OPTIONS (kind 'clq', memory '8kB', fpr '1e-7'); INSERT INTO logged VALUES (1)});
my @many = map { "many_$_" } 1 .. 80;
fill();
with_places(1);
for my $again ('', ', also after another restart')
{
	$node->psql('postgres', join("\n", map { "SELECT known('$_');" } @filters, @many), stderr => \my $said, on_error_stop => 0);
	is(scalar(() = $said =~ /too many filters: no place for filter.*\n.*\n.*HINT:.*streamfilter\.max_filters/g), 82, "one place: all others say so$again");
	unlike($said, qr/starts empty/, "... and none is empty$again");
	$node->restart if !$again;
}
like(said(q{TRUNCATE many_80}), qr/too many filters: no place for filter/, '... TRUNCATE needs one, too');
like(said(q{ALTER FOREIGN TABLE many_80 OPTIONS (SET memory '16kB')}), qr/too many filters: no place for filter/, '... and ALTER, which would keep the keys');
sql(q{DROP FOREIGN TABLE many_79; SELECT streamfilter_forget_saved('many_78'); BEGIN; DROP FOREIGN TABLE many_77; ROLLBACK});
with_places(200);
is(sql(q{SELECT count(*), sum(known(c.oid)) FROM pg_class c WHERE relkind = 'f' AND relname NOT IN ('many_78', 'logged')}), '81|8100', 'with more places all are there');
is(said(q{SELECT known('many_78')}), '', '... but the one that was to be forgotten');
is(known('logged', 1, 1), 1, '... and logged ones');
sql(join ';', map { "DROP FOREIGN TABLE $_" } grep { !/79/ } @many);

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
# What has waited leaves its place to others: when it is there, after a reload of the settings, and when it is dropped.
with_memory('1MB');
$node->append_conf('postgresql.conf', "streamfilter.dynamic_memory = '64MB'");
$node->reload;
wait_for(q{SELECT current_setting('streamfilter.dynamic_memory') = '64MB'});
is(all_known(), '100 100 100', 'after a reload, too');
sql(qq{CREATE FOREIGN TABLE next_$_ (k bigint) SERVER streamfilter OPTIONS (kind 'clq', memory '8kB')}) for 1 .. 3;
is(said(q{INSERT INTO next_1 VALUES (1)}), '', '... and its former place is there for others');
with_memory('1MB');
sql(q{DROP FOREIGN TABLE wide});
is(said(q{INSERT INTO next_2 VALUES (1)}), '', '... as that of one that is dropped');
sql(q{CREATE FOREIGN TABLE wide (k bigint) SERVER streamfilter OPTIONS (kind 'clq', memory '2MB', fpr '1e-7', persistence 'unlogged')});
with_memory('64MB');
fill();
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
