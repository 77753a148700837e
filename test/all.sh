#!/usr/bin/env bash
# Runs every test. Installs what is missing, builds, and ends with one line: N passed, N failed[, N skipped].
#
#   test/all.sh [SUITE…]     suites: layers library unit sanitize bench papers compare regress isolation tap faults; all of them when none is named
#
# Debian 12 or 13, as root or with sudo. Servers run as an unprivileged user, in a copy of the tree below /tmp.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

LIMIT=1140 # seconds for everything
SUITES=(layers library unit sanitize bench papers compare regress isolation tap faults)
PASSED=0 FAILED=0 SKIPPED=0 FINISHED='' BUILT='' FAULTS=''

finish() { # always the last line, also when something above went wrong
	local status=$?
	trap - EXIT
	if [ -z "$FINISHED" ]; then FAILED=$((FAILED + 1)); fi
	[ -z "$FAULTS" ] || install_library "$ROOT" >/dev/null 2>&1 || true
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

# A library that ends the server when something can raise where nothing may takes the place of the real one, and what runs
# sessions runs again.
build_faults() { # in the copy, which is not used for anything else any more
	as_server make -C "$WORK/tree" --no-print-directory PG_CONFIG="$PG_CONFIG" clean
	as_server make -C "$WORK/tree" --no-print-directory PG_CONFIG="$PG_CONFIG" -j2 FAULTS=1
	install_library "$WORK/tree"
}

in_faults() { STREAMFILTER_FAULTS=1 in_copy FAULTS=1 "$@"; }

run_faults() {
	FAULTS=1
	build_step "build with FAULTS=1" 420 build_faults
	server_suite "isolation, what must not raise is watched" 180 count_regress in_faults check-isolation
	rm -rf "$WORK/tap" # what was counted before
	server_suite "TAP, what must not raise is watched" 600 count_tap in_faults check-tap
	build_step "installing the real library again" 60 install_library "$ROOT"
	FAULTS=''
}

# suite TITLE LIMIT COUNTER COMMAND…
suite() {
	local title=$1 limit=$2 counter=$3 status=0 passed failed skipped left
	shift 3
	left=$((LIMIT - SECONDS))
	if [ "$left" -lt "$limit" ]; then limit=$((left > 5 ? left : 5)); fi
	touch "$WORK/started"
	job "$title" "$limit" "$@"
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
	printf '  %5d passed' "$passed"
	[ "$failed" -eq 0 ] || printf ', %d failed' "$failed"
	[ "$skipped" -eq 0 ] || printf ', %d skipped' "$skipped"
	[ "$status" -ne 124 ] || printf ' (stopped after %d s)' "$limit"
	printf '\n'
	[ "$failed" -eq 0 ] || show_failure || true
}

server_suite() { # only where there is something to install
	if [ -n "$BUILT" ]; then
		suite "$@"
	else
		printf '%-52s %7s    not run: there is no build\n' "$1" ''
	fi
}

run_suite() {
	case $1 in
	layers) suite "layer wall" 120 count_one make_here check-layers ;;
	library) suite "the C interface, from C" 120 count_one make_here check-library ;;
	unit) suite "unit tests of the core" 480 count_boost make_here -j2 unit ;;
	sanitize) suite "unit tests of the core, ASan and UBSan" 600 count_boost make_here -j2 unit-sanitize ;;
	bench) suite "every measuring program builds" 300 count_one make_here -j2 bench ;;
	papers)
		suite "tables and figures of the papers, small scale" 120 count_papers \
			"$ROOT/bench/papers.sh" --quick "$ROOT/build/papers-quick"
		;;
	compare)
		suite "all kinds at equal memory, small scale" 120 count_compare \
			"$ROOT/bench/compare.sh" --quick "$ROOT/build/compare-quick"
		;;
	regress) server_suite "pg_regress" 240 count_regress in_copy check-regress ;;
	isolation) server_suite "isolation" 180 count_regress in_copy check-isolation ;;
	tap) server_suite "TAP" 420 count_tap in_copy check-tap ;;
	faults) run_faults ;;
	esac
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
	build_step "build" 420 make_here -j2 all library
	build_step "install" 60 install_extension
	build_step "copy of the tree" 60 copy_tree
}

main() {
	local name
	for name in "$@"; do
		[[ " ${SUITES[*]} " == *" $name "* ]] || die "unknown suite: $name" "Known: ${SUITES[*]}"
	done
	[ $# -gt 0 ] || set -- "${SUITES[@]}"
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
	for name in "$@"; do run_suite "$name"; done
	FINISHED=1
}

main "$@"
