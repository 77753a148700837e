# A size that cannot keep the promised rate warns, and names one that does: with it, nothing warns, and new keys are taken for repeats
# no more often than was asked for, up to the number of keys. Each kind that keeps its rate up to a number of keys, by paths of sizes.
# flavours: quick faults one_by_one
use Sf;

my $node = start_node('a', "fsync = off\n");

# Options, fpr, keys; a window of rows takes keys for ever.
my @kinds = (
	["kind 'bloom', keys '15000'", 0.01, 15_000],
	["kind 'bloom', keys '15000', layout 'blocked'", 0.01, 15_000],
	["kind 'bloom', keys '15000', grow 'density'", 0.01, 15_000],
	["kind 'bloom', keys '15000', slices '4', slicing 'vertical'", 0.01, 15_000],
	["kind 'capped', keys '15000'", 0.01, 15_000],
	["kind 'bsbf', keys '15000'", 0.02, 15_000],
	["kind 'bsbf', keys '15000', slices '4'", 0.02, 15_000],
	["kind 'bsbfsd', keys '15000', slices '4'", 0.02, 15_000],
	["kind 'rlbsbf', keys '15000', slices '4'", 0.02, 15_000],
	["kind 'rsbf', keys '15000'", 0.02, 15_000],
	["kind 'timer', window '4000 rows'", 0.01, 4000],
	["kind 'timer', window '4000 rows', slices '1'", 0.01, 4000],
	["kind 'timer', window '1 hour', keys '4000'", 0.01, 4000]);
my @paths = (['32kB'], ['128kB', '64kB'], ['48kB', '64kB']);
my $probes = 8000;

sub alter { return join '', map { "ALTER FOREIGN TABLE f OPTIONS (SET memory '$_');\n" } @_ }

sub before {
	my ($kind, $held, @sizes) = @_;
	return "DROP FOREIGN TABLE IF EXISTS f;\n"
	  . "CREATE FOREIGN TABLE f (key int) SERVER streamfilter OPTIONS (memory '64kB', seed '164', fpr '$kind->[1]', $kind->[0]);\n"
	  . "INSERT INTO f SELECT generate_series(1, $held);\n"
	  . alter(@sizes);
}

sub warnings_of {
	my ($script) = @_;
	my ($status, $out, $messages) = $node->psql('postgres', "SET client_min_messages = warning;\n$script", on_error_stop => 1);
	die "$script: $messages" if $status != 0;
	return ($messages, $out);
}

# Of so many keys that never came.
sub most { my ($fpr) = @_; return $probes * $fpr * 1.1 + 5 * sqrt($probes * $fpr) + 2 }

my ($warned, $now, $instead) = (0, 0, 0);
for my $kind (@kinds) {
	for my $path (@paths) {
		for my $part (1, 3) {
			my $held = int $kind->[2] * $part / 3;
			my @sizes = @$path;
			my $last = pop @sizes;
			my $name = "$kind->[0], $held keys: 64kB, " . join(', ', @$path);
			my ($lost) = warnings_of(before($kind, $held, @sizes));
			next if $lost =~ /will exceed/;    # before this size, which may well be as good as any
			my ($messages) = warnings_of(before($kind, $held, @sizes, $last));
			next if $messages !~ /will exceed/;
			$warned++;
			my ($to, $other) = $messages =~ /SET memory '([^']+)'|With memory '([^']+)' instead/ or do { fail("$name names a size"); diag($messages); next };
			defined $to ? $now++ : $instead++;
			my ($script, $size) =
			  defined $to
			  ? (before($kind, $held, @sizes, $last) . "\\warn now\n" . alter($to), $to)
			  : (before($kind, $held, @sizes) . "\\warn now\n" . ($other eq ($sizes[-1] // '64kB') ? '' : alter($other)), $other);
			my ($after, $out) = warnings_of($script
				  . "INSERT INTO f SELECT generate_series($held + 1, $kind->[2]);\n"
				  . "SELECT count(*) FROM generate_series(1, $probes) k WHERE streamfilter_test('f', -k);");
			$after =~ s/.*^now$//ms;
			ok($after !~ /will exceed/ && $out <= most($kind->[1]), "$name: $size keeps it, $out of $probes") or diag($after);
		}
	}
}
note("$warned warnings: $now of them name a size to take now, $instead one to take instead");
cmp_ok($warned, '>=', 20, "$warned sizes could not keep the rate");
cmp_ok($now, '>=', 1, 'some can be mended by another size');

# What is advised by a WARNING in the middle of a transaction can be done there.
my ($messages, $known) = warnings_of(before($kinds[0], 15_000) . "BEGIN;\nSAVEPOINT a;\n" . alter('32kB')
	  . "ROLLBACK TO a;\nCOMMIT;\nSELECT count(*) FROM generate_series(1, 15000) k WHERE streamfilter_test('f', k)");
like($messages, qr/HINT:  With memory '64kB' instead of this size, it keeps the rate: roll back, and use that/, 'a size too small says what to do');
is($known, 15_000, 'and after that nothing is lost');

# The procedure says the same.
($messages) = warnings_of(before($kinds[0], 15_000) . "CALL streamfilter_resize('f', '32kB');");
like($messages, qr/With memory '64kB' instead/, 'streamfilter_resize() names the size, too');

done();
