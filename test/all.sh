#!/usr/bin/env bash
# Runs every test. Installs what is missing, builds, and ends with one line: N passed, N failed[, N skipped].
#
#   test/all.sh                what tells in some minutes that it works: suites $QUICK, below
#   test/all.sh --everything   all of them, as a merge must pass
#   test/all.sh SUITE…         these; --list tells them
#
# Debian 12 or 13, as root or with sudo. Servers run as an unprivileged user, in a copy of the tree below /tmp. A suite is
# stopped when it hangs: no output and no work for minutes. There is no other limit; set one with timeout(1), on TERM the
# last line is still printed. INSTALL=no installs nothing: no packages, and no extension into the server of the system.
#
# Suite quick runs on a copy of the server. Suites faults and toy run on a server with assertions (test/servers/asserted.sh) where
# one can be had, with a library that has fault points; sanitized on that server, with a library under ASan and UBSan; one_by_one
# without batches of rows. A TAP file says in its head where it runs: "# flavours: quick one_by_one faults". Suite faults runs those
# that have fault points or are worth assertions, and suite tap the others. "alone": nothing may run beside it.
# Suite quick has the unit tests but for those labelled long, regress, isolation, and the TAP files that take less than fifteen
# seconds; random ones run few cases there ($FEW_CASES).
# TAP='test/t/restore_*.pl' makes suite tap run a part; QUICK_TAP, FAULTS_TAP and ONE_BY_ONE_TAP likewise. A line for each result, "suite
# passed failed skipped", goes to the file SUITE_RESULTS if that is set. What no suite has tested is said at the end, and why.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PASSED=0 FAILED=0 SKIPPED=0 FAILURES='' FINISHED='' BUILT='' CPU=0 SOAK_PID=''

# --- The suites: a line each, in the order in which they run ----------------------------------------------------------
# Each has a name (several lines may share one), what counts its results, a title, and a command. `suite` runs it in the
# tree, `server_suite` once the extension is built, installed and copied; `flavour_suite` makes targets on a server with
# another flavour of the library.

FOUR_FILES=PROVE_FLAGS=-j4 # of TAP tests at a time: they wait most of their time
FEW_CASES='STREAMFILTER_SECONDS=10 STREAMFILTER_CRASH_CYCLES=6 STREAMFILTER_CASES=300'
QUICK='layers format scripts library quick' # what runs where nothing is named

