# docs/build_site.pl: every document is a page that can be reached from the first one, every link and every anchor of every
# page leads somewhere, and so does every one within the PDF.
use Sf;
use File::Basename;
use Needs;

sub has { my ($program) = @_; return grep { -x "$_/$program" } split /:/, $ENV{PATH}; }
needs(scalar(has('pandoc')), 'pandoc is not installed', 12);

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

# ---- in a browser, as wide as a telephone: every page in a frame of 390 pixels ------------------------------------
SKIP:
{
	skip 'chromium is not installed', 3 unless has('chromium');
	my $list = join ',', map { "'$_'" } sort keys %read;
	open my $driver, '>', "$site/driver.html" or die;
	print $driver <<"HTML";
<!DOCTYPE html><body><pre id="result"></pre><script>
const say = text => { document.getElementById('result').textContent += text + '\\n' };
(async () => {
  for (const page of [$list]) await new Promise(done => {
    const frame = document.createElement('iframe');
    frame.style.cssText = 'width: 390px; height: 800px; border: 0';
    frame.src = page;
    frame.onload = () => {
      const inside = frame.contentDocument, box = inside.getElementById('search');
      say('page ' + page + ' width ' + inside.documentElement.scrollWidth);
      if (page === 'index.html') {
        box.value = 'streamfilter_advise';
        box.dispatchEvent(new frame.contentWindow.Event('input'));
        say('found ' + inside.querySelectorAll('#found li').length);
      }
      frame.remove();
      done();
    };
    document.body.append(frame);
  });
  say('all seen');
})();
</script>
HTML
	close $driver;
	my $seen = `HOME=$site timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --allow-file-access-from-files --virtual-time-budget=60000 --dump-dom file://$site/driver.html 2>/dev/null`;
	skip 'chromium does not run here', 3 unless $seen =~ /all seen/;
	my %width = $seen =~ /page (\S+) width (\d+)/g;
	is(scalar keys %width, scalar keys %read, 'a browser opens every page');
	is(join(' ', map { "$_: $width{$_}" } grep { $width{$_} > 390 } sort keys %width), '', '... none is wider than a telephone');
	cmp_ok($seen =~ /found (\d+)/ ? $1 : 0, '>', 3, '... and the search finds what pages say');
}

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
