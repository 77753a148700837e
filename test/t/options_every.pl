# The matrix of options: every option of every kind of filter, as the hints of the library list them, and what becomes of a filter
# that has it and of its keys: made, altered, in a tree, after a restart, a crash and a TRUNCATE, on a standby, dumped and restored,
# on another server, in another size. Options and what is shown are always kept; %keys says it of keys. A bad value names its option.
# An option without an example in OptionExamples.pm fails.
# flavours: faults
use Sf;
use OptionExamples;

# What becomes of the keys of a filter. ALTER keeps them all or forgets them all.
my %keys = (restart => 'kept', crash => 'kept', standby => 'kept', truncate => 'empty', dump => 'empty');
my %keys_of = (
	'crash persistence' => 'empty', 'standby persistence' => 'empty',    # altered to unlogged
	'truncate parent' => 'kept', 'truncate tree' => 'kept',    # by the root
	'truncate q' => 'some', 'dump q' => 'some');    # the rate at which it takes what is new for known

# Those that streamfilter_definition() shows, not streamfilter_stats.
my %is_hidden = map { $_ => 1 } qw(seed conflict persistence probe lost_slice max_future parent tree top_down);
# A filter of a tree differs from its parent in no option that decides where keys are; these do not.
my %decides_no_place = map { $_ => 1 } qw(keys fpr nulls slices slicing dice k1 k2);
# What EXPLAIN says of the second value.
my %explained = (
	memory => 'Memory: 128kB', slicing => 'Slicing: vertical, 4 slices', dice => 'Slicing: diced h-v, 4,2 slices',
	k1 => 'Slicing: 3 x 2 bits, 4 slices', k2 => 'Slicing: 2 x 3 bits, 4 slices', parent => 'Parent: root2', tree => 'Tree: dense');

my $node = start_node('options', q{
streamfilter.shared_memory = '256MB'
streamfilter.max_filters = 2048
max_locks_per_transaction = 256
fsync = off
}, allows_streaming => 1);
my ($host, $port) = ($node->host, $node->port);
sql(qq{CREATE DATABASE restored; CREATE DATABASE one; CREATE DATABASE two});
sql(qq{CREATE SERVER $_ FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname '$_');
	CREATE USER MAPPING FOR CURRENT_USER SERVER $_}) for qw(one two);
sql('CREATE EXTENSION streamfilter', $_) for qw(one two);
make_parents($node);

sub create
{
	my ($name, $columns, @options) = @_;
	return "CREATE FOREIGN TABLE $name ($columns) SERVER streamfilter OPTIONS (" . join(', ', grep { $_ ne '' } @options) . ')';
}

