# A case: a table, a filter, rows and statements, drawn from a seed, and how the two ways of carrying it out are compared.
package Case;
use strict;
use warnings;
use Dice;
use Rows;
use Statements;
use Table;

my $WORLD = <<'END';
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS schema_of_case CASCADE;
CREATE SCHEMA schema_of_case;
GRANT ALL ON SCHEMA schema_of_case TO loader;
ALTER DEFAULT PRIVILEGES IN SCHEMA schema_of_case GRANT ALL ON TABLES TO loader;
ALTER DEFAULT PRIVILEGES IN SCHEMA schema_of_case GRANT ALL ON SEQUENCES TO loader;
SET search_path = schema_of_case, public;
CREATE SEQUENCE numbers;
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE FUNCTION count_rows() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM t); END $$;
END

# What is compared when the statements are done. A section is one answer.
my $CHECKS = <<'END';
RESET ROLE;
RESET session_replication_role;
RESET streamfilter.report;
RESET streamfilter.mode;
\echo # rows
SELECT tableoid::regclass, count(*), md5(string_agg(t::text, E'\n' ORDER BY ctid)) FROM t GROUP BY tableoid ORDER BY tableoid::regclass::text COLLATE "C";
\echo # log
SELECT name, id, note, count(*) FROM log GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
\echo # sequences
SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'schema_of_case' ORDER BY 1;
\echo # counters
SELECT pg_stat_force_next_flush();
SELECT relname, pg_stat_get_tuples_inserted(oid) FROM pg_class
  WHERE relnamespace = 'schema_of_case'::regnamespace AND relkind = 'r' ORDER BY 1;
SELECT kind, mode, tested, accepted, discarded, rolled_back, would_discard, diverted, waits, fill, distinct_estimate
  FROM streamfilter_stats WHERE filter = to_regclass('f');
SELECT "table", trigger, kind, rows, discarded, diverted, would_discard FROM streamfilter_triggers
  WHERE filter = to_regclass('f') ORDER BY "table"::text;
END

my $FAULTS = [ ('') x 14, qw(check null unique partition reference input) ];

sub draw {
	my ($seed, $directory) = @_;
	my $dice = Dice->new($seed);
	my $fault = $dice->one_of(@$FAULTS);
	my $rows = Rows::draw($dice, $fault);
	my $table = Table::draw($dice, $fault);
	my $statements = Statements::draw($dice, $table, $rows, "$directory/$seed");
	my $numbers = $table->{default} =~ /serial|nextval|IDENTITY/ ? 1 : 0;
	my $random = ($table->{kind} // '') eq 'sbf' ? 1 : 0;
	return { seed => $seed, numbers => $numbers, random => $random, sql => join '', $WORLD, source($table, $rows), $table->setup, $statements, checks($table) };
}

sub source {
	my ($table, $rows) = @_;
	return "CREATE TABLE src (id int, k $table->{key_type}, t text, v int, part int);\nCOPY src FROM STDIN;\n"
	  . Rows::lines([ map { { %$_, bad => 0 } } @$rows ], [qw(id k t v part)], 'text') . "\\.\nANALYZE src;\n\\echo # statements\n";
}

sub checks {
	my ($table) = @_;
	my $checks = $CHECKS;
	$checks .= "\\echo # repeats\nSELECT count(*), md5(string_agg(repeats::text, E'\\n' ORDER BY ctid)) FROM repeats;\n" if $table->{judge} eq 'divert';
	my $key = join ', ', @{ $table->{key} };
	$checks .= "\\echo # filter\nSELECT in_flight FROM streamfilter_stats WHERE filter = to_regclass('f');\n"
	  . "SELECT count(*), md5(string_agg(row(s.*)::text, ',')) FROM (SELECT DISTINCT $key, streamfilter_test('f', $key) AS seen FROM src ORDER BY $key) AS s;\n"
	  unless $table->{judge} eq 'none';
	return $checks;
}

# The case as a script, carried out one of the two ways.
sub script {
	my ($case, $batch_insert) = @_;
	my $schema = "case_$batch_insert";
	(my $sql = $case->{sql}) =~ s/schema_of_case/$schema/g;
	# Where COPY is refused psql takes its rows for SQL, so that the end of a transaction may be lost among them.
	return "\\echo @ $case->{seed} $batch_insert\nSET streamfilter.batch_insert = $batch_insert;\n$sql"
	  . "\\echo # end\n;ROLLBACK;\nRESET ROLE;\nSET client_min_messages = warning;\nDROP SCHEMA $schema CASCADE;\nDEALLOCATE ALL;\nRESET ALL;\n\\set VERBOSITY verbose\n";
}

# ---- comparing -----------------------------------------------------------------------------------

# { seed => { on => text, off => text } } of what psql has printed.
sub read_answers {
	my ($text) = @_;
	my %answers;
	my ($seed, $way);
	for my $line (split /^/, $text) {
		if ($line =~ /^@ (\d+) (on|off)$/) { ($seed, $way) = ($1, $2) }
		elsif (defined $seed) { $answers{$seed}{$way} .= $line }
	}
	return \%answers;
}

# What has to differ: where in the server an error was raised, and the schema.
sub normalized {
	my ($text) = @_;
	$text =~ s/case_(?:on|off)/case/g;
	$text =~ s/^LOCATION: .*\n//mg;
	return $text;
}

sub sections {
	my ($text) = @_;
	my (%sections, $name);
	for my $line (split /^/, normalized($text)) {
		if ($line =~ /^# (\w+)$/) { $name = $1 }
		elsif (defined $name) { $sections{$name} .= $line }
	}
	return \%sections;
}

# Where an error has ended a statement, rows that were read ahead may have been counted and have taken numbers from a
# sequence, so that rows that come later get others; and as repeats they have been promoted, which no rollback undoes: kind
# sbf draws at random then what it forgets, and lets other rows of later statements pass.
sub differences {
	my ($case, @answers) = @_;
	my ($off, $on) = map { sections($_) } @answers;
	my $failed = ($off->{statements} // '') =~ /^(?:ERROR|WARNING:  01000: caught)/m;
	my %skipped = map { $_ => $failed } qw(counters sequences);
	if ($failed && $case->{random}) {
		$skipped{$_} = 1 for qw(filter rows log repeats);
		$_->{statements} =~ s/^((?:ERROR|WARNING:  01000: caught)[^\n]*\n).*/$1/ms for $off, $on;
	}
	if ($failed && $case->{numbers}) {
		$skipped{$_} = 1 for qw(rows repeats);
		$_->{statements} =~ s/^DETAIL:  Failing row contains \(.*?\)\.$//msg for $off, $on;
	}
	return grep { !$skipped{$_} && ($off->{$_} // '') ne ($on->{$_} // '') } sort keys %{ { %$off, %$on } };
}

1;