tap_files_of_tap() { (cd "$ROOT" && grep -LE "^# flavours:.* (alone|faults)( |\$)" test/t/*.pl | tr '\n' ' '); }

# The others have no batches of rows.
regress_files_with_judges() {
	(cd "$ROOT/test/sql" && grep -lE 'streamfilter_(discard|divert|mark)\(' ./*.sql | sed -E 's,^\./(.*)\.sql$,\1,' | tr '\n' ' ')
}

suites() {
	suite layers count_one "layer wall" make_here check-layers
	suite format count_format "clang-format" make_here check-format
	suite scripts count_one "shellcheck, perlcritic" make_here lint-scripts
	suite library count_one "the C interface, from C" make_here check-library
	suite unit count_boost "unit tests of the core" make_here -j2 unit
	suite quick count_boost "unit tests of the core, without the long ones" \
		make_here -j2 UNIT_RUN_OPTS="--report_level=short --run_test=!@long" unit
	flavour_suite quick count_regress "pg_regress, a copy of the server" check-regress
	flavour_suite quick count_regress "isolation, a copy of the server" check-isolation
	# shellcheck disable=SC2086 # several arguments
	flavour_suite quick count_tap "TAP, the quick ones" check-tap $FOUR_FILES $FEW_CASES PROVE_TESTS="${QUICK_TAP:-$(tap_files quick)}"
	suite toy count_boost "unit tests that loop over kinds, with a toy kind" \
		make_here -j2 FLAVOUR=toy UNIT_RUN_OPTS="--report_level=short --run_test=!@long" unit
	flavour_suite toy count_regress "pg_regress, every kind and a toy kind" check-regress \
		REGRESS=toy REGRESS_OPTS="--inputdir=test/toy --encoding=UTF8"
	suite sanitize count_boost "unit tests of the core, ASan and UBSan" make_here -j2 unit-sanitize
	suite bench count_one "every measuring program builds" make_here -j2 bench
	suite papers count_papers "tables and figures of the papers, small scale" "$ROOT/bench/papers.sh" --quick "$ROOT/build/papers-quick"
	suite compare count_compare "all kinds at equal memory, small scale" "$ROOT/bench/compare.sh" --quick "$ROOT/build/compare-quick"
	suite instructions count_lines "instructions a row, against those of the base" "$ROOT/bench/instructions.sh" --check
	suite demo count_one "the demo tells a small filter from a good one" "$ROOT/test/demo_check.sh"
	suite fuzz count_lines "fuzz targets, 5 seconds each" env FUZZ_SEED=1 "$ROOT/test/fuzz.sh" 0.085
	begin_soak
	server_suite regress count_regress "pg_regress" in_copy check-regress
	server_suite isolation count_regress "isolation" in_copy check-isolation
	server_suite tap count_tap "TAP" in_copy check-tap $FOUR_FILES PROVE_TESTS="${TAP:-$(tap_files_of_tap)}"
	server_suite soak count_lines "what accumulates stays within its bounds, six minutes" end_soak
	SOAK_PID=''
	[ -n "${TAP:-}" ] || server_suite tap count_tap "TAP, one file at a time" in_copy check-tap PROVE_TESTS="$(tap_files alone)"
	server_suite one_by_one count_regress "pg_regress, rows are inserted one by one" in_copy check-regress \
		REGRESS="$(regress_files_with_judges)" TEMP_CONFIG="$WORK/one_by_one.conf"
	server_suite one_by_one count_regress "isolation, rows are inserted one by one" in_copy check-isolation \
		TEMP_CONFIG="$WORK/one_by_one.conf"
	server_suite one_by_one count_tap "TAP, rows are inserted one by one" in_copy check-tap $FOUR_FILES \
		TEMP_CONFIG="$WORK/batch_insert_off.conf" PROVE_TESTS="${ONE_BY_ONE_TAP:-$(tap_files one_by_one)}"
	server_suite upgrade count_upgrade "pg_upgrade, to all servers that have the extension" pg_upgrade
	server_suite derivation count_one "two libraries that derive otherwise, one state" derivation
	server_suite model count_lines "the model checker finds planted defects" in_copy check-defects
	server_suite model count_lines "random transactions against a model, a minute" in_copy check-model
	server_suite chaos count_lines "servers of slices lost in every way, a minute" in_copy check-chaos
	suite citus count_citus "TAP on Citus, where it is built" citus
	flavour_suite faults count_regress "pg_regress, assertions, no caches" check-regress \
		REGRESS="definition trigger trigger_traps" TEMP_CONFIG="$WORK/no_caches.conf"
	flavour_suite faults count_tap "TAP, assertions and fault points" check-tap $FOUR_FILES \
		PROVE_TESTS="${FAULTS_TAP:-$(tap_files faults)}"
	flavour_suite faults count_lines "the model, sessions stop at fault points" check-model
	flavour_suite sanitized count_regress "pg_regress, assertions, ASan and UBSan" check-regress
	flavour_suite sanitized count_regress "isolation, assertions, ASan and UBSan" check-isolation
}

finish() { # always the last line, also when something above went wrong
	local status=$?
	trap - EXIT
	trap '' INT TERM
	[ -z "$SOAK_PID" ] || kill -TERM -- "-$SOAK_PID" 2>/dev/null || true
	if [ -z "$FINISHED" ]; then FAILED=$((FAILED + 1)); fi
	untested || true
	remove_work || true
	[ -z "$FAILURES" ] || printf '%s' "$FAILURES"
	printf '%d passed, %d failed' "$PASSED" "$FAILED"
	[ "$SKIPPED" -eq 0 ] || printf ', %d skipped' "$SKIPPED"
	printf '\n'
	if [ "$FAILED" -gt 0 ] && [ "$status" -eq 0 ]; then status=1; fi
	exit "$status"
}

# --- Counting: each reads a suite's output and prints "passed failed skipped" ----------------------------------------

count_one() { say "1 0 0"; }

count_format() { # needs one version of the program
	if grep -q ^skip "$WORK/job.log"; then say "0 0 1"; else say "1 0 0"; fi
}

count_boost() { # the lines that the short report prints for a test module
	awk '/test cases? out of [0-9]+ passed/ { passed += $1 }
		/test cases? out of [0-9]+ failed/ { failed += $1 }
		/test cases? out of [0-9]+ skipped/ { skipped += $1 }
		END { print passed + 0, failed + 0, skipped + 0 }' "$WORK/job.log"
}

count_papers() { # figures asserted by the programs that recompute the papers' tables and figures
	awk '/^papers: [0-9]+ of [0-9]+ figures met/ { met = $2; all = $4 } END { print met + 0, all - met, 0 }' "$WORK/job.log"
}

count_compare() { # cases in which `auto` kept the rate that it was asked for
	awk '/^compare: auto kept its rate in [0-9]+ of [0-9]+ cases/ { met = $7; all = $9 } END { print met + 0, all - met, 0 }' "$WORK/job.log"
}

count_regress() { # "test name ... ok 5 ms" up to PostgreSQL 15, "ok 1 - name 5 ms" since; isolation tests likewise
	awk '/^(test|    ) +[^ ]+ +\.\.\. +ok/ || /^ok +[0-9]+ +[-+] / { passed++ }
		/^(test|    ) +[^ ]+ +\.\.\. +(FAILED|failed)/ || /^not ok +[0-9]+ +[-+] / { failed++ }
		END { print passed + 0, failed + 0, 0 }' "$WORK/job.log"
}

count_lines() { # a line for each target, planted defect, or run
	awk '/^ok / { passed++ } /^not ok / { failed++ } /^skip/ { skipped++ }
		END { print passed + 0, failed + 0, skipped + 0 }' "$WORK/job.log"
}

count_upgrade() { # its last line
	awk '/^pg_upgrade: [0-9]+ passed/ { passed = $2; failed = $4; skipped = $6 } END { print passed + 0, failed + 0, skipped + 0 }' "$WORK/job.log"
}

count_tap() { # the raw output of every file, which the harness leaves in a directory
	find "$WORK/tap" -type f -exec cat {} + | awk '
		/^1\.\.0 .*[Ss][Kk][Ii][Pp]/ || /^(not )?ok .*# (SKIP|skip|TODO)/ { skipped++; next }
		/^ok / { passed++ }
		/^not ok / { failed++ }
		END { print passed + 0, failed + 0, skipped + 0 }'
}

count_citus() { if [ -d "$WORK/tap" ]; then count_tap; else count_lines; fi; }

# --- What was not tested ---------------------------------------------------------------------------------------------

# A line for each suite that ran a TAP file, or for another suite: "suite file", and for what it skipped of it "suite file checks
# why", parted by tabs.
note_skips() { # suite title
	local file
	if [ -d "$WORK/tap" ]; then
		(cd "$WORK/tap" && find . -type f -name '*.pl') | while read -r file; do
			printf '%s\t%s\n' "$1" "${file##*/}"
			sed -nE 's/^(ok [0-9]+|1\.\.0) .*# (SKIP|skip) ?//p' "$WORK/tap/$file" | sort | uniq -c |
				sed -E "s/^ *([0-9]+) (.*)/$1\t${file##*/}\t\1\t\2/"
		done
	else
		printf '%s\t"%s"\n' "$1" "$2"
		sed -nE "s|^skip(ped)?:? |$1\t\"$2\"\t1\t|p" "$WORK/job.log"
	fi >>"$WORK/tested"
}

