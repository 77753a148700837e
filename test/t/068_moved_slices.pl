# Filters on several servers that are extended, and their slices moved, while producers on two servers insert: no row is
# lost, and none is there twice; also where a server, or the session that moves a slice, is killed between two steps of a move.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use Servers;
use Test::More;
use Time::HiRes qw(time sleep);

my $settings = q{
	streamfilter.shared_memory = '48MB'
	streamfilter.max_filters = 400
	max_locks_per_transaction = 256
	shared_buffers = 16MB
	restart_after_crash = on
	log_statement = none
};
my %node = map { $_ => start_node($_, $settings) } qw(p q a b c d);
my @origins = @node{qw(p q)};
sub sql { return $node{p}->safe_psql('postgres', $_[0]); }
sub everywhere { my ($statements) = @_; $_->safe_psql('postgres', $statements) for @origins; return; }

everywhere(join '', map { sprintf(
	q{CREATE SERVER %s FOREIGN DATA WRAPPER streamfilter
	  OPTIONS (host '%s', port '%d', dbname 'postgres', connect_timeout '2s', timeout '4s');
	  CREATE USER MAPPING FOR CURRENT_USER SERVER %1$s;},
	$_, $node{$_}->host, $node{$_}->port, $_) } qw(a b c d));

# ---- what a move does --------------------------------------------------------------------------------------

my %kinds = (
	bloom => q{kind 'bloom', memory '1MB', k '6'},
	lru   => q{kind 'lru', memory '1MB'},
	sbf   => q{kind 'sbf', memory '1MB'},
	clq   => q{kind 'clq', memory '1MB'},
	timer => q{kind 'timer', memory '1MB', window '1 day'},
	rows  => q{kind 'timer', memory '1MB', window '1500 rows', k '6'});
