#!/usr/bin/env perl
# Reads what make would run, and writes a compile_commands.json. Run by `make compile_commands`.
use strict;
use warnings;
use Cwd;

sub quoted { my ($text) = @_; $text =~ s/(["\\])/\\$1/g; return qq("$text") }

my (@entries, %seen);
while (my $command = <STDIN>)
{
	chomp $command;
	my ($file) = $command =~ / -c -o \S+\.o (\S+\.cpp)$/ or next;
	next if $seen{$file}++;
	# The precompiled header is another compiler's.
	$command =~ s/ -include \S+//;
	push @entries, '{"directory": ' . quoted(getcwd()) . ', "file": ' . quoted($file) . ', "command": ' . quoted($command) . '}';
}
die "no command compiles anything\n" unless @entries;
print "[\n", join(",\n", @entries), "\n]\n";
