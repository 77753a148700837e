# streamfilter_retire() takes a server out of those that hold a filter, also a dead and empty one; and what is known of
# a slice whose place cannot be asked.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Servers;
use Test::More;

my %node = map { $_ => start_node($_) } qw(p q a b c);
sub sql { return $node{p}->safe_psql('postgres', $_[0]); }
sub output { my ($statements) = @_; my ($code, $out, $err) = $node{p}->psql('postgres', $statements); return $err; }
sub count { my ($name, $from, $to) = @_; return sql("SELECT count(*) FROM generate_series($from, $to) i WHERE streamfilter_test('$name', i)"); }
sub places { my ($name) = @_; return sql("SELECT string_agg(slice || coalesce(server, '-'), ' ' ORDER BY slice) FROM streamfilter_slice_places('$name')"); }

sql(join '', map { server_sql($_, $node{$_}, q{connect_timeout '2s', timeout '8s'}) } qw(a b c));
for my $name (qw(living dead laden))
{
	sql("CREATE FOREIGN TABLE $name (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'lru', memory '512kB', slices '4');
	     INSERT INTO $name SELECT generate_series(1, 1000)");
}
like(output(q{SELECT streamfilter_retire('living', 'b')}), qr/ERROR:  .*HINT:  .*home_servers '2'/s, 'slices that may not move stay');
sql("ALTER FOREIGN TABLE $_ OPTIONS (SET servers 'a, b, c', ADD home_servers '2')") for qw(living dead laden);

# ---- while it lives --------------------------------------------------------------------------------------------

my ($code, $moved, $notice) = $node{p}->psql('postgres', q{SELECT streamfilter_retire('living', 'b')});
is($moved, '2', 'its slices move') or diag($notice);
like($notice, qr/NOTICE:  no other producer.*HINT:  .*ALTER FOREIGN TABLE public.living OPTIONS \(SET servers '\w, \w, c', ADD first_places '1:[13]\@1, 3:[13]\@1', ADD retired '2'\)/s,
	'... and it says what other producers type');
unlike(places('living'), qr/b/, '... to other servers');
is(count('living', 1, 1000), '1000', '... with what they know');
$node{b}->safe_psql('postgres', 'DROP FOREIGN TABLE living');
is(count('living', 1, 1000), '1000', 'nobody asks the server any more');
sql(q{INSERT INTO living SELECT generate_series(1001, 1200)});
is(count('living', 1, 1200), '1200', 'the filter goes on');
sql(q{SELECT streamfilter_move_slice('living', 1, 'c'); SELECT streamfilter_move_slice('living', 1, 'a'); SELECT streamfilter_spread_slices('living')});
is(count('living', 1, 1200), '1200', 'slices move on');
sql(q{ALTER FOREIGN TABLE living OPTIONS (SET memory '1MB')});
is(count('living', 1, 1200), '1200', 'and are resized');
like(output(q{SELECT streamfilter_retire('living', 'b')}), qr/ERROR:  filter "living" is not on a server "b"/, 'it is retired once');

like(output(q{ALTER FOREIGN TABLE living OPTIONS (SET retired '1, 2')}), qr/ERROR:  option retired of filter "living" names a server that holds slices.*HINT:/s,
	'no server is retired by hand');
sql(q{DROP FOREIGN TABLE living});
is(join('', map { $node{$_}->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname ~ '^living'}) } qw(a c)), '00', 'DROP leaves nothing');

# ---- a producer that was not told -------------------------------------------------------------------------------------

sub of_q { my ($statements) = @_; my ($code, $out, $err) = $node{q}->psql('postgres', $statements); return $code == 0 ? $out : $err; }
sub count_of_q { my ($name, $from, $to) = @_; return of_q("SELECT count(*) FROM generate_series($from, $to) i WHERE streamfilter_test('$name', i)"); }
my $stale = qr/ERROR:  the list of servers of filter "told" is out of date.*DETAIL:  .*HINT:  .*first_places/s;
my $shared = q{CREATE FOREIGN TABLE told (id int) SERVER streamfilter OPTIONS (servers 'a, b, c', home_servers '2', kind 'lru', memory '512kB', slices '4', seed '7')};

