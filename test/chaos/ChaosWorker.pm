# A pooled session: one psql in a process of its own, which sends events, each again until it was accepted, and notes
# what became of every transaction. A line for each:
#
#   number table begun ended outcome keys…       outcome: sure, warned, failed, unknown
#   # SQLSTATE: message                          after one that failed
#   left N                                       at the end: events that were not accepted, however often they were sent
#
# sure: it was accepted, and the next statement of the session had nothing to say of it; warned: a server does not
# remember its keys, or the session ended before it could say so; unknown: the session ended meanwhile.
package ChaosWorker;

use strict;
use warnings;
use IPC::Open3;
use Time::HiRes qw(time sleep);

sub new
{
	my ($class, %self) = @_;
	open my $log, '>', $self{log} or die "$self{log}: $!";
	$log->autoflush(1);
	return bless { %self, out => $log, number => 0, again => [] }, $class;
}

sub connect_session
{
	my ($self) = @_;
	return if $self->{pid};
	local $ENV{PGAPPNAME} = 'producer';
	$self->{pid} = open3($self->{to}, $self->{from}, undef, 'psql', '-XAt', '-v', 'VERBOSITY=verbose', '-d', $self->{connstr});
	return;
}

sub end_session
{
	my ($self) = @_;
	return unless $self->{pid};
	close $self->{to};
	close $self->{from};
	waitpid delete $self->{pid}, 0;
	return;
}

# What the session says; undef: it has ended.
sub ask
{
	my ($self, $sql) = @_;
	local $SIG{PIPE} = 'IGNORE';
	$self->connect_session;
	my $said = '';
	if (print { $self->{to} } "$sql\n\\echo =done=\n" and $self->{to}->flush)
	{
		while (defined(my $line = readline $self->{from}))
		{
			return $said if $line eq "=done=\n";
			$said .= $line;
		}
	}
	$self->end_session;
	return;
}

# Keys that all workers choose from at about the same time, and now and then older ones.
sub choose_keys
{
	my ($self, $count) = @_;
	my $newest = 100 + int((time - $self->{start}) * 60);
	my %keys = map { (rand() < 0.75 ? $newest - int rand 300 : 1 + int rand $newest) => 1 } 1 .. $count;
	my @sorted = sort { $a <=> $b } keys %keys;
	return @sorted;
}

sub values_of
{
	my ($self, @keys) = @_;
	return join ', ', map { "($_, $self->{id}, $self->{number})" } @keys;
}

sub statements_of
{
	my ($self, $table, @keys) = @_;
	my $insert = "INSERT INTO rows_$table VALUES ";
	my $kind = int rand 4;
	return $insert . $self->values_of(@keys) . ';' if $kind == 0;
	return join ' ', 'BEGIN;', (map { $insert . $self->values_of($_) . ';' } @keys), 'COMMIT;' if $kind == 1;
	# What is rolled back to a savepoint is neither stored nor remembered.
	my @undone = $self->choose_keys(2);
	return join ' ', 'BEGIN;', "$insert " . $self->values_of(@keys) . ';', 'SAVEPOINT s;',
	  "INSERT INTO rows_$table SELECT k, -1, 0 FROM unnest('{" . join(',', @undone) . "}'::bigint[]) k;", 'ROLLBACK TO s;', 'COMMIT;'
	  if $kind == 2;
	return "BEGIN; INSERT INTO rows_$table SELECT k, $self->{id}, $self->{number} FROM unnest('{" . join(',', @keys) . "}'::bigint[]) k; COMMIT;";
}

# By the last of the tags: of a statement alone, or of COMMIT.
sub is_committed
{
	my ($said) = @_;
	my @tags = $said =~ /^(BEGIN|INSERT 0 \d+|SAVEPOINT|ROLLBACK|COMMIT)$/mg;
	return @tags && ($tags[-1] eq 'COMMIT' || @tags == 1 && $tags[0] =~ /^INSERT/);
}

sub run_transaction
{
	my ($self, $table, @keys) = @_;
	++$self->{number};
	my $begun = time;
	my $said = $self->ask($self->statements_of($table, @keys));
	my $ended = time;
	my $outcome = !defined $said ? 'unknown' : is_committed($said) ? 'warned' : 'failed';
	if ($outcome eq 'warned')
	{
		my $after = $self->ask('SELECT 1 WHERE false;');
		$outcome = 'sure' if defined $after && "$said$after" !~ /does not remember/;
	}
	print { $self->{out} } join(' ', $self->{number}, $table, $begun, $ended, $outcome, @keys), "\n";
	print { $self->{out} } "# $1\n" if $outcome eq 'failed' && $said =~ /ERROR:\s+(\w{5}: .*)/;
	push @{ $self->{again} }, [ $table, @keys ] if $outcome eq 'failed' || $outcome eq 'unknown';
	sleep 0.2 if $outcome eq 'unknown';    # its server may be starting
	return $outcome;
}

# Until the time is up; then what was not accepted yet.
sub run
{
	my ($self) = @_;
	srand $self->{seed};
	while (time < $self->{until})
	{
		my $event = rand() < 0.3 ? shift @{ $self->{again} } : undef;
		if ($event) { $self->run_transaction(@$event); }
		else { $self->run_transaction($self->{tables}[ rand @{ $self->{tables} } ], $self->choose_keys(1 + rand 4)); }
		sleep 0.01;
	}
	return;
}

sub drain
{
	my ($self) = @_;
	my $deadline = time + 60;
	while (time < $deadline and my $event = shift @{ $self->{again} })
	{
		$self->run_transaction(@$event);
		sleep 0.05;
	}
	print { $self->{out} } 'left ', scalar @{ $self->{again} }, "\n";
	$self->end_session;
	return;
}

1;