# Of a file that several suites have run, what all of them have skipped. "not tested: checks files: why"
untested() {
	[ -s "$WORK/tested" ] || return 0
	awk -F '\t' '
		NF == 2 { runs[$2]++ }
		NF == 4 { skips[$2 FS $4]++; if ($3 > checks[$2 FS $4]) checks[$2 FS $4] = $3 }
		END {
			for (key in skips) {
				split(key, of, FS)
				if (skips[key] < runs[of[1]]) continue
				all[of[2]] += checks[key]
				files[of[2]] = files[of[2]] " " of[1]
			}
			for (why in all) printf "not tested: %5d of%s: %s\n", all[why], files[why], why
		}' "$WORK/tested" | sort -k 3nr
}

# --- Suites ----------------------------------------------------------------------------------------------------------

in_copy() { # make there, as the server's user
	rm -rf "$WORK/tap"
	mkdir "$WORK/tap"
	! is_root || chown postgres "$WORK/tap"
	as_server env PERL_TEST_HARNESS_DUMP_TAP="$WORK/tap" make -C "$WORK/tree" --no-print-directory \
		PG_CONFIG="$PG_CONFIG" "$@"
}

citus() { # the build that test/citus.sh --build keeps
	local kept=${STREAMFILTER_CITUS:-$ROOT/build/citus}
	if [ ! -d "$kept/pg$("$PG_CONFIG" --version | grep -oE '[0-9]+' | head -n 1)" ]; then
		say "skip: Citus is not built, see test/citus.sh --build"
	else
		mkdir "$WORK/tap"
		! is_root || chown postgres "$WORK/tap"
		PERL_TEST_HARNESS_DUMP_TAP=$WORK/tap "$ROOT/test/citus.sh"
	fi
}

