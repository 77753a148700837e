# Each option of each kind, altered: the filter is then what it would be if it were made so, with all of
# its keys or none. And a filter of a tree differs from its parent in no option that decides where keys are.
use Sf;
use OptionExamples;

my $node = start_node('differing', "streamfilter.shared_memory = '256MB'\nstreamfilter.max_filters = 2048\nfsync = off\n");
make_parents($node);

sub fails { return said($_[0]) =~ /ERROR/ }

sub create
{
	my ($name, $columns, $options) = @_;
	return "CREATE FOREIGN TABLE $name ($columns) SERVER streamfilter OPTIONS (" . join(', ', grep { $_ ne '' } @$options) . ')';
}

# The text form of its parameters.
sub shape { return sql("SELECT split_part(streamfilter_value('$_[0]')::text, ':', 1)") }

sub value_in { my ($shape, $option) = @_; return $shape =~ /\b$option=(?:'([^']*)'|([^,)]*))/ ? $1 // $2 : 'not said'; }

my $known = q{SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_test('%s', i)};
my %decides_no_place = map { $_ => 1 } qw(keys fpr nulls slices slicing dice k1 k2);

# What all filters of a tree have in common.
sub places
{
	my ($shape) = @_;
	return join ', ', grep { !/^(\w+)=/ || !$decides_no_place{$1} && $1 ne 'seed' } $shape =~ /(\w+=(?:'[^']*'|[^,)]*)|^\w+)/g;
}

for my $case (option_cases(\&said))
{
	my ($kind, $option, $columns, $given, $first, $second) = @$case;
	my ($altered, $made, $child) = map { "${_}_${kind}_$option" } qw(altered made child);
	my $what = "$kind, $option '$first' altered to '$second'";
	next if $option eq 'mode' || fails(create($altered, $columns, [ $given, "$option '$first'" ]));
	sql("INSERT INTO $altered (id) SELECT generate_series(1, 100)");
	my ($before, $shape) = (sql(sprintf $known, $altered), shape($altered));
	unlike(said("ALTER FOREIGN TABLE $altered OPTIONS (SET $option '$second')"), qr/ERROR/, $what);
	my $after = sql(sprintf $known, $altered);
	ok($after == $before || $after == 0, '... keeps its keys, or forgets all') or diag("$before, then $after");
	sql(create($made, $columns, [ $given, "$option '$second'" ]));
	is(value_in(shape($altered), $option), value_in(shape($made), $option), '... is what is asked for now') if $option ne 'memory';    # a resize leaves a little of it unused
	next if $kind ne 'bloom' || $option =~ /^(?:slicing|dice|parent|tree|top_down|persistence)$/;
	my $other = create('parent_' . $option, $columns, [ $given, "$option '$first'" ]);
	sql("$other; INSERT INTO parent_$option (id) VALUES (1)");
	my $fits = places(shape("parent_$option")) eq places(shape($made)) && $option ne 'seed';
	my $create = create($child, $columns, [ $given, "$option '$second'", "parent 'parent_$option'" ]);
	my $said = said("$create;\nINSERT INTO $child (id) VALUES (2)");
	my $refused = $option =~ s/^k\d$/k/r;
	like($said, $fits ? qr/^$/ : qr/does not fit its parent.*Its $refused is/s, "... as the child of a filter with '$first'");
}
my $of_another_kind = create('of_another_kind', q{id int, at timestamptz OPTIONS (role 'time')},
	[ q{kind 'timer'}, q{memory '64kB'}, q{window '10 minutes'}, q{parent 'root'} ]);
like(said($of_another_kind), qr/Its kind is timer, that of the parent is bloom/, 'a child of another kind');
sql(q{CREATE FOREIGN TABLE collated (id text COLLATE "C") SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
	INSERT INTO collated SELECT i::text FROM generate_series(1, 100) i; ALTER FOREIGN TABLE collated ALTER id TYPE text COLLATE "POSIX"});
is(sql($known =~ s/%s', i/collated', i::text/r), 0, 'another collation is another key');

done();
