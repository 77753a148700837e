# Carries out cases, some at a time, by psql.
package Runner;
use strict;
use warnings;
use Case;

my $AT_ONCE = 50;
my $SHOWN = 10;    # so many that differ are enough

# How many cases differ; each is reported as text. The statistics of triggers have room for some thousand of them: with
# more cases, $restart is called in between, if it is given.
sub run {
	my ($first, $count, $directory, $report, $restart) = @_;
	my ($different, $done) = (0, 0);
	prepare($directory);
	while ($count > 0 && $different < $SHOWN) {
		my $now = $count < $AT_ONCE ? $count : $AT_ONCE;
		my @cases = map { Case::draw($_, $directory) } $first .. $first + $now - 1;
		my $answers = Case::read_answers(psql($directory, map { (Case::script($_, 'off'), Case::script($_, 'on')) } @cases));
		for my $case (@cases) {
			my ($off, $on) = map { $answers->{ $case->{seed} }{$_} // '' } qw(off on);
			my @names = $off =~ /^# end$/m && $on =~ /^# end$/m ? Case::differences($case, $off, $on) : ('end');
			if (@names) {
				++$different;
				$report->(describe($case, $off, $on, @names)) if $different <= $SHOWN;
			}
		}
		unlink grep { !m{[.]0\z} } glob "$directory/*.[0-9]*";
		$restart->() if $restart && ($done += $now) % 2000 == 0;
		$first += $now;
		$count -= $now;
	}
	return $different;
}

sub prepare {
	my ($directory) = @_;
	psql($directory, 'CREATE ROLE loader;', 'GRANT pg_read_server_files, pg_execute_server_program TO loader;');
	return;
}

sub psql {
	my ($directory, @scripts) = @_;
	my ($in, $out) = ("$directory/script.0", "$directory/answers.0");
	open my $script, '>:raw', $in or die "$in: $!";
	print $script "\\set VERBOSITY verbose\n", @scripts;
	close $script;
	system("psql -XAt -d postgres < '$in' > '$out' 2>&1");
	open my $file, '<:raw', $out or die "$out: $!";
	local $/;
	my $text = <$file>;
	close $file;
	return $text;
}

# The lines around the first that differs.
sub excerpt {
	my ($old, $new) = map { [ split /\n/, $_ // '' ] } @_;
	my $at = 0;
	++$at while $at < @$old && $at < @$new && $old->[$at] eq $new->[$at];
	my $first = $at < 3 ? 0 : $at - 3;
	my $lines = sub { my ($text) = @_; return join '', map { substr($text->[$_] // '', 0, 300) . "\n" } $first .. $at + 5 };
	return "--- off\n" . $lines->($old) . "--- on\n" . $lines->($new);
}

sub describe {
	my ($case, $off, $on, @names) = @_;
	my ($old, $new) = (Case::sections($off), Case::sections($on));
	my $shown = join '', map { "$_:\n" . excerpt($old->{$_}, $new->{$_}) } @names;
	return "seed $case->{seed} differs in @names\n$shown"
	  . "again: STREAMFILTER_SEED=$case->{seed} STREAMFILTER_CASES=1; script: test/equality/run.pl --show $case->{seed}\n";
}

1;
