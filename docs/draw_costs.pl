#!/usr/bin/env perl
# Draws docs/pictures/costs.svg: what a bulk load costs by each method, from the first table of docs/benchmarks.md.
#
#   docs/draw_costs.pl            draws it anew
#   docs/draw_costs.pl --check    fails if it is not what would be drawn (docs/build_site.pl)
use strict;
use warnings;
use utf8;
use File::Basename;
use lib dirname(__FILE__);
use Drawing;

my $source = 'docs/benchmarks.md';
my $column = 2;    # five million rows

my ($table) = slurp($source) =~ /^(\| rows; distinct \|.*?)\n\n/ms or die "$source has no table of bulk loads\n";
my ($head, undef, @rows) = map { [ split /\s*\|\s*/ ] } split /\n/, $table;
my @bars;
for my $row (@rows)
{
	my ($name, $seconds) = ($row->[1], ($row->[ $column + 1 ] // '') =~ /^([\d.]+)/);
	next unless defined $seconds && $name !~ /scan of|batch_scan/;
	$name =~ s/`|;.*//g;
	# What is "the same" is of the kind of what it is the same as.
	my $is_ours = $name =~ /streamfilter|the trigger|a filter/ || ($name =~ /^the same/ && @bars && $bars[-1][2]);
	push @bars, [ $name, $seconds, $is_ours ];
}
die "$source: no figures in the table of bulk loads\n" unless @bars;

my ($left, $row_height, $scale_width) = (300, 26, 420);
my $longest = (sort { $b <=> $a } map { $_->[1] } @bars)[0];
my ($width, $height) = ($left + $scale_width + 80, 44 + $row_height * @bars + 8);

my ($count, $new) = split /;\s*/, $head->[ $column + 1 ];
text(12, 24, 'head', "Seconds to load $count rows, of which $new are new");
for my $key ([ ours => 'with streamfilter' ], [ others => 'without' ])
{
	my $x = $key->[0] eq 'ours' ? $width - 240 : $width - 100;
	push @lines, qq(<rect x="$x" y="13" width="12" height="12" class="$key->[0]"/>);
	text($x + 18, 24, 'value', $key->[1]);
}
for my $i (0 .. $#bars)
{
	my ($name, $seconds, $is_ours) = @{ $bars[$i] };
	my $y = 40 + $row_height * $i;
	my $long = sprintf '%.0f', $scale_width * $seconds / $longest;
	my $class = $is_ours ? 'ours' : 'others';
	text($left - 8, $y + 17, 'name', $name);
	push @lines, sprintf '<rect x="%d" y="%d" width="%d" height="%d" class="%s"/>', $left, $y + 3, $long, $row_height - 6, $class;
	text($left + $long + 6, $y + 17, 'value', sprintf '%.1f', $seconds);
}

finish('docs/pictures/costs.svg', "the first table of $source", $width, $height, <<'END');
.name { text-anchor: end }
.ours { fill: #335c85 } .others { fill: #c9b27c }
END
