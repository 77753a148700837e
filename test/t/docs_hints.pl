# Every HINT that is a statement is typed as it stands, and its cause is gone. A HINT of src that is a statement without "..." fails the
# last check unless it is typed here, or another test types such a statement.
# flavours: quick faults
use Sf;
use File::Find;

my $node = PostgreSQL::Test::Cluster->new('hints');
$node->init;
# pg_stat_statements must come after streamfilter, and is not in every server.
my $has_contrib = -e $node->config_data('--pkglibdir') . '/pg_stat_statements.so';
my @others      = $has_contrib ? qw(pg_stat_statements auto_explain) : qw(plpgsql postgres_fdw);
my @preloaded   = $has_contrib ? ('streamfilter', @others) : (@others, 'streamfilter');
$node->append_conf('postgresql.conf', "shared_preload_libraries = '" . join(', ', @others) . "'\nfsync = off\n");
$node->start;

my $verb = qr/(?:ALTER|SELECT|CALL|GRANT|CREATE|TRUNCATE|RESET|DROP)\b/;
my %typed;    # texts of HINTs

# The statements in a text.
sub statements_in
{
	my ($text) = @_;
	return $text =~ /\G.*?(?<![\w.])($verb [^;]*?(?:;|\.(?=\s|$)|, or have)|RESET [\w.]+)/g;
}

