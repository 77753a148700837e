# ALTER EXTENSION streamfilter UPDATE, by a version "next" that is made in a folder of its own: a function and a column of a view
# more than the objects of before. The new library works under the old objects, and the old one, which lacks the function, under
# the new ones; the update leads to what a fresh install has, and filters keep what they hold. So does each script of sql/update.
# flavours: quick faults
use Sf;
use File::Basename;
use File::Copy;
use File::Find;
use File::Path;

# ---- a server in a folder of its own -----------------------------------------------------------------------------------

# PostgreSQL finds libraries and scripts by where its binary lies: that is copied, the rest are links.
my %from = map { chomp(my $path = `@{[ $ENV{PG_CONFIG} // 'pg_config' ]} --$_`); $_ => $path } qw(bindir pkglibdir sharedir);
my $common = $from{bindir};
$common = dirname($common) until 3 == grep { index($_, "$common/") == 0 } values %from;
my $top = PostgreSQL::Test::Utils::tempdir();
my %folder = map { $_ => $top . substr($from{$_}, length $common) } keys %from;
find({ no_chdir => 1, wanted => sub { link_there($File::Find::name) } }, values %from);

sub link_there
{
	my ($path) = @_;
	my $to = $top . substr($path, length $common);
	return if -e $to;
	if (-d $path) { mkpath($to) }
	elsif ($path =~ m{/bin/}) { copy($path, $to); chmod 0755, $to }
	else { symlink $path, $to }
	return;
}

sub replace_file
{
	my ($name, $text) = @_;
	unlink $name;
	open my $out, '>:raw', $name or die "$name: $!";
	print $out $text;
	close $out;
	return;
}

# The scripts. What is new: a function, and the last column of a view.
my $scripts = "$folder{sharedir}/extension";
my ($installed) = slurp_file("$scripts/streamfilter.control") =~ /default_version = '(.*)'/;
my $new = slurp_file("$scripts/streamfilter--$installed.sql");
my ($function, $view, $comment) = map { $new =~ /($_)/ms ? $1 : die $_ } qr/^CREATE FUNCTION streamfilter_slices_needed\(.*?;\n/ms,
  qr/^CREATE FUNCTION _streamfilter\.streamfilter_tune\(.*?^CREATE VIEW streamfilter_tuning\b.*?;\n/ms, qr/^COMMENT ON FUNCTION streamfilter_slices_needed\(.*?;\n/ms;
my $view_comments = join '', $new =~ /^(COMMENT ON (?:VIEW|COLUMN) streamfilter_tuning\b.*?;\n)/msg;
my $view_rights = "GRANT SELECT ON streamfilter_tuning TO PUBLIC;\n";
my $old = $new =~ s/\Q$function\E//r =~ s/\Q$comment\E//r =~ s/(streamfilter_tune\(filter oid\)\s+RETURNS TABLE \([^)]*),\s*error text\)/$1)/r =~ s/^COMMENT ON COLUMN streamfilter_tuning\.error\b.*?;\n//mrs;
isnt(length($new) - length($old), length($function) + length($comment), 'objects of before, without a function and a column');
my $control = slurp_file("$scripts/streamfilter.control");
replace_file("$scripts/streamfilter.control", $control =~ s/default_version = '.*'/default_version = 'next'/r);
replace_file("$scripts/streamfilter--$installed.sql", $old);
replace_file("$scripts/streamfilter--next.sql", $new);
replace_file("$scripts/streamfilter--$installed--next.sql",
	"DROP VIEW streamfilter_tuning;\nDROP FUNCTION _streamfilter.streamfilter_tune(oid);\n$view$view_rights$function$comment$view_comments");

# The libraries: that of before has no such function.
my $library = "$folder{pkglibdir}/streamfilter.so";
my %library = (new => slurp_file($library));
($library{old} = $library{new}) =~ s/streamfilter_slices_needed\0/streamfilter_slices_nothin\0/g;
my $node = PostgreSQL::Test::Cluster->new('update', install_path => dirname($folder{bindir}));

sub use_library
{
	my ($which) = @_;
	$node->stop if -e $node->data_dir . '/postmaster.pid';
	replace_file($library, $library{$which});
	chmod 0755, $library;
	$node->start;
	return;
}
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '24MB'
fsync = off});
sub version { my ($database) = @_; return sql(q{SELECT extversion FROM pg_extension WHERE extname = 'streamfilter'}, $database); }
sub accepted { my ($to, $database) = @_; return sql("INSERT INTO events SELECT generate_series(1, $to) RETURNING 1", $database) =~ tr/\n// + 1; }
my $more = 'SELECT streamfilter_slices_needed(1, max_fnr => 0.05)';

# ---- the new library under the old objects --------------------------------------------------------------------------------

use_library('new');
sql("CREATE DATABASE $_") for qw(updated fresh dumped restored former);
sql('CREATE EXTENSION streamfilter', 'fresh');
sql(qq{
	CREATE EXTENSION streamfilter VERSION '$installed';
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '256kB', keys '10000');
	CREATE FOREIGN TABLE late (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '256kB', persistence 'unlogged');
	CREATE TABLE events (id int);
	CREATE TRIGGER zz_discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events SELECT generate_series(1, 5000);
	INSERT INTO late SELECT generate_series(1, 5000)}, 'updated');
is(accepted(6000, 'updated'), 1000, 'triggers work');
is(sql('SELECT count(*), min(accepted) FROM streamfilter_stats', 'updated'), '2|5000', 'views work');
is(sql('SELECT count(*), count(memory) FROM streamfilter_tuning', 'updated'), '5|5', '... that with a column less, too');
sql(q{SELECT streamfilter_save('seen'); SELECT streamfilter_save(); SELECT * FROM streamfilter_tree; SELECT * FROM streamfilter_triggers; SELECT * FROM streamfilter_metrics;
	SELECT * FROM streamfilter_slices}, 'updated');
pass('and all the others');

# ---- the update, while the filters are used -------------------------------------------------------------------------------

my $user = $node->background_psql('updated', on_error_stop => 0);
$user->query_safe('BEGIN; INSERT INTO late VALUES (7001)');
sql('ALTER EXTENSION streamfilter UPDATE', 'updated');
$user->query_safe('INSERT INTO events VALUES (7002); COMMIT');
$user->quit;
is(version('updated'), 'next', 'the version');
is(known('seen', 1, 6000, 'updated'), 6000, 'what was known is known');
is(sql(q{SELECT streamfilter_test('late', 7001), streamfilter_test('seen', 7002)}, 'updated'), 't|t', 'also what came meanwhile');
is(accepted(6100, 'updated'), 100, 'triggers go on');
is(sql($more, 'updated'), '20', 'the new function is there');
is(sql('SELECT count(*), count(error) FROM streamfilter_tuning', 'updated'), '5|0', '... and the new column');
$node->restart;
is(known('seen', 1, 6100, 'updated') . ' ' . known('late', 1, 5000, 'updated'), '6100 5000', 'and after a restart');

sub objects
{
	my ($database) = @_;
	return sql(q{
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
		FROM members ORDER BY 1, 2}, $database);
}
is(objects('updated'), objects('fresh'), 'an update leads to what a fresh install has');

# What users have made with the objects of before is restored beside the new ones.
my $file = "$PostgreSQL::Test::Utils::tmp_check/dumped.sql";
sql(qq{
	CREATE SCHEMA place;
	CREATE EXTENSION streamfilter SCHEMA place VERSION '$installed';
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '1000');
	CREATE TABLE events (id int, known place.streamfilter);
	CREATE TRIGGER zz_discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION place.streamfilter_discard('seen', 'id');
	CREATE VIEW counted AS SELECT place.approx_count_distinct(id), place.streamfilter_agg(id, 'bloom(memory=1kB, k=4)') FROM events;
	CREATE VIEW short AS SELECT filter, kind FROM place.streamfilter_stats;
	INSERT INTO events VALUES (1, 'bloom(memory=1kB, k=4)')}, 'dumped');
