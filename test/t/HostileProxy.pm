# A peer that cannot be trusted: passes on what a client of PostgreSQL and its server say, message by message, and
# changes what the server says as it is told. Runs in a process of its own, on loopback.
#
#   my $proxy = HostileProxy->start($socket);        # of the server; connect to $proxy->port, without SSL
#   $proxy->set('cut', 3);                           # from now on, for every connection
#   $proxy->counted;                                 # messages of the server since then
#   $proxy->stop;
#   HostileProxy->start($socket, delay => 0.005);    # seconds that everything is under way, each way
package HostileProxy;

use strict;
use warnings;
use IO::Handle;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC IPPROTO_TCP TCP_NODELAY);
use List::Util qw(max);
use Time::HiRes qw(sleep time);

# What can be done with a message of the server: each gets its type and body, and returns the bytes that are sent
# in its place; undef: the connection is cut. Name => [types that it concerns, function].
my $bad  = "\xff\xfe\xc3";    # no characters in UTF-8
my %tricks = (
	pass => [ '', undef ],
	linger => [ '', undef ],    # connections that the server ends stay open

	# Answers
	answers_short   => [ 'D', sub { row(map { s/[tf],//r } values_of($_[1])) } ],
	answers_long    => [ 'D', sub { row(map { s/\}/,t,t,t}/r } values_of($_[1])) } ],
	answers_bad     => [ 'D', sub { row(map { tr/tf/xy/r } values_of($_[1])) } ],
	answers_open    => [ 'D', sub { row(map { s/\}//r } values_of($_[1])) } ],
	answers_null    => [ 'D', sub { row(map { s/[tf]/NULL/r } values_of($_[1])) } ],
	answers_bytes   => [ 'D', sub { row(map { $bad } values_of($_[1])) } ],
	value_null      => [ 'D', sub { row(map { undef } values_of($_[1])) } ],
	value_empty     => [ 'D', sub { row(map { '' } values_of($_[1])) } ],
	value_huge      => [ 'D', sub { row(map { 'x' x 300_000 } values_of($_[1])) } ],

	# Rows
	row_twice       => [ 'D', sub { message(@_) . message(@_) } ],
	row_gone        => [ 'D', sub { '' } ],
	row_thousand    => [ 'D', sub { message(@_) x 1000 } ],
	columns_more    => [ 'D', sub { row(values_of($_[1]), 'x') } ],
	columns_none    => [ 'D', sub { row() } ],
	length_negative => [ 'D', sub { message('D', pack('n N', 1, 0x80000000)) } ],
	length_past_end => [ 'D', sub { message('D', pack('n N', 1, 100) . 'short') } ],
	columns_claimed => [ 'D', sub { message('D', pack('n', 30000)) } ],
	types_other     => [ 'T', sub { message('T', $_[1] =~ s/\x00{4}\x00\x00(\x00\x00..)/"\0" x 6 . pack('N', 23)/ser) } ],
	description_none => [ 'T', sub { message('n', '') } ],
	description_wide => [ 'T', sub { message('T', pack('n', 2) . substr($_[1], 2) . substr($_[1], 2)) } ],
	description_bad  => [ 'T', sub { message('T', pack('n', 9) . substr($_[1], 2)) } ],

	# States
	copy_in         => [ 'DC', sub { message('G', pack('C n', 0, 0)) . message(@_) } ],
	copy_in_forever => [ 'DC', sub { message('G', pack('C n', 0, 0)) x 1000 } ],
	copy_out        => [ 'DC', sub { message('H', pack('C n', 0, 0)) . message('d', 'x') x 10 . message(@_) } ],
	copy_both       => [ 'DC', sub { message('W', pack('C n', 0, 0)) . message(@_) } ],
	empty_query     => [ 'C', sub { message('I', '') } ],
	suspended       => [ 'C', sub { message('s', '') } ],
	complete_twice  => [ 'C', sub { message(@_) x 2 } ],
	complete_never  => [ 'C', sub { '' } ],
	ready_early     => [ '2', sub { message('Z', 'I') . message(@_) } ],
	ready_twice     => [ 'Z', sub { message(@_) x 2 } ],
	ready_never     => [ 'Z', sub { '' } ],
	bind_never      => [ '2', sub { '' } ],
	parse_again     => [ '2', sub { message('1', '') . message(@_) } ],
	type_unknown    => [ 'DC', sub { message('~', 'what') . message(@_) } ],
	length_short    => [ 'DC', sub { $_[0] . pack('N', 2) } ],
	length_giant    => [ 'DC', sub { $_[0] . pack('N', 0x7fffffff) . $_[1] } ],
	authentication  => [ 'DC', sub { message('R', pack('N', 3)) . message(@_) } ],
	garbage         => [ 'DC', sub { join '', map { chr int rand 256 } 1 .. 200 } ],

	# Errors
	error_bytes     => [ 'D', sub { error('ERROR', '22023', $bad x 40, $bad, $bad) } ],
	error_control   => [ 'D', sub { error('ERROR', '22023', "a\ab\e[2Jc\r", "\x01", "\x7f") } ],
	error_long      => [ 'D', sub { error('ERROR', '22023', "\xd1\x81" x 20_000, "x" x 100_000, 'y') } ],
	error_success   => [ 'D', sub { error('ERROR', '00000', 'all is well') } ],
	error_no_code   => [ 'D', sub { message('E', "SERROR\0VERROR\0Mno code\0\0") } ],
	error_bad_code  => [ 'D', sub { error('ERROR', "\xff%sn!", '%s%n%d') } ],
	error_nothing   => [ 'D', sub { message('E', "\0") } ],
	error_twice     => [ 'D', sub { error('ERROR', '22023', 'one') . error('ERROR', '22023', 'two') } ],
	error_formats   => [ 'D', sub { error('ERROR', '22023', '%s%n%d', '%n', '%s') } ],
	fatal_bytes     => [ 'DC', sub { error('FATAL', '57P01', $bad x 400) } ],
	panic           => [ 'DC', sub { error('PANIC', '58000', 'what now') } ],
	notices         => [ 'DC', sub { (message('N', "SNOTICE\0C00000\0M$bad\0\0") x 5000) . message(@_) } ],
	notifications   => [ 'DC', sub { (message('A', pack('N', 1) . "c\0p\0") x 5000) . message(@_) } ],
	parameters      => [ 'DC', sub { message('S', "client_encoding\0$bad\0") . message('S', "server_version\0-1\0") . message(@_) } ],
	tag_bytes       => [ 'C', sub { message('C', "$bad\0") } ],
	tag_open        => [ 'C', sub { message('C', 'SELECT 1') } ],
);

# What has no end: each gets the type and body of the first message that it concerns, once the connection is up or while it
# starts, and returns what is sent first, what is repeated until the other side hangs up, and seconds between two pieces of
# 64 kB: libpq reads all that comes of one large message without a pause.
my %floods = (
	flood_rows          => [ 'D', 1, sub { ('', message(@_)) } ],
	flood_row           => [ 'D', 1, sub { ('D' . pack('N n N', 4 + 2 + 4 + 1_000_000_000, 1, 1_000_000_000), 'x', 0.001) } ],
	flood_error         => [ 'DC', 1, sub { ('E' . pack('N', 1_000_000_000) . "SERROR\0VERROR\0C22023\0M", 'x', 0.001) } ],
	flood_notices       => [ 'DC', 1, sub { ('', message('N', "SNOTICE\0C00000\0Mwhat\0\0")) } ],
	flood_notifications => [ 'DC', 1, sub { ('', message('A', pack('N', 1) . "c\0p\0")) } ],
	flood_parameters    => [ 'DC', 1, sub { ('', parameters()) } ],
	flood_idle          => [ 'Z', 1, sub { (message(@_), parameters()) } ],
	flood_start         => [ 'Z', 0, sub { ('', parameters()) } ],
	flood_start_notices => [ 'Z', 0, sub { ('', message('N', "SNOTICE\0C00000\0Mwhat\0\0")) } ],
);
my $most = 200_000_000;    # bytes of a flood

sub floods { my @names = sort keys %floods; return @names; }

# libpq keeps each by its name, and searches for it among those before.
sub parameters { return join '', map { message('S', "p$_\0" . 'x' x 100 . "\0") } 1 .. 100_000; }

sub names { my @names = sort grep { !/^(pass|linger)$/ } keys %tricks; return @names; }

sub message { my ($type, $body) = @_; return $type . pack('N', 4 + length $body) . $body; }

sub row { return message('D', pack('n', scalar @_) . join '', map { defined $_ ? pack('N', length) . $_ : pack('N', 0xffffffff) } @_); }

sub values_of
{
	my ($body) = @_;
	my ($count, @values) = unpack 'n', $body;
	my $at = 2;
	for (1 .. $count)
	{
		my $length = unpack 'l>', substr $body, $at, 4;
		$at += 4;
		push @values, $length < 0 ? undef : substr $body, $at, $length;
		$at += $length if $length > 0;
	}
	return @values;
}

sub error
{
	my ($severity, $code, $message, $detail, $hint) = @_;
	return message('E', "S$severity\0V$severity\0C$code\0M$message\0"
		  . (defined $detail ? "D$detail\0" : '') . (defined $hint ? "H$hint\0" : '') . "\0");
}

# ---- the process ----------------------------------------------------------------------------------------

sub start
{
	my ($class, $path, %options) = @_;
	my $listener = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1', Proto => 'tcp') or die $!;
	socketpair(my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die $!;
	$_->autoflush(1) for $ours, $theirs;
	my $pid = fork // die $!;
	if ($pid == 0)
	{
		close $ours;
		require POSIX;
		# Whatever happens, nothing of the test that this is a copy of must be ended by it.
		local $SIG{CHLD} = 'IGNORE';
		eval { serve($listener, $theirs, $path, $options{delay} // 0); 1 } or print STDERR "# the proxy has ended: $@";
		POSIX::_exit(0);
	}
	close $theirs;
	return bless { pid => $pid, port => $listener->sockport, control => $ours }, $class;
}

sub port { return $_[0]{port}; }

sub order
{
	my ($self, $order) = @_;
	print { $self->{control} } "$order\n";
	my $answer = readline $self->{control};
	chomp $answer;
	return $answer;
}

# A trick by name for the messages of the server from number `first` on, counted from now over all connections;
# cut, cut_once: the connection is cut before that message; stall: it is kept back, with all that follow;
# WARNING:SQLSTATE, ERROR:…, FATAL:…: that one is said before it, once; FATAL:…:stall: and all that follow are kept back.
sub set { my ($self, $trick, $first) = @_; return $self->order("set $trick " . ($first // 1)); }

sub counted { return $_[0]->order('count'); }

# Ends all connections.
sub hang_up { return $_[0]->order('hang_up'); }

sub stop
{
	my ($self) = @_;
	# Closing is not enough: the processes of proxies that were started later have this socket, too.
	print { $self->{control} } "stop\n";
	close $self->{control};
	waitpid $self->{pid}, 0;
	return;
}

# Of one connection: {client, server}, with what the server has said and is not passed on yet, and whether the
# messages are past the start.
my ($trick, $first, $count) = ('pass', 1, 0);

# A process of its own sends them, so that this one goes on: nobody may read them.
sub flood
{
	my ($client, $type, $body) = @_;
	my ($first, $more, $pause) = $floods{$trick}[2]->($type, $body);
	$more x= 1 + 65_536 / length $more;
	return if (fork // die $!) > 0;
	write_all($client, $first);
	for (my $sent = 0; $sent < $most && write_all($client, $more); $sent += length $more) { sleep $pause if $pause; }
	POSIX::_exit(0);
}

# False: the connection is to be cut.
sub pass_on
{
	my ($pair) = @_;
	while (length $pair->{said} >= 5)
	{
		my ($type, $length) = unpack 'a N', $pair->{said};
		last if length $pair->{said} < 1 + $length;
		return 1 if $pair->{stalled};
		my $body = substr $pair->{said}, 5, $length - 4;
		++$count;
		if ($trick eq 'nonsense') { write_all($pair->{client}, "HTTP/1.1 400 Bad Request\r\n\r\n"); return 0; }
		if ($trick eq 'cut' && $count >= $first || $trick eq 'cut_once' && $count == $first) { return 0; }
		my ($severity, $code, $then) = $trick =~ /^(WARNING|ERROR|FATAL):(\w{5})(:stall)?$/;
		if ($severity && $count == $first)
		{
			my $signal = error($severity, $code, "signal $code");
			substr $signal, 0, 1, 'N' if $severity eq 'WARNING';
			return 0 unless write_all($pair->{client}, $signal) && $severity ne 'FATAL';
		}
		if (($trick eq 'stall' || $then) && $count >= $first) { $pair->{stalled} = 1; return 1; }
		substr $pair->{said}, 0, 1 + $length, '';
		my ($types, $change) = @{ $tricks{$trick} // $tricks{pass} };
		# The start of a connection is libpq's business.
		my $is_up = $pair->{is_up} // 0;
		$pair->{is_up} ||= $type eq 'Z';
		my $flood = $floods{$trick};
		if ($flood && $is_up == $flood->[1] && $count >= $first && index($flood->[0], $type) >= 0)
		{
			flood($pair->{client}, $type, $body);
			return 0;
		}
		my $bytes = $is_up && $count >= $first && index($types, $type) >= 0 ? $change->($type, $body) : message($type, $body);
		return 0 unless write_all($pair->{client}, $bytes);
		return 0 if $type eq 'E' && $bytes =~ /VFATAL/ && $trick ne 'linger';
	}
	return 1;
}

sub write_all
{
	my ($socket, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';
	while (length $bytes)
	{
		my $written = syswrite $socket, $bytes;
		return 0 unless defined $written;
		substr $bytes, 0, $written, '';
	}
	return 1;
}

sub serve
{
	my ($listener, $control, $path, $delay) = @_;
	my $select = IO::Select->new($listener, $control);
	my %pairs;
	my $end = sub {
		my ($pair) = @_;
		for my $socket (@$pair{qw(client server)}) { $select->remove($socket); delete $pairs{$socket}; close $socket; }
	};
	my @under_way;    # [when it arrives, socket it came from, bytes]; no bytes: its end
	while (1)
	{
		for my $socket ($select->can_read(@under_way ? max(0, $under_way[0][0] - time) : undef))
		{
			if ($socket == $control)
			{
				my $order = readline($control) // return;
				my ($what, @words) = split ' ', $order;
				return if $what eq 'stop';
				if ($what eq 'set')
				{
					($trick, $first, $count) = (@words, 0);
					# What was stalled goes on.
					for my $pair (grep { delete $_->{stalled} } values %pairs) { pass_on($pair) or $end->($pair); }
				}
				$end->($_) for $what eq 'hang_up' ? map { $pairs{$_} // () } keys %pairs : ();
				print $control "$count\n";
			}
			elsif ($socket == $listener)
			{
				my $client = $listener->accept or next;
				setsockopt $client, IPPROTO_TCP, TCP_NODELAY, 1;
				my $server = IO::Socket::UNIX->new(Peer => $path) or do { close $client; next };
				my $pair = { client => $client, server => $server, said => '' };
				@pairs{ $client, $server } = ($pair, $pair);
				$select->add($client, $server);
			}
			elsif ($pairs{$socket})
			{
				my $read = sysread $socket, my $bytes, 65536;
				$select->remove($socket) unless $read;
				push @under_way, [ time + $delay, $socket, $read ? $bytes : '' ];
			}
		}
		while (@under_way && $under_way[0][0] <= time)
		{
			my (undef, $socket, $bytes) = @{ shift @under_way };
			my $pair = $pairs{$socket} or next;
			my $is_server = $socket == $pair->{server};
			next if $bytes eq '' && $is_server && $trick eq 'linger';
			if ($bytes eq '') { $end->($pair); }
			elsif ($is_server) { $pair->{said} .= $bytes; pass_on($pair) or $end->($pair); }
			else { write_all($pair->{server}, $bytes) or $end->($pair); }
		}
	}
	return;
}

1;
