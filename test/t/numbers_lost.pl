# What filters state while rows come through a trigger, against exact counts: random definitions, new rows in many transactions, another
# size in between. lost_estimate, fpr_now, fpr_bound and overfull; what a copy of the filter says as a value, in text and in binary.
# The limits fail a correct filter with a probability of 1e-7 each. STREAMFILTER_SEED: the only seed; otherwise one is always the same, and
# the day's is tried, too, and only reported.
# flavours: quick
use Sf;

my $node = start_node('numbers', "fsync = off\n");
on($node);

my @kinds = (
	[ "kind 'bloom'",                     .9 ], [ "kind 'bloom', layout 'blocked'", .9 ], [ "kind 'vqf'", 0 ], [ "kind 'clq'", 0 ],
	[ "kind 'sqf'",                       0 ],  [ "kind 'sbf'",                     0 ],  [ "kind 'lru'", 0 ], [ "kind 'rsbf'", 0 ],
	[ "kind 'clq', policy 'fifo'",        0 ],  [ "kind 'bloom', grow 'density'",   .5 ]);

# No further from what is expected than chance and a fifth explain.
sub is_about
{
	my ($stated, $found, $what) = @_;
	ok(abs($stated - $found) <= .2 * $found + 5.5 * sqrt($found) + 8, "$what: $stated, in truth $found");
	return;
}

sub check_case
{
	my ($seed, $case) = @_;
	my ($kind, $share) = @{ $kinds[$case] };
	srand($seed * 1000 + $case);
	my $rows = 4000 + int rand 4000;
	my $fpr  = sprintf '%.3f', .01 + rand .06;
	my $keys = $share ? ", keys '" . int($rows * 12 * $share) . "'" : '';
	my $size = $share ? '' : sprintf ", memory '%dkB'", 24 + rand 40;
	$size = sprintf ", memory '%dkB'", 160 if $kind =~ /grow/;
	my $options = "$kind, fpr '$fpr'$keys$size, seed '" . (7 + $case) . q(');
	sql("CREATE TABLE kept (k bigint); CREATE FOREIGN TABLE seen (k bigint) SERVER streamfilter OPTIONS ($options);
		CREATE TRIGGER once BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')");
	for my $step (0 .. 9)
	{
		my $first = $case * 1e9 + $step * $rows;
		said("INSERT INTO kept SELECT $first + g FROM generate_series(1, $rows) g");
		said("CALL streamfilter_resize('seen', '" . (60 + int rand 120) . "kB')") if $step == 4;
	}
	my ($now, $bound, $overfull, $estimate) =
		split /\|/, sql("SELECT fpr_now, fpr_bound, overfull, lost_estimate FROM streamfilter_stats WHERE filter = 'seen'::regclass");
	my $lost = sql("SELECT 10 * $rows - count(*) FROM kept");
	is_about($estimate, $lost, "$options: lost_estimate") unless $overfull eq 't';
	my $probes = 40000;
	my $found = sql("SELECT count(*) FROM generate_series(1, $probes) g WHERE streamfilter_test('seen', (7000000000000 + g)::bigint)");
	is_about($now * $probes, $found, "$options: fpr_now");
	ok($overfull eq 't' || $now <= $bound && $bound <= 1.1 * $fpr * 1.000001, "$options: fpr_now $now, fpr_bound $bound, overfull $overfull");
	ok($overfull eq 't' || $found <= 1.1 * $fpr * $probes + 5.5 * sqrt($fpr * $probes), "$options: $found of $probes new keys are repeats");
	sql('DROP TABLE kept; DROP FOREIGN TABLE seen');
	return;
}

check_case($ENV{STREAMFILTER_SEED} // 64, $_) for 0 .. $#kinds;
TODO:
{
	local $TODO = "the day's seed is only reported";
	my ($day, $month, $year) = (gmtime)[ 3, 4, 5 ];
	my $seed = ($year + 1900) * 10000 + ($month + 1) * 100 + $day;
	note("seed $seed of the day");
	if (!defined $ENV{STREAMFILTER_SEED}) { check_case($seed, $_) for 0 .. $#kinds }
}

# Of two values: how many keys they share.
for my $pair ([ 3000, 3000, 1500 ], [ 500, 60000, 200 ], [ 80000, 90000, 30000 ])
{
	my ($a, $b, $both) = @$pair;
	my ($in_both, $error) = split /\|/, sql("SELECT in_both, error FROM (SELECT streamfilter_agg(g, 'ell(memory=16kB)') FILTER (WHERE g <= $a) AS a,
		streamfilter_agg(g, 'ell(memory=16kB)') FILTER (WHERE g > $a - $both AND g <= $a - $both + $b) AS b
		FROM generate_series(1, $a + $b) g) s, streamfilter_overlap(a, b)");
	ok(abs($in_both - $both) <= 5 * $error + 1, "$in_both of $a and $b keys are in both, +- $error: $both");
}

done();
