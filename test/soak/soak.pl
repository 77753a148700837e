# What accumulates stays within its bounds, however long a server runs: run by test/soak.sh.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/..";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sessions;
use Test::More;
use Time::HiRes qw(time);

local $SIG{TERM} = sub { die "ended\n" };    # with its servers
my $seconds = $ENV{STREAMFILTER_SECONDS};
srand($ENV{STREAMFILTER_SEED});
note("seed $ENV{STREAMFILTER_SEED}");

my $small_filters = 40;
my $memory = 256 * 1024;    # of filter `seen`, and the least log that is worth an image

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '64MB'
	streamfilter.max_filters = 100
	streamfilter.min_log_size = '256kB'
	max_prepared_transactions = 5
	autovacuum_naptime = 1
	full_page_writes = off
	synchronous_commit = off
	fsync = off});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION streamfilter;
	CREATE FUNCTION log_bytes(regclass) RETURNS bigint AS '\$libdir/streamfilter', 'streamfilter_log_bytes' LANGUAGE C STRICT;
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '256kB');
	CREATE FOREIGN TABLE forgetting (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB');
	CREATE FOREIGN TABLE renewing (id int) SERVER streamfilter OPTIONS (kind 'vqf', memory '64kB', window '10 s', extend 'yes');
	SELECT format('CREATE FOREIGN TABLE small_%s (id int) SERVER streamfilter OPTIONS (kind ''sqf'', memory ''8kB'')', i)
	FROM generate_series(1, $small_filters) i \\gexec
	CREATE PROCEDURE insert_one_by_one(first int, last int) LANGUAGE plpgsql AS \$\$
	BEGIN
		FOR i IN first .. last LOOP INSERT INTO seen VALUES (i); COMMIT; END LOOP;
	END \$\$});
