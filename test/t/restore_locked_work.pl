# What a filter of 64 MB does while rows wait is counted, not timed: under a slice's lock at most the bytes of that slice and no
# row of a heap; under the lock of the directory nothing; while the filter is locked against all others, as many rows as others
# have just written, and no byte of its state.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('counted', q{
	streamfilter.shared_memory = '2MB'
	streamfilter.dynamic_memory = '512MB'
	streamfilter.restore_workers = 1
	max_prepared_transactions = 5
	max_wal_size = '4GB'
	statement_timeout = '120s'});
my $faults = FaultPoints->new($node);
sql(q{CREATE FUNCTION streamfilter_locked_work(again boolean) RETURNS text AS '$libdir/streamfilter' LANGUAGE C STRICT VOLATILE});

use constant { KEYS => 400_000, LINE => 64 };
my $slices = 64;
sql(qq{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64MB', bits '24', slices '$slices');
	CREATE TABLE events (id int);
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});
sub bytes_of_slice { return sql(q{SELECT memory FROM streamfilter_stats WHERE filter = 'seen'::regclass}) / $slices; }

# Does it, and returns what was counted: bytes and rows under a slice's lock, bytes and rows under that of the directory, bytes
# and rows of this session alone since the last call.
sub counted
{
	my ($statement) = @_;
	my @lines = split /\n/, sql("SELECT streamfilter_locked_work(true); $statement; SELECT streamfilter_locked_work(false)");
	return split / /, $lines[-1];
}

sub check
{
	my ($what, $slice_bytes, @work) = @_;
	note("$what: @work");
	cmp_ok($work[0], '<=', $slice_bytes, "$what: bytes under the lock of a slice, at most its own");
	is("@work[1 .. 3]", '0 0 0', 'and no row of a heap, nor anything under the lock of the directory');
	return @work;
}

my $size = bytes_of_slice();
my @work = check('rows', 512 * LINE, counted('INSERT INTO events SELECT generate_series(1, ' . KEYS . ')'));
cmp_ok($work[0], '>', 0, 'they are counted');

# ---- saved

check('a save', $size, counted(q{SELECT streamfilter_save('seen')}));

# ---- resized while rows come

sql(q{
	CREATE PROCEDURE come(first int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. 200 LOOP
			INSERT INTO events SELECT generate_series(first + i * 100, first + i * 100 + 99);
			COMMIT;
		END LOOP;
	END $$});
my $rows = $faults->start('CALL come(1000000)');
@work = counted(q{CALL streamfilter_resize('seen', '128MB')});
is($faults->finish($rows), '', 'rows come while the filter is resized');
check('streamfilter_resize()', bytes_of_slice(), @work);
cmp_ok($work[4], '<=', 64 * LINE, 'while it is locked against all others, no slice is copied');
cmp_ok($work[5], '<', 1000, 'and rows of the log that have come since the last look are moved, none of the image');
is(sql(q{SELECT count(*) FROM events WHERE NOT streamfilter_test('seen', id)}), 0, 'nothing is forgotten');

# ---- restored while rows come

sql(q{SELECT streamfilter_save('seen')});
$node->restart;
sql('INSERT INTO events SELECT generate_series(2000001, 2001000)');
$node->poll_query_until('postgres', q{SELECT restored IS NOT NULL FROM streamfilter_stats WHERE filter = 'seen'::regclass});
@work = split / /, sql('SELECT streamfilter_locked_work(false)');
check('a restore', 512 * LINE, @work);
is(sql(q{SELECT count(*) FROM events WHERE NOT streamfilter_test('seen', id)}), 0, 'nothing is forgotten');

# ---- emptied: up to 256 MB slice by slice; beyond, the system gives zeroes, and what is saved is one row

$size = bytes_of_slice();
@work = check('TRUNCATE', $size, counted('TRUNCATE seen'));
cmp_ok($work[4], '>=', ($slices - 1) * $size, 'slice by slice');
cmp_ok($work[5], '<', 50, 'and few rows');
sql(qq{CREATE FOREIGN TABLE large (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '257MB', slices '$slices'); INSERT INTO large VALUES (1)});
@work = check('TRUNCATE of a large one', 0, counted('TRUNCATE large'));
cmp_ok($work[4], '<=', $slices * LINE, 'of each slice one line is written');

# ---- prepared: another session empties it, or brings keys in, when the transaction has ended

sql(q{INSERT INTO large VALUES (1); BEGIN; TRUNCATE large; PREPARE TRANSACTION 'emptied'});
@work = check('COMMIT PREPARED of a TRUNCATE', 0, counted(q{COMMIT PREPARED 'emptied'}));
cmp_ok($work[4], '<=', $slices * LINE, 'of each slice one line is written');
sql('DROP FOREIGN TABLE large');
sql(q{BEGIN; INSERT INTO events SELECT generate_series(1, 2000); PREPARE TRANSACTION 'keys'});
@work = check('COMMIT PREPARED of keys', LINE, counted(q{COMMIT PREPARED 'keys'}));
cmp_ok($work[4], '>=', 2000 * LINE, 'they are counted');
sql(q{CREATE FOREIGN TABLE small (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '512kB', slices '4');
	INSERT INTO small VALUES (1); BEGIN; TRUNCATE small; PREPARE TRANSACTION 'emptied'});
@work = check('COMMIT PREPARED of a TRUNCATE, in place', 128 * 1024, counted(q{COMMIT PREPARED 'emptied'}));
cmp_ok($work[4], '>', 400 * 1024, 'slice by slice');
is(sql(q{SELECT streamfilter_test('seen', 1), streamfilter_test('small', 1)}), 't|f', 'and it is so');

# ---- a first row formats nothing but that

@work = check('a new filter', 512 * LINE, counted(q{
	CREATE FOREIGN TABLE fresh (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64MB', slices '64');
	INSERT INTO fresh VALUES (1)}));
cmp_ok($work[4], '<=', 2 * $slices * LINE, 'the first row of 64 MB: a line of each slice');

# ---- ALTER copies under its lock; the image that it ends with takes the lock of one slice after the other

@work = check('ALTER', 2 * 1024 * 1024, counted(q{ALTER FOREIGN TABLE fresh OPTIONS (SET memory '128MB')}));
cmp_ok($work[4], '>', 64 * 1024 * 1024, 'all is copied while others wait');
done_testing();