# Six minutes beside suites that leave a processor half idle. It gets less time then, which its bounds do not count. Its result is
# that of suite soak.
begin_soak() {
	if ! is_wanted soak || [ -z "$BUILT" ]; then return; fi
	set -m # a process group of its own, as of a job
	PG_CONFIG=$PG_CONFIG nice timeout -k 60 2400 "$ROOT/test/soak.sh" .1 1 </dev/null >"$WORK/soak.log" 2>&1 &
	SOAK_PID=$!
	set +m
}

end_soak() { # the job is not its parent, and seconds without output would be taken for hung
	while kill -0 "$SOAK_PID" 2>/dev/null; do
		say "still running"
		sleep 1
	done
	cat "$WORK/soak.log"
	grep -qE '^1\.\.[0-9]+$' "$WORK/soak.log" # its last line: it has come to its end
}

pg_upgrade() { PG_CONFIG=$PG_CONFIG "$ROOT/test/pg_upgrade.sh"; }
derivation() { PG_CONFIG=$PG_CONFIG "$ROOT/test/derivation.sh"; }

# Lines for each test of a job that failed. They are shown once more at the end, where they are looked for.
failures() { # title
	local line found=''
	while IFS= read -r line; do
		printf 'failed: %s: %s\n' "$1" "${line:0:200}"
		found=1
	done < <(
		{
			grep -hE '^(test|    ) +[^ ]+ +\.\.\. +(FAILED|failed)|^not ok|: error: in "|: fatal error: in "' "$WORK/job.log"
			[ ! -d "$WORK/tap" ] || grep -rE '^not ok' "$WORK/tap" | sed "s|^$WORK/tap/||" | grep -vE '# (SKIP|skip|TODO)'
			grep -E '^test/t/.*\(Wstat: ' "$WORK/job.log" # files that have failed or died
			grep -A 5 '^#   Failed test' "$WORK/job.log" # what it got, and what it expected
		} | head -n 60
	)
	[ -n "$found" ] || printf 'failed: %s\n' "$1"
}

show_failure() { # of a job; what cannot be shown is no reason to stop
	local file
	say "--- the end of its output"
	tail -n 60 "$WORK/job.log"
	find "$WORK/tree" -name regression.diffs -size +0 2>/dev/null | while read -r file; do
		say "--- ${file#"$WORK/tree/"}"
		head -n 300 "$file"
		rm -f "$file"
	done
	find "$WORK/tree" -path '*log/*' \( -name '*.log' -o -name 'regress_log_*' \) -newer "$WORK/started" 2>/dev/null |
		while read -r file; do
			grep -qE 'PANIC|FATAL|terminated by signal|Sanitizer|^\[.*not ok|#   Failed' "$file" || continue
			say "--- ${file#"$WORK/tree/"}"
			tail -n 40 "$file"
		done
	say "---"
}

