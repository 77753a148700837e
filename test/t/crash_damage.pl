# Damage to what is saved: the server always starts, says what is wrong, and the filter works.
# flavours: faults
use Sf;

my $seed = $ENV{STREAMFILTER_SEED} // 7;
srand($seed);

# Small segments, so that a limit on the size of a file can be reached by the heaps, not by the WAL.
my $node = start_node('damage', q{
streamfilter.max_filters = 3000
max_locks_per_transaction = 512
statement_timeout = '300s'
lock_timeout = '10s'
fsync = off
}, extra => ['--wal-segsize=1']);

sub slurp_bytes
{
	my ($file) = @_;
	open my $in, '<:raw', $file or die "$file: $!";
	local $/;
	return scalar <$in>;
}

sub write_bytes
{
	my ($file, $bytes) = @_;
	open my $out, '>:raw', $file or die "$file: $!";
	print $out $bytes;
	close $out or die "$file: $!";
}

sub flip { substr($_[0], $_[1], 1) = chr(ord(substr $_[0], $_[1], 1) ^ $_[2]) }

# Where the tuples of a heap lie: [line pointer, offset, length], in order.
sub tuples
{
	my ($bytes) = @_;
	my @found;
	for (my $page = 0; $page < length $bytes; $page += 8192)
	{
		my $lower = unpack 'v', substr $bytes, $page + 12, 2;
		for (my $pointer = $page + 24; $pointer < $page + $lower; $pointer += 4)
		{
			my $item = unpack 'V', substr $bytes, $pointer, 4;
			push @found, [ $pointer, $page + ($item & 0x7fff), $item >> 17 ] if (($item >> 15) & 3) == 1;
		}
	}
	return @found;
}

# --- Images -------------------------------------------------------------------------------------------

# Many filters that are equal but for their names and seeds: key 1 is in the image, key 2 in the log.
# Into each the next flaw is worked, so that one start of the server shows them all. Key 3 is new:
# false positives are less likely than 1e-9.
sub make_filters
{
	my ($count) = @_;
	sql(qq{
		DO \$\$ BEGIN
		  FOR i IN 1 .. $count LOOP
		    EXECUTE format('CREATE FOREIGN TABLE small_%s (id int) SERVER streamfilter '
		                   'OPTIONS (kind ''bloom'', memory ''1kB'', k ''10'')', i);
		    EXECUTE format('INSERT INTO small_%s VALUES (1)', i);
		    COMMIT;
		    PERFORM streamfilter_save(format('small_%s', i)::regclass);
		    COMMIT;
		    EXECUTE format('INSERT INTO small_%s VALUES (2)', i);
		    COMMIT;
		  END LOOP;
		END \$\$});
}
make_filters(1);
my $image = sql(q{SELECT sum(pg_column_size(i.*)) FROM _streamfilter.streamfilter_image i WHERE filter = 'small_1'::regclass});
my $rows = sql(q{SELECT count(*) FROM _streamfilter.streamfilter_image WHERE filter = 'small_1'::regclass});
sql('DROP FOREIGN TABLE small_1');
my $count = $image + 8 * $rows;    # bytes, alignment included
make_filters($count);
sql('VACUUM (FREEZE) _streamfilter.streamfilter_image; VACUUM (FREEZE) _streamfilter.streamfilter_log; CHECKPOINT');
my $file = $node->data_dir . '/' . sql(q{SELECT pg_relation_filepath('_streamfilter.streamfilter_image')});
my $log_file = $node->data_dir . '/' . sql(q{SELECT pg_relation_filepath('_streamfilter.streamfilter_log')});
my $numbers = sql(q{SELECT string_agg(f.oid::text || ' ' || substr(f.relname, 7), ',') FROM pg_class f
	  WHERE relkind = 'f' AND relname LIKE 'small\_%'});
my %number = map { split / / } split /,/, $numbers;    # of a filter, by OID
$node->stop;
my $sound = slurp_bytes($file);
my $sound_log = slurp_bytes($log_file);

