#!/usr/bin/env perl
# Draws docs/pictures/rooms.svg: the rooms of src/ROOMS from the roof to the ground, and which of them include which.
#
#   perl docs/draw_rooms.pl            draws it anew
#   perl docs/draw_rooms.pl --check    fails if it is not what would be drawn (make check-layers)
use strict;
use warnings;
use File::Basename;
use File::Find;

chdir dirname(dirname(File::Spec->rel2abs(__FILE__))) or die "$!\n";
my $picture = 'docs/pictures/rooms.svg';

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
my (@lines, @columns);

sub text {
	my ($x, $y, $class, $text) = @_;
	$text =~ s/&/&amp;/g;
	$text =~ s/</&lt;/g;
	push @lines, qq(<text x="$x" y="$y" class="$class">$text</text>);
}

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

my $svg = <<"END" . join("\n", @columns, @lines) . "\n</svg>\n";
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $width $height" width="$width" height="$height">
<!-- Drawn by docs/draw_rooms.pl from src/ROOMS and the includes below src/. -->
<style>
text { font: 12px sans-serif; fill: #222 }
.name { font-weight: bold }
.end { font-weight: bold; text-anchor: end }
.pg { fill: #dbe7f3 } .core { fill: #f5e6c8 } .capi { fill: #dff0dc }
line { stroke: #ddd }
circle { fill: #335c85 }
</style>
<rect width="$width" height="$height" fill="white"/>
END

if (($ARGV[0] // '') eq '--check') {
	open my $drawn, '<', $picture or die "$picture: $!\n";
	local $/;
	exit 0 if <$drawn> eq $svg;
	die "$picture is not what src/ROOMS and the includes say: perl docs/draw_rooms.pl draws it anew\n";
}
open my $out, '>', $picture or die "$picture: $!\n";
print $out $svg;
close $out or die "$picture: $!\n";