# run_suite COUNTER TITLE COMMAND…
run_suite() {
	local counter=$1 title=$2 status=0 passed failed skipped
	shift 2
	touch "$WORK/started"
	rm -rf "$WORK/tap"
	job "$title" "$@"
	status=$JOB_STATUS
	stop_servers
	read -r passed failed skipped <<<"$("$counter")"
	if [ "$status" -ne 0 ] && [ $((passed + failed + skipped)) -eq 1 ]; then passed=0; fi
	if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
	if [ $((passed + failed + skipped)) -eq 0 ]; then
		failed=1
		say "no test was run" >>"$WORK/job.log"
	fi
	PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + skipped))
	note_skips "${NAMES[-1]}" "$title"
	[ -z "${SUITE_RESULTS:-}" ] || say "${NAMES[-1]} $passed $failed $skipped" >>"$SUITE_RESULTS"
	show_cpu
	printf '  %5d passed' "$passed"
	[ "$failed" -eq 0 ] || printf ', %d failed' "$failed"
	[ "$skipped" -eq 0 ] || printf ', %d skipped' "$skipped"
	[ "$status" -ne 124 ] || printf ' (hung, stopped)'
	printf '\n'
	[ "$failed" -gt 0 ] || return 0
	FAILURES+=$(failures "$title")$'\n'
	show_failure || true
}

show_cpu() { # of the job that has ended
	CPU=$((CPU + JOB_CPU))
	printf ' %7d.%d s CPU' $((JOB_CPU / 100)) $((JOB_CPU / 10 % 10))
}

is_wanted() { [[ " $WANTED " == *" $1 "* ]]; }

suite() {
	NAMES+=("$1")
	! is_wanted "$1" || run_suite "${@:2}"
}

server_suite() { # only where there is something to install
	NAMES+=("$1")
	if ! is_wanted "$1"; then
		return
	elif [ -n "$BUILT" ]; then
		run_suite "${@:2}"
	else
		printf '%-52s %7s    not run: there is no build\n' "$3" ''
	fi
}

# --- Flavours: a server of its own with another library; what is installed stays as it is ------------------------------

declare -A FLAVOURS=() # those that were made: ready, failed or skipped

flavour_suite() { # flavour counter title make-argument…: its name is the flavour's
	NAMES+=("$1")
	if ! is_wanted "$1"; then return; fi
	if [ -z "$BUILT" ]; then
		printf '%-52s %7s    not run: there is no build\n' "$3" ''
		return
	fi
	[ -n "${FLAVOURS[$1]:-}" ] || make_flavour "$1"
	case ${FLAVOURS[$1]} in
	ready) run_suite "$2" "$3" in_flavour "$1" "${@:4}" ;;
	skipped)
		SKIPPED=$((SKIPPED + 1))
		printf '%s\t"%s"\n%s\t"%s"\t1\t%s\n' "$1" "$3" "$1" "$3" "no source of such a server" >>"$WORK/tested"
		printf '%-52s skipped: no source of such a server\n' "$3"
		;;
	esac
}

# Without sources of a server with assertions, what can does with the server that there is. The address sanitizer hangs in
# Debian's, within bindtextdomain(); the one with assertions speaks English only.
make_flavour() {
	local config=$PG_CONFIG
	FLAVOURS[$1]=ready
	if [ "$1" != quick ]; then
		job "a server with assertions" "$ROOT/test/servers/asserted.sh"
		show_cpu
		printf '\n'
		if [ "$JOB_STATUS" -eq 0 ]; then config=$(tail -n 1 "$WORK/job.log"); fi
		if [ "$JOB_STATUS" -eq 77 ] && [ "$1" = sanitized ]; then FLAVOURS[$1]=skipped; fi
		if [ "$JOB_STATUS" -ne 0 ] && [ "$JOB_STATUS" -ne 77 ]; then fail_flavour "$1"; fi
	fi
	[ "${FLAVOURS[$1]}" = ready ] || return 0
	job "build for: $1" make_here -j2 PG_CONFIG="$config" FLAVOUR="$1" flavour
	show_cpu
	printf '\n'
	if [ "$JOB_STATUS" -ne 0 ]; then fail_flavour "$1"; else copy_server "$1" "$config"; fi
}

fail_flavour() {
	FLAVOURS[$1]=failed FAILED=$((FAILED + 1)) FAILURES+="failed: library for $1"$'\n'
	show_failure || true
}

copy_server() { # flavour pg_config: to $WORK/FLAVOUR
	local top=$WORK/$1
	copy_binaries "$top" "$2"
	say "$top$("$2" --bindir)/pg_config" >"$top/config"
	install_built "$ROOT" "$1" "$top" "$2"
	(cat "$ROOT/test/streamfilter.conf" && say "debug_discard_caches = 1") >"$WORK/no_caches.conf"
	if [ "$1" = sanitized ]; then preload_sanitizer "$top$("$2" --bindir)"; fi
	give_work
}

