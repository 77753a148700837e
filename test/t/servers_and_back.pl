# ALTER brings no filter to other servers, or back: its keys would stay behind. And who may not connect is told how.
use Sf;

my $node = start_node('p');
my $holder = start_node('a');
sql(server_sql('a', $holder, q{timeout '30s'}));

my $refused = qr/ERROR:  option "servers" of filter "f" cannot be changed\nDETAIL:.*\nHINT:  Make another filter/;
my $make = q{CREATE FOREIGN TABLE f (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB')};
sql("$make; INSERT INTO f VALUES (1)");
like(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD servers 'a')}), $refused, 'to a server');
is(knows('f', 1), 't', 'it knows what it knew');
$node->restart;
like(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD servers 'a')}), $refused, 'nor one that is not restored yet');
is(knows('f', 1), 't', '... which knows what it knew');

sql("DROP FOREIGN TABLE f; ${\ ($make =~ s/\)$/, servers 'a')/r)}; INSERT INTO f VALUES (1)");
like(said(q{ALTER FOREIGN TABLE f OPTIONS (DROP servers)}), $refused, 'and back');
is(knows('f', 1), 't', '... it knows what it knew');
is(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD mode 'shadow')}), '', 'the mode is changed');

# Told before anything is known of the server.
is(said(q{SELECT streamfilter_test('f', 1)}), '', 'with a user mapping');
sql('DROP USER MAPPING FOR CURRENT_USER SERVER a');
like(said(q{SELECT streamfilter_test('f', 1)}), qr/HINT:  Type: CREATE USER MAPPING FOR \w+ SERVER a OPTIONS/, 'without one, the HINT names the server');
done_testing();
