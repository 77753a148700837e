# Random statements into random tables behind one filter or two: after each, the table has the rows, and the filters have the keys, that
# an exact model says. A key is remembered if and only if its row is stored: other triggers drop and change rows, indexes refuse them
# (ON CONFLICT), partitions have indexes and triggers of their own, transactions, prepared ones and savepoints roll back, and a second session
# waits for the first one's keys, or the first one for the second's.
# STREAMFILTER_CASES: how many statements of each seed, STREAMFILTER_SEED: the only one. Three seeds are always the same; what the day's says
# is only reported.
# flavours: quick
use Sf;

my $cases = $ENV{STREAMFILTER_CASES} // 1500;
# MERGE gives its rows in the order of their source.
my $node = start_node('random', "fsync = off\njit = off\nenable_hashjoin = off\nenable_mergejoin = off\nmax_prepared_transactions = 10\n");
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
my $most = 9;    # of ids and codes
# Of filters that forget none of so few keys, and have no false positives
my @options = ("kind 'bloom', keys '1000', fpr '1e-9'", "kind 'bloom', keys '1000', fpr '1e-9', slices '4'", "kind 'timer', window '1000 rows', memory '64kB'",
	"kind 'lru', memory '64kB', fpr '1e-9'", "kind 'clq', memory '64kB', fpr '1e-9'");

sub any { return $_[ int rand @_ ] }
sub chance { return rand() < $_[0] }

# ---- a table, its triggers, its indexes ---------------------------------------------------------------------------------

sub make_table
{
	my $parted  = chance(.35) ? 1 : 0;
	my %table   = (parted => $parted, triggers => [], indexes => [], filters => {});
	my @names   = sort { rand() <=> .5 } 'a' .. 'h';
	$table{options} = any(@options);
	$table{tree}    = 1 if $table{options} eq $options[0] && chance(.2);
	my $judge = sub {
		my ($filter, @key) = @_;
		$table{filters}{$filter} = \@key;
		push @{ $table{triggers} }, { name => shift @names, does => any(qw(discard discard discard mark divert)), filter => $filter, key => \@key };
	};
	$judge->('seen_1', any([ 'id' ], [ 'id' ], [ 'id', 'code' ])->@*);
	$judge->('seen_2', any([ 'code' ], [ 'id' ], [ 'code', 'id' ])->@*) if chance(.45);
	push @{ $table{triggers} }, { name => shift @names, does => 'drop', rest => int rand 3, only => $parted && chance(.5) ? int rand 3 : undef } if chance(.45);
	push @{ $table{triggers} }, { name => shift @names, does => 'change', only => undef } if chance(.12);
	push @{ $table{triggers} }, { name => shift @names, does => 'annotate', only => undef } if chance(.25);
	for my $columns (grep { chance(.3) } [ 'pk' ], [ 'code' ], [ 'id' ], [ 'id', 'code' ])
	{
		push @{ $table{indexes} }, { columns => [ @$columns, $parted ? 'part' : () ], only => $parted && chance(.3) ? int rand 3 : undef };
	}
	$table{triggers} = [ sort { $a->{name} cmp $b->{name} } @{ $table{triggers} } ];
	return \%table;
}

