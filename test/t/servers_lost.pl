# Servers that are lost and come back, under every policy: no hang, no lost row where none may be lost, and
# the error rates of Koloniari et al. 2011, section 3.2 (corrected: binomial, not a power).
# flavours: faults
use Sf;
use IO::Socket::INET;
use Time::HiRes qw(time);

my $node   = start_node('producer', "fsync = on\n");
my %holder = map { $_ => start_node($_, "fsync = on\n") } qw(a b c);

sql(join '', map { server_sql($_, $holder{$_}, q{connect_timeout '1s', timeout '2s'}) } sort keys %holder);

# How far may a count of n trials of probability p be off? The odds that one of these bounds fails a right
# program are below 1e-6 (5 standard deviations; a little more for small counts).
sub near
{
	my ($count, $n, $p, $name) = @_;
	my $slack = 5 * sqrt($n * $p * (1 - $p)) + 3;
	cmp_ok(abs($count - $n * $p), '<=', $slack, sprintf('%s: %.4f, by the formula %.4f', $name, $count / $n, $p));
}

sub binomial
{
	my ($n, $k, $p) = @_;
	my $ways = 1;
	$ways *= ($n - $_) / ($_ + 1) for 0 .. $k - 1;
	return $ways * $p**$k * (1 - $p)**($n - $k);
}

# ---- the filters, filled to a third -------------------------------------------------------------------

my $k     = 4;
my $known = 6000;
for my $slicing (qw(horizontal vertical))
{
	sql(qq{CREATE FOREIGN TABLE $slicing (id int) SERVER streamfilter
	         OPTIONS (servers 'a,b,c', kind 'bloom', memory '8kB', k '$k', slicing '$slicing', slices '6');
	       INSERT INTO $slicing SELECT generate_series(1, $known)});
}
my %fill = map {
	my $filter = $_;
	my $sum    = 0;
	$sum += sql("SELECT fill FROM streamfilter_stats WHERE filter::text = '$filter'", $_) / 3 for values %holder;
	$filter => $sum;
} qw(horizontal vertical);
note(join ', ', map { "$_ fill $fill{$_}" } sort keys %fill);

