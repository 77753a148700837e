# What must be true of the rows, given what the workers have noted (ChaosWorker.pm) and when which server could not be
# reached. An event is lost if a transaction that had it was accepted and no row has its key. A row is extra if another
# row has its key that was surely remembered: stored by an accepted transaction without a warning to its session,
# at a time when all servers of the filter were within reach.
package ChaosModel;

use strict;
use warnings;

use constant GRACE => 2;    # seconds within which a server that is back must be in use

sub new
{
	my ($class, %self) = @_;    # servers => { table => [names] }
	return bless { %self, windows => {}, transactions => {}, accepted => {}, count => {}, slowest => 0, errors => {}, left => 0 }, $class;
}

# From now on the server cannot be reached; until.
sub add_window { my ($self, $server, $from, $to) = @_; push @{ $self->{windows}{$server} }, [ $from, $to ]; return; }

sub read_log
{
	my ($self, $id, $path) = @_;
	open my $in, '<', $path or die "$path: $!";
	while (my $line = <$in>)
	{
		chomp $line;
		if ($line =~ /^# (\w{5}): (.*)/) { ++$self->{errors}{ "$1: " . $2 =~ s/["\d.]+/N/gr }; next; }
		if ($line =~ /^left (\d+)/) { $self->{left} += $1; next; }
		my ($number, $table, $begun, $ended, $outcome, @keys) = split ' ', $line;
		$self->{transactions}{"$id $number"} = { table => $table, begun => $begun, ended => $ended, outcome => $outcome };
		++$self->{count}{$outcome};
		$self->{slowest} = $ended - $begun if $ended - $begun > $self->{slowest};
		next unless $outcome eq 'sure' || $outcome eq 'warned';
		$self->{accepted}{$table}{$_} = $line for @keys;
	}
	return;
}

sub is_disturbed
{
	my ($self, $transaction) = @_;
	for my $window (map { @{ $self->{windows}{$_} // [] } } @{ $self->{servers}{ $transaction->{table} } })
	{
		return 1 if $transaction->{begun} <= $window->[1] + GRACE && $transaction->{ended} >= $window->[0];
	}
	return 0;
}

# rows: "key worker number" of a table, of all origins. Returns what is wrong, and the figures.
sub judge
{
	my ($self, $table, @rows) = @_;
	my (%of, @wrong);
	my %figure = (accepted => scalar(keys %{ $self->{accepted}{$table} // {} }), rows => scalar @rows,
		lost => 0, extra => 0, excused => 0, stray => 0);
	for (@rows) { my ($key, $id, $number) = split ' '; push @{ $of{$key} }, "$id $number"; }
	for my $key (keys %{ $self->{accepted}{$table} // {} })
	{
		next if $of{$key};
		++$figure{lost};
		push @wrong, "$table: key $key is lost; $self->{accepted}{$table}{$key}";
	}
	for my $key (keys %of)
	{
		my @sources;
		for my $source (@{ $of{$key} })
		{
			my $transaction = $self->{transactions}{$source};
			if (!$transaction || $transaction->{outcome} eq 'failed')
			{
				++$figure{stray};
				push @wrong, "$table: key $key is of transaction $source, which has failed";
				next;
			}
			push @sources, { %$transaction, source => $source, disturbed => $self->is_disturbed($transaction) };
		}
		next if @sources < 2;
		my $extra = 0;
		for my $late (@sources)
		{
			next if $late->{disturbed};
			for my $early (@sources)
			{
				next if $early == $late || $early->{disturbed} || $early->{outcome} ne 'sure';
				# Of two that are both sure, one is extra.
				next if $late->{outcome} eq 'sure' ? $late->{begun} < $early->{begun} : $late->{begun} < $early->{ended};
				++$extra;
				push @wrong, sprintf '%s: key %d is there again by %s (%s, %.3f to %.3f) after %s (%.3f to %.3f)', $table, $key,
				  $late->{source}, $late->{outcome}, $late->{begun}, $late->{ended}, $early->{source}, $early->{begun}, $early->{ended};
				last;
			}
		}
		$figure{extra} += $extra;
		$figure{excused} += @sources - 1 - $extra;
	}
	return (\%figure, @wrong);
}

1;
