#!/usr/bin/env perl
# Makes the documents a static site, and one PDF of them, and checks every link of the result.
#
#   docs/build_site.pl [--pdf] [OUTDIR]      OUTDIR: build/site
#
# Needs pandoc, and for the PDF weasyprint: apt install pandoc weasyprint. Pages are README.md, docs/ and what they link to;
# links between .md files become links between pages.
use strict;
use utf8;
use warnings;
use File::Basename;
use File::Copy;
use File::Path qw(make_path);
use File::Spec;
use IPC::Open2;

my $root = dirname(dirname(File::Spec->rel2abs(__FILE__)));
my $wants_pdf = @ARGV && $ARGV[0] eq '--pdf' ? shift @ARGV : 0;
die "usage: docs/build_site.pl [--pdf] [OUTDIR]\n" if @ARGV > 1 || grep { /^-/ } @ARGV;
my $site = File::Spec->rel2abs($ARGV[0] // "$root/build/site");

# In the order of the PDF; what else is linked to comes behind.
my @first = qw(README.md docs/README.md docs/tutorial.md docs/cookbook.md docs/sizing.md docs/tools.md
  docs/reference/filters.md docs/reference/functions.md docs/reference/values.md docs/reference/judging.md
  docs/reference/settings.md docs/kinds.md docs/advise.md docs/tuning.md docs/compare.md docs/transactions.md
  docs/when-rows-can-be-lost.md docs/modes.md docs/persistence.md docs/resizing.md docs/watching.md docs/troubleshooting.md);

for my $program ('pandoc', $wants_pdf ? 'weasyprint' : ())
{
	next if grep { -x "$_/$program" } split /:/, $ENV{PATH};
	die "$program is not installed\n  On Debian: apt install $program\n";
}

sub slurp
{
	my ($file) = @_;
	open my $in, '<:encoding(UTF-8)', $file or die "$file: $!\n";
	my $text = do { local $/; <$in> };
	close $in;
	return $text;
}

sub spew
{
	my ($file, $text) = @_;
	make_path(dirname($file));
	open my $out, '>:encoding(UTF-8)', $file or die "$file: $!\n";
	print $out $text;
	close $out or die "$file: $!\n";
	return;
}

# The path of a link in a page, from the root: "docs/kinds.md".
sub resolve
{
	my ($page, $link) = @_;
	my @parts;
	for my $part (split m{/}, dirname($page) . "/$link")
	{
		next if $part eq '.' || $part eq '';
		if ($part eq '..') { pop @parts }
		else { push @parts, $part }
	}
	my $path = join '/', @parts;
	return -d "$root/$path" && -f "$root/$path/README.md" ? "$path/README.md" : $path;
}

# README.md is the index of its folder.
sub page_name { my ($path) = @_; return $path =~ s/README\.md$/index.html/r =~ s/\.md$/.html/r; }

sub relative { my ($page, $target) = @_; return File::Spec->abs2rel("/$target", '/' . dirname($page)); }

# GitHub's Markdown without comments, which carry what only the tests run.
sub html_of
{
	my ($markdown, @options) = @_;
	$markdown =~ s/<!--.*?-->\n?//gs;
	my $pid = open2(my $out, my $in, 'pandoc', '-f', 'gfm', '-t', 'html', '--wrap=none', @options);
	binmode $_, ':encoding(UTF-8)' for $in, $out;
	# A document fits into no pipe's buffer, but pandoc reads all before it writes.
	print $in $markdown;
	close $in;
	local $/;
	my $html = <$out>;
	waitpid $pid, 0;
	die "pandoc failed\n" if $?;
	return $html;
}

sub title_of { my ($markdown) = @_; return $markdown =~ /^# +(.*)$/m ? $1 =~ s/`//gr : 'streamfilter'; }

# Pictures that are drawn from other files are of these files.
for my $drawing (sort glob "$root/docs/draw_*.pl")
{
	system($^X, $drawing, '--check') == 0 or exit 1;
}

# ---- which pages there are -------------------------------------------------------------------------

my (%text, @pages, %files);
my @found = (@first, map { substr $_, length("$root/") } sort glob "$root/docs/*.md $root/docs/*/*.md $root/*.md");
while (defined(my $page = shift @found))
{
	next if $text{$page};
	$text{$page} = slurp("$root/$page");
	push @pages, $page;
	for my $link ($text{$page} =~ /\]\(([^)\s#]+)/g)
	{
		next if $link =~ /^[a-z]+:/;
		my $path = resolve($page, $link);
		if ($path =~ /\.md$/) { push @found, $path if -f "$root/$path" }
		else { $files{$path} = 1 }
	}
}

# ---- the site ----------------------------------------------------------------------------------------

my $style = <<'CSS';
body { margin: 0 auto; max-width: 60em; padding: 1em 2em; font: 16px/1.5 sans-serif; color: #222 }
nav { border-bottom: 1px solid #ccc; padding-bottom: .5em; font-size: 90% }
pre { background: #f6f6f3; padding: .7em; overflow-x: auto; font-size: 85%; line-height: 1.35 }
code { background: #f6f6f3 } pre code { background: none }
table { border-collapse: collapse; font-size: 90%; display: block; overflow-x: auto }
td, th { border: 1px solid #ddd; padding: .25em .6em; text-align: left; vertical-align: top }
td { overflow-wrap: break-word } td code { overflow-wrap: anywhere }
a { color: #335c85 } img { max-width: 100% }
@page { size: A4; margin: 18mm } @media print { body { font-size: 10px; padding: 0 } section { break-before: page } nav { display: none } table { display: table; width: 100%; table-layout: fixed } td { overflow-wrap: anywhere } pre { white-space: pre-wrap; font-size: 8px } }
CSS

sub frame
{
	my ($page, $title, $body) = @_;
	my $nav = join ' · ', map { my ($name, $to) = @$_; '<a href="' . relative($page, page_name($to)) . "\">$name</a>" }
		[ streamfilter => 'README.md' ], [ tutorial => 'docs/tutorial.md' ], [ cookbook => 'docs/cookbook.md' ],
		[ reference => 'docs/reference/filters.md' ], [ kinds => 'docs/kinds.md' ], [ 'all pages' => 'docs/README.md' ];
	return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>$title</title>"
		. "<meta name=\"viewport\" content=\"width=device-width\"><style>\n$style</style></head>\n<body><nav>$nav</nav>\n$body</body></html>\n";
}

# For paper, whose width is what it is: text in columns gets smaller where its lines are long.
sub fit_to_paper
{
	my ($html) = @_;
	my ($usual, $fitting) = (8, 128);    # px, and the characters of that size in a line
	$html =~ s{<pre([^>]*)>(.*?)</pre>}{
		my ($attributes, $text) = ($1, $2);
		my $longest = 0;
		for my $line (split /\n/, $text =~ s/<[^>]*>//gr =~ s/&\w+;/x/gr)
		{
			$longest = length $line if length $line > $longest;
		}
		my $size = $longest > $fitting ? sprintf(' style="font-size: %.2fpx"', $usual * $fitting / $longest) : '';
		"<pre$attributes$size>$text</pre>" }gse;
	return $html;
}

# Links of a page's HTML, as `change` has them: called with the path from the root and the anchor.
sub relink
{
	my ($page, $html, $change) = @_;
	$html =~ s{(href|src)="(?![a-z]+:)([^"#]*)(#[^"]*)?"}{
		my ($kind, $path, $anchor) = ($1, $2, $3 // '');
		$kind . '="' . $change->($path eq '' ? $page : resolve($page, $path), $anchor) . '"' }ge;
	return $html;
}

for my $page (@pages)
{
	my $html = relink($page, html_of($text{$page}), sub {
		my ($path, $anchor) = @_;
		return $path eq $page ? $anchor : relative($page, page_name($path)) . $anchor });
	spew("$site/" . page_name($page), frame($page, title_of($text{$page}), $html));
}
for my $file (grep { -f "$root/$_" } sort keys %files)
{
	make_path(dirname("$site/$file"));
	copy("$root/$file", "$site/$file") or die "$file: $!\n";
}

# ---- every link leads somewhere ------------------------------------------------------------------------

my (%anchors, @broken);
my $links = 0;
$anchors{$_} = { map { $_ => 1 } slurp("$site/" . page_name($_)) =~ /\bid="([^"]+)"/g } for @pages;
my %page_of = map { page_name($_) => $_ } @pages;
for my $page (@pages)
{
	for my $link (slurp("$site/" . page_name($page)) =~ /(?:href|src)="([^"]+)"/g)
	{
		next if $link =~ /^[a-z]+:/;
		++$links;
		my ($path, $anchor) = $link =~ /^([^#]*)#?(.*)$/;
		my $target = $path eq '' ? page_name($page) : resolve(page_name($page), $path);
		push @broken, page_name($page) . ": $link"
			if !-e "$site/$target" || ($anchor ne '' && $page_of{$target} && !$anchors{ $page_of{$target} }{$anchor});
	}
}
die join("\n", 'links that lead nowhere:', map { "  $_" } @broken) . "\n" if @broken;
printf "%d pages, %d links: %s\n", scalar @pages, $links, "$site/index.html";

# ---- the PDF ---------------------------------------------------------------------------------------------

if ($wants_pdf)
{
	my %prefix = map { $_ => page_name($_) =~ s{[/.]}{-}gr . '-' } @pages;
	my $body = '';
	for my $page (@pages)
	{
		my $html = fit_to_paper(html_of($text{$page}, "--id-prefix=$prefix{$page}"));
		$html = relink($page, $html, sub {
			my ($path, $anchor) = @_;
			return $path unless $text{$path};
			$anchor =~ s/^#(?:\Q$prefix{$path}\E)?//;
			return '#' . $prefix{$path} . $anchor });
		$body .= "<section id=\"$prefix{$page}\">\n$html</section>\n";
	}
	spew("$site/all.html", frame('README.md', 'streamfilter', $body));
	# What it cannot make of a link it says, and goes on.
	my $said = `weasyprint -u '$root/' '$site/all.html' '$site/streamfilter.pdf' 2>&1`;
	die "weasyprint failed\n$said" if $?;
	my @lost = grep { /^ERROR:/ } split /\n/, $said;
	die join("\n", 'links of the PDF that lead nowhere:', map { "  $_" } @lost) . "\n" if @lost;
	unlink "$site/all.html";
	printf "%s: %d kB\n", "$site/streamfilter.pdf", (-s "$site/streamfilter.pdf") / 1024;
}
