# Random numbers that are the same everywhere: a seed means the same case on every machine.
package Dice;
use strict;
use warnings;

sub new {
	my ($class, $seed) = @_;
	my $self = bless { state => ($seed * 7919 + 12345) % 2147483647 || 1 }, $class;
	$self->roll(2) for 1 .. 5;
	return $self;
}

# From 0 to below $sides.
sub roll {
	my ($self, $sides) = @_;
	$self->{state} = $self->{state} * 48271 % 2147483647;
	return int($self->{state} / 2147483647 * $sides);
}

sub chance { my ($self, $percent) = @_; return $self->roll(100) < $percent }

sub one_of { my ($self, @values) = @_; return $values[ $self->roll(scalar @values) ] }

sub shuffled {
	my ($self, @values) = @_;
	for my $i (reverse 1 .. $#values) {
		my $j = $self->roll($i + 1);
		@values[ $i, $j ] = @values[ $j, $i ];
	}
	return @values;
}

1;
