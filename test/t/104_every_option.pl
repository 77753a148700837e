# flavours: asserted
# Every option of every kind of filter, as the hints of the library list them: given, it is kept and shown, altered, dumped and
# restored, defined elsewhere, and read back after a restart; a bad value names it. An option without an example here fails.
use strict;
use warnings;
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

# What goes with it; two good values; what else it takes to say more.
my %elsewhere = map { $_ => 1 } qw(servers home_servers producer moved first_places identity);    # a server of its own is for other tests
my %examples = (
	kind => [ q{}, 'bloom', 'bloom' ],
	memory => [ q{}, '64kB', '128kB' ],
	keys => [ q{}, '1000', '2000' ],
	fpr => [ q{}, '0.25', '0.3' ],
	seed => [ q{}, '1', '2' ],
	nulls => [ q{}, 'not distinct', 'distinct' ],
	slices => [ q{}, '2', '4' ],
	'bloom.layout' => [ q{}, 'blocked', 'scattered' ],
	'bloom.slicing' => [ q{k '4', slices '4'}, 'vertical', 'horizontal' ],
	'bloom.dice' => [ q{k '4', slicing 'diced', slices '2,2'}, 'vh', 'hv' ],
	'bloom.k1' => [ q{k '4', slices '4', k2 '2'}, '2', '2' ],
	'bloom.k2' => [ q{k '4', slices '4', k1 '2'}, '2', '2' ],
	k => [ q{}, '2', '3' ],
	max => [ q{}, '3', '1' ],
	cell_bits => [ q{}, '2', '3' ],
	p => [ q{}, '10', '20' ],
	gap => [ q{}, '1000', '2000' ],
	p_star => [ q{}, '0.03', '0.04' ],
	variant => [ q{}, 'measured', 'printed' ],
	r => [ q{}, '8', '9' ],
	r_prime => [ q{}, '3', '4' ],
	buckets => [ q{}, '2', '4' ],
	omega => [ q{}, '7', '11' ],
	fingerprint => [ q{p '32'}, 'integer', 'hash' ],
	rows => [ q{}, '2', '3' ],
	delete => [ q{}, 'random', 'value' ],
	importance_range => [ q{}, '0,100', '0,1000' ],
	importance_levels => [ q{}, '10', '20' ],
	window => [ q{}, '10 minutes', '20 minutes' ],
	tick => [ q{window '10 minutes'}, '10 seconds', '20 seconds' ],
	equal_timers => [ q{window '10 minutes'}, '2', '4' ],
	grow => [ q{keys '1000'}, 'density', 'cardinality' ],
	size => [ q{window '10 minutes', keys '1000', grow 'density'}, '1000', '2000' ],
	limit => [ q{keys '1000', grow 'density'}, '2', '3' ],
	lateness => [ q{window '10 minutes'}, '1 minute', '2 minutes' ],
	entry_bits => [ q{}, '32', '48' ],
	policy => [ q{}, 'clock', 'lru' ],
	'clq.policy' => [ q{}, 'fifo', 'lru' ],
	q => [ q{}, '0.05', '0.1' ],
	bits => [ q{}, '16', '20' ],
	bucket => [ q{}, '8', '16' ],
	lines => [ q{}, '2', '1' ],
	cap => [ q{}, '0.4', '0.5' ],
	admission => [ q{}, '0.5', '0.6' ],
	conflict => [ q{}, 'admit', 'discard' ],
	overfull => [ q{}, 'discard', 'pass' ],
	persistence => [ q{}, 'unlogged', 'logged' ],
	mode => [ q{}, 'shadow', 'off' ],
	probe => [ q{}, 'pipelined', 'parallel' ],
	lost_slice => [ q{}, 'votes:2', 'duplicate' ],
	'timer.max_future' => [ q{window '10 minutes'}, '5 minutes', 'infinity' ],
	'bloom.parent' => [ q{k '4'}, 'root', 'root2' ],
	'bloom.tree' => [ q{k '4', parent 'root'}, 'dense', 'sparse' ],
	'bloom.top_down' => [ q{k '4', parent 'root'}, '1', '0' ]);

sub query { return $node->safe_psql($_[1] // 'postgres', $_[0]) }

sub said
{
	my ($statement) = @_;
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY default\n$statement", extra_params => ['-q']);
	return $err;
}

my ($kinds) = said(q{CREATE FOREIGN TABLE x (id int) SERVER streamfilter OPTIONS (kind 'qqqqqqqqqqqq')}) =~ /Valid kinds are: auto, (.*)\./;
my @kinds = split /, /, $kinds;
cmp_ok(scalar(@kinds), '>', 15, 'kinds');

my @tables;
my %done;
my $first_kind = 1;
for my $kind (@kinds)
{
	my ($options) = said(qq{CREATE FOREIGN TABLE x (id int) SERVER streamfilter OPTIONS (kind '$kind', qqqqqqqqqqqq '1')}) =~ /Valid options are: (.*)\./;
	for my $option (split /, /, $options)
	{
		next if $done{$option} && !$examples{"$kind.$option"};
		next if $elsewhere{$option};
		my $example = $examples{"$kind.$option"} // $examples{$option};
		if (!$example) { next if grep { /\.\Q$option\E$/ } keys %examples; fail("an example of option $option, kind $kind"); next }
		$done{$option} = 1;
		my ($with, $first, $second) = @$example;
		my $table = "o_${kind}_$option";
		my $role = $kind =~ /^ibf/ || $option =~ /^importance/ ? q{, weight real OPTIONS (role 'importance')} : '';
		$role = q{, at timestamptz OPTIONS (role 'time')} if $kind eq 'timer' || $with =~ /window/ || $option eq 'window';
		my @given = ($option eq 'kind' ? () : "kind '$kind'", $option eq 'memory' ? () : "memory '64kB'", $with eq '' ? () : $with);
		my @more = $kind eq 'timer' && "@given $option" !~ /window/ ? q{window '10 minutes'} : ();
		my $create = "CREATE FOREIGN TABLE $table (id int$role) SERVER streamfilter OPTIONS (" . join(', ', @given, @more);
		like(said("$create, $option '?'); DROP FOREIGN TABLE IF EXISTS $table"), qr/(?:ERROR|WARNING):.*(?:\Q$option\E|kind|row|span|time)/, "$kind, $option: a bad value");
		my $trouble = said("$create, $option '$first')");
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
}
for my $option (sort map { s/.*\.//r } keys %examples) { ok($done{$option}, "the library knows $option") }

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
