# docs/build_site.pl: every document is a page that can be reached from the first one, every link and every anchor of every
# page leads somewhere, and so does every one within the PDF.
use strict;
use warnings;
use File::Basename;
use File::Spec;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = dirname(dirname(dirname(File::Spec->rel2abs(__FILE__))));
sub has { my ($program) = @_; return grep { -x "$_/$program" } split /:/, $ENV{PATH}; }
plan skip_all => 'pandoc is not installed' unless has('pandoc');

my $site = PostgreSQL::Test::Utils::tempdir;
my $wants_pdf = has('weasyprint');
my $out = `$^X $root/docs/build_site.pl @{[ $wants_pdf ? '--pdf' : '' ]} $site 2>&1`;
is($?, 0, 'it is built') or diag($out);

# ---- pages, by a reader of their own: what the script believes of its links is not asked -----------------------
sub slurp { my ($file) = @_; return -f $file ? slurp_file($file) : ''; }

my (%ids, %seen, @broken);
sub ids_of
{
	my ($page) = @_;
	$ids{$page} //= { map { $_ => 1 } slurp("$site/$page") =~ /\bid="([^"]+)"/g };
	return $ids{$page};
}

sub follow
{
	my ($page, $link) = @_;
	my ($path, $anchor) = $link =~ /^([^#]*)#?(.*)$/;
	my @parts = split m{/}, dirname($page);
	@parts = () if dirname($page) eq '.';
	for my $part (split m{/}, $path)
	{
		if ($part eq '..') { pop @parts }
		elsif ($part ne '.') { push @parts, $part }
	}
	my $target = $path eq '' ? $page : join '/', @parts;
	return if -f "$site/$target" && ($anchor eq '' || $target !~ /\.html$/ || ids_of($target)->{$anchor}) && (push @{ $seen{$page} }, $target);
	push @broken, "$page: $link";
	return;
}

my @to_read = ('index.html');
my %read;
while (defined(my $page = shift @to_read))
{
	next if $read{$page}++;
	follow($page, $_) for grep { !/^[a-z]+:/ } slurp("$site/$page") =~ /(?:href|src)="([^"]+)"/g;
	push @to_read, grep { /\.html$/ } @{ $seen{$page} };
}
is(join("\n", @broken), '', 'every link and anchor leads somewhere');

my @documents = map { substr $_, length("$root/") } glob "$root/*.md $root/docs/*.md $root/docs/*/*.md";
my @unread = grep { !$read{ s/README\.md$/index.html/r =~ s/\.md$/.html/r } } @documents;
is("@unread", '', 'every document can be reached from the first page');
cmp_ok(scalar @documents, '>', 30, 'there are documents');

my @pictures = map { substr $_, length("$root/") } glob "$root/docs/pictures/*.svg";
is(join(' ', grep { !-f "$site/$_" } @pictures), '', 'every picture is there');
is(join(' ', grep { slurp("$site/$_") =~ /<p>\|.*\|<\/p>/ } sort keys %read), '', 'no table was left as text');

SKIP:
{
	skip 'weasyprint is not installed', 3 unless $wants_pdf;
	my $pdf = slurp("$site/streamfilter.pdf");
	like($pdf, qr/^%PDF-/, 'the PDF is one');
	cmp_ok(scalar(() = $pdf =~ m{/Type\s*/Page\b}g), '>', 100, '... of all documents');
	skip 'pdftotext (poppler-utils) is not installed', 1 unless has('pdftotext');
	my (%cut, $width);
	my $page = 0;
	for (split /\n/, `pdftotext -bbox '$site/streamfilter.pdf' -`)
	{
		($width, $page) = ($1, $page + 1) if /<page width="([\d.]+)"/;
		# Pictures have words that end at their frame.
		$cut{"page $page: $2"} = 1 if /xMax="([\d.]+)".*>(.*)<\/word>/ && $1 > $width - 36;
	}
	is(join("\n", sort keys %cut), '', 'no word leaves its page');
}
done_testing();
