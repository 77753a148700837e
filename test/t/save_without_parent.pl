# A logged filter that leaves its tree knows what it knew: also after a restart, before anybody has used it, and however it has
# lost its parent. Its saved state has the seed that it took from the root.
#
# flavours: faults
use Sf;

my $node = start_node('node', "streamfilter.restore_workers = 0\nstreamfilter.max_filters = 100\n");

my $given = q{kind 'bloom', memory '64kB', keys '10000', fpr '0.001'};
my $leave = 'ALTER FOREIGN TABLE child OPTIONS (DROP parent)';
my %statements = (
	left => [ $leave ],
	seeded => [ $leave ],
	renamed => [ 'ALTER FOREIGN TABLE root RENAME TO another', q{ALTER FOREIGN TABLE child OPTIONS (SET parent 'another')} ],
	altered => [ q{ALTER FOREIGN TABLE child OPTIONS (ADD mode 'shadow')} ],
	unrelated => [ q{DELETE FROM pg_depend WHERE objid = 'child'::regclass AND refobjid = 'root'::regclass}, 'DROP FOREIGN TABLE root', $leave ],
	unentitled => [ 'REVOKE ALL ON root FROM keeper', q{ALTER FOREIGN TABLE root OPTIONS (ADD mode 'shadow')}, 'DROP FOREIGN TABLE root', $leave ]);

# With the names in it for a case
sub named { my ($statement, $case) = @_; return $statement =~ s/\b(root|child|another)\b/$1_$case/gr; }

sub leave
{
	my ($case, $what) = @_;
	for my $statement (@{ $statements{$what} })
	{
		my $said = said(named($statement, $case));
		unlike($said, $statement =~ /RENAME/ ? qr/ERROR/ : qr/ERROR|WARNING/, "$case: $statement") or diag($said);
	}
	is(known("child_$case", 1, 1000), 1000, "$case: it knows its keys");
	return;
}

sql('CREATE ROLE keeper; GRANT USAGE ON FOREIGN SERVER streamfilter TO keeper; GRANT ALL ON SCHEMA public TO keeper');
my @cases = map { my $what = $_; map { [ "${what}_$_", $what, $_ ] } qw(used restarted) } sort keys %statements;
for (@cases)
{
	my ($case, $what) = @$_;
	my $seed = $what eq 'seeded' ? q{, seed '7'} : '';
	sql("CREATE FOREIGN TABLE root_$case (id int) SERVER streamfilter OPTIONS ($given$seed);
	     GRANT ALL ON root_$case TO keeper;
	     CREATE FOREIGN TABLE child_$case (id int) SERVER streamfilter OPTIONS ($given, parent 'root_$case');
	     ALTER FOREIGN TABLE child_$case OWNER TO keeper;
	     INSERT INTO child_$case SELECT generate_series(1, 1000)");
}
for (@cases) { leave(@$_[ 0, 1 ]) if $_->[2] eq 'used'; }
$node->restart;
for (@cases) { leave(@$_[ 0, 1 ]) if $_->[2] eq 'restarted'; }
for (@cases) { sql("INSERT INTO child_$_->[0] VALUES (1001)"); }
crash();
for (@cases)
{
	is(known("child_$_->[0]", 1, 1000) . sql("SELECT streamfilter_test('child_$_->[0]', 1001)"), '1000t', "$_->[0]: what came since, too");
}
done_testing();