sub definition
{
	my ($table) = @_;
	my $on = sub { my ($only) = @_; return defined $only ? "rows_$only" : 'rows'; };
	my @all = (
		'DROP TABLE IF EXISTS rows, aside CASCADE', 'DROP FOREIGN TABLE IF EXISTS seen_1, seen_2, seen_root CASCADE',
		'CREATE TABLE rows (id int, code int, pk int DEFAULT nextval(\'pks\'), part int, note text, again_1 bool, again_2 bool)'
			. ($table->{parted} ? ' PARTITION BY LIST (part)' : ''),
		'CREATE TABLE aside (id int, code int, part int)');
	push @all, 'CREATE TABLE rows_0 PARTITION OF rows FOR VALUES IN (0)',
		'CREATE TABLE rows_1 (again_2 bool, again_1 bool, note text, part int, gone int, pk int DEFAULT nextval(\'pks\'), code int, id int)',
		'ALTER TABLE rows_1 DROP COLUMN gone', 'ALTER TABLE rows ATTACH PARTITION rows_1 FOR VALUES IN (1)',
		'CREATE TABLE rows_2 PARTITION OF rows FOR VALUES IN (2)' if $table->{parted};
	for my $filter (sort keys %{ $table->{filters} })
	{
		my $key = join ', ', map { "$_ int" } @{ $table->{filters}{$filter} };
		my $leaf = $table->{tree} && $filter eq 'seen_1';
		my $options = $table->{options} . ($leaf ? ", seed '7'" : '');
		push @all, "CREATE FOREIGN TABLE seen_root ($key) SERVER streamfilter OPTIONS ($options)" if $leaf;
		push @all, "CREATE FOREIGN TABLE $filter ($key) SERVER streamfilter OPTIONS ($options" . ($leaf ? ", parent 'seen_root')" : ')');
	}
	for my $trigger (@{ $table->{triggers} })
	{
		my $function = {
			discard => sub { "streamfilter_discard('$trigger->{filter}')" },
			divert => sub { "streamfilter_divert('$trigger->{filter}', 'aside')" },
			mark => sub { "streamfilter_mark('$trigger->{filter}', 'again_" . substr($trigger->{filter}, -1) . "')" },
			drop => sub { "drop_rest($trigger->{rest})" },
			change => sub { 'change_id()' },
			annotate => sub { 'annotate()' } }->{ $trigger->{does} }->();
		push @all, "CREATE TRIGGER $trigger->{name} BEFORE INSERT ON " . $on->($trigger->{only}) . " FOR EACH ROW EXECUTE FUNCTION $function";
	}
	push @all, map { 'CREATE UNIQUE INDEX ON ' . $on->($_->{only}) . ' (' . join(', ', @{ $_->{columns} }) . ')' } @{ $table->{indexes} };
	return map { "$_;" } @all;
}

# ---- a statement --------------------------------------------------------------------------------------------------------

sub make_row
{
	my ($gives_pk) = @_;
	return { id => chance(.05) ? undef : 1 + int rand $most, code => 1 + int rand $most, part => int rand 3, note => any('x', 'y', 'z'), pk => $gives_pk ? 1 + int rand 9 : undef };
}

sub literal { my ($value) = @_; return !defined $value ? 'NULL::int' : $value =~ /^\d+$/ ? $value : "'$value'"; }

# What follows INSERT, and in the statement what it does
sub make_conflict
{
	my ($table, $statement) = @_;
	$statement->{action} = 'error';
	return '' if chance(.35);
	my @arbiters = grep { !defined $_->{only} } @{ $table->{indexes} };
	my $arbiter = @arbiters && chance(.6) ? any(@arbiters) : undef;
	$statement->{arbiter} = $arbiter;
	$statement->{action} = $arbiter && chance(.5) ? 'update' : 'nothing';
	$statement->{where} = chance(.4);
	return 'ON CONFLICT' . ($arbiter ? ' (' . join(', ', @{ $arbiter->{columns} }) . ')' : '') . ' DO '
		. ($statement->{action} eq 'nothing' ? 'NOTHING' : 'UPDATE SET note = excluded.note')
		. ($statement->{action} eq 'update' && $statement->{where} ? ' WHERE rows.code % 2 = 0' : '');
}

