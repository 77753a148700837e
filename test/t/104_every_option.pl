# flavours: asserted
# Every option of every kind of filter, as the hints of the library list them: given, it is kept and shown, altered, dumped and
# restored, defined elsewhere, and read back after a restart; a bad value names it. An option without an example here fails.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use OptionExamples;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('options');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'streamfilter'
streamfilter.shared_memory = '64MB'
streamfilter.max_filters = 256
fsync = off});
$node->start;
my ($host, $port) = ($node->host, $node->port);
$node->safe_psql('postgres', qq{CREATE EXTENSION streamfilter; CREATE DATABASE restored;
	CREATE SERVER one FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'one');
	CREATE SERVER two FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'two');
	CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4');
	CREATE FOREIGN TABLE root2 (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4')});

sub query { return $node->safe_psql($_[1] // 'postgres', $_[0]) }

sub said
{
	my ($statement) = @_;
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY default\n$statement", extra_params => ['-q']);
	return $err;
}

my @tables;
for my $case (option_cases(\&said))
{
	my ($kind, $option, $columns, $given, $first, $second) = @$case;
	my $table = "o_${kind}_$option";
	my $create = "CREATE FOREIGN TABLE $table ($columns) SERVER streamfilter OPTIONS (" . ($given eq '' ? '' : "$given, ");
	like(said("$create$option '?'); DROP FOREIGN TABLE IF EXISTS $table"), qr/(?:ERROR|WARNING):.*(?:\Q$option\E|kind|row|span|time)/, "$kind, $option: a bad value");
	my $trouble = said("$create$option '$first')");
	is($trouble =~ /ERROR/ ? $trouble : '', '', "$kind, $option '$first'");
	next if $trouble =~ /ERROR/;
	push @tables, $table;
	my $value = "SELECT option_value FROM pg_foreign_table, pg_options_to_table(ftoptions) WHERE ftrelid = '$table'::regclass AND option_name = '$option'";
	is(query($value), $first, '... is kept');
	like(query("SELECT streamfilter_definition('$table')"), qr/\b$option"? '\Q$first\E'/, '... and part of its definition');
	query("SELECT streamfilter_value('$table')") unless $option eq 'mode';
	$trouble = said("ALTER FOREIGN TABLE $table OPTIONS (SET $option '$second')");
	is($trouble =~ /ERROR/ ? $trouble : '', '', "... altered to '$second'");
	is(query($value), $second, '... which is kept');
}

# --- A restart; a dump, restored ------------------------------------------------------------------------------------------

my $shown = q{SELECT string_agg(format('%s %s %s %s', filter, kind, params, mode), chr(10) ORDER BY filter::text COLLATE "C") FROM streamfilter_stats};
my $options = q{SELECT string_agg(ftrelid::regclass || ' ' || (SELECT array_agg(o ORDER BY o)::text FROM unnest(ftoptions) o), chr(10) ORDER BY ftrelid::regclass::text COLLATE "C") FROM pg_foreign_table};
my ($before, $given) = (query($shown), query($options));
$node->restart;
query("SELECT streamfilter_value('$_')") for grep { !/_mode$/ } @tables;
is(query($shown), $before, 'after a restart each filter is what it was');
is(query(q{SELECT string_agg(filter || ' ' || error, ', ') FROM streamfilter_stats WHERE error IS NOT NULL}), '', '... and can be read');
my $dump = $node->basedir . '/dump.sql';
$node->run_log([ 'pg_dump', '-h', $host, '-p', $port, '-f', $dump, 'postgres' ]);
$node->run_log([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $host, '-p', $port, '-d', 'restored', '-f', $dump ]);
is(query($options, 'restored'), $given, 'a dump has all options');

$node->stop;
done_testing();
