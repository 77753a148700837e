# An ALTER that only writes down what holds anyway, where there is more than one filter of one server: after a resize, a save, prepared transactions, ROLLBACK; in a tree, on a standby, and on Citus, where it is installed.
# flavours: faults one_by_one
use Sf;
use Time::HiRes qw(sleep);

my $settings = "fsync = off\nmax_prepared_transactions = 10\n";
my %node;
$node{p} = start_node('p', "$settings\nwal_level = replica\n", allows_streaming => 1);
sub at { my ($node, $statements, $database) = @_; return $node{$node}->safe_psql($database // 'postgres', $statements); }

sub known_at
{
	my ($node, $name, $keys, $database) = @_;
	return at($node, "SELECT count(*) FROM generate_series(1, $keys) i WHERE streamfilter_test('$name', i)", $database);
}

# A server that was started again may be taken for lost for a moment.
sub soon_known
{
	my ($node, $name, $keys, $database) = @_;
	for (1 .. 100) { last if known_at($node, $name, $keys, $database) == $keys; sleep 0.1; }
	return known_at($node, $name, $keys, $database);
}
my %read;
sub set_aside { my ($name) = @_; return join "\n", slurp_file($node{$name}->logfile, $read{$name} // 0) =~ /.*is set aside.*/g; }

# ---- on one server ------------------------------------------------------------------------------------------------

my $given = q{memory '512kB', keys '20000', fpr '0.01'};
my %add = (kind => q{ADD kind 'bloom'}, layout => q{ADD layout 'scattered'}, slicing => q{ADD slicing 'horizontal'});
my %then = (
	alone => '',
	saved => q{SELECT streamfilter_save('%1$s')},
	more => q{INSERT INTO %1$s SELECT generate_series(1001, 2000)},
	again => q{ALTER FOREIGN TABLE %1$s OPTIONS (DROP %2$s)},
	resized => q{ALTER FOREIGN TABLE %1$s OPTIONS (SET memory '1MB')},
	called => q{CALL streamfilter_resize('%1$s', '1MB')},
	unlogged => q{ALTER FOREIGN TABLE %1$s OPTIONS (ADD persistence 'unlogged'); ALTER FOREIGN TABLE %1$s OPTIONS (SET persistence 'logged')},
	undone => q{BEGIN; SAVEPOINT s; TRUNCATE %1$s; ALTER FOREIGN TABLE %1$s OPTIONS (SET memory '256kB'); ROLLBACK TO s; INSERT INTO %1$s VALUES (1); COMMIT});
my %first = (
	plain => '',
	resized => q{ALTER FOREIGN TABLE %1$s OPTIONS (SET memory '1MB')},
	saved => q{SELECT streamfilter_save('%1$s')},
	wider => q{ALTER FOREIGN TABLE %1$s OPTIONS (SET keys '15000')});
my (@names, @typed);
for my $option (sort keys %add)
{
	for my $first ($option eq 'kind' ? sort keys %first : 'plain')
	{
		for my $then (sort keys %then)
		{
			my $name = "${option}_${first}_$then";
			push @names, $name;
			my $kind = $option eq 'kind' ? '' : q{kind 'bloom', };
			my @after = split /; /, sprintf $then{$then}, $name, $option;
			push @typed, join ";\n", "CREATE FOREIGN TABLE $name (id int) SERVER streamfilter OPTIONS ($kind$given)",
				"INSERT INTO $name SELECT generate_series(1, 1000)", sprintf($first{$first}, $name), "ALTER FOREIGN TABLE $name OPTIONS ($add{$option});";
			push @typed, map { "$_;" } $then eq 'undone' ? join('; ', @after) : @after;
			push @typed, "BEGIN; ALTER FOREIGN TABLE $name OPTIONS (DROP fpr, ADD seed '7'); INSERT INTO $name VALUES (5000); ROLLBACK;";
		}
	}
}
at('p', join "\n", 'SET client_min_messages = error;', @typed);

# Those that do not know all of their keys.
sub forgetful
{
	my @tests = map { my $keys = /_more$/ ? 2000 : 1000; "SELECT '$_' WHERE EXISTS (SELECT FROM generate_series(1, $keys) i WHERE NOT streamfilter_test('$_', i))" } @names;
	return at('p', join ';', @tests) =~ tr/\n/ /sr;
}
is(forgetful(), '', 'known before');
$read{p} = -s $node{p}->logfile;    # ALTERs that were rolled back have set aside what is saved
$node{p}->restart;
is(forgetful(), '', 'known after a restart');
at('p', join ';', map { "INSERT INTO $_ VALUES (1)" } @names);
crash($node{p});
is(forgetful(), '', '... and after a crash');

# Prepared transactions, whose keys come back in flight.
at('p', qq{CREATE FOREIGN TABLE prepared (id int) SERVER streamfilter OPTIONS ($given); INSERT INTO prepared SELECT generate_series(1, 500);
	ALTER FOREIGN TABLE prepared OPTIONS ($add{kind}); BEGIN; INSERT INTO prepared SELECT generate_series(501, 1000); PREPARE TRANSACTION 'x';
	CREATE FOREIGN TABLE first (id int) SERVER streamfilter OPTIONS ($given);
	ALTER FOREIGN TABLE first OPTIONS ($add{kind}); BEGIN; INSERT INTO first SELECT generate_series(1, 1000); PREPARE TRANSACTION 'y'});
crash($node{p});
at('p', q{COMMIT PREPARED 'x'; COMMIT PREPARED 'y'});
is(known_at('p', $_, 1000), '1000', "$_: keys of a prepared transaction") for qw(prepared first);

# A tree: its filters have one shape, and one seed.
my $shape = q{kind 'bloom', memory '256kB', keys '10000', fpr '0.01'};
at('p', qq{CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS ($shape);
	CREATE FOREIGN TABLE leaf (id int) SERVER streamfilter OPTIONS ($shape, parent 'root'); INSERT INTO leaf SELECT generate_series(1, 1000);
	ALTER FOREIGN TABLE root OPTIONS ($add{layout}); ALTER FOREIGN TABLE leaf OPTIONS ($add{layout}, $add{slicing})});
is(known_at('p', $_, 1000), '1000', "tree: $_, altered") for qw(root leaf);
$node{p}->restart;
is(known_at('p', $_, 1000), '1000', "tree: $_, after a restart") for qw(root leaf);

# ---- on a standby -------------------------------------------------------------------------------------------------

my $standby = start_standby('standby');
$node{s} = $standby;
my @follow = qw(before during kind_plain_alone kind_resized_more);
at('p', "CREATE FOREIGN TABLE $_ (id int) SERVER streamfilter OPTIONS ($given); INSERT INTO $_ SELECT generate_series(1, 500)") for qw(before during);
at('p', "ALTER FOREIGN TABLE before OPTIONS ($add{kind})");
sub caught_up { $node{p}->wait_for_catchup($standby, 'replay', $node{p}->lsn('insert')); return; }
caught_up();
is(known_at('s', $_, 500), '500', "standby: $_") for qw(before during);
at('p', "ALTER FOREIGN TABLE during OPTIONS ($add{kind})");
at('p', "INSERT INTO $_ SELECT generate_series(501, 1000)") for qw(before during);
caught_up();
is(known_at('s', $_, 1000), '1000', "standby: $_, followed") for @follow;
$standby->restart;
is(known_at('s', $_, 1000), '1000', "standby: $_, after a restart") for @follow;
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
at('s', "INSERT INTO $_ SELECT generate_series(1001, 2000)") for @follow;
$standby->restart;
is(known_at('s', $_, 2000), '2000', "standby: $_, promoted") for @follow;

is(set_aside($_), '', "nothing is set aside on $_") for qw(p s);

# ---- on Citus -----------------------------------------------------------------------------------------------------------

SKIP:
{
	skip 'Citus is not installed', 1 if at('p', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'}) eq '0';
	require CitusCluster;
	my $citus = CitusCluster->new(workers => 2);
	$citus->query(qq{CREATE TABLE events (id int, n int); CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS ($given);
		SELECT streamfilter_distribute('seen'); SELECT create_distributed_table('events', 'id');
		CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen', 'id');
		INSERT INTO events SELECT i, 1 FROM generate_series(1, 1000) i; ALTER FOREIGN TABLE seen OPTIONS ($add{kind});
		INSERT INTO events SELECT i, 2 FROM generate_series(1, 1500) i});
	$citus->node($_)->restart for 1, 2;
	$citus->query(q{INSERT INTO events SELECT i, 3 FROM generate_series(1, 1500) i});
	$citus->node(1)->stop('immediate');
	$citus->node(1)->start;
	$citus->query(q{INSERT INTO events SELECT i, 4 FROM generate_series(1, 1500) i});
	is($citus->counts('events', 'id'), '1500|1500', 'Citus: no row twice');
}
done_testing();
