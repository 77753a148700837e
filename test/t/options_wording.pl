# An ALTER that only writes down what holds anyway, or no longer does, is no other definition: what is saved of the filter is found
# again, after a restart and after a crash. For each option of each kind, also of a filter of another size, logged and unlogged.
# flavours: faults one_by_one
use Sf;
use OptionExamples;

my $node = start_node('wordings', q{
	streamfilter.shared_memory = '256MB'
	streamfilter.max_filters = 2048
	max_locks_per_transaction = 256
	fsync = off});
sql('CREATE TABLE known (filter text, at text, keys bigint)');

# Columns and options of filters; each kind with some of its options, and with none, and kind auto.
my %bases;
for my $case (option_cases(\&said))
{
	my ($kind, $option, $columns, $given) = @$case;
	next if $kind eq 'ell' || $option =~ /^(?:kind|seed|window|parent|tree|top_down)$/;
	$bases{"$columns; $given"} = [ $columns, $given ];
}
for my $given (q{mode 'enforce'}, q{memory '64kB'}, q{keys '500'}, q{memory '64kB', keys '500'}, q{memory '64kB', fpr '0.1'}, q{window '10 minutes', memory '64kB'})
{
	my $columns = 'id int' . ($given =~ /window/ ? q{, at timestamptz OPTIONS (role 'time')} : '');
	$bases{"$columns; $given"} = [ $columns, $given ];
}

