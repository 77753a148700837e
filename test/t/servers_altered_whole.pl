# ALTER of a filter over several servers changes all parts or none: rolled back as a whole or to a savepoint, or where a server
# fails before COMMIT. And a server that lacks a function that this takes has another version, which is said.
# flavours: faults
use Sf;
use FaultPoints;

my %node = map { $_ => start_node($_, "max_prepared_transactions = 2\n") } qw(p a b c);
my @holders = @node{qw(a b c)};

sql(join '', map { server_sql($_, $node{$_}, q{connect_timeout '5s', timeout '10s'}) } qw(a b c));

# ---- all parts or none --------------------------------------------------------------------------------------------

sql(q{CREATE FOREIGN TABLE f (id int) SERVER streamfilter OPTIONS (servers 'a, b, c', kind 'bloom', memory '1MB', keys '10000', slices '4', seed '3');
      INSERT INTO f SELECT generate_series(1, 1000)});

# Options of all parts, and those here.
sub state_of
{
	my ($name) = @_;
	my $query = "SELECT string_agg(c.relname || ' ' || option_name || '=' || option_value, ' ' ORDER BY c.relname, option_name)
		FROM pg_class c JOIN pg_foreign_table ON ftrelid = c.oid, pg_options_to_table(ftoptions)
		WHERE c.relname = '$name' AND option_name IN ('conflict', 'persistence')";
	return join "\n", map { sql($query, $_) } $node{p}, @holders;
}
my $before = state_of('f');
sub is_undone
{
	my ($what) = @_;
	is(state_of('f'), $before, "$what: no part is altered");
	is(known('f', 1, 1000), '1000', "$what: all keys are known");
	return;
}

my $alter = q{ALTER FOREIGN TABLE f OPTIONS (ADD conflict 'admit'); ALTER FOREIGN TABLE f OPTIONS (ADD persistence 'unlogged')};
for my $change ((map { "OPTIONS ($_)" } q{SET kind 'sbf'}, q{SET memory '2MB'}, q{SET keys '20000'}, q{SET fpr '0.001'}, q{SET slices '8'}, q{ADD k '5'}, q{SET seed '4'},
	q{ADD nulls 'distinct'}, q{ADD slicing 'vertical'}, q{SET servers 'a, b'}, q{DROP servers}, q{ADD layout 'scattered'}, q{ADD mode 'shadow', SET memory '2MB'}),
	'ADD COLUMN n int', 'DROP COLUMN id', 'ALTER COLUMN id TYPE bigint', q{ALTER COLUMN id OPTIONS (ADD role 'importance')})
{
	like(said("ALTER FOREIGN TABLE f $change"), qr/ERROR:  (?:option "\w+"|columns) of filter "f" cannot be changed.*HINT:  Make another filter.*streamfilter_definition\('public.f'\)/s,
		"$change is refused");
}
is_undone('what is refused');
is(said("ALTER FOREIGN TABLE f $_"), '', "$_ is not") for q{OPTIONS (ADD mode 'enforce')}, q{OPTIONS (DROP mode)}, q{OPTIONS (ADD lost_slice 'votes:1')}, 'ALTER COLUMN id SET STATISTICS 10';
like(said(q{CALL streamfilter_resize('f', '2MB')}), qr/ERROR:  filter "f" cannot be resized.*HINT:  Make another filter, fill it/s, 'nor is it resized');
sql("BEGIN; $alter; INSERT INTO f VALUES (5000); ROLLBACK");
is_undone('ROLLBACK');
sql("BEGIN; SAVEPOINT s; $alter; ROLLBACK TO s; INSERT INTO f VALUES (5001); COMMIT");
is_undone('ROLLBACK TO SAVEPOINT');
is(known('f', 5000, 5001), '1', '... after which the transaction goes on');
like(said("BEGIN; $alter; SELECT 1/0; COMMIT"), qr/division by zero/, 'another statement fails');
is_undone('an error');
sql("DO \$\$ BEGIN $alter; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END \$\$");
is_undone('an exception that is caught');
like(said("BEGIN; $alter; PREPARE TRANSACTION 'x'"), qr/ERROR:  cannot PREPARE a transaction.*HINT:  COMMIT it/s, 'PREPARE TRANSACTION is refused');
is_undone('PREPARE TRANSACTION');

