# The statements of a case: every way for rows into a table.
package Statements;
use strict;
use warnings;
use Rows;

sub draw {
	my ($dice, $table, $rows, $files) = @_;
	my $self = bless { dice => $dice, table => $table, rows => $rows, files => $files, prelude => [] }, __PACKAGE__;
	my @statements = map { $self->statement } 1 .. 1 + $dice->roll(3);
	return join "\n", @{ $self->{prelude} }, $self->settings, $self->in_transactions(@statements), '';
}

sub settings {
	my ($self) = @_;
	my $dice = $self->{dice};
	my @settings;
	push @settings, 'SET streamfilter.report = on;' if $dice->chance(10);
	push @settings, 'SET session_replication_role = replica;' if $dice->chance(3);
	push @settings, "SET streamfilter.mode = '" . $dice->one_of(qw(enforce shadow off)) . "';" if $dice->chance(5);
	push @settings, 'SET ROLE loader;' if $self->{table}{as_role} || $dice->chance(5);
	return @settings;
}

sub in_transactions {
	my ($self, @statements) = @_;
	my $dice = $self->{dice};
	my $way = $dice->roll(10);
	return @statements if $way < 5 || grep { /^BEGIN/ } @statements;
	return ('BEGIN;', @statements, $dice->one_of('COMMIT;', 'COMMIT;', 'ROLLBACK;')) if $way < 7;
	my ($first, @others) = @statements;
	return ('BEGIN;', $first, 'SAVEPOINT here;', @others, $dice->one_of('ROLLBACK TO here;', 'RELEASE here;'), $first, 'COMMIT;') if $way < 9;
	return ('BEGIN;', 'SAVEPOINT here;', @statements, 'ROLLBACK TO here;', @statements, 'COMMIT;');
}

# ---- one statement -------------------------------------------------------------------------------

my @WAYS = (('select') x 5, ('copy_file') x 5, ('copy_stdin') x 3, ('values') x 2, qw(copy_program copy_where copy_freeze
	unnest returning returning returning_query on_conflict cte block caught prepared merge self volatile limited cursor function));

sub statement {
	my ($self) = @_;
	my $way = $self->{dice}->one_of(@WAYS);
	return $self->$way;
}

# The columns of the statement, and what the source has for them.
sub columns {
	my ($self) = @_;
	my @columns = @{ $self->{table}{columns} };
	@columns = grep { $_ ne 't' } @columns if $self->{dice}->chance(10);
	return @columns;
}

sub target { my ($self, @columns) = @_; return "$self->{table}{target} (" . join(', ', @columns) . ')' }

# Only rows that the filter has not seen, where that is the query's business.
sub judged {
	my ($self, @more) = @_;
	my $table = $self->{table};
	push @more, "NOT streamfilter_seen('f', " . join(', ', @{ $table->{key} }) . ')' if $table->{judge} eq 'seen';
	return @more ? ' WHERE ' . join(' AND ', @more) : '';
}

sub insert {
	my ($self, $source, @more) = @_;
	my @columns = $self->columns;
	my $listed = join ', ', @columns;
	return "INSERT INTO ${\$self->target(@columns)} SELECT $listed FROM $source" . $self->judged(@more);
}

sub select {
	my ($self) = @_;
	return $self->insert($self->{dice}->one_of('src', 'src', '(SELECT * FROM src ORDER BY id) AS s', '(SELECT * FROM src ORDER BY v, id DESC) AS s'),
		$self->{dice}->chance(20) ? 'v <> 2' : ()) . ';';
}

sub values {
	my ($self) = @_;
	my @columns = $self->columns;
	my @rows = @{ $self->{rows} };
	@rows = @rows[ 0 .. 199 ] if @rows > 200;
	return 'SELECT 1;' unless @rows;
	my $default = $self->{table}{default} && $self->{dice}->chance(30);
	my $rows = join ",\n  ", map { '(' . Rows::literals($_, \@columns) . ($default ? ', DEFAULT' : '') . ')' } @rows;
	return 'INSERT INTO ' . $self->target(@columns, $default && $self->{table}{target} eq 't' ? 'd' : ()) . " VALUES $rows;" unless $default && $self->{table}{target} ne 't';
	return 'SELECT 2;';
}

