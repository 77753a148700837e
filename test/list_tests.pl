#!/usr/bin/env perl
# Makes test/t/README.md of the heads of the scripts and modules there: what each is about, and in which flavours it runs.
#
#   perl test/list_tests.pl            makes it anew
#   perl test/list_tests.pl --check    fails if it is not what would be made (make lint-scripts)
use strict;
use warnings;
use File::Basename;
use File::Spec;
use lib dirname(dirname(File::Spec->rel2abs(__FILE__))) . '/docs';
use Files;

chdir dirname(dirname(File::Spec->rel2abs(__FILE__))) or die "$!\n";

# The comment that a text begins with, up to the first line of it that is indented or empty, as one line.
sub comment_of
{
	my ($text) = @_;
	my @lines;
	for (split /\n/, $text)
	{
		next if /^# flavours:/;
		last unless /^# (\S.*)/;
		push @lines, $1;
	}
	return join ' ', @lines;
}

# The head, and the heads of the parts, which begin with a line "# ==== …".
sub about { my ($text) = @_; return join ' ', map { comment_of($_) } split /^# ==== .*\n/m, $text; }

my %of_subject;
for my $file (sort glob 'test/t/*.pl')
{
	my $name = basename($file, '.pl');
	my ($subject) = $name =~ /^([a-z]+)/ or die "$file: a name begins with its subject\n";
	my $text = slurp($file);
	my $about = about($text);
	die "$file: the head says nothing\n" if $about eq '';
	my ($flavours) = $text =~ /^# flavours: (.*)/m;
	push @{ $of_subject{$subject} }, "- `$name`" . (defined $flavours ? " ($flavours)" : '') . ": $about\n";
}

my $readme = <<'END';
<!-- Made by test/list_tests.pl from the heads of the files. -->
# Tests with servers of their own

Names are SUBJECT_what. In parentheses are the flavours in whose suites a script runs (`test/all.sh`); without any, in suite `tap`.
`make check-tap PROVE_TESTS=test/t/trees.pl` runs one.
END
$readme .= "\n## $_\n\n" . join('', @{ $of_subject{$_} }) for sort keys %of_subject;
$readme .= "\n## Modules\n\n" . join '', map { '- `' . basename($_) . '`: ' . (comment_of(slurp($_)) =~ s/ A test file (?:that \w+ such \w+ )?begins with$//r) . "\n" } sort glob 'test/t/*.pm';

make_or_check('test/t/README.md', $readme, 'perl test/list_tests.pl', 'what the heads of the files say');
