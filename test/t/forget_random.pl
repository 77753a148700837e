# Random statements that delete and insert rows with the same keys, in tables whose filters follow them: after each, the table has the keys
# that an exact model says, the filter knows just these, and the answers are counted as the model has given them, by the statement and by the
# filter; or it fails, and changes nothing. Plain and partitioned tables, foreign keys with
# ON DELETE CASCADE, deferred triggers, triggers that put deleted rows back, generated columns; CTEs, MERGE, savepoints, PL/pgSQL; a second
# session that inserts keys before the transaction of the first has ended, as if it came after.
# STREAMFILTER_CASES: how many statements of each seed, STREAMFILTER_SEED: the only one. The seed of the day is tried, too; what it finds is
# told, and fails nothing.
# flavours: quick
use Sf;

my $cases = $ENV{STREAMFILTER_CASES} // 1500;
my $node  = start_node('random', "fsync = off\n");
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;

sub any { return $_[ int rand @_ ] }
sub chance { return rand() < $_[0] }
sub keys_of { my ($most) = @_; my %k = map { 1 + int rand 12 => 1 } 1 .. 1 + int rand $most; my @keys = sort { $a <=> $b } keys %k; return @keys }
sub listed { return '(' . join(', ', @_ ? @_ : 0) . ')' }
sub values_of { my ($columns, @keys) = @_; return 'VALUES ' . join ', ', map { "($_, 'new'$columns)" } @keys }

# ---- the model: key => value ----------------------------------------------------------------------------------------

my %kinds = map { $_ => 1 } qw(plain parts deferred again before generated child);

# Answers to the rows that statements give.
my ($accepted, $discarded);

# Gives back how many are new.
sub store
{
	my ($state, $value, @keys) = @_;
	my $new = 0;
	for my $key (@keys)
	{
		if (exists $state->{$key}) { ++$discarded }
		else { $state->{$key} = $value; ++$new }
	}
	$accepted += $new;
	return $new;
}

# What is put back is so only once.
sub drop_rows
{
	my ($state, $table, @keys) = @_;
	my @gone = grep { exists $state->{$_} } @keys;
	my @back = $table eq 'again' ? grep { $state->{$_} ne 'back' } @gone : ();
	delete @$state{@gone};
	return (\@gone, sub { my ($now) = @_; store($now, 'back', @back); return });
}

sub moved { my ($state, @keys) = @_; return grep { exists $state->{$_} && !exists $state->{ $_ + 100 } } @keys }

sub move_rows
{
	my ($state, @keys) = @_;
	my @moved = moved($state, @keys);
	my @values = delete @$state{@moved};
	$state->{ $moved[$_] + 100 } = $values[$_] for 0 .. $#moved;
	return @moved;
}

# ---- statements, each with what it does to the model, and how many rows it says it has changed ----------------------------------------------------------------

sub simple
{
	my ($table) = @_;
	my $columns = $table eq 'parts' ? ', ' . any(1, 2) : '';
	my @d = keys_of(4);
	my $free = "NOT EXISTS (SELECT FROM $table x WHERE x.id = t.id + 100)";
	my $part = $table eq 'parts' ? any('', ', d = 3 - d') : '';
	return any(
		[ "INSERT INTO $table " . values_of($columns, @d), sub { store($_[0], 'new', @d) } ],
		[ "DELETE FROM $table WHERE id IN " . listed(@d), sub { my ($gone, $after) = drop_rows($_[0], $table, @d); $after->($_[0]); scalar @$gone } ],
		$table eq 'child' ? [ "DELETE FROM child WHERE id > 100", sub { my @all = grep { $_ > 100 } keys %{ $_[0] }; delete @{ $_[0] }{@all}; scalar @all } ]
		: [ "UPDATE $table t SET id = id + 100$part WHERE id IN " . listed(@d) . " AND $free", sub { scalar move_rows($_[0], @d) } ],
		$table eq 'child' ? [ 'SELECT', sub { undef } ]
		: [ "UPDATE $table SET id = 13 - id$part WHERE id < 13", sub { my $s = $_[0]; my %old = map { $_ => delete $s->{$_} } grep { $_ < 13 } keys %$s; $s->{ 13 - $_ } = $old{$_} for keys %old; scalar keys %old } ]);
}

