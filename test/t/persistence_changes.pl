# Changes of persistence and of size keep what a filter knows, or empty it for good: across restarts, crashes, promotion and PREPARE.
# flavours: quick
use Sf;

my $node = PostgreSQL::Test::Cluster->new('persistence_changes');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'streamfilter'
	max_prepared_transactions = 5
	streamfilter.restore_workers = 0
	autovacuum = off});
$node->start;
sql(q{
	CREATE EXTENSION streamfilter;
	CREATE FUNCTION known(filter regclass) RETURNS bigint LANGUAGE sql AS
		'SELECT count(*) FROM generate_series(1, 1000) i WHERE streamfilter_test(filter, i)'});
my $log_from = 0;
sub log_since { my $text = slurp_file($node->logfile, $log_from); $log_from = -s $node->logfile; return $text }
sub fill { return sql("INSERT INTO $_[0] SELECT generate_series(1, 1000)") }
sub filter
{
	my ($name, $options) = @_;
	sql("CREATE FOREIGN TABLE $name (k bigint) SERVER streamfilter OPTIONS (kind 'clq', memory '128kB', fpr '1e-7'" . ($options // '') . ')');
	return fill($name);
}
sub alter { return said("ALTER FOREIGN TABLE $_[0] OPTIONS ($_[1])") }
my ($to_unlogged, $to_logged) = (q{SET persistence 'unlogged'}, q{SET persistence 'logged'});
my $logged = q{, persistence 'logged'};

# --- To unlogged and back ----------------------------------------------------------------------------------------------

filter('a', $logged);
alter('a', $to_unlogged);
crash();
like(said(q{SELECT known('a')}), qr/WARNING: +filter "a" starts empty.*has ended without a clean shutdown/s, 'lost by a crash: the first use says so');
unlike(said(q{SELECT known('a')}), qr/WARNING/, '... once');
alter('a', $to_logged);
is(sql(q{SELECT known('a')}), 0, '... and it stays empty when it becomes logged');

filter('b', $logged);
alter('b', $to_unlogged);
crash();
like(alter('b', $to_logged), qr/filter "b" starts empty/, 'to logged before its first use after a crash');
is(sql(q{SELECT known('b')}), 0, '... nothing of what was saved before comes back');
crash();
is(sql(q{SELECT known('b')}), 0, '... nor later');

filter('c', $logged);
$node->restart;
alter('c', $to_unlogged);
is(sql(q{SELECT known('c')}), 1000, 'to unlogged before its first use: all is there');
$node->restart;
is(sql(q{SELECT known('c')}), 1000, '... also after a clean restart');

filter('d', $logged);
sql(qq{BEGIN; ALTER FOREIGN TABLE d OPTIONS ($to_unlogged); PREPARE TRANSACTION 'd'});
sql(q{COMMIT PREPARED 'd'});
$node->restart;
is(sql(q{SELECT known('d')}), 1000, 'to unlogged by a prepared transaction');

filter('e', $logged);
sql(qq{BEGIN; SAVEPOINT s; ALTER FOREIGN TABLE e OPTIONS ($to_unlogged); ROLLBACK TO s; COMMIT});
crash();
is(sql(q{SELECT known('e')}), 1000, 'to unlogged and undone by a savepoint');
sql(qq{BEGIN; ALTER FOREIGN TABLE e OPTIONS ($to_unlogged); ALTER FOREIGN TABLE e OPTIONS ($to_logged); COMMIT});
crash();
is(sql(q{SELECT known('e')}), 1000, 'to unlogged and back in one transaction');
sql(qq{BEGIN; ALTER FOREIGN TABLE e OPTIONS (SET memory '256kB'); SAVEPOINT s; ALTER FOREIGN TABLE e OPTIONS ($to_unlogged); ROLLBACK TO s; COMMIT});
sql('INSERT INTO e VALUES (1001)');
crash();
is(known('e', 1, 1001), 1001, 'another size, to unlogged, and the latter undone');
sql(qq{BEGIN; ALTER FOREIGN TABLE e OPTIONS ($to_unlogged); SAVEPOINT s; ALTER FOREIGN TABLE e OPTIONS ($to_logged); ROLLBACK TO s; COMMIT});
$node->restart;
is(sql(q{SELECT known('e')}), 1000, 'to unlogged, and back undone: it is unlogged, and all is there after a clean restart');
sql(qq{BEGIN; ALTER FOREIGN TABLE e OPTIONS ($to_logged); SAVEPOINT s; ALTER FOREIGN TABLE e OPTIONS (SET memory '128kB'); ROLLBACK TO s; COMMIT});
crash();
is(sql(q{SELECT known('e')}), 1000, 'to logged, and another size undone');
sql(qq{BEGIN; ALTER FOREIGN TABLE e OPTIONS (SET memory '128kB'); SAVEPOINT s; ALTER FOREIGN TABLE e OPTIONS ($to_unlogged); RELEASE s; SAVEPOINT t; ALTER FOREIGN TABLE e OPTIONS ($to_logged); RELEASE t; COMMIT});
crash();
is(sql(q{SELECT known('e')}), 1000, 'another size, to unlogged and back, in savepoints that stay');

sql('TRUNCATE c');
crash();
unlike(said(q{SELECT known('c')}), qr/WARNING/, 'an unlogged filter that was emptied on purpose loses nothing');

# Each life writes a header to the log, so that its loss is noticed. The next life's takes its place.
filter('l', q{, persistence 'unlogged'});
my $headers = q{SELECT count(*) FROM _streamfilter.streamfilter_log WHERE filter = 'l'::regclass};
for (1 .. 4) { crash(); sql("INSERT INTO l VALUES ($_)") }
is(sql($headers), 1, 'after lives that were lost one after the other, the log has one header');
crash();
sql('BEGIN; INSERT INTO l VALUES (5); ROLLBACK');
crash();
like(said(q{SELECT known('l')}), qr/filter "l" starts empty/, '... which a rolled-back transaction does not take away');
sql(q{BEGIN; INSERT INTO l VALUES (6); PREPARE TRANSACTION 'l'});
crash();
sql('VACUUM _streamfilter.streamfilter_log');
sql('INSERT INTO l VALUES (7)');
sql(q{COMMIT PREPARED 'l'; INSERT INTO l VALUES (8)});
$node->restart;
is(known('l', 1, 8), 2, '... nor does one that was prepared in an earlier life');
crash();
sql(q{BEGIN; INSERT INTO l VALUES (9); PREPARE TRANSACTION 'l'});
sql(q{SET statement_timeout = '20s'; INSERT INTO l VALUES (10); RESET statement_timeout; COMMIT PREPARED 'l'});
is(known('l', 1, 10), 2, 'nobody waits for a prepared transaction that replaces it');
crash();
sql('INSERT INTO l VALUES (11)');
is(sql($headers), 1, '... and the next header takes the place of both');

# --- Sizes that were used before ---------------------------------------------------------------------------------------

sub no_damage { unlike(log_since(), qr/damaged|set aside/, "... and nothing is taken for damage"); return }
log_since();
sql(q{CREATE FOREIGN TABLE g (k bigint) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB', fpr '1e-7'); SELECT streamfilter_save('g')});
alter('g', q{SET memory '128kB'});
sql('TRUNCATE g');
alter('g', q{SET memory '64kB'});
sql('INSERT INTO g VALUES (5)');
crash();
is(sql(q{SELECT known('g')}), 1, 'the size of a former image');
no_damage();

filter('h');
sql(q{BEGIN; TRUNCATE h; ALTER FOREIGN TABLE h OPTIONS (SET memory '64kB'); ALTER FOREIGN TABLE h OPTIONS (SET memory '64kB'); COMMIT});
is(sql(q{SELECT known('h')}), 0, 'emptied, and altered twice');
is(alter('h', q{SET memory '128kB'}), '', '... nothing is lost by another ALTER, nor does it say so');
is(sql(q{SELECT known('h')}), 0, '... the former size brings nothing back');

filter('i');
sql(qq{BEGIN; TRUNCATE i; ALTER FOREIGN TABLE i OPTIONS (SET memory '$_'); COMMIT}) for qw(64kB 128kB);
fill('i');
crash();
is(sql(q{SELECT known('i')}), 1000, 'emptied and altered twice: later keys survive');
no_damage();

filter('j');
sql(q{BEGIN; TRUNCATE j; ALTER FOREIGN TABLE j OPTIONS (SET memory '64kB'); ROLLBACK});
is(sql(q{SELECT known('j')}), 1000, 'emptied and altered, rolled back');
sql(q{BEGIN; TRUNCATE j; SAVEPOINT s; ALTER FOREIGN TABLE j OPTIONS (SET memory '64kB'); ROLLBACK TO s; COMMIT});
is(sql(q{SELECT known('j')}), 0, '... only the ALTER');
fill('j');
sql(q{BEGIN; TRUNCATE j; ALTER FOREIGN TABLE j OPTIONS (SET memory '64kB'); INSERT INTO j VALUES (7); PREPARE TRANSACTION 'j'});
sql(q{ROLLBACK PREPARED 'j'});
is(sql(q{SELECT known('j')}), 1000, '... prepared and rolled back');
sql(q{BEGIN; TRUNCATE j; ALTER FOREIGN TABLE j OPTIONS (SET memory '64kB'); INSERT INTO j VALUES (7); PREPARE TRANSACTION 'j'});
sql(q{COMMIT PREPARED 'j'});
is(sql(q{SELECT known('j')}), 1, '... prepared and committed');
crash();
is(sql(q{SELECT known('j')}), 1, '... also after a crash');

# --- A standby ---------------------------------------------------------------------------------------------------------

my $standby = start_standby('persistence_standby');
filter($_, $logged) for qw(p q r);
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(sql(qq{SELECT known('$_')}, $standby), 1000, "a standby knows $_") for qw(p q r);
filter('u', q{, persistence 'unlogged'});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(sql(q{SELECT known('u')}, $standby), 0, '... and nothing of an unlogged one');
alter('p', $to_unlogged);
sql('TRUNCATE p');
sql(q{BEGIN; TRUNCATE q; ALTER FOREIGN TABLE q OPTIONS (SET memory '64kB'); COMMIT});
alter('q', q{SET memory '128kB'});
sql(q{TRUNCATE r; INSERT INTO r VALUES (3)});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(sql(q{SELECT known('q') || ' ' || known('r')}, $standby), '0 1', 'it follows what emptied them');

# Nobody looks there while the filter is unlogged, and the primary restarts meanwhile.
filter('v', $logged);
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(known('v', 1, 2000, $standby), 1000, 'a standby knows a filter');
alter('v', $to_unlogged);
$node->restart;
sql(q{INSERT INTO v VALUES (2000)});
alter('v', $to_logged);
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is(known('v', 1, 2000, $standby), 1001, '... and what came while it was unlogged');
$node->stop('immediate');
$standby->promote;
is(sql(q{SELECT known('p')}, $standby), 0, 'promoted: an unlogged filter is empty');
is(sql(q{SELECT known('q') || ' ' || known('r')}, $standby), '0 1', '... the others are as they were');
$standby->restart;
like(said(q{SELECT known('u')}, $standby), qr/WARNING:  filter "u" starts empty/, '... which says so, also if a clean restart came before its first use');
$standby->stop('immediate');
$standby->start;
is(sql(q{SELECT known('p') || ' ' || known('q') || ' ' || known('r')}, $standby), '0 0 1', '... and stay so');
done_testing();
