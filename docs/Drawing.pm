package Drawing;

# What the programs share that draw docs/pictures/*.svg from figures in the documents: docs/draw_*.pl.
use strict;
use warnings;
use utf8;
use Exporter 'import';
use File::Basename;
use File::Spec;
use lib dirname(__FILE__);
use Files;

our @EXPORT = qw(slurp rows_of text finish @lines);
our @lines;    # of the picture, as SVG

chdir dirname(dirname(File::Spec->rel2abs(__FILE__))) or die "$!\n";

# The cells of a table that psql has printed in a page, below the line of its heads, which begins like that.
sub rows_of
{
	my ($page, $head) = @_;
	my ($table) = slurp($page) =~ /^ *\Q$head\E[^\n]*\n[-+]+\n(.*?)^```/ms or die "$page has no table that begins with: $head\n";
	return map { [ map { s/^\s+|\s+$//gr } split /\|/ ] } grep { !/^\(/ } split /\n/, $table;
}

sub text
{
	my ($x, $y, $class, $text) = @_;
	$text =~ s/&/&amp;/g;
	$text =~ s/</&lt;/g;
	push @lines, sprintf '<text x="%.0f" y="%.0f" class="%s">%s</text>', $x, $y, $class, $text;
	return;
}

# Writes the picture, or looks whether it is as it would be drawn (--check, by docs/build_site.pl).
sub finish
{
	my ($picture, $source, $width, $height, $style) = @_;
	my $program = 'docs/' . basename($0);
	my $svg = <<"END" . join("\n", @lines) . "\n</svg>\n";
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $width $height" width="$width" height="$height">
<!-- Drawn by $program from $source. -->
<style>
text { font-family: sans-serif; font-size: 13px; fill: #222 }
.head { font-weight: bold }
$style</style>
<rect width="$width" height="$height" fill="white"/>
END
	make_or_check($picture, $svg, $program, $source);
	return;
}

1;