sub unnest {
	my ($self) = @_;
	my %type = (id => 'int', k => $self->{table}{key_type}, t => 'text', v => 'int', part => 'int');
	my @columns = $self->columns;
	my $arrays = join ', ', map { "(SELECT array_agg($_ ORDER BY id) FROM src)" } @columns;
	my $listed = join ', ', @columns;
	return "INSERT INTO ${\$self->target(@columns)} SELECT $listed FROM unnest($arrays) AS u ($listed)" . $self->judged . ';';
}

# Also what is not returned in batches.
sub returning {
	my ($self) = @_;
	my $conflict = $self->{dice}->chance(20) ? ' ON CONFLICT DO NOTHING' : '';
	return $self->insert('src', $conflict ? 'true' : ()) . "$conflict RETURNING "
	  . $self->{dice}->one_of('id, v', '*', 't, tableoid::regclass', 'xmax, cmin, id + v', 'id, count_rows()', 'id, (SELECT count(*) FROM src)') . ';';
}

sub returning_query {
	my ($self) = @_;
	my $name = 'get' . ++$self->{names};
	my $body = $self->quoted('select');
	push @{ $self->{prelude} }, "CREATE FUNCTION $name() RETURNS SETOF int LANGUAGE plpgsql AS \$\$ BEGIN RETURN QUERY $body RETURNING id; END \$\$;";
	return "SELECT $name();";
}

sub on_conflict { my ($self) = @_; return $self->insert('src', 'true') . ' ON CONFLICT DO NOTHING;' }

sub cte {
	my ($self) = @_;
	my $insert = $self->insert('src');
	return $self->{dice}->one_of("WITH stored AS ($insert RETURNING id) SELECT count(*), sum(id) FROM stored;", "WITH stored AS ($insert) SELECT count(*) FROM src;");
}