# Starts the server on these bytes of the two heaps and asks every filter. Returns what it says.
sub ask
{
	my ($what, $bytes, $log_bytes) = @_;
	write_bytes($file, $bytes);
	write_bytes($log_file, $log_bytes // $sound_log);
	unlink glob("${file}_*"), glob("${log_file}_*");    # free space and visibility maps
	my $from = -s $node->logfile;
	$node->start;
	my ($out, $err) = ('', '');
	my $status = $node->psql('postgres', q{
		BEGIN;
		SELECT regexp_replace(relname, '.*_', ''), streamfilter_test(oid, 1), streamfilter_test(oid, 2),
		       streamfilter_test(oid, 3), streamfilter_seen(oid, 4), streamfilter_seen(oid, 4)
		FROM pg_class WHERE relkind = 'f' AND relname LIKE 'small\_%';
		ROLLBACK;},
		stdout => \$out, stderr => \$err, timeout => 60);
	$node->stop;    # a clean stop: no WAL is replayed on the bytes that come next
	my $log = slurp_file($node->logfile, $from);
	unlike($log, qr/PANIC|terminated by signal/, "$what: no crash");
	my %result = (status => $status, err => $err, log => $log, all => 0, sound => 0, lost => 0, silent => 0,
		log_lost => 0, too_many => 0, works => 0);
	my %warned = map { $_ => 1 } "$err\n$log" =~ /the saved (?:image|log) of filter "small_(\d+)"/g;
	$result{warned} = keys %warned;
	for (split /\n/, $out)
	{
		my ($n, $image_key, $log_key, $other, $new, $again) = split /\|/;
		$result{all}++;
		$result{sound} += $image_key eq 't';
		$result{lost} += $image_key eq 'f';
		$result{silent} += $image_key eq 'f' && !$warned{$n};
		$result{log_lost} += $log_key eq 'f';
		$result{too_many} += $other eq 't';
		$result{works} += $new eq 'f' && $again eq 't';
	}
	diag("$what: $result{all} filters, $result{sound} sound, $result{warned} warned");
	is("$result{status} $result{all} $result{works} $result{too_many}", "0 $count $count 0",
		"$what: every filter works and none knows too much")
	  or diag($err);
	return \%result;
}

my $result = ask('no damage', $sound);
is("$result->{sound} $result->{warned}", "$count 0", 'no damage: all is there');

# Every byte of an image in turn, headers of the tuples included: one filter each.
my $damaged = $sound;
my %at;    # bytes of a filter's image that were passed
my $flipped = 0;
my $first = 0;    # in the header of the tuple
for my $tuple (tuples($sound))
{
	my ($pointer, $offset, $length) = @$tuple;
	my $hoff = ord substr $sound, $offset + 22, 1;
	my $n = $number{ unpack 'V', substr $sound, $offset + $hoff, 4 } // next;
	my $at = $n - 1 - ($at{$n} // 0);
	$at{$n} += $length;
	next if $at < 0 || $at >= $length;
	flip($damaged, $offset + $at, 1 << int rand 8);
	$flipped++;
	$first++ if $at < $hoff;
}
$result = ask("every byte of an image, $flipped in $flipped filters", $damaged);
cmp_ok($flipped, '>=', $count - 16, 'that is every byte but those of alignment');
is($result->{silent}, 0, 'nobody loses an image without a message');
is($result->{log_lost}, 0, 'what the log has is known all the same');
# Only bits of tuple headers and of alignment may be harmless.
cmp_ok($result->{lost}, '>=', $flipped - $first - 8 * $rows, 'the damage is found');

# A byte of every page's header and of its line pointers.
$damaged = $sound;
for (my $page = 0; $page < length $sound; $page += 8192) { flip($damaged, $page + $page / 8192 % 40, 1 << int rand 8); }
$result = ask('headers of pages', $damaged);
is("$result->{silent} $result->{log_lost}", '0 0', 'headers of pages: each loss is told');

# Chunks are missing, one more in every filter; the file is cut off.
$damaged = $sound;
my %seen;
for my $tuple (tuples($sound))
{
	my ($pointer, $offset) = @$tuple;
	my $n = $number{ unpack 'V', substr $sound, $offset + ord(substr $sound, $offset + 22, 1), 4 } // next;
	substr($damaged, $pointer, 4) = "\0" x 4 if $seen{$n}++ == $n % $rows;
}
$result = ask('a chunk is missing', $damaged);
is("$result->{lost} $result->{silent} $result->{log_lost}", "$count 0 0", 'a chunk is missing: each is told');
for my $length (0, 1, 8191, int(rand length $sound), length($sound) - 1)
{
	$result = ask("cut off at $length", substr $sound, 0, $length);
	is("$result->{silent} $result->{log_lost}", '0 0', "cut off at $length: each loss is told");
}

# The rows of one filter carry the name of the next.
$damaged = $sound;
my %oid = reverse %number;
for my $tuple (tuples($sound))
{
	my ($pointer, $offset) = @$tuple;
	my $at = $offset + ord substr $sound, $offset + 22, 1;
	my $n = $number{ unpack 'V', substr $sound, $at, 4 } // next;
	substr($damaged, $at, 4) = pack 'V', $oid{ $n % $count + 1 };
}
$result = ask('rows of another filter', $damaged);
is("$result->{lost} $result->{silent} $result->{log_lost}", "$count 0 0", 'rows of another filter: not used, and each is told');

# The log: a page in four is garbage.
my $damaged_log = $sound_log;
for (my $page = 0; $page < length $sound_log; $page += 4 * 8192)
{
	substr($damaged_log, $page, 8192) = join '', map { chr int rand 256 } 1 .. 8192;
}
$result = ask('garbage in the log', $sound, $damaged_log);
cmp_ok($result->{sound}, '==', $count, 'garbage in the log: the images are not harmed');

write_bytes($file, $sound);
write_bytes($log_file, $sound_log);
$node->start;
sql(q{
	SELECT streamfilter_forget_saved();
	DO $$ DECLARE f regclass; BEGIN
	  FOR f IN SELECT oid FROM pg_class WHERE relkind = 'f' LOOP
	    EXECUTE format('DROP FOREIGN TABLE %s', f); COMMIT; END LOOP; END $$;});
is(sql(q{SELECT count(*) FROM streamfilter_stats}), '0', 'all is repaired by dropping it');

# --- The file of unlogged filters ---------------------------------------------------------------------

sql(q{
	CREATE FOREIGN TABLE notes (id int) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '1kB', k '10', persistence 'unlogged');
	CREATE FOREIGN TABLE others (id int) SERVER streamfilter
	  OPTIONS (kind 'lru', memory '4kB', persistence 'unlogged');});
my $unlogged = $node->data_dir . '/streamfilter.unlogged';
sub restart_with
{
	my ($what, $change, $empty) = @_;
	sql('INSERT INTO notes VALUES (1); INSERT INTO others VALUES (1)');
	$node->stop;
	my $bytes = slurp_bytes($unlogged);
	$change->($bytes);
	write_bytes($unlogged, $bytes);
	my $from = -s $node->logfile;
	$node->start;
	my $known = sql(q{SELECT streamfilter_test('notes', 1), streamfilter_test('others', 1), streamfilter_test('notes', 2)});
	my $told = slurp_file($node->logfile, $from) =~ /streamfilter.unlogged" is damaged or of another past/;
	# Damage costs its own filter.
	like("$known " . ($told ? 'told' : 'silent'), $empty ? qr/^[tf]\|[tf]\|f told$/ : qr/^t\|t\|f silent$/, $what);
}
restart_with('unlogged: no damage', sub { }, 0);
my $length = 40 + 128 + 1024;
for my $at (0, 8, 16, 24, 32, 40, 60, 150, 170, 600, 1100, map { int rand $length } 1 .. 4)
{
	restart_with("unlogged: byte $at", sub { flip($_[0], $at, 1 << int rand 8) }, 1);
}
restart_with("unlogged: cut off at $_", sub { substr($_[0], $_) = '' }, 1) for 0, 39, 100, 1000, 2000;
my $old;
restart_with('unlogged: one to keep', sub { $old = $_[0] }, 0);
restart_with('unlogged: of another past', sub { $_[0] = $old }, 1);

# What is brought under another name after pg_upgrade must be of another cluster (test/pg_upgrade.sh does it right). What
# the server has itself is kept.
sql('INSERT INTO notes VALUES (3); INSERT INTO others VALUES (3)');
my $brought = "$unlogged.upgrade";
for my $case ([ 'of the same cluster', sub { } ], [ 'damaged', sub { flip($_[0], 8, 1); flip($_[0], 150, 1) } ])
{
	my ($what, $change) = @$case;
	my $bytes = $old;
	$change->($bytes);
	$node->stop;
	write_bytes($brought, $bytes);
	my $from = -s $node->logfile;
	$node->start;
	like(slurp_file($node->logfile, $from), qr/streamfilter.unlogged.upgrade" is damaged or of another past/, "brought: $what");
	is(sql(q{SELECT streamfilter_test('notes', 3) AND streamfilter_test('others', 3)
		AND NOT streamfilter_test('others', 1)}), 't', 'is not used, the own one is');
	ok(!-e $brought, 'and not looked at again');
}

# The file cannot be written when the server is shut down: a folder lies there.
mkdir "$unlogged.tmp" or die $!;
sql('INSERT INTO notes VALUES (1)');
my $end = -s $node->logfile;
$node->stop;
like(slurp_file($node->logfile, $end), qr/could not write file "streamfilter.unlogged", unlogged filters will be empty: Is a directory/,
	'unlogged: not written, and the log says so');
like(slurp_file($node->logfile, $end), qr/database system is shut down/, 'but the shutdown is a clean one');
rmdir "$unlogged.tmp" or die $!;
$node->start;
is(knows('notes', 1), 'f', 'the filter is empty then');

# --- The disk is full ---------------------------------------------------------------------------------

# A limit on the size of files stands for it: then writing fails in the same place.
SKIP:
{
	my $bytes = 3 << 20;
	my $pid = slurp_file($node->data_dir . '/postmaster.pid') =~ s/\n.*//sr;
	sql(q{
		CREATE TABLE events (id int);
		CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8MB', k '10');
		CREATE TRIGGER zz BEFORE INSERT ON events
		  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
		INSERT INTO events SELECT generate_series(1, 50000)});
	skip 'prlimit is not there', 9 if system("prlimit --pid $pid --fsize=$bytes: 2>/dev/null") != 0;
	my $err;
	isnt($node->psql('postgres', q{SELECT streamfilter_save('seen')}, stderr => \$err), 0, 'disk full: a save fails');
	like($err, qr/could not (extend|write)/, 'and says why');
	my %fails = ('1GB' => [ 'that the log does not take', qr/could not (extend|write)/ ],
		'4MB' => [ 'whose keys need a temporary file', qr/could not make a temporary file/ ]);
	for my $memory (sort keys %fails)
	{
		my ($what, $message) = @{ $fails{$memory} };
		isnt($node->psql('postgres', qq{SET work_mem = '$memory'; INSERT INTO seen SELECT generate_series(100001, 600000)}, stderr => \$err),
			0, "disk full: so does an INSERT $what");
		like($err, $message, 'and says why');
	}
	is(known('seen', 100001, 101000), '0', 'its keys are not remembered');
	is(sql(q{INSERT INTO events VALUES (1), (60001) RETURNING id}), '60001', 'small ones go on');
	system("prlimit --pid $pid --fsize=unlimited:");
	crash();
	is(known('seen', 1, 101000), '50001', 'after a crash all is there that was committed');
}

done_testing();
