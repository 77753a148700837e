# Every query of examples/monitoring runs, as a role that may only monitor, and gives the columns that are said of it;
# the alerts find what they are about, and nothing in a sound server.
use Sf;
use File::Basename;
use IO::Socket::INET;
use JSON::PP;
use Time::HiRes qw(usleep);

my $dir = "$root/examples/monitoring";

my $node = start_node('monitoring', q{
streamfilter.shared_memory = '16MB'
streamfilter.dynamic_memory = 0
fsync = off
});
sql(q{
	CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '10000', fpr '0.01', overfull 'discard');
	CREATE TABLE events (id int);
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	INSERT INTO events SELECT generate_series(1, 1000)});

# The blocks "KEY: |" of a YAML file, with the lines before each back to the last block.
sub blocks_of
{
	my ($file, $key) = @_;
	my (@blocks, $indent, $before);
	$before = '';
	for my $line (split /\n/, slurp_file($file))
	{
		if (defined $indent && $line =~ /^(\s*)\S/ && length($1) > $indent) { $blocks[-1]{text} .= "$line\n"; next }
		undef $indent;
		if ($line =~ /^(\s*)\Q$key\E: \|$/)
		{
			$indent = length $1;
			push @blocks, { text => '', before => $before };
			$before = '';
		}
		else { $before .= "$line\n" }
	}
	$_->{after} = '' for @blocks;
	return @blocks;
}

sub columns_of
{
	my ($query) = @_;
	my ($status, $out, $err) = $node->psql('postgres', "SELECT * FROM ($query) AS q LIMIT 0", extra_params => [ '-U', 'monitor', '-At', '-P', 'tuples_only=off', '-P', 'footer=off' ]);
	is($status, 0, 'runs') or diag("$query\n$err");
	my @columns = sort split /\|/, $out;
	return @columns;
}

# --- Exporters -----------------------------------------------------------------------------------------

