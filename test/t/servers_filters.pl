# Filters on other servers: their state, transactions, errors, and producers on two sides.
# flavours: faults
use Sf;

my $limit = $PostgreSQL::Test::Utils::timeout_default;

my $settings = 'max_prepared_transactions = 2';
my %holder = map { $_ => start_node($_, $settings) } qw(a b);
my $node = start_node('producer', $settings);
on($node);

my $timeouts = q{connect_timeout '1s', timeout '4s'};
my $servers = server_sql('a', $holder{a}, $timeouts) . server_sql('b', $holder{b}, $timeouts);
sql($servers);
sql('CREATE DATABASE other');
sql('CREATE EXTENSION streamfilter', 'other');

sub other { return sql($_[0], 'other'); }

# What the holders say of a filter: accepted, rolled back, in flight.
sub held
{
	my ($filter) = @_;
	my @sums = (0, 0, 0);
	for my $holder (values %holder)
	{
		my @counts = split /\|/, $holder->safe_psql('postgres',
			"SELECT accepted, rolled_back, in_flight FROM streamfilter_stats
			 WHERE filter::text = '$filter'");
		$sums[$_] += $counts[$_] // 0 for 0 .. 2;
	}
	return join '|', @sums;
}

# ---- one server ------------------------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE single (id int, url text) SERVER a
        OPTIONS (kind 'bloom', memory '512kB', k '10')});
is(sql(q{SELECT streamfilter_seen('single', 1, 'x'), streamfilter_seen('single', 1, 'x'),
                streamfilter_test('single', 2, 'x')}), 'f|t|f', 'seen and test');
is(sql(q{SELECT streamfilter_test('single', 1, 'x')}), 't', 'remembered after the commit');
is(sql(q{SELECT * FROM single WHERE id = 1 AND url = 'x'}), '1|x', 'SELECT by key');
is($holder{a}->safe_psql('postgres',
		q{SELECT attname, atttypid::regtype FROM pg_attribute
		  WHERE attrelid = 'single'::regclass AND attnum > 0}),
	'hash|bigint', 'only hashes are on the other server');
is(sql(q{SELECT tested, accepted, discarded, memory, fill IS NULL FROM streamfilter_stats
         WHERE filter = 'single'::regclass}), '5|1|1|524288|t', 'statistics of the producer');
like(sql('EXPLAIN INSERT INTO single VALUES (1)'), qr/Servers: a/, 'EXPLAIN names the server');

is(sql(q{SELECT v @> ROW(1, 'x'::text), v @> ROW(2, 'x'::text) FROM streamfilter_value('single') v}), 't|f', 'its state as a value');

# Kinds that learn of time and importance get them.
sql(q{CREATE FOREIGN TABLE timed (id int, at timestamptz OPTIONS (role 'time')) SERVER b
        OPTIONS (kind 'timer', memory '256kB', window '10 minutes', keys '1000')});
is(sql(q{SELECT streamfilter_seen('timed', 1, '2026-01-01 00:00Z'),
                streamfilter_seen('timed', 1, '2026-01-01 00:09Z'),
                streamfilter_seen('timed', 1, '2026-01-01 00:30Z')}),
	'f|t|f', 'the time of a row travels');
sql(q{CREATE FOREIGN TABLE numbered (id int, ts bigint OPTIONS (role 'time', unit 'ms')) SERVER a OPTIONS (window '10 minutes', keys '1000')});
is(sql(q{SELECT streamfilter_seen('numbered', 1, 1700000000000), streamfilter_seen('numbered', 1, 1700000500000),
                streamfilter_seen('numbered', 1, 1700000900000)}), 'f|t|f', 'times in a unit are those of another server, too');

# ---- several servers -------------------------------------------------------------------------------

my %filters = (
	horizontal => q{slicing 'horizontal', slices '6'},
	vertical   => q{slicing 'vertical', slices '6'},
	pipelined  => q{slicing 'vertical', slices '6', probe 'pipelined'},
	diced      => q{slicing 'diced', slices '3,2'},
	places     => q{k1 '5', k2 '2', slices '6'});
