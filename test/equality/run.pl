#!/usr/bin/perl
# Compares cases on a running server; PGHOST and the like say which. With --show: prints the script of one.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Case;
use Runner;

my $show = @ARGV && $ARGV[0] eq '--show' ? shift : '';
my ($first, $count) = (shift // 1, shift // 1);
my $directory = $ENV{TMPDIR} // '/tmp';
if ($show) {
	print Case::script(Case::draw($first, $directory), 'on');
	exit;
}
my ($done, $different) = Runner::run(first => $first, count => $count, directory => $directory, report => sub { print "$_[0]\n" });
print "$done cases from seed $first: $different differ\n";
exit($different ? 1 : 0);
