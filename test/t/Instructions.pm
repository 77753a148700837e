# What statements take in instructions, counted by callgrind in a stand-alone backend: the same on every run and however busy the
# machine is. A test file begins with
#
#   use Sf;
#   use Instructions;
#   skip_without_valgrind(12);                      # checks of the file
#   my $instructions = Instructions->new($node);    # a server that has been stopped
#   my $instructions = Instructions->new($node, copies => 1);    # each count begins with the state that it has left
package Instructions;
use strict;
use warnings;
use Exporter 'import';
use IPC::Run ();
use Needs;
use Test::More;

our @EXPORT = qw(skip_without_valgrind);

# $checks: of the file, see Needs.
sub skip_without_valgrind
{
	my ($checks) = @_;
	needs(system('valgrind --version >/dev/null 2>&1') == 0, 'valgrind is not installed (apt install valgrind)', $checks);
	needs(($ENV{LD_PRELOAD} // '') !~ /san/, 'a sanitizer and valgrind do not go together', $checks);
	return;
}

sub new { my ($class, $node, %options) = @_; return bless { node => $node, runs => 0, %options }, $class; }

sub data_dir
{
	my ($self) = @_;
	return $self->{node}->data_dir unless $self->{copies};
	my $copy = $self->{node}->basedir . '/copy';
	system('rm', '-rf', $copy) == 0 && system('cp', '-a', $self->{node}->data_dir, $copy) == 0 or die "cannot copy to $copy\n";
	return $copy;
}

# Of a profile: all instructions, and those of the library. A name stands behind its number where that comes first; the line
# behind `calls=` repeats what the called function counts itself.
sub read_profile
{
	my ($file) = @_;
	my (%is_own, $counts, $own, $all);
	my $number_of = sub {
		my ($number, $name) = $_[0] =~ /^(\(\d+\))(?: (.*))?/;
		$is_own{$number} = $name =~ /streamfilter\.so$/ if defined $name;
		return $number;
	};
	open my $profile, '<', $file or die "$file: $!";
	while (my $line = <$profile>)
	{
		if    ($line =~ /^cob=(.*)/)                 { $number_of->($1); }
		elsif ($line =~ /^ob=(.*)/)                  { $counts = $is_own{ $number_of->($1) }; }
		elsif ($line =~ /^calls=/)                   { readline $profile; }
		elsif ($line =~ /^[0-9*+-]\S* (\d+)/)        { $all += $1; $own += $1 if $counts; }
	}
	close $profile;
	return { all => $all, own => $own // 0 };
}

# Counts so many rounds of the statements, each on a line.
sub count_rounds
{
	my ($self, $rounds, $statements, @options) = @_;
	my $node = $self->{node};
	my $file = $node->basedir . '/profile.' . ++$self->{runs};
	my $input = join("\n", @$statements, '') x $rounds;
	my @command = ('valgrind', '--tool=callgrind', "--callgrind-out-file=$file", $node->config_data('--bindir') . '/postgres',
		'--single', '-D', $self->data_dir, (map { ('-c', $_) } @options), 'postgres');
	my ($out, $err) = ('', '');
	IPC::Run::run(\@command, '<', \$input, '>', \$out, '2>', \$err, IPC::Run::timeout(600)) or die "failed: $err";
	unlike($err, qr/ERROR|FATAL/, "@options: $rounds rounds of $statements->[0] run") or diag($err);
	return read_profile($file);
}

# What one more round takes, by counting a few and many.
sub per_round
{
	my ($self, $few, $many, @arguments) = @_;
	my ($less, $more) = map { $self->count_rounds($_, @arguments) } $few, $many;
	return { map { $_ => ($more->{$_} - $less->{$_}) / ($many - $few) } qw(all own) };
}

1;
