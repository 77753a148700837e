# No message holds a byte that is no character, in any encoding of the database or the client: names of many bytes a
# character, long ones, cut at every place by what quotes them.
use Sf;
use Encode;
use IPC::Run;
use utf8;

my $node = PostgreSQL::Test::Cluster->new('messages');
$node->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'streamfilter'
max_prepared_transactions = 2
statement_timeout = '60s'
fsync = off});
$node->start;

my %encodings = (    # of the database => a letter of its own, what Perl calls it, client encodings
	UTF8 => [ 'я', 'UTF-8', qw(UTF8 LATIN1 SJIS WIN1251 EUC_JP) ],
	EUC_JP => [ '語', 'euc-jp', qw(EUC_JP SJIS UTF8) ],
	LATIN1 => [ 'é', 'iso-8859-1', qw(LATIN1 UTF8) ],
	SQL_ASCII => [ 'я', 'UTF-8', qw(SQL_ASCII) ]);    # which has no characters: nothing crashes
my %perl = (UTF8 => 'UTF-8', LATIN1 => 'iso-8859-1', SJIS => 'cp932', WIN1251 => 'cp1251', EUC_JP => 'euc-jp', SQL_ASCII => 'iso-8859-1');

# Statements that fail, warn or explain, with a text of every length around what is quoted of it.
sub statements
{
	my ($letter) = @_;
	my @statements = ('CREATE EXTENSION IF NOT EXISTS streamfilter');
	my $name = $letter x 20;
	push @statements, 'DROP FOREIGN TABLE IF EXISTS good', 'CREATE TABLE IF NOT EXISTS plain (k int)',
	  qq{CREATE FOREIGN TABLE good ("$name" int) SERVER streamfilter OPTIONS (memory '64kB')},
	  qq{SELECT streamfilter_seen('good', 'x'::text)}, qq{SELECT streamfilter_seen('good', 1, 2)},
	  qq{ALTER FOREIGN TABLE good RENAME TO "$name"},
	  qq{INSERT INTO "$name" VALUES (1)}, qq{SELECT * FROM "$name"}, qq{DELETE FROM "$name"}, qq{UPDATE "$name" SET "$name" = 2},
	  qq{SELECT streamfilter_merge('"$name"', 'bloom(memory=1kB, k=2)')}, qq{SELECT streamfilter_value('"$name"')::text <> ''},
	  qq{CREATE TRIGGER zz BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$name$name')},
	  qq{CREATE TRIGGER zz BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$name', '$name')},
	  qq{ALTER FOREIGN TABLE "$name" OPTIONS (SET memory '128kB')}, qq{EXPLAIN INSERT INTO "$name" VALUES (1)},
	  qq{CREATE SERVER "$name" FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$name', port '1', connect_timeout '1')},
	  qq{CREATE USER MAPPING FOR CURRENT_USER SERVER "$name" OPTIONS (user '$name', password '$name')},
	  qq{CREATE FOREIGN TABLE far (k int) SERVER "$name" OPTIONS (memory '64kB')}, qq{INSERT INTO far VALUES (1)},
	  qq{SELECT * FROM far WHERE k = 1}, qq{IMPORT FOREIGN SCHEMA "$name" FROM SERVER "$name" INTO public},
	  qq{DROP FOREIGN TABLE IF EXISTS far}, qq{DROP SERVER "$name" CASCADE}, qq{DROP FOREIGN TABLE "$name"};
	for my $before (0 .. 3)
	{
		for my $times (7, 8, 9, 14, 15, 16, 20, 26, 27, 28, 38, 39, 40, 41, 62, 80, 120, 400)
		{
			my $text = ('a' x $before) . $letter x $times;
			push @statements, "SELECT '$text'::streamfilter", "SELECT 'sbf(memory=$text)'::streamfilter",
			  "SELECT 'sbf($text=1)'::streamfilter", "SELECT 'sbf(memory=1kB)$text'::streamfilter",
			  "SELECT 'sbf(slices=''$text,2'')'::streamfilter", "SELECT 'sbf(memory=1kB):1:$text'::streamfilter",
			  "SELECT * FROM streamfilter_advise('$text', 0.01, 10, 10)",
			  "SELECT * FROM streamfilter_profile('SELECT 1', '{sbf(memory=1kB)}', '$text')",
			  "SELECT * FROM streamfilter_distinct(NULL::plain, 'SELECT 1 AS k', 'sbf(memory=1kB)', '{$text}')",
			  "SELECT _streamfilter.streamfilter_fdw_validator('{$text=1}', 'pg_foreign_table'::regclass)",
			  "SELECT _streamfilter.streamfilter_fdw_validator('{kind=$text}', 'pg_foreign_table'::regclass)",
			  "SELECT _streamfilter.streamfilter_fdw_validator('{servers=$text}', 'pg_foreign_table'::regclass)",
			  "SELECT _streamfilter.streamfilter_fdw_validator('{role=$text}', 'pg_attribute'::regclass)",
			  "SELECT _streamfilter.streamfilter_fdw_validator('{host=$text,$text=1}', 'pg_foreign_server'::regclass)",
			  "SELECT * FROM streamfilter_hashes_define('$text', '$text', '$text', '$text', '$text', '$text')",
			  "SELECT * FROM streamfilter_hashes_define('public', '$text', 'sbf(memory=1kB, $text=1)', 'wait', 'logged', 'x')",
			  qq{CREATE FOREIGN TABLE bad (k int OPTIONS (role '$text')) SERVER streamfilter},
			  qq{CREATE FOREIGN TABLE bad ("$text" point) SERVER streamfilter},
			  qq{CREATE FOREIGN TABLE "$text" (k int) SERVER streamfilter OPTIONS (parent '$text')},
			  (map { qq{CREATE FOREIGN TABLE bad (k int) SERVER streamfilter OPTIONS ($_ '$text')} }
				qw(kind memory keys fpr seed nulls conflict persistence layout slices slicing dice k1 servers probe lost_slice parent tree top_down), qq{"$text"});
		}
	}
	return @statements;
}

sub is_in
{
	my ($encoding, $bytes) = @_;
	my $copy = $bytes;
	return eval { decode($perl{$encoding}, $copy, Encode::FB_CROAK); 1 };
}

for my $database (sort keys %encodings)
{
	my ($letter, $perl_name, @clients) = @{ $encodings{$database} };
	sql("CREATE DATABASE \"d_$database\" ENCODING '$database' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
	my @statements = statements($letter);
	my $file = $node->basedir . "/$database.sql";
	open my $out, '>:raw', $file or die "$file: $!";
	# What the server cannot convert for the client it raises as an error of its own; it must not end the session.
	print $out encode($perl_name, "$_;\n") for @statements;
	close $out;
	for my $client (@clients)
	{
		my ($rows, $messages) = ('', '');
		# The script is in the database's encoding; only what comes back is in the client's.
		IPC::Run::run([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=0', '-o', '/dev/null', '-d', $node->connstr("d_$database"),
				'-c', "SET client_encoding = '$database'", '-f', $file ], '<', \'', '>', \$rows, '2>', \$messages) if $client eq $database;
		if ($client ne $database)
		{
			# Statements converted where they can be.
			my $converted = "$file.$client";
			open my $in, '>:raw', $converted or die "$converted: $!";
			print $in map { eval { encode($perl{$client}, $_, Encode::FB_CROAK | Encode::LEAVE_SRC) . ";\n" } // sprintf "DO \$\$ BEGIN EXECUTE convert_from('\\x%s', '%s'); END \$\$;\n", unpack('H*', encode($perl_name, $_)), $database } @statements;
			close $in;
			local $ENV{PGCLIENTENCODING} = $client;
			IPC::Run::run([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=0', '-o', '/dev/null', '-d', $node->connstr("d_$database"),
					'-f', $converted ], '<', \'', '>', \$rows, '2>', \$messages);
		}
		my @lines = split /\n/, $messages;
		my @bad = grep { !is_in($client, $_) } @lines;
		cmp_ok(scalar @lines, '>', 1000, "$database, client $client: there are messages");
		diag($messages) if @lines < 9;
		is(scalar @bad, 0, "$database, client $client: all of them are whole") or diag(map { substr($_, 0, 300) . "\n" } @bad[ 0 .. ($#bad < 4 ? $#bad : 4) ]);
		is(scalar(grep { /\?/ } @lines), 0, "$database, client $client: none of them has a question mark instead")
		  or diag((grep { /\?/ } @lines)[0]);
		is(scalar(grep { /invalid byte sequence|XX000|server closed|connection to server was lost/ } @lines), 0, "$database, client $client: none of them is about itself")
		  or diag(map { substr($_, 0, 300) . "\n" } (grep { /invalid byte sequence|XX000|server closed|was lost/ } @lines)[ 0 .. 4 ]);
	}
}

# The server's own log has what each database's encoding says; UTF-8 and EUC_JP differ, so only the crashes are of interest.
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'the server is unharmed');

done();
