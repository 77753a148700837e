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
  docs/reference/filters.md docs/reference/functions.md docs/reference/values.md
  docs/reference/settings.md docs/kinds.md docs/advise.md docs/transactions.md
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
body { margin: 0; font: 16px/1.5 sans-serif; color: #222 }
main { max-width: 56em; padding: 1em 2em; min-width: 0; box-sizing: border-box }
@media (min-width: 60em) { body { display: grid; grid-template-columns: 15em minmax(0, 1fr) } nav { height: 100vh; overflow-y: auto; position: sticky; top: 0 } }
@media (max-width: 30em) { main { padding: .5em .8em } }
nav { background: #f6f6f3; padding: 1em; box-sizing: border-box; font-size: 90% }
nav ul { list-style: none; margin: 0 0 .7em; padding: 0 } nav b { display: block; margin-top: .4em } nav .here { font-weight: bold }
nav input { width: 100%; box-sizing: border-box; font: inherit; padding: .2em .4em }
#found small { color: #555; display: block; overflow-wrap: anywhere }
pre { background: #f6f6f3; padding: .7em; overflow-x: auto; font-size: 85%; line-height: 1.35 }
code { background: #f6f6f3; overflow-wrap: anywhere } pre code { background: none; overflow-wrap: normal }
table { border-collapse: collapse; font-size: 90%; display: block; overflow-x: auto }
td, th { border: 1px solid #ddd; padding: .25em .6em; text-align: left; vertical-align: top }
td { overflow-wrap: break-word } td code { overflow-wrap: normal; white-space: nowrap }
a { color: #335c85; overflow-wrap: anywhere } img { max-width: 100%; height: auto }
@page { size: A4; margin: 18mm } @media print { body { display: block; font-size: 10px } main { padding: 0; max-width: none } section { break-before: page } nav { display: none } table { display: table; width: 100%; table-layout: fixed } td { overflow-wrap: anywhere } td code { white-space: normal; overflow-wrap: anywhere } pre { white-space: pre-wrap; font-size: 8px } }
CSS

# The sidebar: what a user reads, in that order; every other page is in the index of pages.
my @sidebar = (
	[ 'Begin' => qw(README.md docs/install.md docs/tutorial.md docs/cookbook.md docs/sizing.md) ],
	[ 'Use' => qw(docs/modes.md docs/resizing.md docs/watching.md docs/when-rows-can-be-lost.md docs/transactions.md docs/persistence.md
		docs/engines.md docs/tools.md docs/security.md docs/troubleshooting.md) ],
	[ 'Choose' => qw(docs/kinds.md docs/advise.md docs/internals/compare.md docs/benchmarks.md) ],
	[ 'Reference' => qw(docs/reference/filters.md docs/reference/functions.md docs/reference/values.md
		docs/reference/settings.md docs/glossary.md) ],
	[ 'More' => qw(docs/README.md CHANGELOG.md docs/CONTRIBUTING.md) ]);

# What the sidebar calls a page: its title up to a colon.
sub short_title { my ($page) = @_; return $page eq 'README.md' ? 'streamfilter' : $page eq 'docs/README.md' ? 'All pages' : $page eq 'CHANGELOG.md' ? 'Changes' : title_of($text{$page}) =~ s/[:,(].*//sr; }

sub sidebar
{
	my ($page) = @_;
	my $html = '<input id="search" type="search" placeholder="Search" aria-label="Search"><ul id="found"></ul>';
	for my $group (@sidebar)
	{
		my ($name, @of_group) = @$group;
		$html .= "<b>$name</b><ul>" . join('', map {
			'<li' . ($_ eq $page ? ' class="here"' : '') . '><a href="' . relative($page, page_name($_)) . '">' . short_title($_) . '</a></li>' }
			grep { $text{$_} } @of_group) . '</ul>';
	}
	return $html;
}

sub frame
{
	my ($page, $title, $body) = @_;
	my $up = relative($page, 'search.js');
	return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>$title</title>"
		. "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>\n$style</style></head>\n"
		. "<body data-root=\"" . ($up =~ s/search\.js$//r) . "\"><nav>" . sidebar($page) . "</nav>\n<main>$body</main>\n"
		. "<script src=\"$up\" defer></script></body></html>\n";
}

# ---- search: every section of every page, and a script that looks through them ------------------------------

my $search_script = <<'JS';
const root = document.body.dataset.root, box = document.getElementById('search'), list = document.getElementById('found');
const plain = sections.map(s => (s[1] + ' ' + s[2]).toLowerCase());
box.addEventListener('input', () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(w => w.length > 1);
  const hits = words.length === 0 ? [] : sections.map((s, i) => [i, words.every(w => plain[i].includes(w)) ?
    1 + words.filter(w => s[1].toLowerCase().includes(w)).length * 10 : 0]).filter(h => h[1] > 0).sort((a, b) => b[1] - a[1]).slice(0, 20);
  list.replaceChildren(...hits.map(([i]) => {
    const item = document.createElement('li'), link = document.createElement('a'), text = document.createElement('small');
    link.href = root + sections[i][0];
    link.textContent = sections[i][1];
    const at = Math.max(0, sections[i][2].toLowerCase().indexOf(words[0]) - 40);
    text.textContent = sections[i][2].slice(at, at + 110);
    item.append(link, text);
    return item;
  }));
});
JS

sub text_of { my ($html) = @_; return $html =~ s/<[^>]*>/ /gr =~ s/&lt;/</gr =~ s/&gt;/>/gr =~ s/&quot;/"/gr =~ s/&amp;/&/gr =~ s/\s+/ /gr; }

sub json_string { my ($s) = @_; return '"' . ($s =~ s/([\\"])/\\$1/gr =~ s/[\x00-\x1f]/ /gr =~ s{</}{<\\/}gr) . '"'; }

# [address, title, text] of each part of a page between two headings.
sub sections_of
{
	my ($page, $html) = @_;
	my $name = short_title($page);
	my @sections;
	my @parts = split /<h[1-4] id="([^"]+)">(.*?)<\/h[1-4]>/s, $html;
	shift @parts;
	while (my ($id, $heading, $body) = splice @parts, 0, 3)
	{
		my $title = text_of($heading) =~ s/^ | $//gr;
		push @sections, [ page_name($page) . "#$id", $title eq $name ? $name : "$name: $title", text_of($body // '') ];
	}
	return @sections;
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

my @sections;
for my $page (@pages)
{
	my $html = relink($page, html_of($text{$page}), sub {
		my ($path, $anchor) = @_;
		return $path eq $page ? $anchor : relative($page, page_name($path)) . $anchor });
	spew("$site/" . page_name($page), frame($page, title_of($text{$page}), $html));
	push @sections, sections_of($page, $html);
}
spew("$site/search.js", 'const sections = [' . join(",\n", map { '[' . join(',', map { json_string($_) } @$_) . ']' } @sections) . "];\n$search_script");
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
