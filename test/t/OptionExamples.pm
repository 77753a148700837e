# Every option of every kind of filter, as the hints of the library list them, with two good values.
#
#   use OptionExamples;
#   for my $case (option_cases(\&said)) { my ($kind, $option, $columns, $given, $first, $second) = @$case; … }
#
# An option without an example here fails, and so does an example of no option.
package OptionExamples;
use strict;
use warnings;
use Exporter qw(import);
use Test::More;

our @EXPORT = qw(kinds option_cases options_elsewhere make_parents answer_of);

# Of filters on other servers.
my %elsewhere = map { $_ => 1 } qw(servers producer identity);
sub options_elsewhere { my @names = sort keys %elsewhere; return @names; }

# Parents that the examples name.
sub make_parents
{
	my ($node) = @_;
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $_ (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', k '4')") for qw(root root2);
	return;
}

# Errors, warnings and notices of a statement, with their details.
sub answer_of
{
	my ($node, $statement) = @_;
	my ($code, $out, $err) = $node->psql('postgres', $statement);
	return $err;
}

# What goes with it; two good values, the second not the default if several servers can have it.
my %examples = (
	kind => [ q{}, 'bloom', 'bloom' ],
	memory => [ q{}, '64kB', '128kB' ],
	keys => [ q{}, '1000', '2000' ],
	fpr => [ q{}, '0.25', '0.3' ],
	seed => [ q{}, '1', '2' ],
	nulls => [ q{}, 'distinct', 'not distinct' ],
	slices => [ q{}, '2', '4' ],
	'bloom.layout' => [ q{}, 'scattered', 'blocked' ],
	'bloom.slicing' => [ q{k '4', slices '4'}, 'horizontal', 'vertical' ],
	'bloom.dice' => [ q{k '4', slicing 'diced', slices '4,2'}, 'vh', 'hv' ],
	'bloom.k1' => [ q{slices '4', k2 '2'}, '2', '3' ],
	'bloom.k2' => [ q{slices '4', k1 '2'}, '2', '3' ],
	k => [ q{}, '2', '3' ],
	max => [ q{}, '1', '3' ],
	cell_bits => [ q{}, '2', '3' ],
	p => [ q{}, '10', '20' ],
	gap => [ q{}, '1000', '2000' ],
	p_star => [ q{}, '0.03', '0.04' ],
	variant => [ q{}, 'printed', 'measured' ],
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
	policy => [ q{}, 'lru', 'clock' ],
	'clq.policy' => [ q{}, 'lru', 'fifo' ],
	q => [ q{}, '0.05', '0.1' ],
	bits => [ q{}, '16', '20' ],
	bucket => [ q{}, '8', '16' ],
	lines => [ q{}, '1', '2' ],
	growth => [ q{}, '2', '4' ],
	ages => [ q{window '10 minutes'}, '4', '5' ],
	extend => [ q{window '10 minutes'}, 'no', 'yes' ],
	origin => [ q{bits '8'}, '9', '5' ],
	conflict => [ q{}, 'admit', 'discard' ],
	overfull => [ q{}, 'discard', 'pass' ],
	persistence => [ q{}, 'logged', 'unlogged' ],
	mode => [ q{}, 'shadow', 'off' ],
	probe => [ q{}, 'pipelined', 'parallel' ],
	lost_slice => [ q{}, 'votes:2', 'duplicate' ],
	'timer.max_future' => [ q{window '10 minutes'}, '5 minutes', 'infinity' ],
	'bloom.parent' => [ q{k '4'}, 'root', 'root2' ],
	'bloom.tree' => [ q{k '4', parent 'root'}, 'sparse', 'dense' ],
	'bloom.top_down' => [ q{k '4', parent 'root'}, '0', '1' ]);

# said: runs a statement, returns its messages.
sub kinds
{
	my ($said) = @_;
	my ($kinds) = $said->(q{CREATE FOREIGN TABLE x (id int) SERVER streamfilter OPTIONS (kind 'qqqqqqqqqqqq')}) =~ /Valid kinds are: auto, (.*)\./;
	my @kinds = split /, /, $kinds;
	cmp_ok(scalar(@kinds), '>', 15, 'kinds');
	return @kinds;
}

sub option_cases
{
	my ($said) = @_;
	my (@cases, %done);
	for my $kind (kinds($said))
	{
		my ($options) = $said->(qq{CREATE FOREIGN TABLE x (id int) SERVER streamfilter OPTIONS (kind '$kind', qqqqqqqqqqqq '1')}) =~ /Valid options are: (.*)\./;
		for my $option (split /, /, $options)
		{
			next if $done{$option} && !$examples{"$kind.$option"};
			next if $elsewhere{$option};
			my $example = $examples{"$kind.$option"} // $examples{$option};
			if (!$example) { next if grep { /\.\Q$option\E$/ } keys %examples; fail("an example of option $option, kind $kind"); next }
			$done{$option} = 1;
			my ($with, $first, $second) = @$example;
			my $role = $kind =~ /^ibf/ || $option =~ /^importance/ ? q{, weight real OPTIONS (role 'importance')} : '';
			$role = q{, at timestamptz OPTIONS (role 'time')} if $kind eq 'timer' || $with =~ /window/ || $option eq 'window';
			my @given = ($option eq 'kind' ? () : "kind '$kind'", $option eq 'memory' ? () : "memory '64kB'", $with eq '' ? () : $with);
			push @given, q{window '10 minutes'} if $kind eq 'timer' && "@given $option" !~ /window/;
			push @cases, [ $kind, $option, "id int$role", join(', ', @given), $first, $second ];
		}
	}
	for my $option (sort map { s/.*\.//r } keys %examples) { ok($done{$option}, "the library knows $option") }
	return @cases;
}

1;