my $text = slurp_file("$dir/postgres_exporter.yml");
my @exported = blocks_of("$dir/postgres_exporter.yml", 'query');
is(scalar @exported, 2, 'postgres_exporter has its queries');
my @parts = split /^(?=streamfilter\w*:$)/m, $text;
shift @parts;
for my $i (0 .. $#exported)
{
	my @columns = $parts[$i] =~ /^    - (\w+): \{usage/mg;
	is_deeply([ columns_of($exported[$i]{text}) ], [ sort @columns ], 'postgres_exporter: its columns are described');
	is(sql("SELECT count(*) FROM ($exported[$i]{text}) q GROUP BY to_jsonb(q) - 'value' - 'done' - 'total' HAVING count(*) > 1"), '',
		'... and its labels tell rows apart');
}
my ($collector) = blocks_of("$dir/sql_exporter.yml", 'query');
my ($labels) = $collector->{before} =~ /key_labels: \[(.*?)\]/;
is_deeply([ columns_of($collector->{text}) ], [ sort('value', split /, /, $labels) ], 'sql_exporter: its columns are described');

# --- The exporter itself, where it is installed ------------------------------------------------------------

# postgres_exporter adds this label to everything.
unlike($text, qr/^    - server: \{usage: LABEL/m, 'postgres_exporter: no label is its own');

# What a program serves at /metrics, when it does.
sub scrape
{
	my ($port, @command) = @_;
	my $log = "$PostgreSQL::Test::Utils::log_path/" . basename($command[0]) . '.log';
	my $program = IPC::Run::start(\@command, '<', \undef, '>', $log, '2>&1');
	my $page = '';
	for my $try (1 .. 300)
	{
		my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 5);
		if ($socket)
		{
			print $socket "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
			local $/;
			$page = <$socket> // '';
		}
		last if $page =~ /^streamfilter_/m || !$program->pumpable;
		usleep(100_000);
	}
	$program->kill_kill;
	diag($page, slurp_file($log)) if $page !~ /^streamfilter_/m;
	return $page;
}

# "name filter" => value, of a page and of the view.
sub values_of { my ($page) = @_; return { map { /\bname="(\w+)"/ ? ("$1 " . (/\bfilter="([^"]*)"/)[0] => (split)[-1] + 0) : () } $page =~ /^(streamfilter_?(?:value)?\{.*)$/mg }; }

sub installed { my ($program) = @_; return (grep { -x } map { "$_/$program" } split /:/, $ENV{PATH})[0]; }

my @wanted = map { [ split /\|/ ] } split /\n/, sql(q{
	SELECT name || ' ' || coalesce(labels ->> 'filter', ''), value FROM streamfilter_metrics
	WHERE name ~ 'accepted|asked_keys|discarded|filter_memory|loaded'});
cmp_ok(scalar @wanted, '>=', 4, 'there are values to be exported');

SKIP:
{
	my $exporter = installed('prometheus-postgres-exporter') // installed('postgres_exporter');
	skip 'postgres_exporter is not installed', 1 unless $exporter;
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	local $ENV{DATA_SOURCE_NAME} = 'postgresql://monitor@/postgres?sslmode=disable&host=' . $node->host . '&port=' . $node->port;
	my $exported = values_of(scrape($port, $exporter, "--web.listen-address=127.0.0.1:$port", "--extend.query-path=$dir/postgres_exporter.yml"));
	is(join(', ', map { $_->[0] } grep { ($exported->{ $_->[0] } // '') ne $_->[1] + 0 } @wanted), '', 'postgres_exporter exports what the view says');
}

# --- Grafana -------------------------------------------------------------------------------------------

my $dashboard = decode_json(slurp_file("$dir/grafana.json"));
cmp_ok(scalar @{ $dashboard->{panels} }, '>=', 8, 'the dashboard has panels');
for my $panel (@{ $dashboard->{panels} })
{
	for my $target (@{ $panel->{targets} })
	{
		my ($status, $out, $err) = $node->psql('postgres', $target->{rawSql}, extra_params => [ '-U', 'monitor' ]);
		is($status, 0, "dashboard: $panel->{title}") or diag($err);
	}
}

# --- Alerts --------------------------------------------------------------------------------------------

my @alerts = blocks_of("$dir/alerts.yml", 'query');
my %metric = map { $_ => 1 } split /\n/, sql('SELECT DISTINCT name FROM streamfilter_metrics');
my $view = sql(q{SELECT pg_get_viewdef('streamfilter_metrics'::regclass)
	|| string_agg(quote_literal(metric), ' ') FROM streamfilter_counters()});
my %query;
for my $alert (@alerts)
{
	my ($name) = $alert->{before} =~ /- alert: (\w+)/;
	$query{$name} = $alert->{text};
	is($node->safe_psql('postgres', $alert->{text}, extra_params => [ '-U', 'monitor' ]), '', "$name: nothing in a sound server");
	for my $used ($alert->{before} =~ /name=~?"(\w+)"/g) { like($view, qr/'\Q$used\E'/, "$name: $used is a metric") }
}
cmp_ok(scalar keys %query, '>=', 8, 'alerts were looked at');

# Prometheus itself says whether it would load them.
my ($promtool) = grep { -x } map { "$_/promtool" } split /:/, $ENV{PATH};
SKIP:
{
	skip 'promtool is not installed', 1 if !defined $promtool;
	my ($out, $err);
	my $loads = IPC::Run::run([ $promtool, 'check', 'rules', "$dir/alerts.yml" ], '>', \$out, '2>', \$err);
	ok($loads, 'promtool takes the rules') or diag($out . $err);
}

sql(q{
	INSERT INTO events SELECT generate_series(1001, 200000);
	INSERT INTO events SELECT generate_series(200001, 210000);
	INSERT INTO events SELECT generate_series(210001, 220000);
	CREATE FOREIGN TABLE large (id int) SERVER streamfilter OPTIONS (memory '15MB');
	INSERT INTO large VALUES (1);
	CREATE FOREIGN TABLE few (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '64kB', keys '10000000', max '1');
	INSERT INTO few VALUES (1)});
like(sql($query{FilterExceedsItsRate}), qr/^public\.seen$/m, 'a filter that is too full is told');
like(sql($query{FilterHoldsTooMuch}), qr/^public\.seen$/m, '... that it holds too much');
like(sql($query{FilterLosesRows}), qr/^public\.seen$/m, '... and that it loses rows');
like(sql($query{FilterRemembersFewerKeysThanAsked}), qr/^public\.few$/m, 'a filter that is too small');
isnt(sql($query{FilterMemoryNearlyUsed} =~ s/NULL AS filter/1/r), '', 'memory that is used up');

done();
