# docs/engines.md, from nothing to three workers of Citus: its blocks as they are printed, but for the ports.
use Sf;
use IO::Socket::INET;
use Needs;

my ($share) = run_command([ 'pg_config', '--sharedir' ]);
needs(-e "$share/extension/citus.control", 'Citus is not installed', 4);

# The first of four ports that nobody has.
sub four_ports
{
	for (my $first = 20000 + $$ % 10000; $first < 40000; $first += 4)
	{
		my @taken = map { IO::Socket::INET->new(Listen => 1, LocalAddr => 'localhost', LocalPort => $first + $_, Proto => 'tcp') // () } 0 .. 3;
		close $_ foreach @taken;
		return $first if @taken == 4;
	}
	die 'no ports';
}

my $document = slurp_file("$root/docs/engines.md");
my ($section) = $document =~ /^### From nothing to three workers\n(.*?)^### /ms;
my ($shell) = $section =~ /^```sh\n(.*?)^```/ms;
my ($statements) = $section =~ /^```sql\n(.*?)^```/ms;
my $port = four_ports();
$shell =~ s/^PORT=9700$/PORT=$port/m or die 'no port';
$statements =~ s/\b970(\d)\b/$port + $1/ge;

my $folder = PostgreSQL::Test::Utils::tempdir();
append_to_file("$folder/nodes.sh", "set -e\ncd '$folder'\n$shell");
append_to_file("$folder/coordinator.sql", $statements);
command_ok([ 'bash', "$folder/nodes.sh" ], 'four servers');
my ($out, $said) = run_command([ 'psql', '-XAt', '-v', 'ON_ERROR_STOP=1', '-h', 'localhost', '-p', $port, '-U', 'postgres', '-f', "$folder/coordinator.sql", 'postgres' ]);
like($out, qr/^3$/m, 'the filter is on three workers');
like($out, qr/^500$/m, 'and repeats are discarded') or diag($said);
unlike($said, qr/ERROR|WARNING/, 'nothing else is to be done') or diag($said);

END
{
	local $?;
	if (defined $folder) { system_log('pg_ctl', '-D', "$folder/node$_", '-m', 'immediate', 'stop') foreach grep { -d "$folder/node$_" } 0 .. 3 }
}
done_testing();
