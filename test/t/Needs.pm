# Files that need what a machine may lack: without it each of their checks is skipped, which says how many they are.
#
#   use Sf;
#   use Needs;
#   needs(-x '/usr/bin/openssl', 'openssl is not there', 8);    # the file has 8 checks, which is held against those that it ran
package Needs;

use strict;
use warnings;
use Exporter qw(import);
use Test::More;

our @EXPORT = qw(needs);

my $main = $$;
my $wanted;

# May be called more than once, always with the same number.
sub needs
{
	my ($is_there, $why, $checks) = @_;
	$wanted = $checks;
	return if $is_there;
	for (1 .. $checks - Test::More->builder->current_test) { SKIP: { skip $why, 1 } }
	done_testing();
	exit 0;
}

END
{
	my $status = $?;
	my $ran = Test::More->builder->current_test;
	fail("it has $ran checks, not $wanted, as it says to needs()")
	  if $$ == $main && $status == 0 && defined $wanted && $ran != $wanted && Test::More->builder->is_passing;
	$? = $status;
}

1;
