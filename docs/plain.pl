#!/usr/bin/env perl
# Counts what makes documents long and hard to read; CONTRIBUTING.md has the rules.
#
#   docs/plain.pl            words, lines and long sentences of each page, entries of the glossary, and words that we avoid
#   docs/plain.pl --check    fails where such words stand, in pages or in comments of sources, and says where
use strict;
use utf8;
use warnings;
use File::Basename;
use File::Spec;

my $root = dirname(dirname(File::Spec->rel2abs(__FILE__)));
my $checks = @ARGV && $ARGV[0] eq '--check';
my $avoided = qr/\b(?:shall|whoever|of which)\b/i;
my $long = 30;    # words of a sentence
chdir $root or die "$root: $!\n";
binmode STDOUT, ':encoding(UTF-8)';

sub lines_of
{
	my ($file) = @_;
	open my $in, '<:encoding(UTF-8)', $file or die "$file: $!\n";
	my @lines = <$in>;
	close $in;
	return @lines;
}

# Prose alone: no code, no tables, no comments, no addresses of links.
sub prose_of
{
	my ($text) = @_;
	$text =~ s/<!--.*?-->//gs;
	$text =~ s/^```.*?^```//gms;
	$text =~ s/^\|.*\n//gm;
	$text =~ s/\]\([^)]*\)//g;
	$text =~ s/`[^`]*`/code/g;
	return $text;
}

# A heading, an item and a paragraph end a sentence, too.
sub sentences_of
{
	my ($text) = @_;
	$text =~ s/^#.*$//gm;
	return grep { /\w/ } map { split /(?<=[.?!:;])\s+/ } split /\n\s*\n|\n\s*[-*] /, $text;
}

sub words_in { my ($text) = @_; return scalar(() = $text =~ /[\w'`-]*\w[\w'`-]*/g); }

my @pages = ('README.md', 'SECURITY.md', sort glob 'docs/*.md docs/*/*.md');
my @sources = split /\n/, `git ls-files src include test bench`;
my (@found, %total);

printf "%-44s %7s %6s %10s\n", 'page', 'words', 'lines', "> $long words" unless $checks;
for my $page (@pages)
{
	my @lines = lines_of($page);
	my $text = join '', @lines;
	my @sentences = sentences_of(prose_of($text));
	my $too_long = grep { words_in($_) > $long } @sentences;
	my $words = words_in($text);
	printf "%-44s %7d %6d %10d\n", $page, $words, scalar @lines, $too_long unless $checks;
	$total{words} += $words;
	$total{lines} += @lines;
	$total{sentences} += @sentences;
	$total{long} += $too_long;
	push @found, map { "$page:" . ($_ + 1) . ": $lines[$_]" } grep { $lines[$_] =~ $avoided } 0 .. $#lines;
}
for my $source (grep { /\.(?:cpp|hpp|h|c)$/ } @sources)
{
	my @lines = lines_of($source);
	push @found, map { "$source:" . ($_ + 1) . ": $lines[$_]" } grep { $lines[$_] =~ m{//.*$avoided|^\s*\*.*$avoided} } 0 .. $#lines;
}
for my $source (grep { /\.(?:p[lm]|sh|sql|spec)$/ } @sources)
{
	my @lines = lines_of($source);
	push @found, map { "$source:" . ($_ + 1) . ": $lines[$_]" } grep { $lines[$_] =~ /^\s*(?:#|--).*$avoided/ } 0 .. $#lines;
}

if ($checks)
{
	print @found;
	exit(@found ? 1 : 0);
}
my $entries = grep { /^- / } lines_of('docs/glossary.md');
printf "%-44s %7d %6d %10d\n", 'all', @total{qw(words lines long)};
printf "%.1f %% of %d sentences have more than %d words; the glossary has %d entries; words we avoid stand in %d lines\n",
	100 * $total{long} / $total{sentences}, $total{sentences}, $long, $entries, scalar @found;
