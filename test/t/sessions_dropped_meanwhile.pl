# What an OID stands for is dropped by another session after the OID was found and before it is read: each look-up of ours is
# stopped there in turn, with whatever statement comes to it. Either a lock keeps the other session from dropping, or the
# statement says what is gone: never an internal error.
# flavours: faults
use Sf;
use FaultPoints;

my $node = start_node('main', q{
	streamfilter.shared_memory = '16MB'
	fsync = off});
sql('CREATE DATABASE far');
$node->safe_psql('far', q{CREATE EXTENSION streamfilter;
	CREATE FOREIGN TABLE there (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB')});
my $faults = FaultPoints->new($node);
my $admin = $node->background_psql('postgres', on_error_stop => 0);
$admin->query('SET client_min_messages = error');

my ($host, $port) = ($node->host, $node->port);
my $bloom = q{SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB'};
my $before = qq{
	DROP SCHEMA IF EXISTS s CASCADE;
	DROP SERVER IF EXISTS far CASCADE;
	DROP OWNED BY guest CASCADE;
	DROP ROLE IF EXISTS guest;
	CREATE ROLE guest;
	CREATE SCHEMA s;
	GRANT ALL ON SCHEMA s TO guest;
	CREATE SERVER far FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'far');
	CREATE USER MAPPING FOR CURRENT_USER SERVER far;
	CREATE FOREIGN TABLE s.seen (id int) $bloom);
	CREATE FOREIGN TABLE s.child (id int) $bloom, parent 's.seen');
	CREATE FOREIGN TABLE s.remote (id int) $bloom, servers 'far');
	CREATE TABLE s.t (id int);
	CREATE TABLE s.kept (id int);
	CREATE TABLE s.his (id int);
	GRANT INSERT ON s.seen, s.kept TO guest;
	ALTER TABLE s.his OWNER TO guest;
	CREATE TRIGGER zz BEFORE INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('s.seen', 's.kept');
	CREATE TRIGGER zz BEFORE INSERT ON s.his FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('s.seen')};