# One INSERT, COPY or MERGE: its text, its rows, and what to do about conflicts. `plain`: for PL/pgSQL.
sub make_single
{
	my ($table, $plain) = @_;
	my $gives_pk = chance(.4);
	my @names = ('id', 'code', 'part', 'note', $gives_pk ? 'pk' : ());
	my @rows = map { make_row($gives_pk) } 1 .. any(1, 1, 2, 3, 5, 8, 12);
	my %statement = (does => 'insert', rows => \@rows);
	my $conflict = make_conflict($table, \%statement);
	my $values = join ', ', map { my $row = $_; '(' . join(', ', map { literal($row->{$_}) } @names) . ')' } @rows;
	my $names = join ', ', @names;
	my $source = "(VALUES $values) v ($names)";
	my $insert = "INSERT INTO rows ($names)";
	my @ways = ("$insert VALUES $values $conflict", "$insert SELECT * FROM $source $conflict",
		"$insert SELECT $names FROM $source, generate_series(1, 1) $conflict");
	push @ways, ("$insert VALUES $values $conflict RETURNING 'r'", "WITH i AS ($insert SELECT * FROM $source $conflict) SELECT 'r'",
		"WITH i AS ($insert SELECT * FROM $source $conflict RETURNING 1) SELECT 'r' FROM i LIMIT 1",
		"DO \$do\$BEGIN $insert SELECT * FROM $source $conflict; END\$do\$",
		"PREPARE p AS $insert VALUES $values $conflict; EXECUTE p; DEALLOCATE p") if !$plain;
	if ($conflict eq '')
	{
		my $merge = "INSERT ($names) VALUES (" . join(', ', map { "v.$_" } @names) . ')';
		push @ways, ("MERGE INTO rows r USING $source ON false WHEN NOT MATCHED THEN $merge") x 2;
		my $lines = join '', map { my $row = $_; join("\t", map { $row->{$_} // '\N' } @names) . "\n" } @rows;
		my $bad = chance(.1) ? "no number\n" : '';
		push @ways, ("COPY rows ($names) FROM stdin;\n$lines$bad\\.") x 3 if !$plain;
		if (chance(.25))
		{
			$statement{does} = any('merge', 'merge update');
			@ways = ("MERGE INTO rows r USING $source ON r.code = v.code WHEN MATCHED THEN "
				. ($statement{does} eq 'merge' ? 'DO NOTHING' : 'UPDATE SET note = v.note') . " WHEN NOT MATCHED THEN $merge");
		}
	}
	$statement{text} = any(@ways);
	$statement{does} = 'fail' if $statement{text} =~ /no number/;
	return \%statement;
}

# Rows that one INSERT stores go into a second one, by and by.
sub make_chain
{
	my ($table) = @_;
	my %first = (does => 'insert', rows => [ map { make_row(0) } 1 .. any(1, 2, 4, 6) ]);
	my %second = (does => 'insert');
	my $values = join ', ', map { my $row = $_; '(' . join(', ', map { literal($row->{$_}) } qw(id code part note)) . ')' } @{ $first{rows} };
	my ($conflict, $other) = (make_conflict($table, \%first), make_conflict($table, \%second));
	return { does => 'chain', first => \%first, second => \%second, text => "WITH i AS (INSERT INTO rows (id, code, part, note) VALUES $values $conflict RETURNING id, code, part, note) "
		. "INSERT INTO rows (id, code, part, note) SELECT id, code % $most + 1, part, note || '+' FROM i $other" };
}

# PL/pgSQL that catches errors
sub make_caught
{
	my ($table) = @_;
	my @parts = map { make_single($table, 1) } 1 .. 3;
	return { does => 'caught', parts => \@parts,
		text => "DO \$do\$BEGIN $parts[0]{text}; BEGIN $parts[1]{text}; EXCEPTION WHEN OTHERS THEN NULL; END; $parts[2]{text}; END\$do\$" };
}

sub make_statement
{
	my ($table) = @_;
	return chance(.08) ? make_chain($table) : chance(.08) ? make_caught($table) : make_single($table);
}

# ---- the model ----------------------------------------------------------------------------------------------------------

sub key_of { my ($row, @columns) = @_; return (grep { !defined $row->{$_} } @columns) ? undef : join ',', map { $row->{$_} } @columns; }

my $generated = 0;

sub applies { my ($what, $table, $row) = @_; return !defined $what->{only} || $row->{part} == $what->{only}; }

# Rows of the table that the index takes for this one; in a partitioned table it has the partition key, too.
sub twin { my ($state, $table, $index, $row) = @_; my $key = key_of($row, @{ $index->{columns} }) // return; my ($found) = grep { applies($index, $table, $_) && (key_of($_, @{ $index->{columns} }) // '') eq $key } @{ $state->{rows} }; return $found; }

# Is a row there that an index on the whole key of the trigger has?
sub has_twin
{
	my ($state, $table, $trigger, $row) = @_;
	for my $index (grep { applies($_, $table, $row) } @{ $table->{indexes} })
	{
		my %has = map { $_ => 1 } @{ $index->{columns} };
		return 1 if !(grep { !$has{$_} } @{ $trigger->{key} }) && twin($state, $table, $index, $row);
	}
	return 0;
}

# Inserts a row; dies where the statement fails. Returns what RETURNING has of it.
sub insert
{
	my ($state, $table, $statement, $row) = @_;
	my %new = %$row;
	$new{pk} //= 'generated ' . ++$generated;
	my @pending;
	my $refused = sub {
		for my $of (@pending)
		{
			next unless $of->{added};
			next if $statement->{action} ne 'error' && has_twin($state, $table, $of->{trigger}, \%new);
			delete $state->{known}{ $of->{trigger}{filter} }{ $of->{key} };
		}
	};
	for my $trigger (grep { applies($_, $table, \%new) } @{ $table->{triggers} })
	{
		my $does = $trigger->{does};
		if ($does eq 'drop')
		{
			next unless $new{code} % 3 == $trigger->{rest};
			$refused->();
			return;
		}
		elsif ($does eq 'change') { $new{id} += 1 if defined $new{id} && $new{code} == 4; }
		elsif ($does eq 'annotate') { $new{note} .= '!'; }
		else
		{
			my $key = key_of(\%new, @{ $trigger->{key} });
			my $known = defined $key && $state->{known}{ $trigger->{filter} }{$key};
			$new{ 'again_' . substr($trigger->{filter}, -1) } = $known ? 't' : 'f' if $does eq 'mark';
			push @{ $state->{aside} }, { %new } if $known && $does eq 'divert';
			if ($known && $does ne 'mark') { $refused->(); return; }
			$state->{known}{ $trigger->{filter} }{$key} = 1 if defined $key;
			push @pending, { trigger => $trigger, key => $key, added => defined $key && !$known };
		}
	}
	my $changed = grep { ($_->{key} // '') ne (key_of(\%new, @{ $_->{trigger}{key} }) // '') } @pending;
	for my $index (grep { applies($_, $table, \%new) } @{ $table->{indexes} })
	{
		my $twin = twin($state, $table, $index, \%new) // next;
		next if $statement->{action} eq 'error' || ($statement->{arbiter} && $statement->{arbiter} != $index);
		if ($statement->{action} eq 'nothing') { $refused->(); return; }
		die "error\n" if $twin->{touched};
		if ($statement->{where} && $twin->{code} % 2) { $refused->(); return; }
		die "error\n" if $changed;
		$twin->{note} = $new{note};
		$twin->{touched} = 1;
		return $twin;
	}
	die "error\n" if grep { applies($_, $table, \%new) && twin($state, $table, $_, \%new) } @{ $table->{indexes} };
	die "error\n" if $changed;
	push @{ $state->{rows} }, \%new;
	$new{touched} = 1;
	return \%new;
}

# Rows that were there before the statement are matched.
sub merge
{
	my ($state, $table, $statement) = @_;
	my @there = @{ $state->{rows} };
	for my $row (@{ $statement->{rows} })
	{
		my @matched = grep { $_->{code} == $row->{code} } @there;
		insert($state, $table, $statement, $row) if !@matched;
		for my $of ($statement->{does} eq 'merge update' ? @matched : ())
		{
			die "error\n" if $of->{touched};
			$of->{note} = $row->{note};
			$of->{touched} = 1;
		}
	}
	return;
}

sub copy
{
	my ($state) = @_;
	return { rows => [ map { { %$_ } } @{ $state->{rows} } ], aside => [ @{ $state->{aside} } ],
		known => { map { $_ => { %{ $state->{known}{$_} } } } keys %{ $state->{known} } } };
}

# The state after a statement, and whether it fails.
sub run
{
	my ($state, $table, $statement) = @_;
	if ($statement->{does} eq 'caught')
	{
		my ($first, $fails) = run($state, $table, $statement->{parts}[0]);
		return ($state, 1) if $fails;
		my ($second) = run($first, $table, $statement->{parts}[1]);
		(my $third, $fails) = run($second, $table, $statement->{parts}[2]);
		return $fails ? ($state, 1) : ($third, 0);
	}
	my $next = copy($state);
	delete $_->{touched} for @{ $next->{rows} };
	return (eval { execute($next, $table, $statement); 1 }) ? ($next, 0) : ($state, 1);
}

sub execute
{
	my ($state, $table, $statement) = @_;
	my $does = $statement->{does};
	die "error\n" if $does eq 'fail';
	return merge($state, $table, $statement) if $does =~ /^merge/;
	for my $row (@{ $does eq 'chain' ? $statement->{first}{rows} : $statement->{rows} })
	{
		my $stored = insert($state, $table, $does eq 'chain' ? $statement->{first} : $statement, $row);
		next unless $does eq 'chain' && $stored;
		my %next = map { $_ => $stored->{$_} } qw(id part);
		insert($state, $table, $statement->{second}, { %next, code => $stored->{code} % $most + 1, note => "$stored->{note}+" });
	}
	return;
}

sub show
{
	my ($state, $table) = @_;
	my $text = sub { my ($row, @columns) = @_; return join '/', map { $row->{$_} // '-' } @columns; };
	my @shown = ('rows: ' . join ' ', sort map { $text->($_, qw(id code part note again_1 again_2)) } @{ $state->{rows} });
	push @shown, 'aside: ' . join ' ', sort map { $text->($_, qw(id code part)) } @{ $state->{aside} };
	push @shown, map { my $filter = $_; "$filter: " . join ' ', sort keys %{ $state->{known}{$filter} } } sort keys %{ $table->{filters} };
	push @shown, 'seen_root: ' . join ' ', sort keys %{ $state->{known}{seen_1} } if $table->{tree};
	return join "\n", @shown;
}

sub show_query
{
	my ($table) = @_;
	my $text = sub { join " || '/' || ", map { "coalesce($_\::text, '-')" } @_ };
	my $marks = join ', ', map { "CASE again_$_ WHEN true THEN 't' WHEN false THEN 'f' END AS again_$_" } 1, 2;
	my @parts = ("SELECT 'rows: ' || coalesce(string_agg(t, ' ' ORDER BY t COLLATE \"C\"), '') FROM (SELECT " . $text->(qw(id code part note again_1 again_2))
		. " AS t FROM (SELECT id, code, part, note, $marks FROM rows) r) s");
	push @parts, "SELECT 'aside: ' || coalesce(string_agg(t, ' ' ORDER BY t COLLATE \"C\"), '') FROM (SELECT " . $text->(qw(id code part)) . ' AS t FROM aside) s';
	for my $filter ((sort keys %{ $table->{filters} }), $table->{tree} ? 'seen_root' : ())
	{
		my @key = @{ $table->{filters}{ $filter eq 'seen_root' ? 'seen_1' : $filter } };
		my $from = join ', ', map { "generate_series(1, " . ($most + 2) . ") $_" } @key;
		my $key = join " || ',' || ", @key;
		push @parts, "SELECT '$filter: ' || coalesce(string_agg(t, ' ' ORDER BY t COLLATE \"C\"), '') FROM (SELECT $key\::text AS t FROM $from "
			. "WHERE streamfilter_test('$filter', " . join(', ', @key) . ')) s';
	}
	return join "\n", map { "$_;" } @parts;
}

# ---- the run ------------------------------------------------------------------------------------------------------------

sql(q{CREATE SEQUENCE pks START 1000000;
	CREATE FUNCTION drop_rest() RETURNS trigger LANGUAGE plpgsql AS $q$BEGIN IF NEW.code % 3 = TG_ARGV[0]::int THEN RETURN NULL; END IF; RETURN NEW; END$q$;
	CREATE FUNCTION annotate() RETURNS trigger LANGUAGE plpgsql AS $q$BEGIN NEW.note := NEW.note || '!'; RETURN NEW; END$q$;
	CREATE FUNCTION change_id() RETURNS trigger LANGUAGE plpgsql AS
		$q$BEGIN IF NEW.code = 4 THEN NEW.id := NEW.id + 1; END IF; RETURN NEW; END$q$;
	});
# The second session is one of dblink.
my $has_other = sql(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'dblink'});
note('dblink is not installed: one session only') if !$has_other;
sql(q{CREATE EXTENSION dblink;
	CREATE FUNCTION start_other(text) RETURNS void LANGUAGE plpgsql AS $q$BEGIN PERFORM dblink_send_query('other', $1); END$q$;
	CREATE FUNCTION await_other() RETURNS void LANGUAGE plpgsql AS $q$BEGIN
		FOR i IN 1..6 LOOP PERFORM * FROM dblink_get_result('other', false) AS t (x text); END LOOP;
	END$q$;}) if $has_other;

sub run_script
{
	my ($script) = @_;
	my $folder = PostgreSQL::Test::Utils::tempdir_short();
	open my $file, '>', "$folder/in" or die $!;
	print $file $script;
	close $file;
	system("psql -XAtq -d postgres -v VERBOSITY=terse -f '$folder/in' > '$folder/out' 2>&1");
	return slurp_file("$folder/out");
}

my %told = (statements => 0, failed => 0);

# A statement of the other session, which has no COPY, and sees only what has committed
sub make_other
{
	my ($table) = @_;
	for (;;)
	{
		my $statement = make_statement($table);
		return $statement if $statement->{text} !~ /^COPY|ON r\.code|PREPARE/;
	}
}

# A table and statements, each with the state after it. The fields are those of what is done so far.
sub run_table
{
	my ($script, $check) = @_;
	my $table = make_table();
	my $state = { rows => [], aside => [], known => {} };
	my @definition = definition($table);
	push @$script, 'SET client_min_messages = error;', @definition;
	my (@outer, @done);
	my $note = sub { my ($text) = @_; push @$script, $text; push @done, $text; };
	my $do = sub {
		my ($statement) = @_;
		($state, my $fails) = run($state, $table, $statement);
		$note->($statement->{text} . ($statement->{text} =~ /^COPY/ ? '' : ';'));
		++$told{statements};
		$told{failed} += $fails;
	};
	my $end = sub {
		my ($back) = @_;
		my $top = @outer == 1;
		my $before = pop @outer;
		$state = $before if $back;
		return $back ? 'ROLLBACK TO s; RELEASE s;' : 'RELEASE s;' if !$top;
		return "PREPARE TRANSACTION 'p';\n" . ($back ? 'ROLLBACK' : 'COMMIT') . " PREPARED 'p';" if chance(.25);
		return $back ? 'ROLLBACK;' : 'COMMIT;';
	};
	for (1 .. 12)
	{
		$note->('SET streamfilter.batch_insert = ' . any('on', 'off') . ';') if chance(.2);
		if (@outer < 3 && chance(.25)) { $note->(@outer ? 'SAVEPOINT s;' : "BEGIN;\n\\set ON_ERROR_ROLLBACK on"); push @outer, $state; }
		if (!@outer && chance(.1) && $has_other)
		{
			# The other session's transaction ends while this statement waits for it.
			my ($theirs, $back) = (make_other($table), chance(.5));
			my $before = $state;
			$note->("SELECT start_other(\$o\$BEGIN; $theirs->{text}\$o\$), await_other();");
			($state) = run($state, $table, $theirs);
			if (chance(.3))
			{
				my $undone = make_other($table);
				$note->("SELECT start_other(\$o\$SAVEPOINT s; $undone->{text}\$o\$), await_other();");
				$note->("SELECT start_other('ROLLBACK TO s'), await_other();");
			}
			$note->("SELECT start_other('SELECT pg_sleep(0.01); " . ($back ? 'ROLLBACK' : 'COMMIT') . "');");
			$state = $before if $back;
			my $ours = make_statement($table);
			$ours = make_statement($table) while $ours->{text} =~ /ON r\.code/;
			$do->($ours);
			$note->("SELECT await_other(), start_other('ROLLBACK'), await_other();");    # if it has failed
		}
		else { $do->(make_statement($table)); }
		if (@outer && chance(.1) && $has_other)
		{
			# The other session's statement waits for the end of this transaction.
			my $theirs = make_other($table);
			$note->("SELECT start_other(\$o\$$theirs->{text}\$o\$)" . (chance(.5) ? ', pg_sleep(0.003);' : ';'));
			$note->($end->(chance(.5))) while @outer;
			$note->('SELECT await_other();');
			($state) = run($state, $table, $theirs);
		}
		elsif (@outer && chance(.25)) { $note->($end->(chance(.5))); }
		$check->($table, show($state, $table), join "\n", @definition, @done);
	}
	push @$script, 'ROLLBACK;';
	return;
}

sub run_seed
{
	my ($seed) = @_;
	srand($seed);
	my @script = !$has_other ? () : ("SELECT dblink_connect('other', 'host=' || quote_literal('" . $node->host . "') || ' dbname=postgres port=' || current_setting('port'));");
	my (@expected, @about);
	my $check = sub {
		my ($table, $expected, $about) = @_;
		push @script, "\\echo #state " . @expected, show_query($table), '\echo #end';
		push @expected, $expected;
		push @about, $about;
	};
	run_table(\@script, $check) while @expected < $cases;
	my %answers = run_script(join("\n", @script) . "\n") =~ /^#state (\d+)\n(.*?)\n#end$/msg;
	my @wrong = grep { ($answers{$_} // '') ne $expected[$_] } 0 .. $#expected;
	diag("seed $seed, statement $_:\n$about[$_]\nexpected\n$expected[$_]\nfound\n" . ($answers{$_} // 'nothing')) for @wrong ? $wrong[0] : ();
	return scalar @wrong;
}

is(run_seed($_), 0, "seed $_: $cases statements") for $ENV{STREAMFILTER_SEED} // (1, 2, 3);
note("$told{statements} statements; $told{failed} of them failed");
cmp_ok($told{failed}, '<', $told{statements} / 2, 'most succeed');
TODO:
{
	local $TODO = "the day's seed is only reported";
	my ($day, $month, $year) = (gmtime)[ 3, 4, 5 ];
	is(run_seed(($year + 1900) * 10000 + ($month + 1) * 100 + $day), 0, "the day's seed") if !defined $ENV{STREAMFILTER_SEED};
}

done();
