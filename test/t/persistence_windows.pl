# Option persistence is part of the transaction: what is saved is what the definition says at commit.
# flavours: faults
use Sf;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	max_prepared_transactions = 5});

sub create { return "CREATE FOREIGN TABLE $_[0] (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB', persistence '$_[1]')"; }
sub fill { return "INSERT INTO $_[0] SELECT generate_series($_[1], $_[2])"; }
sub alter { return "ALTER FOREIGN TABLE $_[0] OPTIONS (SET persistence '$_[1]')"; }

# ---- ALTER among changes ----------------------------------------------------------------------------------------------

sql('BEGIN;' . join(';', create('a', 'unlogged'), fill('a', 1, 100), alter('a', 'logged'), fill('a', 101, 200)) . '; COMMIT');
sql(create('b', 'logged') . ';' . fill('b', 1, 100));
sql('BEGIN; SAVEPOINT s;' . alter('b', 'unlogged') . '; ROLLBACK TO s;' . fill('b', 101, 200) . '; COMMIT');
sql(create('c', 'logged') . ';' . fill('c', 1, 100));
sql('BEGIN; SAVEPOINT s;' . alter('c', 'unlogged') . ';' . fill('c', 1001, 1100) . '; ROLLBACK TO s;' . fill('c', 101, 200) . '; COMMIT');
sql(create('d', 'unlogged') . ';' . fill('d', 1, 100));
sql('BEGIN;' . fill('d', 101, 150) . ';' . alter('d', 'logged') . ';' . fill('d', 151, 200) . '; COMMIT;' . fill('d', 201, 250));
sql(create('e', 'unlogged') . ';' . fill('e', 1, 100));
sql('BEGIN; SAVEPOINT s;' . alter('e', 'logged') . '; ROLLBACK TO s;' . fill('e', 101, 200) . '; COMMIT');
sql(create('f', 'logged') . ';' . fill('f', 1, 100));
sql('BEGIN;' . fill('f', 101, 150) . ';' . alter('f', 'unlogged') . ';' . fill('f', 151, 200) . '; COMMIT;' . fill('f', 201, 250));
crash();
is(known('a', 1, 200), 200, 'created unlogged, filled, altered to logged, filled: all is there after a crash');
is(known('b', 1, 200), 200, 'an ALTER to unlogged that was rolled back: what was added afterwards is logged');
is(known('c', 1, 200), 200, 'and what was added in between leaves no trace');
is(known('c', 1001, 1100), 0, 'nor a key');
is(known('d', 1, 250), 250, 'an unlogged one becomes logged in the middle of a transaction');
is(known('e', 1, 200), 0, 'an ALTER to logged that was rolled back: still unlogged');
is(known('f', 1, 250), 0, 'a logged one becomes unlogged');

# ---- PREPARE where more than rows of the log would be written ------------------------------------------------------------

sub refused
{
	my ($statements, $pattern, $what) = @_;
	like(said("BEGIN; $statements; PREPARE TRANSACTION 'p'"), $pattern, $what);
	is(sql('SELECT count(*) FROM pg_prepared_xacts'), 0, 'nothing is prepared');
}

# Made logged where the event trigger does not save it.
sql(create('g', 'unlogged') . ';' . fill('g', 1, 100));
sql(q{SET session_replication_role = replica;} . alter('g', 'logged'));
refused(fill('g', 101, 200),
	qr/ERROR:  cannot PREPARE a transaction that replaces what is saved of filter "g".*HINT:  Run streamfilter_save\('g'\)/s,
	'a transaction that would write an image is not prepared');
sql(q{SELECT streamfilter_save('g')});
sql('BEGIN;' . fill('g', 101, 200) . q{; PREPARE TRANSACTION 'p'});
crash();
sql(q{COMMIT PREPARED 'p'});
is(known('g', 1, 200), 200, 'after a save it is');
crash();
is(known('g', 1, 200), 200, 'and its keys survive');