my $filter = 'DROP FOREIGN TABLE s.seen CASCADE';
my $server = 'DROP SERVER far CASCADE';
my $role   = 'DROP OWNED BY guest CASCADE; DROP ROLE guest';
my @cases  = (
	[ q{SELECT streamfilter_save('s.seen')},                                         $filter ],
	[ q{SELECT streamfilter_stats_reset('s.seen')},                                  $filter ],
	[ q{SELECT streamfilter_definition('s.seen')},                                   $filter ],
	[ q{SELECT streamfilter_definition('s.seen')},                                   $role ],
	[ q{SELECT streamfilter_definition('s.remote')},                                 $server ],
	[ q{CALL streamfilter_resize('s.seen', '16kB')},                                 $filter ],
	[ q{SELECT streamfilter_test('s.seen', 1)},                                      $filter ],
	[ q{SELECT streamfilter_warm('s.seen', 's.t')},                                  'DROP TABLE s.t' ],
	[ q{SELECT streamfilter_warm('s.seen', 's.t')},                                  $filter ],
	[ q{SELECT streamfilter_settle('s.kept', 's.t')},                                'DROP TABLE s.kept CASCADE' ],
	[ q{SELECT count(*) FROM streamfilter_stats},                                    $filter ],
	[ q{INSERT INTO s.t VALUES (1), (1)},                                            $filter ],
	[ q{INSERT INTO s.t VALUES (1), (1)},                                            'DROP TABLE s.kept CASCADE' ],
	[ q{INSERT INTO s.his VALUES (1), (1)},                                          $role ],
	[ q{INSERT INTO s.child VALUES (1)},                                             $filter ],
	[ q{INSERT INTO s.remote VALUES (1)},                                            $server ],
	[ q{EXPLAIN ANALYZE INSERT INTO s.remote VALUES (1)},                            $server ],
	[ q{CREATE TRIGGER z BEFORE INSERT ON s.his FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('s.child', 's.kept')},
		'DROP TABLE s.kept CASCADE' ],
	[ q{CREATE TRIGGER z BEFORE INSERT ON s.kept FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('s.seen')}, $filter ],
	[ q{CREATE FOREIGN TABLE s.fresh (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', parent 's.seen')},
		$filter ],
	[ qq{CREATE FOREIGN TABLE s.fresh (id int) $bloom, servers 'far')},              $server ],
	[ q{IMPORT FOREIGN SCHEMA public FROM SERVER far INTO s},                        $server ],
	[ q{ALTER FOREIGN TABLE s.seen OPTIONS (SET memory '16kB')},                     $filter ],
	[ q{ALTER FOREIGN TABLE s.seen OPTIONS (SET memory '16kB')},                     'DROP FOREIGN TABLE s.child' ],
	[ q{ALTER FOREIGN TABLE s.seen RENAME TO known},                                 'DROP TABLE s.his' ],
	[ q{ALTER FOREIGN TABLE s.seen RENAME TO known},                                 $filter ],
	[ q{ALTER TABLE s.his OWNER TO CURRENT_USER},                                    'DROP TABLE s.his' ],
	[ q{DROP FOREIGN TABLE s.seen},                                                  'DROP TABLE s.t' ],
	[ q{DROP FOREIGN TABLE s.seen CASCADE},                                          'DROP TABLE s.his' ],
	[ q{DROP TABLE s.kept},                                                          $filter ],
	[ q{TRUNCATE s.seen},                                                            'DROP FOREIGN TABLE s.child' ]);

# Does the session stand, or has it come to its end?
sub stands
{
	my ($session) = @_;
	for (1 .. 600)
	{
		return 1 if $admin->query(q{SELECT streamfilter_fault_reached('lookup', .05)}) eq 't';
		$session->{run}->pump_nb if $session->{run}->pumpable;
		return 0 unless $session->{run}->pumpable;
	}
	die "a statement neither stops nor ends\n";
}

my ($stopped, $gone, $said) = (0, 0, '');
my $most = 40;    # look-ups of a statement

# The nth look-up of the statement; what it says, and undef if it has no such look-up.
sub interrupt
{
	my ($n, $statement, $drop) = @_;
	$admin->query($before);
	$admin->{stderr} = '';
	$admin->query(q{SELECT streamfilter_fault('lookup', 'skip');} x $n . q{SELECT streamfilter_fault('lookup', 'stop')});
	my $session = $faults->start($statement, 'verbose');
	my $here = stands($session);
	if ($here)
	{
		$stopped++;
		$admin->query("SET lock_timeout = '100ms'; BEGIN; $drop; COMMIT");
		$gone++ if $admin->{stderr} !~ /lock timeout/;
		$admin->{stderr} = '';
	}
	$admin->query(q{SELECT streamfilter_fault('lookup', 'pass'); SET lock_timeout = 0});
	my $outcome = $faults->finish($session);
	return $here ? $outcome : undef;
}

for my $case (@cases)
{
	my ($statement, $drop) = @$case;
	my ($n, @internal) = (0);
	while ($n < $most && defined(my $outcome = interrupt($n, $statement, $drop)))
	{
		push @internal, "look-up $n: $outcome" if $outcome =~ /XX000|\(null\)|server closed/;
		$said .= "$outcome\n";
		$n++;
	}
	is(join("\n", @internal), '', "$statement / $drop: $n look-ups");
	cmp_ok($n, '>', 0, 'more than none');
}

# It was not the locks alone.
note("$stopped look-ups stopped, $gone times what they look for was dropped meanwhile");
cmp_ok($gone, '>', $stopped / 10, 'what is looked up was dropped before it was read');
like($said, qr/42P01: .*relation with OID \d+ does not exist/, 'a relation that is gone is said to be');
like($said, qr/42704: .*server with OID \d+ does not exist/,   'so is a server');
$admin->quit;

done();
