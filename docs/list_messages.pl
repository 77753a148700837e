#!/usr/bin/env perl
# The messages of the extension, as the sources have them: level, text, hint. `--check FILE` says which of them a document
# does not have.
#
#   docs/list_messages.pl                              a line for each
#   docs/list_messages.pl --check docs/troubleshooting.md
use strict;
use utf8;
use warnings;
use File::Find;
use File::Basename;

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

# The first literal of a call, its pieces joined, with … where values come.
sub literal_of
{
	my ($call) = @_;
	return unless $call =~ /((?:"(?:[^"\\]|\\.)*"\s*|\bU?INT64_FORMAT\s*)+)/;
	my $text = join '', map { /^"(.*)"$/s ? $1 : '%d' } $1 =~ /"(?:[^"\\]|\\.)*"|INT64_FORMAT/g;
	$text =~ s/\\"/"/g;
	$text =~ s/\\n/ /g;
	$text =~ s/%%/\x00/g;
	$text =~ s/%[-+ 0#]*(?:\d+|\*)?(?:\.\d+|\.\*)?(?:ll|l|z)?[a-zA-Z]/…/g;
	$text =~ s/\x00/%/g;
	return $text;
}

sub messages_of
{
	my ($file) = @_;
	local $/;
	open my $in, '<:encoding(UTF-8)', $file or die "$file: $!";
	my $source = <$in>;
	$source =~ s{//[^\n]*}{}g;
	my @found;
	while ($source =~ /\bereport\s*\(/g)
	{
		my $call = call_at(\$source);
		my ($level) = $call =~ /^\s*([A-Za-z_ ?:]+)/;
		next if $level =~ /^(?:LOG|NOTICE|DEBUG\d|INFO)/;
		next unless $call =~ /\berrmsg(?:_plural|_internal)?\s*\(/g;
		my $text = literal_of(call_at(\$call));
		push @found, $text if defined $text && $text ne '…';
	}
	pos($source) = 0;
	while ($source =~ /\b(?:problem|fault|report)(?:\.|->)set\s*\(/g)
	{
		my $call = call_at(\$source);
		my $text = literal_of($call);
		push @found, $text if defined $text && $text ne '…';
	}
	pos($source) = 0;
	while ($source =~ /\bSF_INPUT_ERROR\s*\(/g)
	{
		my $call = call_at(\$source);
		next unless $call =~ /\berrmsg\s*\(/g;
		my $text = literal_of(call_at(\$call));
		push @found, $text if defined $text && $text ne '…';
	}
	return @found;
}

my %messages;
find({ no_chdir => 1, wanted => sub {
	return unless /\.[ch]pp$/ && !m{/fault_points|/no_raise|/capi/};
	$messages{$_} = 1 for messages_of($File::Find::name);
} }, "$root/src");

binmode STDOUT, ':encoding(UTF-8)';
if (@ARGV == 2 && $ARGV[0] eq '--check')
{
	local $/;
	open my $in, '<:encoding(UTF-8)', $ARGV[1] or die "$ARGV[1]: $!";
	my $document = <$in>;
	my %told = map { $_ => 1 } $document =~ /^\| `(.+?)` \|/gm;
	my @missing = grep { !$told{$_} } sort keys %messages;
	my @gone = grep { !$messages{$_} } sort keys %told;
	print "missing: $_\n" for @missing;
	print "gone: $_\n" for @gone;
	exit(@missing + @gone > 0);
}
print "$_\n" for sort keys %messages;