sub quoted { my ($self, $way) = @_; (my $text = $self->$way) =~ s/;\z//; return $text }

sub block {
	my ($self) = @_;
	return 'DO $$ DECLARE n bigint; BEGIN ' . $self->quoted('select') . '; GET DIAGNOSTICS n = ROW_COUNT; INSERT INTO log VALUES (\'block\', n, NULL); ' . $self->quoted('copy_file') . '; GET DIAGNOSTICS n = ROW_COUNT; INSERT INTO log VALUES (\'copied\', n, NULL); END $$;';
}

sub caught {
	my ($self) = @_;
	return 'DO $$ BEGIN ' . $self->quoted($self->{dice}->one_of('select', 'copy_file')) . '; EXCEPTION WHEN OTHERS THEN RAISE WARNING \'caught %: %\', SQLSTATE, SQLERRM; END $$;';
}

sub prepared {
	my ($self) = @_;
	my $name = 'p' . ++$self->{names};
	return "PREPARE $name (int) AS " . $self->insert('src', 'v <> $1') . ";\n" . join("\n", ("EXECUTE $name (3);") x (1 + $self->{dice}->roll(7))) . "\nDEALLOCATE $name;";
}

sub merge {
	my ($self) = @_;
	my @columns = $self->columns;
	return "MERGE INTO t USING src ON t.id = src.id AND false WHEN NOT MATCHED THEN INSERT (" . join(', ', @columns) . ') VALUES (' . join(', ', map { "src.$_" } @columns) . ');';
}

sub self { my ($self) = @_; return $self->insert('t AS s') . ';' }

sub volatile {
	my ($self) = @_;
	my @columns = grep { $_ ne 'v' } @{ $self->{table}{columns} };
	return "INSERT INTO ${\$self->target(@columns, 'v')} SELECT " . join(', ', @columns, 'count_rows() % 30') . ' FROM src' . $self->judged . ';';
}

sub limited { my ($self) = @_; return $self->insert('(SELECT * FROM src ORDER BY id LIMIT 20 OFFSET 2) AS s') . ';' }

sub cursor {
	my ($self) = @_;
	return "BEGIN;\nDECLARE c CURSOR FOR SELECT count(*) FROM t;\n" . $self->select . "\nFETCH c;\nCLOSE c;\nEND;";
}

sub function {
	my ($self) = @_;
	my $name = 'load' . ++$self->{names};
	my $body = $self->quoted($self->{dice}->one_of('select', 'unnest'));
	push @{ $self->{prelude} }, "CREATE FUNCTION $name() RETURNS void LANGUAGE sql AS \$\$ $body \$\$;";
	return "SELECT $name();\nSELECT $name();";
}

# ---- COPY ----------------------------------------------------------------------------------------

sub format {
	my ($self) = @_;
	my $format = $self->{dice}->one_of(qw(text text csv));
	my @options = $format eq 'csv' ? ('FORMAT csv') : ();
	return ($format, @options);
}

# A file of these rows; its lines are those of both ways.
sub file {
	my ($self, $columns, $format, $header) = @_;
	my $path = "$self->{files}." . ++$self->{file_count};
	open my $file, '>:raw', $path or die "$path: $!";
	print $file join($format eq 'csv' ? ',' : "\t", @$columns) . "\n" if $header;
	print $file Rows::lines($self->{rows}, $columns, $format);
	close $file;
	chmod 0644, $path;
	return $path;
}

sub with { my (@options) = @_; return @options ? ' WITH (' . join(', ', @options) . ')' : '' }

sub copy_file {
	my ($self, @more) = @_;
	return $self->copy_binary if !@more && $self->{dice}->chance(15);
	my @columns = $self->columns;
	my ($format, @options) = $self->format;
	my $header = $self->{dice}->chance(20);
	push @options, $self->{dice}->one_of('HEADER', 'HEADER match') if $header;
	my $path = $self->file(\@columns, $format, $header);
	return "COPY ${\$self->target(@columns)} FROM '$path'" . with(@options, @more) . ';';
}

sub copy_binary {
	my ($self) = @_;
	my @columns = $self->columns;
	my $path = "$self->{files}." . ++$self->{file_count};
	my $listed = join ', ', @columns;
	push @{ $self->{prelude} }, "COPY (SELECT $listed FROM src ORDER BY id) TO '$path' WITH (FORMAT binary);";
	return "COPY ${\$self->target(@columns)} FROM '$path' WITH (FORMAT binary);";
}

sub copy_stdin {
	my ($self) = @_;
	my @columns = $self->columns;
	my ($format, @options) = $self->format;
	return "COPY ${\$self->target(@columns)} FROM STDIN" . with(@options) . ";\n" . Rows::lines($self->{rows}, \@columns, $format) . '\\.';
}

sub copy_program {
	my ($self) = @_;
	my @columns = $self->columns;
	my ($format, @options) = $self->format;
	return "COPY ${\$self->target(@columns)} FROM PROGRAM 'cat ${\$self->file(\@columns, $format)}'" . with(@options) . ';';
}

sub copy_where {
	my ($self) = @_;
	my @columns = $self->columns;
	my ($format, @options) = $self->format;
	my $where = $self->{dice}->one_of('v <> 2', 'v % 3 <> 1 AND id > 2', 't IS NOT NULL', 'count_rows() >= 0',
		$self->{table}{judge} eq 'seen' ? "NOT streamfilter_seen('f', " . join(', ', @{ $self->{table}{key} }) . ')' : 'true');
	return "COPY ${\$self->target(@columns)} FROM '${\$self->file(\@columns, $format)}'" . with(@options) . " WHERE $where;";
}

sub copy_freeze {
	my ($self) = @_;
	return "BEGIN;\nTRUNCATE t;\n" . $self->copy_file('FREEZE') . "\nCOMMIT;";
}

1;
