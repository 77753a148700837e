# Compares what bench/instructions.sh has counted with bench/instructions.base, or writes it there.
#
#   perl instruction_base.pl check BASE CASE…                   ok or not ok for each case
#   perl instruction_base.pl write BASE PLATFORM REASON CASE…   the columns of this tree
#   perl instruction_base.pl write-first BASE CASE…             those of the first commit
#   perl instruction_base.pl missing BASE CASE…                 cases without a figure of the first commit
#
# Standard input has a line for each case that was counted: name, all instructions, those of streamfilter. CASE… are all cases
# that there are, in their order.
use strict;
use warnings;

my $ALLOWED = 1.01;      # what a case may take, as a share of the base
my $ALLOWED_OWN = 1;     # or as many instructions of streamfilter more, where these are few
my $SAME = 1.001;        # counts that differ by less are taken for the same

my ($command, $base, @rest) = @ARGV;
my (%base_of, @head);
read_base();
my %commands = (
	check => \&check,
	write => \&write_now,
	'write-first' => \&write_first,
	missing => sub { print join(' ', grep { no_first($_) } @_), "\n" });
($commands{ $command // '' } or die "unknown command\n")->(@rest);

# A line of the file: name, all, own, first all, first own, reason. "-" where there is no figure.
sub read_base
{
	open my $file, '<', $base or die "$base: $!\n";
	while (my $line = <$file>)
	{
		chomp $line;
		if ($line =~ /^(?:#|$)/)
		{
			push @head, $line;
			next;
		}
		my ($name, @figures) = split ' ', $line, 6;
		die "$base: $line\n" if @figures < 4;
		$base_of{$name} = { all => $figures[0], own => $figures[1], first_all => $figures[2], first_own => $figures[3], reason => $figures[4] // '' };
	}
	close $file;
	return;
}

sub read_figures
{
	my @figures;
	while (<STDIN>) { my ($case, $all, $own) = split; push @figures, { case => $case, all => $all, own => $own }; }
	return @figures;
}

sub no_first { my ($case) = @_; return !$base_of{$case} || $base_of{$case}{first_all} eq '-'; }

# Whether one takes more than the other, by more than what is allowed.
sub is_more
{
	my ($all, $own, $than_all, $than_own, $share) = @_;
	return $all > $than_all * $share || ($own > $than_own * $share && $own > $than_own + $ALLOWED_OWN);
}

sub check
{
	my @cases = @_;
	my %is_case = map { $_ => 1 } @cases;
	my $failed = 0;
	for my $line ((map { [ judge($_) ] } read_figures()), map { [ 0, "$_: there is no such case any more" ] } grep { !$is_case{$_} } sort keys %base_of)
	{
		my ($is_good, $text) = @$line;
		$failed++ unless $is_good;
		print $is_good ? 'ok ' : 'not ok ', $text, "\n";
	}
	exit($failed ? 1 : 0);
}

# Whether a case is within its base, and what is to be said of it.
sub judge
{
	my ($case, $all, $own) = @{ $_[0] }{qw(case all own)};
	my $known = $base_of{$case} or return (0, "$case: takes $all, not in $base: write it there by --write and --write-first");
	my $text = sprintf '%s: %.1f (%+.2f %%), of streamfilter %.1f (%+.1f)', $case, $all, 100 * ($all / $known->{all} - 1), $own,
		$own - $known->{own};
	return (0, "$text: above the base") if is_more($all, $own, $known->{all}, $known->{own}, $ALLOWED);
	return (0, "$text: the base is above that of the first commit and says no reason") if is_raised($known) && $known->{reason} eq '';
	$text .= ', lower the base by --write' if is_more($known->{all}, $known->{own}, $all, $own, $ALLOWED);
	return (1, $text);
}

sub is_raised
{
	my ($line) = @_;
	return $line->{first_all} ne '-' && is_more($line->{all}, $line->{own}, $line->{first_all}, $line->{first_own}, $ALLOWED);
}

sub write_now
{
	my ($here, $reason, @cases) = @_;
	my @refused;
	for my $now (read_figures())
	{
		my $line = $base_of{ $now->{case} } //= { all => $now->{all}, own => $now->{own}, first_all => '-', first_own => '-', reason => '' };
		if (is_more($now->{all}, $now->{own}, $line->{all}, $line->{own}, $SAME))
		{
			push @refused, "$now->{case}: $line->{all}, of streamfilter $line->{own}, would become $now->{all}, $now->{own}" if $reason eq '';
			$line->{reason} = join '; ', grep { $_ ne '' } $line->{reason}, $reason;
		}
		elsif (!is_more($line->{all}, $line->{own}, $now->{all}, $now->{own}, $SAME)) { next; }
		@$line{qw(all own)} = @$now{qw(all own)};
		$line->{reason} = '' if $line->{first_all} ne '-' && !is_raised($line);
	}
	die join("\n  ", 'figures are raised only with a reason: bench/instructions.sh --write "REASON"', @refused), "\n" if @refused;
	s/^# platform: .*/# platform: $here/ for @head;
	write_base(@cases);
	return;
}

sub write_first
{
	my @cases = @_;
	for my $first (read_figures())
	{
		my $line = $base_of{ $first->{case} } //= { all => $first->{all}, own => $first->{own}, reason => '' };
		@$line{qw(first_all first_own)} = @$first{qw(all own)};
	}
	write_base(@cases);
	return;
}

sub write_base
{
	my @cases = @_;
	open my $file, '>', $base or die "$base: $!\n";
	print {$file} map { "$_\n" } @head;
	for my $case (grep { $base_of{$_} } @cases)
	{
		my $line = sprintf '%-18s %10s %10s %10s %10s  %s', $case, @{ $base_of{$case} }{qw(all own first_all first_own reason)};
		print {$file} $line =~ s/ +$//r, "\n";
	}
	close $file or die "$base: $!\n";
	return;
}
