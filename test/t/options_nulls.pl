# ALTER of option nulls keeps the keys, and says from then on whether two nulls are one key: of a filter as it was made, one that was
# resized to a memory that no formula gives, and one whose keys were given later; here, after a restart and a crash,
# and on a standby.
use Sf;

my $node = start_node('primary', "wal_level = replica\n", allows_streaming => 1);
my $standby = start_standby('standby');

my %way = (made => '', resized => q{CALL streamfilter_resize('%s', '100kB')}, asked => q{ALTER FOREIGN TABLE %s OPTIONS (ADD keys '10000')});
my @filters;
for my $way (sort keys %way)
{
	for my $from ('distinct', 'not distinct')
	{
		my $f = "${way}_" . ($from =~ s/ /_/r);
		push @filters, [ $f, $from eq 'distinct' ? 'not distinct' : 'distinct' ];
		sql("CREATE FOREIGN TABLE $f (id int) SERVER streamfilter OPTIONS (memory '200kB', nulls '$from');
			INSERT INTO $f SELECT generate_series(1, 1000); INSERT INTO $f VALUES (NULL); SELECT streamfilter_save('$f')");
		sql(sprintf $way{$way}, $f) if $way{$way} ne '';
	}
}

# Keys known, and whether NULL is, which has come once before: with another option it is another key, or none.
my $of = q{SELECT (SELECT count(*) FROM generate_series(1, 1000) i WHERE streamfilter_test('%1$s', i)), streamfilter_test('%1$s', NULL::int)};
sub counted { my ($f, $on) = @_; return ($on // $node)->safe_psql('postgres', sprintf $of, $f); }

sub catch_up { $node->wait_for_catchup($standby, 'replay', $node->lsn('insert')); return; }

catch_up();
counted($_->[0], $standby) for @filters;    # it has read them before
for (@filters)
{
	my ($f, $to) = @$_;
	sql("ALTER FOREIGN TABLE $f OPTIONS (SET nulls '$to'); INSERT INTO $f VALUES (NULL), (NULL)");
	is(counted($f), $to eq 'distinct' ? '1000|f' : '1000|t', "$f: altered to $to");
}
catch_up();
my %known = map { $_->[0] => $_->[1] eq 'distinct' ? '1000|f' : '1000|t' } @filters;
is(counted($_->[0], $standby), $known{ $_->[0] }, "$_->[0]: on a standby") for @filters;
# What is saved anew has the option as it is now: its geometry is that of the state in the standby's memory.
sql("SELECT streamfilter_save('$_->[0]'); INSERT INTO $_->[0] VALUES (2000)") for @filters;
catch_up();
is(sql("SELECT streamfilter_test('$_->[0]', 2000)", $standby), 't', "$_->[0]: saved anew") for @filters;
is(scalar(() = slurp_file($standby->logfile) =~ m{is loaded anew}g), 0, 'the standby keeps its state');
$node->restart;
is(counted($_->[0]), $known{ $_->[0] }, "$_->[0]: after a restart") for @filters;
crash();
is(counted($_->[0]), $known{ $_->[0] }, "$_->[0]: after a crash") for @filters;
$standby->restart;
is(counted($_->[0], $standby), $known{ $_->[0] }, "$_->[0]: on a standby that starts again") for @filters;
done_testing();