sub together
{
	my ($table) = @_;
	my $columns = $table eq 'parts' ? ', ' . any(1, 2) : '';
	my @d = keys_of(4);
	my @k = chance(.7) ? (@d, chance(.5) ? keys_of(2) : ()) : keys_of(4);
	my %k = map { $_ => 1 } @k;
	@k = sort { $a <=> $b } keys %k;
	my $insert = values_of($columns, @k);
	my $gone = sub
	{
		my ($inserts, $both) = @_;
		return sub
		{
			my ($gone, $after) = drop_rows($_[0], $table, @d);
			my $new = store($_[0], 'new', $inserts->(@$gone));
			$after->($_[0]);
			return $both ? $new + @$gone : $new;
		};
	};
	my @all = (
		[ "WITH d AS (DELETE FROM $table WHERE id IN " . listed(@d) . " RETURNING id) INSERT INTO $table SELECT id, 'new'$columns FROM d", $gone->(sub { @_ }) ],
		[ "WITH d AS (DELETE FROM $table WHERE id IN " . listed(@d) . ") INSERT INTO $table $insert", $gone->(sub { @k }) ],
		[ "WITH d AS (DELETE FROM $table WHERE id IN " . listed(@d) . " RETURNING id) INSERT INTO $table $insert UNION ALL SELECT id, 'new'$columns FROM d", $gone->(sub { (@k, @_) }) ],
		[ "MERGE INTO $table t USING (VALUES " . join(', ', (map { "($_, true)" } @d), map { "($_, false)" } @k) . ") s (id, gone) ON t.id = s.id AND s.gone " .
			"WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND NOT s.gone THEN INSERT VALUES (s.id, 'new'$columns)", $gone->(sub { @k }, 1) ]);
	push @all, [ "WITH u AS (UPDATE $table t SET id = id + 100 WHERE id IN " . listed(@d) . " AND NOT EXISTS (SELECT FROM $table x WHERE x.id = t.id + 100)" . any('', ' RETURNING id') .
		") INSERT INTO $table $insert", sub { move_rows($_[0], @d); store($_[0], 'new', @k) } ] if $table ne 'child';
	push @all, [ "WITH g AS (DELETE FROM parent WHERE id IN " . listed(@d) . ' RETURNING id), p AS (INSERT INTO parent2 SELECT id FROM g) ' .
		"INSERT INTO child $insert", sub { my $s = $_[0]; delete @$s{@d}; store($s, 'new', @k) } ] if $table eq 'child';
	return any(@all);
}

sub block
{
	my ($table) = @_;
	my (@body, @effects);
	for (1 .. 2 + int rand 3)
	{
		my ($statement, $effect) = @{ chance(.6) ? simple($table) : together($table) };
		$statement = 'PERFORM 1' if $statement eq 'SELECT';
		if (chance(.3)) { push @body, "BEGIN $statement; RAISE 'undone' USING errcode = 'UNDON'; EXCEPTION WHEN SQLSTATE 'UNDON' THEN END;" }
		else { push @body, "$statement;"; push @effects, $effect }
	}
	# What is undone counts, too.
	return [ 'DO $do$ BEGIN ' . join(' ', @body) . ' END $do$', sub { for my $effect (@effects) { $effect->($_[0]) } return }, "@body" =~ /undone/ ];
}

# ---- the run --------------------------------------------------------------------------------------------------------

sub prepare
{
	my @made = map { my $t = $_; my $rest = $t eq 'parts' ? ', d int) PARTITION BY LIST (d' : $t eq 'generated' ? ', g int GENERATED ALWAYS AS (id * 2) STORED' : '';
		my $follow = $t eq 'deferred' ? 'CONSTRAINT TRIGGER follow AFTER DELETE OR UPDATE ON deferred DEFERRABLE INITIALLY DEFERRED' : "TRIGGER follow AFTER DELETE OR UPDATE ON $t";
		"CREATE FOREIGN TABLE seen_$t (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB'); CREATE TABLE $t (id int, v text$rest);" .
		"CREATE TRIGGER zz BEFORE INSERT ON $t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_$t');" .
		"CREATE $follow FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen_$t');" } sort keys %kinds;
	return sql(join('', @made) . q{
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1); CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
		CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE parent2 (id int);
		ALTER TABLE child ADD FOREIGN KEY (id) REFERENCES parent ON DELETE CASCADE;
		CREATE FUNCTION put_back() RETURNS trigger LANGUAGE plpgsql AS
			$q$BEGIN IF OLD.v <> 'back' THEN EXECUTE format('INSERT INTO %I VALUES ($1, $2)', TG_TABLE_NAME) USING OLD.id, 'back'; END IF; RETURN OLD; END$q$;
		CREATE TRIGGER a AFTER DELETE ON again FOR EACH ROW EXECUTE FUNCTION put_back();
		CREATE TRIGGER a BEFORE DELETE ON before FOR EACH ROW EXECUTE FUNCTION put_back();
		CREATE TABLE done (n int);
		CREATE PROCEDURE await(which int, or_waits bool) LANGUAGE plpgsql AS $q$
			BEGIN
				FOR i IN 1 .. 2000 LOOP
					EXIT WHEN EXISTS (SELECT FROM done WHERE n = which) OR or_waits AND EXISTS (SELECT FROM pg_locks WHERE NOT granted);
					PERFORM pg_sleep(.005);
				END LOOP;
			END$q$;});
}

# After each statement: the rows, and what the filter knows.
sub state_of
{
	my ($table) = @_;
	return "SELECT 'rows ' || coalesce(string_agg(id || ':' || v, ' ' ORDER BY id), '') FROM $table;\n" .
		"SELECT 'counts ' || accepted || ' ' || discarded FROM streamfilter_stats WHERE filter = 'seen_$table'::regclass;\n" . "SELECT 'known ' || coalesce(string_agg(i::text, ' ' ORDER BY i), '') FROM generate_series(-20, 250) i WHERE streamfilter_test('seen_$table', i);\n";
}

