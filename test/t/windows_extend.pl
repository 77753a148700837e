# With extend 'yes' a repeat renews the time of its key. A logged filter has the new times after a crash, in the log and in images, and
# on a standby. A renewal brings no key back that was forgotten, or whose row was taken back.
# flavours: quick faults
use Sf;

my $primary = start_node('primary', q{
	streamfilter.shared_memory = '16MB'
	max_prepared_transactions = 5
	fsync = off}, allows_streaming => 1);
# Minute 0. DELETE asks for keys of the present, which is minute 55.
my $start = sql(q{SELECT now() - interval '55 minutes'});
sub minute { return "timestamptz '$start' + interval '$_[0] minutes'"; }

for my $batches (0, 1)
{
	my $name = $batches ? 'many' : 'one';
	sql(qq{
		CREATE TABLE ${name}_events (id int, at timestamptz, n int);
		CREATE FOREIGN TABLE $name (id int, at timestamptz OPTIONS (role 'time'))
			SERVER streamfilter OPTIONS (kind 'vqf', window '10 minutes', extend 'yes', lateness '2 minutes', max_future 'infinity', keys '10000', fpr '1e-6');
		CREATE TRIGGER zz BEFORE INSERT ON ${name}_events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$name')});
}

# Events of keys $first to $last, at a minute: the number of rows that stay, one by one or in a batch.
sub come
{
	my ($name, $first, $last, $minute, $transaction) = @_;
	my $values = "FROM generate_series($first, $last) i";
	my $at     = minute($minute);
	my $rows   = $name eq 'many'
		? "INSERT INTO many_events SELECT i, $at, 0 $values;"
		: join '', map { "INSERT INTO one_events VALUES ($_, $at, 0);" } $first .. $last;
	return sql($transaction ? sprintf $transaction, $rows : $rows);
}
sub stay
{
	my ($name, $first, $last) = @_;
	return sql("SELECT count(*) FROM ${name}_events WHERE id BETWEEN $first AND $last");
}

for my $name (qw(one many))
{
	come($name, 1, 100, 0);
	come($name, 1, 50, 8);
	come($name, 1, 50, 9, 'BEGIN; %s ROLLBACK');
	come($name, 1, 50, 8.1);
	crash();
	come($name, 1, 100, 15);
	is(stay($name, 1, 50), 50, "$name: repeats renew their keys, and a crash does not take that back");
	is(stay($name, 51, 100), 100, 'others expire');
	sql("SELECT streamfilter_save('$name')");
	come($name, 1, 100, 22);
	crash();
	come($name, 1, 100, 30);
	is(stay($name, 1, 100), 150, 'nor one behind an image');

	# Repeats of own rows.
	come($name, 201, 210, 31);
	sql('BEGIN;'
		. "INSERT INTO ${name}_events SELECT i, " . minute(31) . " + m * interval '7 minutes', 0"
		. ' FROM generate_series(0, 2) m, generate_series(301, 320) i; COMMIT');
	crash();
	come($name, 301, 320, 54);
	is(stay($name, 301, 320), 20, 'repeats of own rows renew, too');

	# A key that others forget meanwhile does not come back.
	my $session = open_session("BEGIN; INSERT INTO ${name}_events SELECT i, " . minute(55) . ' FROM generate_series(301, 310) i');
	sql("DELETE FROM $name USING generate_series(301, 320) i WHERE id = i");
	end_session($session, 'COMMIT');
	come($name, 301, 302, 56);
	is(stay($name, 301, 302), 4, 'a renewal does not bring a key back that was forgotten meanwhile');
	crash();
	come($name, 303, 304, 56);
	is(stay($name, 303, 304), 4, 'nor after a crash');

	# Rows taken back.
	sql("BEGIN; SAVEPOINT s; INSERT INTO ${name}_events SELECT i, " . minute(57) . ' FROM generate_series(401, 410) i, generate_series(1, 2);'
		. 'ROLLBACK TO s; COMMIT');
	is(come($name, 401, 410, 58) . stay($name, 401, 410), 10, 'nor one whose row was rolled back');

	# Prepared.
	sql("BEGIN; INSERT INTO ${name}_events SELECT i, " . minute(66) . " FROM generate_series(401, 410) i; PREPARE TRANSACTION 'p'");
	crash();
	sql(q{COMMIT PREPARED 'p'});
	come($name, 401, 410, 74);
	is(stay($name, 401, 410), 10, 'renewed by a prepared transaction');
}

my $standby = start_standby('standby');
come('many', 501, 600, 100);
come('many', 501, 600, 108);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(sql(q{SELECT count(*) FROM generate_series(501, 600) i WHERE streamfilter_test('many', i, } . minute(116) . ')', $standby), 100,
	'a standby has renewed times');
$standby->promote;
on($standby);
come('many', 501, 600, 117);
is(stay('many', 501, 600), 100, 'and keeps them');
done();