# Runs what says the message, types what its HINT or its own text says, and looks whether it still says it.
sub cure
{
	my ($name, $setup, $cause, $message, %more) = @_;
	sql($setup);
	my $before = said($cause);
	like($before, $message, "$name: the message comes");
	my ($hint) = $before =~ /$message.*?HINT:  ([^\n]*)/s;
	$hint //= $before =~ $message ? $& : '';
	$typed{$hint} = 1;
	my @statements = map { s/[;.]$//r =~ s/, or have$//r } statements_in($hint);
	@statements = @statements[ 0 .. $more{first} - 1 ] if $more{first};
	cmp_ok(scalar @statements, '>', 0, "... and has statements: $hint");
	my $prefix = $more{session} // '';
	my $errors = said(join '', $prefix, map { "$_;\n" } @statements);
	unlike($errors, qr/ERROR/, '... which can be typed');
	sql($more{then}) if $more{then};
	$more{gone} ? is(sql($more{gone}), 't', '... and end it') : unlike(said($cause), $message, '... and end it');
	return;
}

# ---- the server ---------------------------------------------------------------------------------------------------------

sql('CREATE EXTENSION streamfilter');
my ($created) = said(q{CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (memory '64kB')}) =~ /HINT:  (.*)/;
is($created, sprintf('ALTER SYSTEM SET shared_preload_libraries = %s; then restart the server.', join ', ', map { "'$_'" } @preloaded),
	'the line keeps what is preloaded');
my ($used) = said(q{SELECT streamfilter_seen('seen', 1)}) =~ /HINT:  (.*)/;
is($used, $created, '... at the first use, too');
sql('CREATE ROLE plain; GRANT INSERT ON seen TO plain');
like(said(q{SET ROLE plain; SELECT streamfilter_seen('seen', 1)}), qr/HINT:  Ask a superuser to add streamfilter to shared_preload_libraries/,
	'whoever may not see the setting does not');
sql((split /;/, $created)[0]);
$typed{$created} = 1;
$node->restart;
is(said(q{SELECT streamfilter_seen('seen', 1)}), '', 'it cures');
is(sql('SHOW shared_preload_libraries'), join(', ', @preloaded), '... and the others are there');

# The emergency line, as it stands in the documents.
sql(q{CREATE TABLE events (id int); CREATE FOREIGN TABLE seen_events (id int) SERVER streamfilter;
	CREATE TRIGGER zz BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_events')});
for my $page (qw(README.md docs/operations.md))
{
	my ($line) = slurp_file("$root/$page") =~ /^(ALTER SYSTEM SET streamfilter\.enabled = off; SELECT pg_reload_conf\(\);)$/m;
	ok($line, "$page has the line");
	$node->command_ok([ 'psql', '-Xq', '-d', $node->connstr('postgres'), map { ('-c', $_) } split /; /, $line ], '... which can be typed');
	wait_for(q{SELECT current_setting('streamfilter.enabled') = 'off'});
	is(sql('INSERT INTO events VALUES (1), (1); SELECT count(*) FROM events'), 2, '... and all rows pass');
	sql($_) for 'ALTER SYSTEM RESET streamfilter.enabled', 'SELECT pg_reload_conf()';
	wait_for(q{SELECT current_setting('streamfilter.enabled') = 'on'});
	sql('TRUNCATE events');
}

# ---- filters that hold too much -----------------------------------------------------------------------------------------

for my $options (q{kind 'bloom', keys '1000'}, q{kind 'bloom', memory '2kB'}, q{kind 'bloom', memory '2kB', keys '1000'},
	q{kind 'bloom', memory '2kB', grow 'density'}, q{kind 'bsbf', keys '1000', memory '8kB'}, q{kind 'timer', window '1 hour', keys '1000'},
	q{kind 'timer', window '1 hour', memory '20kB'})
{
	my $name = 'b' . keys %typed;
	cure("overfull, $options", qq{CREATE FOREIGN TABLE $name (id int) SERVER streamfilter OPTIONS ($options, fpr '0.01', seed '1');
		DO \$\$ BEGIN FOR i IN 0 .. 400 LOOP EXIT WHEN (SELECT overfull FROM streamfilter_stats WHERE filter = '$name'::regclass);
			INSERT INTO $name SELECT i * 50 + g FROM generate_series(1, 50) g; COMMIT; END LOOP; END \$\$;
		CREATE TABLE keys_of_$name AS SELECT g AS id FROM generate_series(1, (SELECT accepted FROM streamfilter_stats WHERE filter = '$name'::regclass)::int) g},
		"SELECT streamfilter_seen('$name', g) FROM generate_series(1, 500000) g WHERE streamfilter_test('$name', g) AND g > 100000 LIMIT 1",
		qr/holds more keys than its false-positive rate allows/, then => "SELECT streamfilter_warm('$name', 'keys_of_$name')");
}

# ---- triggers and their filters -----------------------------------------------------------------------------------------

my $trigger = 'BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION streamfilter_discard(%s)';
cure('rows that a filter does not know', 'CREATE TABLE old AS SELECT 1 AS id, 2 AS other; CREATE FOREIGN TABLE seen_old (id int) SERVER streamfilter',
	'CREATE OR REPLACE TRIGGER zz ' . sprintf($trigger, 'public.old', q{'seen_old'}), qr/has rows that filter "seen_old" does not know/);
cure('under other names', 'CREATE FOREIGN TABLE seen_other ("Its Id" int) SERVER streamfilter; DROP TRIGGER zz ON old',
	'CREATE OR REPLACE TRIGGER zz ' . sprintf($trigger, 'public.old', q{'seen_other', 'other'}), qr/has rows that filter "seen_other" does not know/);
cure('rows that a new filter does not know', q{CREATE TABLE restored (id int); CREATE FOREIGN TABLE seen_restored (id int) SERVER streamfilter;
	CREATE TRIGGER zz } . sprintf($trigger, 'restored', q{'seen_restored'}) . q{; ALTER TABLE restored DISABLE TRIGGER zz; INSERT INTO restored VALUES (1);
	ALTER TABLE restored ENABLE TRIGGER zz},
	q{BEGIN; INSERT INTO restored VALUES (2); ROLLBACK}, qr/WARNING:  table "restored" has rows that filter "seen_restored" does not know/,
	gone => q{INSERT INTO restored VALUES (1); SELECT count(*) = 1 FROM restored});
cure('a partition with rows', q{CREATE TABLE parts (id int) PARTITION BY LIST (id); CREATE TABLE part AS SELECT 1 AS id;
	CREATE FOREIGN TABLE seen_parts (id int) SERVER streamfilter; CREATE TRIGGER zz } . sprintf($trigger, 'parts', q{'seen_parts'}),
	q{DO $$ BEGIN ALTER TABLE parts ATTACH PARTITION part FOR VALUES IN (1); EXCEPTION WHEN wrong_object_type THEN PERFORM 'attached'; END $$},
	qr/has rows that filter "seen_parts" does not know/);
cure('a filter that outlives a crash', 'CREATE UNLOGGED TABLE brief (id int); CREATE FOREIGN TABLE seen_brief (id int) SERVER streamfilter',
	'CREATE OR REPLACE TRIGGER zz ' . sprintf($trigger, 'public.brief', q{'seen_brief'}), qr/crash/);
cure('rows that have left', q{CREATE TABLE emptied (id int); CREATE FOREIGN TABLE seen_emptied (id int) SERVER streamfilter;
	CREATE TRIGGER zz } . sprintf($trigger, 'emptied', q{'seen_emptied'}) . q{; INSERT INTO emptied VALUES (1)},
	'TRUNCATE public.emptied', qr/still knows the rows that have left[^\n]*/, gone => 'INSERT INTO emptied VALUES (1); SELECT count(*) = 1 FROM emptied');
cure('the right to a filter', q{CREATE ROLE owner; CREATE TABLE theirs (id int); ALTER TABLE theirs OWNER TO owner; CREATE FOREIGN TABLE seen_theirs (id int) SERVER streamfilter},
	'CREATE OR REPLACE TRIGGER zz ' . sprintf($trigger, 'public.theirs', q{'public.seen_theirs'}), qr/permission denied for filter "seen_theirs"/);
cure('... and to its schema', q{CREATE SCHEMA hidden; CREATE FOREIGN TABLE hidden.seen_hidden (id int) SERVER streamfilter; GRANT INSERT ON hidden.seen_hidden TO owner; DROP TRIGGER zz ON theirs},
	'CREATE OR REPLACE TRIGGER zz ' . sprintf($trigger, 'public.theirs', q{'hidden.seen_hidden'}), qr/permission denied for schema "hidden"/);
cure('... and to the table for repeats', q{CREATE TABLE repeats (id int); DROP TRIGGER zz ON theirs},
	q{CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON public.theirs FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('public.seen_theirs', 'public.repeats')},
	qr/permission denied for table "repeats"/);

# ---- other filters ------------------------------------------------------------------------------------------------------

cure('a size that keeps the rate', q{CREATE FOREIGN TABLE sized (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', fpr '0.01');
	INSERT INTO sized SELECT generate_series(1, 40000)},
	q{ALTER FOREIGN TABLE public.sized OPTIONS (SET memory '65kB')},
	qr/filter "sized" will exceed its false-positive rate/, first => 1,
	gone => q{SELECT fpr_now <= 0.01 AND NOT overfull FROM streamfilter_stats WHERE filter = 'sized'::regclass});
cure('another kind for other options', q{CREATE FOREIGN TABLE grown (id int) SERVER streamfilter OPTIONS (memory '64kB');
	INSERT INTO grown SELECT generate_series(1, 100)}, q{ALTER FOREIGN TABLE grown OPTIONS (ADD keys '5000')},
	qr/NOTICE:  filter "grown" stays of kind clq/,
	gone => q{SELECT kind = 'vqf' FROM streamfilter_filters WHERE filter = 'grown'::regclass});
cure('a kind that cannot be resized while rows come', q{CREATE FOREIGN TABLE quotient (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB')},
	q{CALL streamfilter_resize('public.quotient', '128kB')}, qr/cannot be resized/);
cure('the right to a parent', q{CREATE ROLE child; GRANT CREATE, USAGE ON SCHEMA public TO child; GRANT USAGE ON FOREIGN SERVER streamfilter TO child;
	CREATE FOREIGN TABLE root (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', seed '1')},
	q{SET ROLE child; CREATE FOREIGN TABLE public.leaf (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', seed '1', parent 'public.root')}, qr/permission denied for filter "root"/);
cure('an enum', q{CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE SERVER nowhere FOREIGN DATA WRAPPER streamfilter OPTIONS (host 'nowhere');
	CREATE FOREIGN TABLE moods (m mood) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', seed '1', servers 'nowhere')},
	q{DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_enum WHERE enumlabel = 'fine') THEN ALTER TYPE public.mood RENAME VALUE 'ok' TO 'fine'; END IF; END $$},
	qr/cannot rename label/);
sql(q{DROP FOREIGN TABLE moods; DROP TYPE mood});
cure('rows with another column', q{CREATE TYPE pair AS (a int); CREATE FOREIGN TABLE pairs (p pair) SERVER streamfilter; INSERT INTO pairs VALUES ('(1)')},
	'ALTER TYPE public.pair ADD ATTRIBUTE b int', qr/column "p" of filter "pairs" has other hashes now/,
	gone => q{SELECT distinct_estimate = 0 FROM streamfilter_stats WHERE filter = 'pairs'::regclass});
cure('the right to a server', q{CREATE ROLE maker; GRANT CREATE, USAGE ON SCHEMA public TO maker; CREATE SERVER far FOREIGN DATA WRAPPER streamfilter OPTIONS (host 'nowhere');
	GRANT USAGE ON FOREIGN SERVER streamfilter TO maker},
	q{SET ROLE maker; CREATE FOREIGN TABLE public.far_one (id int) SERVER streamfilter OPTIONS (memory '64kB', servers 'far')}, qr/permission denied for foreign server far/);

# ---- options --------------------------------------------------------------------------------------------------------------

# Words of other products are called as here; typed so, they are accepted.
my %value = (keys => '1000', fpr => '0.01', window => '1 hour', grow => 'density', memory => '64kB');
my ($words) = slurp_file("$root/src/core/filter/options.cpp") =~ /kForeignNames\[\] = \{(.*?)\};/s;
my %ours = $words =~ /\{"(\w+)", "(\w+)"\}/g;
cmp_ok(scalar keys %ours, '>=', 8, 'words of other products');
for my $theirs (sort keys %ours)
{
	my $others = $ours{$theirs} eq 'window' ? "kind 'timer', memory '64kB'," : $ours{$theirs} eq 'grow' ? "kind 'bloom', keys '1000'," : '';
	my $create = "CREATE FOREIGN TABLE of_$theirs (id int) SERVER streamfilter OPTIONS ($others %s '%s')";
	my ($called) = said(sprintf $create, $theirs, $value{ $ours{$theirs} }) =~ /invalid option "$theirs".*HINT:  Here that option is called "(\w+)"/s;
	is($called, $ours{$theirs}, "$theirs is called $ours{$theirs}");
	unlike(said(sprintf $create, $called, $value{$called}), qr/ERROR/, '... and that is an option');
}
my $create = q{CREATE FOREIGN TABLE %s (id int) SERVER streamfilter OPTIONS (memory '64kB', %s)};
for my $percent ([ '1%', '0.01' ], [ '0.5%', '0.005' ], [ '1e-4 %', '1e-06' ])
{
	my ($write) = said(sprintf $create, 'percent', "fpr '$percent->[0]'") =~ /HINT:  Write (\S+)\.$/m;
	is($write // '', $percent->[1] =~ s/^1e-06$//r, "fpr $percent->[0]");
	next unless $write;
	unlike(said(sprintf $create, "percent_$write" =~ tr/./_/r, "fpr '$write'"), qr/ERROR/, '... can be written so');
}
like(said(sprintf $create, 'seeded', q{seed 'abc'}), qr/invalid value for option "seed": "abc".*HINT:  Give a whole number, or leave it out: it is then drawn\./s, 'a seed');
like(said(sprintf $create, 'rated', q{fpr 'low'}), qr/HINT:  Give a number between 0 and 1/, 'a rate');

# ---- are these all? -----------------------------------------------------------------------------------------------------

# What other tests type: all but patterns.
my %tests;
for my $file (glob "$root/test/t/*.pl $root/test/sql/*.sql $root/test/isolation/specs/*.spec")
{
	next if $file =~ /docs_hints/;
	my $text = slurp_file($file);
	my ($name) = $file =~ m{(\w+)\.(?:sql|spec)$};
	my ($output) = grep { -e } map { "$root/$_/" . ($name // '') . '.out' } 'expected', 'test/isolation/expected';
	# What a pattern takes from a HINT is typed, too.
	my @typed = map { /HINT:.*\((?:$verb)/ ? s/\\//gr : /HINT:|qr\// ? () : $_ } split /\n/, $text;
	$tests{$file} = { typed => join("\n", @typed), said => $text . ($output ? slurp_file($output) : '') };
}
sub text_of { return join('', $_[0] =~ /"((?:[^"\\]|\\.)*)"/g) =~ s/\\"/"/gr; }
sub pattern_of { return join '.*?', map { quotemeta } split /%l*[sdgu]/, $_[0], -1; }
my @missing;
find({ no_chdir => 1, wanted => sub {
	return unless /\.cpp$/;
	my $text = slurp_file($_);
	my $string = qr/((?:"(?:[^"\\]|\\.)*"\s*)+)/;
	while ($text =~ /(?:errhint|add_hint|hint)\(\s*$string/g)
	{
		my $hint = text_of($1);
		next if $hint =~ /\.\.\./ || $hint !~ /^Type: |;|^RESET/ || $hint !~ /^(?:Type: )?($verb [^.;]*)/;
		my $statement = $1 =~ s/(?:, (?:or|so|and) |\$\$).*//sr;
		my $whole = pattern_of($hint);
		next if grep { /^$whole$/s } keys %typed;
		my $message = text_of((substr($text, 0, pos $text) =~ /(?:errmsg|\.set)\([^"]*$string/g)[-1]);
		my ($said, $told) = (pattern_of($message), pattern_of($statement));
		# TRUNCATE says little, so such a test needs the message, too.
		my $is_long = length($statement =~ s/%l*[sdgu].*//sr) > 12;
		push @missing, "$_: $message: $hint" unless grep { $_->{typed} =~ /$told/s && ($is_long || $_->{said} =~ /$said/) } values %tests;
	} } }, "$root/src");
is(join("\n", @missing), '', 'each HINT that is a statement is typed by a test');
done();
