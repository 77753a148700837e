#!/usr/bin/env perl
# META.json, by the rules of PGXN's specification 1.0.0 that its own validator asks: what must be there is, other words than
# its own begin with x_, versions are of three numbers; and the files it names are in the repository.
#
#   perl test/check_meta.pl VERSION      the version that it must have
use strict;
use warnings;
use File::Basename;
use JSON::PP;

chdir dirname(dirname(__FILE__)) or die "$!\n";
open my $in, '<', 'META.json' or die "META.json: $!\n";
my $meta = do { local $/; decode_json(<$in>) };
close $in;
my @wrong;

sub check_words
{
	my ($where, $map, @known) = @_;
	my %is_known = map { $_ => 1 } @known;
	push @wrong, map { "$where: $_ is no word of the specification" } grep { !$is_known{$_} && !/^x_/i } sort keys %$map;
	return;
}

sub check_version
{
	my ($where, $version, $wanted) = @_;
	push @wrong, "$where: no version" if ($version // '') !~ /^\d+\.\d+\.\d+$/;
	push @wrong, "$where: version $version is not $wanted" if defined $version && defined $wanted && $version ne $wanted;
	return;
}

push @wrong, map { "$_ is missing" } grep { !defined $meta->{$_} } qw(abstract maintainer license meta-spec name version provides);
check_words('META.json', $meta, qw(abstract maintainer license meta-spec name version provides generated_by release_status
	description tags no_index prereqs resources));
check_words('resources', $meta->{resources} // {}, qw(license homepage bugtracker repository));
check_version('META.json', $meta->{version}, $ARGV[0]);
check_version('meta-spec', $meta->{'meta-spec'}{version});
for my $name (sort keys %{ $meta->{provides} // {} })
{
	my $provided = $meta->{provides}{$name};
	check_words($name, $provided, qw(file version abstract docfile));
	check_version($name, $provided->{version}, $ARGV[0]);
	push @wrong, map { "$name: there is no file " . ($provided->{$_} // '') } grep { !-f ($provided->{$_} // '') } qw(file docfile);
}
die join("\n", map { "META.json: $_" } @wrong) . "\n" if @wrong;