# What is derived, as options; nothing if there is no such filter.
sub derived_options
{
	my ($columns, $given) = @_;
	my ($failed, $text) = $node->psql('postgres', "CREATE FOREIGN TABLE x ($columns) SERVER streamfilter OPTIONS ($given); SELECT split_part(streamfilter_value('x')::text, ':', 1);
		DROP FOREIGN TABLE x");
	return if $failed;
	my ($kind, $options) = $text =~ /^(\w+)\((.*)\)$/s or die $text;
	my %derived = (kind => $kind);
	while ($options =~ /(\w+)=(?:'([^']*)'|([^,]*))/g) { $derived{$1} = $2 // $3; }
	delete @derived{qw(seed nulls)};
	delete $derived{fpr} if $given !~ /\bk\d? '/;    # CREATE writes it down
	return %derived;
}

my (@filters, @statements);

# A filter with keys from before and after the ALTERs.
sub add_filter
{
	my ($what, $columns, $given, @alters) = @_;
	my $name = 'f' . @filters;
	push @filters, $what;
	push @statements, "CREATE FOREIGN TABLE $name ($columns) SERVER streamfilter OPTIONS ($given);", "INSERT INTO $name (id) SELECT generate_series(1, 10);",
	  (map { "ALTER FOREIGN TABLE $name OPTIONS ($_);" } @alters), "INSERT INTO $name (id) SELECT generate_series(11, 20);";
	return;
}

for my $base (map { $bases{$_} } sort keys %bases)
{
	my ($columns, $given) = @$base;
	my %derived = derived_options($columns, $given);
	next unless %derived;
	my @more = grep { $given !~ /\b$_ '/ } sort keys %derived;
	for my $more (grep { $_ ne 'slicing' || $derived{$_} ne 'horizontal' || $derived{kind} eq 'bloom' } @more)
	{
		my $add = "ADD $more '$derived{$more}'";
		add_filter("$given: $add", $columns, $given, $add);
		add_filter("$given, in another size: $add", $columns, $given, q{SET memory '128kB'}, $add) if $given =~ /memory/ && $more ne 'keys';
	}
	my $all = join ', ', map { "$_ '$derived{$_}'" } sort keys %derived;
	add_filter("$given: all at once", $columns, $given, join(', ', map { "ADD $_ '$derived{$_}'" } @more)) if @more;
	add_filter("$given: DROP all others", $columns, $all, join(', ', map { "DROP $_" } @more)) if @more;
	next if $given =~ /persistence/;
	add_filter("$given, unlogged", $columns, "$given, " . q{persistence 'unlogged'}, map { "ADD $_ '$derived{$_}'" } @more);
}
note(@filters . ' filters');
my ($code, $out, $err) = $node->psql('postgres', join("\n", 'SET client_min_messages = error;', @statements), extra_params => ['-q'], on_error_stop => 0);
my %errors;
++$errors{ s/\d+/N/gr } for $err =~ /ERROR:  (.*)/g;
note("$errors{$_} x $_") for sort keys %errors;

# How many keys each filter knows.
sub note_known
{
	my ($at) = @_;
	my @tests = map { "INSERT INTO known SELECT 'f$_', '$at', count(*) FROM generate_series(1, 20) i WHERE streamfilter_test('f$_', i);" } 0 .. $#filters;
	$node->psql('postgres', join("\n", @tests), extra_params => ['-q'], on_error_stop => 0);
	return;
}

sub fewer
{
	my ($at, $former) = @_;
	note_known($at);
	# One that raises has no row.
	my @fewer = split /\n/, sql("SELECT substr(b.filter, 2) || ' ' || b.keys || ' ' || coalesce(a.keys::text, 'error')
		FROM known b LEFT JOIN known a ON a.filter = b.filter AND a.at = '$at'
		WHERE b.at = '$former' AND (a.keys >= b.keys) IS NOT TRUE ORDER BY substr(b.filter, 2)::int");
	return join "\n", map { my ($number, @keys) = split / /; "$filters[$number]: $keys[0] -> $keys[1]" } @fewer;
}

note_known('altered');
cmp_ok(sql(q{SELECT count(*) FROM known WHERE keys = 20}), '>', 0.8 * @filters, 'most filters know all of their keys');
my $read = -s $node->logfile;
$node->restart;
is(fewer('restarted', 'altered'), '', 'after a restart, each filter knows what it knew');
sql(q{SET client_min_messages = error; DO $$ DECLARE f regclass; BEGIN FOR f IN SELECT ftrelid FROM pg_foreign_table t
	WHERE NOT 'persistence=unlogged' = ANY (coalesce(ftoptions, '{}')) LOOP EXECUTE format('INSERT INTO %s (id) VALUES (20)', f); END LOOP; END $$});
crash();
sql(q{DELETE FROM known WHERE at = 'restarted' AND filter IN (SELECT ftrelid::regclass::text FROM pg_foreign_table WHERE 'persistence=unlogged' = ANY (ftoptions))});
is(fewer('crashed', 'restarted'), '', '... and after a crash');
unlike(slurp_file($node->logfile, $read), qr/is set aside/, 'nothing is set aside');

# ==== with other statements, in trees, on a standby, on Citus =========================================================
# The same where there is more: after a resize, a save, prepared transactions, ROLLBACK; in a tree, on a standby, and on Citus.

$node->stop;
$node = start_node('elsewhere', "fsync = off\nmax_prepared_transactions = 10\nwal_level = replica\n", allows_streaming => 1);
on($node);
$read = 0;
sub set_aside { my ($server) = @_; return join "\n", slurp_file($server->logfile, $server == $node ? $read : 0) =~ /.*is set aside.*/g; }

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
sql(join "\n", 'SET client_min_messages = error;', @typed);

# Those that do not know all of their keys.
sub forgetful
{
	my @tests = map { my $keys = /_more$/ ? 2000 : 1000; "SELECT '$_' WHERE EXISTS (SELECT FROM generate_series(1, $keys) i WHERE NOT streamfilter_test('$_', i))" } @names;
	return sql(join ';', @tests) =~ tr/\n/ /sr;
}
is(forgetful(), '', 'known before');
$read = -s $node->logfile;    # ALTERs that were rolled back have set aside what is saved
$node->restart;
is(forgetful(), '', 'known after a restart');
sql(join ';', map { "INSERT INTO $_ VALUES (1)" } @names);
crash();
is(forgetful(), '', '... and after a crash');

# Prepared transactions, whose keys come back in flight.
sql(qq{CREATE FOREIGN TABLE prepared (id int) SERVER streamfilter OPTIONS ($given); INSERT INTO prepared SELECT generate_series(1, 500);
	ALTER FOREIGN TABLE prepared OPTIONS ($add{kind}); BEGIN; INSERT INTO prepared SELECT generate_series(501, 1000); PREPARE TRANSACTION 'x';
	CREATE FOREIGN TABLE first (id int) SERVER streamfilter OPTIONS ($given);
	ALTER FOREIGN TABLE first OPTIONS ($add{kind}); BEGIN; INSERT INTO first SELECT generate_series(1, 1000); PREPARE TRANSACTION 'y'});
crash();
sql(q{COMMIT PREPARED 'x'; COMMIT PREPARED 'y'});
is(known($_, 1, 1000), '1000', "$_: keys of a prepared transaction") for qw(prepared first);

# A tree: its filters have one shape, and one seed.
my $shape = q{kind 'bloom', memory '256kB', keys '10000', fpr '0.01'};
sql(qq{CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS ($shape);
	CREATE FOREIGN TABLE leaf (id int) SERVER streamfilter OPTIONS ($shape, parent 'root'); INSERT INTO leaf SELECT generate_series(1, 1000);
	ALTER FOREIGN TABLE root OPTIONS ($add{layout}); ALTER FOREIGN TABLE leaf OPTIONS ($add{layout}, $add{slicing})});
is(known($_, 1, 1000), '1000', "tree: $_, altered") for qw(root leaf);
$node->restart;
is(known($_, 1, 1000), '1000', "tree: $_, after a restart") for qw(root leaf);

# ---- on a standby -------------------------------------------------------------------------------------------------

my $standby = start_standby('standby');
my @follow = qw(before during kind_plain_alone kind_resized_more);
sql("CREATE FOREIGN TABLE $_ (id int) SERVER streamfilter OPTIONS ($given); INSERT INTO $_ SELECT generate_series(1, 500)") for qw(before during);
sql("ALTER FOREIGN TABLE before OPTIONS ($add{kind})");
sub caught_up { $node->wait_for_catchup($standby, 'replay', $node->lsn('insert')); return; }
caught_up();
is(known($_, 1, 500, $standby), '500', "standby: $_") for qw(before during);
sql("ALTER FOREIGN TABLE during OPTIONS ($add{kind})");
sql("INSERT INTO $_ SELECT generate_series(501, 1000)") for qw(before during);
caught_up();
is(known($_, 1, 1000, $standby), '1000', "standby: $_, followed") for @follow;
$standby->restart;
is(known($_, 1, 1000, $standby), '1000', "standby: $_, after a restart") for @follow;
$standby->promote;
wait_for('SELECT NOT pg_is_in_recovery()', $standby);
sql("INSERT INTO $_ SELECT generate_series(1001, 2000)", $standby) for @follow;
$standby->restart;
is(known($_, 1, 2000, $standby), '2000', "standby: $_, promoted") for @follow;

is(set_aside($_), '', 'nothing is set aside on ' . $_->name) for $node, $standby;

# ---- on Citus -----------------------------------------------------------------------------------------------------------

SKIP:
{
	skip 'Citus is not installed', 1 if sql(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'}) eq '0';
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
