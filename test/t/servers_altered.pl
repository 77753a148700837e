# Statements about a filter over several servers act on all of them in one transaction, or fail and say what to type.
use Sf;
use List::Util qw(sum);
use Time::HiRes;

my %node = map { $_ => start_node($_, "streamfilter.max_filters = 200\n") } qw(p a b c);
my @holders = @node{qw(a b c)};

# What the servers have of a filter, and its memory in all.
sub relations
{
	my ($name) = @_;
	return join ' ', map { my $holder = $_;
		map { $holder->name . ":$_" } split /\n/, sql("SELECT relname FROM pg_class WHERE relkind = 'f' AND relname = '$name'", $holder) } @holders;
}

sub memories
{
	my ($name) = @_;
	return join ' ', map { $_->safe_psql('postgres', "SELECT string_agg(pg_size_pretty(memory), ' ' ORDER BY filter::text) FROM streamfilter_stats
		WHERE filter::text ~ '^.?$name'") } @holders;
}

sql(join '', map { server_sql($_, $node{$_}, q{connect_timeout '2s', timeout '8s'}) } qw(a b c));

# ---- ALTER ---------------------------------------------------------------------------------------------------

my %kinds = (
	bloom => q{kind 'bloom', memory '1MB', fpr '0.001'},
	lru   => q{kind 'lru', memory '1MB'},
	clq   => q{kind 'clq', memory '1MB'},
	vqf   => q{kind 'vqf', memory '1MB'});
for my $kind (sort keys %kinds)
{
	sql("CREATE FOREIGN TABLE r_$kind (id int) SERVER streamfilter OPTIONS (servers 'a, b, c', $kinds{$kind});
	     INSERT INTO r_$kind SELECT generate_series(1, 4000)");
	my $known = sql("SELECT string_agg(streamfilter_test('r_$kind', i)::int::text, '' ORDER BY i) FROM generate_series(1, 4000) i");
	like(said("ALTER FOREIGN TABLE r_$kind OPTIONS (SET memory '2MB')"),
		qr/ERROR:  option "memory" of filter "r_$kind" cannot be changed.*HINT:  Make another filter.*streamfilter_definition\('public.r_$kind'\)/s, "$kind: another size is refused");
	like(said("CALL streamfilter_resize('r_$kind', '2MB')"), qr/ERROR:  filter "r_$kind" cannot be resized.*HINT:  Make another filter, fill it/s, "$kind: by streamfilter_resize(), too");
	like(($node{a}->psql('postgres', "CALL streamfilter_resize('r_$kind', '2MB')"))[2], qr/It is a part of a filter on another server.*HINT:  Make another filter there/s,
		"$kind: of a part, too");
	# What the HINT says: another filter of twice the size.
	my $definition = sql("SELECT streamfilter_definition('r_$kind')") =~ s/\br_$kind\b/t_$kind/gr =~ s/'1MB'/'2MB'/r;
	sql($definition);
	sql("CREATE TABLE rows_$kind AS SELECT generate_series(1, 4000) AS id; SELECT streamfilter_warm('t_$kind', 'rows_$kind')");
	is(known("t_$kind", 1, 4000), '4000', "$kind: what the HINT says gives one that knows as much");
	is(sql("SELECT string_agg(streamfilter_test('r_$kind', i)::int::text, '' ORDER BY i) FROM generate_series(1, 4000) i"), $known, "$kind: and the first knows what it knew");
}

sql(q{CREATE FOREIGN TABLE kept (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'bloom', memory '1MB', keys '10000', slices '4');
      INSERT INTO kept SELECT generate_series(1, 1000)});
sql(q{ALTER FOREIGN TABLE kept OPTIONS (ADD persistence 'unlogged', ADD conflict 'admit')});
is($node{b}->safe_psql('postgres', q{SELECT string_agg(option_value, ' ' ORDER BY option_name) FROM pg_foreign_table, pg_options_to_table(ftoptions)
	WHERE ftrelid = 'kept'::regclass AND option_name IN ('conflict', 'persistence')}), 'admit unlogged', 'conflict and persistence reach the servers');
is(known('kept', 1, 1000), '1000', '... and the filter goes on');
like(said("ALTER FOREIGN TABLE kept $_"), qr/ERROR:  .* of filter "kept" cannot be changed.*HINT:  Make another filter/s, "$_ is refused")
	for q{OPTIONS (SET slices '8')}, q{OPTIONS (ADD seed '8')}, q{OPTIONS (SET servers 'b, a')}, 'ALTER COLUMN id TYPE text';
is(known('kept', 1, 1000), '1000', 'nothing has happened');
sql(q{ALTER FOREIGN TABLE kept OPTIONS (ADD mode 'shadow')});
is(known('kept', 1, 1000), '1000', 'the mode is changed here');

# ---- functions about all of a filter ------------------------------------------------------------------------------

# On how many of its relations there is something saved; how many bytes.
sub saved
{
	my ($name, $what) = @_;
	my @found = map { $_->safe_psql('postgres', "SELECT coalesce(sum($what), 0) FROM streamfilter_stats
		WHERE filter::text ~ '^.?$name\\M'") } @holders;
	return sum(@found);
}

sql(q{CREATE FOREIGN TABLE stored (id int) SERVER streamfilter OPTIONS (servers 'a, b, c', kind 'lru', memory '512kB', slices '4');
      INSERT INTO stored SELECT generate_series(1, 1000)});
cmp_ok(saved('stored', '(last_saved IS NOT NULL)::int'), '<', 3, 'not all is saved');
sql(q{SELECT streamfilter_save('stored')});
is(saved('stored', '(last_saved IS NOT NULL)::int'), 3, 'streamfilter_save() reaches all relations');
my ($forgot, $bytes, $told) = $node{p}->psql('postgres', q{SELECT streamfilter_forget_saved('stored')});
cmp_ok($bytes, '>', 3 * 1000, 'streamfilter_forget_saved() says how much it was');
like($told, qr/NOTICE:  nothing is saved of filter "stored" on its servers now.*HINT:/s, '... and that it was there');
is(sql(q{SELECT streamfilter_forget_saved('stored')}), 0, 'nothing is left');
sql(q{SELECT streamfilter_save()}, $_) for @holders;
sql(q{BEGIN; SELECT streamfilter_forget_saved('stored'); ROLLBACK});
cmp_ok(sql(q{SELECT streamfilter_forget_saved('stored')}), '>', 3 * 1000, 'a rollback brings back what all of them have saved');
sql('CREATE ROLE weak LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO weak', $_) for @holders;
sql(q{CREATE ROLE weak; GRANT USAGE ON FOREIGN SERVER a, b, c, streamfilter TO weak; ALTER FOREIGN TABLE stored OWNER TO weak});
sql("CREATE USER MAPPING FOR weak SERVER $_ OPTIONS (user 'weak', password_required 'false')") for qw(a b c);
for my $function (qw(streamfilter_save streamfilter_forget_saved streamfilter_stats_reset))
{
	like(said("SET ROLE weak; SELECT $function('stored')"), qr/ERROR:  must be owner of foreign table stored.*CONTEXT:  server "a"/s, "$function() needs the owner there");
}
sql(q{ALTER FOREIGN TABLE stored OWNER TO CURRENT_USER});
sql(q{SELECT streamfilter_stats_reset('stored')});
is(saved('stored', 'tested'), 0, 'streamfilter_stats_reset() reaches all relations');

# ---- what a server says of its part is said here ----------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE crowded (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'bloom', keys '1000', fpr '0.01');
      INSERT INTO crowded SELECT generate_series(1, 20000)});
like(said(q{SELECT count(*) FROM generate_series(1, 20000) i WHERE streamfilter_seen('crowded', i)}),
	qr/WARNING:  filter "crowded" holds more keys on server "a".*HINT:  Empty it with TRUNCATE crowded, or make a larger filter/s, 'a server that holds too much');
cmp_ok(sql(q{SELECT passed_overfull FROM streamfilter_stats WHERE filter = 'crowded'::regclass}, $node{a}), '>', 0, '... which counts it');
is(sql(q{SELECT late IS NULL AND passed_overfull IS NULL AND tested > 0 FROM streamfilter_stats WHERE filter = 'crowded'::regclass}), 't', '... and nobody else');
sql('DROP FOREIGN TABLE crowded');

sql(q{CREATE FOREIGN TABLE timed (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
        OPTIONS (servers 'a, b', kind 'timer', window '10 minutes', keys '1000', memory '64kB', fpr '0.01');
      INSERT INTO timed SELECT i, now() FROM generate_series(1, 50) i});
my $late = said(q{INSERT INTO timed SELECT i, now() - interval '1 hour' FROM generate_series(1001, 1050) i; INSERT INTO timed VALUES (2000, now() - interval '1 hour')});
like($late, qr/WARNING:  an event comes too late for filter "timed" on server "$_"/, "server $_ tells of late events") for qw(a b);
is(scalar(() = $late =~ /WARNING/g), 2, '... each once');
cmp_ok(sql(q{SELECT late FROM streamfilter_stats WHERE filter = 'timed'::regclass}, $node{a}), '>', 0, '... and counts them');
sql('DROP FOREIGN TABLE timed');

# ---- names -----------------------------------------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE old (id int) SERVER streamfilter OPTIONS (servers 'a, b, c', kind 'lru', memory '512kB', slices '4');
      INSERT INTO old SELECT generate_series(1, 1000)});
sql(q{BEGIN; ALTER FOREIGN TABLE old RENAME TO new; ROLLBACK});
is(relations('old'), 'a:old b:old c:old', 'RENAME is undone as a whole');
like(said(q{ALTER FOREIGN TABLE old RENAME TO new}), qr/NOTICE:  .*renamed on its servers.*HINT:/s, 'RENAME says so');
is(relations('old') . relations('new'), 'a:new b:new c:new', 'RENAME reaches all relations');
is(known('new', 1, 1000), '1000', '... with what they know');
sql(q{CREATE SCHEMA s});
like(said(q{ALTER FOREIGN TABLE new SET SCHEMA s}), qr/ERROR:  schema "s" does not exist.*server "a"/s, 'SET SCHEMA fails where there is none');
sql('CREATE SCHEMA s; CREATE SCHEMA t', $_) for @holders;
sql(q{ALTER FOREIGN TABLE new SET SCHEMA s});
is(known('s.new', 1, 1000), '1000', 'SET SCHEMA reaches all servers');
sql(q{ALTER SCHEMA s RENAME TO t});
is(known('t.new', 1, 1000), '1000', 'so does RENAME of the schema');
sql(q{CREATE ROLE owner});
like(said(q{ALTER FOREIGN TABLE t.new OWNER TO owner}), qr/ERROR:  .*HINT:  .*(CREATE USER MAPPING FOR owner|GRANT)|USAGE/s, 'OWNER says what the new one needs');
sql(q{GRANT USAGE ON FOREIGN SERVER a, b, c TO owner});
like(said(q{ALTER FOREIGN TABLE t.new OWNER TO owner}), qr/WARNING:  role "owner".*cannot connect.*HINT:  .*CREATE USER MAPPING FOR owner SERVER a/s, '... and what to type');

sql(q{ALTER FOREIGN TABLE t.new OWNER TO CURRENT_USER});

# ---- TRUNCATE, DROP, and a new filter of the same name -----------------------------------------------------------

sql(q{TRUNCATE t.new; INSERT INTO t.new SELECT generate_series(1, 10)});
is(known('t.new', 1, 1000), '10', 'TRUNCATE reaches all parts');
sql(q{BEGIN; DROP FOREIGN TABLE t.new; ROLLBACK});
is(known('t.new', 1, 10), '10', 'DROP is undone as a whole');
sql(q{DROP FOREIGN TABLE t.new});
is(relations('new'), '', 'DROP reaches all relations');
sql(q{CREATE TABLE clicks (id int);
      CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'bloom', memory '512kB', k '4');
      CREATE TRIGGER zz BEFORE INSERT ON clicks FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
      INSERT INTO clicks SELECT generate_series(1, 1000);
      DROP TABLE clicks; DROP FOREIGN TABLE seen;
      CREATE TABLE clicks (id int);
      CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'bloom', memory '512kB', k '4');
      CREATE TRIGGER zz BEFORE INSERT ON clicks FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
      INSERT INTO clicks SELECT generate_series(1, 1000)});
