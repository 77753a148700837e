#!/usr/bin/env perl
# Holds the includes of src/ against src/ROOMS: none may lead to a room further down the list, and no modules (a header
# with its source) may include each other in a circle. Every room has a README.md. Run by `make check-layers`, from the
# top folder. Other findings: look-ups by OID that have no answer for what another session has dropped, and
# functions that are too long, files that are too short, and names of functions that stand in too many sources.
use strict;
use warnings;
use File::Find;

my (%rank, @findings);

open my $rooms, '<', 'src/ROOMS' or die "src/ROOMS: $!\n";
while (<$rooms>) {
	next if /^\s*(#|$)/;
	my ($room) = split;
	die "src/ROOMS: $room stands twice\n" if exists $rank{$room};
	$rank{$room} = keys %rank;
	push @findings, "src/$room: there is no README.md that says what lives here" unless -e "src/$room/README.md";
}
close $rooms;

sub room_of { my ($file) = @_; $file =~ m{^(.*)/[^/]*$} ? $1 : '' }

# These raise XX000, or end the server.
my $blind = 'GetForeignServer|GetForeignTable|pg_class_ownercheck|object_ownercheck'
  . '|quote_qualified_identifier\(get_namespace_name\(get_rel_namespace';

my $most_lines = 70;    # of a function

# A file under 120 lines is the face of something, or a list; any other goes into the file that a reader would open first. A header
# is the face of the source of its name. These are the others:
my $fewest_lines = 120;
my %may_be_short = map { s/\s.*//r => 1 } split /\n/, <<'END';
core/base/layer_wall.hpp      the wall between core and server: last include of every file of the core
core/base/math_policy.hpp     face of Boost.Math for all formulas
core/base/prefetch_list.hpp   face of batches: addresses to fetch
core/base/status.cpp          list: what can be wrong, in words
core/bits/avx512.hpp          face of the instructions that a machine may have
core/bits/line_tail.hpp       face of what a line keeps besides fingerprints
core/filter/parallel_batch.cpp  face of batches for programs that link the core
core/format/copies.hpp        face of entries that a resize leaves twice
core/format/importance_levels.hpp  face of importance, for all kinds that have it
core/format/spread.hpp        face of where keys lie, for all kinds with cells
core/kind/cache_line_choice.hpp  face of the two lines that a key can have
core/kind/kind_list.hpp       list: the kinds
core/kind/kind_registry.cpp   face of that list
core/model/slicing_model.cpp  formulas of one subject
core/model/stream.cpp         formulas of one subject
core/model/timing_model.cpp   formulas of one subject
core/model/vector_quotient_model.cpp  formulas of one subject
pg/catalog/option_list.hpp    face of OPTIONS (...)
pg/fdw/fdw_handler.cpp        list: the callbacks of foreign tables
pg/remote/wire_answers.cpp    face of answers; compiled without PostgreSQL, too
pg/server/citus.cpp           face of Citus
pg/server/hooks.cpp           face of PostgreSQL's hooks
pg/server/lock_wait.cpp       face of waits for locks
pg/server/monotonic.hpp       face of the clock
pg/server/postgres.hpp        face of the server
pg/server/rows.cpp            face of rows of functions and queries
pg/server/shared_memory.hpp   face of what each part of shared memory begins with
pg/server/syscache.hpp        face of the catalogs' caches
pg/server/wait_events.cpp     list: the names of wait events
pg/shmem/locked_work.cpp      tells how long locks are held, for tests
pg/sql/metrics.cpp            list: what a scraper is told
pg/storage/saved_rows.cpp     face of rows of the heaps; compiled without PostgreSQL, too
pg/storage/write_log.cpp      face of the log: where keys are written
pg/trigger/judged_once.cpp    face of the rule that no row is judged twice
END

# A function of the server side says what it does: a name that stands in more sources tells too little.
my $most_sources = 3;

my (%uses, %files, %defined_in);
find({ no_chdir => 1, wanted => sub {
	return unless m{^src/(.*)\.([ch]pp)$};
	my ($module, $file) = ($1, substr($_, 4));
	$files{$file} = 1;
	my $room = room_of($file);
	return push @findings, "$_: its folder is not in src/ROOMS" unless exists $rank{$room};
	open my $source, '<', $_ or die "$_: $!\n";
	my %begin;
	my $head = '';    # of a declaration or definition, as far as it was read
	while (my $line = <$source>) {
		$head = $line =~ /^(?!(?:return|else|namespace|using|typedef|struct|class|enum|extern|static_assert)\b)[A-Za-z_\[]/ ? $line
			: $line =~ /^ {4}/ && $head ne '' ? $head . $line : '';
		if ($head =~ /[{;]/) {
			$defined_in{$1}{$module} = 1 if $room =~ /^pg/ && $head =~ /^[^(){;=]*[\s*&](\w+)\([^;]*\)[^;)]*\{/;
			$head = '';
		}
		for my $indent ('', '  ') {
			push @findings, "src/$file:$begin{$indent}: a function of " . ($. - $begin{$indent} + 1) . " lines"
				if $line =~ /^$indent\}$/ && defined $begin{$indent} && $. - $begin{$indent} >= $most_lines;
			$begin{$indent} = $. if $line =~ m{^$indent[^ /#\n]};
		}
		push @findings, "src/$file:$.: read it as pg/server/syscache.hpp does"
			if $file !~ m{^pg/server/(?:syscache|no_raise)} && $line =~ /\bSearchSysCache\w*\(/;
		push @findings, "src/$file:$.: $1 has no answer for what was dropped just now: see pg/catalog/lookup.hpp"
			if $file !~ m{^pg/catalog/lookup} && $line =~ m{^(?!\s*//).*?\b($blind)\(} && $line !~ m{//.* has it locked};
		push @findings, "src/$file:$.: it asks for headers of Kerberos, which a build need not have: see pg/ingest/copy_ingest.cpp"
			if $file !~ m{^pg/ingest/copy_ingest} && $line =~ m{#include "libpq/(?:libpq|libpq-be|auth|sasl|scram)\.h"};
		my ($included) = $line =~ m{^\s*#include "((?:core|pg)/[^"]+)\.hpp"} or next;
		my $other = room_of($included);
		push @findings, "src/$file:$.: \"$included.hpp\" is not there" unless -e "src/$included.hpp";
		push @findings, "src/$file:$.: $room may not use $other"
			if exists $rank{$other} && $rank{$other} > $rank{$room};
		$uses{$module}{$included} = 1 unless $included eq $module;
	}
	push @findings, "src/$file: $. lines; merge it, or list it in test/check_rooms.pl as a face or a list"
		if $. < $fewest_lines && !$may_be_short{$file} && !($file =~ /hpp$/ && -e "src/$module.cpp");
	push @findings, "src/$file: is no longer short; take it out of the list in test/check_rooms.pl"
		if $may_be_short{$file} && ($. >= $fewest_lines || ($file =~ /hpp$/ && -e "src/$module.cpp"));
	close $source;
} }, 'src');
push @findings, map { "src/$_: in the list of test/check_rooms.pl, but is not there" } sort grep { !$files{$_} } keys %may_be_short;

for my $name (sort keys %defined_in) {
	my @sources = sort keys %{ $defined_in{$name} };
	push @findings, "$name() stands in " . @sources . " sources: " . join(', ', @sources) . '; say what each does'
		if @sources > $most_sources;
}

# Circles: the strongly connected components of more than one module (Tarjan 1972).
my (%index, %low, %on_stack, @stack);
my $next = 0;

sub visit {
	my ($module) = @_;
	no warnings 'recursion';
	$index{$module} = $low{$module} = $next++;
	push @stack, $module;
	$on_stack{$module} = 1;
	for my $other (sort keys %{ $uses{$module} // {} }) {
		if (!exists $index{$other}) {
			visit($other);
			$low{$module} = $low{$other} if $low{$other} < $low{$module};
		} elsif ($on_stack{$other} && $index{$other} < $low{$module}) {
			$low{$module} = $index{$other};
		}
	}
	return if $low{$module} != $index{$module};
	my @component;
	do {
		push @component, pop @stack;
		$on_stack{ $component[-1] } = 0;
	} until $component[-1] eq $module;
	push @findings, 'a circle of ' . @component . ' modules: ' . join ', ', sort @component
		if @component > 1;
}
exists $index{$_} or visit($_) for sort keys %uses;

print "$_\n" for @findings;
exit(@findings ? 1 : 0);
