# Code that runs within an INSERT drops, alters, disables, renames or gives to another owner what judges the INSERT's rows: the trigger,
# its filter, its table, rights, the extension; for good, or in a block that is rolled back. The statement then fails, or each key has
# its row: PostgreSQL's own triggers fire to the end of a statement, too. A pairwise choice; `make check-trigger-goes` runs all.
# flavours: faults
use Sf;

my $all = $ENV{STREAMFILTER_ALL_PAIRS} // 0;
my $node = start_node('goes', "fsync = off\nlog_min_messages = fatal\nstatement_timeout = '60s'\n");
sql('CREATE ROLE u; CREATE ROLE v; CREATE ROLE w');
my $discards = sql(q{SELECT max_val::int FROM pg_settings WHERE name = 'debug_discard_caches'});

my $filter = q{SERVER streamfilter OPTIONS (memory '64kB')};

# What is done, and whether a key may come twice afterwards.
my %actions = (
	drop_trigger     => [ 'DROP TRIGGER zz ON s.t', 1 ],
	drop_triggers    => [ 'DROP TRIGGER zz ON s.t; DROP TRIGGER IF EXISTS aa ON s.t', 1 ],
	replace_trigger  => [ q{CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION public.streamfilter_discard('s.g', 'k')}, 1 ],
	rename_trigger   => [ 'ALTER TRIGGER zz ON s.t RENAME TO zy', 1 ],
	disable_trigger  => [ 'ALTER TABLE s.t DISABLE TRIGGER zz', 1 ],
	drop_owned       => [ 'DROP OWNED BY v CASCADE', 1 ],
	reassign         => [ 'REASSIGN OWNED BY v TO w', 0 ],
	reassign_tables  => [ 'REASSIGN OWNED BY u TO w', 0 ],
	owner_of_table   => [ 'ALTER TABLE s.t OWNER TO w', 0 ],
	owner_of_filter  => [ 'ALTER FOREIGN TABLE s.f OWNER TO w', 0 ],
	owner_diverted   => [ 'ALTER TABLE s.q OWNER TO w', 0 ],
	revoke           => [ 'REVOKE ALL ON s.f FROM PUBLIC', 0 ],
	drop_table       => [ 'DROP TABLE s.t CASCADE', 1 ],
	alter_type       => [ 'ALTER TABLE s.t ALTER k TYPE bigint', 0 ],
	drop_column      => [ 'ALTER TABLE s.t DROP x', 0 ],
	add_column       => [ 'ALTER TABLE s.t ADD y int', 0 ],
	drop_filter      => [ 'DROP FOREIGN TABLE s.f CASCADE', 1 ],
	new_filter       => [ "DROP FOREIGN TABLE s.f CASCADE; CREATE FOREIGN TABLE s.f (k int) $filter; GRANT ALL ON s.f TO PUBLIC", 1 ],
	other_filter     => [ 'DROP TRIGGER zz ON s.t; ALTER FOREIGN TABLE s.f RENAME TO f_old; ALTER FOREIGN TABLE s.known RENAME TO f', 1 ],
	resize_filter    => [ q{ALTER FOREIGN TABLE s.f OPTIONS (SET memory '128kB')}, 1 ],
	retype_filter    => [ 'ALTER FOREIGN TABLE s.f ALTER k TYPE bigint', 1 ],
	widen_filter     => [ 'ALTER FOREIGN TABLE s.f ADD z int', 1 ],
	truncate_filter  => [ 'TRUNCATE s.f', 1 ],
	drop_diverted    => [ 'DROP TABLE s.q CASCADE', 1 ],
	drop_extension   => [ 'DROP EXTENSION streamfilter CASCADE', 1 ],
	later_trigger    => [ 'CREATE TRIGGER zzz BEFORE INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION s.nop()', 0 ],
	nested_insert    => [ 'INSERT INTO s.t (k) VALUES (1), (1)', 0 ],
	mode_off         => [ q{SET streamfilter.mode = 'off'}, 1 ],
	replica          => [ 'SET session_replication_role = replica', 1 ]);
