#!/usr/bin/env bash
# Compares all kinds of filters at equal memory; docs/internals/compare.md explains the method and the results.
#
#   bench/compare.sh [--quick] [OUTDIR]
#
# Installs what is missing, builds, and leaves in OUTDIR (build/compare)
# - the table, compare.txt, and for each stream the numbers, compare-STREAM.dat, and a plot of FNR against FPR,
#   compare-STREAM.png;
# - what a window of keys costs, windows.txt, and for each FPR the numbers, curves-FPR.dat, and a plot of FNR over bits,
#   curves-FPR.svg.
# Takes minutes; --quick computes everything on short streams, in seconds. The last line says how often kind auto kept the rate of false positives it was
# asked for. Debian 12 or 13, as root or with sudo.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=lib/figures.sh
source "$ROOT/bench/lib/figures.sh"


compare() {
	cd "$ROOT"
	build/bench/compare "$OUT" ${QUICK:+"$QUICK"} >"$OUT/compare.txt"
}

windows() {
	cd "$ROOT"
	build/bench/windows "$OUT" --curves ${QUICK:+"$QUICK"} >"$OUT/windows.txt"
}

plot() {
	local data name status=0
	cd "$ROOT"
	for data in "$OUT"/curves-*.dat; do
		plot_figure bench/quality/curves.gp "$(basename "$data" .dat)" "fpr='$(basename "$data" .dat | cut -d - -f 2)'" svg ||
			status=1
	done
	for data in "$OUT"/compare-*.dat; do
		name=$(basename "$data" .dat)
		plot_figure bench/quality/compare.gp "$name" "stream='${name#compare-}'" || status=1
	done
	return "$status"
}

main() {
	local failed=0
	begin_figures "$ROOT/build/compare" "$@"
	rm -f "$OUT"/compare-*.dat "$OUT"/curves-*.dat
	stage "build" make_here -j2 build/bench/compare build/bench/windows
	job "comparison" compare
	printf '\n'
	failed=$JOB_STATUS
	cat "$OUT/compare.txt"
	job "windows" windows
	printf '\n'
	[ "$JOB_STATUS" -eq 0 ] || failed=1
	cat "$OUT/windows.txt"
	job_of_plots plot
	[ "$JOB_STATUS" -eq 0 ] || failed=1
	say "$(find "$OUT" -name 'compare-*.png' -o -name 'curves-*.svg' | wc -l) plots in $OUT"
	tail -n 1 "$OUT/compare.txt"
	[ "$failed" -eq 0 ]
}

main "$@"
