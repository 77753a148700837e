# SQL by libpq in the test's own process, in place of a psql for each call, whose start takes longer than most of what tests
# ask. A call has a session of its own as before, which has ended when it returns, and gives what psql gives: output, messages,
# status. What only psql can do goes to psql, and everything does where FFI::Platypus is not installed: psql's commands, COPY
# through it, connection strings, timeouts and other arguments.
package Queries;

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time sleep);

# Of PQstatus, and of PQresultStatus.
use constant { CONNECTION_OK => 0, TUPLES_OK => 2, FATAL_ERROR => 7 };
use constant EXIT_SECONDS => 10;    # that a backend may take to end

my $messages;                       # of the running call
my $receiver;                       # of notices

sub load_libpq
{
	return 0 unless eval { require FFI::Platypus; 1 };
	my $ffi = FFI::Platypus->new(api => 1, lib => 'libpq.so.5');
	$ffi->attach(@$_)
		for [ PQconnectdb => ['string'] => 'opaque' ], [ PQstatus => ['opaque'] => 'int' ], [ PQfinish => ['opaque'] => 'void' ],
		[ PQerrorMessage => ['opaque'] => 'string' ], [ PQsocket => ['opaque'] => 'int' ],
		[ PQsetNoticeProcessor => [ 'opaque', '(opaque,string)->void', 'opaque' ] => 'opaque' ],
		[ PQsendQuery => [ 'opaque', 'string' ] => 'int' ], [ PQconsumeInput => ['opaque'] => 'int' ], [ PQisBusy => ['opaque'] => 'int' ],
		[ PQgetResult => ['opaque'] => 'opaque' ], [ PQclear => ['opaque'] => 'void' ], [ PQresultStatus => ['opaque'] => 'int' ],
		[ PQresultErrorMessage => ['opaque'] => 'string' ], [ PQntuples => ['opaque'] => 'int' ], [ PQnfields => ['opaque'] => 'int' ],
		[ PQgetvalue => [ 'opaque', 'int', 'int' ] => 'string' ];
	$receiver = $ffi->closure(sub { $messages .= prefix() . $_[1] });
	return 1;
}

# ---- statements of a script, as psql parts them ---------------------------------------------------------------

my $line;                           # on which the running statement ends
sub prefix { return "psql:<stdin>:$line: " }

