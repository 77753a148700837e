# streamfilter_resize() that stands still, fails or is killed at each of its steps, while others use the filter, and alter,
# empty or drop it.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('windows', q{
	streamfilter.shared_memory = '4MB'
	streamfilter.dynamic_memory = '32MB'
	max_prepared_transactions = 5
	restart_after_crash = on
	statement_timeout = '60s'});
my $faults = FaultPoints->new($node);

sub resize { return "CALL streamfilter_resize('seen', '$_[0]')"; }
sub memory { return sql(q{SELECT memory < 1500000 FROM streamfilter_stats WHERE filter = 'seen'::regclass}) eq 't' ? 'small' : 'large'; }
sub free { return sql('SELECT free FROM streamfilter_memory()'); }
sub unknown { return sql('SELECT count(*) FROM events WHERE NOT streamfilter_test(\'seen\', id)'); }
sub twice { return sql('SELECT count(*) - count(DISTINCT id) FROM events'); }

sub create
{
	my ($persistence) = @_;
	sql(qq{
		CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (memory '1MB', fpr '1e-9', slices '4', persistence '$persistence');
		CREATE TABLE events (id int);
		CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
		INSERT INTO events SELECT generate_series(1, 3000)});
	return;
}

sub drop { sql('DROP TABLE events; DROP FOREIGN TABLE seen'); return; }

my @points = qw(resize_slice resize_copied resize_saved resize_locked);

for my $persistence ('logged', 'unlogged')
{
	create($persistence);
	my $free = free();
	my $key = 10000;
	my @reached = grep { $persistence eq 'logged' || $_ ne 'resize_saved' } @points;

	# ---- it fails
	for my $point (@reached)
	{
		$faults->set($point, 'fail');
		like($faults->run(resize('4MB')), qr/fault injected at $point/, "$persistence: it fails at $point");
		is(memory(), 'small', 'the size is as before');
		is(free(), $free, 'the memory is given back');
		is(unknown(), 0, 'nothing is forgotten');
	}

	# ---- it stands still, and others use the filter
	for my $point (grep { $_ ne 'resize_locked' } @reached)
	{
		my $first = $faults->stop_at($point, resize('4MB'));
		$key += 100;
		sql("INSERT INTO events SELECT generate_series($key, $key + 49)");
		sql("BEGIN; DELETE FROM events WHERE id = $key; DELETE FROM seen WHERE id = $key; COMMIT");
		sql("BEGIN; INSERT INTO events SELECT generate_series($key + 50, $key + 59); ROLLBACK");
		sql("BEGIN; INSERT INTO events SELECT generate_series($key + 60, $key + 69); PREPARE TRANSACTION 'p'");
		sql(q{COMMIT PREPARED 'p'});
		is(sql('SELECT count(*) FROM streamfilter_progress WHERE command = \'resize\''), 1, "$persistence: $point is to be seen");
		like($faults->run(resize('8MB')), qr/is being resized by another session/, 'one at a time');
		is($faults->let_go($point, $first), '', 'it goes on');
		is(memory(), 'large', 'to its end');
		is(unknown(), 0, 'nothing is forgotten');
		is(sql("SELECT string_agg(i::text, ' ') FROM unnest(ARRAY[$key, $key + 50, $key + 59]) i WHERE streamfilter_test('seen', i)"), '',
			'and nothing remembered that was deleted or rolled back');
		sql("INSERT INTO events VALUES ($key), ($key + 50), ($key + 60), ($key + 1)");
		is(twice(), 0, 'no row comes twice');
		is(sql("SELECT count(*) FROM events WHERE id IN ($key, $key + 50)"), 2, 'and none is lost');
		sql(resize('1MB'));
		is(unknown(), 0, 'the way back');
	}

	# ---- it stands still, and others do away with what it copies: they do not wait
	my %others = (
		'was emptied' => 'TRUNCATE seen; TRUNCATE events; INSERT INTO events SELECT generate_series(1, 10)',
		'was altered' => q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '2MB')},
		'was altered or dropped' => 'DROP TABLE events; DROP FOREIGN TABLE seen');
	for my $point ('resize_slice', 'resize_copied')
	{
		for my $what (sort keys %others)
		{
			my $first = $faults->stop_at($point, resize('4MB'));
			sql($others{$what});
			like($faults->let_go($point, $first), qr/has changed while it was resized/, "$persistence, $point: it $what");
			if ($what =~ /dropped/) { create($persistence); }
			is(unknown(), 0, 'nothing is forgotten');
			is(sql('SELECT count(*) FROM generate_series(5000, 5500) i WHERE streamfilter_test(\'seen\', i)'), 0, 'nor remembered');
			drop();
			create($persistence);
			is(free(), $free, 'the memory is given back');
		}
	}

	# ---- ALTER of another option, which the filter keeps
	my $first = $faults->stop_at('resize_copied', resize('4MB'));
	my $other = $persistence eq 'logged' ? 'unlogged' : 'logged';
	sql("ALTER FOREIGN TABLE seen OPTIONS (SET persistence '$other')");
	like($faults->let_go('resize_copied', $first), qr/has changed while it was resized/, "$persistence: it becomes $other");
	is(unknown(), 0, 'nothing is forgotten');
	sql("ALTER FOREIGN TABLE seen OPTIONS (SET persistence '$persistence')");

	# ---- it is killed, and the server with it
	for my $point (@reached)
	{
		last if $persistence eq 'unlogged';
		$faults->set($point, 'kill');
		$faults->run(resize('4MB'));
		wait_for_server($node);
		is(unknown(), 0, "$persistence: nothing is forgotten where it is killed at $point");
		is(memory(), 'small', 'the size is as before');
		is(free(), $free, 'and the memory');
	}
	drop();
}

# ---- more keys come to a slice than can be noted: it is copied again

sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (memory '1MB', fpr '1e-9', slices '1');
	CREATE TABLE events (id int);
	CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')});
my $first = $faults->stop_at('resize_slice', resize('4MB'));
sql('INSERT INTO events SELECT generate_series(1, 20000)');
is($faults->let_go('resize_slice', $first), '', 'too many keys for the notes: it takes another try');
is(memory(), 'large', 'it is resized');
is(unknown(), 0, 'nothing is forgotten');

done_testing;
