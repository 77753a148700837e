# Servers with the extension, and how a producer finds those that hold its slices.
#
#   use FindBin;
#   use lib $FindBin::Bin;
#   use Servers;
#   my $node   = start_node('producer');
#   my $holder = start_node('a', "max_connections = 12\n");              # more settings
#   $node->safe_psql('postgres', server_sql('a', $holder, "timeout '2s'"));    # more options
package Servers;

use strict;
use warnings;
use Exporter qw(import);
use PostgreSQL::Test::Cluster;

our @EXPORT = qw(start_node server_sql);

# One with the extension; what follows the settings goes to initdb.
sub start_node
{
	my ($name, $settings, @init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(@init);
	$node->append_conf('postgresql.conf', q{
		shared_preload_libraries = 'streamfilter'
		streamfilter.shared_memory = '32MB'
		autovacuum = off
	} . ($settings // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION streamfilter');
	return $node;
}

# Where a producer finds it, by the name of a server; `host`: other than its socket.
sub server_sql
{
	my ($name, $holder, $options, $host) = @_;
	return sprintf q{
		CREATE SERVER %s FOREIGN DATA WRAPPER streamfilter OPTIONS (host '%s', port '%d', dbname 'postgres', %s);
		CREATE USER MAPPING FOR CURRENT_USER SERVER %1$s;}, $name, $host // $holder->host, $holder->port, $options;
}

1;
