#!/usr/bin/env bash
# Compares every kind of filter at equal memory; docs/compare.md says how, and what comes out.
#
#   bench/compare.sh [--quick] [OUTDIR]
#
# Installs what is missing, builds, and leaves in OUTDIR (build/compare) the table, compare.txt, and for each stream the
# numbers, compare-STREAM.dat, and a plot of FNR against FPR, compare-STREAM.png. Takes minutes; --quick computes
# everything on short streams, in seconds. The last line says how often kind auto kept the rate of false positives it was
# asked for. Debian 12 or 13, as root or with sudo.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"

LIMIT=600 # seconds
QUICK='' OUT=''

compare() {
	cd "$ROOT"
	build/bench/compare "$OUT" ${QUICK:+"$QUICK"} >"$OUT/compare.txt"
}

plot() {
	local data name status=0
	cd "$ROOT"
	for data in "$OUT"/compare-*.dat; do
		name=$(basename "$data" .dat)
		rm -f "$OUT/$name.png"
		gnuplot -e "dir='$OUT'; stream='${name#compare-}'" bench/compare.gp || true
		[ -s "$OUT/$name.png" ] || status=1
		[ -s "$OUT/$name.png" ] || say "no plot: $name"
	done
	return "$status"
}

main() {
	local failed=0
	while [ $# -gt 0 ]; do
		case $1 in
		--quick) QUICK=--quick ;;
		-*) die "unknown option: $1" "Usage: bench/compare.sh [--quick] [OUTDIR]" ;;
		*) OUT=$1 ;;
		esac
		shift
	done
	case ${OUT:=$ROOT/build/compare} in /*) ;; *) OUT=$PWD/$OUT ;; esac
	case $OUT in *[[:space:]\']*) die "OUTDIR has a space or a quote: $OUT" ;; esac
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	prepare gnuplot-nox gzip
	export STREAMFILTER_TRACES=${STREAMFILTER_TRACES:-$ROOT/../shared/traces}
	as_owner mkdir -p "$OUT" 2>/dev/null || mkdir -p "$OUT"
	rm -f "$OUT"/compare-*.dat
	stage "build" 420 make_here -j2 build/bench/compare
	job "comparison" "$LIMIT" compare
	printf '\n'
	failed=$JOB_STATUS
	cat "$OUT/compare.txt"
	job "plots" 120 plot
	printf '\n'
	if [ "$JOB_STATUS" -ne 0 ]; then
		failed=1
		tail -n 40 "$WORK/job.log"
	fi
	say "$(find "$OUT" -name 'compare-*.png' | wc -l) plots in $OUT"
	tail -n 1 "$OUT/compare.txt"
	[ "$failed" -eq 0 ]
}

main "$@"
