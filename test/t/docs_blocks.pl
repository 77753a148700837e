# The examples of the documents do what they say: every ```sql block of README.md and docs/ runs, each document in a
# database of its own, its blocks in their order in one session.
#
# - A fenced block without a language that follows is what psql prints for the last statement of the block.
# - A line "-- INSERT 0 2" after a statement is its command tag; "-- ERROR:  …" its error, "-- WARNING:  …" and "-- NOTICE:  …"
#   what it says besides.
# - <!-- tested by FILE --> ahead of a block: it needs more than one server, or more than psql; that test does the same.
use Sf;
use File::Basename;
use File::Find;

my $node = PostgreSQL::Test::Cluster->new('documents');
$node->init;
$node->append_conf('postgresql.conf', slurp_file("$root/test/streamfilter.conf"));
$node->append_conf('postgresql.conf', "streamfilter.shared_memory = '512MB'");
$node->start;

# The blocks of a document: { line, sql, output, tested_by }.
sub blocks_of
{
	my ($file) = @_;
	my (@blocks, $fence, $tested_by);
	my $last = {};
	my $number = 0;
	for my $line (split /\n/, slurp_file($file))
	{
		++$number;
		if (defined $fence)
		{
			if ($line =~ /^```/) { undef $fence }
			elsif ($fence ne '') { $last->{$fence} .= "$line\n" }
		}
		elsif ($line =~ /^<!-- tested by (\S+) -->/) { $tested_by = $1 }
		elsif ($line =~ /^```sql/)
		{
			push @blocks, $last = { line => $number, sql => '', tested_by => $tested_by };
			($fence, $tested_by) = ('sql', undef);
		}
		elsif ($line =~ /^```$/)
		{
			$fence = exists $last->{sql} && !exists $last->{output} ? 'output' : '';
			$last->{output} = '' if $fence;
		}
		elsif ($line =~ /^```/)
		{
			push @blocks, { line => $number, tested_by => $tested_by } if $tested_by;
			($fence, $last, $tested_by) = ('', {});
		}
		elsif ($line =~ /^#/) { $last = {} }
	}
	return @blocks;
}

# What psql is given for a document, and what it is expected to print behind each mark.
sub script_of
{
	my (@blocks) = @_;
	my $script = "\\set VERBOSITY terse\n";
	my $mark = 0;
	my %expected;
	for my $block (@blocks)
	{
		next if $block->{tested_by};
		# Only what is to be compared is printed: the last statement before a block of output.
		my @lines;
		for my $line (split /\n/, $block->{sql})
		{
			if ($line =~ /^-- ((?:INSERT|COPY|DELETE|UPDATE|TRUNCATE|(?:ERROR|WARNING|NOTICE):).*)$/)
			{
				push @lines, '\echo MARK ' . ++$mark;
				$expected{$mark} = { line => $block->{line}, tag => $1 };
			}
			else { push @lines, $line }
		}
		$script .= "\\echo BLOCK $block->{line}\n" . join("\n", @lines) . "\n";
		next unless exists $block->{output};
		$script .= '\echo MARK ' . ++$mark . "\n";
		$expected{$mark} = { line => $block->{line}, output => $block->{output} };
	}
	return ($script, \%expected);
}

# Without the number of rows, which documents leave out, and without blanks at the ends of lines.
sub lines_of { my ($text) = @_; return grep { $_ ne '' && !/^\(\d+ rows?\)$/ } map { s/\s+$//r } split /\n/, $text; }

my ($documents, $examples) = (0, 0);
for my $file ("$root/README.md", sort glob "$root/docs/*.md $root/docs/*/*.md")
{
	my $name = substr $file, length("$root/");
	my @blocks = blocks_of($file) or next;
	++$documents;
	for my $block (grep { $_->{tested_by} } @blocks)
	{
		ok(-e "$root/$block->{tested_by}", "$name:$block->{line}: $block->{tested_by} is there");
	}
	my ($script, $expected) = script_of(@blocks);
	my $database = "documents_$documents";
	sql("CREATE DATABASE $database");
	my ($out, $err) = ('', '');
	IPC::Run::run(
		[ 'psql', '-X', '--no-psqlrc', '-P', 'pager=off', '-d', $node->connstr($database) ],
		'<', \$script, '>', \$out, '2>', \$err, IPC::Run::timeout(300));
	# A busy machine is told how far a query has come.
	my @errors = grep { !/ (NOTICE|WARNING|DETAIL|HINT|INFO|LOG):/ && !/^NOTICE:  \w+: \d+ rows read in / } split /\n/, $err;
	my @announced = map { ($_->{tag} // '') =~ /^(?:ERROR|WARNING|NOTICE):/ ? $_->{tag} : () } map { $expected->{$_} } sort { $a <=> $b } keys %$expected;
	is(join("\n", map { s/^psql:[^ ]* //r } @errors), join("\n", @announced), "$name: no error but those it speaks of");
	# Cut what was printed at the marks; the last result in front of each is its own.
	my $since = '';
	for my $line (split /\n/, $out)
	{
		if ($line =~ /^BLOCK \d+$/) { $since = '' }
		elsif ($line =~ /^MARK (\d+)$/)
		{
			my $what = $expected->{$1};
			++$examples;
			if ($what->{output})
			{
				my @wanted = lines_of($what->{output});
				my @printed = lines_of($since);
				# Tags and results of the statements before the last one are not shown to the reader.
				splice @printed, 0, @printed - @wanted if @printed > @wanted;
				is(join("\n", @printed), join("\n", @wanted), "$name:$what->{line}: prints what it shows");
			}
			elsif ($what->{tag} !~ /^(?:ERROR|WARNING|NOTICE):/)
			{
				is((split /\n/, $since)[-1], $what->{tag}, "$name:$what->{line}: $what->{tag}");
			}
			$since = '';
		}
		else { $since .= "$line\n" }
	}
}
# Links between documents lead somewhere: to a file, and to a heading in it.
sub anchors_of
{
	my ($file) = @_;
	my %anchors;
	for my $heading (slurp_file($file) =~ /^#+ +(.*)$/mg)
	{
		my $anchor = lc $heading =~ s/`//gr;
		$anchor =~ s/[^\w\- ]//g;
		$anchors{ $anchor =~ tr/ /-/r } = 1;
	}
	return \%anchors;
}

for my $file ("$root/README.md", "$root/CHANGELOG.md", sort glob "$root/docs/*.md $root/docs/*/*.md")
{
	my @broken;
	for my $link (slurp_file($file) =~ /\]\(([^)\s]+)\)/g)
	{
		next if $link =~ /^[a-z]+:/;
		my ($path, $anchor) = $link =~ /^([^#]*)#?(.*)$/;
		my $target = $path eq '' ? $file : dirname($file) . "/$path";
		push @broken, $link if !-e $target || ($anchor ne '' && $target =~ /\.md$/ && !anchors_of($target)->{$anchor});
	}
	is("@broken", '', substr($file, length("$root/")) . ': links lead somewhere');
}

# What documents and comments name is there: folders; files, by the end of their path; in the documents for developers
# also functions, written `name()`. What has a word in capitals (NAME, VERSION) stands for others.
my ($sources, %is_there, @texts) = ('');
find({ no_chdir => 1, wanted => sub {
	my $path = substr $_, length("$root/");
	$is_there{$path} = 1;
	$is_there{$path} = 1 while $path =~ s{^[^/]+/}{};
	push @texts, $_ if /\.(?:md|[ch]pp|c|h)$/;
	$sources .= slurp_file($_) if m{/(?:src|sql)/.*\.(?:[ch]pp|sql)$};
} }, map { "$root/$_" } qw(README.md CHANGELOG.md docs src include sql test bench examples rpm));

for my $file (@texts)
{
	my $text = slurp_file($file) =~ s/^\s*#include.*$//gmr;
	my @named = $text =~ m{(?<![-\w/.*])((?:[\w-]+/)*[\w-]+\.(?:[ch]pp|pl|md|spec))\b}g;
	push @named, $text =~ m{`((?:src|test|docs|bench|sql|include|examples)/[\w/-]+)/?`}g;
	my @missing = grep { !$is_there{$_} && !/[A-Z]{4}/ } @named;
	if ($file =~ m{/docs/(?:internals/architecture|glossary|CONTRIBUTING)\.md$|/src/.*README\.md$})
	{
		push @missing, map { "$_()" } grep { $sources !~ /\b$_\b/ } $text =~ /`([a-z]\w*)\(\)`/g;
		push @missing, grep { $sources !~ /\b$_\b/ } $text =~ /`([A-Z]\w*[a-z]\w*)`/g;
		while ($text =~ /`(\w+)\(\)`\s+\(`(src[\w\/]+\.[ch]pp)`\)/g) { push @missing, "$1() in $2" if slurp_file("$root/$2") !~ /\b$1\b/; }
	}
	is("@missing", '', substr($file, length("$root/")) . ': names what is there') if @missing || $file =~ /\.md$/;
}

# What hints and documents tell to call, there is.
my $declared = join '', map { slurp_file($_) } glob("$root/sql/[0-9]*.sql");
my %unknown = map { $_ => 1 } grep { $declared !~ /\b$_\b/ } map { slurp_file($_) =~ /\b(streamfilter_\w+)\(\)/g } @texts;
is(join(' ', sort keys %unknown), '', 'every function of ours that is named exists');

# The figures of the README's first table are those of the benchmarks', row by row.
sub tables_of
{
	my ($file) = @_;
	my @tables;
	my $in_table;
	for my $line (split /\n/, slurp_file($file))
	{
		push @tables, [] if $line =~ /^\|/ && !$in_table;
		$in_table = $line =~ /^\|/;
		push @{ $tables[-1] }, [ split /\s*\|\s*/, $line =~ s{^\|\s*}{}r ] if $in_table;
	}
	return @tables;
}

my ($first) = tables_of("$root/README.md");
my ($bulk) = grep { $_->[0][0] =~ /^rows; distinct/ } tables_of("$root/docs/benchmarks.md");
my ($count, $distinct) = $first->[0][0] =~ /([\d,]+) rows, ([\d,]+) distinct/;
my ($column) = grep { $bulk->[0][$_] eq "$count; $distinct" } 1 .. $#{ $bulk->[0] };
my %measured = map { $_->[0] => $_->[ $column ] } @{$bulk};
cmp_ok(scalar @{$first}, '>', 4, 'README.md has figures');
for my $row (@{$first}[ 2 .. $#{$first} ])
{
	is($row->[1], sprintf('%.1f', ($measured{ $row->[0] } // '-1') =~ /([\d.-]+)/), "README.md: $row->[0] as in docs/benchmarks.md");
}

cmp_ok($documents, '>', 5, 'documents with examples');
cmp_ok($examples, '>', 5, 'results compared');
# --- Messages ------------------------------------------------------------------------------------------

is(`perl $root/docs/list_messages.pl --check $root/docs/troubleshooting.md $root/test/messages.txt`, '',
	'docs/troubleshooting.md and test/messages.txt have every message, and no other');

done_testing();
