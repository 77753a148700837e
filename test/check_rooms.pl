#!/usr/bin/env perl
# Holds the includes of src/ against src/ROOMS: none may lead to a room further down the list, and no modules (a header
# with its source) may include each other in a circle. Every room has a README.md. Run by `make check-layers`, from the
# top folder. Other findings: look-ups by OID that have no answer for what another session has dropped, and
# functions that are too long, files that are too short, names of functions that stand in too many sources, private
# fields of the server beside those in pg/server/compat_private.hpp, functions on the first page of
# docs/internals/architecture.md that src does not define, and new places that run code of others.
use strict;
use warnings;
use File::Find;
use lib 'docs';
use Files;

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
core/base/layer_wall.hpp      the wall between core and server: the build puts it before every file of the core
core/base/math_policy.hpp     face of Boost.Math for all formulas
core/base/prefetch_list.hpp   face of batches: addresses to fetch
core/base/status.cpp          list: what can be wrong, in words
core/bits/avx512.hpp          face of the instructions that a machine may have
core/bits/line_tail.hpp       face of what a line keeps besides fingerprints
core/filter/auto_kind.cpp     one choice, that of kind auto
core/filter/parallel_batch.cpp  face of batches for programs that link the core
core/format/copies.hpp        face of entries that a resize leaves twice
core/format/importance_levels.hpp  face of importance, for all kinds that have it
core/format/spread.hpp        face of where keys lie, for all kinds with cells
core/kind/cache_line_choice.hpp  face of the two lines that a key can have
core/kind/kind_list.hpp       list: the kinds
core/kind/kind_registry.cpp   face of that list
core/kind/kind_tools.hpp      face of what several kinds need
core/model/slicing_model.cpp  formulas of one subject
core/model/blocked_model.cpp  formulas of one subject
core/model/stream.cpp         formulas of one subject
core/model/timing_model.cpp   formulas of one subject
core/model/vector_quotient_model.cpp  formulas of one subject
pg/catalog/option_list.hpp    face of OPTIONS (...)
pg/ddl/server_ddl.cpp         face of ALTER SERVER
pg/fdw/fdw_handler.cpp        list: the callbacks of foreign tables
pg/handle/client_pauses.cpp   face of the socket of the client
pg/remote/wire_answers.cpp    face of answers; compiled without PostgreSQL, too
pg/server/citus.cpp           face of Citus
pg/server/compat_private.hpp  face of what the server keeps for itself
pg/server/hooks.cpp           face of PostgreSQL's hooks
pg/server/idioms.hpp          face of lists, texts and memory contexts of the server
pg/server/lock_wait.cpp       face of waits for locks
pg/server/monotonic.hpp       face of the clock
pg/server/postgres.hpp        face of the server
pg/server/rows.cpp            face of rows of functions and queries
pg/server/shared_memory.hpp   face of what each part of shared memory begins with
pg/server/syscache.hpp        face of the catalogs' caches
pg/server/wait_events.cpp     list: the names of wait events
pg/shmem/change_type.hpp      list: what can happen to a filter
pg/shmem/locked_work.cpp      tells how long locks are held, for tests
pg/sql/metrics.cpp            list: what a scraper is told
pg/storage/saved_definition.cpp face of lives: which rows belong to a filter's contents
pg/storage/saved_rows.cpp     face of rows of the heaps; compiled without PostgreSQL, too
pg/storage/write_log.cpp      face of the log: where keys are written
END

# The triggers of a relation in the cache are gone, or others, after any look at a catalog. These files copy them, or look at no catalog
# in between; all else asks for what the statement fires: triggers_of().
my %may_see_triggers = map { $_ => 1 } qw(pg/binding/trigger_binding.hpp pg/handle/waiting_code.cpp pg/ingest/insert_node.cpp
	pg/ingest/target_rule.cpp pg/trigger/judge_row.cpp pg/trigger/judge_row.hpp pg/trigger/left_keys.cpp pg/trigger/row_fate.cpp pg/trigger/trigger_ddl.cpp);

