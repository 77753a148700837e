# flavours: faults
# Every option of every kind of filter, as the hints of the library list them: given, it is kept and shown, altered, and the same
# after a restart, a crash, a TRUNCATE, a dump, an update, a resize, and on another server; a bad value names it. An option without
# an example here fails.
use Sf;
use OptionExamples;

my $node = start_node('options', q{
streamfilter.shared_memory = '64MB'
streamfilter.max_filters = 512
fsync = off
});
my ($host, $port) = ($node->host, $node->port);
sql(qq{CREATE DATABASE restored; CREATE DATABASE one;
	CREATE SERVER one FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'one')});
make_parents($node);

# Those that streamfilter_definition() shows, not streamfilter_stats.
my %is_hidden = map { $_ => 1 } qw(seed conflict persistence probe lost_slice max_future parent tree top_down);
# What EXPLAIN says of the second value.
my %explained = (
	memory => 'Memory: 128kB', slicing => 'Slicing: vertical, 4 slices', dice => 'Slicing: diced h-v, 4,2 slices',
	k1 => 'Slicing: 3 x 2 bits, 4 slices', k2 => 'Slicing: 2 x 3 bits, 4 slices', parent => 'Parent: root2', tree => 'Tree: dense');
my (@tables, @resized);
for my $case (option_cases(\&said))
{
	my ($kind, $option, $columns, $given, $first, $second) = @$case;
	my $table = "o_${kind}_$option";
	my $create = "CREATE FOREIGN TABLE $table ($columns) SERVER streamfilter OPTIONS (" . ($given eq '' ? '' : "$given, ");
	like(said("$create$option '?'); DROP FOREIGN TABLE IF EXISTS $table"), qr/(?:ERROR|WARNING):.*(?:\Q$option\E|kind|row|span|time)/, "$kind, $option: a bad value");
	my $trouble = said("$create$option '$first')");
	is($trouble =~ /ERROR/ ? $trouble : '', '', "$kind, $option '$first'");
	next if $trouble =~ /ERROR/;
	push @tables, $table;
	my $value = "SELECT option_value FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = '$table'::regclass AND option_name = '$option'";
	is(sql($value), $first, '... is kept');
	like(sql("SELECT streamfilter_definition('$table')"), qr/\b$option"? '\Q$first\E'/, '... and part of its definition');
	sql("SELECT streamfilter_value('$table')") unless $option eq 'mode';
	my $is_shown = "SELECT params ? '$option' OR to_jsonb(s) ? '$option' FROM streamfilter_stats AS s WHERE filter = '$table'::regclass";
	my $was_shown = sql($is_shown) eq 't';
	$trouble = said("ALTER FOREIGN TABLE $table OPTIONS (SET $option '$second')");
	is($trouble =~ /ERROR/ ? $trouble : '', '', "... altered to '$second'");
	is(sql($value), $second, '... which is kept');
	like(sql("EXPLAIN (COSTS off) SELECT FROM $table WHERE id = 1"), qr/\Q$explained{$option}\E/, '... and explained')
		if $explained{$option};
	next if $is_hidden{$option};
	ok($was_shown || sql($is_shown) eq 't', '... and is shown');
	push @resized, [ $table, $option ] if $option ne 'memory' && sql("SELECT params ? '$option' FROM streamfilter_stats WHERE filter = '$table'::regclass") eq 't';
}

# --- A restart, a crash, a TRUNCATE with counters reset, a resize ------------------------------------------------------------

my $shown = q{SELECT string_agg(format('%s %s %s %s', filter, kind, params, mode), chr(10) ORDER BY filter::text COLLATE "C") FROM streamfilter_stats
	WHERE filter::text LIKE 'o\_%'};
my $options = q{SELECT string_agg(ftrelid::regclass || ' ' || (SELECT array_agg(o ORDER BY o)::text FROM unnest(ftoptions) o), chr(10) ORDER BY ftrelid::regclass::text COLLATE "C") FROM pg_foreign_table};
my @used = grep { !/_mode$/ } @tables;
my ($before, $given) = (sql($shown), sql($options));

sub all_are_kept
{
	my ($what, $database) = @_;
	sql(join('; ', map { "SELECT streamfilter_value('$_')" } @used), $database);
	is(sql($shown, $database), $before, "$what: each filter is what it was");
	is(sql(q{SELECT string_agg(filter || ' ' || error, ', ') FROM streamfilter_stats WHERE error IS NOT NULL}, $database), '', '... and can be read');
	is(sql($options, $database), $given, '... with all options');
}

# The key of Bloom filters, which keep what they are given; other kinds forget and admit keys by chance.
my @certain = grep { /^o_bloom_/ && !/_persistence$/ } @used;
sub ignorant { return join ' ', grep { sql("SELECT count(*) FROM $_ WHERE id = 1") ne '1' } @certain }

sql(join('; ', map { "INSERT INTO $_ (id) VALUES (1)" } @used));
is(ignorant(), '', 'a key is remembered');
$node->restart;
all_are_kept('a restart');
is(ignorant(), '', '... and with its key');
crash();
all_are_kept('a crash');
is(ignorant(), '', '... and with its key');
sql('TRUNCATE ' . join(', ', @used) . '; SELECT streamfilter_stats_reset()');
all_are_kept('a TRUNCATE, and counters reset');

# --- A dump, restored ------------------------------------------------------------------------------------------------------------

my $dump = $node->basedir . '/dump.sql';
$node->run_log([ 'pg_dump', '-h', $host, '-p', $port, '-f', $dump, 'postgres' ]);
$node->run_log([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $host, '-p', $port, '-d', 'restored', '-f', $dump ]);
all_are_kept('a dump, restored', 'restored');
# --- On another server --------------------------------------------------------------------------------------------------------

sql('CREATE EXTENSION streamfilter', 'one');
sql('CREATE USER MAPPING FOR CURRENT_USER SERVER one');
my @elsewhere = grep { !/_(?:parent|tree|top_down)$/ } @used;
my @definitions = map { s/\bo_(\w+)/e_$1/r =~ s/SERVER streamfilter/SERVER one/r } map { sql("SELECT streamfilter_definition('$_')") } @elsewhere;
sql(join("\n", 'SET client_min_messages = warning;', @definitions, map { s/^o_/INSERT INTO e_/r . ' (id) VALUES (1);' } @elsewhere));
my $shown_of = q{SELECT string_agg(format('%s %s %s', substr(filter::text, 3), kind, params - 'fpr'), chr(10) ORDER BY filter::text COLLATE "C") FROM streamfilter_stats WHERE filter::text };
is(sql("$shown_of LIKE 'e\\_%'", 'one'), sql("$shown_of = ANY ('{" . join(',', @elsewhere) . "}')"), 'on another server each filter is what it is here');
for my $option (qw(conflict persistence))
{
	my $value = q{SELECT option_value FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = '%s'::regclass AND option_name = '%s'};
	is(sql(sprintf($value, "e_bloom_$option", $option), 'one'), sql(sprintf($value, "o_bloom_$option", $option)), "... with its $option");
}

# Parts of a filter on two servers.
sql('CREATE DATABASE two');
sql('CREATE EXTENSION streamfilter', 'two');
sql(qq{CREATE SERVER two FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'two');
	CREATE USER MAPPING FOR CURRENT_USER SERVER two;
	CREATE FOREIGN TABLE parts (id int) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '256kB', layout 'blocked', nulls 'not distinct', k '3', servers 'one,two');
	INSERT INTO parts VALUES (1)});
my $part = q{SELECT params ->> 'layout', params ->> 'nulls', params ->> 'k'
	FROM streamfilter_stats WHERE filter = 'parts'::regclass};
is(sql($part, $_), 'blocked|not distinct|3', "a part on server $_") for qw(one two);

# --- A resize --------------------------------------------------------------------------------------------------------------------

sub resized
{
	my ($table, $option) = @_;
	my $value = "SELECT params -> '$option' FROM streamfilter_stats WHERE filter = '$table'::regclass";
	my $was = sql($value);
	sql("ALTER FOREIGN TABLE $table OPTIONS (SET memory '128kB')");
	sql("SELECT streamfilter_value('$table')");
	is(sql($value), $was, "$table: $option is the same after a resize");
	return if $option eq 'nulls';
	sql("ALTER FOREIGN TABLE $table OPTIONS (ADD nulls 'not distinct'); SELECT streamfilter_value('$table')");
	is(sql("SELECT params ->> 'nulls' FROM streamfilter_stats WHERE filter = '$table'::regclass"), 'not distinct',
		'... and nulls as altered then');
}

resized(@$_) for @resized;

done();