# Where the code stands.
my @places = qw(earlier default check domain filter_domain generated index query after when);
my @ways   = qw(row batch copy spi partition);
my %kinds  = (discard => q{streamfilter_discard('s.f'}, mark => q{streamfilter_mark('s.f', 'm'}, divert => q{streamfilter_divert('s.f', 's.q'});

my @few  = (1, 2, 3, 1, 3, 2, 4);
my @many = ((1 .. 300) x 2);
# Where caches are discarded whenever they could be, a row takes seconds.
my @fewer = (1, 2, 2);
sub keys_of { my ($cell) = @_; return $cell->{discards} ? @fewer : $cell->{way} eq 'batch' ? @many : @few; }

# ---- a cell ---------------------------------------------------------------------------------------------------------

sub table_of
{
	my ($cell) = @_;
	my ($place, $way, $kind) = @$cell{qw(place way kind)};
	my $columns = 'k ' . ($place eq 'domain' ? 's.td' : 'int') . ', m boolean, x int';
	$columns .= ', d int DEFAULT s.when_two()' if $place eq 'default';
	$columns .= ', CHECK (s.act(k))' if $place eq 'check';
	$columns .= ', g boolean GENERATED ALWAYS AS (s.act_immutable(k)) STORED' if $place eq 'generated';
	my $sql = "CREATE TABLE s.t ($columns)" . ($way eq 'partition' ? q{ PARTITION BY RANGE (k);
		CREATE TABLE s.t1 PARTITION OF s.t FOR VALUES FROM (0) TO (3);
		CREATE TABLE s.t2 PARTITION OF s.t FOR VALUES FROM (3) TO (10000);} : ';');
	$sql .= 'CREATE TABLE s.q (k int, m boolean); CREATE INDEX ON s.t (x);';
	$sql .= 'CREATE INDEX ON s.t (s.act_immutable(k));' if $place eq 'index';
	$sql .= 'CREATE TRIGGER aa BEFORE INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION s.fire();' if $place eq 'earlier';
	$sql .= 'CREATE TRIGGER aa AFTER INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION s.fire();' if $place eq 'after';
	my $when = $place eq 'when' ? 'WHEN (s.act(NEW.k))' : '';
	$sql .= "CREATE TRIGGER zz BEFORE INSERT ON s.t FOR EACH ROW $when EXECUTE FUNCTION public.$kinds{$kind}, 'k');";
	return "$sql ALTER TABLE s.t OWNER TO u; ALTER TABLE s.q OWNER TO u;";
}

sub setup
{
	my ($cell) = @_;
	my ($action) = @{ $actions{ $cell->{action} } };
	my $when = $cell->{way} eq 'batch' ? 290 : 2;
	my $body = "EXECUTE \$q\$$action\$q\$;";
	$body = "BEGIN $body RAISE 'undone' USING ERRCODE = 'UU000'; EXCEPTION WHEN SQLSTATE 'UU000' THEN NULL; END;" if $cell->{undone};
	$body = "IF x = $when AND coalesce(current_setting('my.done', true), '') <> 'y' THEN PERFORM set_config('my.done', 'y', false); $body END IF;";
	my $function = sub {
		my ($head, $before, $after, $volatile) = @_;
		return "CREATE FUNCTION s.$head LANGUAGE plpgsql $volatile SECURITY DEFINER AS \$\$ $before $body $after END \$\$;";
	};
	my $domain = $cell->{place} eq 'filter_domain' ? 's.fd' : 'int';
	return join "\n", q{
RESET session_replication_role; RESET streamfilter.mode; RESET debug_discard_caches;
SET client_min_messages = error; SET my.done = '';
DROP SCHEMA IF EXISTS s CASCADE; CREATE EXTENSION IF NOT EXISTS streamfilter SCHEMA public;
CREATE SCHEMA s; GRANT ALL ON SCHEMA s TO PUBLIC; GRANT USAGE ON FOREIGN SERVER streamfilter TO v, w;},
	  $function->('act(x int) RETURNS boolean', 'BEGIN', 'RETURN true;', 'VOLATILE'),
	  $function->('pass(x int) RETURNS int', 'BEGIN', 'RETURN x;', 'VOLATILE'),
	  $function->('when_two() RETURNS int', "DECLARE x int := $when; BEGIN", 'RETURN 0;', 'VOLATILE'),
	  $function->('fire() RETURNS trigger', 'DECLARE x int := NEW.k; BEGIN', 'RETURN NEW;', 'VOLATILE'), qq{
CREATE FUNCTION s.act_immutable(x int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS \$\$ BEGIN PERFORM s.act(x); RETURN true; END \$\$;
CREATE FUNCTION s.nop() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN RETURN NEW; END \$\$;
CREATE DOMAIN s.td AS int CHECK (s.act(VALUE)); CREATE DOMAIN s.fd AS int CHECK (s.act(VALUE));
CREATE FOREIGN TABLE s.f (k $domain) $filter; CREATE FOREIGN TABLE s.g (k int) $filter; CREATE FOREIGN TABLE s.known (k int) $filter;
INSERT INTO s.known SELECT generate_series(1, 5000);
ALTER FOREIGN TABLE s.f OWNER TO v; GRANT ALL ON s.f, s.g, s.known TO PUBLIC;}, table_of($cell);
}

sub statement
{
	my ($cell) = @_;
	my ($place, $way) = @$cell{qw(place way)};
	my @keys   = keys_of($cell);
	my $column = $place eq 'query' ? 's.pass(k)' : 'k';
	my $insert = "INSERT INTO s.t (k) SELECT $column FROM unnest('{" . join(',', @keys) . "}'::int[]) k";
	my $before = 'SET streamfilter.batch_insert = ' . ($way eq 'row' ? 'off' : 'on') . ';';
	$before .= ' SET debug_discard_caches = 1;' if $cell->{discards};
	# psql does not say how a COPY has ended: the next statement of the transaction does.
	return "$before\nBEGIN;\nCOPY s.t (k) FROM STDIN;\n" . join("\n", @keys) . "\n\\.\nSELECT;\n" if $way eq 'copy';
	return "$before\n" . ($way eq 'spi' ? "DO \$\$ BEGIN $insert; END \$\$;" : "$insert;");
}

# Says after each step what has come of it.
sub script
{
	my ($cell, $number) = @_;
	return setup($cell) . "\n\\echo CELL $number setup :SQLSTATE\n\\warn CELL $number\n" . statement($cell) . qq{
\\echo CELL $number ran :SQLSTATE :LAST_ERROR_MESSAGE
COMMIT;
RESET debug_discard_caches;
SELECT 'CELL $number rows ' || count(*) || ' ' || count(DISTINCT k) || ' ' || count(*) FILTER (WHERE m) FROM s.t;
SELECT 'CELL $number diverted ' || count(*) FROM s.q;
INSERT INTO s.t (k) VALUES (5001), (5001);
\\echo CELL $number again :SQLSTATE :LAST_ERROR_MESSAGE
SELECT 'CELL $number later ' || count(*) FROM s.t WHERE k = 5001;
};
}

sub judge
{
	my ($cell, $got) = @_;
	return 'no answer' unless defined $got->{again};
	return "setup: $got->{setup}" if $got->{setup} ne '00000';
	my ($code, $message) = split / /, $got->{ran}, 2;
	# PostgreSQL says this of a function that is no longer there, too.
	my $own = qr/cache lookup failed for function|could not find tuple for trigger/;
	for my $told ($got->{ran}, $got->{again})
	{
		return "internal error: $told" if $told =~ /^(XX|42601)/ && !($cell->{action} eq 'drop_extension' && $told =~ $own);
	}
	my ($rows, $distinct, $marked) = split / /, $got->{rows} // '';
	return $got->{again} =~ /^(42P01|3F000)/ ? '' : 'no table' unless defined $rows;
	return $rows == 0 ? '' : "$rows rows in spite of $got->{ran}" if $code ne '00000';
	my @keys   = keys_of($cell);
	my %wanted = map { $_ => 1 } @keys;
	my $times  = keys %wanted;
	return "$distinct keys of $times, $rows rows" if $distinct != $times;
	my $all = $rows + ($cell->{kind} eq 'divert' ? $got->{diverted} // 0 : 0);
	return "$all rows of " . @keys if $cell->{kind} ne 'discard' && $all < @keys && $cell->{action} !~ /^(drop_diverted|replace_trigger)$/;
	my $once = $cell->{kind} eq 'mark' ? $rows - $marked : $rows;
	return "$once rows that are no repeats" if $once != $times && !($actions{ $cell->{action} }[1] && !$cell->{undone});
	return "the next statement has stored nothing" if $got->{again} =~ /^00000/ && ($got->{later} // 0) < 1;
	return '';
}

# ---- all of them, or each pair --------------------------------------------------------------------------------------

my @cells;
my @actions = map { my $action = $_; map { [ $action, $_ ] } 0, 1 } sort keys %actions;
my @kinds   = sort keys %kinds;
for my $i (0 .. $#actions)
{
	for my $j (0 .. $#places)
	{
		for my $k (0 .. $#ways * $all)
		{
			for my $l (0 .. $#kinds * $all)
			{
				my %cell = (action => $actions[$i][0], undone => $actions[$i][1], place => $places[$j],
					way => $ways[ ($k + $i + 2 * $j) % @ways ], kind => $kinds[ ($l + $i + $j) % @kinds ]);
				next if $cell{place} eq 'query' && $cell{way} eq 'copy';
				$cell{discards} = $discards && $cell{way} ne 'batch' && @cells % ($all ? 175 : 60) == 7;
				push @cells, \%cell;
			}
		}
	}
}

sub name_of { my ($cell) = @_; return join ' ', $cell->{action} . ($cell->{undone} ? ' (undone)' : ''), @$cell{qw(place way kind)}; }

my ($crashes, %findings) = (0);
my (%ended, %outcome);

sub run_cells
{
	my (@numbers) = @_;
	my ($status, $out, $err) = $node->psql('postgres', join("\n", '\set VERBOSITY verbose', map { script($cells[$_], $_) } @numbers), on_error_stop => 0);
	my %got;
	while (($out // '') =~ /^CELL (\d+) (\w+) ?(.*)$/mg) { $got{$1}{$2} = $3; }
	while (($err // '') =~ /^CELL (\d+)\n(.*?)(?=^CELL|\z)/gms)
	{
		my ($number, $said) = ($1, $2);
		next unless exists $got{$number} && $got{$number}{ran} =~ /^25P02/ && $said =~ /ERROR: +(\w+): (.*)/;
		$got{$number}{ran} = "$1 $2";
	}
	for my $number (@numbers)
	{
		my $finding = judge($cells[$number], $got{$number} // {});
		if ($finding eq 'no answer' && @numbers > 1)    # a session that has ended
		{
			wait_for('SELECT true');
			run_cells($number);
			next;
		}
		$findings{$number} = $finding if $finding ne '';
		my $got = $got{$number} // {};
		$outcome{$number} = join '; ', map { $_ . ' ' . ($got->{$_} // '-') } qw(ran rows diverted again later);
		$outcome{$number} .= "; WRONG: $finding" if $finding ne '';
		++$ended{ ($got{$number}{ran} // '?') =~ /^(\w+)/ ? $1 : '?' };
	}
	return;
}

my @left = 0 .. $#cells;
run_cells(splice @left, 0, 25) while @left;

diag(name_of($cells[$_]) . ": $findings{$_}") for sort { $a <=> $b } keys %findings;
if ($all)
{
	append_to_file("$PostgreSQL::Test::Utils::tmp_check/../trigger_goes.txt", join '', map { name_of($cells[$_]) . ": $outcome{$_}\n" } 0 .. $#cells);
}
note(scalar(@cells) . ' cells; the statement ended with: ' . join(', ', map { "$_ $ended{$_} times" } sort keys %ended));
is(scalar(keys %findings), 0, 'each statement fails, or each key has its row');
cmp_ok($ended{'00000'} // 0, '>', @cells / 3, 'many succeed');

done();
