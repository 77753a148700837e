# The rows of a case: what a stream with repeats and odd values may bring, and at most one row that fails.
package Rows;
use strict;
use warnings;

my @TEXTS = ('', 'a', 'A', 'a,b', 'say "hi"', "tab\there", "line\nbreak", 'back\\slash', '\\N', '\\.', "it's", "\x{c3}\x{a4}",
	'NULL', 'x' x 300, 'y' x 3000);

# { id, k, t, v, part }: k and t are strings or undef.
sub draw {
	my ($dice, $fault) = @_;
	my $count = $dice->one_of(0, 1, 2, 3 + $dice->roll(5), (10 + $dice->roll(30)) x 6, 150, 1100 + $dice->roll(30));
	$count = 2500 + $dice->roll(100) if $dice->chance(4);
	my $keys = 1 + $dice->roll(2 * $count + 1);
	my $texts = 1 + $dice->roll($count > 200 ? 8 : scalar @TEXTS);
	my $with_null = $dice->chance(30);
	my @rows = map {
		{
			id => $_,
			k => $with_null && $dice->chance(10) ? undef : 1 + $dice->roll($keys),
			t => $with_null && $dice->chance(10) ? undef : $TEXTS[ $dice->roll($texts) ],
			v => $dice->roll(30),
			part => $dice->roll(10),
		}
	} 1 .. $count;
	spoil(\@rows, $dice->roll($count), $fault) if $count && $fault;
	return \@rows;
}

sub spoil {
	my ($rows, $i, $fault) = @_;
	my $row = $rows->[$i];
	$row->{k} = 1_000_000 if defined $row->{k};    # it is no repeat
	if ($fault eq 'check') { $row->{v} = 666 }
	elsif ($fault eq 'null') { $row->{v} = undef }
	elsif ($fault eq 'unique') { $row->{id} = $rows->[ int($i / 2) ]{id} }
	elsif ($fault eq 'partition') { $row->{part} = 99 }
	elsif ($fault eq 'reference') { $row->{part} = 9; $row->{v} = 77 }
	elsif ($fault eq 'input') { $row->{bad} = 1 }
	return;
}

sub as_text {
	my ($value) = @_;
	return '\\N' unless defined $value;
	$value =~ s/\\/\\\\/g;
	$value =~ s/\t/\\t/g;
	$value =~ s/\n/\\n/g;
	return $value;
}

sub as_csv {
	my ($value) = @_;
	return '' unless defined $value;
	$value =~ s/"/""/g;
	return qq{"$value"};
}

sub as_literal {
	my ($value) = @_;
	return 'NULL' unless defined $value;
	$value =~ s/'/''/g;
	return "'$value'";
}

sub value {
	my ($row, $column, $with_bad) = @_;
	return 'bad' if $with_bad && $row->{bad} && $column eq 'v';
	return $row->{$column};
}

# The lines of a file for COPY.
sub lines {
	my ($rows, $columns, $format) = @_;
	my ($quote, $between) = $format eq 'csv' ? (\&as_csv, ',') : (\&as_text, "\t");
	return join '', map {
		my $row = $_;
		join($between, map { $quote->(value($row, $_, 1)) } @$columns) . "\n"
	} @$rows;
}

sub literals {
	my ($row, $columns) = @_;
	return join ', ', map { as_literal($row->{$_}) } @$columns;
}

1;
