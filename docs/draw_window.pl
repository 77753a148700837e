#!/usr/bin/env perl
# Draws docs/pictures/window.svg: a window's life, and that of one which repeats prolong. From the table of docs/windows.md that says
# which events were new.
#
#   docs/draw_window.pl            draws it anew
#   docs/draw_window.pl --check    fails if it is not what would be drawn (docs/build_site.pl)
use strict;
use warnings;
use utf8;
use File::Basename;
use lib dirname(__FILE__);
use Drawing;

my @rows = rows_of('docs/windows.md', q{at   | window '1 hour' | extend 'yes'});
my @lanes = ("window '1 hour': the window counts from the row that was kept", "with extend 'yes': each repeat prolongs it");
my ($left, $top, $hour, $lane_height) = (44, 20, 130, 110);

sub minutes { my ($hours, $minutes) = split /:/, shift; return 60 * $hours + $minutes; }
my $begin = 60 * int(minutes($rows[0][0]) / 60);
my $end = 60 * (int(minutes($rows[-1][0]) / 60) + 2);
sub x_of { return $left + $hour * ($_[0] - $begin) / 60; }
my ($right, $bottom) = (x_of($end), $top + @lanes * $lane_height);

for (my $at = $begin; $at <= $end; $at += 60)
{
	push @lines, sprintf '<line x1="%.0f" y1="%d" x2="%.0f" y2="%d" class="grid"/>', x_of($at), $top, x_of($at), $bottom;
	text(x_of($at), $bottom + 18, 'middle', sprintf '%02d:00', $at / 60);
}
for my $lane (0 .. $#lanes)
{
	my $y = $top + $lane * $lane_height + 44;
	my ($from, $until);
	my $window = sub {
		push @lines, sprintf '<rect x="%.0f" y="%d" width="%.0f" height="22" rx="4" class="window"/>', x_of($from), $y, x_of($until) - x_of($from)
			if defined $from;
	};
	text($left, $y - 20, 'head', $lanes[$lane]);
	for my $row (@rows)
	{
		my ($at, $is_new) = (minutes($row->[0]), $row->[ $lane + 1 ] eq 'new');
		$window->() if $is_new;
		$from = $at if $is_new;
		$until = $at + 60 if $is_new || $lane == 1;
	}
	$window->();
	for my $row (@rows)
	{
		my ($x, $is_new) = (x_of(minutes($row->[0])), $row->[ $lane + 1 ] eq 'new');
		push @lines, sprintf '<circle cx="%.0f" cy="%d" r="7" class="%s"/>', $x, $y + 11, $is_new ? 'kept' : 'discarded';
		text($x, $y + 40, 'middle', $row->[0] . ($is_new ? ' kept' : ''));
	}
}

finish('docs/pictures/window.svg', 'docs/windows.md', $right + 30, $bottom + 30, <<'END');
.middle { text-anchor: middle; font-size: 12px }
.grid { stroke: #ddd } .window { fill: #dbe7f3; stroke: #335c85 }
.kept { fill: #335c85 } .discarded { fill: white; stroke: #a34a3f; stroke-width: 2 }
END
