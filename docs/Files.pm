package Files;

# Whole files read and written, for the programs in docs and test that make a file from others.
use strict;
use warnings;
use Exporter 'import';
use File::Basename;
use File::Path qw(make_path);

our @EXPORT = qw(slurp spew make_or_check);

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

# Writes the file that the program makes of a source; with --check it looks whether the file is as it would be made.
sub make_or_check
{
	my ($file, $text, $program, $source) = @_;
	return spew($file, $text) if ($ARGV[0] // '') ne '--check';
	exit 0 if -e $file && slurp($file) eq $text;
	die "$file is not what $source says: $program makes it anew\n";
}

1;