# A comment may hold others. What parts statements is the first group.
my $comment = qr{ -- [^\n]* | (?<comment> / \* (?: [^*/]+ | \*(?!/) | /(?!\*) | (?&comment) )* \*/ ) }xs;
my $token   = qr{ \G (?: ([();]) | [^'"\$\-/();]+ | ' (?: [^']+ | '' )* ' | " (?: [^"]+ | "" )* "
	| (?<![\w\$]) \$ (?<tag> (?: [A-Za-z_]\w* )? ) \$ .*? \$ \k<tag> \$ | $comment | . ) }xs;
my $before = qr{ ^ (?: \s | $comment )+ }xs;

# Pairs of a statement and the number of its last line.
sub statements
{
	my ($sql) = @_;
	my ($start, $depth, @found) = (0, 0);
	my $add = sub {
		my ($end) = @_;
		my $statement = substr($sql, $start, $end - $start) =~ s/$before//r;
		push @found, [ $statement, 1 + (substr($sql, 0, $end) =~ tr/\n//) ] if $statement !~ /^;?$/;
		$start = $end;
	};
	while ($sql =~ /$token/gc)
	{
		my $sign = $1 // next;
		$depth++ if $sign eq '(';
		$depth-- if $sign eq ')' && $depth;
		$add->(pos $sql) if $sign eq ';' && !$depth;
	}
	$add->(length $sql);
	return @found;
}

# ---- a session ---------------------------------------------------------------------------------------------------

sub wait_readable
{
	my ($socket, $seconds) = @_;
	vec(my $set = '', $socket, 1) = 1;
	return select($set, undef, undef, $seconds);
}

sub next_result
{
	my ($connection) = @_;
	while (PQisBusy($connection))
	{
		wait_readable(PQsocket($connection), 1);
		last unless PQconsumeInput($connection);
	}
	return PQgetResult($connection);
}

# As `psql -At`.
sub rows
{
	my ($result) = @_;
	my $columns = PQnfields($result) - 1;
	return join '', map { my $row = $_; join('|', map { PQgetvalue($result, $row, $_) // '' } 0 .. $columns) . "\n" } 0 .. PQntuples($result) - 1;
}

# True if all went well.
sub execute
{
	my ($connection, $statement, $output) = @_;
	my $fine = PQsendQuery($connection, $statement);
	$messages .= prefix() . PQerrorMessage($connection) unless $fine;
	while (my $result = next_result($connection))
	{
		my $status = PQresultStatus($result);
		$$output .= rows($result) if $status == TUPLES_OK;
		if ($status >= FATAL_ERROR) { $messages .= prefix() . PQresultErrorMessage($result); $fine = 0 }
		PQclear($result);
	}
	return $fine;
}

# Waits for the end of its process, which closes its end of the connection last.
sub finish
{
	my ($connection) = @_;
	my $socket = PQsocket($connection);
	my $alive = open my $copy, '<&', $socket;
	PQfinish($connection);
	my $until = time + EXIT_SECONDS;
	while ($alive && (my $left = $until - time) > 0)
	{
		last if wait_readable(fileno $copy, $left) && !sysread $copy, my $rest, 4096;
	}
	return;
}

# Gives psql's exit status, output and messages.
sub run
{
	my ($connstr, $sql, $stop) = @_;
	my ($output, $status) = ('', 0);
	($messages, $line) = ('', 0);
	utf8::encode($sql) if utf8::is_utf8($sql);
	my $connection = PQconnectdb($connstr);
	if (PQstatus($connection) != CONNECTION_OK)
	{
		$messages = 'psql: error: ' . PQerrorMessage($connection);
		PQfinish($connection);
		return (2, '', $messages);
	}
	PQsetNoticeProcessor($connection, $receiver, undef);
	for (statements($sql))
	{
		(my $statement, $line) = @$_;
		my $fine = execute($connection, $statement, \$output);
		if (PQstatus($connection) != CONNECTION_OK) { $messages .= prefix() . "error: connection to server was lost\n"; $status = 2 }
		elsif (!$fine && $stop) { $status = 3 }
		last if $status;
	}
	finish($connection);
	return ($status, $output, $messages);
}

# ---- in place of the methods of a server ------------------------------------------------------------------------

my %known = map { $_ => 1 } qw(stdout stderr on_error_stop on_error_die);

sub only_psql_can
{
	my ($sql, %params) = @_;
	return 1 if !defined $sql || grep { !$known{$_} } keys %params;
	return $sql =~ /\\|(?<![:\w]):['"A-Z]/ || $sql =~ /\b(?:FROM|TO)\s+STD(?:IN|OUT)\b/i || $sql =~ /\bBEGIN\s+ATOMIC\b/i;
}

sub psql
{
	my ($original, $node, $database, $sql, %params) = @_;
	return $original->($node, $database, $sql, %params) if only_psql_can($sql, %params);
	local %ENV = $node->_get_env();
	my ($status, $output, $said) = run($node->connstr($database), $sql, $params{on_error_stop} // 1);
	chomp($output, $said);
	print $output if !ref $params{stdout} && !wantarray;
	print STDERR $said if !ref $params{stderr} && !wantarray;
	${ $params{stdout} } = $output if ref $params{stdout};
	${ $params{stderr} } = $said if ref $params{stderr};
	if ($status && $params{on_error_die})
	{
		my $by = "while running 'psql -XAtq -d " . $node->connstr($database) . " -f -'";
		die "connection error: '$said'\n$by" if $status == 2;
		die "error running SQL: '$said'\n$by with sql '$sql'";
	}
	return wantarray ? ($status, $output, $said) : $status;
}

sub poll_query_until
{
	my ($original, $node, $database, $query, $expected) = @_;
	return $original->($node, $database, $query, $expected) if only_psql_can($query) || $query !~ /^\s*(?:SELECT|VALUES|WITH)\b/i;
	local %ENV = $node->_get_env();
	my ($output, $said);
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		(undef, $output, $said) = run($node->connstr($database), $query, 0);
		chomp($output, $said);
		return 1 if $output eq ($expected // 't') && $said eq '';
		sleep(0.1);
	}
	Test::More::diag("poll_query_until: $query\nexpected: " . ($expected // 't') . "\nlast:     $output\nmessages: $said");
	return 0;
}

if (load_libpq())
{
	no warnings 'redefine';
	my $psql = PostgreSQL::Test::Cluster->can('psql');
	my $poll = PostgreSQL::Test::Cluster->can('poll_query_until');
	*PostgreSQL::Test::Cluster::psql             = sub { return psql($psql, @_) };
	*PostgreSQL::Test::Cluster::poll_query_until = sub { return poll_query_until($poll, @_) };
}

1;
