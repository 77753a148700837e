# Random calls of streamfilter_settle, _warm, _distinct, _evaluate, _profile and _advise, and random triggers, also ones that forget, on
# tables of every shape: rules, views, generated and identity columns, columns that are missing or have no order, domains that are
# dropped in between. An error of ours has a SQLSTATE that the documents name, and a HINT; none is internal, and none is of SQL that
# we have made. Each of these succeeds on tables of several shapes.
# flavours: quick faults
use Sf;

my $seed = $ENV{STREAMFILTER_SEED} // 11;
my $most = $ENV{STREAMFILTER_CALLS} // 2000;
srand($seed);
my $node = start_node('odd', "fsync = off\nlog_min_messages = fatal\nstatement_timeout = '30s'\nmax_prepared_transactions = 2\n");

my %documented;
for my $page (glob("$root/docs/*.md $root/docs/reference/*.md"))
{
	$documented{$_} = 1 for slurp_file($page) =~ /\b([0-9A-Z]{5})\b/g;
}

my $filter = q{SERVER streamfilter OPTIONS (kind 'lru', memory '64kB')};
sql(q{
	CREATE SCHEMA s;
	SET search_path = s, public;
	CREATE DOMAIN small AS int CHECK (VALUE < 100);
	CREATE DOMAIN word AS text CHECK (VALUE <> 'no');
	CREATE TYPE mood AS ENUM ('1', '2', '3');
	CREATE TYPE pair AS (a int, b text);
	CREATE FOREIGN DATA WRAPPER nowhere;
	CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
	CREATE FUNCTION nop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING HINT = 'none'; END $$;
	CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';});
my @types = qw(int bigint text numeric small word mood pair json point xml timestamptz numeric[] float8 varchar(2) oid);
my @shapes = map { [ $_, "(k $_, n text, x int)" ] } @types;
push @shapes, [ 'generated', '(x int, k int GENERATED ALWAYS AS (x * 2) STORED, n text)' ],
  [ 'identity', '(k int GENERATED ALWAYS AS IDENTITY, n text, x int)' ],
  [ 'checked',  '(k int CHECK (k < 3), n text NOT NULL, x int UNIQUE)' ], [ 'empty', '()' ], [ 'other', '(other int)' ],
  [ 'diverted', '(k int, n text, x int, diverted_at timestamptz, filter regclass)' ],
  [ 'diverted_oddly', '(k text, n int, x text, diverted_at text, filter text)' ], [ '"Quoted ""k"', '("K" int, k int, n text)' ];
my @tables;
for my $shape (@shapes)
{
	my ($name, $columns) = @$shape;
	$name =~ s/\W+/_/g unless $name =~ /^"/;
	$name = "t_$name" unless $name =~ /^"/;
	push @tables, $name;
	sql("SET search_path = s, public; CREATE TABLE $name $columns");
}
my @more = (
	'CREATE VIEW a_view AS SELECT * FROM t_int',
	'CREATE MATERIALIZED VIEW a_matview AS SELECT * FROM t_int',
	'CREATE TABLE inserts_elsewhere (LIKE t_int); CREATE RULE r AS ON INSERT TO inserts_elsewhere DO INSTEAD NOTHING',
	'CREATE TABLE deletes_elsewhere (LIKE t_int); CREATE RULE r AS ON DELETE TO deletes_elsewhere DO INSTEAD NOTHING',
	'CREATE TABLE parted (LIKE t_int) PARTITION BY LIST (k); CREATE TABLE part PARTITION OF parted FOR VALUES IN (1, 2)',
	'CREATE TABLE far (LIKE t_int) PARTITION BY LIST (k); CREATE FOREIGN TABLE far_part PARTITION OF far FOR VALUES IN (1) SERVER nowhere',
	'CREATE TABLE child () INHERITS (t_int)',
	'CREATE TABLE dropped (a int, k int, n text, x int); ALTER TABLE dropped DROP a, DROP x; ALTER TABLE dropped ADD x bigint',
	'CREATE TABLE hidden (LIKE t_int); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; ALTER TABLE hidden FORCE ROW LEVEL SECURITY',
	'CREATE UNLOGGED TABLE unlogged (LIKE t_int)',
	'CREATE TABLE refuses (LIKE t_int); CREATE TRIGGER aa BEFORE INSERT ON refuses FOR EACH ROW EXECUTE FUNCTION fails()',
	'CREATE TABLE keeps (LIKE t_int); CREATE TRIGGER aa BEFORE DELETE ON keeps FOR EACH ROW EXECUTE FUNCTION drops()',
	'CREATE SEQUENCE a_sequence', 'CREATE INDEX an_index ON t_int (k)',
	map { my $name = $_ =~ s/\W+/_/gr; "CREATE FOREIGN TABLE f_$name (k $_) $filter" } qw(int bigint text numeric small word mood));
sql("SET search_path = s, public; SET client_min_messages = error; $_") for @more;
push @tables, map { /^CREATE (?:\w+ )*?(?:TABLE|VIEW|SEQUENCE|INDEX) (\w+)/ ? $1 : () } @more;
push @tables, qw(part far_part pg_class _streamfilter.streamfilter_log streamfilter_stats nothing NULL);
my @filters = (map({ 'f_' . (s/\W+/_/gr) } qw(int bigint text numeric small word mood)), 'f_int', 'f_int', 't_int', 'nothing', 'NULL');
my @rows    = (q{(1, 'a', 1), (2, 'b', 2), (1, 'c', 1), (NULL, NULL, NULL)}, q{(99, 'no', 5), (200, 'longer', 5)});

# ---- calls ----------------------------------------------------------------------------------------------------------

sub any { return $_[ rand @_ ]; }
sub regclass { my $name = any(@_); return $name eq 'NULL' ? 'NULL' : "\$a\$$name\$a\$"; }
my @names = qw(k k k n x other K nothing diverted_at);
sub columns { return any('NULL', '$a${}$a$', '$a${NULL}$a$', map { "\$a\${" . join(',', map { any(@names) } 1 .. any(1, 1, 1, 2, 3)) . "}\$a\$" } 1 .. 5); }
sub insert { my ($table) = @_; return "INSERT INTO $table " . any('DEFAULT VALUES', "SELECT v.* FROM (VALUES " . any(@rows) . ') v', ("(k) VALUES ('1'), ('2')") x 2); }

# Half of the triggers are such as the table could have.
sub filter_for
{
	my ($table) = @_;
	my ($own) = $table =~ /^t_(bigint|text|numeric|small|word|mood)$/;
	return rand() < .5 ? 'f_' . ($own // 'int') : any(@filters);
}

sub trigger
{
	my ($table, $divert) = @_;
	my $filter = filter_for($table);
	my $call = $divert ? "streamfilter_divert('$filter', '$divert'" : any("streamfilter_discard('$filter'",
		"streamfilter_mark('$filter', '" . any(@names) . q{'}, "streamfilter_discard(''", 'streamfilter_divert(');
	return with_columns($call, any(('BEFORE INSERT') x 6, 'AFTER INSERT', 'BEFORE INSERT OR UPDATE'), $table);
}

sub forget_trigger
{
	my ($table) = @_;
	return with_columns(q{streamfilter_forget('} . filter_for($table) . q{'},
		any('AFTER DELETE', 'AFTER UPDATE', ('AFTER DELETE OR UPDATE') x 4, 'BEFORE DELETE', 'AFTER INSERT', 'AFTER TRUNCATE'), $table);
}

sub with_columns
{
	my ($call, $event, $table) = @_;
	$call .= $call =~ /\($/ ? '' : join '', map { ", '" . any(@names, 'k') . q{'} } 1 .. any(0, 0, 0, 1, 1, 2);
	$call .= q{, 'conflicting=} . any('skip', 'skip', 'what', '') . q{'} if $call !~ /\($/ && rand() < .1;
	my $name = $event =~ /INSERT/ ? 'zz' : 'forget';
	return "CREATE TRIGGER $name $event ON $table FOR EACH " . any(('ROW') x 8, 'STATEMENT') . " EXECUTE FUNCTION $call)";
}

my @drops = ('DROP DOMAIN small CASCADE', 'DROP DOMAIN word CASCADE', 'DROP TYPE mood CASCADE', 'ALTER TABLE t_int DROP k CASCADE',
	'ALTER TABLE t_int ALTER k TYPE text', 'DROP FOREIGN TABLE f_int CASCADE', 'ALTER FOREIGN TABLE f_int ALTER k TYPE bigint', 'DROP TABLE t_diverted CASCADE');

# Statements of one transaction, and the table that the last of them is about. Errors of a query that the caller has written are the caller's.
my %kinds = (
	settle => sub {
		my ($from, $to) = (any(@tables), any(@tables));
		$from = 't_diverted', $to = 't_int' if rand() < .3;
		my @more;
		push @more, any(columns(), q{'{k}'}) if rand() < .6;
		push @more, 'since => now()' if rand() < .1;
		push @more, 'keep => true' if rand() < .2;
		push @more, "duplicates => '" . any('report', 'delete', 'what') . q{'} if rand() < .4;
		push @more, 'most => ' . any(0, 1, -1) if rand() < .2;
		return ($to, rand() < .6 ? trigger($to, $from) : (), insert($from), insert($to), any('', any(@drops)),
			'SELECT * FROM streamfilter_settle(' . join(', ', regclass($from), regclass($to), @more) . ')');
	},
	warm => sub {
		my $table = any(@tables);
		my $condition = any('true', 'k IS NOT NULL', 'nothing', 'k = k', '1', '', 'true; DROP TABLE t_int', 'nop() IS NULL');
		return ($table, insert($table), any('', any(@drops)), 'SELECT streamfilter_warm(' . join(', ', regclass(@filters), regclass($table),
			rand() < .6 ? columns() : (), rand() < .2 ? "condition => '$condition'" : ()) . ')');
	},
	trigger => sub {
		my $table = any(@tables);
		return ($table, trigger($table, rand() < .4 ? any(@tables) : undef), any('', any(@drops)), insert($table));
	},
	forget => sub {
		my $table = any(@tables);
		return ($table, rand() < .3 ? trigger($table) : (), insert($table), forget_trigger($table), any('', '', any(@drops)),
			any("DELETE FROM $table", "UPDATE $table SET k = k", "UPDATE $table SET k = NULL", "TRUNCATE $table"));
	},
	distinct => sub {
		my $table = any(@tables);
		return ($table, insert($table), any('', any(@drops)), 'SELECT count(*) FROM streamfilter_distinct(' . join(', ', any('NULL', ("NULL::$table") x 3, 'NULL::int'),
			any(("'SELECT * FROM $table'") x 3, "'SELECT 1'", "'TABLE t_int'"), any(q{'lru(memory=1kB)'}, q{'bloom(memory=1kB, k=1)'}), rand() < .5 ? columns() : ()) . ')');
	},
	evaluate => sub {
		my $table = any(@tables);
		my $query = any(("'SELECT k FROM $table'") x 2, "'SELECT * FROM $table'", "'SELECT k, x FROM $table'", "''");
		return ($table, insert($table), any('', any(@drops)), 'SELECT FROM ' . any("streamfilter_evaluate($query, '{lru(memory=1kB)}')",
			"streamfilter_profile($query, '{lru(memory=1kB)}', '" . any('lag', 'position', 'importance', 'what') . q{')}, "streamfilter_advise($query, '64kB', 0.01)"));
	});
my @kinds = sort keys %kinds;

my (@findings, %ended, %succeeded, $calls);
while (($calls // 0) < $most)
{
	my (@cells, @about);
	for (1 .. 100)
	{
		my $kind = any(@kinds, 'settle', 'settle', 'trigger');
		my ($table, @statements) = grep { $_ ne '' } $kinds{$kind}->();
		push @cells, \@statements;
		push @about, [ $kind, $table ];
	}
	my $script = "\\set VERBOSITY verbose\nSET client_min_messages = error;\n";
	for my $i (0 .. $#cells)
	{
		$script .= "\\warn CELL $i\n\\set any false\nBEGIN; SET LOCAL search_path = s, public;\n";
		# What fails does not keep the rest from running.
		$script .= "SAVEPOINT a;\n$_;\n\\set failed :ERROR\n\\if :ERROR\n\\set any true\nROLLBACK TO a;\n\\endif\n" for @{ $cells[$i] };
		$script .= "\\echo CELL $i :failed :any\nROLLBACK;\n";
	}
	my ($status, $out, $err) = $node->psql('postgres', $script, on_error_stop => 0);
	$calls += @cells;
	while (($out // '') =~ /^CELL (\d+) (\w+) (\w+)$/mg)
	{
		my ($i, $failed, $any) = ($1, $2, $3);
		my ($kind, $table) = @{ $about[$i] };
		++$succeeded{$kind}{$table} if ($kind =~ /trigger|forget/ ? $any : $failed) eq 'false';
	}
	my $last = -1;
	while (($err // '') =~ /^CELL (\d+)(?:\n|\z)(.*?)(?=^CELL|\z)/gms)
	{
		my ($i, $said) = ($1, $2);
		$last = $i;
		for my $error (split /^(?=(?:psql:\S+ )?ERROR: )/m, $said)
		{
			next unless $error =~ /ERROR: +(\w{5}): (.*)/;
			my ($code, $message) = ($1, $2);
			my $ours = $error =~ /^LOCATION: .*\.[ch]pp:/m;
			++$ended{ ($ours ? 'ours ' : '') . $code };
			my $what = $code =~ /^XX/ || $message =~ /cache lookup failed/ ? 'internal'
			  : $ours && !$documented{$code} ? 'not documented'
			  : $ours && $error !~ /^HINT: /m && $code ne '22004' ? 'without a HINT'    # "must not be null" says what to do
			  : !$ours && $code =~ /^42/ && $error =~ /^(QUERY|CONTEXT): .*(OPERATOR\(|\$1|AS [dt]\b)/m ? 'of SQL of ours'
			  : next;
			push @findings, "$what: " . join('; ', @{ $cells[$i] }) . "\n    $error";
		}
	}
	push @findings, 'the session has ended: ' . join('; ', @{ $cells[$last] }) . "\n$err" if $last < $#cells || ($err // '') =~ /server closed/;
}
my %told;    # one of each place in the sources
diag($_) for grep { !$told{ /^(.*?): .*^(LOCATION: .*)/ms ? "$1 $2" : $_ }++ } @findings;
note("seed $seed, $calls calls: " . join(', ', map { "$_ $ended{$_} times" } sort keys %ended));
is(scalar(@findings), 0, "$calls calls: errors are ours, documented, and say what to do");
for my $kind (@kinds)
{
	my @on = sort keys %{ $succeeded{$kind} };
	cmp_ok(scalar(@on), '>=', 3, "$kind succeeds on tables of several shapes");
	note("@on");
}

done();