is(sql('SELECT count(*) FROM clicks'), '1000', 'a new filter of the same name stores all rows');
like(said(q{SET streamfilter.mode = off; DROP FOREIGN TABLE seen CASCADE}), qr/WARNING:  .*dropped here only.*HINT:  .*DROP FOREIGN TABLE public.seen/s,
	'in mode off, DROP acts here only, and says so');
is(relations('seen'), 'a:seen b:seen', '... so another producer goes on');
sql('DROP FOREIGN TABLE seen', $_) for @holders[0, 1];

# ---- a server is lost ---------------------------------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE lost (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'bloom', memory '512kB', k '4');
      INSERT INTO lost SELECT generate_series(1, 100)});
$node{b}->stop('immediate');
for my $statement ('TRUNCATE lost', q{ALTER FOREIGN TABLE lost OPTIONS (ADD conflict 'admit')}, 'ALTER FOREIGN TABLE lost RENAME TO found',
	map { "SELECT $_('lost')" } qw(streamfilter_save streamfilter_forget_saved streamfilter_stats_reset))
{
	like(said($statement), qr/ERROR:  cannot .* filter "(lost|found)" now.*DETAIL:  Server "b" is lost.*HINT:/s, "$statement fails, and says what to do");
}
$node{b}->start;
ok(wait_for(q{SELECT count(*) = 100 FROM generate_series(1, 100) i WHERE streamfilter_test('lost', i)}), 'nothing has happened');

