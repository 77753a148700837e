# Shared by commands that compute figures and plot them: sourced by bench/papers.sh and bench/compare.sh.
# shellcheck shell=bash disable=SC2034 # their variables

QUICK='' OUT=''

# begin_figures DEFAULT ARGUMENT...: reads [--quick] [OUTDIR], makes OUTDIR, and installs what is missing.
begin_figures() {
	local default=$1 usage
	usage="Usage: bench/$(basename "$0") [--quick] [OUTDIR]"
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--quick) QUICK=--quick ;;
		-*) die "unknown option: $1" "$usage" ;;
		*) OUT=$1 ;;
		esac
		shift
	done
	case ${OUT:=$default} in /*) ;; *) OUT=$PWD/$OUT ;; esac
	case $OUT in *[[:space:]\']*) die "OUTDIR has a space or a quote: $OUT" ;; esac
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	prepare gnuplot-nox gzip
	export STREAMFILTER_TRACES=${STREAMFILTER_TRACES:-$ROOT/../shared/traces}
	as_owner mkdir -p "$OUT" 2>/dev/null || mkdir -p "$OUT"
}

# plot_figure SCRIPT NAME [VARIABLES [TYPE]]: OUTDIR/NAME.TYPE (png); false if there is none afterwards.
plot_figure() {
	local file=$OUT/$2.${4:-png}
	rm -f "$file"
	gnuplot -e "dir='$OUT'; ${3:-}" "$1" || true
	[ -s "$file" ] && return
	say "no plot: $2"
	return 1
}

# job_of_plots FUNCTION: runs it as a job (see `job`); if it fails, prints its output.
job_of_plots() {
	job "plots" "$1"
	printf '\n'
	[ "$JOB_STATUS" -eq 0 ] || tail -n 40 "$WORK/job.log"
}
