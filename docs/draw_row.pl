#!/usr/bin/env perl
# Draws docs/pictures/row.svg: the life of a row, from INSERT to the end of its transaction.
#
#   docs/draw_row.pl            draws it anew
#   docs/draw_row.pl --check    fails if it is not what would be drawn (docs/build_site.pl)
use strict;
use warnings;
use utf8;
use File::Basename;
use lib dirname(__FILE__);
use Drawing;

# Boxes: name => [ column, row, class, lines of text ]. Arrows: [ from, to, what it says ].
my %boxes = (
	insert   => [ 0, 0, 'server', 'INSERT, COPY', 'a row, or a batch of rows' ],
	mode     => [ 0, 1, 'ours', 'mode, trigger', 'whether the row is judged' ],
	hash     => [ 0, 2, 'ours', 'key', '64 bits: equal where', 'SELECT DISTINCT says equal' ],
	own      => [ 0, 3, 'ours', 'own changes', 'keys of this transaction, exact' ],
	filter   => [ 0, 4, 'filter', 'the filter', 'approximate, in shared memory' ],
	flight   => [ 0, 5, 'ours', 'keys in flight', 'of unfinished transactions' ],
	reserved => [ 0, 6, 'ours', 'new: key in flight', 'and in the own changes' ],
	stored   => [ 0, 7, 'server', 'the row is stored' ],
	passes   => [ 2, 1, 'server', 'stored, not judged' ],
	nulls    => [ 2, 2, 'server', 'stored, not remembered', 'a NULL in the key' ],
	repeat   => [ 2, 3, 'repeat', 'repeat', 'discarded, marked, or', 'diverted; counted' ],
	waits    => [ 2, 5, 'ours', 'wait for its end', 'or as option conflict says:', 'admit, discard' ],
	lost     => [ 2, 4, 'repeat', 'repeat, or a false positive', 'a new row taken for one: lost,', 'at most at the rate fpr' ],
	logged   => [ 0, 8, 'ours', 'before COMMIT', 'keys in the log (logged)' ],
	commit   => [ 0, 9, 'filter', 'at COMMIT', 'keys go into the filter;', 'waiting transactions go on' ],
	forgets  => [ 0, 10, 'filter', 'later', 'the kind may forget the key:', 'a repeat then stays (FNR)' ],
	rollback => [ 2, 8, 'server', 'ROLLBACK', 'nothing was remembered:', 'a retry is new' ],
);
my @arrows = (
	[ insert => 'mode' ], [ mode => 'passes', 'off' ], [ mode => 'hash' ], [ hash => 'nulls', 'NULL' ], [ hash => 'own' ],
	[ own => 'repeat', 'found' ], [ own => 'filter', 'not found' ], [ filter => 'lost', 'found' ],
	[ filter => 'flight', 'not found' ], [ flight => 'waits', 'found' ], [ flight => 'reserved', 'not found' ], [ reserved => 'stored' ], [ stored => 'logged' ],
	[ logged => 'commit' ], [ logged => 'rollback', 'or' ], [ commit => 'forgets' ],
);

my ($box_width, $box_height, $pitch, $column_width, $left, $top) = (230, 56, 84, 165, 12, 12);
sub place { my ($name) = @_; return ($left + $boxes{$name}[0] * $column_width, $top + $boxes{$name}[1] * $pitch); }

push @lines, '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto">'
  . '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>';
for my $name (sort { $boxes{$a}[1] <=> $boxes{$b}[1] || $boxes{$a}[0] <=> $boxes{$b}[0] } keys %boxes)
{
	my (undef, undef, $class, $title, @more) = @{ $boxes{$name} };
	my ($x, $y) = place($name);
	push @lines, qq(<rect x="$x" y="$y" width="$box_width" height="$box_height" rx="4" class="$class"/>);
	text($x + 10, $y + 17, 'title', $title);
	text($x + 10, $y + 33 + 15 * $_, 'more', $more[$_]) for 0 .. $#more;
}
for my $arrow (@arrows)
{
	my ($from, $to, $says) = @$arrow;
	my ($x1, $y1, $x2, $y2) = (place($from), place($to));
	if ($x1 == $x2)
	{
		my $x = $x1 + $box_width / 2;
		push @lines, sprintf '<line x1="%d" y1="%d" x2="%d" y2="%d" marker-end="url(#head)"/>', $x, $y1 + $box_height, $x, $y2 - 3;
		text($x + 8, $y1 + $box_height + 18, 'says', $says) if $says;
	}
	else
	{
		my $y = $y1 + $box_height / 2;
		push @lines, sprintf '<line x1="%d" y1="%d" x2="%d" y2="%d" marker-end="url(#head)"/>', $x1 + $box_width, $y, $x2 - 3, $y;
		text($x1 + $box_width + 10, $y - 6, 'says', $says) if $says;
	}
}

my ($width, $height) = ($left * 2 + 2 * $column_width + $box_width, $top * 2 + 10 * $pitch + $box_height + 8);
finish('docs/pictures/row.svg', 'docs/draw_row.pl', $width, $height, <<'END');
text { font-size: 12px }
.title { font-weight: bold; font-size: 13px }
.more { fill: #444 } .says { fill: #555; font-style: italic }
.server { fill: #eee } .ours { fill: #dbe7f3 } .filter { fill: #f5e6c8 } .repeat { fill: #f3d9d5 }
line { stroke: #555 }
END
