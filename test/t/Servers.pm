# Servers with the extension, and how a producer finds those that hold its slices. A test fails if a server that it has made
# has crashed unawares, which is why every file that makes one uses this.
#
#   use Sf;
#   my $node   = start_node('producer');
#   my $holder = start_node('a', "max_connections = 12\n");              # more settings
#   $node->safe_psql('postgres', server_sql('a', $holder, "timeout '2s'"));    # more options
#   expect_crash($node);                                                # one more process of it is about to be killed
package Servers;

use strict;
use warnings;
use Exporter qw(import);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Queries;
use Test::More;
use Time::HiRes qw(sleep);

our @EXPORT = qw(start_node made server_sql crashes expect_crash wait_for_server await_launcher);

my $main = $$;
my (@nodes, %expected);

{
	no warnings 'redefine';
	my $new = PostgreSQL::Test::Cluster->can('new');
	*PostgreSQL::Test::Cluster::new = sub { my $node = $new->(@_); push @nodes, $node; return $node; };
}

# Those that the file has made, the first one first.
sub made { return @nodes; }

END
{
	my $status = $?;
	for my $node ($$ == $main ? @nodes : ())
	{
		my @said     = crashes($node);
		my $signals  = join ' ', sort map { / by signal (\d+)/ ? $1 : 'other' } @said;
		my $expected = join ' ', sort @{ $expected{ $node->name } // [] };
		next if $signals eq $expected;
		fail('server ' . $node->name . ': processes that crashed');
		diag("by signals: $signals\nexpected:   $expected", map { "\n  $_" } @said);
	}
	$? = $status;
}

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

# Exit codes 0 and 1 are the ordinary end of a process.
my $crash = qr/^[\w ]+ (?:"[^"]*" )?\(PID \d+\) (?:was terminated by signal|exited with exit code (?![01]$))/;

# What the log of a server tells of processes of it that crashed.
sub crashes
{
	my ($node) = @_;
	my @said;
	for my $file (grep { -e } $node->logfile, glob($node->data_dir . '/log/*.log'))
	{
		open my $log, '<', $file or die "$file: $!";
		while (<$log>)
		{
			push @said, $_ if /^TRAP:/ || /^[^\t]*?\b([A-Z]+\d?):  (.*)/ && ($1 eq 'PANIC' || $1 eq 'LOG' && $2 =~ $crash);
		}
		close $log;
	}
	chomp @said;
	return @said;
}

# Says that one more process of it is ended by a signal. The log must tell of all of them, and of nothing else.
sub expect_crash
{
	my ($node, $signal) = @_;
	push @{ $expected{ $node->name } }, $signal // 9;
	return;
}

# Waits until it is back after all of them. Others can connect for a moment before it notices that a process has been killed.
sub wait_for_server
{
	my ($node) = @_;
	for (1 .. 600)
	{
		# psql that is refused may be gone before it is told what to ask.
		return 1 if crashes($node) >= @{ $expected{ $node->name } // [] } && (eval { $node->psql('postgres', 'SELECT 1') } // 1) == 0;
		sleep 0.1;
	}
	return 0;
}

# Waits until the launcher of restore workers has gone through the databases. Needs log_min_messages = debug1.
sub await_launcher
{
	my ($node) = @_;
	for (1 .. 1800)
	{
		return if (split /starting PostgreSQL/, slurp_file($node->logfile))[-1] =~ /unregistering background worker "streamfilter restore launcher"/;
		sleep 0.1;
	}
	die 'no launcher ends';
}

1;
