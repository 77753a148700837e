# Each option of each kind, on servers: of two producers whose definitions differ in it, the second is refused if the
# servers' answers depend on it. ALTER of it is refused, with what to type, or acts on the servers.
use Sf;
use OptionExamples;

my $settings = "streamfilter.shared_memory = '128MB'\nstreamfilter.max_filters = 2048\nfsync = off\n";
my %node = map { $_ => start_node($_, $settings) } qw(p q a b);
for my $producer (qw(p q)) { $node{$producer}->safe_psql('postgres', server_sql($_, $node{$_}, q{timeout '20s'})) for qw(a b) }
make_parents($node{p});

sub ask { my ($producer, $statement) = @_; return $node{$producer}->safe_psql('postgres', $statement) }
sub said_by { my ($producer, $statement) = @_; return answer_of($node{$producer}, $statement) }

sub create
{
	my ($name, $columns, @options) = @_;
	return "CREATE FOREIGN TABLE $name ($columns) SERVER streamfilter OPTIONS (" . join(', ', grep { $_ ne '' } @options) . ')';
}

# The text form of the parameters of a filter here.
sub shape
{
	my ($columns, @options) = @_;
	ask('q', create('here', $columns, @options));
	my $text = ask('q', q{SELECT split_part(streamfilter_value('here')::text, ':', 1)});
	ask('q', 'DROP FOREIGN TABLE here');
	return $text;
}

sub known_by
{
	my ($producer, $name) = @_;
	return ask($producer, "SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_test('$name', i)");
}

