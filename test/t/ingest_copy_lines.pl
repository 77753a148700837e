# COPY in batches splits lines itself where they are plain, and leaves others to the server: random files, good and bad,
# give the same rows and the same errors as without batches. STREAMFILTER_SEED and STREAMFILTER_CASES as in test/equality.
use Sf;
use lib "$root/test/equality";
use Dice;

my $node = start_node('lines', q{
	streamfilter.shared_memory = '16MB'
	lc_messages = 'C'
	fsync = off}, extra => [ '-E', 'UTF8', '--locale=C' ]);
my $directory = PostgreSQL::Test::Utils::tempdir_short();

sub quoted { my ($text) = @_; $text =~ s/([\\'])/\\$1/g; return "E'$text'" }

# What may be in a value, good and bad; mostly it is plain.
my @PLAIN = ('a', 'bb', 'N', '.', 'x y', "\xc3\xa4", "\xf0\x9f\x98\x80", "'", '7');
my @ODD = (
	'\\', '\\\\', '\\N', '\\.', '\\t', "\\\t", "\\\n", '\\x41', '\\101', '"', '""', '"a,b"', "\"c\nd\"", "\t", ',', '|', "\r", "\r\n",
	"\n", "\0", "\xc3", "\xff", 'NULL', '""""', '\\n');

sub value {
	my ($dice, $odd, @odd) = @_;
	my $long = $dice->chance(1) ? $dice->one_of(300, 66_000) : 0;
	return 'l' x $long if $long;
	return join '', map { $dice->chance($odd) ? $dice->one_of(@odd) : $dice->one_of(@PLAIN) } 1 .. $dice->roll(5);
}

sub lines {
	my ($dice, $delimiter, $null) = @_;
	my $odd = $dice->one_of(0, 0, 1, 4, 30);
	my @odd = map { $dice->one_of(@ODD, ('\\N', '\\.') x 4) } 1 .. 2;
	my $end = $dice->chance(90) ? "\n" : "\r\n";
	my $count = $dice->chance(10) ? 3000 : 1 + $dice->roll(30);
	my $text = join $delimiter, 1, 'first', "row$end";
	for my $i (2 .. $count) {
		my @values = ($i, map { $dice->chance(10) ? $null : value($dice, $odd, @odd) } 1, 2);
		$values[0] = $dice->one_of('none', '', ' 5', $null, $i, '\\.', '\\N') if $dice->chance($odd);
		pop @values if $dice->roll(1000) < $odd;
		push @values, 'more' if $dice->roll(1000) < $odd;
		$text .= join $delimiter, @values;
		$text .= $dice->roll(1000) < $odd ? $dice->one_of("\r", "\n", "\r\n", "\n\\.\n") : $end;
	}
	$text =~ s/\Q$end\E\z// if $dice->chance(20);
	return $text;
}

# The command, without its table, and the file that it reads.
sub draw {
	my ($seed) = @_;
	my $dice = Dice->new($seed);
	my $csv = $dice->chance(40);
	my $delimiter = $dice->one_of("\t", ',', '|');
	my $null = $dice->one_of($csv ? ('', '\\N', 'NULL') : ('\\N', '', 'NULL', '\\\\N', '\\.', '\\a', '\\'));
	my @options = ('FORMAT ' . ($csv ? 'csv' : 'text'), 'DELIMITER ' . quoted($delimiter), 'NULL ' . quoted($null));
	push @options, "QUOTE '~'" if $csv && $dice->chance(10);
	push @options, 'ESCAPE ' . quoted($dice->one_of('\\', '"', '!')) if $csv && $dice->chance(30);
	push @options, $dice->one_of('FORCE_NULL (a)', 'FORCE_NOT_NULL (a)') if $csv && $dice->chance(20);
	push @options, "ENCODING 'latin1'" if $dice->chance(10);
	push @options, "DEFAULT 'bb'" if $node->pg_version >= 16 && $dice->chance(20);
	my $columns = $dice->one_of('', '(k, a, b)', '(k, b, a)');
	my $file = "$directory/$seed";
	open my $out, '>:raw', $file or die "$file: $!";
	print $out lines($dice, $delimiter, $null);
	close $out;
	my $where = $dice->chance(10) ? ' WHERE k % 3 <> 0' : '';
	return sprintf q{t %s FROM '%s' WITH (%s)%s}, $columns || '(k, a, b)', $file, join(', ', @options), $where;
}

# In the order of the rows in the file; where the server puts them differs, since it extends tables by several pages (16).
my $SUMS = q{SELECT count(*), count(d), sum(d), md5(string_agg(t::text, '|' ORDER BY d)) FROM t};

# What psql says of the cases, in their order.
sub answers {
	my ($switch, @commands) = @_;
	my $script = "SET search_path = $switch, public;\nSET streamfilter.batch_insert = $switch;\n";
	$script .= "\\set VERBOSITY verbose\n\\set SHOW_CONTEXT always\n";
	my $i = 0;
	$script .= sprintf "\\echo case %d\nCOPY %s;\n%s;\nTRUNCATE t RESTART IDENTITY;\n", $i++, $_, $SUMS for @commands;
	my ($in, $out) = map { "$directory/$_.$switch" } qw(in out);
	append_to_file($in, $script);
	local $ENV{PGHOST} = $node->host;
	local $ENV{PGPORT} = $node->port;
	system("psql -XAtq -d postgres < '$in' > '$out' 2>&1");
	my $answers = slurp_file($out);
	unlink $in, $out;
	# Which file of the server raised it says nothing.
	$answers =~ s/^psql:<stdin>:\d+: //mg;
	return split /^case \d+\n/m, $answers;
}

for my $schema (qw(on off)) {
	sql(qq{
		CREATE SCHEMA "$schema";
		SET search_path = "$schema", public;
		CREATE TABLE t (k int, a text, b varchar(70000), c int DEFAULT 3, d bigserial);
		CREATE FOREIGN TABLE seen (a text, b text) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-9');
		CREATE TRIGGER discard BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
		CREATE TRIGGER forget AFTER TRUNCATE ON t FOR EACH STATEMENT EXECUTE FUNCTION streamfilter_forget('seen')});
}

my $first = $ENV{STREAMFILTER_SEED} // 1 + int(rand(1_000_000_000));
my $count = $ENV{STREAMFILTER_CASES} // 400;
note("STREAMFILTER_SEED=$first");
my ($good, @different) = (0);
my @commands = map { draw($_) } $first .. $first + $count - 1;
my @on = answers('on', @commands);
my @off = answers('off', @commands);
for my $i (1 .. $count) {
	$good += $off[$i] !~ /ERROR/;
	next if ($on[$i] // '') eq ($off[$i] // '');
	push @different, $first + $i - 1;
	diag("seed $different[-1]: COPY $commands[$i - 1]\n--- off\n$off[$i]--- on\n" . ($on[$i] // '')) if @different <= 5;
}
is("@different", '', "$count files from seed $first: the same rows and errors as without batches");
cmp_ok($good, '>', $count / 3, 'many of them have no error');
cmp_ok($good, '<', $count, 'some have');

# One that waits for another transaction's key says which line it is.
sql(q{
	CREATE FOREIGN TABLE waits (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-9', seed '1');
	CREATE TABLE waiting (k int);
	CREATE TRIGGER zz BEFORE INSERT ON waiting FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('waits')});
my $other = $node->background_psql('postgres');
append_to_file("$directory/waiting", join '', map { "$_\n" } 1 .. 1000);
for my $case ([ 1, 'lock_timeout' ], [ 2, 'lock_timeout' ], [ 514, 'lock_timeout' ], [ 700, 'lock_timeout' ], [ 700, 'statement_timeout' ])
{
	my ($line, $setting) = @$case;
	my $timeout = $setting eq 'lock_timeout' ? '200ms' : '4s';    # the latter counts the lines before, too
	$other->query_safe("BEGIN; INSERT INTO waits VALUES ($line)");
	like(said("SET $setting = '$timeout'; COPY waiting FROM '$directory/waiting'"), qr/COPY waiting, line $line\b/, "$setting while the key of line $line waits");
	$other->query_safe('ROLLBACK');
}
$other->quit;

done();
