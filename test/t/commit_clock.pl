# A clock that is put back by hours keeps neither an image waiting nor a session that waits for another server: when these waits
# end is told by a clock that only goes on.
use Sf;
use Needs;

needs(!$ENV{LD_PRELOAD}, 'sanitizers are preloaded', 6);
my $compiler = $ENV{CC} // 'cc';
needs(system("$compiler --version >/dev/null 2>&1") == 0, 'there is no C compiler', 6);

# The server's time of day is behind by the seconds that the file says.
my $directory = PostgreSQL::Test::Utils::tempdir;
my $behind = "$directory/behind";
append_to_file("$directory/clock.c", q{
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec real;
	char digits[32] = "";
	int file = open(getenv("BEHIND"), O_RDONLY);
	(void) zone;
	if (file >= 0)
	{
		if (read(file, digits, sizeof digits - 1) < 0) digits[0] = 0;
		close(file);
	}
	if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &real) != 0) return -1;
	now->tv_sec = real.tv_sec - atol(digits);
	now->tv_usec = real.tv_nsec / 1000;
	return 0;
}
});
is(system("$compiler -shared -fPIC -o $directory/clock.so $directory/clock.c"), 0, 'the clock that goes back is compiled');

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '16MB'
	streamfilter.min_log_size = '64kB'
	autovacuum = off
	fsync = off});
{
	local @ENV{'LD_PRELOAD', 'BEHIND'} = ("$directory/clock.so", $behind);
	$node->start;
}
sql(q{
	CREATE EXTENSION streamfilter;
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB', fpr '0.01')});

# The transaction that has written the image; none: 0.
my $image = q{SELECT coalesce(max(xmin::text::bigint), 0) FROM _streamfilter.streamfilter_image WHERE filter = 'seen'::regclass};
my $keys = 0;
sub next_image
{
	my ($name) = @_;
	my $before = sql($image);
	sql("INSERT INTO seen SELECT generate_series($keys + 1, $keys + 20000)");
	$keys += 20000;
	# Some seconds after the last one, a commit starts the worker.
	ok(wait_for("WITH one AS (INSERT INTO seen VALUES ((random() * 1e9)::int)) SELECT ($image) > $before"), $name);
	return;
}

next_image('so much log is followed by an image');
my $hours = q{SELECT round(extract(epoch FROM clock_timestamp()) / 3600)};
my $hour = sql($hours);
sub put_back { my ($by) = @_; unlink $behind; append_to_file($behind, $by * 3600); return; }
put_back(6);
cmp_ok(sql($hours), '<', $hour - 4, 'the clock is put back');
# One that was due before has begun: the next one is of the clock as it is now.
next_image('an image after that');
next_image('and another one');

# The session that has the filter hangs. The one that waits for it gives up.
my $far = start_node('far');
sql(server_sql('far', $far, "timeout '5s'") . q{
	CREATE FOREIGN TABLE elsewhere (id int) SERVER far OPTIONS (kind 'bloom', memory '64kB', k '5')});
my $waiting = open_session(q{SET application_name = 'waiting'; INSERT INTO elsewhere VALUES (1)});
my @hung = split /\n/, sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()}, $far);
kill 'STOP', @hung;
$waiting->query_until(qr//, "INSERT INTO elsewhere VALUES (2);\n");
put_back(12);
ok(wait_for(q{SELECT state = 'idle' AND query LIKE '%(2)%' FROM pg_stat_activity
	WHERE application_name = 'waiting'}), 'a wait for another server ends');
kill 'CONT', @hung;
$waiting->quit;

done();