$node->command_ok([ 'pg_dump', '-d', $node->connstr('dumped'), '-f', $file ], 'dumped');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', $file ], 'restored');
is(version('restored'), 'next', '... beside the new objects');
is(sql('INSERT INTO events (id) VALUES (2), (2); SELECT (SELECT approx_count_distinct FROM counted), (SELECT count(*) FROM events), (SELECT count(*) FROM short)', 'restored'),
	'2|2|1', '... and everything works');

# ---- the old library under the new objects --------------------------------------------------------------------------------

sql("CREATE EXTENSION streamfilter VERSION '$installed'", 'former');
use_library('old');
is(known('seen', 1, 6100, 'updated') . ' ' . known('late', 1, 5000, 'updated'), '6100 5000', 'the old library finds what the new one has saved');
is(accepted(6200, 'updated'), 100, '... triggers go on');
is(sql('SELECT count(*) FROM streamfilter_tuning', 'updated'), '5', '... and views');
like(($node->psql('updated', $more))[2], qr/ERROR:  could not find function "streamfilter_slices_needed" in file/, '... what it lacks is an error');
my $objects = objects('former');
like(($node->psql('former', 'ALTER EXTENSION streamfilter UPDATE'))[2], qr/ERROR:  could not find function/, 'an update before the library is installed fails');
is(version('former'), $installed, '... and leaves the version');
is(objects('former'), $objects, '... and all objects');
use_library('new');
sql('ALTER EXTENSION streamfilter UPDATE', 'former');
is(objects('former'), objects('fresh'), '... and succeeds afterwards');
is(known('seen', 1, 6200, 'updated'), 6200, 'with the new library all is known');

# ---- scripts of sql/update ----------------------------------------------------------------------------------------------------

replace_file("$scripts/streamfilter.control", $control);
replace_file("$scripts/streamfilter--$installed.sql", $new);
sql('DROP EXTENSION streamfilter CASCADE; CREATE EXTENSION streamfilter', 'fresh');
for my $script (glob("$root/sql/update/streamfilter--*--*.sql"))
{
	my ($from) = basename($script) =~ /^streamfilter--(.*)--/;
	sql('DROP DATABASE former');
	sql('CREATE DATABASE former');
	sql("CREATE EXTENSION streamfilter VERSION '$from'; ALTER EXTENSION streamfilter UPDATE", 'former');
	is(objects('former'), objects('fresh'), "an update from $from leads to what a fresh install has");
}

done();