for my $kind (sort keys %kinds)
{
	sql("CREATE FOREIGN TABLE k_$kind (id int) SERVER streamfilter OPTIONS (servers 'a, b', slices '4', $kinds{$kind});
	     INSERT INTO k_$kind SELECT generate_series(1, 2000);
	     ALTER FOREIGN TABLE k_$kind OPTIONS (SET servers 'a, b, c', ADD home_servers '2')");
	my $known = sql("SELECT string_agg(streamfilter_test('k_$kind', i)::int::text, '' ORDER BY i) FROM generate_series(1, 4000) i");
	is(sql("SELECT streamfilter_move_slice('k_$kind', 1, 'c'), streamfilter_move_slice('k_$kind', 2, 'c')"), 't|t', "$kind: two slices move");
	is(sql("SELECT string_agg(streamfilter_test('k_$kind', i)::int::text, '' ORDER BY i) FROM generate_series(1, 4000) i"), $known,
		"$kind: the same keys are known");
	is(sql("SELECT streamfilter_move_slice('k_$kind', 1, 'c')"), 'f', "$kind: nothing is left to do");
	sql("SELECT streamfilter_move_slice('k_$kind', 1, 'b'); INSERT INTO k_$kind SELECT generate_series(2001, 2200)");
	is(sql("SELECT string_agg(concat_ws(':', slice, server, epoch), ' ' ORDER BY slice) FROM streamfilter_slice_places('k_$kind')"),
		'0:a:0 1:b:2 2:c:1 3:b:0', "$kind: and one back");
	is(sql("SELECT string_agg(slice || server, ' ' ORDER BY slice) FROM streamfilter_slices WHERE filter = 'k_$kind'::regclass"), '0a 1b 2c 3b',
		"$kind: the view of slices knows");
	$known = sql("SELECT string_agg(streamfilter_test('k_$kind', i)::int::text, '' ORDER BY i) FROM generate_series(1, 4000) i");
	$node{$_}->restart for qw(b c);
	is(sql("SELECT string_agg(streamfilter_test('k_$kind', i)::int::text, '' ORDER BY i) FROM generate_series(1, 4000) i"), $known,
		"$kind: the same after a restart of the servers");
}
is($node{c}->safe_psql('postgres', q{SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relname ~ '/'}),
	join(' ', map { "k_$_/2\@1" } sort keys %kinds), 'what was left behind is dropped');
sql(q{TRUNCATE k_lru});
is(sql(q{SELECT count(*) FROM generate_series(1, 4000) i WHERE streamfilter_test('k_lru', i)}), '0', 'TRUNCATE reaches slices that have moved');
sql(q{INSERT INTO k_lru VALUES (1), (2), (3), (4), (5), (6), (7); DELETE FROM k_lru WHERE id = 1; DELETE FROM k_lru WHERE id = 2; DELETE FROM k_lru WHERE id = 3; DELETE FROM k_lru WHERE id = 4});
is(sql(q{SELECT string_agg(i::text, ' ') FROM generate_series(1, 10) i WHERE streamfilter_test('k_lru', i)}), '5 6 7', 'so does DELETE');

# ---- several places of a key, sliced in the other ways -----------------------------------------------------------

for my $slicing ("slicing 'vertical'", "slicing 'diced', slices '6,2'", "slicing 'diced', dice 'vh', slices '6,2'", "k1 '2', k2 '3'")
{
	my $slices = $slicing =~ /slices/ ? '' : "slices '12',";
	sql("DROP FOREIGN TABLE IF EXISTS wide");
	$_->safe_psql('postgres', 'DROP FOREIGN TABLE IF EXISTS wide') for @node{qw(a b c d)};
	for my $holder (@node{qw(a b c d)})
	{
		$holder->safe_psql('postgres', "DROP FOREIGN TABLE $_") for split /\n/, $holder->safe_psql('postgres',
			q{SELECT quote_ident(relname) FROM pg_class WHERE relname ~ '^wide/'});
	}
	sql("CREATE FOREIGN TABLE wide (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'bloom', memory '1MB', k '6', $slices $slicing);
	     INSERT INTO wide SELECT generate_series(1, 1000);
	     ALTER FOREIGN TABLE wide OPTIONS (SET servers 'a, b, c', ADD home_servers '2')");
	is(sql(q{SELECT streamfilter_spread_slices('wide')}), '4', "$slicing: the third server gets its share");
	is(sql(q{SELECT string_agg(server || ' ' || n, ', ' ORDER BY server) FROM (SELECT server, count(*) n FROM streamfilter_slice_places('wide') GROUP BY 1) s}),
		'a 4, b 4, c 4', "$slicing: all have equally many");
	is(sql(q{SELECT count(*) FROM generate_series(1, 1000) i WHERE streamfilter_seen('wide', i)}), '1000', "$slicing: what was known is known");
	is(sql(q{SELECT count(*) FROM generate_series(1001, 2000) i WHERE streamfilter_seen('wide', i)}), '0', "$slicing: what was new is new");
	is(sql(q{SELECT count(*) FROM generate_series(1, 2000) i WHERE streamfilter_seen('wide', i)}), '2000', "$slicing: once");
}

# ---- names that look like those of slices ---------------------------------------------------------------------------

my %alike = map { $_ => sprintf('k_named/0@%s', $_) } 'x', '7', '1x', '';
$_ = qq{"$_"} for values %alike;
sql(join '', q{CREATE FOREIGN TABLE k_named (id int) SERVER streamfilter OPTIONS (servers 'a', kind 'bloom', memory '256kB', k '4', slices '4');
     INSERT INTO k_named SELECT generate_series(1, 100);
     ALTER FOREIGN TABLE k_named OPTIONS (SET servers 'a, b', ADD home_servers '1');},
	map { qq{CREATE FOREIGN TABLE $_ (id int) SERVER streamfilter OPTIONS (servers 'b', kind 'bloom', memory '256kB', k '4');
	         INSERT INTO $_ SELECT generate_series(1, 100);} } values %alike);
is(sql(q{SELECT streamfilter_move_slice('k_named', 0, 'b'), streamfilter_move_slice('k_named', 0, 'a'), streamfilter_move_slice('k_named', 0, 'b')}), 't|t|t',
	'a slice moves to where filters have names like that of a slice');
is(sql("SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_test('$alike{$_}', i)"), '100', "... filter $alike{$_} is untouched")
	for sort keys %alike;
is($node{b}->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname ~ '^k_named/0@[1-6]$'}), '1', '... what moves have left is dropped');

# ---- strangers --------------------------------------------------------------------------------------------------------

# The names of relations to come can be foreseen; a role that may create something in that schema keeps no slice from moving.
$node{b}->safe_psql('postgres', q{
	CREATE ROLE stranger; GRANT CREATE ON SCHEMA public TO stranger; GRANT USAGE ON FOREIGN SERVER streamfilter TO stranger;
	SET ROLE stranger;
	CREATE TABLE "k_strange/0@1" (); CREATE TYPE "k_strange/1@1" AS ENUM ();
	CREATE FOREIGN TABLE "k_strange/2@1" (hash bigint) SERVER streamfilter OPTIONS (producer '{"slice": "2", "epoch": "1"}')});