# A server that is gone, or says nothing, when the others are about to commit.
sub at_commit
{
	my ($what, $break, $mend) = @_;
	my $session = $node{p}->background_psql('postgres', on_error_stop => 0);
	$session->query("BEGIN; $alter;");
	$break->();
	$session->query('COMMIT;');
	# Does the session stand outside of a transaction, which has failed?
	my $said = $session->{stderr};
	$mend->();
	like($said, qr/ERROR:  connection to server "b" was lost within the transaction.*HINT:  Repeat the transaction/s, "$what: COMMIT fails") or diag($said);
	$session->quit;
	ok(wait_for(q{SELECT count(*) = 1000 FROM generate_series(1, 1000) i WHERE streamfilter_test('f', i)}), "$what: it is there again");
	is_undone($what);
	return;
}
at_commit('a server is stopped', sub { $node{b}->stop('immediate') }, sub { $node{b}->start });
my ($main) = split /\n/, slurp_file($node{b}->data_dir . '/postmaster.pid');
my @frozen;
at_commit('a server hangs', sub { @frozen = ($main = (split /\n/, slurp_file($node{b}->data_dir . '/postmaster.pid'))[0], split ' ', `ps -o pid= --ppid $main`); kill STOP => @frozen },
	sub { kill CONT => @frozen });

# One that fails after the commit here: said, and the same ALTER mends it.
SKIP:
{
	skip 'built without fault points', 4 unless $ENV{STREAMFILTER_FAULTS};
	my $faults = FaultPoints->new($node{b});
	$faults->set('pre_commit', 'fail');
	my $said = said("BEGIN; ALTER FOREIGN TABLE f OPTIONS (ADD conflict 'admit'); INSERT INTO f SELECT generate_series(6001, 6100); COMMIT; SELECT 1");
	like($said, qr/WARNING:  server "b" has not altered a filter.*HINT:  Repeat the ALTER here/s, 'a server fails in its COMMIT') or diag($said);
	$faults->set('pre_commit', 'pass');
	like(said('INSERT INTO f SELECT generate_series(6200, 6299)'), qr/ERROR:  filter "f" is defined otherwise by its first producer.*option conflict.*HINT:  .*alter it/s, '... after which statements say what differs');
	is(said(q{ALTER FOREIGN TABLE f OPTIONS (SET conflict 'admit')}), '', '... the same ALTER');
	is(known('f', 1, 1000), '1000', '... mends it, and all keys are known');
	sql(q{ALTER FOREIGN TABLE f OPTIONS (DROP conflict)});
}
sql("BEGIN; $alter; COMMIT");
my $after = state_of('f');
isnt($after, $before, 'COMMIT');
is(known('f', 1, 1000), '1000', '... and all keys are known');
is($after, join("\n", ('f conflict=admit f persistence=unlogged') x 4), '... on all servers');
sql('INSERT INTO f SELECT generate_series(10001, 12000)');
is(known('f', 10001, 12000), '2000', '... and the filter goes on');

# A part whose definition is not the filter's: nothing wrong is stored, and what to type is said.
sql(q{ALTER FOREIGN TABLE f OPTIONS (SET keys '4000')}, $node{c});
sql('CREATE TABLE events (id int); CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard(\'f\')');
my $said = said('INSERT INTO events SELECT generate_series(20001, 20100)');
like($said, qr/ERROR:  filter "f" has another definition on server "c".*HINT:  IMPORT FOREIGN SCHEMA.*type there: DROP FOREIGN TABLE public\.f/s, 'a part with another definition');
is(sql('SELECT count(*) FROM events'), '0', '... no row is stored');
sql(q{ALTER FOREIGN TABLE f OPTIONS (SET keys '2500')}, $node{c});
sql('INSERT INTO events SELECT generate_series(20001, 20100)');
is(sql('SELECT count(*) FROM events') . ' ' . known('f', 1, 1000), '100 1000', '... as before: rows are stored, and all keys are known');

# ---- a server that has another version --------------------------------------------------------------------------------

sql('ALTER EXTENSION streamfilter DROP FUNCTION streamfilter_hashes_alter; DROP FUNCTION streamfilter_hashes_alter', $node{b});
$before = state_of('f');
like(said(q{ALTER FOREIGN TABLE f OPTIONS (SET conflict 'wait')}),
	qr/ERROR:  server "b" has a version of streamfilter that cannot do this.*DETAIL:  Its version is [\d.]+\..*HINT:  Install the version.*ALTER EXTENSION streamfilter UPDATE/s,
	'a server without a function that is called there');
is(state_of('f'), $before, '... nothing has happened');
is(known('f', 1, 1000), '1000', '... and all keys are known');

done_testing();
