# The heaps that hold what is saved: a save never waits for a session that waits for it.
# flavours: faults
use Sf;
use FaultPoints;
use Time::HiRes qw(time);

my $node = start_node('main', "streamfilter.shared_memory = '16MB'\n");
sql(q{
	CREATE FOREIGN TABLE seen (id int) SERVER streamfilter OPTIONS (kind 'sqf', memory '64kB');
	INSERT INTO seen VALUES (0)});
my $faults = FaultPoints->new($node);

# ---- a save, VACUUM FULL of the log, and a commit ---------------------------------------------------------------------

$faults->set('save', 'stop');
my $save = $faults->start(q{SELECT streamfilter_save('seen')});
$faults->reached('save');
my $vacuum = $faults->start('VACUUM FULL _streamfilter.streamfilter_log');
ok($faults->blocked($vacuum, 'relation'), 'VACUUM FULL waits for a save');
my $insert = $faults->start('INSERT INTO seen VALUES (1)');
ok($faults->blocked($insert, 'relation'), 'a commit waits for VACUUM FULL');
my $start = time;
$faults->set('save', 'pass');
is($faults->finish($save) . $faults->finish($vacuum) . $faults->finish($insert), '', 'all of them end');
cmp_ok(time - $start, '<', 20, 'soon: the save does not wait for the commit');
crash();
is(knows('seen', 1), 't', 'and the key is saved');

done_testing();
