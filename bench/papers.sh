#!/usr/bin/env bash
# Recomputes the tables and figures of the papers; docs/papers.md says which, and what comes out.
#
#   bench/papers.sh [--quick] [OUTDIR]
#
# Installs what is missing, builds, and leaves in OUTDIR (build/papers) the table of each program, X.txt, and for each
# figure its numbers, .dat, and its plot, .png. Takes minutes; --quick computes everything at a small scale, in seconds.
# The last line says how many of the asserted figures are met. Debian 12 or 13, as root or with sudo.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"

# The longest first: two run at a time.
PROGRAMS=(paper_tables sbf_figures distributed_figures ibf_figures stream_figures sqf_figures sqf_table)
LIMIT=900 # seconds for all of them
QUICK='' OUT=''
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
	for script in bench/plots/*.gp; do
		figure=$(basename "$script" .gp)
		rm -f "$OUT/$figure.png"
		gnuplot -e "dir='$OUT'" "$script" || true
		[ -s "$OUT/$figure.png" ] || status=1
		[ -s "$OUT/$figure.png" ] || say "no plot: $figure"
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
	while [ $# -gt 0 ]; do
		case $1 in
		--quick) QUICK=--quick ;;
		-*) die "unknown option: $1" "Usage: bench/papers.sh [--quick] [OUTDIR]" ;;
		*) OUT=$1 ;;
		esac
		shift
	done
	case ${OUT:=$ROOT/build/papers} in /*) ;; *) OUT=$PWD/$OUT ;; esac
	case $OUT in *[[:space:]\']*) die "OUTDIR has a space or a quote: $OUT" ;; esac
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	prepare gnuplot-nox gzip
	export STREAMFILTER_TRACES=${STREAMFILTER_TRACES:-$ROOT/../shared/traces}
	as_owner mkdir -p "$OUT" 2>/dev/null || mkdir -p "$OUT"
	stage "build" 420 make_here -j2 "${PROGRAMS[@]/#/build/bench/}"
	RUNNING=1
	job "tables and figures" "$LIMIT" run_programs
	printf '\n'
	for name in "${PROGRAMS[@]}"; do summary "$name"; done
	RUNNING=''
	job "plots" 120 plot
	printf '\n'
	if [ "$JOB_STATUS" -ne 0 ]; then
		FAILED=$((FAILED + 1))
		tail -n 40 "$WORK/job.log"
	fi
	say "papers: $(count_met) figures met, $(find "$OUT" -name '*.png' | wc -l) plots in $OUT"
	[ "$FAILED" -eq 0 ]
}

main "$@"
