#!/usr/bin/env perl
# Makes the documents a static site, and one PDF of them, and checks every link of the result.
#
#   docs/build_site.pl [--pdf] [OUTDIR]      OUTDIR: build/site
#
# Looks and behaviour of the pages are docs/site/style.css and site.js. Needs pandoc, and for the PDF weasyprint: apt install pandoc
# weasyprint. Pages are README.md, docs/ and what they link to; links between .md files become links between pages.
use strict;
use utf8;
use warnings;
use File::Basename;
use File::Copy;
use File::Path qw(make_path);
use File::Spec;
use IPC::Open2;
use lib dirname(__FILE__);
use Files;

my $root = dirname(dirname(File::Spec->rel2abs(__FILE__)));
my $wants_pdf = @ARGV && $ARGV[0] eq '--pdf' ? shift @ARGV : 0;
die "usage: docs/build_site.pl [--pdf] [OUTDIR]\n" if @ARGV > 1 || grep { /^-/ } @ARGV;
my $site = File::Spec->rel2abs($ARGV[0] // "$root/build/site");

# In the order of the PDF; what else is linked to comes behind.
my @first = qw(README.md docs/README.md docs/tutorial.md docs/cookbook.md docs/operations.md docs/sizing.md docs/tools.md
  docs/reference/filters.md docs/reference/functions.md docs/reference/values.md
  docs/reference/settings.md docs/kinds.md docs/windows.md docs/advise.md docs/transactions.md
  docs/when-rows-can-be-lost.md docs/modes.md docs/persistence.md docs/resizing.md docs/watching.md docs/troubleshooting.md);

for my $program ('pandoc', $wants_pdf ? 'weasyprint' : ())
{
	next if grep { -x "$_/$program" } split /:/, $ENV{PATH};
	die "$program is not installed\n  On Debian: apt install $program\n";
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

# The sidebar has every page, and its order is that of "previous" and "next". A page that no group names is in the last one.
my @sidebar = (
	[ 'Begin' => qw(README.md docs/install.md docs/tutorial.md docs/cookbook.md docs/sizing.md docs/operations.md) ],
	[ 'Use' => qw(docs/modes.md docs/resizing.md docs/watching.md docs/when-rows-can-be-lost.md docs/transactions.md docs/persistence.md
		docs/engines.md docs/tools.md docs/security.md docs/troubleshooting.md) ],
	[ 'Choose' => qw(docs/kinds.md docs/windows.md docs/advise.md docs/internals/compare.md docs/benchmarks.md) ],
	[ 'Several servers' => qw(docs/servers.md docs/slicing.md docs/trees.md) ],
	[ 'Reference' => qw(docs/reference/filters.md docs/reference/functions.md docs/reference/values.md
		docs/reference/settings.md docs/c-library.md docs/glossary.md) ],
	[ 'Inside' => grep { m{^docs/internals/} && $_ ne 'docs/internals/compare.md' } @pages ],
	[ 'Project' => qw(docs/README.md CHANGELOG.md docs/CONTRIBUTING.md) ]);
{
	my %is_named = map { $_ => 1 } map { @$_[1 .. $#$_] } @sidebar;
	push @{ $sidebar[-1] }, grep { !$is_named{$_} } @pages;
	@$_ = ($_->[0], grep { $text{$_} } @$_[1 .. $#$_]) for @sidebar;
}
my @order = map { @$_[1 .. $#$_] } @sidebar;

# What the sidebar calls a page: its title up to a colon.
sub short_title { my ($page) = @_; return $page eq 'README.md' ? 'streamfilter' : $page eq 'docs/README.md' ? 'All pages' : $page eq 'CHANGELOG.md' ? 'Changes' : title_of($text{$page}) =~ s/[:,(].*//sr; }

sub link_to { my ($page, $target, $more) = @_; return '<a href="' . relative($page, page_name($target)) . "\"$more>" . short_title($target) . '</a>'; }

sub sidebar
{
	my ($page) = @_;
	my $html = '<input id="search" type="search" placeholder="Search" aria-label="Search"><p id="count" role="status"></p><ul id="found"></ul>';
	for my $group (@sidebar)
	{
		my ($name, @of_group) = @$group;
		$html .= "<h2>$name</h2><ul>" . join('', map { '<li>' . link_to($page, $_, $_ eq $page ? ' aria-current="page"' : '') . '</li>' } @of_group) . '</ul>'
			if @of_group;
	}
	return $html;
}

# The headings of a page, for its side; none where there are fewer than two.
sub contents_of
{
	my ($html) = @_;
	my @items;
	push @items, "<li class=\"$1\"><a href=\"#$2\">" . ($3 =~ s/<[^>]*>//gr) . '</a></li>' while $html =~ /<(h[23]) id="([^"]+)">(.*?)<\/h[23]>/gs;
	return @items < 2 ? '' : '<aside aria-label="On this page"><details id="contents"><summary>On this page</summary><div class="inside"><ul>'
		. join('', @items) . '</ul></div></details></aside>';
}

sub neighbours
{
	my ($page) = @_;
	my ($at) = grep { $order[$_] eq $page } 0 .. $#order;
	return '' unless defined $at;
	return '<div class="neighbours"><span>' . ($at > 0 ? '← ' . link_to($page, $order[ $at - 1 ], ' rel="prev"') : '') . '</span><span>'
		. ($at < $#order ? link_to($page, $order[ $at + 1 ], ' rel="next"') . ' →' : '') . '</span></div>';
}

# The first paragraph, as long as search engines show it.
sub description_of
{
	my ($html) = @_;
	my $said = $html =~ /<p>(?!<img)(.*?)<\/p>/s ? text_of($1) =~ s/^ | $//gr : '';
	$said =~ s/^(.{0,155})\s.*/$1 …/s if length $said > 160;
	return $said =~ s/&/&amp;/gr =~ s/"/&quot;/gr =~ s/</&lt;/gr;
}

# What is wider than its box scrolls there, by keys, too; a block of code has a button that copies it.
sub boxed
{
	my ($html) = @_;
	$html =~ s{<div class="sourceCode"[^>]*>(<pre.*?</pre>)</div>}{$1}gs;
	# Lines need no address, and links without text only stop who goes by the Tab key.
	$html =~ s{<a href="#cb[^"]*"[^>]*></a>}{}g;
	$html =~ s{<pre([^>]*)>(.*?)</pre>}{<div class="code"><pre$1 tabindex="0">$2</pre><button type="button">Copy</button></div>}gs;
	my $tables = 0;
	$html =~ s{<table.*?</table>}{ ++$tables; "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table $tables\">$&</div>" }gse;
	return $html;
}

sub frame
{
	my ($page, $title, $body) = @_;
	my $up = relative($page, 'site.js') =~ s/site\.js$//r;
	return "<!DOCTYPE html>\n<html lang=\"en\" data-root=\"$up\"><head><meta charset=\"utf-8\"><title>"
		. ($title eq 'streamfilter' ? '' : "$title · ") . "streamfilter</title>\n"
		. '<meta name="description" content="' . description_of($body) . "\">\n"
		. "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		. "<link rel=\"stylesheet\" href=\"${up}site.css\"><script src=\"${up}site.js\"></script></head>\n"
		. "<body><a class=\"skip\" href=\"#text\">To the text</a>\n"
		. "<header><b><a href=\"${up}index.html\">streamfilter</a></b><button type=\"button\" id=\"theme\">Light or dark</button></header>\n"
		. '<nav aria-label="Pages"><details id="menu"><summary>Menu</summary><div class="inside">' . sidebar($page) . "</div></details></nav>\n"
		. contents_of($body) . "\n<main id=\"text\">" . boxed($body) . neighbours($page) . "</main></body></html>\n";
}

# ---- search: every section of every page, as a script that is loaded when somebody searches ------------------------

my %entity = (lt => '<', gt => '>', quot => '"', amp => '&', nbsp => ' ');

# Words stay whole where a part of them is code or has a colour.
sub text_of
{
	my ($html) = @_;
	return $html =~ s{</?(?:span|a|code|em|strong|sup|sub)\b[^>]*>}{}gr =~ s/<[^>]*>/ /gr
		=~ s/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/defined $1 ? chr $1 : defined $2 ? chr hex $2 : $entity{$3} \/\/ "&$3;"/ger =~ s/\s+/ /gr;
}

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
		push @sections, [ page_name($page) . "#$id", $title eq $name ? $name : "$name: $title", text_of($body // '') =~ s/^ | $//gr ];
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
spew("$site/search-index.js", 'window.sections = [' . join(",
", map { '[' . join(',', map { json_string($_) } @$_) . ']' } @sections) . "];
");
copy("$root/docs/site/style.css", "$site/site.css") && copy("$root/docs/site/site.js", "$site/site.js") or die "docs/site: $!
";
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
	spew("$site/all.html", '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>streamfilter</title><style>'
		. slurp("$root/docs/site/style.css") . "</style></head><body><main>$body</main></body></html>\n");
	# What it cannot make of a link it says, and goes on.
	my $said = `weasyprint -u '$root/' '$site/all.html' '$site/streamfilter.pdf' 2>&1`;
	die "weasyprint failed\n$said" if $?;
	my @lost = grep { /^ERROR:/ } split /\n/, $said;
	die join("\n", 'links of the PDF that lead nowhere:', map { "  $_" } @lost) . "\n" if @lost;
	unlink "$site/all.html";
	printf "%s: %d kB\n", "$site/streamfilter.pdf", (-s "$site/streamfilter.pdf") / 1024;
}
