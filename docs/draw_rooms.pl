#!/usr/bin/env perl
# Draws docs/pictures/rooms.svg: the rooms of src/ROOMS from the roof to the ground, and which of them include which.
#
#   perl docs/draw_rooms.pl            draws it anew
#   perl docs/draw_rooms.pl --check    fails if it is not what would be drawn (make check-layers)
use strict;
use warnings;
use File::Basename;
use File::Find;
use lib dirname(__FILE__);
use Drawing;

my (@rooms, %purpose);
open my $list, '<', 'src/ROOMS' or die "src/ROOMS: $!\n";
while (<$list>) {
	next if /^\s*(#|$)/;
	my ($room, $purpose) = /^(\S+)\s+(.*?)\s*$/ or die "src/ROOMS:$.: a room needs a purpose\n";
	unshift @rooms, $room;
	$purpose{$room} = $purpose;
}
close $list;

my %uses;
find({ no_chdir => 1, wanted => sub {
	return unless m{^src/(.*)/[^/]+\.[ch]pp$};
	my $room = $1;
	open my $source, '<', $_ or die "$_: $!\n";
	while (<$source>) {
		$uses{$room}{$1} = 1 if m{^\s*#include "((?:core|pg)/[^/"]+)/[^"]+"} && $1 ne $room;
	}
	close $source;
} }, 'src');

# ---- the picture: every room is a bar with its purpose, and stands on those whose columns have a dot in its row

my ($row, $left, $stairs, $top) = (24, 12, 780, 46);
my $width  = $stairs + $row * @rooms + 12;
my $height = $top + $row * @rooms + 12;
my @columns;

text($left, 28, 'purpose', 'A room may use only rooms below it. Each bar ends in a column of its own; the dots above that end '
	. 'are the rooms that include it.');
for my $i (0 .. $#rooms) {
	my ($room, $y) = ($rooms[$i], $top + $i * $row);
	my ($side, $name) = $room =~ m{^(\w+)(?:/(\w+))?$};
	my $end = $stairs + $row * ($i + 1);
	push @lines, sprintf '<rect x="%d" y="%d" width="%d" height="%d" class="%s"/>',
		$left, $y + 1, $end - $left, $row - 2, $side;
	push @columns, sprintf '<line x1="%d" y1="%d" x2="%d" y2="%d"/>', $end - $row / 2, $top, $end - $row / 2, $y;
	text($left + 8, $y + 16, 'name', $room);
	text($left + 120, $y + 16, 'purpose', $purpose{$room});
	text($end - 6, $y + 16, 'end', $name // $side);
	for my $j ($i + 1 .. $#rooms) {
		push @lines, sprintf '<circle cx="%d" cy="%d" r="5"><title>%s includes %s</title></circle>',
			$stairs + $j * $row + $row / 2, $y + $row / 2, $room, $rooms[$j]
			if $uses{$room}{ $rooms[$j] };
	}
}

unshift @lines, @columns;
finish('docs/pictures/rooms.svg', 'src/ROOMS and the includes below src/', $width, $height, <<'END');
text { font-size: 12px }
.name { font-weight: bold }
.end { font-weight: bold; text-anchor: end }
.pg { fill: #dbe7f3 } .core { fill: #f5e6c8 } .capi { fill: #dff0dc }
line { stroke: #ddd }
circle { fill: #335c85 }
END
