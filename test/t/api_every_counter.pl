# flavours: quick faults
# Every counter of a filter, as streamfilter_counters() lists them: set to a value of its own, it is shown, and is the same
# after whatever it is to outlive; where it begins anew, all do.
use Sf;

my $node = start_node('counters', q{
streamfilter.shared_memory = '16MB'
streamfilter.max_in_flight = 1000
streamfilter.dynamic_memory = 0
max_prepared_transactions = 1
fsync = off});
my $declare = q{CREATE FUNCTION set_counters(filter regclass, counts bigint[]) RETURNS bigint[]
	LANGUAGE c AS '$libdir/streamfilter', 'streamfilter_set_counters'};
my $port = $node->port;
my $host = $node->host;
my $define = qq{
	CREATE FOREIGN TABLE logged (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000');
	CREATE FOREIGN TABLE unlogged (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB', persistence 'unlogged');
	CREATE SERVER there FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'there');
	CREATE USER MAPPING FOR CURRENT_USER SERVER there;
	CREATE FOREIGN TABLE elsewhere (id int) SERVER there OPTIONS (kind 'bloom', memory '64kB', keys '10000')};
my @filters = qw(logged unlogged elsewhere);
sql('CREATE DATABASE there');
sql('CREATE EXTENSION streamfilter', 'there');
sql("$declare; $define");
my @counters = split /\n/, sql(q{SELECT name FROM streamfilter_counters() WHERE counts_of = 'filter'});
cmp_ok(scalar(@counters), '>', 10, 'there are counters');
my %number = map { $counters[$_] => $_ + 1 } 0 .. $#counters;

sub counts { my ($filter, $database) = @_; return sql("SELECT set_counters('$filter', NULL)", $database); }

# Values that differ for filters and for counters.
my $turn = 0;
my %set;

sub set_all
{
	my ($database) = @_;
	for my $filter (@filters)
	{
		++$turn;
		$set{$filter} = '{' . join(',', map { 1000 * $turn + $_ } 1 .. @counters) . '}';
		is(sql("SELECT set_counters('$filter', '$set{$filter}')", $database), $set{$filter}, "counters of $filter are set");
	}
}

sub all_are_kept
{
	my ($what, @which) = @_;
	is(counts($_), $set{$_}, "$what, $_: all counters are what they were") for @which ? @which : @filters;
}

sub reset_times { return sql(q{SELECT string_agg(filter || ' ' || stats_reset, ', ' ORDER BY filter::text) FROM streamfilter_stats}) }

my $zeros = '{' . join(',', map { 0 } @counters) . '}';

# --- From creation on -------------------------------------------------------------------------------------------------

sql("INSERT INTO $_ VALUES (1), (1), (2)") for @filters;
is(sql(q{SELECT count(stats_reset) FROM streamfilter_stats WHERE stats_reset >= now() - interval '1 hour'}), 3,
	'stats_reset is set from the first use on');
set_all();

# --- Each is shown ------------------------------------------------------------------------------------------------------

# In a tree, or as another unit, with the view that has it.
my %shown = (accesses => 'streamfilter_tree', hits => 'streamfilter_tree', lost => 'streamfilter_stats.lost_estimate');
for my $i (0 .. $#counters)
{
	my $name = $counters[$i];
	my $value = 1000 + $i + 1;
	next if $shown{$name};
	is(sql("SELECT $name FROM streamfilter_stats WHERE filter = 'logged'::regclass"), $value, "$name is a column of streamfilter_stats");
	is(sql("SELECT m.value FROM streamfilter_metrics m JOIN streamfilter_counters() c ON c.metric = m.name
		WHERE c.counts_of = 'filter' AND c.name = '$name' AND m.labels ->> 'filter' = 'public.logged'"), $value, '... and a metric');
}
is(sql(q{SELECT string_agg(name, ' ' ORDER BY name) FROM streamfilter_counters(), to_jsonb((SELECT s FROM streamfilter_stats s WHERE filter = 'elsewhere'::regclass)) AS shown
	WHERE counts_of = 'filter' AND shown -> name = 'null'}), 'late passed_overfull', 'what servers keep to themselves is unknown here');
is(sql(q{SELECT count(*) FROM streamfilter_counters() c WHERE unit = '' OR help = ''}), 0, 'each has a unit, and says what it is');
for my $view (qw(trigger slice))
{
	is(sql("SELECT string_agg(name, ' ') FROM streamfilter_counters() WHERE counts_of = '$view' AND name NOT IN
		(SELECT attname FROM pg_attribute WHERE attrelid = 'streamfilter_${view}s'::regclass)"), '', "those of a $view are columns");
}
is(sql(q{SELECT string_agg(format('%s.%s: "%s", not "%s"', v, name, described, help), E'\n')
	FROM (VALUES ('filter', 'streamfilter_stats'::regclass), ('filter', 'streamfilter_tree'), ('filter', 'streamfilter_filters'),
		('trigger', 'streamfilter_triggers'), ('slice', 'streamfilter_slices')) AS views (counts_of, v)
	JOIN streamfilter_counters() USING (counts_of) JOIN pg_attribute ON attrelid = v AND attname = name,
	col_description(v, attnum) AS described WHERE described IS DISTINCT FROM help}), '', 'comments of columns say what the table of counters says');
my $docs = join '', map { slurp_file($_) } glob "$root/docs/*.md $root/docs/*/*.md";
is(join(' ', grep { $docs !~ /`(?:\w+\.)?$_`/ } split /\n/, sql('SELECT DISTINCT name FROM streamfilter_counters()')), '', 'documents describe each');

# --- A clean restart, used afterwards or not -------------------------------------------------------------------------------

my $before = reset_times();
$node->restart;
is(sql(q{SELECT string_agg(tested || ' ' || diverted || ' ' || ahead, ', ' ORDER BY filter::text) FROM streamfilter_stats}),
	join(', ', map { join ' ', (split /[{},]/, $set{$_})[ @number{qw(tested diverted ahead)} ] } sort @filters), 'shown before the first use');
all_are_kept('a clean restart');
is(reset_times(), $before, '... and so is stats_reset');
$node->restart;
all_are_kept('another one, without use in between');
sql("SELECT streamfilter_value('$_')") for qw(logged unlogged);
all_are_kept('the first use');
$node->restart for 1 .. 2;
all_are_kept('restarts after that');
sql("ALTER FOREIGN TABLE $_ OPTIONS (SET memory '128kB')") for qw(logged unlogged);
all_are_kept('a resize as the first use');

# --- A resize, a TRUNCATE, another setting -----------------------------------------------------------------------------------

set_all();
sql("ALTER FOREIGN TABLE $_ OPTIONS (SET memory '256kB')") for qw(logged unlogged);
all_are_kept('a resize');
sql('TRUNCATE logged, unlogged');
all_are_kept('a TRUNCATE');
sql(q{ALTER FOREIGN TABLE unlogged OPTIONS (SET persistence 'logged')});
$node->restart;
all_are_kept('logged instead of unlogged');
sql(q{ALTER FOREIGN TABLE unlogged OPTIONS (SET persistence 'unlogged')});
sql("INSERT INTO unlogged VALUES (5)");
set_all();

# --- A crash --------------------------------------------------------------------------------------------------------------

sql("SELECT streamfilter_save('logged')");
sql('INSERT INTO logged VALUES (7)');
for my $crash ('a crash', 'another one, after a save')
{
	crash();
	is(counts($_), $zeros, "$crash: counters of $_ begin anew") for @filters;
	is(knows('logged', 7), 't', '... not so its keys');
	knows($_, 1) for @filters;
	is(sql(q{SELECT count(*) FROM streamfilter_stats WHERE stats_reset >= pg_postmaster_start_time()}), 3, '... and stats_reset says when');
	sql("SELECT streamfilter_save('logged')");
}

# --- Reset ------------------------------------------------------------------------------------------------------------------

set_all();
$before = sql('SELECT now()');
sql("SELECT streamfilter_stats_reset('logged')");
is(counts('logged'), $zeros, 'all of them are reset');
all_are_kept('... those of others are not', qw(unlogged elsewhere));
sql('SELECT streamfilter_stats_reset()');
is(counts($_), $zeros, "reset together: $_") for @filters;
is(sql("SELECT count(*) FROM streamfilter_stats WHERE stats_reset > '$before'"), 3, '... and stats_reset says when');
$node->restart;
is(counts($_), $zeros, "a restart after that: $_") for @filters;

# --- Of triggers and slices: counted, shown, a metric; reset, and begun anew by every start -----------------------------------

sql(q{CREATE FOREIGN TABLE shadow (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', mode 'shadow');
	CREATE FOREIGN TABLE lost (id int) SERVER there OPTIONS (kind 'bloom', memory '64kB', lost_slice 'duplicate');
	CREATE TABLE repeats (id int); CREATE TABLE discards (id int); CREATE TABLE diverts (id int); CREATE TABLE passes (id int);
	CREATE TRIGGER zz BEFORE INSERT ON discards FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('logged', 'id');
	CREATE TRIGGER zz BEFORE INSERT ON diverts FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('logged', 'repeats', 'id');
	CREATE TRIGGER zz BEFORE INSERT ON passes FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('shadow', 'id')});

sub use_all
{
	sql("INSERT INTO $_ VALUES (1), (1), (2)") for qw(discards diverts passes elsewhere lost);
	sql("ALTER SERVER there OPTIONS (SET port '1')");
	sql('INSERT INTO lost VALUES (3)');
	sql("ALTER SERVER there OPTIONS (SET port '$port')");
}

sub sums
{
	my ($view) = @_;
	return sql("SELECT c.name, (SELECT sum((to_jsonb(v) ->> c.name)::bigint) FROM streamfilter_${view}s v) FROM streamfilter_counters() c
		WHERE c.counts_of = '$view' AND c.name <> 'replaced' ORDER BY 1");    # that one in servers_replaced.pl
}

# Names of those that count, and of those that count nothing.
sub counting { my ($sums) = @_; return join ' ', $sums =~ /^(\w+)\|[1-9]\d*$/mg; }
sub idle     { my ($sums) = @_; return join ' ', $sums =~ /^(\w+)\|0?$/mg; }

my %names = (
	trigger => 'discarded diverted rows would_discard',
	slice => 'answered bytes_received bytes_sent messages unanswered');

for my $view (qw(trigger slice))
{
	use_all();
	is(counting(sums($view)), $names{$view}, "all counters of ${view}s count");
	is(sql("SELECT c.name, sum(m.value) FROM streamfilter_counters() c LEFT JOIN streamfilter_metrics m ON c.metric = m.name
		WHERE c.counts_of = '$view' AND c.name <> 'replaced' GROUP BY 1 ORDER BY 1"), sums($view), '... and are metrics');
	sql('SELECT streamfilter_stats_reset()');
	is(idle(sums($view)), $names{$view}, '... all are reset');
	use_all();
	$node->restart;
	is(idle(sums($view)), $names{$view}, '... all begin anew by a restart');
}

# --- Of filters: each counts ---------------------------------------------------------------------------------------------------

# For these a server must fail as it commits: the file makes one.
my %elsewhere = (unremembered => 'servers_commit.pl');
sql(q{CREATE FOREIGN TABLE timed (id int, at timestamptz OPTIONS (role 'time')) SERVER streamfilter
		OPTIONS (kind 'timer', memory '64kB', keys '1000', window '10 minutes', fpr '0.01');
	CREATE FOREIGN TABLE crowded (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '0.01');
	CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
	CREATE FOREIGN TABLE leaf (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'root')});
sql('SELECT streamfilter_stats_reset()');
sql("INSERT INTO $_ VALUES (1), (1), (2)") for qw(discards diverts passes leaf);
sql('INSERT INTO leaf VALUES (NULL), (1)');
sql(q{INSERT INTO timed VALUES (1, now()), (2, now() - interval '1 hour'), (3, now() + interval '1 hour')});
sql("INSERT INTO crowded SELECT generate_series(1, $_)") for 900, 950, 20000, 20000;
sql('BEGIN; INSERT INTO logged SELECT generate_series(1, 2000); ROLLBACK');
sql(q{BEGIN; INSERT INTO unlogged VALUES (2000); PREPARE TRANSACTION 'first'});
$node->psql('postgres', q{SET lock_timeout = '10ms'; INSERT INTO unlogged VALUES (2000)});
sql(q{ROLLBACK PREPARED 'first'});
is(sql(q{SELECT string_agg(name, ' ' ORDER BY name)
	FROM (SELECT name, row_number() OVER () AS number FROM streamfilter_counters() WHERE counts_of = 'filter') AS counter
	WHERE (SELECT sum((set_counters(ftrelid, NULL))[number]) FROM pg_foreign_table) = 0}), join(' ', sort keys %elsewhere), 'all counters of filters count');
like(slurp_file("$root/test/t/$elsewhere{$_}"), qr/\b$_\b/, "... and $_ in $elsewhere{$_}") for sort keys %elsewhere;
sql('DROP TABLE repeats, discards, diverts, passes; DROP FOREIGN TABLE shadow, lost, timed, crowded, leaf, root');

# --- Dropped, created again, rolled back ----------------------------------------------------------------------------------------

set_all();
$node->restart;
sql('BEGIN; DROP FOREIGN TABLE logged, unlogged, elsewhere; ROLLBACK');
all_are_kept('a DROP that is rolled back');
sql(q{BEGIN; ALTER FOREIGN TABLE logged OPTIONS (SET memory '512kB'); ROLLBACK});
all_are_kept('an ALTER that is rolled back', 'logged');
sql('DROP FOREIGN TABLE logged, unlogged, elsewhere; DROP USER MAPPING FOR CURRENT_USER SERVER there; DROP SERVER there');
sql($define);
is(counts($_), $zeros, "created again, $_ has counted nothing") for @filters;

# --- Dump and restore -------------------------------------------------------------------------------------------------------

set_all();
sql('CREATE DATABASE restored');
my $dump = $node->basedir . '/dump.sql';
$node->run_log([ 'pg_dump', '-h', $host, '-p', $port, '-f', $dump, 'postgres' ]);
$node->run_log([ 'psql', '-X', '-q', '-h', $host, '-p', $port, '-d', 'restored', '-f', $dump ]);
is(counts($_, 'restored'), $zeros, "a dump has the definition of $_, not what it has counted") for qw(logged unlogged);
all_are_kept('... which stay where it was made');

done();
