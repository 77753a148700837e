#!/usr/bin/env bash
# Recomputes the tables and figures of the papers; docs/internals/papers.md lists them with the results.
#
#   bench/papers.sh [--quick] [OUTDIR]
#
# Installs what is missing, builds, and leaves in OUTDIR (build/papers) the table of each program, X.txt, and for each
# figure its numbers, .dat, and its plot, .png. Takes minutes; --quick computes everything at a small scale, in seconds.
# The last line says how many of the asserted figures are met. Debian 12 or 13, as root or with sudo.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=lib/figures.sh
source "$ROOT/bench/lib/figures.sh"

# The longest first: two run at a time.
PROGRAMS=(paper_tables sbf_figures distributed_figures slicing_figures ibf_figures stream_figures tree_figures
	sqf_figures sqf_table)
FAILED=0 RUNNING=''

scale() { if [ "$QUICK" ]; then say "$1"; else say "$2"; fi; }

arguments() { # of a program
	case $1 in
	paper_tables) say --threads 1 ${QUICK:+--table 8} --scale "$(scale 800 200)" ;;
	sqf_table) scale 4096 128 ;;
	*) say "$OUT" "$QUICK" ;;
	esac
}

run_program() { # its table, and how it ended
	local start=$EPOCHREALTIME status=0 words
	read -ra words <<<"$(arguments "$1")"
	"$ROOT/build/bench/$1" "${words[@]}" >"$OUT/$1.txt" 2>"$WORK/$1.err" || status=$?
	say "$status $(elapsed "$start")" >"$WORK/$1.end"
}

run_programs() {
	local name
	cd "$ROOT"
	for name in "${PROGRAMS[@]}"; do
		[ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n
		run_program "$name" &
	done
	wait
}

job_progress() {
	local ended
	[ "$RUNNING" ] || return 0
	ended=$(find "$WORK" -name '*.end' | wc -l)
	printf '%d of %d programs done' "$ended" "${#PROGRAMS[@]}"
}

summary() { # of a program
	local status=1 seconds='-'
	[ ! -e "$WORK/$1.end" ] || read -r status seconds <"$WORK/$1.end"
	printf '%-22s %7s s  %s\n' "$1" "$seconds" "$(tail -n 1 "$OUT/$1.txt" 2>/dev/null)"
	[ "$status" -ne 0 ] || return 0
	FAILED=$((FAILED + 1))
	grep -E 'MISSED|DIFFERS' "$OUT/$1.txt" 2>/dev/null | head -n 20 || true
	cat "$WORK/$1.err" 2>/dev/null || true
}

plot() {
	local script figure status=0
	cd "$ROOT"
	for script in bench/papers/*/*.gp; do
		figure=$(basename "$script" .gp)
		plot_figure "$script" "$figure" || status=1
	done
	return "$status"
}

count_met() { # "MET of ALL" over the last lines of all programs
	local name
	for name in "${PROGRAMS[@]}"; do tail -qn 1 "$OUT/$name.txt" 2>/dev/null; done |
		awk '/^[0-9]+ of [0-9]+ .*met/ { met += $1; all += $3 } END { printf "%d of %d", met, all }'
}

main() {
	local name
	begin_figures "$ROOT/build/papers" "$@"
	stage "build" make_here -j2 "${PROGRAMS[@]/#/build/bench/}"
	RUNNING=1
	job "tables and figures" run_programs
	printf '\n'
	for name in "${PROGRAMS[@]}"; do summary "$name"; done
	RUNNING=''
	job_of_plots plot
	[ "$JOB_STATUS" -eq 0 ] || FAILED=$((FAILED + 1))
	say "papers: $(count_met) figures met, $(find "$OUT" -name '*.png' | wc -l) plots in $OUT"
	[ "$FAILED" -eq 0 ]
}

main "$@"