preload_sanitizer() { # bin directory: the address sanitizer must be the first library of every process of the server
	mv "$1/postgres" "$1/postgres.bin"
	cat >"$1/postgres" <<-END
		#!/bin/sh
		export LD_PRELOAD='$(g++ -print-file-name=libasan.so)'
		export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0
		export UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1
		exec "$1/postgres.bin" "\$@"
	END
	chmod 755 "$1/postgres"
}

in_flavour() { # flavour make-argument…
	local config
	config=$(cat "$WORK/$1/config")
	[ "$1" != faults ] || export STREAMFILTER_FAULTS=1
	LD_LIBRARY_PATH=$("$config" --libdir) PG_CONFIG=$config in_copy CHECKED= "${@:2}"
}

copy_tree() { # stale results of earlier runs are left behind, for what is reported must be of this one
	mkdir "$WORK/tree"
	tar -C "$ROOT" --exclude=./.git --exclude='tmp_check*' --exclude=output_iso --exclude=./results --exclude=./log \
		--exclude='regression.*' -cf - . | tar -C "$WORK/tree" -xf -
	(cat "$ROOT/test/tap.conf" && say "streamfilter.batch_insert = off") >"$WORK/batch_insert_off.conf"
	cat "$ROOT/test/streamfilter.conf" "$WORK/batch_insert_off.conf" >"$WORK/one_by_one.conf"
	give_work
}

build_step() {
	[ "$BUILT" ] || return 0
	job "$@"
	show_cpu
	if [ "$JOB_STATUS" -eq 0 ]; then
		printf '\n'
	else
		printf '  failed\n'
		FAILED=$((FAILED + 1)) BUILT='' FAILURES+="failed: $1"$'\n'
		show_failure || true
	fi
}

# Those that run on the server of the system, or install what they need into it.
INSTALLED='regress isolation tap one_by_one upgrade derivation model chaos soak faults sanitized'

needs_installing() {
	local name
	for name in $INSTALLED; do ! is_wanted "$name" || return 0; done
	return 1
}

build() { # a failed build counts as a failed test
	BUILT=1
	if needs_installing; then
		build_step "build" make_here -j2 all library build/model/checker
		build_step "install" install_extension
	elif is_wanted quick || is_wanted toy; then
		build_step "build" make_here -j2 FLAVOUR=quick flavour library scripts
	else
		return 0
	fi
	build_step "copy of the tree" copy_tree
}

main() {
	local name WANTED='' NAMES=()
	suites # nothing is wanted yet: the names alone
	case ${1:-} in
	--list)
		printf '%s\n' "${NAMES[@]}" | awk '!met[$0]++'
		return
		;;
	--everything) WANTED=$(printf '%s\n' "${NAMES[@]}" | grep -vx quick | tr '\n' ' ') ;;
	'') WANTED=$QUICK ;;
	*) WANTED="$*" ;;
	esac
	for name in $WANTED; do
		[[ " ${NAMES[*]} " == *" $name "* ]] || die "unknown suite: $name" "Known: ${NAMES[*]}"
	done
	trap finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	PG_MODULES=(plproxy partman)
	prepare libboost-test-dev libipc-run-perl libffi-platypus-perl perl gnuplot-nox procps
	! is_wanted format || install_if_available clang-format
	! is_wanted scripts || install_missing shellcheck libperl-critic-perl
	! is_wanted tap || install_if_available python3-psycopg pandoc weasyprint poppler-utils
	! is_wanted fuzz || install_if_available clang libclang-rt-dev
	export BOOST_TEST_REPORT_LEVEL=short BOOST_TEST_COLOR_OUTPUT=no
	# Real event streams, if they lie beside the tree; tests that want them are skipped without.
	export STREAMFILTER_TRACES=${STREAMFILTER_TRACES:-$ROOT/../shared/traces}
	say "$("$PG_CONFIG" --version), $(g++ --version | head -n 1)"
	build
	suites
	say "$((CPU / 100)) s of CPU in all"
	[ "$WANTED" != "$QUICK" ] || say "Nothing was installed but packages. Next: test/demo.sh, or README.md from 'A first session'; test/all.sh --everything tests all."
	FINISHED=1
}

main "$@"
