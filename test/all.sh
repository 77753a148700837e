#!/usr/bin/env bash
# Runs every test. Installs what is missing, builds, and ends with one line: N passed, N failed[, N skipped].
#
#   test/all.sh [SUITE…]     all of them when none is named; --list tells them
#
# Debian 12 or 13, as root or with sudo. Servers run as an unprivileged user, in a copy of the tree below /tmp. A suite is
# stopped when it hangs: no output and no work for minutes. There is no other limit; set one with timeout(1), on TERM the
# last line is still printed.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PASSED=0 FAILED=0 SKIPPED=0 FINISHED='' BUILT='' CPU=0

# --- The suites: a line each, in the order in which they run ----------------------------------------------------------
# `suite` runs in the tree, `server_suite` once the extension is built, installed and copied. Then: a name, what counts its
# results, a title, the command.

suites() {
	suite layers count_one "layer wall" make_here check-layers
	suite unit count_boost "unit tests of the core" make_here -j2 unit
	suite sanitize count_boost "unit tests of the core, ASan and UBSan" make_here -j2 unit-sanitize
	suite bench count_one "every measuring program builds" make_here -j2 bench
	suite papers count_papers "tables and figures of the papers, small scale" "$ROOT/bench/papers.sh" --quick "$ROOT/build/papers-quick"
	suite compare count_compare "all kinds at equal memory, small scale" "$ROOT/bench/compare.sh" --quick "$ROOT/build/compare-quick"
	server_suite regress count_regress "pg_regress" in_copy check-regress
	server_suite isolation count_regress "isolation" in_copy check-isolation
	server_suite tap count_tap "TAP" in_copy check-tap
}

finish() { # always the last line, also when something above went wrong
	local status=$?
	trap - EXIT
	trap '' INT TERM
	if [ -z "$FINISHED" ]; then FAILED=$((FAILED + 1)); fi
	remove_work || true
	printf '%d passed, %d failed' "$PASSED" "$FAILED"
	[ "$SKIPPED" -eq 0 ] || printf ', %d skipped' "$SKIPPED"
	printf '\n'
	if [ "$FAILED" -gt 0 ] && [ "$status" -eq 0 ]; then status=1; fi
	exit "$status"
}

# --- Counting: each reads a suite's output and prints "passed failed skipped" ----------------------------------------

count_one() { say "1 0 0"; }

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

count_tap() { # the raw output of every file, which the harness leaves in a directory
	find "$WORK/tap" -type f -exec cat {} + | awk '
		/^1\.\.0 .*[Ss][Kk][Ii][Pp]/ || /^(not )?ok .*# (SKIP|skip|TODO)/ { skipped++; next }
		/^ok / { passed++ }
		/^not ok / { failed++ }
		END { print passed + 0, failed + 0, skipped + 0 }'
}

# --- Suites ----------------------------------------------------------------------------------------------------------

in_copy() { # make there, as the server's user
	mkdir -p "$WORK/tap"
	! is_root || chown postgres "$WORK/tap"
	as_server env PERL_TEST_HARNESS_DUMP_TAP="$WORK/tap" make -C "$WORK/tree" --no-print-directory \
		PG_CONFIG="$PG_CONFIG" "$@"
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
	job "$title" "$@"
	status=$JOB_STATUS
	stop_servers
	read -r passed failed skipped <<<"$("$counter")"
	if [ "$counter" = count_one ] && [ "$status" -ne 0 ]; then passed=0; fi
	if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
	if [ $((passed + failed + skipped)) -eq 0 ]; then
		failed=1
		say "no test was run" >>"$WORK/job.log"
	fi
	PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + skipped))
	show_cpu
	printf '  %5d passed' "$passed"
	[ "$failed" -eq 0 ] || printf ', %d failed' "$failed"
	[ "$skipped" -eq 0 ] || printf ', %d skipped' "$skipped"
	[ "$status" -ne 124 ] || printf ' (hung, stopped)'
	printf '\n'
	[ "$failed" -eq 0 ] || show_failure || true
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

copy_tree() { # stale results of earlier runs are left behind, for what is reported must be of this one
	mkdir "$WORK/tree"
	tar -C "$ROOT" --exclude=./.git --exclude='tmp_check*' --exclude=output_iso --exclude=./results --exclude=./log \
		--exclude='regression.*' -cf - . | tar -C "$WORK/tree" -xf -
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
		FAILED=$((FAILED + 1)) BUILT=''
		show_failure || true
	fi
}

build() { # a failed build counts as a failed test
	BUILT=1
	build_step "build" make_here -j2
	build_step "install" install_extension
	build_step "copy of the tree" copy_tree
}

main() {
	local name WANTED='' NAMES=()
	suites # nothing is wanted yet: the names alone
	if [ "${1:-}" = --list ]; then
		say "${NAMES[@]}"
		return
	fi
	for name in "$@"; do
		[[ " ${NAMES[*]} " == *" $name "* ]] || die "unknown suite: $name" "Known: ${NAMES[*]}"
	done
	if [ $# -gt 0 ]; then WANTED="$*"; else WANTED="${NAMES[*]}"; fi
	trap finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	PG_MODULES=(plproxy)
	prepare libboost-test-dev libipc-run-perl perl gnuplot-nox
	export BOOST_TEST_REPORT_LEVEL=short BOOST_TEST_COLOR_OUTPUT=no
	# Real event streams, if they lie beside the tree; tests that want them are skipped without.
	export STREAMFILTER_TRACES=${STREAMFILTER_TRACES:-$ROOT/../shared/traces}
	say "$("$PG_CONFIG" --version), $(g++ --version | head -n 1)"
	build
	suites
	say "$((CPU / 100)) s of CPU in all"
	FINISHED=1
}

main "$@"