sub check
{
	my ($name, $columns, $given, $servers, $option, $first, $second) = @_;
	my ($one, $other) = map { "$option '$_'" } $first, $second;
	my $what = "on $servers: $name '$first' beside '$second'";
	my $made = said_by('p', create($name, $columns, @$given, $one, "servers '$servers'"));
	return like($made, qr/HINT/, "$what: there is no such filter on servers") if $made =~ /ERROR/;
	ask('p', "INSERT INTO $name (id) SELECT generate_series(1, 100)");
	my $before = known_by('p', $name);
	my $differ = $option eq 'conflict' || shape($columns, @$given, $one) ne shape($columns, @$given, $other);
	my $define = create($name, $columns, @$given, $other, "servers '$servers'");
	like(said_by('q', "$define; SELECT streamfilter_test('$name', 1)"),
		$differ ? qr/has another definition on server|defined otherwise by its first producer/ : qr/^$/, $what);
	ask('q', "DROP FOREIGN TABLE $name");
	my $refused = said_by('p', "ALTER FOREIGN TABLE $name OPTIONS (SET $option '$second')");
	is(known_by('p', $name), $before, '... keys are known after it was to be altered');
	my $is_open = $option =~ /^(?:mode|probe|lost_slice|max_future|conflict|overfull|persistence)$/;
	if ($refused =~ /ERROR/) { like($refused, $is_open ? qr/ERROR.*HINT/s : qr/ERROR:  option "$option" of filter "$name" cannot be changed.*HINT:  Make another filter/s, '... altered: refused') }
	elsif (!$is_open) { fail("... altered: $option must be refused") }
	else
	{
		my $options = ask('p', "SELECT string_agg(format('%s %L', option_name, option_value), ', ')
			FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = '$name'::regclass");
		ask('q', create($name, $columns, $options));
		is(known_by('q', $name), $before, '... and knows its keys');
		ask('q', "DROP FOREIGN TABLE $name");
	}
	return ask('p', "DROP FOREIGN TABLE $name");
}

for my $case (option_cases(sub { return said_by('p', $_[0]) }))
{
	my ($kind, $option, $columns, $given, $first, $second) = @$case;
	next if $option =~ /^(?:mode|parent|tree|top_down)$/;
	my @given = ($given =~ s/memory '64kB'/memory '128kB'/r, $option eq 'seed' ? () : q{seed '7'});
	check("${kind}_$option", $columns, \@given, 'a', $option, $first, $second);
	push @given, q{slices '4'} if "$given$option" !~ /slices/;
	check("${kind}_$option", $columns, \@given, 'a, b', $option, $first, $second);
}
# Kinds whose parameters may be the same numbers.
my @same = (q{memory '128kB'}, q{slices '4'}, q{seed '7'}, q{servers 'a, b'});
my @kinds = grep { said_by('p', create("kind_$_", 'id int', "kind '$_'", @same)) !~ /ERROR/ } kinds(sub { return said_by('p', $_[0]) });
cmp_ok(scalar(@kinds), '>', 10, '... that need no more options');
for my $kind (@kinds)
{
	ask('p', "INSERT INTO kind_$kind VALUES (1)");
	my $is_refused = sub {
		my $define = create("kind_$kind", 'id int', "kind '$_[0]'", @same);
		return said_by('q', "BEGIN;\n$define;\nSELECT streamfilter_test('kind_$kind', 1)") =~ /has another definition/;
	};
	my @accepted = grep { !$is_refused->($_) } @kinds;
	is("@accepted", $kind, "no other kind goes along with $kind");
}
# Their parts look alike, but a key's bits lie in other slices.
my ($bits, $servers) = (q{kind 'bloom', memory '128kB', slices '4', seed '7', k2 '2'}, q{servers 'a, b'});
ask('p', create('bits', 'id int', $bits, q{k1 '2'}, $servers) . '; INSERT INTO bits SELECT generate_series(1, 100)');
like(said_by('q', create('bits', 'id int', $bits, q{k1 '3'}, $servers) . q{; SELECT streamfilter_test('bits', 1)}),
	qr/defined otherwise by its first producer.*Its slicing: 2 probes in groups of 4 slices. This producer says 3 probes/s,
	'as many bits in each probe, more probes');
like(said_by('p', q{ALTER FOREIGN TABLE bits OPTIONS (SET k1 '3')}), qr/ERROR:  option "k1" of filter "bits" cannot be changed.*HINT/s, '... altered: refused');

my $grown = q{kind 'bloom', keys '100000', fpr '0.01', slices '4', slicing 'vertical'};
ask('p', create('grown', 'id int', $grown, $servers) . '; INSERT INTO grown SELECT generate_series(1, 100)');

# ---- names in option servers, typed by hand ----------------------------------------------------------------------------

ask('p', q{CREATE SERVER nowhere FOREIGN DATA WRAPPER streamfilter; CREATE FOREIGN DATA WRAPPER other; CREATE SERVER else_where FOREIGN DATA WRAPPER other});
my %refused = (
	'a, a' => qr/cannot be held by server "a".*named twice.*HINT:  Name each server once/s,
	'a, b, a' => qr/cannot be held by server "a".*named twice.*HINT:  Name each server once/s,
	'' => qr/invalid value for option "servers".*HINT:  Give the names/s,
	'a,,b' => qr/invalid value for option "servers".*HINT:  Give the names/s,
	'a,' => qr/invalid value for option "servers".*HINT:  Give the names/s,
	'a, ""' => qr/(?:server "" does not exist|invalid value for option "servers").*HINT:/s,
	'a, d' => qr/server "d" does not exist.*HINT:  Type: CREATE SERVER d FOREIGN DATA WRAPPER streamfilter/s,
	'a, streamfilter' => qr/cannot be held by server "streamfilter".*HINT:  Leave out option servers.*ALTER SERVER streamfilter/s,
	'nowhere' => qr/cannot be held by server "nowhere".*HINT:  .*ALTER SERVER nowhere/s,
	'else_where' => qr/cannot be held by server "else_where".*HINT:  Name servers of FOREIGN DATA WRAPPER streamfilter/s);
for my $names (sort keys %refused)
{
	like(said_by('p', create('named', 'id int', "servers '$names'", q{kind 'lru'}, q{memory '64kB'})), qr/ERROR:  .*$refused{$names}/s, "servers '$names'");
	like(said_by('p', "ALTER FOREIGN TABLE grown OPTIONS (SET servers '$names')"), qr/ERROR:  .*HINT:/s, '... nor for a filter that has others');
}
is(known_by('p', 'grown'), '100', 'nothing has changed');

# The greatest number of names, all of one server. Last, a name of this server: its filter is not a part of itself.
ask('p', join '', map { server_sql("s$_", $node{b}, q{timeout '8s'}) } 1 .. 64);
my $names = join ', ', map { "s$_" } 1 .. 64;
ask('p', create('many', 'id int', "servers '$names'", q{kind 'lru'}, q{memory '4MB'}, q{slices '64'}));
like(said_by('p', q{INSERT INTO many SELECT generate_series(1, 1000)}), qr/ERROR:  .*place in option servers.*HINT:/s, '64 names of one server');
like(said_by('p', create('fewer', 'id int', "servers '$names'", q{kind 'lru'}, q{memory '4MB'}, q{slices '8'})), qr/ERROR:  .*(?:HINT|DETAIL):/s, 'more servers than slices');
ask('p', server_sql('itself', $node{p}, q{timeout '8s'}) . create('mirrored', 'id int', q{servers 'itself'}, q{kind 'lru'}, q{memory '64kB'}));
like(said_by('p', q{INSERT INTO mirrored VALUES (1)}), qr/ERROR:  filter "mirrored" exists, but does not hold slices.*HINT:  Give one of the two/s, 'a name of this server');

done();
