# Prints what README.md tells who has a package, or what another page tells, as a script for a shell, in its order:
# test/package.sh plays it.
#
# - ```sh behind <!-- tested by test/package.sh --> as it stands, without the line that opens psql.
# - ```sql by psql, in one database; behind <!-- tested by FILE.sql -->, that file in a database of its own instead.
#
#   perl test/readme.pl PAGE [DATABASE]
use strict;
use warnings;

my ($page, $database) = @ARGV;
open my $in, '<', $page or die "$page: $!\n";
my $psql = 'sudo -u postgres psql -X -e -v ON_ERROR_STOP=1' . ($database ? " -d $database" : '');
my ($language, $tested_by, $text);

sub print_block
{
	if ($language eq 'sh') { print $text =~ s/^sudo -u postgres psql +#.*\n//mr if ($tested_by // '') eq 'test/package.sh' }
	elsif (!$tested_by) { print "$psql <<'README'\n${text}README\n" }
	elsif ($tested_by =~ /\.sql$/)
	{
		print "sudo -u postgres createdb other\n$psql -d other <$tested_by\nsudo -u postgres dropdb other\n";
	}
}

print "set -eux\n";
while (my $line = <$in>)
{
	if (defined $language)
	{
		if ($line !~ /^```/) { $text .= $line; next }
		print_block() if $language =~ /^(?:sh|sql)$/;
		undef $_ for $language, $tested_by;
	}
	elsif ($line =~ /^```(\w*)/) { ($language, $text) = ($1, '') }
	elsif ($line =~ /^<!-- tested by (\S+) -->/) { $tested_by = $1 }
}