sql(q{CREATE FOREIGN TABLE k_strange (id int) SERVER streamfilter OPTIONS (servers 'a', kind 'bloom', memory '256kB', k '4', slices '4');
      INSERT INTO k_strange SELECT generate_series(1, 100);
      ALTER FOREIGN TABLE k_strange OPTIONS (SET servers 'a, b', ADD home_servers '1')});
is(sql(q{SELECT count(*) FROM generate_series(0, 3) i WHERE streamfilter_move_slice('k_strange', i, 'b')}), '4', 'slices move to where strangers have their names');
is(sql(q{SELECT string_agg(server || (epoch > 1)::text, ' ' ORDER BY slice) FROM streamfilter_slice_places('k_strange')}),
	'btrue btrue btrue bfalse', '... from a later epoch on');
is(sql(q{SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_test('k_strange', i)}), '100', '... with what they know');
is($node{b}->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relowner = 'stranger'::regrole AND relkind IN ('r', 'f')}), '2', '... and theirs stay');

# ---- many of them -------------------------------------------------------------------------------------------------------

# With as little stack as this, a query that puts 180 answers together in a row fails; with the usual 2 MB, one of 4000.
sql(q{CREATE FOREIGN TABLE k_many (id int) SERVER streamfilter
        OPTIONS (servers 'a', kind 'bloom', memory '1MB', k '4', slices '300');
      INSERT INTO k_many SELECT generate_series(1, 2000);
      ALTER FOREIGN TABLE k_many OPTIONS (SET servers 'a, b', ADD home_servers '1')});
is(sql(q{SELECT count(*) FROM generate_series(0, 299) i WHERE streamfilter_move_slice('k_many', i, 'b')}), '300', 'all slices move');
$node{b}->safe_psql('postgres', q{ALTER DATABASE postgres SET max_stack_depth = '100kB'});
is(sql(q{WITH new AS (INSERT INTO k_many SELECT generate_series(1, 4000) RETURNING 1) SELECT count(*) FROM new}), '2000', 'and are asked together');
is(sql(q{INSERT INTO k_many SELECT generate_series(3001, 6000); SELECT count(*) FROM generate_series(1, 8000) i WHERE streamfilter_test('k_many', i)}), '6000',
	'by batches, too');
$node{b}->safe_psql('postgres', 'ALTER DATABASE postgres RESET max_stack_depth');

# ---- who may not, and what cannot be ---------------------------------------------------------------------------------

