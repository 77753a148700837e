#!/usr/bin/env perl
# Reads what bench/lib/trace_row.py has written: prints the functions of each part of a row's way, those that are inlined, too, in
# the order in which the row comes to them. A header and its source are one file. Functions of one statement, marked ., do not
# count: expressions with a name. A switch whose cases only return is one statement.
#
#   row_functions.pl ROOT LIBRARY TRACE [yes]   yes: fails if a part with limits is above them
use strict;
use warnings;

my ($root, $library, $trace, $check) = @ARGV;
my %titles = (
	row    => "A trigger's row: from the trigger to the change log of its transaction",
	commit => 'Its commit: from the change log to the log of the filter',
	line   => 'A line of COPY: from the file to its place in a batch',
	batch  => 'The batch: judged and written');
my %limited = (row => 1, line => 1);
my ($most_functions, $most_files) = (22, 10);    # of src/pg

my (@parts, %stack);
open my $file, '<', $trace or die "$trace: $!\n";
while (<$file>)
{
	chomp;
	if (/^part (\w+)/) { push @parts, [$1]; next; }
	push @{ $parts[-1] }, $_;
	$stack{$_} = [];
}
close $file;

# --- What the places are ------------------------------------------------------------------------------------------------------

# A name without its scope, the types of its template, and how it was cloned.
sub short
{
	my ($name) = @_;
	$name =~ s/ \[clone.*//;
	$name =~ s/\(anonymous namespace\):://g;
	1 while $name =~ s/\([^()]*\)(?: const)?//g;
	1 while $name =~ s/<[^<>]*>//g;
	$name =~ s/^.*\s//;
	$name =~ s/^streamfilter::(?:pg::)?//;
	return $name;
}

my %text;

# How many statements the function around a line has. A function begins in the first column, those of a class in the third.
# None if it is another one, of the server, that the compiler has put there.
sub statements
{
	my ($path, $line, $name) = @_;
	my $lines = $text{$path} //= do { local (@ARGV, $/) = ($path); [ split /^/, <> ] };
	my $begin = $line - 1;
	--$begin while $begin > 0 && $lines->[$begin] !~ /^(?:[A-Za-z\[]|const)/;
	if ($lines->[$begin] =~ /^(?:class|struct|union)\b|^template.*\b(?:class|struct)\b/)
	{
		$begin = $line - 1;
		--$begin while $lines->[$begin] !~ /^  [A-Za-z~]/;
	}
	my ($depth, $count, $cases, $head) = (0, 0, 0, join '', grep { defined } @$lines[ $begin .. $begin + 5 ]);
	my ($own) = $name =~ /(\w+)$/;
	return if $head =~ s/\{.*//sr !~ /\b$own\(/;
	for (@$lines[ $begin .. $#$lines ])
	{
		next if /^\s*(?:case .*|default): return .*;$/ && $cases++ > 0;
		for my $sign (s{//.*|"(?:\\.|[^"\\])*"}{}gr =~ /[{};]/g)
		{
			$depth += $sign eq '{' ? 1 : $sign eq '}' ? -1 : 0;
			$count += $depth > 0 && $sign eq ';';
			return $count if $depth == 0 && $sign eq '}';
		}
	}
	return $count;
}

my @places = sort keys %stack;
open my $list, '>', "$trace.places" or die "$!\n";
print $list map { "0x$_\n" } @places;
close $list;
my ($at, $name);
open my $pipe, '-|', "addr2line -a -i -f -C -e '$library' < '$trace.places'" or die "addr2line: $!\n";
while (<$pipe>)
{
	chomp;
	if (/^0x0*([0-9a-f]+)$/) { ($at, $name) = ($1 eq '' ? '0' : $1); next; }
	if (!defined $name) { $name = $_; next; }
	# The innermost comes first. Lambdas belong to the function that has them.
	unshift @{ $stack{$at} }, [ short($name), $1, $2 ] if m{(?:^|/)(src/[^:]*):(\d+)} && $name !~ /lambda|_FUN|operator\(\)/;
	undef $name;
}
close $pipe;

# --- The parts ------------------------------------------------------------------------------------------------------------------

sub report
{
	my ($part, @way) = @_;
	my (@order, %seen, %files);
	for my $place (@way)
	{
		for my $one (@{ $stack{$place} })
		{
			my ($function, $path, $line) = @$one;
			next if $seen{"$path $function"}++;
			my $count = statements("$root/$path", $line, $function);
			push @order, [ "$function()", $path, $count ] if defined $count;
		}
	}
	print "\n$titles{$part}\n";
	my %long = (pg => 0, core => 0);
	for (@order)
	{
		my ($function, $path, $count) = @$_;
		printf "%s %-44s %s\n", $count > 1 ? ' ' : '.', $function, $path;
		next if $count <= 1;
		my ($side) = $path =~ m{^src/(\w+)};
		++$long{$side};
		$files{$side}{ $path =~ s/\.[ch]pp$//r } = 1;
	}
	my %files_of = map { $_ => scalar keys %{ $files{$_} } } qw(pg core);
	printf "%d functions in %d files of src/pg, %d in %d of src/core\n", map { $long{$_}, $files_of{$_} } qw(pg core);
	return 0 unless $limited{$part} && ($long{pg} > $most_functions || $files_of{pg} > $most_files);
	print "more than $most_functions in $most_files: make fewer steps of it, each one that a user can see\n";
	return 1;
}

my $too_long = 0;
for my $part (qw(row commit line batch))
{
	$too_long += report(@$_) for grep { $_->[0] eq $part } @parts;
}
exit($check && $too_long ? 1 : 0);
