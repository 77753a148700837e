# A filter that ALTER brings to other servers, or back, starts empty, and says so: also one that has not been used since a restart.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use Servers;
use Test::More;

my $node = start_node('p');
my $holder = start_node('a');
$node->safe_psql('postgres', server_sql('a', $holder, q{timeout '30s'}));
sub sql { return $node->safe_psql('postgres', $_[0]); }
sub said { my ($code, undef, $err) = $node->psql('postgres', $_[0]); is($code, 0, $_[0]); return $err; }
sub known { return sql(q{SELECT streamfilter_test('f', 1)}); }

my $make = q{CREATE FOREIGN TABLE f (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB')};
sql("$make; INSERT INTO f VALUES (1)");
like(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD servers 'a')}), qr/WARNING:  filter "f" starts empty\nDETAIL:.*\nHINT:/, 'to a server');
is(known(), 'f', 'there it starts empty');
sql('INSERT INTO f VALUES (1)');
like(said(q{ALTER FOREIGN TABLE f OPTIONS (DROP servers)}), qr/WARNING:  filter "f" starts empty\nDETAIL:.*\nHINT:/, 'and back');

sql("DROP FOREIGN TABLE f; $make; INSERT INTO f VALUES (1)");
$node->restart;
like(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD servers 'a')}), qr/WARNING:  filter "f" starts empty/, 'one that is not restored yet');

sql('SET client_min_messages = error; DROP FOREIGN TABLE f');
$holder->safe_psql('postgres', 'DROP FOREIGN TABLE IF EXISTS f');
sql($make);
unlike(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD servers 'a')}), qr/starts empty/, 'a new one has nothing to lose');
unlike(said(q{ALTER FOREIGN TABLE f OPTIONS (ADD mode 'shadow')}), qr/starts empty/, 'nor is anything lost by mode');

# Told before anything is known of the server.
my (undef, undef, $err) = $node->psql('postgres', q{SELECT streamfilter_test('f', 1)});
is($err, '', 'with a user mapping');
sql('DROP USER MAPPING FOR CURRENT_USER SERVER a');
(undef, undef, $err) = $node->psql('postgres', q{SELECT streamfilter_test('f', 1)});
like($err, qr/HINT:  Type: CREATE USER MAPPING FOR \w+ SERVER a OPTIONS/, 'without one, the HINT names the server');
done_testing();
