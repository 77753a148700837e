# Servers that go: streamfilter_retire() takes one out of those that hold a filter, also one that is dead and empty; what is
# known of a place that cannot be asked.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SliceServers;
use Test::More;

my %node = map { $_ => start_node($_) } qw(p a b c);
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
like($notice, qr/NOTICE:  no other producer.*HINT:  .*ALTER FOREIGN TABLE public.living OPTIONS \(SET servers '\w, \w, c', ADD first_places '1:[13]\@1, 3:[13]\@1'\)/s,
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

sql(q{DROP FOREIGN TABLE living});
is(join('', map { $node{$_}->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname ~ '^living'}) } qw(a c)), '00', 'DROP leaves nothing');

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
