# A coordinator and workers of Citus, where it is installed. A test file begins with
#
#   use Sf;
#   use CitusCluster;
#   my $citus = CitusCluster->new(workers => 3, checks => 40);    # the file's, skipped where Citus is not installed
package CitusCluster;
use strict;
use warnings;
use Needs;
use PostgreSQL::Test::Cluster;
use Test::More;
use Time::HiRes qw(sleep time);

my $SETTINGS = q{
	shared_preload_libraries = 'citus,streamfilter'
	shared_buffers = 16MB
	fsync = off
	max_connections = 60
	wal_level = logical
	max_wal_senders = 10
	max_replication_slots = 10
	max_prepared_transactions = 20
	max_worker_processes = 32
	max_wal_size = 200MB
	streamfilter.shared_memory = 32MB
	citus.shard_count = 6
	citus.enable_statistics_collection = off
	citus.enable_unsafe_triggers = on
	citus.defer_shard_delete_interval = 500};

# What the nodes have said, last, of a test that fails: a run that is gone can be explained by its output only.
my @clusters;

END
{
	my $status = $?;
	if ($status != 0 || !Test::More->builder->is_passing)
	{
		for my $node (map { @{ $_->{nodes} } } @clusters)
		{
			my @said = -e $node->logfile ? grep { /(?:WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|STATEMENT|terminated by signal)/ }
			  split /\n/, PostgreSQL::Test::Utils::slurp_file($node->logfile) : ();
			diag(join "\n", $node->name . ':', @said[ ($#said < 40 ? 0 : $#said - 40) .. $#said ]);
		}
	}
	$? = $status;
}

# workers => how many; spare => how many of them Citus does not know yet; settings => more of them; checks => of the file, see Needs
sub new
{
	my ($class, %options) = @_;
	my $self = bless { settings => $options{settings} // '', checks => $options{checks}, nodes => [] }, $class;
	push @clusters, $self;
	my $coordinator = $self->start_node;
	my $last = $options{workers} // 1;
	$self->start_node foreach 1 .. $last;
	$coordinator->safe_psql('postgres',
		sprintf q{SELECT citus_set_coordinator_host('%s', %d)}, $coordinator->host, $coordinator->port);
	$self->add_node($_) foreach 1 .. $last - ($options{spare} // 0);
	return $self;
}

# Another node, which Citus does not know yet.
sub start_node
{
	my ($self) = @_;
	my $number = @{ $self->{nodes} };
	my $node = PostgreSQL::Test::Cluster->new($number == 0 ? 'coordinator' : "worker$number");
	$node->init;
	if ($number == 0)
	{
		$node->start;
		my $installed = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'});
		$node->stop('immediate');
		needs($installed ne '0', 'Citus is not installed', $self->{checks});
	}
	$node->append_conf('postgresql.conf', "$SETTINGS\n$self->{settings}\ncitus.local_hostname = '" . $node->host . "'");
	$node->start;
	# Newer minor releases let none but listed libraries decode; Citus splits shards by its own.
	my $listed = $node->safe_psql('postgres', q{SELECT setting FROM pg_settings WHERE name = 'output_plugin_libraries'});
	if ($listed ne '')
	{
		$node->append_conf('postgresql.conf', "output_plugin_libraries = '$listed, citus'");
		$node->restart;
	}
	$node->safe_psql('postgres', 'CREATE EXTENSION citus; CREATE EXTENSION streamfilter');
	push @{ $self->{nodes} }, $node;
	return $node;
}

# 0: the coordinator; then the workers.
sub node { my ($self, $number) = @_; return $self->{nodes}[$number]; }

sub coordinator { my ($self) = @_; return $self->{nodes}[0]; }

sub add_node
{
	my ($self, $number) = @_;
	my $node = $self->node($number);
	return $self->query(sprintf q{SELECT citus_add_node('%s', %d)}, $node->host, $node->port);
}

# On the coordinator.
sub query
{
	my ($self, $query) = @_;
	return $self->coordinator->safe_psql('postgres', $query);
}

# What a query says on every node, with those that Citus does not know yet: "a a a".
sub nodes
{
	my ($self, $query) = @_;
	return join ' ', map { $_->safe_psql('postgres', $query) } @{ $self->{nodes} };
}

# Its errors and messages.
sub messages
{
	my ($self, $query, $node) = @_;
	my ($status, $out, $error) = ($node // $self->coordinator)->psql('postgres', $query);
	return $error;
}

# On every node.
sub everywhere
{
	my ($self, $query) = @_;
	return $self->query("SELECT bool_and(success) FROM run_command_on_all_nodes(\$everywhere\$$query\$everywhere\$)");
}

sub place
{
	my ($self, $number) = @_;
	my $node = $self->node($number);
	return sprintf q{'%s', %d}, $node->host, $node->port;
}

# Waits until what moves have left behind is gone, but on nodes that were removed: there it stays for ever. Citus refuses the next
# move of a shard that still lies at its goal.
sub clean_up
{
	my ($self) = @_;
	$self->query('CALL citus_cleanup_orphaned_resources()');
	$self->coordinator->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_dist_cleanup WHERE node_group_id IN (SELECT groupid FROM pg_dist_node)') or die 'shards are not cleaned up';
	return;
}

# Moves a shard of the table from wherever it is to the worker after that. mode: block_writes, force_logical
sub move_shard
{
	my ($self, $table, $index, $mode) = @_;
	$self->clean_up;
	my ($shard, $host, $port) = split /\|/, $self->query(
		"SELECT shardid, nodename, nodeport FROM citus_shards WHERE table_name = '$table'::regclass ORDER BY shardid OFFSET $index LIMIT 1");
	my @workers = 1 .. $#{ $self->{nodes} };
	my ($from) = grep { $self->node($_)->port == $port } 0 .. $#{ $self->{nodes} };
	my $to = $from % @workers + 1;
	my ($status, $out, $error) = $self->coordinator->psql('postgres',
		sprintf q{SELECT citus_move_shard_placement(%s, %s, %s, shard_transfer_mode => '%s')},
		$shard, $self->place($from), $self->place($to), $mode);
	return $status == 0 ? '' : $error;
}

# How many rows the query counts on shards and their shell, and by how many they differ from the keys: "rows|keys".
sub counts
{
	my ($self, $table, $key) = @_;
	return $self->query("SELECT count(*), count(DISTINCT $key) FROM $table");
}

1;
