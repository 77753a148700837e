#!/usr/bin/env perl
# Small faults for test/mutants.sh, which decides whether a test notices them.
#
#   mutants.pl list N SEED [ROOM…]      for each of N turns the faults to try in that order, until one compiles to other code
#   mutants.pl apply FILE LINE OLD NEW  puts one into a tree
#
# A fault is one line of tab-separated fields: turn, file, line, rule, the line as it is, the line with the fault. The rooms of
# src/ROOMS take turns, and within a room the rules: otherwise half of all faults would be in constants. Lines are read by
# patterns, so some of the faults do not compile; mutants.sh takes the next one then.
use strict;
use warnings;

my $alternatives = 40;    # to a turn
my $parens = qr/(?<parens>\((?:[^()]++|(?&parens))*\))/;
my $keyword = qr/(?:if|for|while|switch|return|sizeof|catch|case|else|do|new|delete|using|static_assert|decltype|alignas)/;

sub pick { my ($list) = @_; return splice @$list, int(rand @$list), 1 }
sub shuffled { my @list = @_; return map { pick(\@list) } 1 .. @list }

sub slurp
{
	my ($file) = @_;
	open my $in, '<', $file or die "$file: $!\n";
	local $/ = undef;
	my $text = <$in>;
	close $in;
	return $text;
}

sub overwrite { my ($text, $by) = @_; $text =~ s/[^\n]/$by/g; return $text }

