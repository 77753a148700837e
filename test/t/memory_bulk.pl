# What a transaction remembers of its own keys stays within work_mem; the rest is in temporary files.
# flavours: faults
use Sf;

my $node = start_node('bulk', q{
streamfilter.shared_memory = '24MB'
work_mem = '4MB'
log_temp_files = 0
fsync = off
});
my $anonymous = q{(SELECT (regexp_match(pg_read_file('/proc/self/status'), 'RssAnon:\s+(\d+) kB'))[1]::bigint)};
# Deleted while they are mapped: the process alone knows of them.
my $files = q{(SELECT count(*) FROM regexp_matches(pg_read_file('/proc/self/maps'), 'pgsql_tmp', 'g'))};
sql(qq{
	CREATE FOREIGN TABLE small (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8MB', k '15');
	CREATE TABLE measured (what text, value text);
	CREATE TABLE t (id int);
	CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});

# --- Three million new keys -----------------------------------------------------------------------------

# INSERT … SELECT of generate_series in FROM would spill its rows itself, to files that are counted here.
sql(qq{
	BEGIN;
	INSERT INTO small VALUES (0);
	INSERT INTO measured SELECT 'before', $anonymous;
	INSERT INTO small SELECT generate_series(1, 3000000);
	INSERT INTO measured SELECT 'after', $anonymous;
	INSERT INTO measured SELECT 'context', max(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'TopTransactionContext';
	INSERT INTO measured SELECT 'files', $files;
	COMMIT;
	INSERT INTO measured SELECT 'later', $files});
my %measured = map { split /\|/, $_, 2 } split /\n/, sql('TABLE measured');
note join ', ', map { "$_: $measured{$_}" } sort keys %measured;
cmp_ok($measured{context}, '<=', 1.1 * 4 * 1024 * 1024, 'within work_mem plus 10 %');
# The executor takes some, too; all of it would be 88 MB.
cmp_ok($measured{after} - $measured{before}, '<=', 8 * 1024, 'and so does the process');
cmp_ok($measured{files}, '>', 0, 'the rest is in files');
is($measured{later}, '0', 'which go with the transaction');
my $bytes = 0;
my $told = slurp_file($node->logfile);
$bytes += $1 while $told =~ /temporary file: path "[^"]*", size (\d+)/g;
cmp_ok($bytes, '>', 48_000_000, 'log_temp_files tells of them');
unlike(slurp_file($node->logfile), qr/temporary file leak/, 'none is left open');
is(sql('SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'nor behind');

# --- Exact, in files as well ----------------------------------------------------------------------------

sub rows { return sql('SELECT count(*), count(DISTINCT id) FROM t') }

# 15 bits for each of fewer than a million keys in 8 MB: odds below 1e-6 of any false positive in all of this.
sql(q{
	BEGIN;
	INSERT INTO t SELECT i % 200000 FROM generate_series(1, 400000) i;
	SAVEPOINT a;
	INSERT INTO t SELECT i % 100000 + 150000 FROM generate_series(1, 200000) i;
	ROLLBACK TO a;
	INSERT INTO t SELECT i + 190000 FROM generate_series(1, 20000) i;
	COMMIT});
is(rows(), '210001|210001', 'a repeat within the transaction is one, a savepoint takes its keys back');
is(known('seen', 0, 210000), '210001', 'all are remembered');
is(known('seen', 210001, 249999), '0', 'and none that was taken back');
is(sql('SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no file is left');

sql(q{BEGIN; INSERT INTO t SELECT generate_series(300000, 600000); ROLLBACK});
is(known('seen', 300000, 600000), '0', 'rolled back as a whole');
is(sql('SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'with its files');

sql(q{DO $$ BEGIN
	BEGIN
		INSERT INTO t SELECT generate_series(300000, 500000);
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	INSERT INTO t SELECT generate_series(400000, 450000);
END $$});
is(known('seen', 300000, 500000), '50001', 'files made within a block that failed serve those after it');

my $err;
isnt($node->psql('postgres', q{SET temp_file_limit = '1MB'; INSERT INTO t SELECT generate_series(700000, 1000000)},
		stderr => \$err), 0, 'temp_file_limit is kept');
like($err, qr/temporary file size exceeds temp_file_limit/, 'as by others');
is(known('seen', 700000, 1000000), '0', 'and nothing is half done');
is(sql('SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no file is left by an error');

done();
