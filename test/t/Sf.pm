# What every test here begins with. `use Sf;` is `use strict; use warnings;` with Test::More, PostgreSQL::Test::Cluster and ::Utils,
# Servers, Queries and Sessions, and gives $root, the folder of the project, and the functions below. These ask database postgres of
# the first server that the file has made, or what on() names; a server or the name of a database behind the other arguments names
# another one for that call.
#
#   use Sf;
#   my $node = start_node('main', "fsync = off\n");        # of Servers
#   is(sql('SELECT 1'), 1, 'what a query gives');
#   sql('CREATE TABLE t (id int)', 'other');               # in another database
#   is(sql('SELECT count(*) FROM t', $standby), 0, '…');   # on another server
#   like(said('SELEC'), qr/syntax error/, 'errors, warnings and notices of statements');
#   is(known('seen', 1, 100), 100, 'how many of the keys 1 to 100 the filter knows');
#   is(knows('seen', 7), 't', 'whether it knows one');
#   wait_for('SELECT count(*) = 0 FROM pg_prepared_xacts');    # dies if that does not come true
#   my $session = open_session('BEGIN; DELETE FROM t');    # a session of its own, which goes on after errors; a server may follow
#   end_session($session, 'COMMIT');
#   on($other);                                            # from here on; on($other, 'database')
#   crash();                                               # the server stops at once, and starts again
#   my $standby = start_standby('standby', $settings);     # of a backup that is made for it
#   done();                                                # stops the servers that still run; the last statement of a file
package Sf;

use strict;
use warnings;
use Exporter ();
use File::Basename ();
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Queries;
use Servers;
use Sessions;
use Test::More;

our @EXPORT = qw($root on sql said known knows wait_for open_session end_session crash start_standby done);
our $root = File::Basename::dirname(File::Basename::dirname(File::Basename::dirname(File::Spec->rel2abs(__FILE__))));

sub import
{
	strict->import;
	warnings->import;
	Exporter::export($_, scalar caller) for qw(Test::More PostgreSQL::Test::Utils Servers Sf);
	return;
}

my ($asked, $database);

sub on
{
	($asked, $database) = @_;
	return;
}

sub server { my ($given) = grep { ref } @_; return $given // $asked // (made())[0]; }

# That and its database.
sub place
{
	my ($given) = grep { ref } @_;
	my ($name)  = grep { defined && !ref } @_;
	return (server(@_), $name // ($given ? 'postgres' : $database // 'postgres'));
}

sub sql
{
	my ($statements, @where) = @_;
	my ($node, $name) = place(@where);
	return $node->safe_psql($name, $statements);
}

sub said
{
	my ($statements, @where) = @_;
	my ($node, $name) = place(@where);
	my ($status, $out, $messages) = $node->psql($name, $statements);
	return $messages;
}

sub known
{
	my ($filter, $from, $to, @where) = @_;
	return sql("SELECT count(*) FROM generate_series($from, $to) i WHERE streamfilter_test('$filter', i)", @where);
}

sub knows
{
	my ($filter, $key, @where) = @_;
	return sql("SELECT streamfilter_test('$filter', $key)", @where);
}

sub wait_for
{
	my ($query, @where) = @_;
	my ($node, $name) = place(@where);
	return $node->poll_query_until($name, $query) || die "does not come true: $query\n";
}

sub open_session
{
	my ($statements, @where) = @_;
	my ($node, $name) = place(@where);
	my $session = $node->background_psql($name, on_error_stop => 0);
	$session->query_safe($statements) if defined $statements;
	return $session;
}

sub end_session
{
	my ($session, $statements) = @_;
	$session->query_safe($statements) if defined $statements;
	$session->quit;
	return;
}

sub crash
{
	my $node = server(@_);
	$node->stop('immediate');
	$node->start;
	return;
}

sub start_standby
{
	my ($name, $settings, @where) = @_;
	my $primary = server(@where);
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->append_conf('postgresql.conf', $settings) if defined $settings;
	$standby->start;
	return $standby;
}

sub done
{
	$_->stop for reverse made();
	done_testing();
	return;
}

1;
