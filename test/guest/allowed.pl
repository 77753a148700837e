# Reads what diff says of one test, prints what the list does not allow: allowed.pl LIST SUITE/TEST <DIFF
use strict;
use warnings;

my ($list, $test) = @ARGV;
my @patterns;
open my $rules, '<', $list or die "$list: $!\n";
while (my $rule = <$rules>)
{
	next if $rule =~ /^\s*(?:#|$)/;
	my ($of, $pattern) = $rule =~ /^(\S+)\s+(.*\S)\s*$/ or die "$list: $rule";
	push @patterns, qr/$pattern/ if $of eq $test;
}
close $rules;

while (my $line = <STDIN>)
{
	chomp $line;
	next if $line =~ /^(?:[0-9,]+[acd][0-9,]+|---|\\ No newline.*)$/;
	next if grep { $line =~ $_ } @patterns;
	print "$test: $line\n";
}