# Code that others may have chosen (casts, domains, hash functions, triggers, defaults, constants in indexes) is run by these files only, in so many lines:
my $runs_code = qr/\b(?:SPI_(?:exec|prepare|cursor_open)\w*|FunctionCall\d\w*|FunctionCallInvoke|Oid\w*FunctionCall\w*|\w*InputFunctionCall
	|ReceiveFunctionCall|ExecEvalExpr\w*|ExecInitExpr|ExecBuildProjectionInfo|ExecProject|ExecQual|coerce_to_\w+|expression_planner
	|SetUserIdAndSecContext|become_owner|RelationGetIndex(?:Expressions|Predicate))\(/x;
my %may_run_code = map { /^(\S+)\s+(\d+)/ } split /\n/, <<'END';
pg/catalog/column_coercion.cpp 8 casts to columns of filters and tables, as their owners
pg/citus/citus_nodes.cpp       2 a command of ours to nodes of Citus
pg/citus/citus_tables.cpp      2 commands of ours
pg/ddl/ddl_checks.cpp          1 a query of PostgreSQL's catalogs
pg/ddl/remote_ddl.cpp          1 commands of ours
pg/evaluate/evaluation.cpp     1 equality of values of the caller's own query
pg/fdw/batch_scan.cpp          2 expressions of the caller's own query
pg/fdw/fdw_scan.cpp            3 expressions of the caller's own query; lengths of built-in types
pg/fdw/key_qual.cpp            1 becomes part of the caller's own query
pg/handle/filter_handle.cpp    1 hashes of keys, as the filter's owner
pg/ingest/copy_ingest.cpp      3 what COPY would run itself
pg/ingest/diverted_rows.cpp    7 repeats, as the owner of the trigger's table
pg/ingest/insert_node.cpp       1 RETURNING of the INSERT, as the role that runs it
pg/key/hash_method.cpp         3 becomes the owner, and returns
pg/key/hash_method.hpp         2 declares that; run_as_owner()
pg/key/key_hash.cpp            1 hash functions: as filter_handle.cpp calls it, or of the caller's own values
pg/remote/remote_keys.cpp      1 reads a value of our own type
pg/resize/resize_call.cpp      1 a command of ours
pg/server/citus.cpp            1 a function of Citus
pg/server/rows.cpp             2 the caller's own query
pg/settle/settle.cpp           1 reads diverted rows, as their table's owner
pg/settle/settle_query.cpp     3 for callers in as_owner_of_…()
pg/settle/settle_twins.cpp     4 reads the table, as its owner; equality of keys, as the filter's owner
pg/trigger/divert.cpp          3 the INSERT of a repeat, as the owner of the trigger's table
pg/value/growing_state.cpp     2 the prototype of the caller's own query
END

# A session has few places for callbacks, and one too many ends it: all are registered here, each kind once.
my $registers = qr/\b(CacheRegister\w+|Register(?:Sub)?XactCallback)\(/;
my %registered_once = map { $_ => 'pg/server/hooks.cpp' }
  qw(CacheRegisterRelcacheCallback CacheRegisterSyscacheCallback RegisterXactCallback RegisterSubXactCallback);

# A function of the server side says what it does: a name that stands in more sources tells too little.
my $most_sources = 3;

# Fields of structs that the server keeps for itself. Only this header says what is known of them.
my $private = 'pg/server/compat_private';
my %known_field = map { $_ => 1 } map { /\w+/g } slurp("src/$private.hpp") =~ m{^//(.*)}mg;

my (%uses, %files, %defined_in, %defined, %uses_field, %runs, %registered);
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
			if (my ($name) = $head =~ /^[^(){;=]*[\s*&](\w+)\([^;]*\)[^;)]*\{/) {
				$defined{$name} = 1;
				$defined_in{$name}{$module} = 1 if $room =~ /^pg/;
			}
			$head = '';
		}
		$defined{$1} = 1 if $line =~ /^SF_FUNCTION\((\w+)\)/;
		$uses_field{$1}{"src/$file:$."} = 1 while $room eq 'pg/ingest' && $line =~ /\bcopy->(\w+)/g;
		push @findings, "src/$file:$.: what differs between versions is in pg/server/compat.hpp"
			if $module !~ m{^pg/server/compat} && $line =~ /\bPG_VERSION_NUM\b/;
		push @findings, "src/$file:$.: $1 is the server's own: see $private.hpp"
			if $module ne $private && $line =~ m{("(?:commands/copyfrom_internal|access/hio)\.h"|\bri_CopyMultiInsertBuffer\b)};
		for my $indent ('', '  ') {
			push @findings, "src/$file:$begin{$indent}: a function of " . ($. - $begin{$indent} + 1) . " lines"
				if $line =~ /^$indent\}$/ && defined $begin{$indent} && $. - $begin{$indent} >= $most_lines;
			$begin{$indent} = $. if $line =~ m{^$indent[^ /#\n]};
		}
		push @findings, "src/$file:$.: read it as pg/server/syscache.hpp does"
			if $file !~ m{^pg/server/(?:syscache|no_raise)} && $line =~ /\bSearchSysCache\w*\(/;
		push @findings, "src/$file:$.: $1 has no answer for what was dropped just now: see pg/catalog/lookup.hpp"
			if $file !~ m{^pg/catalog/lookup} && $line =~ m{^(?!\s*//).*?\b($blind)\(} && $line !~ m{//.* has it locked};
		push @findings, "src/$file:$.: the cache's triggers come and go: see triggers_of() in pg/trigger/judge_row.hpp"
			if $line =~ /->trigdesc\b/ && !$may_see_triggers{$file};
		push @{ $registered{$1} }, "src/$file:$." if $line =~ $registers && $line !~ m{^\s*//};
		++$runs{$file} if $line =~ $runs_code && $line !~ m{^\s*//};
		push @findings, "src/$file:$.: in whose name does a cast in SQL run? See pg/catalog/column_coercion.hpp"
			if $room =~ m{^pg/settle} && $line =~ /"[^"]*(?:::|COLLATE )%s/;
		push @findings, "src/$file:$.: it asks for headers of Kerberos, which a build need not have: see pg/handle/client_pauses.cpp"
			if $file !~ m{^pg/handle/client_pauses} && $line =~ m{#include "libpq/(?:libpq|libpq-be|auth|sasl|scram)\.h"};
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
for my $file (sort keys %{ { %runs, %may_run_code } }) {
	my ($found, $listed) = map { $_ // 0 } $runs{$file}, $may_run_code{$file};
	push @findings, "src/$file: $found lines run code, $listed are in the list of test/check_rooms.pl: in whose name? See pg/key/hash_method.hpp"
		if $found != $listed;
}
for my $function (sort keys %{ { %registered, %registered_once } }) {
	my @places = @{ $registered{$function} // [] };
	my $place = $registered_once{$function} // 'a list of steps in pg/server/hooks.cpp';
	push @findings, "$function() is called at " . join(', ', @places) . "; once is right, in src/$place"
		if @places != 1 || $places[0] !~ m{^src/\Q$place\E:};
}
push @findings, map { "src/$_: in the list of test/check_rooms.pl, but is not there" } sort grep { !$files{$_} } keys %may_be_short;

for my $field (sort grep { !$known_field{$_} } keys %uses_field) {
	push @findings, "$_: say in $private.hpp what is known of $field" for sort keys %{ $uses_field{$field} };
}

# The spine: what the page names is defined in src, not only mentioned.
my ($spine) = slurp('docs/internals/architecture.md') =~ /^(# Architecture\n.*?)^## The rooms$/ms;
push @findings, map { "docs/internals/architecture.md: src does not define $_(), which its first page names" }
  sort grep { !$defined{$_} } keys %{ { map { $_ => 1 } ($spine // '') =~ /`(\w+)\(\)`/g } };
# So does what a newcomer is told to write.
my %macro = map { $_ => 1 } map { slurp($_) =~ /^#define (STREAMFILTER_\w+)/mg } glob 'src/*/*.hpp src/*/*/*.hpp';
my ($exercise) = slurp('docs/CONTRIBUTING.md') =~ /^(## Add a counter\n.*?)^## /ms;
push @findings, map { "docs/CONTRIBUTING.md: src does not define $_" } sort grep { !$macro{$_} } ($exercise // '') =~ /`(STREAMFILTER_\w+)`/g;
push @findings, 'docs/internals/architecture.md: its first page names no functions' if ($spine // '') !~ /`\w+\(\)`/;

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
