#!/usr/bin/env perl
# Runs a command and becomes the parent of all that it leaves behind, servers too: their CPU time is then counted here, and
# they are found. `reaper.pl COMMAND…`; the command sees our process id in STREAMFILTER_REAPER. Sourced scripts use it
# through test/lib.sh.
use strict;
use warnings;
use Config;

my $set_child_subreaper = 36;
my %prctl = (x86_64 => 157, aarch64 => 167, riscv64 => 167, i686 => 172, i386 => 172, arm => 172, powerpc64le => 171,
	s390x => 172);
my ($architecture) = $Config{archname} =~ /^([^-]+)/;
# Elsewhere the time of servers that have ended is not counted, and nothing else is lost.
syscall $prctl{$architecture}, $set_child_subreaper, 1, 0, 0, 0 if exists $prctl{$architecture};

$ENV{STREAMFILTER_REAPER} = $$;
my $child = fork // die "cannot fork: $!\n";
if ($child == 0) {
	exec { $ARGV[0] } @ARGV or die "cannot run $ARGV[0]: $!\n";
}

# The terminal sends an interrupt to the command as well; a request to end is handed on.
$SIG{INT} = 'IGNORE';
$SIG{TERM} = $SIG{HUP} = sub { kill TERM => $child };
while (1) {
	my $ended = wait;
	last if $ended == $child || $ended < 0 && !$!{EINTR};
}
exit($? & 127 ? 128 + ($? & 127) : $? >> 8);