sub run_seed
{
	my ($seed) = @_;
	srand($seed);
	my (@drawn, @found);
	my $folder = PostgreSQL::Test::Utils::tempdir_short();
	my $script = "TRUNCATE done;\n\\set ON_ERROR_ROLLBACK on\n\\set VERBOSITY terse\n";
	for my $n (1 .. $cases)
	{
		my $table = any(sort keys %kinds);
		my ($statement, $effect, $uncounted) = @{ chance(.25) ? simple($table) : chance(.7) ? together($table) : block($table) };
		push @drawn, [ $table, $statement, $effect, $uncounted ];
		my $parents = $table eq 'child' ? 'INSERT INTO parent SELECT generate_series(1, 12) ON CONFLICT DO NOTHING; ' : '';
		my ($begin, $end) = chance(.2) ? ('BEGIN; SAVEPOINT a; ', any('RELEASE a; COMMIT;', 'ROLLBACK TO a; COMMIT;', 'ROLLBACK;')) : ('', '');
		my @second = $table ne 'child' && chance(.1) ? keys_of(4) : ();
		if (@second)
		{
			($begin, $end) = ('BEGIN;', any('COMMIT;', 'COMMIT;', 'ROLLBACK;'));
			append_to_file("$folder/second_$n", "INSERT INTO $table " . values_of($table eq 'parts' ? ', ' . any(1, 2) : '', @second) . "; INSERT INTO done VALUES ($n);\n");
		}
		push @{ $drawn[-1] }, $end =~ /ROLLBACK/ ? 1 : 0, \@second;
		$end = "\\! psql -XAtq -d postgres -f $folder/second_$n >> $folder/second 2>&1 &\nCALL await($n, true);\n$end\nCALL await($n, false);" if @second;
		$script .= "$parents\n\\echo #before $n\n" . state_of($table) . "$begin\n$statement;\n\\echo rows :ROW_COUNT\n$end\n\\echo #after $n\n" . state_of($table) . "\\echo #end\n";
	}
	open my $file, '>', "$folder/in" or die $!;
	print $file $script;
	close $file;
	system("psql -XAtq -d postgres < '$folder/in' > '$folder/out' 2>&1");
	my $answers = slurp_file("$folder/out");
	my $errors = 0;
	while ($answers =~ /^#before (\d+)\n(.*?)^#after \d+\n(.*?)^#end/msg)
	{
		my ($n, $before, $after) = ($1, $2, $3);
		my ($table, $statement, $effect, $uncounted, $undone, $second) = @{ $drawn[ $n - 1 ] };
		my %state = map { split /:/ } split / /, $before =~ /^rows (.*)/m ? $1 : '';
		my @messages = $before =~ /ERROR:  (.*)/g;
		my @others = grep { !/^statement drops a row as a repeat|violates foreign key|tuple to be (updated|deleted) was already modified|cannot affect row a second time/ } @messages;
		++$errors if @messages;
		my %expected = %state;
		my %other = %state;
		($accepted, $discarded) = $before =~ /^counts (\d+) (\d+)/m;
		my $changed = @messages ? undef : $effect->($undone ? \%other : \%expected);
		store(\%expected, 'new', @$second);
		my $expected = join ' ', map { "$_:$expected{$_}" } sort { $a <=> $b } keys %expected;
		my ($rows) = $after =~ /^rows (.*)/m;
		my ($known) = $after =~ /^known (.*)/m;
		my $keys = join ' ', $rows =~ /(-?\d+):/g;
		my ($counts) = $after =~ /^counts (.*)/m;
		my ($told) = $before =~ /^rows (\d+)$/m;
		my $counted = $uncounted || @messages || $counts eq "$accepted $discarded" && (!defined $changed || $told == $changed);
		next if !@others && $rows eq $expected && $known eq $keys && $counted;
		push @found, "seed $seed, case $n, $table: $statement\nsecond session: @$second\nbefore: $before\nexpected: $expected\nrows: $rows\nknown: $known\ncounts: $counts, expected: $accepted $discarded, "
			. ($changed // 'any') . ' rows';
	}
	note("seed $seed: $cases statements, $errors refused");
	return @found;
}

prepare();
for my $seed ($ENV{STREAMFILTER_SEED} // (1, 2))
{
	my @found = run_seed($seed);
	diag($_) for @found[ 0 .. ($#found < 4 ? $#found : 4) ];
	is(scalar @found, 0, "seed $seed: $cases statements, each stores its rows or is refused");
}
unless (defined $ENV{STREAMFILTER_SEED})
{
	my $seed  = int(time / 86400);
	my @found = run_seed($seed);
	diag("the day's seed: $_") for @found;
	note("seed $seed of the day: " . @found . ' lose rows');
}

done();