$node->backup('begin');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'begin', has_streaming => 1);
$standby->append_conf('postgresql.conf', q{recovery_min_apply_delay = '1s'});
$standby->start;

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub random { return 1 + int(rand($_[0])); }
sub wal { return sql(q{SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')}); }

# What is out of its bounds, each kind once.
my %broken;
sub within
{
	my ($value, $most, $what) = @_;
	$broken{$what} //= "$value, at most $most" if $value > $most;
	return;
}

my $next = 1;
my ($images, $last_saved, $rounds) = (0, '', 0);
my ($single_keys, $single_wal) = (0, 0);
my %most = map { $_ => 0 } qw(log image session restart);
sub most { my ($what, $value) = @_; $most{$what} = $value if $value > $most{$what}; return $value; }

# A session that may last as long as it likes: the limit is one of each query.
sub lasting_session
{
	my $lasting = $node->background_psql('postgres', on_error_stop => 0);
	$lasting->set_query_timer_restart;
	return $lasting;
}

# One that lasts until a crash ends it, and uses all filters.
my $session;
sub begin_session { $session = lasting_session(); return; }

# Bytes of a row that has one key, in its page.
my $row = 68;

# Of filter `seen`, since the beginning; and what was logged when, in the last 15 seconds.
my $logged = 0;
my ($fastest, @logged_at) = (0);
sub note_rate
{
	push @logged_at, [ time, $logged ];
	shift @logged_at while @logged_at > 2 && $logged_at[1][0] < time - 15;
	my $lately = $logged - $logged_at[0][1];
	$fastest = $lately if $lately > $fastest;
	return;
}

# What a transaction that lasts keeps in the heaps although images have replaced it, as in every table: log that was written
# while it ran, and images.
my ($long_runs, $long_rounds, $long_logged, $long_images) = (1, 0, 0, 0);
sub note_long { ($long_rounds, $long_logged, $long_images) = ($rounds, $logged, $images) if $long_runs; return; }

# A filter has a log of the least size that is worth an image, and of what comes in the ten seconds until the next worker may
# start (fifteen: the machine is busy); and as much that the last image has replaced. A third is lost at the ends of pages.
# Filter `renewing` has its renewals there.
sub log_pages
{
	my $small = $rounds * $row < $memory ? $rounds * $row : $memory;
	my $log = $memory + $fastest + $memory + $small_filters * $small;
	return 100 + 1.33 * (2 * ($log + $memory) + $long_logged + $long_rounds * $row * $small_filters) / 8192;
}

# A page for a header and each 8 kB; the image that is, the last one, and one that a crash has interrupted.
my $pages_of_image = $memory / 8192 + 2;
sub image_pages { return 3 * ($pages_of_image + 10 + 2 * $small_filters) + $long_images * $pages_of_image; }

# The number of a filter's image pages, and of the log of all filters.
my $pages = q{SELECT (SELECT pg_relation_size('_streamfilter.streamfilter_log') / 8192), (SELECT pg_relation_size('_streamfilter.streamfilter_image') / 8192)};

sub work_a_round
{
	my $before = wal();
	my $first = $next;
	$next += 300;
	sql("CALL insert_one_by_one($first, $next - 1)");
	$single_keys += 300;
	$single_wal += wal() - $before;
	my $bulk = random(4000);
	sql("INSERT INTO seen SELECT generate_series($next, $next + $bulk - 1)");
	$next += $bulk;
	$logged += 310 * $row + $bulk * 8;
	note_rate();
	sql("BEGIN; SAVEPOINT a; INSERT INTO seen VALUES (-$next); ROLLBACK TO a; SAVEPOINT b; INSERT INTO seen VALUES ($next); COMMIT");
	++$next;
	sql("INSERT INTO forgetting SELECT generate_series($next, $next + 99); DELETE FROM forgetting WHERE id = $next");
	sql("INSERT INTO renewing SELECT generate_series(1, 150); DELETE FROM renewing WHERE id = 75");
	$session->query_safe("DO \$\$ BEGIN FOR i IN 1 .. $small_filters LOOP
		EXECUTE format('INSERT INTO small_%s VALUES ($next)', i); END LOOP; END \$\$");
	return;
}

sub look_at_bounds
{
	my $saved = sql(q{SELECT coalesce(last_saved::text, '') FROM streamfilter_stats WHERE filter = 'seen'::regclass});
	++$images if $saved ne $last_saved;
	$last_saved = $saved;
	my ($log, $image) = split /\|/, sql($pages);
	note_long();
	within(most('log', $log), log_pages(), 'pages of the log');
	within(most('image', $image), image_pages(), 'pages of images');
	within(
		most('session', $session->query_safe(q{SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name LIKE 'streamfilter%'})),
		12 * 1024 * ($small_filters + 4), 'bytes of a session');
	within($images, 2 + $logged / $memory, 'images of what was logged');
	return;
}

sub crash
{
	eval { $session->quit };
	# What has committed with synchronous_commit off may be lost otherwise, as it should.
	sql(q{SET synchronous_commit = on; SELECT pg_logical_emit_message(true, 'soak', '')});
	$node->stop('immediate');
	$node->start;
	my $plan = sql(q{EXPLAIN (ANALYZE, BUFFERS, TIMING off, COSTS off) SELECT streamfilter_test('seen', 1)});
	my $read = 0;
	$read += $1 while $plan =~ /(?:hit|read)=(\d+)/g;
	my ($log, $image) = split /\|/, sql($pages);
	within(most('restart', $read), 3 * $log + 2 * $image + 1000, 'pages that a first use reads');
	begin_session();
	return;
}

# Of the latest keys, which the filter has in its window. It takes new ones for ever: its log never runs dry.
my $latest = 20000;
sub known { my ($server) = @_; return $server->safe_psql('postgres',
	"SELECT count(*) FROM generate_series($next - $latest, $next - 1) i WHERE streamfilter_test('seen', i)"); }

begin_session();
my $long = lasting_session();
$long->query_safe('BEGIN; INSERT INTO seen VALUES (-1)');
my ($start, $crashes, $crash_at) = (time, 0, 12);
my $long_ends = $start + ($seconds < 1800 ? $seconds / 3 : 900);
while (time < $start + $seconds || !$crashes)
{
	work_a_round();
	look_at_bounds();
	if (++$rounds >= $crash_at && (!$long_ends || time > $long_ends))
	{
		if ($long_ends)
		{
			$long->query_safe('COMMIT');
			is(sql(q{SELECT streamfilter_test('seen', -1)}), 't', 'what the long transaction has added is known');
			$long->quit;
			$long_ends = $long_runs = 0;
		}
		crash();
		++$crashes;
		$crash_at = $rounds + 6 + random(12);
	}
	is(known($standby) <= $latest, 1, 'the standby answers') if $rounds % 20 == 0;
}
if ($long_ends) { $long->query_safe('COMMIT'); $long->quit; }

note(sprintf '%d rounds, %d keys, %d crashes, %d images; most pages of log %d, of images %d, read by a first use %d; %d bytes of a session',
	$rounds, $next - 1, $crashes, $images, @most{qw(log image restart session)});
note(sprintf 'allowed: %d pages of log, %d of images; the long transaction keeps %d rounds, %d bytes, %d images; at most %d bytes in 15 s',
	log_pages(), image_pages(), $long_rounds, $long_logged, $long_images, $fastest);
note(sprintf '%.0f bytes of WAL for a key in a transaction of its own', $single_wal / $single_keys) if $single_keys;
within($single_wal / $single_keys, 450, 'WAL for a key in a transaction of its own') if $single_keys;
is(known($node), $latest, 'the latest keys are known');
$node->wait_for_catchup($standby);
is(known($standby), $latest, 'also on the standby');
is(join('; ', map { "$_: $broken{$_}" } sort keys %broken), '', 'everything stays within its bounds');
eval { $session->quit };
done_testing();