# The text form of its parameters, a value in it, and what all filters of a tree have in common.
sub shape { return sql("SELECT split_part(streamfilter_value('$_[0]')::text, ':', 1)"); }
sub value_in { my ($shape, $option) = @_; return $shape =~ /\b$option=(?:'([^']*)'|([^,)]*))/ ? $1 // $2 : 'not said'; }
sub places
{
	return join ', ', grep { !/^(\w+)=/ || !$decides_no_place{$1} && $1 ne 'seed' } $_[0] =~ /(\w+=(?:'[^']*'|[^,)]*)|^\w+)/g;
}

# ---- made, altered, in a tree -----------------------------------------------------------------------------------------

my (@used, @resized, %case);
for my $case (option_cases(\&said))
{
	my ($kind, $option, $columns, $given, $first, $second) = @$case;
	my ($table, $made, $parent, $child) = map { "${_}_${kind}_$option" } qw(o made parent child);
	like(said(create($table, $columns, $given, "$option '?'") . "; DROP FOREIGN TABLE IF EXISTS $table"),
		qr/(?:ERROR|WARNING):.*(?:\Q$option\E|kind|row|span|time)/, "$kind, $option: a bad value");
	unlike(said(create($table, $columns, $given, "$option '$first'")), qr/ERROR/, "$kind, $option '$first'") or next;
	my $value = "SELECT option_value FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = '$table'::regclass AND option_name = '$option'";
	is(sql($value), $first, '... is kept');
	like(sql("SELECT streamfilter_definition('$table')"), qr/\b$option"? '\Q$first\E'/, '... and part of its definition');
	sql("INSERT INTO $table (id) SELECT generate_series(1, 100)") if $option ne 'mode';
	my $before = $option eq 'mode' ? 0 : known($table, 1, 100);
	my $is_shown = "SELECT params ? '$option' OR to_jsonb(s) ? '$option' FROM streamfilter_stats AS s WHERE filter = '$table'::regclass";
	my $was_shown = sql($is_shown) eq 't';
	unlike(said("ALTER FOREIGN TABLE $table OPTIONS (SET $option '$second')"), qr/ERROR/, "... altered to '$second'");
	is(sql($value), $second, '... which is kept');
	like(sql("EXPLAIN (COSTS off) SELECT FROM $table WHERE id = 1"), qr/\Q$explained{$option}\E/, '... and explained') if $explained{$option};
	ok($was_shown || sql($is_shown) eq 't', '... and is shown') unless $is_hidden{$option};
	next if $option eq 'mode';
	my $after = known($table, 1, 100);
	ok($after == $before || $after == 0, '... keeps its keys, or forgets all') or diag("$before, then $after");
	push @used, $table;
	$case{$table} = $case;
	push @resized, [ $table, $option ]
		if !$is_hidden{$option} && $option ne 'memory' && sql("SELECT params ? '$option' FROM streamfilter_stats WHERE filter = '$table'::regclass") eq 't';
	sql(create($made, $columns, $given, "$option '$second'"));
	is(value_in(shape($table), $option), value_in(shape($made), $option), '... is what is asked for now') if $option ne 'memory';    # a resize leaves a little of it unused
	if ($kind eq 'bloom' && $option !~ /^(?:slicing|dice|parent|tree|top_down|persistence)$/)
	{
		sql(create($parent, $columns, $given, "$option '$first'") . "; INSERT INTO $parent (id) VALUES (1)");
		my $fits = places(shape($parent)) eq places(shape($made)) && $option ne 'seed';
		my $said = said(create($child, $columns, $given, "$option '$second'", "parent '$parent'") . ";\nINSERT INTO $child (id) VALUES (2)");
		my $its = $option =~ s/^k\d$/k/r;
		like($said, $fits ? qr/^$/ : qr/does not fit its parent.*Its $its is/s, "... as the child of a filter with '$first'");
		sql("DROP FOREIGN TABLE IF EXISTS $child; DROP FOREIGN TABLE $parent");
	}
	sql("DROP FOREIGN TABLE $made");
}
like(said(create('of_another_kind', q{id int, at timestamptz OPTIONS (role 'time')}, q{kind 'timer', memory '64kB', window '10 minutes', parent 'root'})),
	qr/Its kind is timer, that of the parent is bloom/, 'a child of another kind');
sql(q{CREATE FOREIGN TABLE collated (id text COLLATE "C") SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
	INSERT INTO collated SELECT i::text FROM generate_series(1, 100) i; ALTER FOREIGN TABLE collated ALTER id TYPE text COLLATE "POSIX"});
is(sql(q{SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_test('collated', i::text)}), 0, 'another collation is another key');
sql('DROP FOREIGN TABLE collated');

# ---- after a restart, a crash, a TRUNCATE; on a standby; dumped and restored ----------------------------------------------

# Without what says that a resize has kept the keys of a smaller filter.
my $shown = q{SELECT string_agg(format('%s %s %s %s', filter, kind, params - 'derived_now', mode), chr(10) ORDER BY filter::text COLLATE "C") FROM streamfilter_stats
	WHERE filter::text LIKE 'o\_%'};
my $options = q{SELECT string_agg(ftrelid::regclass || ' ' || (SELECT array_agg(o ORDER BY o)::text FROM unnest(ftoptions) o), chr(10) ORDER BY ftrelid::regclass::text COLLATE "C") FROM pg_foreign_table};
sub count_keys
{
	my $counts = sql(join(' UNION ALL ', map { "SELECT '$_', count(*) FROM generate_series(1, 100) i WHERE streamfilter_test('$_', i)" } @used), @_);
	return map { split /\|/ } split /\n/, $counts;
}

sql(join '; ', map { "INSERT INTO $_ (id) SELECT generate_series(1, 100)" } @used);
my %known = count_keys();
is(join(' ', grep { $case{$_}[0] eq 'bloom' && $known{$_} < 100 } @used), '', 'keys are remembered');
my ($before, $given) = (sql($shown), sql($options));

sub all_are_kept
{
	my ($event, $what, @where) = @_;
	sql(join('; ', map { "SELECT streamfilter_value('$_')" } @used), @where);
	is(sql($shown, @where), $before, "$what: each filter is what it was");
	is(sql(q{SELECT string_agg(filter || ' ' || error, ', ') FROM streamfilter_stats WHERE error IS NOT NULL}, @where), '', '... and can be read');
	is(sql($options, @where), $given, '... with all options');
	my %now = count_keys(@where);
	my %wanted = map { $_ => $keys_of{"$event $case{$_}[1]"} // $keys{$event} } @used;
	# These clear cells at random, and the replay of a log draws anew. With 64 kB each of the 100 keys is lost with a chance of at most
	# 1.2 % (sbf with p 20: 2,000 cells of 512 kbit, three of them a key's): more than ten of them, once in ten million times.
	my $is_missing = sub { my ($table) = @_; return $case{$table}[0] =~ /^(?:sbf|r|bsbf)/ ? $now{$table} < 90 : $now{$table} != $known{$table} };
	is(join(' ', map { "$_ $wanted{$_} $known{$_} $now{$_}" } grep { $wanted{$_} eq 'kept' ? $is_missing->($_) : $wanted{$_} ne 'some' && $now{$_} != 0 } @used),
		'', "... keys are $keys{$event}");
	return;
}

$node->restart;
all_are_kept('restart', 'a restart');
my $standby = start_standby('standby');
all_are_kept('standby', 'a standby', $standby);
crash();
all_are_kept('crash', 'a crash');
sql('TRUNCATE ' . join(', ', @used) . '; SELECT streamfilter_stats_reset()');
all_are_kept('truncate', 'a TRUNCATE, and counters reset');

my $dump = $node->basedir . '/dump.sql';
$node->run_log([ 'pg_dump', '-h', $host, '-p', $port, '-f', $dump, 'postgres' ]);
$node->run_log([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $host, '-p', $port, '-d', 'restored', '-f', $dump ]);
all_are_kept('dump', 'a dump, restored', 'restored');

# ---- on other servers -----------------------------------------------------------------------------------------------------

my @elsewhere = grep { !/_(?:parent|tree|top_down)$/ } @used;
my @definitions = map { s/\bo_(\w+)/e_$1/r =~ s/SERVER streamfilter/SERVER one/r } map { sql("SELECT streamfilter_definition('$_')") } @elsewhere;
sql(join("\n", 'SET client_min_messages = warning;', @definitions, map { s/^o_/INSERT INTO e_/r . ' (id) VALUES (1);' } @elsewhere));
my $shown_of = q{SELECT string_agg(format('%s %s %s', substr(filter::text, 3), kind, params - 'fpr' - 'derived_now'), chr(10) ORDER BY filter::text COLLATE "C") FROM streamfilter_stats WHERE filter::text };
is(sql("$shown_of LIKE 'e\\_%'", 'one'), sql("$shown_of = ANY ('{" . join(',', @elsewhere) . "}')"), 'on another server each filter is what it is here');
for my $option (qw(conflict persistence))
{
	my $value = q{SELECT option_value FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = '%s'::regclass AND option_name = '%s'};
	is(sql(sprintf($value, "e_bloom_$option", $option), 'one'), sql(sprintf($value, "o_bloom_$option", $option)), "... with its $option");
}
sql(q{CREATE FOREIGN TABLE parts (id int) SERVER streamfilter
	  OPTIONS (kind 'bloom', memory '256kB', layout 'blocked', nulls 'not distinct', k '3', servers 'one,two');
	INSERT INTO parts VALUES (1)});
my $part = q{SELECT params ->> 'layout', params ->> 'nulls', params ->> 'k' FROM streamfilter_stats WHERE filter = 'parts'::regclass};
is(sql($part, $_), 'blocked|not distinct|3', "a part on server $_") for qw(one two);

# ---- in another size --------------------------------------------------------------------------------------------------------

for (@resized)
{
	my ($table, $option) = @$_;
	my $value = "SELECT params -> '$option' FROM streamfilter_stats WHERE filter = '$table'::regclass";
	my $was = sql($value);
	sql("ALTER FOREIGN TABLE $table OPTIONS (SET memory '128kB'); SELECT streamfilter_value('$table')");
	is(sql($value), $was, "$table: $option is the same after a resize");
	next if $option eq 'nulls';
	sql("ALTER FOREIGN TABLE $table OPTIONS (ADD nulls 'not distinct'); SELECT streamfilter_value('$table')");
	is(sql("SELECT params ->> 'nulls' FROM streamfilter_stats WHERE filter = '$table'::regclass"), 'not distinct', '... and nulls as altered then');
}

# ---- option nulls, altered ----------------------------------------------------------------------------------------------------

# It says from then on whether two nulls are one key: of a filter as it was made, one that was resized to a memory that no formula
# gives, and one whose keys were given later; here and on the standby.
my %way = (made => '', resized => q{CALL streamfilter_resize('%s', '100kB')}, asked => q{ALTER FOREIGN TABLE %s OPTIONS (ADD keys '10000')});
my %to;
for my $way (sort keys %way)
{
	for my $from ('distinct', 'not distinct')
	{
		my $f = "${way}_" . ($from =~ s/ /_/r);
		$to{$f} = $from eq 'distinct' ? 'not distinct' : 'distinct';
		sql("CREATE FOREIGN TABLE $f (id int) SERVER streamfilter OPTIONS (memory '200kB', nulls '$from');
			INSERT INTO $f SELECT generate_series(1, 1000); INSERT INTO $f VALUES (NULL); SELECT streamfilter_save('$f')");
		sql(sprintf $way{$way}, $f) if $way{$way} ne '';
	}
}
my @filters = sort keys %to;

# Keys known, and whether NULL is, which has come once before: with another option it is another key, or none.
sub with_null { my ($f, @where) = @_; return known($f, 1, 1000, @where) . '|' . knows($f, 'NULL::int', @where); }
sub catch_up { $node->wait_for_catchup($standby, 'replay', $node->lsn('insert')); return; }
sub all_have_it
{
	my ($what, @where) = @_;
	is(with_null($_, @where), $to{$_} eq 'distinct' ? '1000|f' : '1000|t', "$_: $what") for @filters;
	return;
}

catch_up();
with_null($_, $standby) for @filters;    # it has read them before
my $read = -s $standby->logfile;
sql("ALTER FOREIGN TABLE $_ OPTIONS (SET nulls '$to{$_}'); INSERT INTO $_ VALUES (NULL), (NULL)") for @filters;
all_have_it('nulls altered');
catch_up();
all_have_it('on a standby', $standby);
# What is saved anew has the option as it is now: its geometry is that of the state in the standby's memory.
sql("SELECT streamfilter_save('$_'); INSERT INTO $_ VALUES (2000)") for @filters;
catch_up();
is(knows($_, 2000, $standby), 't', "$_: saved anew") for @filters;
is(scalar(() = slurp_file($standby->logfile, $read) =~ m{is loaded anew}g), 0, 'the standby keeps its state');
$node->restart;
all_have_it('after a restart');
crash();
all_have_it('after a crash');
$standby->restart;
all_have_it('on a standby that starts again', $standby);
done();
