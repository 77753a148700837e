# Sessions that stop at a named point until a test lets them go: only with a library built by `make FAULTS=1`
# (src/pg/server/fault_points.hpp). A test file begins with
#
#   use Sf;
#   use FaultPoints;
#   my $faults = FaultPoints->new($node);    # skips all tests of the file where the library has no such points
package FaultPoints;
use strict;
use warnings;
use IPC::Run;
use Servers;
use Test::More;
use Time::HiRes qw(sleep);

sub new
{
	my ($class, $node) = @_;
	my ($status) = $node->psql('postgres', q{
		CREATE FUNCTION streamfilter_fault(point text, action text) RETURNS void
		  AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE;
		CREATE FUNCTION streamfilter_fault_reached(point text, seconds float8) RETURNS boolean
		  AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE}, on_error_stop => 1);
	return bless { node => $node }, $class unless $status;
	die "built with FAULTS=1, but without fault points\n" if $ENV{STREAMFILTER_FAULTS};
	$node->stop('immediate');
	plan(skip_all => 'the library is not built with FAULTS=1');
}

# The next session that gets to a point stops there, fails, or is killed; `pass` lets it go. After n times `skip` it is the one
# after n others. One that is killed must be found in the log, see Servers.
sub set
{
	my ($self, $point, $action) = @_;
	expect_crash($self->{node}) if $action eq 'kill';
	$self->{node}->safe_psql('postgres', "SELECT streamfilter_fault('$point', '$action')");
}

# Waits until a session stands at the point.
sub reached
{
	my ($self, $point) = @_;
	my $here = $self->{node}->safe_psql('postgres', "SELECT streamfilter_fault_reached('$point', 20)");
	ok($here eq 't', "a session stands at $point");
}

my $started = 0;

# Starts statements in a session of their own; `finish` waits for its end and returns what it has printed.
sub start
{
	my ($self, $statements, $verbosity) = @_;
	my %session = (name => 'started ' . ++$started, out => '', err => '');
	$session{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'VERBOSITY=' . ($verbosity // 'terse'), '-d', $self->{node}->connstr('postgres') . " application_name='$session{name}'",
			'-c', $statements ],
		'<', \undef, '>', \$session{out}, '2>', \$session{err}, IPC::Run::timeout(60));
	return \%session;
}

# What such a session has printed at its end.
sub run { my ($self, @statements) = @_; return $self->finish($self->start(@statements)); }

# Starts statements that stop at the point, and waits until they do; `let_go` lets a session go on, and is `finish` then.
sub stop_at
{
	my ($self, $point, @statements) = @_;
	$self->set($point, 'stop');
	my $session = $self->start(@statements);
	$self->reached($point);
	return $session;
}

sub let_go
{
	my ($self, $point, $session) = @_;
	$self->set($point, 'pass');
	return $self->finish($session);
}

sub finish
{
	my ($self, $session) = @_;
	$session->{run}->finish;
	# said after some seconds, on a slow machine
	$session->{err} =~ s/^NOTICE:  (?:waiting for filter|resizing filter|filter "[^"]*" is ready in its new size).*\n//mg;
	chomp(my $said = $session->{out} . $session->{err});
	return $said;
}

# Does that session wait for another one, by then? For one that has an advisory lock: $event is 'advisory'.
sub blocked
{
	my ($self, $session, $event) = @_;
	my $wait = defined $event ? "wait_event = '$event'" : q{wait_event_type IN ('Lock', 'Extension') AND wait_event <> 'advisory'};
	for (1 .. 100)
	{
		return 1 if $self->{node}->safe_psql('postgres', qq{SELECT count(*) = 1 FROM pg_stat_activity
			WHERE application_name = '$session->{name}' AND $wait}) eq 't';
		sleep(0.1);
	}
	return 0;
}

1;