refused(q{SELECT streamfilter_save('g')}, qr/ERROR:  cannot PREPARE a transaction that replaces what is saved of filter "g"/,
	'a save is not prepared');
sql(q{BEGIN; SAVEPOINT s; SELECT streamfilter_save('g'); ROLLBACK TO s;} . fill('g', 201, 210)
	. q{; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'});
is(known('g', 201, 210), 10, 'one that was taken back is');

# What a later DROP takes away anyway is no obstacle.
sql(create('gone', 'logged') . ';' . fill('gone', 1, 10));
for my $change ('SELECT streamfilter_save', 'SELECT streamfilter_forget_saved')
{
	sql(qq{BEGIN; $change('gone'); DROP FOREIGN TABLE gone; PREPARE TRANSACTION 'p'});
	is(sql('SELECT count(*) FROM pg_prepared_xacts'), 1, "$change and DROP are prepared");
	sql(q{ROLLBACK PREPARED 'p'});
	crash();
	is(known('gone', 1, 10), 10, 'taken back, the keys are still saved');
}
sql(q{BEGIN; SELECT streamfilter_save('gone'); DROP FOREIGN TABLE gone; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'});
is(sql(q{SELECT count(*) FROM pg_class WHERE relname = 'gone'}), 0, 'and with a commit it is gone');

sql(alter('g', 'unlogged'));
sql('BEGIN;' . fill('g', 401, 500) . q{; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'});
is(known('g', 401, 500), 100, 'the first change after an ALTER to unlogged is prepared');

sql(q{BEGIN; ALTER FOREIGN TABLE g OPTIONS (ADD conflict 'admit'); PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'});
is(sql(q{SELECT 'conflict=admit' = ANY (ftoptions) FROM pg_foreign_table WHERE ftrelid = 'g'::regclass}), 't',
	'an ALTER that no state depends on is prepared');
is(known('g', 401, 500), 100, 'and takes nothing away');
sql(q{BEGIN; ALTER FOREIGN TABLE g OPTIONS (SET persistence 'logged'); PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'});
crash();
is(known('g', 401, 500), 100, 'one that saves it is prepared, too, and lasts');

# ---- last_saved -----------------------------------------------------------------------------------------------------------

sql(create('h', 'logged') . ';' . fill('h', 1, 10));
sql(q{BEGIN; SAVEPOINT s; SELECT streamfilter_save('h'); ROLLBACK TO s; COMMIT});
is(sql(q{SELECT last_saved IS NULL FROM streamfilter_stats WHERE filter = 'h'::regclass}), 't', 'a save that was rolled back is none');
sql(q{BEGIN; SAVEPOINT s; SELECT streamfilter_save('h'); RELEASE s; COMMIT});
is(sql(q{SELECT last_saved IS NULL FROM streamfilter_stats WHERE filter = 'h'::regclass}), 'f', 'one that was kept is one');

# ---- ALTER there and back, of what cannot be kept ------------------------------------------------------------------------

sub resize { return "ALTER FOREIGN TABLE $_[0] OPTIONS (SET memory '$_[1]')"; }
my $test = q{SELECT streamfilter_test('%s', 1)};
for my $persistence ('logged', 'unlogged')
{
	my $n = "there_$persistence";
	my $anew = sub {
		sql("DROP FOREIGN TABLE IF EXISTS $n");
		sql(create($n, $persistence) =~ s/kind 'sqf'/kind 'sqf', fingerprint 'integer', keys '100000'/r . ';' . fill($n, 1, 100)
			. ($persistence eq 'logged' ? ";SELECT streamfilter_save('$n')" : ''));
	};
	# What of the keys 1 to 100 is left, beside one that the transaction adds in the end.
	my $leaves = sub {
		my ($left, $what, @statements) = @_;
		$anew->();
		my (undef, undef, $said) = $node->psql('postgres', join(';', 'BEGIN', @statements, "INSERT INTO $n VALUES (1000)", 'COMMIT'));
		is(known($n, 1, 100) . '|' . known($n, 1000, 1000), "$left|1", "$persistence: $what");
		like($said, qr/WARNING:  filter "$n" starts empty/, 'which is said');
		crash() if $persistence eq 'logged';
		is(known($n, 1, 100) . '|' . known($n, 1000, 1000), "$left|1", "$persistence: $what, and it stays so");
		return $said;
	};
	my $there = resize($n, '128kB');
	my $back = resize($n, '64kB');
	my $use = sprintf $test, $n;
	$leaves->(0, 'there and back, used in between', $there, $use, $back);
	$leaves->(0, 'and used afterwards', $there, $use, $back, $use);
	$leaves->(0, 'there and back', $there, $back);
	like($leaves->(0, 'changed in between', $there, "INSERT INTO $n VALUES (5000)", $back),
		qr/WARNING:  filter "$n" starts empty/, 'what is lost is told');
	is(known($n, 5000, 5000), 0, 'and not known');
	$leaves->(0, 'by way of a third', $there, $use, resize($n, '256kB'), $use, $back);
	$leaves->(0, 'back in a savepoint', $there, $use, 'SAVEPOINT s', $back, $use, 'RELEASE s');
	$leaves->(100, 'there in a savepoint that is undone', 'SAVEPOINT s', $there, $use, 'ROLLBACK TO s');
	$leaves->(100, 'back by a savepoint, after another', 'SAVEPOINT s', $there, $use, 'SAVEPOINT t', $back, 'ROLLBACK TO s');
	$anew->();
	sql(join ';', 'BEGIN', $there, "INSERT INTO $n VALUES (7001)", 'SAVEPOINT s', $back, $use, 'ROLLBACK TO s',
		"INSERT INTO $n VALUES (7002)", 'COMMIT');
	is(known($n, 7001, 7002) . known($n, 1, 100), '20', "$persistence: a way back that is undone");
	crash() if $persistence eq 'logged';
	is(known($n, 7001, 7002) . known($n, 1, 100), '20', "$persistence: and it stays so");
}

# What lay in the memory before does not make a filter look damaged.
sql(q{CREATE FOREIGN TABLE narrow (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', persistence 'unlogged')});
sql(q{INSERT INTO narrow SELECT generate_series(1, 100000)});
sql(q{DROP FOREIGN TABLE narrow; CREATE FOREIGN TABLE narrow (id int) SERVER streamfilter
	OPTIONS (kind 'bloom', memory '1000001', slices '3', persistence 'unlogged'); INSERT INTO narrow SELECT generate_series(1, 100)});
is(sql(q{SELECT streamfilter_value('narrow')::text::streamfilter @> 1}), 't', 'a value of a filter where another was');
$node->restart;
is(known('narrow', 1, 100), 100, 'and a restart');

# ---- a prepared transaction whose keys a restart forgets --------------------------------------------------------------------

sql(create('u', 'unlogged') . ';' . q{BEGIN;} . fill('u', 1, 10) . q{; PREPARE TRANSACTION 'u'});
$node->restart;
is(known('u', 1, 10), 0, 'its keys are forgotten');
sql(q{COMMIT PREPARED 'u'; TRUNCATE u});
crash();
unlike(said(q{SELECT streamfilter_test('u', 1)}), qr/WARNING/, 'emptied on purpose afterwards, nothing is lost by a crash');

# ---- statistics of an unlogged filter --------------------------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE queue (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', persistence 'unlogged');
	INSERT INTO queue SELECT i FROM generate_series(1, 20000) i; INSERT INTO queue SELECT i FROM generate_series(12000, 20000) i});
my $statistics = q{SELECT string_agg(t::text, E'\n') FROM streamfilter_tuning t WHERE filter = 'queue'::regclass};
my $before = sql($statistics);
unlike($before, qr/^\s*$/, 'where repeats are found is counted');
$node->restart;
is(sql($statistics), $before, 'and still known after a clean restart');

done_testing();