# The same text with what no fault belongs into overwritten: comments, preprocessor lines and assertions by blanks, literals by
# quotes. Every other character stays at its place.
sub masked
{
	my ($text) = @_;
	$text =~ s{(//[^\n]*|/\*.*?\*/)|("(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+')}
		{ defined $1 ? overwrite($1, ' ') : overwrite($2, '"') }gse;
	$text =~ s/^(\s*#(?:[^\n]*\\\n)*[^\n]*)/overwrite($1, ' ')/gme;
	$text =~ s/(\b(?:static_assert|assert|Assert\w*|StaticAssert\w*)$parens)/overwrite($1, ' ')/ge;
	return $text;
}

# --- The rules: each takes the line as it is, the masked one, and what stands around it, and returns the lines it would put there

sub replace { my ($line, $at, $length, $by) = @_; substr($line, $at, $length) = $by; return $line }

sub negate_condition
{
	my ($line, $code) = @_;
	my @faults;
	while ($code =~ /\b(?:if|while) $parens/g) {
		my ($at, $length) = ($-[1] + 1, length($1) - 2);
		if (substr($code, $at, $length) =~ /^.*;\s*/) { ($at, $length) = ($at + $+[0], $length - $+[0]) }
		push @faults, replace($line, $at, $length, '!(' . substr($line, $at, $length) . ')');
	}
	return @faults;
}

my %other_comparison = ('<' => '<=', '<=' => '<', '>' => '>=', '>=' => '>');

sub move_boundary
{
	my ($line, $code) = @_;
	my @faults;
	while ($code =~ / ([<>]=?)(?= )/g) { push @faults, replace($line, $-[1], length $1, $other_comparison{$1}) }
	return @faults;
}

sub change_constant
{
	my ($line, $code) = @_;
	my @faults;
	return if $code =~ /^\s+[\w:]+ \w+\[\d+\];/;    # room for a text
	while ($code =~ /(?<![\w.'])(\d+)(?=[uUlLzZ]*(?![\w.']))/g) {
		push @faults, replace($line, $-[1], length $1, $1 == 0 || rand() < .5 ? $1 + 1 : $1 - 1);
	}
	return @faults;
}

sub leave_out_call
{
	my ($line, $code, $around) = @_;
	my $callee = qr/(?!$keyword\b)[A-Za-z_](?:[\w.:]|->)*/;
	return $1 . ';' if $around->{may_follow} && $code =~ /^(\s+)$callee$parens;\s*$/;
	return substr($line, 0, $+[1]) . ';'
	  if $code =~ /^(\s+(?:\} else )?(?:if|for|while) (?<head>\((?:[^()]++|(?&head))*\)) )$callee$parens;\s*$/;
	return;
}

sub return_early
{
	my ($line, $code, $around) = @_;
	return unless $around->{begins} && $code =~ /^(\s+)(?!(?:case|default|else|public|private|protected|using|static)\b)[A-Za-z_*+(-]/;
	return replace($line, $+[1], 0, $around->{is_void} ? 'return; ' : 'return {}; ');
}

# "a, b(c, d)" consists of the two parts "a" and "b(c, d)": [offset, length] of each.
sub arguments_of
{
	my ($code) = @_;
	my (@parts, $depth, $start);
	($depth, $start) = (0, 0);
	for my $i (0 .. length($code)) {
		my $char = substr $code, $i, 1;
		$depth += $char =~ /[(\[{]/ ? 1 : $char =~ /[)\]}]/ ? -1 : 0;
		next unless $i == length($code) || ($depth == 0 && $char eq ',');
		my ($blanks) = substr($code, $start, $i - $start) =~ /^(\s*)/;
		push @parts, [ $start + length $blanks, $i - $start - length $blanks ];
		$start = $i + 1;
	}
	return @parts;
}

# Two arguments may take each other's place in most cases; text and nullptr are no numbers, and two parameters need one type.
sub may_change_places
{
	my ($one, $other) = @_;
	return 0 if $one eq $other || ($one =~ /^(?:"|nullptr)/ xor $other =~ /^(?:"|nullptr)/);
	my ($type, $other_type) = map { /^((?:[\w:]+ )*[\w:<>]+ [*&]*|[\w:<>]+[*&]+ )\w+$/ ? $1 : '' } $one, $other;
	return $type eq $other_type;
}

# Of a call or of a definition's head. The order does not matter to the functions named, and a prototype does nothing.
sub swap_arguments
{
	my ($line, $code) = @_;
	my @faults;
	return if $code =~ /^\s*(?:extern |static )?(?!$keyword\b)[\w:<>]+[*&]* [*&]*\w+$parens[\w ]*;\s*$/;
	while ($code =~ /\b(\w+)(?=$parens)/g) {
		my ($name, $at, $inside) = ($1, $+[1] + 1, substr $+{parens}, 1, -1);
		next if $name =~ /^(?:$keyword|min|max|Min|Max)$/ || $inside =~ /;/;
		my @parts = arguments_of($inside);
		for my $i (1 .. $#parts) {
			my ($one, $other) = @parts[ $i - 1, $i ];
			my ($begin, $end) = ($one->[0], $other->[0] + $other->[1]);
			my $text = substr $line, $at, length $inside;
			my ($first, $between, $second) = (substr($text, $begin, $one->[1]),
				substr($text, $begin + $one->[1], $other->[0] - $begin - $one->[1]), substr($text, $other->[0], $other->[1]));
			push @faults, replace($line, $at + $begin, $end - $begin, $second . $between . $first)
			  if may_change_places($first, $second);
		}
	}
	return @faults;
}

my @rules = (
	[ 'condition negated' => \&negate_condition ],
	[ 'boundary moved' => \&move_boundary ],
	[ 'constant off by one' => \&change_constant ],
	[ 'call left out' => \&leave_out_call ],
	[ 'early return' => \&return_early ],
	[ 'arguments swapped' => \&swap_arguments ],
);

# --- All faults that the rules find, and the choice among them

sub faults_of
{
	my ($file) = @_;
	my $text = slurp($file);
	my @lines = split /\n/, $text, -1;
	my @code = split /\n/, masked($text), -1;
	my (%faults, $is_void);
	my $before = '';    # the last line that is not empty
	for my $i (0 .. $#lines) {
		next if $code[$i] !~ /\S/;
		# The head of a function: a type, a name and a parenthesis, at the margin or within a class.
		$is_void = $code[$i] =~ /\bvoid / if $code[$i] =~ /^(?:  )?(?!$keyword\b)[A-Za-z_\[][^=;()]* [*&]*[\w:~]+\([^;]*$/;
		my %around = (
			is_void => $is_void,
			begins => scalar($before =~ /[;{}]\s*$/),
			may_follow => scalar($before =~ /(?:[;{})]|\belse|\bdo)\s*$/));
		unless ($code[$i] =~ /^\s*(?:using|namespace|template|friend|typedef|enum)\b/) {
			for my $rule (@rules) {
				my ($name, $find) = @$rule;
				push @{ $faults{$name} }, map { [ $file, $i + 1, $name, $lines[$i], $_ ] } $find->($lines[$i], $code[$i], \%around);
			}
		}
		$before = $code[$i];
	}
	return \%faults;
}

# A generator of faults of one room: a rule by lot, and one of its faults by lot, until there is none.
sub faults_in_turn
{
	my ($room) = @_;
	my %faults;
	for my $file (sort glob "src/$room/*.cpp src/$room/*.hpp") {
		my $found = faults_of($file);
		push @{ $faults{$_} }, @{ $found->{$_} } for keys %$found;
	}
	return sub {
		my @left = grep { @{ $faults{$_} } } sort keys %faults;
		return @left ? pick($faults{ $left[ int rand @left ] }) : undef;
	};
}

sub list
{
	my ($count, $seed, @wanted) = @_;
	srand $seed;
	my @rooms = @wanted ? @wanted : map { /^([a-z]\S*)/ ? $1 : () } split /\n/, slurp('src/ROOMS');
	my (%next, @turns);
	for my $turn (1 .. $count) {
		@turns = shuffled(@rooms) unless @turns;
		my $room = shift @turns;
		$next{$room} //= faults_in_turn($room);
		for (1 .. $alternatives) {
			my $fault = $next{$room}->() // last;
			print join("\t", $turn, @$fault), "\n";
		}
	}
	return;
}

sub apply
{
	my ($file, $number, $old, $new) = @_;
	my @lines = split /\n/, slurp($file), -1;
	die "$file:$number is another line than the one listed\n" unless defined $lines[ $number - 1 ] && $lines[ $number - 1 ] eq $old;
	$lines[ $number - 1 ] = $new;
	open my $out, '>', $file or die "$file: $!\n";
	print {$out} join "\n", @lines;
	close $out or die "$file: $!\n";
	return;
}

my $command = shift // '';
if ($command eq 'list' && @ARGV >= 2) { list(@ARGV) }
elsif ($command eq 'apply' && @ARGV == 4) { apply(@ARGV) }
else { die "usage: mutants.pl list N SEED [ROOM…] | apply FILE LINE OLD NEW\n" }
