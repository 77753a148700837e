# What a move that was interrupted leaves behind: nobody takes a copy of a slice for the slice, and its memory comes back.
# flavours: quick asserted faults
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use FaultPoints;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Servers;
use Test::More;

my %node = map { $_ => start_node($_) } qw(p q a b c);
sub sql { return $node{p}->safe_psql('postgres', $_[0]); }
sub of_q { return $node{q}->safe_psql('postgres', $_[0]); }
sub output { my ($statements) = @_; my ($code, $out, $err) = $node{p}->psql('postgres', $statements); return $err; }
sub known { my ($name, $from, $to) = @_; return "SELECT count(*) FROM generate_series($from, $to) i WHERE streamfilter_test('$name', i)"; }
sub places { my ($name) = @_; return sql("SELECT string_agg(slice || coalesce(server, '-'), ' ' ORDER BY slice) FROM streamfilter_slice_places('$name')"); }

# Relations of moved slices on a server, and the bytes of its filters.
sub copies { my ($name, $on) = @_; return $node{$on}->safe_psql('postgres', "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'f' AND relname LIKE '$name/%'"); }

# The first half of a move of a slice: its copy is made, and what has it is not closed.
sub half_a_move
{
	my ($name, $slice, $number, $from, $to, $epoch) = @_;
	my $state = $node{$from}->safe_psql('postgres', "SELECT streamfilter_slice_fence('$name', $number)");
	$node{$to}->safe_psql('postgres', "SELECT streamfilter_slice_take('public', '"
		. ($name =~ s{"|/.*}{}gr) . "', $slice, $epoch, '" . $node{$from}->safe_psql('postgres', qq{SELECT format('lru(memory=%s, seed=%s, slices=1)',
			(SELECT memory FROM streamfilter_stats WHERE filter = '$name'::regclass), 7)}) . "', 'wait', 'logged', '$state')");
	return;
}

for my $producer (qw(p q))
{
	$node{$producer}->safe_psql('postgres', join '', map { server_sql($_, $node{$_}, q{connect_timeout '2s', timeout '8s'}) } qw(a b c));
}
my $shared = q{kind 'lru', memory '512kB', slices '4', seed '7'};
for my $name (qw(torn left_over untold))
{
	sql("CREATE FOREIGN TABLE $name (id int) SERVER streamfilter OPTIONS (servers 'a, b', $shared); INSERT INTO $name SELECT generate_series(1, 1000)");
	sql("ALTER FOREIGN TABLE $name OPTIONS (SET servers 'a, b, c', ADD home_servers '2')");
	of_q("CREATE FOREIGN TABLE $name (id int) SERVER streamfilter OPTIONS (servers 'a, b, c', home_servers '2', $shared)");
}

# ---- a copy is not the slice --------------------------------------------------------------------------------------

# Slice 3 leaves b; slice 1 does not, though c has a copy of it.
sql(q{SELECT streamfilter_move_slice('torn', 3, 'c')});
half_a_move('torn', 1, 0, 'b', 'c', 1);
is(copies('torn', 'c'), 'torn/1@1 torn/3@1', 'a server has a slice, and a copy of another one');
$node{b}->stop('immediate');
like(output(q{SELECT streamfilter_retire('torn', 'b')}), qr/ERROR:  slice 1 of filter "torn" cannot be found.*HINT:  Bring the server back/s,
	'a server that is lost and has a slice is not retired, though there is a copy of the slice');
$node{b}->start;
ok($node{$_}->poll_query_until('postgres', known('torn', 1, 1000), '1000'), "$_ knows all keys when it is back") for qw(p q);
is(output(q{SELECT streamfilter_move_slice('torn', 1, 'c')}), '', 'the move is repeated');
$node{b}->stop('immediate');
unlike(output(q{SELECT streamfilter_retire('torn', 'b')}), qr/ERROR/, '... and then the server is retired while it is lost');
is(sql(known('torn', 1, 1000)), '1000', '... and all keys are known');
$node{b}->start;
$node{p}->poll_query_until('postgres', known('left_over', 1, 1000), '1000') or die 'b is not reached';


# A place that was closed before the mover could say that it is one: the next call does.
half_a_move('left_over', 1, 0, 'b', 'c', 1);
$node{b}->safe_psql('postgres', q{SELECT streamfilter_slice_close('left_over', 0, 3, 1, NULL)});
is(sql(known('left_over', 1, 1000)), '1000', 'a slice that moved without its mover is found');
sub mark { return $node{c}->safe_psql('postgres', q{SELECT coalesce((SELECT option_value FROM pg_foreign_table, pg_options_to_table(ftoptions)
	WHERE ftrelid = '"left_over/1@1"'::regclass AND option_name = 'retirements'), '-')}); }
is(mark(), '-', '... where nobody has confirmed it');
is(sql(q{SELECT streamfilter_move_slice('left_over', 1, 'c')}), 'f', '... it is there already');
is(mark(), '0', '... and is confirmed');

