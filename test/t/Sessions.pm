# Background sessions whose query() gives back what the query printed and nothing else, and has seen its messages: that of
# minor releases before 15.12 and 16.8 leaves ends of lines behind, at times, and does not wait for messages. A test file that
# has such sessions begins with
#
#   use Sf;
package Sessions;
use strict;
use warnings;
use PostgreSQL::Test::Cluster;

my $count = 0;

sub query
{
	my ($self, $query) = @_;
	my ($begin, $end) = map { "query $count $_" } qw(begins ends);
	$count++;
	$self->{timeout}->start() if defined $self->{query_timer_restart};
	$self->{stdin} .= "\\echo '$begin'\n$query\n;\n\\echo '$end'\n\\warn '$end'\n";
	$self->{run}->pump()
	  until ($self->{stdout} =~ /\Q$end\E\n/ && $self->{stderr} =~ /\Q$end\E\n/) || $self->{timeout}->is_expired;
	die "psql query timed out\n" if $self->{timeout}->is_expired;
	my ($output) = $self->{stdout} =~ /\Q$begin\E\n(.*?)\n?\Q$end\E\n/s;
	$self->{stdout} = '';
	$self->{stderr} =~ s/\Q$end\E\n//;
	return wantarray ? ($output, $self->{stderr} eq '' ? 0 : 1) : $output;
}

# Sessions that count their queries have such a query() themselves.
if (my $theirs = PostgreSQL::Test::BackgroundPsql->can('query'))
{
	no warnings 'redefine';
	*PostgreSQL::Test::BackgroundPsql::query = sub { exists $_[0]{query_cnt} ? goto &$theirs : goto &query };
}

1;
