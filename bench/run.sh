#!/usr/bin/env bash
# Measures how fast streamfilter is. See --help, and docs/benchmarks.md for how to read the result.

# shellcheck disable=SC2034 # variables are shared by the benchmark's files
# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"

SECTIONS=(bulk transactions sessions aggregates core idle distributed peers)
for name in record server report plots "${SECTIONS[@]}"; do
	# shellcheck source=/dev/null
	source "$ROOT/bench/server/$name.sh"
done

# The fastest kind; its usual memory, and its memory where it is to be large.
FILTER="kind 'clq', fpr '0.01'"
MEMORY=64MB BIG_MEMORY=1GB
PLOTTED_KINDS=(clq vqf sbf-blocked bloom-blocked bloom sbf rlbsbf sqf lru)

# Scales; --quick and --full have others. No ROWS: 1 and 5 million, if bulk loads are not all that is measured.
ROWS=() AGGREGATE_ROWS=10000000 MANY_KEYS=10000000 REDIS_ROWS=1000000 DISTRIBUTED_ROWS=500000
ALL_ROWS=(1000000 5000000 20000000)
ROUNDS=3 TRANSACTION_ROUNDS=5 IDLE_ROUNDS=5 PGBENCH_SECONDS=2
CORE_SIZES=(1MB 64MB 1GB) CORE_SECONDS=0.1
SHARED_MEMORY=1500MB
HUGE_PAGES=on
OUTPUT='' CHOSEN=()

usage() {
	cat <<-'END'
		Usage: bench/run.sh [OPTION...] [OUTDIR]

		Measures streamfilter beside what it is compared with, in interleaved rounds, and prints medians, ratios and the
		goals that were reached. OUTDIR, by default build/bench/run, gets run.txt, run.json, bulk-tables.txt and plots. Installs
		what is missing, builds and installs streamfilter, and uses a PostgreSQL server of its own below /tmp, which is gone
		afterwards. Debian 12 or 13, as root or with sudo. Exits with 0 when everything ran, goals reached or not.

		  --quick                   small scales: shows that everything runs, figures mean little
		  --full                    bulk loads of 1, 5 and 20 million rows; so has --only bulk
		  --rows N[,N...]           bulk loads of so many rows
		  --only SECTION[,...]      bulk, transactions, sessions, aggregates, core, idle, distributed, peers
		  --small-pages             no huge pages for the server; otherwise it gets some if root can reserve them
		  --help                    this text
	END
}

parse_arguments() {
	local name
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) usage && exit 0 ;;
		--quick) be_quick ;;
		--small-pages) HUGE_PAGES=off ;;
		--full) ROWS=("${ALL_ROWS[@]}") ;;
		--rows | --only)
			[ -n "${2:-}" ] || die "$1 needs a value" "See --help."
			if [ "$1" = --rows ]; then IFS=, read -ra ROWS <<<"$2"; else IFS=, read -ra CHOSEN <<<"$2"; fi
			shift
			;;
		--*=*) set -- "" "${1%%=*}" "${1#*=}" "${@:2}" ;;
		-*) die "unknown option: $1" "See --help." ;;
		*)
			[ -z "$OUTPUT" ] || die "one OUTDIR at most" "See --help."
			OUTPUT=$1
			;;
		esac
		shift
	done
	for name in "${ROWS[@]}"; do [[ $name =~ ^[1-9][0-9]{3,8}$ ]] || die "--rows $name is not a number of rows"; done
	[ ${#CHOSEN[@]} -gt 0 ] || CHOSEN=("${SECTIONS[@]}")
	if [ ${#ROWS[@]} -eq 0 ]; then
		if [ "${CHOSEN[*]}" = bulk ]; then ROWS=("${ALL_ROWS[@]}"); else ROWS=("${ALL_ROWS[@]:0:2}"); fi
	fi
	for name in "${CHOSEN[@]}"; do
		[[ " ${SECTIONS[*]} " == *" $name "* ]] || die "unknown section: $name" "Known: ${SECTIONS[*]}"
	done
}

be_quick() {
	ROWS=(100000) AGGREGATE_ROWS=100000 MANY_KEYS=100000 REDIS_ROWS=100000 DISTRIBUTED_ROWS=50000
	ROUNDS=1 TRANSACTION_ROUNDS=1 IDLE_ROUNDS=1 PGBENCH_SECONDS=1
	CORE_SIZES=(1MB) CORE_SECONDS=0.01
	BIG_MEMORY=128MB SHARED_MEMORY=250MB
}

commas() { sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta' <<<"$1"; }

build_all() {
	make_here -j2
	[[ " ${CHOSEN[*]} " != *" core "* ]] || make_here build/bench/core_speed
}

save_results() { # arguments of this run
	local name
	as_owner mkdir -p "$OUTPUT"
	report >"$WORK/tmp/run.txt"
	[[ " ${CHOSEN[*]} " != *" bulk "* ]] || markdown bulk >"$WORK/tmp/bulk-tables.txt"
	write_json "$@"
	plots
	find "$WORK/tmp" -name 'run.*' -o -name '*.png' -o -name '*.svg' -o -name '*-tables.txt' | while read -r name; do
		as_owner tee "$OUTPUT/${name##*/}" <"$name" >/dev/null
	done
	cat "$WORK/tmp/run.txt"
	printf '\nwritten: %s\n' "$OUTPUT"
}

finish() {
	redis_end
	remove_work
	release_huge_pages
}

main() {
	local section
	parse_arguments "$@"
	LOAD=$(cut -d ' ' -f 1-3 /proc/loadavg)
	OUTPUT=$(realpath -m "${OUTPUT:-$ROOT/build/bench/run}")
	trap finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	RESULTS=$WORK/results
	mkdir "$RESULTS"
	touch "$RESULTS"/{samples,notes,titles,goals}
	prepare libbenchmark-dev gnuplot-nox jq
	stage "building streamfilter" build_all
	stage "installing it" install_extension
	reserve_huge_pages
	stage "starting a server" create_benchmark_server
	for section in "${CHOSEN[@]}"; do
		say "$section"
		"section_$section"
	done
	machine >"$RESULTS/machine"
	write_medians
	save_results "$@"
	[ "$FAILURES" -eq 0 ] || die "$FAILURES measurements failed: see above"
}

main "$@"