# A table that is fed while a server is lost: large filters, so that false positives do not matter.
for my $slicing (qw(horizontal vertical))
{
	sql(qq{CREATE FOREIGN TABLE seen_$slicing (id int) SERVER streamfilter
	         OPTIONS (servers 'a,b,c', kind 'bloom', memory '1MB', k '8', slicing '$slicing', slices '6');
	       CREATE TABLE rows_$slicing (id int);
	       CREATE TRIGGER zz BEFORE INSERT ON rows_$slicing
	         FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_$slicing')});
}

# ---- lost in the middle of a load -----------------------------------------------------------------------

my $load = q{DO $$ BEGIN
  FOR i IN 0 .. 149 LOOP
    INSERT INTO rows_horizontal SELECT (i * 7 + j) % 1000 FROM generate_series(1, 10) j;
    INSERT INTO rows_vertical SELECT (i * 7 + j) % 1000 FROM generate_series(1, 10) j;
    COMMIT;
    PERFORM pg_sleep(0.02);
  END LOOP;
END $$};
my ($out, $err) = ('', '');
my $run = IPC::Run::start([ 'psql', '-X', '-q', '-d', $node->connstr('postgres'), '-c', $load ], '>', \$out, '2>', \$err);
wait_for('SELECT count(*) > 0 FROM rows_vertical');
my $start = time;
$holder{b}->stop('immediate');
ok($run->finish, 'a load goes on without a server');
cmp_ok(time - $start, '<', 20, 'and does not hang');
like($err, qr/WARNING:  server "b" is lost: keys are judged without its slices/, 'it warns');
my $keys = sql(q{SELECT count(DISTINCT (i * 7 + j) % 1000) FROM generate_series(0, 149) i, generate_series(1, 10) j});
for my $slicing (qw(horizontal vertical))
{
	is(sql("SELECT count(DISTINCT id) FROM rows_$slicing"), $keys, "$slicing: no row is lost under lost_slice distinct");
}
is(sql(q{SELECT string_agg(DISTINCT server, ','), bool_and(lost_since IS NOT NULL), sum(unanswered) > 0
         FROM streamfilter_slices WHERE lost}), 'b|t|t', 'view of slices');
like(sql('EXPLAIN INSERT INTO horizontal VALUES (1)'), qr/Lost: b/, 'EXPLAIN says what is lost');

# ---- error rates by policy --------------------------------------------------------------------------------

# One of three servers is lost: f/S = 1/3.
my $lost = 1 / 3;
my $n    = 600;

sub rates
{
	my ($slicing, $policy) = @_;
	sql("ALTER FOREIGN TABLE $slicing OPTIONS ("
		  . (sql("SELECT count(*) FROM pg_foreign_table WHERE ftrelid = '$slicing'::regclass AND ftoptions::text LIKE '%lost_slice%'") ? 'SET' : 'ADD')
		  . " lost_slice '$policy')");
	return split /\|/, sql(qq{
		SELECT count(*) FILTER (WHERE i > 1000000 AND streamfilter_test('$slicing', i)),
		       count(*) FILTER (WHERE i <= 1000000 AND NOT streamfilter_test('$slicing', i))
		FROM (SELECT generate_series(1, $n) UNION ALL SELECT generate_series(1000001, 1000000 + $n)) x(i)});
}

my ($false_positives, $false_negatives) = rates('horizontal', 'duplicate');
near($false_positives, $n, $lost + (1 - $lost) * $fill{horizontal}**$k, 'horizontal, duplicate: Eq. 5');
is($false_negatives, 0, 'horizontal, duplicate: no false negatives');
($false_positives, $false_negatives) = rates('horizontal', 'distinct');
near($false_positives, $n, (1 - $lost) * $fill{horizontal}**$k, 'horizontal, distinct: false positives');
near($false_negatives, $n, $lost, 'horizontal, distinct: false negatives f/S');

my $fill = $fill{vertical};
($false_positives, $false_negatives) = rates('vertical', 'duplicate');
near($false_positives, $n, ($lost + (1 - $lost) * $fill)**$k, 'vertical, duplicate: Eq. 6');
is($false_negatives, 0, 'vertical, duplicate: no false negatives');
($false_positives, $false_negatives) = rates('vertical', 'distinct');
near($false_positives, $n, ((1 - $lost) * $fill)**$k, 'vertical, distinct: false positives');
near($false_negatives, $n, 1 - (1 - $lost)**$k, 'vertical, distinct: false negatives');
for my $x (2, 3)
{
	my ($hybrid, $votes, $missed) = (0, 0, 0);
	for my $i ($x .. $k)
	{
		$hybrid += binomial($k, $i, (1 - $lost) * $fill);
		$votes  += binomial($k, $i, 1 - $lost) * $fill**$i;
	}
	$missed += binomial($k, $_, 1 - $lost) for 0 .. $x - 1;
	($false_positives, $false_negatives) = rates('vertical', "hybrid:$x");
	near($false_positives, $n, $hybrid, "vertical, hybrid:$x: false positives");
	# A bit that its key did not set is set with probability `fill`, but there is none: all k were.
	near($false_negatives, $n, $missed, "vertical, hybrid:$x: false negatives");
	($false_positives, $false_negatives) = rates('vertical', "votes:$x");
	near($false_positives, $n, $votes,  "vertical, votes:$x: false positives");
	near($false_negatives, $n, $missed, "vertical, votes:$x: false negatives");
}

# Option lost_slice 'error': what needs the server fails, and stores nothing; what does not goes on.
sql(q{CREATE FOREIGN TABLE strict (id int) SERVER streamfilter
        OPTIONS (servers 'a,b,c', kind 'bloom', memory '64kB', k '4', slices '6', seed '1', lost_slice 'error');
      CREATE TABLE rows_strict (id int);
      CREATE TRIGGER zz BEFORE INSERT ON rows_strict FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('strict')});
my $strict = qr/ERROR:  cannot ask filter "strict" now\nDETAIL:  Server "b" is lost.\nHINT:  Repeat it when the server is back./;
like(($node->psql('postgres', 'INSERT INTO rows_strict SELECT generate_series(1, 60)'))[2], $strict, 'error: an INSERT fails');
like(($node->psql('postgres', q{SELECT count(streamfilter_test('strict', i)) FROM generate_series(1, 60) i}))[2], $strict, 'error: so does a test');
is(sql('SELECT count(*) FROM rows_strict'), 0, '... and no row is stored');
my ($here, $lost_there) = (0, 0);
for my $id (1 .. 20) { ($node->psql('postgres', "INSERT INTO rows_strict VALUES ($id)"))[0] == 0 ? ++$here : ++$lost_there }
ok($here > 0 && $lost_there > 0, 'error: a key with no place there is judged') or diag("$here $lost_there");
is(sql('SELECT count(*) FROM rows_strict'), $here, '... and its row is stored');

# Every layout: a key is stored and remembered, or its statement fails; however rows come.
my %strict = (
	one => q{SERVER b OPTIONS (},
	map { $_->[0] => "SERVER streamfilter OPTIONS (servers 'a,b,c', $_->[1], " } [ horizontal => q{slices '6'} ], [ vertical => q{slicing 'vertical', slices '6'} ],
	  [ pipelined => q{slicing 'vertical', slices '6', probe 'pipelined'} ], map { [ $_ => "slicing 'diced', dice '$_', slices '6,3'" ] } qw(hv vh));
my %stored;
for my $layout (sort keys %strict)
{
	sql("CREATE FOREIGN TABLE strict_$layout (id int) $strict{$layout} kind 'bloom', memory '96kB', k '6', seed '1', lost_slice 'error');
		CREATE TABLE rows_strict_$layout (id int);
		CREATE TRIGGER zz BEFORE INSERT ON rows_strict_$layout FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('strict_$layout')");
	like(said($_), qr/ERROR:  cannot ask filter "strict_$layout" now/, "error, $layout: $_")
	  for "INSERT INTO rows_strict_$layout SELECT generate_series(1, 60)", "COPY rows_strict_$layout FROM PROGRAM 'seq 60'",
	  "SELECT count(streamfilter_seen('strict_$layout', i)) FROM generate_series(1, 60) i",
	  "BEGIN; INSERT INTO rows_strict_$layout SELECT generate_series(1, 60); COMMIT";
	$stored{$layout} = join ' ', grep { said("INSERT INTO rows_strict_$layout VALUES ($_)") eq '' } 101 .. 120;
	is(sql("SELECT string_agg(id::text, ' ' ORDER BY id) FROM rows_strict_$layout") , $stored{$layout}, 'error, ' . $layout . ': stored is what did not fail');
}

# ---- back again ---------------------------------------------------------------------------------------------

$holder{b}->start;
my $back = 0;
for my $try (1 .. 300)
{
	sql(q{SELECT count(streamfilter_test('horizontal', i)) FROM generate_series(1, 20) i});
	$back = sql('SELECT NOT bool_or(lost) FROM streamfilter_slices') eq 't';
	last if $back;
	Time::HiRes::sleep(0.1);
}
ok($back, 'a server that is back is used again');
for my $layout (sort keys %strict)
{
	sql("INSERT INTO rows_strict_$layout SELECT generate_series(1, 120)") for 1 .. 2;
	is(sql("SELECT count(*), count(DISTINCT id) FROM rows_strict_$layout"), '120|120', "error, $layout: nothing that failed is remembered, nothing is there twice");
}
is(sql("SELECT count(*) FROM generate_series(1, $n) i WHERE NOT streamfilter_test('horizontal', i)"), 0, 'and remembers what it had');

# ---- within a transaction -----------------------------------------------------------------------------------

sub unremembered { return sql(q{SELECT unremembered FROM streamfilter_stats WHERE filter = 'seen_horizontal'::regclass}); }
my $unremembered = unremembered();
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query('BEGIN; INSERT INTO rows_horizontal SELECT generate_series(5001, 5060)');
$holder{c}->stop('immediate');
$session->query('INSERT INTO rows_horizontal SELECT generate_series(5061, 5080)');
$session->query('COMMIT');
unlike($session->{stderr}, qr/does not remember/, 'a loss within a transaction: nothing can be said while it commits');
$session->query('SELECT 1');
like($session->{stderr}, qr/WARNING:  server "c" does not remember the keys of a transaction of this session/,
	'but with the next statement');
is(unremembered(), $unremembered + 1, 'and it is counted');
$session->quit;
is(sql('SELECT count(DISTINCT id) FROM rows_horizontal WHERE id > 5000'), 80, 'its rows are all there');

# With 'error' COMMIT fails, too, where the loss is known by then.
$holder{c}->start;
$node->poll_query_until('postgres', q{SELECT count(streamfilter_test('horizontal', i)) = 20 AND NOT (SELECT bool_or(lost) FROM streamfilter_slices) FROM generate_series(1, 20) i});
sql('TRUNCATE strict, rows_strict');
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query('BEGIN; INSERT INTO rows_strict SELECT generate_series(1, 60)');
$holder{c}->stop('immediate');
$session->query('COMMIT');
like($session->{stderr}, qr/ERROR:  connection to server "c" was lost within the transaction/, 'error: COMMIT fails');
$session->quit;
is(sql('SELECT count(*) FROM rows_strict'), 0, '... and no row is stored');
$holder{c}->start;

# ---- a server that accepts and never answers ------------------------------------------------------------------

my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die $!;
sql(sprintf q{CREATE SERVER silent FOREIGN DATA WRAPPER streamfilter
                OPTIONS (host '127.0.0.1', port '%d', connect_timeout '700ms');
              CREATE USER MAPPING FOR CURRENT_USER SERVER silent;
              CREATE FOREIGN TABLE silent (id int) SERVER silent OPTIONS (kind 'bloom', memory '64kB', k '4')},
	$silent->sockport);
$start = time;
my ($ret, $stdout, $stderr) = $node->psql('postgres', q{SELECT streamfilter_seen('silent', 1)});
is($stdout, 'f', 'a server that never answers is lost');
like($stderr, qr/it does not answer/, 'and the warning says so');
cmp_ok(time - $start, '<', 5, 'after its connect_timeout');
$start = time;
sql(q{SELECT streamfilter_seen('silent', 1)}) for 1 .. 5;
cmp_ok(time - $start, '<', 5, 'and sessions do not all wait for it');

# A connection that goes silent: the backend there is stopped. A key has places on some servers, a hundred of them on
# all. Before that the session has its connections; on a busy machine they may need more time than the tests above give
# them.
sql("ALTER SERVER $_ OPTIONS (SET connect_timeout '60s', SET timeout '6s')") for sort keys %holder;
my $quiet = $node->background_psql('postgres', on_error_stop => 0);
for my $try (1 .. 600)
{
	$quiet->query(q{SELECT count(streamfilter_test('seen_vertical', i)) FROM generate_series(1, 100) i});
	last if sql(q{SELECT bool_or(lost) FROM streamfilter_slices WHERE server <> 'silent'}) eq 'f';
	Time::HiRes::sleep(0.1);
}
$quiet->{stderr} = '';
my @pids = split /\n/, sql(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'streamfilter'}, $holder{a});
kill 'STOP', @pids;
$start = time;
$quiet->query(q{SELECT count(streamfilter_test('seen_vertical', i)) FROM generate_series(1, 100) i});
cmp_ok(time - $start, '<', 12, 'a connection that goes silent is given up after the timeout');
like($quiet->{stderr}, qr/it does not answer in time/, 'with a warning');
is(sql(q{SELECT string_agg(DISTINCT server, ',') FROM streamfilter_slices WHERE lost AND server <> 'silent'}),
	'a', 'and no other server for its sake');
kill 'CONT', @pids;
$quiet->quit;

done_testing();
