# Producers that share the slices of a filter must agree on its definition: otherwise they would find no repeats of each
# other, and get no error.
# flavours: faults
use Sf;

my %node;
for my $name (qw(a b first second))
{
	my $node = start_node($name, q{streamfilter.shared_memory = '16MB'});
	$node{$name} = $node;
}
for my $producer (qw(first second))
{
	$node{$producer}->safe_psql('postgres', join '', map { sprintf(
		q{CREATE SERVER %s FOREIGN DATA WRAPPER streamfilter OPTIONS (host '%s', port '%d', dbname 'postgres');
		  CREATE USER MAPPING FOR CURRENT_USER SERVER %s;},
		$_, $node{$_}->host, $node{$_}->port, $_) } qw(a b));
}
sub run { my ($producer, $sql) = @_; return $node{$producer}->psql('postgres', $sql); }

my $options = q{kind 'bloom', memory '96kB', k '4', slices '4', seed '7'};
my $servers = q{SERVER streamfilter OPTIONS (servers 'a,b'};
run('first', qq{CREATE FOREIGN TABLE seen (id int, at timestamptz OPTIONS (role 'time'), tag text COLLATE "C") $servers, $options);
                INSERT INTO seen SELECT i, now(), 'x' FROM generate_series(1, 300) i});

sub second
{
	my ($columns, $where) = @_;
	run('second', 'DROP FOREIGN TABLE IF EXISTS seen');
	run('second', "CREATE FOREIGN TABLE seen ($columns) $where");
	my ($ret, $out, $err) = run('second', q{SELECT count(*) FILTER (WHERE streamfilter_test('seen', i, 'x')) FROM generate_series(1, 300) i});
	return $ret == 0 ? $out : $err;
}

my $same = q{id int, at timestamptz OPTIONS (role 'time'), tag text COLLATE "C"};
is(second($same, "$servers, $options)"), '300', 'the same definition');
is(second(q{other int, at timestamptz OPTIONS (role 'time'), names text COLLATE "C"}, "$servers, $options)"), '300', 'names of columns may differ');
like(second(q{id bigint, at timestamptz OPTIONS (role 'time'), tag text COLLATE "C"}, "$servers, $options)"),
	qr/defined otherwise by its first producer.*DETAIL:  Its columns: \(pg_catalog\.int4|integer.*This producer says \(bigint/s, 'another type');
like(second(q{id int, at timestamptz OPTIONS (role 'time'), tag text COLLATE "POSIX"}, "$servers, $options)"),
	qr/Its columns: .*collate/s, 'another collation');
like(second(q{id int, tag text COLLATE "C"}, "$servers, $options)"), qr/Its columns: /, 'a column less');
like(second($same, "$servers, $options, conflict 'admit')"), qr/Its option conflict: wait\. This producer says admit/, 'another option conflict');
like(second($same, qq{SERVER streamfilter OPTIONS (servers 'b,a', $options)}),
	qr/Its place in option servers: . of 2\. This producer says . of 2/, 'another order of servers');
like(second($same, q{SERVER streamfilter OPTIONS (servers 'a,b', kind 'bloom', memory '96kB', k '4', slices '4', seed '8')}),
	qr/has another definition on server "[ab]".*There it is .*seed=7/s, 'another seed');
is(second($same, "$servers, $options)"), '300', 'again the same');

# As many slices in all, in other groups.
my $diced = q{SERVER streamfilter OPTIONS (servers 'a', kind 'bloom', memory '96kB', k '4', seed '7', slicing 'diced', slices};
run('first', qq{CREATE FOREIGN TABLE diced (id int) $diced '6,2'); INSERT INTO diced VALUES (1)});
my (undef, undef, $grouped) = run('second', qq{CREATE FOREIGN TABLE diced (id int) $diced '3,4'); SELECT streamfilter_test('diced', 1)});
like($grouped, qr/defined otherwise by its first producer.*Its slicing: 4 probes in groups of 2 slices\. This producer says .* of 4 slices/s, 'diced otherwise');

# As many columns of a key, of the same types in the same order: the key is another one.
run('first', qq{CREATE FOREIGN TABLE timed (id timestamptz, at timestamptz OPTIONS (role 'time'), other timestamptz) $servers, $options);
                INSERT INTO timed VALUES (now(), now(), now())});
run('second', qq{CREATE FOREIGN TABLE timed (id timestamptz, at timestamptz, other timestamptz OPTIONS (role 'time')) $servers, $options)});
my ($ret, $out, $err) = run('second', q{SELECT streamfilter_test('timed', now(), now())});
like($err, qr/Its columns: \([^,]*, [^,]* role time, [^,)]*\)\. This producer says \([^,]*, [^,)]*, [^,)]* role time\)/, 'another role');

done_testing();
