# Sessions that insert keys into filters (key int) and wait for each other, for tests of keys in flight. They ask the server that
# those of Sf ask.
#
#   use Sf;
#   use WaitingSessions;
#   my $session = session();
#   insert_and_wait($session, 'seen', 1);    # another transaction has added 1, and is under way
#   is(outcome($session), 'a repeat');       # it has committed
package WaitingSessions;

use Sf;
use Exporter qw(import);

our @EXPORT = qw(session insert_within insert_at_once insert_and_wait outcome stat_is);

sub session
{
	my $session = Sf::server()->background_psql('postgres', on_error_stop => 0);
	$session->query_safe(q{SET application_name = 'session'; SET lock_timeout = 0});
	return $session;
}

# Inserts keys on its own; the keys that were new, or 'waits' if that would have to wait so long.
sub insert_within
{
	my ($timeout, $filter, @keys) = @_;
	my ($status, $out, $err) = Sf::server()->psql('postgres', "SET lock_timeout = '$timeout'; INSERT INTO $filter VALUES "
		  . join(', ', map { "($_)" } @keys) . ' RETURNING key');
	return $err =~ /lock timeout/ ? 'waits' : join(' ', split /\n/, $out);
}

sub insert_at_once { return insert_within('100ms', @_); }

# Lets a session begin to insert a key, and returns when it waits.
sub insert_and_wait
{
	my ($session, $filter, $key) = @_;
	$session->query_until(qr//, "INSERT INTO $filter VALUES ($key) RETURNING 'new: ' || key;\n");
	wait_for(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'session' AND wait_event = 'transactionid'});
	return;
}

# What the session got in the end.
sub outcome
{
	my ($session) = @_;
	return $session->query(q{SELECT 'end'}) =~ /new: (\d+)/ ? "new: $1" : 'a repeat';
}

sub stat_is
{
	my ($filter, $columns, $expected, $name) = @_;
	is(sql("SELECT $columns FROM streamfilter_stats WHERE filter = '$filter'::regclass"), $expected, $name);
	return;
}

1;
