# Another PostgreSQL server where a server of filters was, by ALTER SERVER or at the same address, knows nothing of what they
# have seen: this is said, and to whom it happens, and nothing else is. And the three ways to replace a server that docs/servers.md names.
#
# flavours: faults
use Sf;

my %node = map { $_ => start_node($_) } qw(p a b c);

sql(join '', map { server_sql($_, $node{$_}, q{connect_timeout '10s', timeout '30s'}) } qw(a b));
sql(server_sql('unused', $node{a}, q{connect_timeout '10s'}));
sql(q{CREATE FOREIGN TABLE spread (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'lru', memory '256kB', slices '4');
      CREATE FOREIGN TABLE "Whole" (id int) SERVER a OPTIONS (kind 'lru', memory '64kB');
      CREATE FOREIGN TABLE elsewhere (id int) SERVER b OPTIONS (kind 'lru', memory '64kB');
      CREATE FOREIGN TABLE here (id int) SERVER streamfilter OPTIONS (kind 'lru', memory '64kB')});
sql("INSERT INTO $_ SELECT generate_series(1, 100)") for qw(spread "Whole" elsewhere here);

# ---- ALTER SERVER ---------------------------------------------------------------------------------------------------

my ($host, $port, $other) = ($node{a}->host, $node{a}->port, $node{c}->port);
my $moved = said("ALTER SERVER a OPTIONS (SET port '$other')");
like($moved, qr/WARNING:  what filters know on server "a" is at its former address\n/, 'another port: a WARNING');
like($moved, qr/DETAIL:  They are: (public\.spread, public\."Whole"|public\."Whole", public\.spread)\. Unless/, '... names the filters of that server alone');
like($moved, qr/HINT:  .*a standby of the former server.*promote it.*SELECT streamfilter_warm\('public\./, '... and says what to type');
like(said("ALTER SERVER a OPTIONS (SET $_)"), qr/WARNING:  what filters know/, "another place: $_") for "host 'nowhere'", "dbname 'other'", "port '1', SET timeout '31s'";
like(said(q{ALTER SERVER a OPTIONS (ADD hostaddr '127.0.0.1')}), qr/WARNING:  what filters know/, 'hostaddr comes before host');
like(said(q{ALTER SERVER a OPTIONS (DROP dbname)}), qr/WARNING:  what filters know/, 'DROP of a part');
sql("ALTER SERVER a OPTIONS (SET host '$host', DROP hostaddr, SET port '$port', ADD dbname 'postgres')");
is(known('spread', 1, 100) . ' ' . known('"Whole"', 1, 100), '100 100', 'back at the former address, nothing is lost');

is(said($_), '', "no word of: $_") for
	"ALTER SERVER a OPTIONS (SET port '$port')", "ALTER SERVER a OPTIONS (SET host '$host,standby', SET port '$port,5432')",
	q{ALTER SERVER a OPTIONS (SET timeout '30s', ADD idle_timeout '1h')}, 'ALTER SERVER unused OPTIONS (SET port \'1\')',
	q{ALTER SERVER a OWNER TO CURRENT_USER};
unlike(said(q{ALTER SERVER a OPTIONS (SET nothing 'x', SET port '1')}), qr/WARNING/, 'nor of an ALTER that fails');
sql(q{CREATE EXTENSION postgres_fdw; CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (port '1')});
is(said(q{ALTER SERVER other OPTIONS (SET port '2')}), '', 'nor of servers of others');
sql("ALTER SERVER a OPTIONS (SET host '$host', SET port '$port')");

sql(join ';', map { "CREATE FOREIGN TABLE many$_ (id int) SERVER b OPTIONS (kind 'lru', memory '64kB')" } 1 .. 20);
my $many = said("ALTER SERVER b OPTIONS (SET port '$other')");
like($many, qr/and 12 others\./, 'a list of many names is cut');
my @named = split /, /, ($many =~ /They are: (.*?) and 12/)[0];
is(scalar(@named), 10, '... after ten');

sql(sprintf q{ALTER SERVER b OPTIONS (SET port '%d')}, $node{b}->port);

# ---- the first contact ----------------------------------------------------------------------------------------------

my $ask = 'SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_test(\'%s\', i)';
unlike(said(sprintf $ask, 'spread'), qr/WARNING/, 'no word while both servers have the filter');
for my $seed ('', q{, seed '7'})
{
	sql(q{DROP FOREIGN TABLE IF EXISTS fresh});
	is(said("CREATE FOREIGN TABLE fresh (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'lru', memory '256kB', slices '4'$seed);
		INSERT INTO fresh SELECT generate_series(1, 100)"), '', "nor when it is made$seed");
	is(said('INSERT INTO fresh VALUES (101)'), '', '... or used by another session');
	sql('DROP FOREIGN TABLE fresh', $node{b});    # as if it had been built anew
	my $said = said('INSERT INTO fresh SELECT generate_series(1, 100)');
	like($said, qr/WARNING:  filter "fresh" starts empty on server "b"\nDETAIL:  Server "a" has the filter.*\nHINT:  .*streamfilter_warm\('public.fresh'/, "a server that was built anew$seed");
	is(scalar(() = $said =~ /WARNING/g), 1, '... once');
	is(said('INSERT INTO fresh SELECT generate_series(1, 100)'), '', '... and no more');
	sql('DROP FOREIGN TABLE fresh', $node{a});
	like(said(sprintf $ask, 'fresh'), qr/WARNING:  filter "fresh" starts empty on server "a"\n/, '... the first of its servers');
}
said("ALTER SERVER b OPTIONS (SET port '$other')");
like(said(sprintf $ask, 'spread'), qr/WARNING:  filter "spread" starts empty on server "b"\n/, 'another server by ALTER SERVER');

# ---- how a server is replaced ---------------------------------------------------------------------------------------

my $first = start_node('first', "fsync = off\n", allows_streaming => 1);
my $standby = start_standby('standby', undef, $first);
sql(server_sql('one', $first, q{connect_timeout '10s', timeout '30s'}) . server_sql('two', $node{a}, q{connect_timeout '10s', timeout '30s'}));
sql(q{CREATE FOREIGN TABLE clicked (id int) SERVER streamfilter OPTIONS (servers 'one, two', kind 'bloom', memory '256kB', keys '1000', slices '4');
      CREATE TABLE clicks (id int);
      CREATE TRIGGER zz BEFORE INSERT ON clicks FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('clicked');
      INSERT INTO clicks SELECT generate_series(1, 200)});
sub stored { my ($to) = @_; sql("INSERT INTO clicks SELECT generate_series(1, $to)"); return sql('SELECT count(*) FROM clicks'); }
sub address { my ($of) = @_; return sprintf "ALTER SERVER one OPTIONS (SET host '%s', SET port '%d')", $of->host, $of->port; }

$first->wait_for_catchup($standby, 'replay', $first->lsn('insert'));
$first->stop('immediate');
$standby->promote;
sql(address($standby));
is(stored(200), '200', 'a standby that was promoted has the address: nothing is forgotten');
is(stored(300), '300', '... and it goes on');

$standby->stop('immediate');
sql(address($node{c}));
like(said(sprintf $ask, 'clicked'), qr/WARNING:  filter "clicked" starts empty on server "one"\n/, 'an empty server has it: said');
is(sql(q{SELECT streamfilter_warm('clicked', 'clicks')}), '300', '... filled from the table');
is(stored(300), '300', '... no repeat is stored');
is(stored(400), '400', '... and it goes on');

sql(server_sql('three', $node{b}, q{connect_timeout '10s', timeout '30s'}));
sql(q{CREATE FOREIGN TABLE clicked_on_three (id int) SERVER streamfilter
        OPTIONS (servers 'one, two, three', kind 'bloom', memory '384kB', keys '2000', slices '6');
      SELECT streamfilter_warm('clicked_on_three', 'clicks');
      BEGIN; DROP TRIGGER zz ON clicks;
      CREATE TRIGGER zz BEFORE INSERT ON clicks FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('clicked_on_three'); COMMIT;
      DROP FOREIGN TABLE clicked});
is(stored(400), '400', 'another filter, with more servers: no repeat is stored');
is(stored(500), '500', '... and it goes on');

# ---- one server, where no other tells ---------------------------------------------------------------------------------

my $lone = start_node('lone');
sql(server_sql('lone', $lone, q{connect_timeout '10s', timeout '30s'}));
sql(q{CREATE FOREIGN TABLE single (id int) SERVER lone OPTIONS (kind 'bloom', keys '10000')});
sub add { my ($from, $to) = @_; return said("INSERT INTO single SELECT generate_series($from, $to)"); }
my $changed = qr/^.*WARNING:  filter "single" has other keys than before on server "lone"\nDETAIL:  .*\nHINT:  .*streamfilter_warm\('public.single'.*$/;

is(join('', map { add($_ * 10 + 1, $_ * 10 + 10) } 0 .. 2), '', 'no word while it grows');
$lone->stop('fast');
PostgreSQL::Test::Utils::system_or_bail('cp', '-a', $lone->data_dir, $lone->data_dir . '.kept');
$lone->start;
is(join('', map { add($_ * 10 + 1, $_ * 10 + 10) } 3 .. 5), '', 'nor after a restart');
$lone->stop('immediate');
$lone->start;
is(add(61, 70), '', 'nor after a crash');
$lone->stop('immediate');
PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', $lone->data_dir);
PostgreSQL::Test::Utils::system_or_bail('mv', $lone->data_dir . '.kept', $lone->data_dir);
$lone->start;
like(add(61, 70), $changed, 'an older backup within one life: said');
is(add(71, 80), '', '... once');
is(sql(q{SELECT replaced FROM streamfilter_slices WHERE filter = 'single'::regclass}), 1, '... and counted');
is(sql(q{SELECT value FROM streamfilter_metrics WHERE name = 'streamfilter_slice_replaced_total' AND labels ->> 'filter' ~ 'single'}), 1, '... also for alerts');
sql('DROP FOREIGN TABLE single', $lone);
like(add(1, 10), $changed, 'made anew: said');
is(add(11, 20) . add(21, 30), '', '... once');

# ---- by a session that keeps its connection ---------------------------------------------------------------------------------

my $holder = open_session();
sub hold { my ($query) = @_; $holder->{stderr} = ''; $holder->query($query); return $holder->{stderr}; }
sub replaced { return sql(q{SELECT replaced FROM streamfilter_slices WHERE filter = 'held'::regclass}); }
sql(q{CREATE FOREIGN TABLE held (id int) SERVER lone OPTIONS (kind 'bloom', keys '10000')});
is(hold('INSERT INTO held SELECT generate_series(1, 10)'), '', 'it makes the part');
sql('DROP FOREIGN TABLE held', $lone);
is(hold('INSERT INTO held SELECT generate_series(11, 20)') =~ /42P01|does not exist/ ? '' : 'no error', '', 'which goes while it has a connection');
like(hold('INSERT INTO held SELECT generate_series(11, 20)'), qr/WARNING:  filter "held" has other keys/, '... made anew: said');
is(replaced(), 1, '... and counted');
is(said(q{BEGIN; INSERT INTO held VALUES (21); ROLLBACK; INSERT INTO held VALUES (22)}) . hold('INSERT INTO held VALUES (23)') . replaced(), 1, '... once, by all sessions');
sql(q{ALTER FOREIGN TABLE held OPTIONS (ADD persistence 'unlogged')});
$lone->restart;
is(said('INSERT INTO held VALUES (24)') . replaced(), 1, 'no word when an unlogged one outlives a restart');
$lone->stop('immediate');
$lone->start;
like(said('INSERT INTO held VALUES (25)'), qr/WARNING:  filter "held" has other keys/, '... but not a crash');
is(replaced(), 2, '... which counts');
end_session($holder);

sql(q{CREATE FOREIGN TABLE undone (id int) SERVER lone OPTIONS (kind 'bloom', keys '10000')});
is(said(q{BEGIN; INSERT INTO held VALUES (31); INSERT INTO undone VALUES (1); INSERT INTO undone VALUES (2); ROLLBACK; INSERT INTO undone VALUES (1)}), '',
	'nor when the transaction that makes one is rolled back');

done_testing();
