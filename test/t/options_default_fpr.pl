# What a filter keeps that is not told fpr: 1e-6, written into its options when it is created.
# flavours: quick faults
use Sf;

my $node   = start_node('node');
my $holder = start_node('a');

sub fpr_of
{
	my ($filter, $database, $at) = @_;
	return ($at // $node)->safe_psql($database // 'postgres', qq{
		SELECT coalesce((SELECT option_value FROM pg_foreign_table, pg_options_to_table(ftoptions)
			WHERE ftrelid = '$filter'::regclass AND option_name = 'fpr'), 'none')});
}

# --- CREATE --------------------------------------------------------------------------------------------

my %written = (
	"kind 'auto', memory '256kB'" => '1e-06',
	"memory '256kB', keys '20000'" => '1e-06',
	"kind 'bloom', keys '20000'" => '1e-06',
	"kind 'sbf', memory '256kB', gap '1000'" => '1e-06',
	"kind 'sbf', memory '256kB', max '3'" => '1e-06',
	"kind 'timer', memory '256kB', window '10 minutes'" => '1e-06',
	"kind 'lru', memory '256kB'" => '1e-06',
	"memory '256kB', fpr '0.2'" => '0.2',
	# what is given says what the rate is to be
	"kind 'bloom', memory '256kB', k '4'" => 'none',
	"kind 'bloom', memory '256kB', keys '10000', k1 '2', k2 '2'" => 'none',
	"kind 'clq', memory '256kB', bits '12'" => 'none',
	"kind 'ell', memory '256kB'" => 'none');