for my $name (sort keys %filters)
{
	sql(qq{CREATE FOREIGN TABLE $name (id int) SERVER streamfilter
	         OPTIONS (servers 'a,b', kind 'bloom', memory '512kB', k '10', $filters{$name});
	       CREATE TABLE rows_$name (id int);
	       CREATE TRIGGER zz BEFORE INSERT ON rows_$name
	         FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$name');});
	# 512 kB for 3000 keys: k = 10 gives less than 1e-16 false positives a key.
	is(sql(qq{WITH a AS (INSERT INTO $name SELECT i / 2 FROM generate_series(0, 3999) i RETURNING 1)
	          SELECT count(*) FROM a}), 2000, "$name: row by row, of repeats one is new");
	sql("INSERT INTO $name SELECT i / 2 FROM generate_series(0, 5999) i");
	is(sql("SELECT accepted, discarded FROM streamfilter_stats WHERE filter::text = '$name'"), '3000|7000', "$name: in batches as well");
	is(sql(qq{SELECT count(*) FILTER (WHERE i < 3000 AND streamfilter_test('$name', i)),
	                 count(*) FILTER (WHERE i >= 3000 AND streamfilter_test('$name', i))
	          FROM generate_series(2900, 3099) i}), '100|0', "$name: test");
}
is(sql(q{SELECT count(DISTINCT server), count(*), bool_or(lost), sum(answered) > 0
         FROM streamfilter_slices WHERE filter = 'horizontal'::regclass}),
	'2|6|f|t', 'view of slices');
my ($parallel, $in_turn) = map {
	sql("SELECT sum(answered) FROM streamfilter_slices WHERE filter::text = '$_'");
} qw(vertical pipelined);
cmp_ok($in_turn, '<', $parallel, 'a pipelined probe asks fewer places');

# Windows: the places of a key on several servers end together.
sql(q{CREATE FOREIGN TABLE windows (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
        OPTIONS (servers 'a,b', kind 'timer', memory '512kB', window '10 minutes', k '10', slicing 'vertical',
                 slices '6')});
my $until = sub { sprintf q{SELECT i, '2026-01-01 00:%02d:00Z' FROM generate_series(1, 500) i}, $_[0] };
is(sql('WITH a AS (INSERT INTO windows ' . $until->($_->[0]) . ' RETURNING 1) SELECT count(*) FROM a'),
	$_->[1], "$_->[2]")
  for [0, 500, 'windows: new keys'], [9, 0, 'their repeats'], [12, 500, 'new again after the window'],
  [20, 0, 'and repeats of these'];

# Of rows: each slice has its share of them, wherever it lies. So several servers answer as one does.
my $rows = q{kind 'timer', memory '512kB', slices '6', seed '3'};
for my $window ("window '3000 rows', k '10'", "window '1001 rows', tick '7 rows', k '8'", "window '3000 rows', grow 'density', fpr '0.001'")
{
	sql("CREATE FOREIGN TABLE rows_here (id int) SERVER streamfilter OPTIONS ($rows, $window);
	     CREATE FOREIGN TABLE rows_there (id int) SERVER streamfilter OPTIONS (servers 'a,b', $rows, $window)");
	my ($here, $there) = map {
		sql("INSERT INTO rows_$_ SELECT generate_series(1, 12000);
		     SELECT string_agg(streamfilter_test('rows_$_', i)::int::text, '' ORDER BY i) FROM generate_series(5001, 12000) i")
	} qw(here there);
	my $known = $there =~ tr/1//;
	ok($here eq $there, "$window: on two servers as on one");
	my ($length) = $window =~ /(\d+) rows/;
	ok($known >= $length && $known < 1.15 * $length, "$window: so many are known ($known)");
	sql('DROP FOREIGN TABLE rows_here, rows_there');
	sql('DROP FOREIGN TABLE IF EXISTS rows_there', $_) for @holder{qw(a b)};
}

# The rows and buckets of a whole filter, likewise, which may be given.
sql(q{CREATE FOREIGN TABLE rows_of_all (id int) SERVER streamfilter
        OPTIONS (servers 'a,b', kind 'dsqf', memory '512kB', slices '6', r '8', p '21', rows '6000', buckets '18000', seed '3')});
sql('INSERT INTO rows_of_all SELECT generate_series(1, 9000)');
is($holder{$_}->safe_psql('postgres', q{SELECT params->>'rows', params->>'buckets' FROM streamfilter_stats WHERE filter = 'rows_of_all'::regclass}),
	'3000|9000', "server $_ has its share of the rows and buckets") for qw(a b);
is(known('rows_of_all', 1, 9000), 9000, 'all keys are known');
sql('DROP FOREIGN TABLE rows_of_all');
sql('DROP FOREIGN TABLE IF EXISTS rows_of_all', $_) for @holder{qw(a b)};

# A kind that can forget keys, and whose shape on a server differs from that of the whole.
sql(q{CREATE FOREIGN TABLE forgetting (id int) SERVER streamfilter
        OPTIONS (servers 'a,b', kind 'sqf', memory '1MB', fpr '0.0001');
      INSERT INTO forgetting SELECT generate_series(1, 100)});
is(sql(q{DELETE FROM forgetting WHERE id = 5 RETURNING id}), '5', 'DELETE of a key');
is(sql(q{SELECT streamfilter_test('forgetting', 5), streamfilter_test('forgetting', 6)}), 'f|t', 'forgets that key');

# ---- transactions ----------------------------------------------------------------------------------

for my $name (qw(horizontal vertical))
{
	my $held = held($name);
	sql(qq{
		BEGIN;
		INSERT INTO rows_$name SELECT i FROM generate_series(10001, 10010) i;
		SAVEPOINT s;
		INSERT INTO rows_$name SELECT i FROM generate_series(10011, 10020) i;
		ROLLBACK TO s;
		INSERT INTO rows_$name SELECT i FROM generate_series(10011, 10012) i;
		SAVEPOINT s;
		INSERT INTO rows_$name SELECT i FROM generate_series(10013, 10014) i;
		RELEASE s;
		SAVEPOINT s;
		INSERT INTO rows_$name SELECT i FROM generate_series(10015, 10016) i;
		ROLLBACK TO s;
		COMMIT;});
	is(sql(qq{SELECT count(*), count(*) FILTER (WHERE streamfilter_test('$name', i)), (SELECT count(*) FROM rows_$name)
	          FROM generate_series(10001, 10020) i
	          WHERE streamfilter_test('$name', i) = (i <= 10014)}),
		'20|14|14', "$name: savepoints are followed");
	sql(qq{BEGIN; INSERT INTO $name SELECT i FROM generate_series(20001, 20600) i; ROLLBACK;});
	is(known($name, 20001, 20600), 0, "$name: a rollback leaves nothing");
	sql(qq{DO \$\$ BEGIN
	         INSERT INTO rows_$name VALUES (30001);
	         BEGIN
	           INSERT INTO rows_$name VALUES (30002), (30003);
	           PERFORM 1 / 0;
	         EXCEPTION WHEN division_by_zero THEN NULL;
	         END;
	         INSERT INTO rows_$name VALUES (30003);
	       END \$\$});
	is(sql("SELECT array_agg(i) FROM generate_series(30000, 30004) i WHERE streamfilter_test('$name', i)"),
		'{30001,30003}', "$name: exceptions are followed");
	like(held($name), qr/\|0$/, "$name: nothing stays in flight");
}
my ($ret, $out, $err) = $node->psql('postgres', q{BEGIN; INSERT INTO horizontal VALUES (40001); PREPARE TRANSACTION 'x'});
like($err, qr/cannot PREPARE a transaction that has changed filters on other servers/, 'PREPARE is refused');
is(knows('horizontal', 40001), 'f', 'and nothing remembered');
sql('TRUNCATE diced');
is(known('diced', 1, 100), 0, 'TRUNCATE');
like(said(q{SELECT streamfilter_value('horizontal')}), qr/HINT:  Use it there/, 'the state of several servers is refused with a hint');

# ---- a second producer -----------------------------------------------------------------------------

($ret, $out, $err) = $node->psql('other',
	server_sql('first', $holder{a}, $timeouts) . 'IMPORT FOREIGN SCHEMA public FROM SERVER first INTO public');
like($err, qr/has slices on a server that is not known here/, 'IMPORT names servers that are missing');
like($err, qr/HINT:  CREATE SERVER b FOREIGN DATA WRAPPER streamfilter OPTIONS \(host '.*', port '\d+', dbname 'postgres'\)/, 'and where they are');
other(server_sql('b', $holder{b}, $timeouts) . 'IMPORT FOREIGN SCHEMA public EXCEPT (timed) FROM SERVER first INTO public');
is(other(q{SELECT string_agg(format_type(atttypid, atttypmod), ',' ORDER BY attnum) FROM pg_attribute
           WHERE attrelid = 'single'::regclass AND attnum > 0}), 'integer,text', 'columns are those of the producer');
is(other(q{SELECT streamfilter_test('single', 1, 'x'), streamfilter_test('vertical', 10001),
                  streamfilter_test('horizontal', 10001), streamfilter_test('horizontal', 10018)}),
	't|t|t|f', 'an imported filter knows the keys');

is(other(q{SELECT attfdwoptions FROM pg_attribute WHERE attrelid = 'numbered'::regclass AND attname = 'ts'}), '{role=time,unit=ms}',
	'IMPORT takes over the unit of times');

# Equal keys from two sides at once, in the same order: exactly one of each is kept.
for my $name (qw(horizontal vertical pipelined))
{
	other(qq{CREATE TABLE rows_$name (id int);
	         CREATE TRIGGER zz BEFORE INSERT ON rows_$name
	           FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$name')});
	my $script = qq{
		DO \$\$ BEGIN
		  FOR i IN 0 .. 19 LOOP
		    INSERT INTO rows_$name SELECT 50000 + i * 20 + j FROM generate_series(1, 20) j ORDER BY 1;
		    COMMIT;
		  END LOOP;
		END \$\$;};
	my @runs = map {
		IPC::Run::start([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($_), '-c', $script ])
	} qw(postgres other);
	my $fine = 1;
	$fine &= $_->finish for @runs;
	ok($fine, "$name: two producers at once");
	my @rows = map { split /\n/, $_ } sql("SELECT id FROM rows_$name WHERE id > 50000"),
	  other("SELECT id FROM rows_$name WHERE id > 50000");
	my %distinct = map { $_ => 1 } @rows;
	is(scalar(@rows) . '|' . scalar(keys %distinct), '400|400', "$name: every key is kept once");
}

# ---- waiting and cancelling ------------------------------------------------------------------------

my $holding = $node->background_psql('other', on_error_stop => 0);
$holding->query_safe(q{BEGIN; INSERT INTO horizontal VALUES (60001)});
my $start = time;
like(said(q{SET statement_timeout = '500ms'; INSERT INTO horizontal VALUES (60001)}), qr/canceling statement due to statement timeout/, 'who waits for a key there can be cancelled');
cmp_ok(time - $start, '<=', 3, 'at once');
for my $holder (values %holder)
{
	ok($holder->poll_query_until('postgres',
			q{SELECT count(*) = 0 FROM pg_stat_activity
			  WHERE wait_event_type = 'Lock' AND application_name = 'streamfilter'}),
		'and nobody waits there any more');
}
sql(q{ALTER SERVER a OPTIONS (SET timeout '1s'); ALTER SERVER b OPTIONS (SET timeout '1s')});
like(said('INSERT INTO horizontal VALUES (60001)'), qr/ERROR:  canceling statement due to lock timeout/, 'waiting too long is an error, and no loss');
is(sql('SELECT bool_or(lost) FROM streamfilter_slices'), 'f', 'the server is not lost');
end_session($holding, 'ROLLBACK');
sql(q{ALTER SERVER a OPTIONS (SET timeout '4s'); ALTER SERVER b OPTIONS (SET timeout '4s')});

# ---- passwords and mistakes -----------------------------------------------------------------------

$holder{a}->safe_psql('postgres', q{
	CREATE ROLE holder LOGIN PASSWORD 'right-secret';
	GRANT USAGE ON FOREIGN SERVER streamfilter TO holder; GRANT CREATE ON SCHEMA public TO holder});
my $hba = slurp_file($holder{a}->data_dir . '/pg_hba.conf');
PostgreSQL::Test::Utils::append_to_file($holder{a}->data_dir . '/pg_hba.new', "local all holder scram-sha-256\n$hba");
rename($holder{a}->data_dir . '/pg_hba.new', $holder{a}->data_dir . '/pg_hba.conf') or die $!;
$holder{a}->reload;
sql(q{CREATE ROLE plain LOGIN; GRANT USAGE ON FOREIGN SERVER a TO plain; GRANT ALL ON SCHEMA public TO plain;
      CREATE USER MAPPING FOR plain SERVER a OPTIONS (user 'holder')});
my $plain = q{SET ROLE plain; };
sql($plain . q{CREATE FOREIGN TABLE of_plain (id int) SERVER a OPTIONS (kind 'bloom', memory '64kB', k '4')});
like(said(q{SELECT streamfilter_seen('of_plain', 1)}), qr/a password is required to connect to server "a"/, 'who is no superuser needs a password');
sql(q{ALTER USER MAPPING FOR plain SERVER a OPTIONS (ADD password 'wrong-secret')});
($ret, $out, $err) = $node->psql('postgres', q{SELECT streamfilter_seen('of_plain', 1)});
like($err, qr/could not connect to server "a".*password authentication failed/s, 'wrong password');
unlike($err, qr/secret/, 'which no error shows');
sql(q{ALTER USER MAPPING FOR plain SERVER a OPTIONS (SET password 'right-secret')});
is(sql($plain . q{SELECT streamfilter_seen('of_plain', 1), streamfilter_seen('of_plain', 1)}), 'f|t', 'right password');
sql(q{ALTER USER MAPPING FOR plain SERVER a OPTIONS (SET user 'postgres', SET password 'x')})
  if sql('SELECT current_user', $holder{a}) eq 'postgres';
like(said(q{SELECT streamfilter_seen('of_plain', 2)}), qr/a password is required/, 'a password that is not asked for does not count');
($ret, $out, $err) = $node->psql('postgres',
	q{CREATE SERVER nowhere FOREIGN DATA WRAPPER streamfilter OPTIONS (host '/nonexistent', connect_timeout '1s');
	  CREATE USER MAPPING FOR CURRENT_USER SERVER nowhere;
	  CREATE FOREIGN TABLE lost (id int) SERVER nowhere OPTIONS (kind 'bloom', memory '64kB', k '4');
	  SELECT streamfilter_seen('lost', 1), streamfilter_seen('lost', 1);});
is($out, 'f|f', 'a server that is nowhere is lost');
like($err, qr/WARNING:  server "nowhere" is lost/, 'with a warning');
like(said(q{CREATE SERVER wrong FOREIGN DATA WRAPPER streamfilter OPTIONS (host '} . $holder{a}->host
	  . q{', port '} . $holder{a}->port . q{', dbname 'no_such');
	  CREATE USER MAPPING FOR CURRENT_USER SERVER wrong;
	  CREATE FOREIGN TABLE wrong (id int) SERVER wrong OPTIONS (kind 'bloom', memory '64kB', k '4');
	  SELECT streamfilter_seen('wrong', 1);}), qr/ERROR:  could not connect to server "wrong".*database "no_such" does not exist/s, 'no such database');

# A batch that waits for several transactions, each in time but all together too long: an error, no loss.
sql(server_sql('patient', $holder{a}, q{connect_timeout '1s', timeout '2s'})
	  . q{CREATE FOREIGN TABLE waits (id int) SERVER patient OPTIONS (kind 'bloom', memory '64kB', k '4')});
sql('INSERT INTO waits VALUES (0)');
my @holding = map {
	IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c',
			sprintf('BEGIN; INSERT INTO waits VALUES (%d); SELECT pg_sleep(%.1f); COMMIT', $_, 0.3 + 1.2 * $_) ],
		'>', '/dev/null', IPC::Run::timeout($limit))
} 1 .. 2;
select(undef, undef, undef, 0.3);
unlike(said('INSERT INTO waits SELECT generate_series(1, 3)'), qr/is lost/, 'a server that waits is not lost');
$_->finish for @holding;

# What others have written into option producer.
for my $producer ('{"columns": [{}]}', '{"columns": [{"name": "id"}], "options": {"kind": null}}',
	'{"columns": [{"name": "id", "type": "integer"}], "options": {"servers": "x"}, "servers": [{"host": null}]}')
{
	$holder{a}->safe_psql('postgres', qq{CREATE SCHEMA odd;
		CREATE FOREIGN TABLE odd.odd (hash bigint) SERVER streamfilter
		  OPTIONS (kind 'bloom', memory '64kB', k '4', producer '$producer')});
	like(said('IMPORT FOREIGN SCHEMA odd FROM SERVER a INTO public'), qr/ERROR:  server "a" gives an incomplete definition of filter "odd"/, "import of $producer");
	sql('DROP SCHEMA odd CASCADE', $holder{a});
}

# A connection that ends while it is idle is no lost server.
sql(q{ALTER SERVER a OPTIONS (ADD idle_timeout '50ms')});
($ret, $out, $err) = $node->psql('postgres', q{SELECT streamfilter_seen('single', 70, 'idle');
	SELECT pg_sleep(0.5)::text = ''; SELECT streamfilter_seen('single', 70, 'idle')});
is("$out|$err", "f\nt\nt|", 'a connection that has ended while idle is made again');
sql('ALTER SERVER a OPTIONS (DROP idle_timeout)');

# streamfilter_disconnect() closes what the transaction does not need; what follows connects again, without a word.
my $ours = q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'streamfilter'};
my $session = $node->background_psql('postgres', on_error_stop => 0);
is($session->query('SELECT streamfilter_disconnect()'), '0', 'no connection');
$session->query(q{SELECT streamfilter_test('single', 1, 'kept')});
is(sql($ours, $holder{a}), '1', 'a session has a connection');
is($session->query('SELECT streamfilter_disconnect()'), '1', '... and closes it');
ok($holder{a}->poll_query_until('postgres', $ours, '0'), '... so that no session is left there');
is($session->query(q{BEGIN; SELECT streamfilter_seen('single', 71, 'kept'); SELECT streamfilter_disconnect(); COMMIT;
	SELECT streamfilter_test('single', 71, 'kept'); SELECT streamfilter_disconnect()}), "f\n0\nt\n1", 'that of a transaction stays to its end');
is($session->{stderr}, '', 'without a word');
$session->quit;

# A key whose row is not stored is taken back there, from each of its probes.
for my $place ('SERVER a OPTIONS (', "SERVER streamfilter OPTIONS (servers 'a,b', slices '6', slicing 'vertical', ")
{
	sql("CREATE FOREIGN TABLE seen_rows (id int) ${place}kind 'bloom', memory '512kB', k '10');
		CREATE TABLE judged_rows (id int, code int UNIQUE);
		CREATE TRIGGER zz BEFORE INSERT ON judged_rows FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_rows');
		INSERT INTO judged_rows VALUES (1, 1), (2, 1), (2, 2), (3, 2) ON CONFLICT DO NOTHING;
		INSERT INTO judged_rows SELECT 10 + i / 3, 10 + i / 4 FROM generate_series(0, 11) i ON CONFLICT DO NOTHING");
	is(sql('SELECT string_agg(id::text, $$ $$ ORDER BY id) FROM judged_rows'), '1 2 10 11 12', 'stored');
	is(sql(q{SELECT string_agg(i::text, ' ' ORDER BY i) FROM generate_series(1, 20) i WHERE streamfilter_test('seen_rows', i)}), '1 2 10 11 12',
		'... and remembered');
	sql('DROP TABLE judged_rows; DROP FOREIGN TABLE seen_rows');
}

like(said('DROP SERVER b'), qr/cannot drop server b because other objects depend on it/, 'filters depend on their servers');

# ==== ALTER of option servers =========================================================================================
# ALTER brings no filter to other servers, or back: its keys would stay behind. And who may not connect is told how.

my $refused = qr/ERROR:  option "servers" of filter "f" cannot be changed\nDETAIL:.*\nHINT:  Make another filter/;
my $make = q{CREATE FOREIGN TABLE f (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB')};
sql("$make; INSERT INTO f VALUES (1)");
like(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD servers 'a')}), $refused, 'to a server');
is(knows('f', 1), 't', 'it knows what it knew');
$node->restart;
like(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD servers 'a')}), $refused, 'nor one that is not restored yet');
is(knows('f', 1), 't', '... which knows what it knew');

sql("DROP FOREIGN TABLE f; ${\ ($make =~ s/\)$/, servers 'a')/r)}; INSERT INTO f VALUES (1)");
like(said(q{ALTER FOREIGN TABLE f OPTIONS (DROP servers)}), $refused, 'and back');
is(knows('f', 1), 't', '... it knows what it knew');
is(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD mode 'shadow')}), '', 'the mode is changed');

# Told before anything is known of the server.
is(said(q{SELECT streamfilter_test('f', 1)}), '', 'with a user mapping');
sql('DROP USER MAPPING FOR CURRENT_USER SERVER a');
like(said(q{SELECT streamfilter_test('f', 1)}), qr/HINT:  Type: CREATE USER MAPPING FOR \w+ SERVER a OPTIONS/, 'without one, the HINT names the server');
done_testing();