# A slice that has moved off a server, and its first place was not told: once another server has the number of the one that is
# retired, nobody could follow it.
sql(q{SELECT streamfilter_move_slice('untold', 1, 'c')});
half_a_move('"untold/1@1"', 1, 0, 'c', 'a', 2);
$node{c}->safe_psql('postgres', q{SELECT streamfilter_slice_close('"untold/1@1"', 0, 1, 2, NULL)});
unlike(output(q{SELECT streamfilter_retire('untold', 'c')}), qr/ERROR/, 'a server is retired after a move that was interrupted');
is(sql(known('untold', 1, 1000)), '1000', '... and all keys are known');

# ---- memory comes back ----------------------------------------------------------------------------------------------

sub free { my ($on) = @_; return $node{$on}->safe_psql('postgres', 'SELECT free FROM streamfilter_memory()'); }
is(sql(q{SELECT streamfilter_spread_slices('left_over')}), '0', 'all servers have their shares');
my %free = map { $_ => free($_) } qw(a b c);
# A copy that nobody has gone on with; one that another move has left behind; and a place that was closed, and not dropped.
half_a_move('left_over', 0, 0, 'a', 'c', 1);
half_a_move('left_over', 2, 1, 'a', 'b', 1);
sql(q{SELECT streamfilter_move_slice('left_over', 2, 'c'); SELECT streamfilter_move_slice('left_over', 2, 'a'); SELECT streamfilter_move_slice('left_over', 2, 'c'); SELECT streamfilter_move_slice('left_over', 2, 'a')});
half_a_move('"left_over/1@1"', 1, 0, 'c', 'a', 2);
$node{c}->safe_psql('postgres', q{SELECT streamfilter_slice_close('"left_over/1@1"', 0, 1, 2, NULL)});
is(copies('left_over', 'b'), 'left_over/2@1', 'a copy is left behind');
is(copies('left_over', 'c'), 'left_over/0@1 left_over/1@1', '... another one, and a closed place');
is(sql(q{SELECT streamfilter_move_slice('left_over', 1, 'c')}), 't', 'moves go on');
sql(q{SELECT streamfilter_spread_slices('left_over')});
is(copies('left_over', 'b') . '|' . copies('left_over', 'c'), '|left_over/1@3', 'streamfilter_spread_slices() drops what was left');
is(free('b'), $free{b}, '... and its memory is free');
is(sql(known('left_over', 1, 1000)) . ' ' . of_q(known('left_over', 1, 1000)), '1000 1000', '... and both producers know all keys');

# ---- names typed by hand ----------------------------------------------------------------------------------------------

sql(q{CREATE SERVER nowhere FOREIGN DATA WRAPPER streamfilter; CREATE FOREIGN DATA WRAPPER other; CREATE SERVER else_where FOREIGN DATA WRAPPER other});
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
for my $servers (sort keys %refused)
{
	like(output("CREATE FOREIGN TABLE named (id int) SERVER streamfilter OPTIONS (servers '$servers', kind 'lru', memory '64kB')"), qr/ERROR:  .*$refused{$servers}/s, "servers '$servers'");
	like(output("ALTER FOREIGN TABLE torn OPTIONS (SET servers '$servers')"), qr/ERROR:  .*HINT:/s, '... nor for a filter that has others');
}
like(output(qq{CREATE FOREIGN TABLE named (id int) SERVER streamfilter OPTIONS (servers '$_', home_servers '2', $shared)}), qr/ERROR:  .*named twice/s, "servers '$_' whose slices move")
	for 'a, a', 'a, b, b';
like(output(q{ALTER FOREIGN TABLE torn OPTIONS (SET first_places '1:9@1, 3:3@1')}), qr/ERROR:  option first_places of filter "torn" names a server.*HINT:/s, 'no such first place');
is(sql(known('torn', 1, 1000)), '1000', 'nothing has changed');

# The greatest number of names, all of one server. Last, a name of this server: its filter is not a part of itself.
sql(join '', map { server_sql("s$_", $node{c}, q{timeout '8s'}) } 1 .. 64);
sql(q{CREATE FOREIGN TABLE many (id int) SERVER streamfilter OPTIONS (servers '} . join(', ', map { "s$_" } 1 .. 64) . q{', kind 'lru', memory '4MB', slices '64')});
like(output(q{INSERT INTO many SELECT generate_series(1, 1000)}), qr/ERROR:  .*place in option servers.*HINT:/s, '64 names of one server');
like(output(q{CREATE FOREIGN TABLE fewer (id int) SERVER streamfilter OPTIONS (servers '} . join(', ', map { "s$_" } 1 .. 64) . q{', kind 'lru', memory '4MB', slices '8')}),
	qr/ERROR:  .*(?:HINT|DETAIL):/s, 'more servers than slices');
sql(server_sql('itself', $node{p}, q{timeout '8s'}));
sql(q{CREATE FOREIGN TABLE mirrored (id int) SERVER streamfilter OPTIONS (servers 'itself', kind 'lru', memory '64kB')});
like(output(q{INSERT INTO mirrored VALUES (1)}), qr/ERROR:  filter "mirrored" exists, but does not hold slices.*HINT:  Give one of the two/s, 'a name of this server');

done_testing();
