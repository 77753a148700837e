# CREATE EXTENSION runs as a superuser in a schema where others may have made objects before. None of them is taken or
# called (CVE-2022-2625 and its like): looked at are the text of the scripts, what came out of them, and an installation
# into a schema full of traps.
# flavours: faults one_by_one
use Sf;
use File::Basename;

# ---- the text of the scripts ------------------------------------------------------------------------

# Queries and bodies of functions, with comments, strings and quoted names blanked out.
sub queries_of
{
	my ($sql) = @_;
	$sql =~ s/--[^\n]*//g;
	$sql =~ s/'(?:[^']|'')*'/''/g;
	my @queries;
	push @queries, $1 while $sql =~ /\bAS\s+(SELECT\b.*?;)/gs;
	push @queries, $1 while $sql =~ /\bBEGIN ATOMIC\b(.*?)\bEND;/gs;
	push @queries, $1 while $sql =~ /^((?:SELECT|INSERT|UPDATE|DELETE|DO|WITH)\b.*?;)/gms;
	return @queries;
}

my $keyword = qr/(?:SELECT|FROM|WHERE|AND|OR|NOT|EXISTS|JOIN|LATERAL|ON|IN|CASE|WHEN|THEN|OPERATOR|VALUES|AS|COALESCE|NULLIF|FILTER|OVER|ANY|ALL)/i;