my $number = 0;
my %name;
for my $options (sort keys %written)
{
	$number++;
	$name{$options} = "f$number";
	sql("CREATE FOREIGN TABLE f$number (id bigint) SERVER streamfilter OPTIONS ($options);
		SET check_function_bodies = off;
		CREATE FOREIGN TABLE unchecked$number (id bigint) SERVER streamfilter OPTIONS ($options)");
	is(fpr_of("f$number"), $written{$options}, $options);
	is(fpr_of("unchecked$number"), $written{$options}, 'and with check_function_bodies off');
}
is(sql(q{SELECT bool_and(fpr_bound <= 1e-6) FROM streamfilter_stats JOIN pg_foreign_table ON ftrelid = filter
	WHERE 'fpr=1e-06' = ANY (ftoptions)}), 't', 'the promise is kept');
like(said(q{CREATE FOREIGN TABLE f (id bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '50000')}),
	qr/cannot keep fpr 1e-06.*Without option fpr.*add fpr '0\.01'/s, 'a kind that cannot is refused, with what to type');
is(sql(q{SELECT to_regclass('f') IS NULL}), 't', 'and leaves nothing behind');
like(said(q{SET check_function_bodies = off;
	CREATE FOREIGN TABLE unchecked (id bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '64kB', keys '50000')}),
	qr/WARNING:.*cannot keep fpr 1e-06.*add fpr '0\.01'/s, 'every dump restores, with a WARNING');
is(fpr_of('unchecked'), 'none', 'such a filter stays as it is');
sql(q{CREATE FOREIGN TABLE IF NOT EXISTS f1 (id text) SERVER streamfilter});
is(sql(q{SELECT streamfilter_info('sbf(memory=64kB)')->'parameters' ? 'fpr'}), 'f', 'values are as they were');

sql(q{CREATE FOREIGN TABLE altered (id bigint) SERVER streamfilter OPTIONS (memory '256kB', fpr '0.01');
	ALTER FOREIGN TABLE altered OPTIONS (DROP fpr)});
is(fpr_of('altered'), '1e-06', 'ALTER that drops fpr leaves the default');
sql(q{SET check_function_bodies = off; ALTER FOREIGN TABLE altered OPTIONS (SET fpr '0.01');
	ALTER FOREIGN TABLE altered OPTIONS (DROP fpr)});
is(fpr_of('altered'), '1e-06', 'also with check_function_bodies off');
sql(q{BEGIN; CREATE FOREIGN TABLE gone (id bigint) SERVER streamfilter; INSERT INTO gone VALUES (1); ROLLBACK});
is(sql(q{SELECT to_regclass('gone') IS NULL}), 't', 'a rollback takes it with it');
sql(q{CREATE ROLE joe LOGIN; GRANT USAGE ON FOREIGN SERVER streamfilter TO joe; CREATE SCHEMA of_joe AUTHORIZATION joe;
	SET ROLE joe; CREATE FOREIGN TABLE of_joe.f (id bigint) SERVER streamfilter});
is(fpr_of('of_joe.f'), '1e-06', 'a role that owns nothing else');

# --- trees ------------------------------------------------------------------------------------------------

sql(q{
	CREATE FOREIGN TABLE root (id bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '256kB', keys '20000', fpr '0.01');
	CREATE FOREIGN TABLE node (id bigint) SERVER streamfilter
		OPTIONS (kind 'bloom', memory '256kB', keys '20000', parent 'root')});
is(fpr_of('node'), '0.01', 'a node of a tree keeps what its root does');

# --- dump and restore -------------------------------------------------------------------------------------

sub restored
{
	my ($database, $change) = @_;
	my $file = $node->basedir . "/$database.sql";
	command_ok([ 'pg_dump', '-f', $file, '-t', 'f*', '-t', 'altered', '-d', $node->connstr('postgres') ], 'a dump');
	sql("CREATE DATABASE $database");
	sql('CREATE EXTENSION streamfilter', $database);
	my $dump = slurp_file($file);
	sql($change ? $change->($dump) : $dump, $database);
	return;
}
my $options_of = q{SELECT string_agg(relname || ': ' || (SELECT string_agg(o, ',' ORDER BY o) FROM unnest(ftoptions) o), E'\n' ORDER BY relname) FROM pg_foreign_table
	JOIN pg_class ON ftrelid = oid WHERE relnamespace = 'public'::regnamespace AND relname ~ '^(f[0-9]|altered)'};
restored('same');
is(sql($options_of, 'same'), sql($options_of), 'a restored filter has the options that it had');
# A dump without a rate, as by hand: check_function_bodies is off in migrations, too.
restored('former', sub { return $_[0] =~ s/\bfpr '1e-06',|,\s*fpr '1e-06'//gr });
is(fpr_of('altered', 'former'), '1e-06', 'a dump without a rate restores filters that keep the default');
is(fpr_of($name{"memory '256kB', fpr '0.2'"}, 'former'), '0.2', 'a rate that was dumped stays');

# --- other servers ----------------------------------------------------------------------------------------

sql(server_sql('a', $holder, "timeout '60s'") . q{
	CREATE FOREIGN TABLE spread (id int) SERVER a OPTIONS (kind 'bloom', memory '256kB', keys '10000');
	INSERT INTO spread SELECT generate_series(1, 100)});
is(fpr_of('spread'), '1e-06', 'a filter on another server');
is(sql(q{SELECT fpr_bound <= 1e-6 FROM streamfilter_stats WHERE filter = 'spread'::regclass}, $holder), 't', 'keeps it there');
sql(server_sql('a', $holder, "timeout '60s'"), 'same');
sql('IMPORT FOREIGN SCHEMA public LIMIT TO (spread) FROM SERVER a INTO public', 'same');
is(fpr_of('spread', 'same'), '1e-06', 'IMPORT takes what the others agreed upon');
is(sql(q{SELECT count(*) FILTER (WHERE streamfilter_test('spread', i)) FROM generate_series(1, 200) i}, 'same'), 100, 'and what they know');
# So does who types what streamfilter_definition() says.
my $definition = sql(q{SELECT split_part(streamfilter_definition('spread'), ';', 1)});
like($definition, qr/fpr '1e-06'/, 'the definition says it');
sql('CREATE DATABASE third');
sql('CREATE EXTENSION streamfilter;' . server_sql('a', $holder, "timeout '60s'") . $definition, 'third');
is(sql(q{SELECT count(*) FILTER (WHERE streamfilter_test('spread', i)) FROM generate_series(1, 200) i}, 'third'), 100,
	'a third producer of this definition');

done();