$node{q}->safe_psql('postgres', join '', map { server_sql($_, $node{$_}, q{connect_timeout '2s', timeout '8s'}) } qw(a b c));
sql($shared =~ s/, home_servers '2'//r =~ s/, c'/'/r);
sql(q{INSERT INTO told SELECT generate_series(1, 1000); ALTER FOREIGN TABLE told OPTIONS (SET servers 'a, b, c', ADD home_servers '2')});
of_q($shared);
is(count_of_q('told', 1, 1000), '1000', 'two producers share a filter');
sql(q{SELECT streamfilter_move_slice('told', 1, 'c')});
is(of_q(q{SELECT streamfilter_move_slice('told', 3, 'c')}), 't', '... and both move slices');

my $typed;
{
	my ($code, $moved, $notice) = $node{p}->psql('postgres', q{SELECT streamfilter_retire('told', 'b')});
	($typed) = $notice =~ /(ALTER FOREIGN TABLE .*OPTIONS \(.*\))/;
}
like(of_q("SELECT streamfilter_move_slice('told', $_, 'b')"), $stale, "slice $_: a producer that still has the server cannot move it") for 0 .. 3;
like(of_q(q{SELECT streamfilter_move_slice('told', 1, 'a')}), $stale, '... nor anywhere else');
like(of_q(q{SELECT streamfilter_spread_slices('told')}), $stale, '... nor spread slices');
like(of_q(q{SELECT streamfilter_retire('told', 'b')}), $stale, '... nor retire it, too');
like(of_q(q{SELECT streamfilter_retire('told', 'c')}), $stale, '... nor another one');
like(of_q(q{ALTER FOREIGN TABLE told OPTIONS (SET memory '1MB')}), $stale, '... nor alter its size');
is(count('told', 1, 1000), '1000', 'all slices are found');
is(count_of_q('told', 1, 1000), '1000', '... by the other producer, too');
sql(q{SELECT streamfilter_move_slice('told', i, 'a'), streamfilter_move_slice('told', i, 'c') FROM generate_series(0, 3) i});
like(of_q(q{SELECT streamfilter_move_slice('told', 3, 'a')}), $stale, 'that holds where slices have gone since');
is(count_of_q('told', 1, 1000), '1000', '... where it finds them');
$node{q}->safe_psql('postgres', $typed);
is(of_q(q{SELECT streamfilter_move_slice('told', 3, 'a')}), 't', 'a producer that was told moves slices again');
is(count('told', 1, 1000) . ' ' . count_of_q('told', 1, 1000), '1000 1000', '... and both know all keys');

# A call that was rolled back is repeated: until then nobody moves anything.
sql(q{ALTER FOREIGN TABLE told OPTIONS (SET servers 'a, a, c, b')});
of_q(q{ALTER FOREIGN TABLE told OPTIONS (SET servers 'a, a, c, b')});
is(of_q(q{SELECT streamfilter_move_slice('told', 0, 'b')}), 't', 'a server that was retired is taken in again');
like(output(q{BEGIN; SELECT streamfilter_retire('told', 'b'); ROLLBACK}), qr/NOTICE:  no other producer/, 'a retirement is rolled back');
my $away = q{SELECT streamfilter_move_slice('told', 0, 'a'), streamfilter_move_slice('told', 0, 'c')};
like(output($away), $stale, '... then its producer moves no slices');
like(of_q($away), $stale, '... nor does another one');
like(of_q(q{SELECT streamfilter_retire('told', 'c')}), $stale, '... which retires no other server');
is(count('told', 1, 1000) . ' ' . count_of_q('told', 1, 1000), '1000 1000', '... and both know all keys');
my $repeated = output(q{SELECT streamfilter_retire('told', 'b')});
unlike($repeated, qr/ERROR/, '... until it is repeated');
is(output(q{SELECT streamfilter_move_slice('told', 0, 'c'), streamfilter_move_slice('told', 0, 'a')}), '', '... and they move again');
is(count('told', 1, 1000) . ' ' . count_of_q('told', 1, 1000), '1000 1000', '... with all keys');

of_q($1) if $repeated =~ /(ALTER FOREIGN TABLE .*?OPTIONS \(.*?\))\. /;

# Servers that were added go and come again: those that stand at their places in the list hold nothing there.
sub retire_everywhere
{
	my ($name) = @_;
	my ($code, $moved, $notice) = $node{p}->psql('postgres', "SELECT streamfilter_retire('told', '$name')");
	$node{q}->safe_psql('postgres', $1) if $notice =~ /(ALTER FOREIGN TABLE .*?OPTIONS \(.*?\))\. /;
	return $code;
}
sub take_in
{
	my ($name) = @_;
	my $servers = sql(q{SELECT option_value FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = 'told'::regclass AND option_name = 'servers'});
	$_->safe_psql('postgres', "ALTER FOREIGN TABLE told OPTIONS (SET servers '$servers, $name')") foreach @node{qw(p q)};
	return;
}
for my $name (qw(c a b c a b))
{
	take_in('b') if $name eq 'c' && places('told') !~ /b/;
	sql(q{SELECT streamfilter_spread_slices('told')});
	is(retire_everywhere($name), 0, "$name is retired");
	unlike(places('told'), qr/$name/, '... and holds nothing');
	is(count('told', 1, 1000) . ' ' . count_of_q('told', 1, 1000), '1000 1000', '... and both know all keys');
	take_in($name);
	is($node{q}->psql('postgres', q{SELECT streamfilter_spread_slices('told')}), 0, '... and it is taken in again');
	$node{q}->safe_psql('postgres', q{INSERT INTO told SELECT generate_series(1001, 1100)});
	is(count('told', 1, 1100) . ' ' . count_of_q('told', 1, 1100), '1100 1100', '... and keys come');
}

# All homes go: nothing of them is left, nor needed, and what the places know is what counts.
{
	sql(q{CREATE FOREIGN TABLE homeless (id int) SERVER streamfilter OPTIONS (servers 'a', kind 'bloom', memory '256kB', keys '5000', fpr '1e-4', slices '2')});
	sql(q{INSERT INTO homeless SELECT generate_series(1, 1000); ALTER FOREIGN TABLE homeless OPTIONS (SET servers 'a, b', ADD home_servers '1')});
	is(output(q{SELECT streamfilter_retire('homeless', 'a')}) =~ /ERROR/ ? 'fails' : 'done', 'done', 'the last home is retired');
	is(count('homeless', 1, 1000), '1000', '... and new sessions know all keys');
	sql(q{ALTER FOREIGN TABLE homeless OPTIONS (SET memory '512kB')});
	is(count('homeless', 1, 1000), '1000', '... also of the filter in another size');
	is($node{b}->safe_psql('postgres', q{SELECT count(DISTINCT option_value) FROM pg_class JOIN pg_foreign_table ON ftrelid = pg_class.oid, pg_options_to_table(ftoptions)
	     WHERE relname ~ '^homeless/' AND option_name = 'memory' AND option_value::bigint > 200000}), '1', '... which all places have');
	sql(q{DROP FOREIGN TABLE homeless});
}

# ---- dead and empty ----------------------------------------------------------------------------------------------

sql(q{SELECT streamfilter_move_slice('dead', 1, 'c'), streamfilter_move_slice('dead', 3, 'a')});
$node{b}->stop('immediate');
like(places('dead'), qr/^0a 1- 2a 3-$/, 'where slices are that its home cannot tell is unknown');
is(output(q{SELECT streamfilter_retire('dead', 'b')}) =~ /ERROR/ ? 'fails' : 'done', 'done', 'a server that is dead and empty is retired');
is(count('dead', 1, 1000), '1000', '... and new sessions know all keys');
sql(q{INSERT INTO dead SELECT generate_series(1001, 1200)});
is(count('dead', 1, 1200), '1200', '... and remember more');
sql(q{TRUNCATE dead; INSERT INTO dead VALUES (1)});
is(count('dead', 1, 1200), '1', 'TRUNCATE needs it no more');
sql(q{ALTER FOREIGN TABLE dead RENAME TO gone; DROP FOREIGN TABLE gone});
is(join('', map { $node{$_}->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname ~ '^(dead|gone)'}) } qw(a c)), '00', 'nor do RENAME and DROP');

like(output(q{SELECT streamfilter_retire('laden', 'b')}), qr/ERROR:  slice 1 of filter "laden" cannot be found.*HINT:  Bring the server back/s,
	'one that has slices is not given up');

done_testing();