# What is wrong with a query: names that are not ours and not qualified.
sub faults_in
{
	my ($query) = @_;
	my @faults;
	while ($query =~ /(?<![\w.])((?:[\w"]+\.)?[\w"]+)\s*\(/g)
	{
		my $name = $1;
		push @faults, "function $name" unless $name =~ /^(?:pg_catalog\.|(?:\@extschema\@\.|_streamfilter\.)?(?:streamfilter|approx)_|$keyword$)/;
	}
	while ($query =~ /\b(?:FROM|JOIN)\s+(?:LATERAL\s+)?(?!LATERAL\s*\()([\w".]+)/gi)
	{
		my $name = $1;
		push @faults, "relation $name" unless $name =~ /^(?:pg_catalog\.|(?:\@extschema\@\.|_streamfilter\.)?streamfilter_)/;
	}
	while ($query =~ /::\s*([\w".]+)/g) { push @faults, "type $1" unless $1 =~ /^(?:pg_catalog\.|\@extschema\@\.)/; }
	(my $operators = $query) =~ s/OPERATOR\(pg_catalog\.[^)]*\)//g;
	$operators =~ s/::|\.\*|\(\*\)//g;
	push @faults, "operator $1" while $operators =~ m{([-+*/<>=~!@#%^&|`?]+)}g;
	push @faults, "IN, LIKE, BETWEEN: operators without a schema" if $operators =~ /\b(?:IN|LIKE|ILIKE|BETWEEN|IS DISTINCT|USING)\b/i;
	return @faults;
}

is_deeply([ faults_in('SELECT count(x), s.a::oid FROM pg_class s WHERE s.a = 1') ],
	[ 'function count', 'relation pg_class', 'type oid', 'operator =' ], 'the check of queries finds faults');

my @scripts = glob("$root/sql/*.sql");
cmp_ok(scalar @scripts, '>', 10, 'the scripts are there');
my $queries = 0;
foreach my $file (@scripts)
{
	my $sql = slurp_file($file);
	my @faults = map { ++$queries; faults_in($_) } queries_of($sql);
	is_deeply(\@faults, [], basename($file) . ': every name in a query has its schema');
	# What is there belongs to somebody else. An aggregate of the extension is changed where it is, for others may depend on
	# it: PostgreSQL replaces none that the extension does not have.
	unlike($sql =~ s/^CREATE OR REPLACE AGGREGATE//gmr, qr/\bOR\s+REPLACE\b|\bIF\s+NOT\s+EXISTS\b/i, basename($file) . ': takes nothing that it finds');
	unlike($sql, qr/\bSECURITY\s+DEFINER\b/i, basename($file) . ': no function runs as the superuser who installs it');
}
cmp_ok($queries, '>=', 7, 'queries were looked at');

# ---- what comes out ---------------------------------------------------------------------------------

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'streamfilter'");
$node->start;

my $members = q{
	CREATE TEMP VIEW of_aggregates AS
	SELECT unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn]::oid[]) AS f FROM pg_aggregate;
	CREATE TEMP VIEW members AS
	SELECT classid, objid FROM pg_depend
	WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
	  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'streamfilter');
	-- The trees of views, functions and defaults, as stored.
	CREATE TEMP VIEW trees AS
	SELECT 'view ' || r.ev_class::regclass AS of_what, r.ev_action::text AS tree
	FROM pg_rewrite r JOIN members m ON m.classid = 'pg_class'::regclass AND m.objid = r.ev_class
	UNION ALL
	SELECT 'function ' || p.oid::regprocedure, concat(p.prosqlbody, p.proargdefaults)
	FROM pg_proc p JOIN members m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid;
	CREATE TEMP VIEW called AS
	SELECT of_what, 'pg_proc'::regclass AS class, match[1]::oid AS called
	FROM trees, regexp_matches(tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS match
	UNION ALL
	SELECT of_what, 'pg_operator', match[1]::oid FROM trees, regexp_matches(tree, ':opno (\d+)', 'g') AS match
	UNION ALL
	SELECT of_what, 'pg_class', match[1]::oid FROM trees, regexp_matches(tree, ':relid (\d+)', 'g') AS match
	UNION ALL
	SELECT of_what, 'pg_type', match[1]::oid
	FROM trees, regexp_matches(tree, ':(?:consttype|vartype|funcresulttype|resulttype|opresulttype|aggtype) (\d+)', 'g') AS match;};

# Every query here returns what is wrong.
my %checks = (
	'everything that is called is the server\'s or the extension\'s' => q{
		SELECT of_what, class, called FROM called c
		WHERE called >= 16384 AND (class, called) NOT IN (SELECT classid::regclass, objid FROM members)
		  -- row types, array types and internal types of members
		  AND NOT (class = 'pg_type'::regclass AND EXISTS (
			SELECT FROM pg_type t JOIN members m ON (m.classid, m.objid) IN
			  (('pg_class'::regclass, t.typrelid), ('pg_type'::regclass, t.typelem)) WHERE t.oid = called))},
	# COERCE_IMPLICIT_CAST: a function for other types might have been preferred.
	'every call has the types that are declared' => q{
		SELECT of_what, match[1] FROM trees, regexp_matches(tree, '(\w+format 2)\y', 'g') AS match},
	'every function is in the library, or a query that is stored as a tree, or has a search_path of its own' => q{
		SELECT p.oid::regprocedure FROM pg_proc p JOIN members m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
		JOIN pg_language l ON l.oid = p.prolang
		WHERE NOT (l.lanname = 'c' AND p.probin = '$libdir/streamfilter' OR p.prokind = 'a' OR p.prosqlbody IS NOT NULL
		  OR EXISTS (SELECT FROM unnest(p.proconfig) AS setting WHERE setting LIKE 'search_path=%'))},
	'types of arguments and results are the server\'s or the extension\'s' => q{
		SELECT p.oid::regprocedure, t.oid::regtype
		FROM pg_proc p JOIN members m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid,
		  unnest(p.proallargtypes || p.proargtypes::oid[] || p.prorettype || p.provariadic) AS used
		  JOIN pg_type t ON t.oid = used LEFT JOIN pg_type element ON element.oid = t.typelem
		WHERE t.oid >= 16384 AND t.oid NOT IN (SELECT objid FROM members WHERE classid = 'pg_type'::regclass)
		  AND element.oid NOT IN (SELECT objid FROM members WHERE classid = 'pg_type'::regclass)},
	'aggregates, operators and the wrapper use functions of the extension' => q{
		SELECT 'aggregate', a.aggfnoid::text, f FROM pg_aggregate a
		  JOIN members m ON m.classid = 'pg_proc'::regclass AND m.objid = a.aggfnoid::oid,
		  unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn]::oid[]) AS f
		WHERE f <> 0 AND f NOT IN (SELECT objid FROM members WHERE classid = 'pg_proc'::regclass)
		UNION ALL
		SELECT 'operator', o.oprname, o.oprcode::oid FROM pg_operator o
		  JOIN members m ON m.classid = 'pg_operator'::regclass AND m.objid = o.oid
		WHERE o.oprcode::oid NOT IN (SELECT objid FROM members WHERE classid = 'pg_proc'::regclass)
		UNION ALL
		SELECT 'wrapper', w.fdwname, f FROM pg_foreign_data_wrapper w
		  JOIN members m ON m.classid = 'pg_foreign_data_wrapper'::regclass AND m.objid = w.oid,
		  unnest(ARRAY[fdwhandler, fdwvalidator]) AS f
		WHERE f NOT IN (SELECT objid FROM members WHERE classid = 'pg_proc'::regclass)
		UNION ALL
		SELECT 'event trigger', e.evtname, e.evtfoid FROM pg_event_trigger e
		  JOIN members m ON m.classid = 'pg_event_trigger'::regclass AND m.objid = e.oid
		WHERE e.evtfoid NOT IN (SELECT objid FROM members WHERE classid = 'pg_proc'::regclass)
		UNION ALL
		SELECT 'type', t.typname, f FROM pg_type t
		  JOIN members m ON m.classid = 'pg_type'::regclass AND m.objid = t.oid AND t.typtype = 'b' AND t.typelem = 0,
		  unnest(ARRAY[typinput, typoutput, typreceive, typsend]::oid[]) AS f
		WHERE f NOT IN (SELECT objid FROM members WHERE classid = 'pg_proc'::regclass)},
	'everything belongs to who has installed it' => q{
		SELECT p.oid::regprocedure FROM pg_proc p JOIN members m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
		WHERE p.proowner <> 10
		UNION ALL
		SELECT c.oid FROM pg_class c JOIN members m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid
		WHERE c.relowner <> 10
		UNION ALL
		SELECT n.oid FROM pg_namespace n JOIN members m ON m.classid = 'pg_namespace'::regclass AND m.objid = n.oid
		WHERE n.nspowner <> 10 OR n.nspacl IS NOT NULL},
	'what only the server calls, and what is saved, is in _streamfilter' => q{
		SELECT p.oid::regprocedure::text FROM pg_proc p JOIN members m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
		WHERE p.pronamespace <> '_streamfilter'::regnamespace
		  AND (p.prorettype IN ('internal'::regtype, 'fdw_handler'::regtype, 'event_trigger'::regtype)
		    OR p.oid IN (SELECT f FROM of_aggregates)
		    OR p.oid IN (SELECT fdwvalidator FROM pg_foreign_data_wrapper)
		    OR obj_description(p.oid, 'pg_proc') ~ 'rows? of (a filter in )?the view')
		UNION ALL
		SELECT c.oid::regclass::text FROM pg_class c JOIN members m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid
		WHERE c.relnamespace <> '_streamfilter'::regnamespace AND c.relkind = 'm'},
	'and nothing else is' => q{
		SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = '_streamfilter'::regnamespace
		  AND p.oid NOT IN (SELECT f FROM of_aggregates)
		  AND coalesce(obj_description(p.oid, 'pg_proc'), '') !~ 'handler|^checks the (options|definitions)|rows? of (a filter in )?the view'
		UNION ALL
		SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = '_streamfilter'::regnamespace
		  AND c.relname NOT IN ('streamfilter_log', 'streamfilter_image', 'streamfilter_image_filter')},
	'PUBLIC may write to nothing' => q{
		SELECT c.oid::regclass, a.privilege_type FROM pg_class c
		  JOIN members m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid, aclexplode(c.relacl) AS a
		WHERE a.grantee = 0 AND a.privilege_type <> 'SELECT'},);

sub check_objects
{
	my ($database, $how) = @_;
	cmp_ok(sql("$members SELECT count(*) FROM called", $database), '>', 10, "$how: calls were looked at");
	foreach my $what (sort keys %checks) { is(sql("$members $checks{$what}", $database), '', "$how: $what"); }
}

sql('CREATE EXTENSION streamfilter');
check_objects('postgres', 'plain');

# The checks find what they are made for.
is(sql(qq{
		BEGIN;
		CREATE FUNCTION trap(oid) RETURNS oid LANGUAGE sql AS 'SELECT \$1';
		CREATE VIEW trapped AS SELECT trap('pg_class'::regclass);
		CREATE FUNCTION trapping() RETURNS int LANGUAGE sql AS 'SELECT 1';
		ALTER EXTENSION streamfilter ADD VIEW trapped;
		ALTER EXTENSION streamfilter ADD FUNCTION trapping();
		$members
		SELECT count(*) FROM ($checks{'everything that is called is the server\'s or the extension\'s'}) AS faults;
		SELECT count(*) FROM ($checks{'every call has the types that are declared'}) AS faults;
		SELECT count(*) FROM ($checks{'every function is in the library, or a query that is stored as a tree, or has a search_path of its own'}) AS faults;
		ROLLBACK}),
	"1\n1\n1",
	'the checks of objects find faults');

# ---- a schema full of traps -------------------------------------------------------------------------

# For every function of the extension others of the same name, for types that are close to its own.
my $traps = sql(qq{
	$members
	WITH near (type, other) AS (VALUES
	  ('oid', 'regclass'), ('oid', 'int4'), ('oid', 'int8'), ('regclass', 'oid'), ('regclass', 'text'),
	  ('text', 'varchar'), ('text', 'name'), ('text', 'anyelement'), ('int8', 'int4'), ('int8', 'numeric'), ('int4', 'int8'),
	  ('int4', 'int2'), ('float8', 'float4'), ('float8', 'numeric'), ('jsonb', 'json'), ('cstring', 'text'),
	  ('bytea', 'text'), ('"any"', 'anyelement'), ('"any"', 'text'), ('_text', '_varchar'), ('_int8', '_int4'), ('timestamptz', 'timestamp')),
	names AS (
	  SELECT p.oid, p.proname, i,
	    ARRAY(SELECT CASE WHEN a.i = n.i THEN other ELSE quote_ident(t.typname) END
	      FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (type, i) JOIN pg_type t ON t.oid = a.type ORDER BY a.i) AS arguments
	  FROM pg_proc p JOIN members m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid,
	    unnest(p.proargtypes::oid[]) WITH ORDINALITY AS n (type, i) JOIN pg_type t ON t.oid = n.type
	    JOIN near ON near.type = quote_ident(t.typname))
	SELECT DISTINCT format('CREATE FUNCTION traps.%I(%s) RETURNS %s LANGUAGE plpgsql AS \$\$ BEGIN RAISE EXCEPTION ''trapped by %s''; END \$\$;',
	  proname, array_to_string(arguments, ', '), CASE WHEN arguments && '{anyelement}' THEN 'anyelement' ELSE 'text' END, proname)
	FROM names
	WHERE NOT arguments && '{streamfilter,_streamfilter,streamfilter_block,internal,"\\"any\\"",cstring}'});
my $count = () = $traps =~ /^CREATE/mg;
cmp_ok($count, '>', 30, "$count functions as traps");
foreach my $type ([ 'oid', 'oid' ], [ 'text', 'text' ], [ 'regclass', 'oid' ], [ 'oid', 'regclass' ], [ 'name', 'name' ],
	[ 'regclass', 'regclass' ], [ 'int4', 'int4' ], ['text', 'unknown'])
{
	my ($left, $right) = map { $_ eq 'unknown' ? 'name' : $_ } @$type;
	$traps .= qq{
		CREATE FUNCTION traps.fall_$left$right($left, $right) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped by an operator''; END';}
	  . join '', map { qq{CREATE OPERATOR traps.$_ (LEFTARG = $left, RIGHTARG = $right, FUNCTION = traps.fall_$left$right);} } ('=', '<', '~');
}
$traps .= qq{
	CREATE VIEW traps.pg_foreign_table AS SELECT 1 / (random() * 0)::int AS ftrelid, 1 AS ftserver;
	CREATE VIEW traps.pg_class AS SELECT 1 / (random() * 0)::int AS oid, 1 AS relowner;
	CREATE TYPE traps.regclass AS (trapped int);
	CREATE TYPE traps.text AS (trapped int);
	CREATE FUNCTION traps.count(pg_catalog.anyelement) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped by count''; END';
	CREATE FUNCTION traps.pg_has_role(oid, varchar) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped by pg_has_role''; END';
	CREATE FUNCTION traps.pg_has_role(oid, name) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''trapped by pg_has_role''; END';
	-- Created as the extension runs its script, and looked up by it.
	CREATE FUNCTION traps.in_the_way() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';};
sql(qq{
	CREATE DATABASE hostile;
	CREATE ROLE mallory;});
sql("CREATE SCHEMA traps; GRANT ALL ON SCHEMA traps TO mallory; SET ROLE mallory; $traps", 'hostile');
sql('SET search_path = traps, pg_catalog; CREATE EXTENSION streamfilter SCHEMA traps', 'hostile');
check_objects('hostile', 'among traps');
is($node->safe_psql(
		'hostile', q{
		CREATE FOREIGN TABLE f (k int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
		CREATE FOREIGN TABLE leaf (k int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4', parent 'public.f');
		CREATE FOREIGN TABLE queue (k int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
		INSERT INTO queue VALUES (1);
		INSERT INTO leaf VALUES (5);
		CREATE TABLE t (k int);
		CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION traps.streamfilter_discard('public.f');
		INSERT INTO t VALUES (1), (1);
		SELECT count(*) FROM t;
		SELECT count(*) FROM traps.streamfilter_stats;
		SELECT count(*) FROM traps.streamfilter_tree;
		SELECT count(*) > 0 FROM traps.streamfilter_tuning;
		SELECT count(*) FROM traps.streamfilter_slices;
		SELECT traps.streamfilter_save();
		SET search_path = traps, pg_catalog;
		SELECT count(*) FROM streamfilter_stats WHERE last_saved IS NOT NULL;
		SELECT traps.streamfilter_adopt_triggers();}),
	"1\n3\n2\nt\n0\n\n3\n0",
	'everything works among traps');

# ---- objects in the way -----------------------------------------------------------------------------

# Each is refused, and nothing is left behind.
my $objects = sql("$members SELECT count(*) FROM members");
my %in_the_way = (
	'a view' => 'CREATE VIEW traps.streamfilter_stats AS SELECT 1 AS filter',
	'a table' => 'CREATE TABLE traps.streamfilter_filters (filter oid)',
	'a type' => 'CREATE TYPE traps.streamfilter AS (a int)',
	'a shell type' => 'CREATE TYPE traps.streamfilter',
	'a function' => q{CREATE FUNCTION traps.streamfilter_adopt_triggers() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'},
	'a function that returns another type' =>
	  q{CREATE FUNCTION traps.streamfilter_definition(filter regclass) RETURNS int LANGUAGE sql AS 'SELECT 1'},
	'a trigger function' =>
	  q{CREATE FUNCTION traps.streamfilter_discard() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'},
	'a procedure' => q{CREATE PROCEDURE traps.streamfilter_save() LANGUAGE sql AS 'SELECT 1'},
	'an aggregate' => q{CREATE AGGREGATE traps.streamfilter_stats_reset(regclass) (SFUNC = oidlarger, STYPE = oid)},
	'a schema' => 'CREATE SCHEMA _streamfilter',);
foreach my $what (sort keys %in_the_way)
{
	sql('DROP DATABASE IF EXISTS crowded');
	sql('CREATE DATABASE crowded');
	sql('CREATE SCHEMA traps', 'crowded');
	# A shell type is a superuser's, and a schema may be, but he may have left it.
	my $as = $what eq 'a shell type' || $what eq 'a schema' ? '' : 'GRANT ALL ON SCHEMA traps TO mallory; SET ROLE mallory;';
	sql("$as $in_the_way{$what}", 'crowded');
	my ($status, $stdout, $stderr) = $node->psql('crowded', 'CREATE EXTENSION streamfilter SCHEMA traps');
	like($stderr, qr/ERROR:  .*(already exists|is not a member of extension)/, "$what in the way: refused");
	is(sql(q{SELECT count(*) FROM pg_proc WHERE probin = '$libdir/streamfilter'}, 'crowded'), '0', "$what in the way: nothing is left");
}

done();
