#!/usr/bin/env perl
# The messages of the extension, as the sources have them. `--check PAGE LIST` says which stand neither in a page with advice
# nor in a list of those that say themselves what to do, by DETAIL or HINT.
#
#   docs/list_messages.pl                              a line for each
#   docs/list_messages.pl --check docs/troubleshooting.md test/messages.txt
use strict;
use utf8;
use warnings;
use File::Find;
use File::Basename;
use lib dirname(__FILE__);
use Files;

my $root = dirname(dirname(File::Spec->rel2abs(__FILE__)));

# The text of the call that begins at the position of $$source, to its closing parenthesis.
sub call_at
{
	my ($source) = @_;
	my ($depth, $call) = (1, '');
	while ($$source =~ /\G("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)'|.)/gs)
	{
		my $piece = $1;
		++$depth if $piece eq '(';
		--$depth if $piece eq ')';
		return $call if $depth == 0;
		$call .= $piece;
	}
	return $call;
}

# The literals that a call takes its text from, their pieces joined, with … where values come: one, or those that its first
# argument with a literal chooses from.
sub literals_of
{
	my ($call) = @_;
	my $pieces = qr/(?:(?:"(?:[^"\\]|\\.)*"\s*|\bU?INT64_FORMAT\s*)+)/;
	my @texts;
	while ($call =~ /($pieces)\s*([:,)]|$)/g)
	{
		my ($literal, $next) = ($1, $2);
		my $text = join '', map { /^"(.*)"$/s ? $1 : '%d' } $literal =~ /"(?:[^"\\]|\\.)*"|INT64_FORMAT/g;
		$text =~ s/\\"/"/g;
		$text =~ s/\\n/ /g;
		$text =~ s/%%/\x00/g;
		$text =~ s/%[-+ 0#]*(?:\d+|\*)?(?:\.\d+|\.\*)?(?:ll|l|z)?[a-zA-Z]/…/g;
		$text =~ s/\x00/%/g;
		push @texts, $text;
		last unless $next eq ':';
	}
	return @texts;
}

# What hands on a message that others have made.
my $forwards = qr{/problem_report\.cpp$|/remote/pipeline\.cpp$};
my @hidden;

sub messages_of
{
	my ($file) = @_;
	my $source = slurp($file) =~ s{//[^\n]*}{}gr;
	my @found;
	while ($source =~ /\bereport\s*\(/g)
	{
		my $call = call_at(\$source);
		my ($level) = $call =~ /^\s*([A-Za-z_ ?:]+)/;
		next if $level =~ /^(?:LOG|NOTICE|DEBUG\d|INFO)/;
		next unless $call =~ /\berrmsg(?:_plural|_internal)?\s*\(/g;
		my @texts = grep { $_ ne '…' } literals_of(call_at(\$call));
		push @found, @texts;
		# Where the text is a variable's, its literals are marked.
		push @hidden, $file unless @texts || $source =~ /\bgettext_noop\(/ || $file =~ $forwards;
	}
	for my $door (qr/\b(?:problem|fault|report)(?:\.|->)set\s*\(/, qr/\bgettext_noop\s*\(/)
	{
		pos($source) = 0;
		while ($source =~ /$door/g)
		{
			my $call = call_at(\$source);
			push @found, grep { $_ ne '…' } literals_of($call);
		}
	}
	pos($source) = 0;
	while ($source =~ /\bSF_INPUT_ERROR\s*\(/g)
	{
		my $call = call_at(\$source);
		next unless $call =~ /\berrmsg\s*\(/g;
		push @found, grep { $_ ne '…' } literals_of(call_at(\$call));
	}
	return @found;
}

my %messages;
find({ no_chdir => 1, wanted => sub {
	return unless /\.[ch]pp$/ && !m{/fault_points|/no_raise|/capi/};
	$messages{$_} = 1 for messages_of($File::Find::name);
} }, "$root/src");

binmode STDOUT, ':encoding(UTF-8)';

if (@ARGV == 3 && $ARGV[0] eq '--check')
{
	my %told = map { $_ => 1 } (map { split /`; `/ } slurp($ARGV[1]) =~ /^\| `(.+?)` \|/gm), split /\n/, slurp($ARGV[2]);
	my @missing = grep { !$told{$_} } sort keys %messages;
	my @gone = grep { !$messages{$_} } sort keys %told;
	print "missing: $_\n" for @missing;
	print "gone: $_\n" for @gone;
	print "not marked with gettext_noop: a message in $_\n" for @hidden;
	exit(@missing + @gone + @hidden > 0);
}
print "$_\n" for sort keys %messages;
