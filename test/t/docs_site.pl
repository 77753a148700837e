# docs/build_site.pl: every document is a page that can be reached from the first one, every link and every anchor of every
# page leads somewhere, and so does every one within the PDF.
use Sf;
use File::Basename;
use File::Spec;
use Needs;

sub has { my ($program) = @_; return grep { -x "$_/$program" } split /:/, $ENV{PATH}; }
needs(scalar(has('pandoc')), 'pandoc is not installed', 19);

my $site = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
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

# ---- in a browser: every page in a frame as wide as a telephone and one as wide as a desk, light and dark ----------
# Findings of axe count where axe-core is: `npm install axe-core`, and AXE_CORE says where its axe.min.js lies.
SKIP:
{
	skip 'chromium is not installed', 9 unless has('chromium');
	my $axe = $ENV{AXE_CORE} // '';
	my $axe_source = $axe ne '' ? slurp($axe) : '';
	my $list = join ',', map { "'$_'" } sort keys %read;
	open my $driver, '>', "$site/driver.html" or die;
	print $driver <<"HTML";
<!DOCTYPE html><body><pre id="result"></pre><script>
const say = text => { document.getElementById('result').textContent += text + '\\n' };
const audited = ['index.html', 'docs/reference/functions.html', 'docs/tutorial.html'], hasAxe = @{[ $axe_source ne '' ? 'true' : 'false' ]};
const looks = async (frame, page, width, theme) => {
  await new Promise(d => setTimeout(d, 100));
  const inside = frame.contentDocument, at = page + '\@' + width, style = e => frame.contentWindow.getComputedStyle(e);
  say('page ' + at + ' width ' + inside.documentElement.scrollWidth);
  if (width < 400 && inside.querySelector('main').getBoundingClientRect().top > 200) say('late ' + at);
  // Only there: a frame out of sight is not told that it has become wider.
  if (width < 400 && inside.getElementById('menu').open) say('menu ' + at);
  for (const box of inside.querySelectorAll('pre, .table'))
    if (box.scrollWidth > box.clientWidth + 1 && (style(box).overflowX !== 'auto' || box.tabIndex !== 0 || box.matches('.sourceCode'))) say('cut ' + at + ' ' + box.textContent.slice(0, 30).replace(/\\s+/g, '_'));
  if (page === 'docs/reference/functions.html' && width > 1000) say('coloured ' + new Set([...inside.querySelectorAll('.sourceCode span')].map(s => style(s).color)).size);
  if (page === 'index.html') {
    say('loaded ' + inside.querySelectorAll('script[src*=search-index]').length);
    const box = inside.getElementById('search'), search = async text => {
      box.value = text;
      box.dispatchEvent(new frame.contentWindow.Event('input'));
      for (let i = 0; i < 100 && inside.getElementById('count').textContent === ''; ++i) await new Promise(d => setTimeout(d, 50));
      await new Promise(d => setTimeout(d, 50));
      return inside.querySelectorAll('#found li').length;
    };
    say('found ' + await search('streamfilter_advise'));
    say('parts ' + await search('reamfilter '));
    const before = style(inside.body).backgroundColor;
    inside.getElementById('theme').click();
    say('themes ' + (before === style(inside.body).backgroundColor ? 1 : 2));
  }
  if (hasAxe && audited.includes(page)) for (const theme of ['light', 'dark']) {
    inside.documentElement.dataset.theme = theme;
    if (!frame.contentWindow.axe) { const s = inside.createElement('script'); s.src = frame.contentDocument.documentElement.dataset.root + 'axe.min.js'; const loaded = new Promise(d => s.onload = d); inside.head.append(s); await loaded }
    const result = await frame.contentWindow.axe.run(inside);
    for (const v of result.violations) if (['serious', 'critical'].includes(v.impact)) say('axe ' + at + ' ' + theme + ' ' + v.id + ' ' + v.nodes.length + ' ' + v.nodes[0].target);
    say('audited ' + at + ' ' + theme);
  }
};
(async () => {
  for (const width of [390, 1280]) for (const page of [$list]) await new Promise(done => {
    const frame = document.createElement('iframe');
    frame.style.cssText = 'width: ' + width + 'px; height: 800px; border: 0';
    frame.src = page;
    frame.onload = async () => { try { await looks(frame, page, width) } catch (e) { say('raised ' + page + ' ' + e) } frame.remove(); done() };
    document.body.append(frame);
  });
  say('all seen');
})();
</script>
HTML
	close $driver;
	PostgreSQL::Test::Utils::append_to_file("$site/axe.min.js", $axe_source) if $axe_source ne '';
	my $seen = `HOME=$site timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --allow-file-access-from-files --virtual-time-budget=90000 --dump-dom file://$site/driver.html 2>$site/chromium.log`;
	diag(grep { /Page load|FATAL/ } split /^/, slurp("$site/chromium.log")) unless $seen =~ /^all seen/m;
	skip 'chromium does not run here', 9 unless $seen =~ /^all seen/m;
	my %width = $seen =~ /page (\S+) width (\d+)/g;
	is(scalar keys %width, 2 * keys %read, 'a browser opens every page on a telephone and on a desk');
	is(join(' ', map { "$_: $width{$_}" } grep { $width{$_} > (/(\d+)$/)[0] } sort keys %width), '', '... none is wider than that');
	is(join("\n", $seen =~ /^((?:late|menu|raised) .*)/mg), '', '... text begins on the first screen of a telephone, whose menu is closed');
	is(join("\n", $seen =~ /^(cut .*)/mg), '', '... code and tables wrap, or scroll in their box');
	cmp_ok($seen =~ /coloured (\d+)/ ? $1 : 0, '>', 2, '... SQL has colours');
	is(join(' ', $seen =~ /^loaded (\d+)/mg, $seen =~ /^themes (\d)/mg), '0 0 2 2', '... dark and light differ, and the index waits for a search');
	cmp_ok($seen =~ /found (\d+)/ ? $1 : 0, '>', 3, '... which finds what pages say');
	is($seen =~ /parts (\d+)/ ? $1 : '', 0, '... by whole words');
	skip 'AXE_CORE names no axe.min.js: nothing is said of findings of axe', 1 if $axe_source eq '';
	is(join("\n", $seen =~ /^(axe .*)/mg) . scalar(() = $seen =~ /^audited/mg), '12', '... axe has no serious finding');
}
is(scalar(() = slurp("$site/search-index.js") =~ /&(?:#\d+|[a-z]+);/g), 0, 'the search has no entities');

SKIP:
{
	skip 'weasyprint is not installed', 3 unless $wants_pdf;
	my $pdf = slurp("$site/streamfilter.pdf");
	like($pdf, qr/^%PDF-/, 'the PDF is one');
	cmp_ok(scalar(() = $pdf =~ m{/Type\s*/Page\b}g), '>', 60, '... of all documents');
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
