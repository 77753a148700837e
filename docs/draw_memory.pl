#!/usr/bin/env perl
# Draws docs/pictures/memory.svg: which keys, memory and rate go together, a chart to put a dot on. From the first table of
# docs/sizing.md.
#
#   docs/draw_memory.pl            draws it anew
#   docs/draw_memory.pl --check    fails if it is not what would be drawn (docs/build_site.pl)
use strict;
use warnings;
use utf8;
use File::Basename;
use lib dirname(__FILE__);
use Drawing;

my %unit = (kB => 1024, MB => 1024**2, GB => 1024**3);
my @rates = ('10 %', '1 %', '0.1 %', '1e-6');
my @points;    # [keys, bytes for each rate]
for my $row (rows_of('docs/sizing.md', 'keys     | fpr 10 %'))
{
	my ($keys, @memory) = @$row;
	push @points, [ $keys =~ tr/,//dr, map { /^(\d+) (\w+)$/ ? $1 * $unit{$2} : die "no memory: $_\n" } @memory ];
}

# Both scales are logarithmic: a step of ten is as long as any other.
my ($left, $top, $decade) = (84, 54, 150);
my ($least_keys, $least_memory) = (1e5, 64 * 1024);
my ($right, $bottom) = ($left + 3 * $decade, $top + 4 * $decade);
sub log10 { return log($_[0]) / log 10; }
sub x_of { return $left + $decade * log10($_[0] / $least_keys); }
sub y_of { return $bottom - $decade * log10($_[0] / $least_memory); }

text(12, 20, 'head', 'Put a dot where your keys and your memory meet.');
text(12, 38, 'note', 'The first line at or below the dot is the rate you can ask for; below all lines, repeats are missed.');
for my $step (0 .. 3)
{
	for my $part (1 .. ($step < 3 ? 9 : 1))
	{
		my $x = x_of($least_keys * $part * 10**$step);
		push @lines, sprintf '<line x1="%.0f" y1="%d" x2="%.0f" y2="%d" class="%s"/>', $x, $top, $x, $bottom, $part == 1 ? 'grid' : 'fine';
	}
}
my @names = ('100,000', '1 million', '10 million', '100 million');
text(x_of($least_keys * 10**$_), $bottom + 20, 'middle', $names[$_]) for 0 .. 3;
text(($left + $right) / 2, $bottom + 42, 'middle', 'keys between an event and its repeat');
for my $power (0 .. 13)
{
	my $y = y_of($least_memory * 2**$power);
	push @lines, sprintf '<line x1="%d" y1="%.0f" x2="%d" y2="%.0f" class="%s"/>', $left, $y, $right, $y, $power % 2 ? 'fine' : 'grid';
	text($left - 8, $y + 4, 'end', $power < 4 ? 64 * 2**$power . ' kB' : 2**($power - 4) . ' MB');
}
for my $rate (0 .. $#rates)
{
	push @lines, sprintf '<polyline class="curve c%d" points="%s"/>', $rate,
		join ' ', map { sprintf '%.1f,%.1f', x_of($_->[0]), y_of($_->[ $rate + 1 ]) } @points;
	text($right + 8, y_of($points[-1][ $rate + 1 ]) + 4, 'value', "fpr $rates[$rate]");
}

finish('docs/pictures/memory.svg', 'the first table of docs/sizing.md', $right + 110, $bottom + 56, <<'END');
.middle { text-anchor: middle } .end { text-anchor: end }
.grid { stroke: #bbb } .fine { stroke: #e4e4e4 }
.curve { fill: none; stroke-width: 2.5 }
.c0 { stroke: #c9b27c } .c1 { stroke: #7ba3c9 } .c2 { stroke: #335c85 } .c3 { stroke: #16283a }
END