$node{b}->stop('immediate');
like(said(q{DROP FOREIGN TABLE lost}), qr/WARNING:  .*stays on server "b", which is lost.*HINT:  .*DROP FOREIGN TABLE public.lost/s, 'DROP says what stays');
$node{b}->start;
my $found = said(q{CREATE TABLE arrivals (id int);
      CREATE FOREIGN TABLE lost (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'bloom', memory '512kB', k '4');
      CREATE TRIGGER zz BEFORE INSERT ON arrivals FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('lost')});
for (1 .. 60)
{
	last if $found =~ /starts empty/;
	Time::HiRes::sleep(0.5);
	$found .= said(q{SELECT count(streamfilter_test('lost', i)) FROM generate_series(1, 100) i});
}
sql('INSERT INTO arrivals SELECT generate_series(1, 100)');
like($found, qr/WARNING:  filter "lost" starts empty on server "b"/, 'a new filter of the name does not go on with it');
is(sql('SELECT count(*) FROM arrivals'), '100', '... so no row is lost');

# Two producers: what the first has made is not dropped with the definition of the second.
my $q = start_node('q');
$q->safe_psql('postgres', join '', map { server_sql($_, $node{$_}, q{timeout '8s'}) } qw(a b));
$q->safe_psql('postgres', q{CREATE FOREIGN TABLE lost (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'bloom', memory '512kB', k '4');
	SELECT streamfilter_test('lost', 1)});
like(said('DROP FOREIGN TABLE lost', $q), qr/NOTICE:  filter "lost" stays on server "a" as it is.*another producer.*HINT:  .*DROP FOREIGN TABLE/s, 'DROP by another producer leaves it there, and says so');
is(known('lost', 1, 100), '100', '... the first goes on');

done_testing();
