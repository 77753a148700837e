# ALTER EXTENSION streamfilter UPDATE: the catalogs are those of a fresh install; filters keep what they hold; the library of this
# version under SQL objects of the last one.
# flavours: quick asserted
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Servers;
use Sessions;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('update');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '24MB'
fsync = off});
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE updated; CREATE DATABASE fresh');
$node->safe_psql('fresh', 'CREATE EXTENSION streamfilter');

# --- Under SQL objects of 1.0 -----------------------------------------------------------------------

$node->safe_psql('updated', q{
	CREATE EXTENSION streamfilter VERSION '1.0';
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '256kB', keys '10000');
	CREATE FOREIGN TABLE late (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '256kB', persistence 'unlogged');
	CREATE TABLE events (id int);
	CREATE TRIGGER zz_discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events SELECT generate_series(1, 5000);
	INSERT INTO late SELECT generate_series(1, 5000)});
is($node->safe_psql('updated', 'INSERT INTO events SELECT generate_series(1, 6000) RETURNING 1') =~ tr/\n// + 1, 1000,
	'triggers work');
is($node->safe_psql('updated', q{SELECT count(*), min(accepted) FROM streamfilter_stats}), '2|5000', 'views of 1.0 work');
$node->safe_psql('updated', q{SELECT streamfilter_save('seen'); SELECT streamfilter_save(); SELECT * FROM streamfilter_tree;
	SELECT * FROM streamfilter_tuning; SELECT * FROM streamfilter_slices});
pass('and all the others');

# --- The update, while the filters are used ---------------------------------------------------------

my $user = $node->background_psql('updated', on_error_stop => 0);
$user->query_safe('BEGIN; INSERT INTO late VALUES (7001)');
$node->safe_psql('updated', 'ALTER EXTENSION streamfilter UPDATE');
$user->query_safe('INSERT INTO events VALUES (7002); COMMIT');
$user->quit;
is($node->safe_psql('updated', q{SELECT extversion FROM pg_extension WHERE extname = 'streamfilter'}), '1.2', 'the version');
is($node->safe_psql('updated', q{SELECT count(*) FROM generate_series(1, 6000) i WHERE streamfilter_test('seen', i)}), 6000,
	'what was known is known');
is($node->safe_psql('updated', q{SELECT streamfilter_test('late', 7001), streamfilter_test('seen', 7002)}), 't|t',
	'also what came meanwhile');
is($node->safe_psql('updated', 'INSERT INTO events SELECT generate_series(1, 6100) RETURNING 1') =~ tr/\n// + 1, 100,
	'triggers go on');
is($node->safe_psql('updated', q{SELECT string_agg(state, ',') FROM streamfilter_stats}), 'loaded,loaded', 'the new columns are there');
$node->restart;
is($node->safe_psql('updated', q{SELECT count(*) FROM generate_series(1, 6100) i WHERE streamfilter_test('seen', i)}), 6100,
	'and after a restart');

# --- Catalogs ------------------------------------------------------------------------------------------

sub objects
{
	my ($database) = @_;
	return $node->safe_psql($database, q{
		WITH members AS (
			SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
			WHERE d.refclassid = 'pg_extension'::regclass AND e.extname = 'streamfilter' AND d.deptype = 'e')
		SELECT pg_describe_object(classid, objid, 0),
			CASE classid
				WHEN 'pg_proc'::regclass THEN (SELECT row(pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.prosrc,
					p.probin, p.provolatile, p.proparallel, p.proisstrict, p.prosecdef, p.procost, p.prorows, p.prosupport, p.proacl,
					p.prokind, p.proconfig)::text FROM pg_proc p WHERE p.oid = objid)
				WHEN 'pg_class'::regclass THEN (SELECT row(c.relkind, c.relacl, pg_get_viewdef(c.oid),
					(SELECT string_agg(row(attname, atttypid::regtype, attstorage, attnotnull)::text, ';' ORDER BY attnum)
						FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0))::text FROM pg_class c WHERE c.oid = objid)
				WHEN 'pg_event_trigger'::regclass THEN (SELECT row(evtevent, evtenabled, evttags)::text FROM pg_event_trigger
					WHERE oid = objid)
			END, obj_description(objid, classid::regclass::name)
		FROM members ORDER BY 1, 2});
}
is(objects('updated'), objects('fresh'), 'an update leads to what a fresh install has');

# What users have made of views that are made anew is named, and nothing has changed.
$node->safe_psql('postgres', q{
	CREATE EXTENSION streamfilter VERSION '1.1';
	CREATE VIEW mine AS SELECT filter, kind FROM streamfilter_stats;
	CREATE SCHEMA others;
	CREATE VIEW others.his AS SELECT count(*) FROM streamfilter_metrics;
	CREATE FUNCTION others.of_row(streamfilter_stats) RETURNS bool LANGUAGE sql AS 'SELECT true'});
my ($status, $out, $err) = $node->psql('postgres', 'ALTER EXTENSION streamfilter UPDATE');
like($err, qr/ERROR: +cannot update extension streamfilter while other objects use its views\n/, 'an update that users are in the way of');
like($err, qr/used by: function others\.of_row\(streamfilter_stats\), view mine, view others\.his\.\nHINT: .*UPDATE;/, 'names what');
is($node->safe_psql('postgres', q{SELECT extversion, count(mine) FROM pg_extension, mine WHERE extname = 'streamfilter' GROUP BY 1
	UNION ALL SELECT extversion, 0 FROM pg_extension WHERE extname = 'streamfilter'}), '1.1|0', 'and leaves all as it was');
$node->safe_psql('postgres', q{
	DROP FUNCTION others.of_row; DROP VIEW mine, others.his; DROP SCHEMA others;
	ALTER EXTENSION streamfilter UPDATE});
is(objects('postgres'), objects('fresh'), 'one from 1.1 likewise');

# --- Dumps ---------------------------------------------------------------------------------------------

# What users have made with earlier versions is restored beside objects of this one.
foreach my $version ('1.0', '1.1')
{
	(my $database = "dump_$version") =~ tr/./_/;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/$database.sql";
	$node->safe_psql('postgres', "CREATE DATABASE $database; CREATE DATABASE ${database}_restored");
	$node->safe_psql($database, qq{
		CREATE SCHEMA place;
		CREATE EXTENSION streamfilter SCHEMA place VERSION '$version';
		CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '1000');
		CREATE TABLE events (id int, known place.streamfilter);
		CREATE TRIGGER zz_discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION place.streamfilter_discard('seen', 'id');
		CREATE VIEW counted AS SELECT place.approx_count_distinct(id), place.streamfilter_agg(id, 'bloom(memory=1kB, k=4)') FROM events;
		CREATE VIEW short AS SELECT filter, kind FROM place.streamfilter_stats;
		INSERT INTO events VALUES (1, 'bloom(memory=1kB, k=4)')});
	$node->command_ok([ 'pg_dump', '-d', $node->connstr($database), '-f', $file ], "$version: dumped");
	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr("${database}_restored"), '-f', $file ],
		"$version: restored");
	is($node->safe_psql("${database}_restored", q{
			INSERT INTO events (id) VALUES (2), (2);
			SELECT extversion, (SELECT approx_count_distinct FROM counted), (SELECT count(*) FROM events), (SELECT count(*) FROM short)
			FROM pg_extension WHERE extname = 'streamfilter'}), '1.2|2|2|1', "$version: and everything works");
}

$node->stop;
done_testing();