sub fails
{
	my ($statement, $message, $what, $server) = @_;
	my ($status, $out, $err) = ($server // $node{p})->psql('postgres', $statement);
	like($err, $message, $what);
	return;
}
sql(q{CREATE ROLE other; GRANT ALL ON k_bloom TO other; CREATE FOREIGN TABLE here (id int) SERVER streamfilter});
fails(q{SET ROLE other; SELECT streamfilter_move_slice('k_bloom', 0, 'b')}, qr/must be owner of foreign table k_bloom/, 'only its owner moves slices');
fails(q{SET ROLE other; SELECT streamfilter_spread_slices('k_bloom')}, qr/must be owner of foreign table k_bloom/, 'likewise many');
fails(q{SELECT streamfilter_move_slice('here', 0, 'b')}, qr/filter "here" has no slices on other servers/, 'a filter that is here');
fails(q{SELECT streamfilter_move_slice('k_bloom', 4, 'b')}, qr/filter "k_bloom" has no slice 4/, 'no such slice');
fails(q{SELECT streamfilter_move_slice('k_bloom', 0, 'd')}, qr/filter "k_bloom" is not on a server "d".*SET servers '...', ADD home_servers '2'/s, 'no such server');
fails(q{BEGIN; INSERT INTO k_bloom VALUES (1); SELECT streamfilter_move_slice('k_bloom', 0, 'b')}, qr/slices cannot be moved by a transaction/, 'within a transaction');
fails(q{DO $$ BEGIN PERFORM streamfilter_move_slice('k_bloom', 0, 'b'); EXCEPTION WHEN OTHERS THEN RAISE '%', SQLERRM; END $$},
	qr/slices cannot be moved by a transaction/, 'or a subtransaction');
sql(q{CREATE FOREIGN TABLE two (id int) SERVER streamfilter OPTIONS (servers 'a, b', kind 'bloom', memory '1MB', k '6')});
fails(q{SELECT streamfilter_move_slice('two', 0, 'b')}, qr/slices of filter "two" cannot be moved yet.*ADD home_servers '2'/s, 'before its producers follow');
fails(q{CREATE FOREIGN TABLE x (id int) SERVER streamfilter OPTIONS (servers 'a, b', home_servers '3')}, qr/option home_servers of filter "x" exceeds/,
	'more homes than servers');
fails(q{SELECT streamfilter_hashes_test('k_bloom', '{-1}'::bigint[])}, qr/slice 1 of filter "k_bloom" has moved.*server 3 of option servers/s,
	'whoever asks at a place of the past is told', $node{a});
sql(q{CREATE FOREIGN TABLE whole (id int) SERVER streamfilter OPTIONS (servers 'a', kind 'bloom', memory '1MB', k '6', slices '4', slicing 'vertical');
      INSERT INTO whole VALUES (1);
      ALTER FOREIGN TABLE whole OPTIONS (SET servers 'a, b', ADD home_servers '1')});
fails(q{SELECT streamfilter_move_slice('whole', 0, 'b')}, qr/a slice of this filter cannot lie by itself/, 'vertical slices of one server');
is(sql(q{SELECT streamfilter_test('whole', 1)}), 't', 'where nothing has changed');
sql(q{CREATE FOREIGN TABLE grown (id int) SERVER streamfilter OPTIONS (servers 'a', kind 'bloom', memory '1MB', k '6', slices '4');
      INSERT INTO grown SELECT generate_series(1, 100);
      ALTER FOREIGN TABLE grown OPTIONS (SET servers 'a, b', ADD home_servers '1')});
is(sql(q{SELECT streamfilter_spread_slices('grown')}), '2', 'horizontal slices of one server move');
is(sql(q{SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_seen('grown', i)}), '100', 'with what they know');

# ---- producers that do not know of it ------------------------------------------------------------------------------------

$node{q}->safe_psql('postgres', q{CREATE FOREIGN TABLE k_bloom (id int) SERVER streamfilter
	OPTIONS (servers 'a, b', slices '4', kind 'bloom', memory '1MB', k '6')});
fails(q{SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_seen('k_bloom', i)},
	qr/slices of filter "k_bloom" have moved\nDETAIL:  Its definition here is that of before.*SET servers '...', ADD home_servers '2'/s,
	'a producer with a definition of before is told', $node{q});
$node{q}->safe_psql('postgres', q{ALTER FOREIGN TABLE k_bloom OPTIONS (ADD home_servers '2')});
fails(q{SELECT count(*) FROM generate_series(1, 100) i WHERE streamfilter_seen('k_bloom', i)},
	qr/slice 2 of filter "k_bloom" has moved to a server that its option servers does not name.*SET servers '...'\)/s,
	'and one that does not name the server', $node{q});
$node{q}->safe_psql('postgres', q{ALTER FOREIGN TABLE k_bloom OPTIONS (SET servers 'a, b, c')});
is($node{q}->safe_psql('postgres', q{SELECT count(*) FROM generate_series(1, 2200) i WHERE streamfilter_seen('k_bloom', i)}), '2200', 'and follows once it does');
$node{q}->safe_psql('postgres', q{CREATE SCHEMA imported; IMPORT FOREIGN SCHEMA public LIMIT TO (k_bloom) FROM SERVER a INTO imported});
is($node{q}->safe_psql('postgres', q{SELECT string_agg(option_name || '=' || option_value, ' ' ORDER BY 1) FROM pg_foreign_table, pg_options_to_table(ftoptions)
	WHERE ftrelid = 'imported.k_bloom'::regclass AND option_name ~ 'servers'}), 'home_servers=2 servers=a,b,c', 'IMPORT FOREIGN SCHEMA knows it');
is($node{q}->safe_psql('postgres', q{IMPORT FOREIGN SCHEMA public FROM SERVER c INTO imported; SELECT count(*) FROM pg_class WHERE relname ~ '/'}), '0',
	'and does not take slices for filters');
$node{a}->safe_psql('postgres', 'DROP FOREIGN TABLE grown');
fails(q{SELECT streamfilter_test('grown', 1)}, qr/filter "grown" is missing on server "a"/, 'the place where slices were at first is not made anew');

done_testing();
