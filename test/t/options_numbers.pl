# ALTER of keys and fpr that leaves the state as it is: what is saved fits the new definition, too, after a restart, a crash and
# ROLLBACK; also of a filter that was given another size before.
# flavours: quick faults one_by_one
use Sf;
use Time::HiRes qw(sleep);

my $settings = "fsync = off\n";
my %node = (p => start_node('p', $settings));

# What the servers' logs say from here on.
my %read;
sub read_on { $read{$_} = -s $node{$_}->logfile for keys %node; return; }
sub set_aside { my ($name) = @_; return join "\n", slurp_file($node{$name}->logfile, $read{$name}) =~ /.*(?:set aside|starts empty).*/g; }

# ---- on one server ------------------------------------------------------------------------------------------------

# Another size is about a multiple of the former one, so that the filter has not quite the geometry of its definition.
my $resize = q{SET memory '1399520'};
my $vain   = q{SET memory '349952'};
my $whole  = q{kind 'bloom', memory '699520', k '1', slices '1', seed '3', keys '47834'};
my %alters = (
	numbers  => [ $whole, $resize, q{SET keys '23917'} ],
	rate     => [ $whole, $resize, q{ADD fpr '0.02'} ],
	keys_fpr => [ $whole, $resize, q{SET keys '23917', ADD fpr '0.05'}, q{SET keys '50000'} ],
	fewer    => [ $whole, $resize, q{DROP keys} ],
	more     => [ $whole =~ s/, keys.*//r, $resize, q{ADD keys '23917'}, q{SET keys '20000'} ],
	secret   => [ $whole =~ s/, seed '3'//r, $resize, q{SET keys '23917'} ],
	as_it_is => [ $whole, q{SET keys '23917'}, q{DROP keys} ],
	halved   => [ $whole, $vain, q{SET keys '23917'}, q{SET memory '699520'}, q{SET keys '47834'} ]);
my @names = sort keys %alters;
for my $name (@names)
{
	my ($options, @changes) = @{ $alters{$name} };
	sql("CREATE FOREIGN TABLE $name (id int) SERVER streamfilter OPTIONS ($options); INSERT INTO $name SELECT generate_series(1, 1000)");
	for my $change (@changes)
	{
		sql("ALTER FOREIGN TABLE $name OPTIONS ($change)");
		sql("BEGIN; SAVEPOINT s; ALTER FOREIGN TABLE $name OPTIONS ($vain); ROLLBACK TO s; COMMIT");
		sql("BEGIN; ALTER FOREIGN TABLE $name OPTIONS ($vain); TRUNCATE $name; ROLLBACK; BEGIN; TRUNCATE $name; ROLLBACK");
	}
	is(known($name, 1, 1000), '1000', "$name: altered");
}
read_on();
$node{p}->restart;
is(known($_, 1, 1000), '1000', "$_: after a restart") for @names;
sql("INSERT INTO $_ SELECT generate_series(2001, 3000)") for @names;
crash($node{p});
is(known($_, 1, 1000) + known($_, 2001, 3000), 2000, "$_: after a crash") for @names;
is(set_aside('p'), '', 'nothing is set aside');

# Numbers that ask for other places of keys are another definition, as ever: nothing wrong is found.
sql(q{CREATE FOREIGN TABLE other (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '699520', fpr '0.01', seed '3');
	INSERT INTO other SELECT generate_series(1, 1000)});
sql(q{UPDATE pg_foreign_table SET ftoptions = array_replace(ftoptions, 'fpr=0.01', 'fpr=0.0001') WHERE ftrelid = 'other'::regclass});
$node{p}->restart;
is(known('other', 1, 1000), '0', 'another rate that needs other places, written by hand: the filter starts empty');
like(set_aside('p'), qr/the saved state of filter "other" is set aside$/, '... and says so');

done_testing();
