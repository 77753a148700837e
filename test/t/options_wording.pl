# An ALTER that only writes down what holds anyway, or no longer does, is no other definition: what is saved of the filter is found
# again, after a restart and after a crash. For each option of each kind, also of a filter of another size, logged and unlogged.
# flavours: faults one_by_one
use Sf;
use OptionExamples;

my $node = start_node('wordings', q{
	streamfilter.shared_memory = '256MB'
	streamfilter.max_filters = 2048
	max_locks_per_transaction = 256
	fsync = off});
sql('CREATE TABLE known (filter text, at text, keys bigint)');

# Columns and options of filters; each kind with some of its options, and with none, and kind auto.
my %bases;
for my $case (option_cases(\&said))
{
	my ($kind, $option, $columns, $given) = @$case;
	next if $kind eq 'ell' || $option =~ /^(?:kind|seed|window|parent|tree|top_down)$/;
	$bases{"$columns; $given"} = [ $columns, $given ];
}
for my $given (q{mode 'enforce'}, q{memory '64kB'}, q{keys '500'}, q{memory '64kB', keys '500'}, q{memory '64kB', fpr '0.1'}, q{window '10 minutes', memory '64kB'})
{
	my $columns = 'id int' . ($given =~ /window/ ? q{, at timestamptz OPTIONS (role 'time')} : '');
	$bases{"$columns; $given"} = [ $columns, $given ];
}

# What is derived, as options; nothing if there is no such filter.
sub derived_options
{
	my ($columns, $given) = @_;
	my ($failed, $text) = $node->psql('postgres', "CREATE FOREIGN TABLE x ($columns) SERVER streamfilter OPTIONS ($given); SELECT split_part(streamfilter_value('x')::text, ':', 1);
		DROP FOREIGN TABLE x");
	return if $failed;
	my ($kind, $options) = $text =~ /^(\w+)\((.*)\)$/s or die $text;
	my %derived = (kind => $kind);
	while ($options =~ /(\w+)=(?:'([^']*)'|([^,]*))/g) { $derived{$1} = $2 // $3; }
	delete @derived{qw(seed nulls)};
	delete $derived{fpr} if $given !~ /\bk\d? '/;    # CREATE writes it down
	return %derived;
}

my (@filters, @statements);

# A filter with keys from before and after the ALTERs.
sub add_filter
{
	my ($what, $columns, $given, @alters) = @_;
	my $name = 'f' . @filters;
	push @filters, $what;
	push @statements, "CREATE FOREIGN TABLE $name ($columns) SERVER streamfilter OPTIONS ($given);", "INSERT INTO $name (id) SELECT generate_series(1, 10);",
	  (map { "ALTER FOREIGN TABLE $name OPTIONS ($_);" } @alters), "INSERT INTO $name (id) SELECT generate_series(11, 20);";
	return;
}

for my $base (map { $bases{$_} } sort keys %bases)
{
	my ($columns, $given) = @$base;
	my %derived = derived_options($columns, $given);
	next unless %derived;
	my @more = grep { $given !~ /\b$_ '/ } sort keys %derived;
	for my $more (grep { $_ ne 'slicing' || $derived{$_} ne 'horizontal' || $derived{kind} eq 'bloom' } @more)
	{
		my $add = "ADD $more '$derived{$more}'";
		add_filter("$given: $add", $columns, $given, $add);
		add_filter("$given, in another size: $add", $columns, $given, q{SET memory '128kB'}, $add) if $given =~ /memory/ && $more ne 'keys';
	}
	my $all = join ', ', map { "$_ '$derived{$_}'" } sort keys %derived;
	add_filter("$given: all at once", $columns, $given, join(', ', map { "ADD $_ '$derived{$_}'" } @more)) if @more;
	add_filter("$given: DROP all others", $columns, $all, join(', ', map { "DROP $_" } @more)) if @more;
	next if $given =~ /persistence/;
	add_filter("$given, unlogged", $columns, "$given, " . q{persistence 'unlogged'}, map { "ADD $_ '$derived{$_}'" } @more);
}
note(@filters . ' filters');
my ($code, $out, $err) = $node->psql('postgres', join("\n", 'SET client_min_messages = error;', @statements), extra_params => ['-q'], on_error_stop => 0);
my %errors;
++$errors{ s/\d+/N/gr } for $err =~ /ERROR:  (.*)/g;
note("$errors{$_} x $_") for sort keys %errors;

# How many keys each filter knows.
sub note_known
{
	my ($at) = @_;
	my @tests = map { "INSERT INTO known SELECT 'f$_', '$at', count(*) FROM generate_series(1, 20) i WHERE streamfilter_test('f$_', i);" } 0 .. $#filters;
	$node->psql('postgres', join("\n", @tests), extra_params => ['-q'], on_error_stop => 0);
	return;
}

sub fewer
{
	my ($at, $former) = @_;
	note_known($at);
	# One that raises has no row.
	my @fewer = split /\n/, sql("SELECT substr(b.filter, 2) || ' ' || b.keys || ' ' || coalesce(a.keys::text, 'error')
		FROM known b LEFT JOIN known a ON a.filter = b.filter AND a.at = '$at'
		WHERE b.at = '$former' AND (a.keys >= b.keys) IS NOT TRUE ORDER BY substr(b.filter, 2)::int");
	return join "\n", map { my ($number, @keys) = split / /; "$filters[$number]: $keys[0] -> $keys[1]" } @fewer;
}

note_known('altered');
cmp_ok(sql(q{SELECT count(*) FROM known WHERE keys = 20}), '>', 0.8 * @filters, 'most filters know all of their keys');
my $read = -s $node->logfile;
$node->restart;
is(fewer('restarted', 'altered'), '', 'after a restart, each filter knows what it knew');
sql(q{SET client_min_messages = error; DO $$ DECLARE f regclass; BEGIN FOR f IN SELECT ftrelid FROM pg_foreign_table t
	WHERE NOT 'persistence=unlogged' = ANY (coalesce(ftoptions, '{}')) LOOP EXECUTE format('INSERT INTO %s (id) VALUES (20)', f); END LOOP; END $$});
crash();
sql(q{DELETE FROM known WHERE at = 'restarted' AND filter IN (SELECT ftrelid::regclass::text FROM pg_foreign_table WHERE 'persistence=unlogged' = ANY (ftoptions))});
is(fewer('crashed', 'restarted'), '', '... and after a crash');
unlike(slurp_file($node->logfile, $read), qr/is set aside/, 'nothing is set aside');
done_testing();
