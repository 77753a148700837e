#!/usr/bin/env bash
# Shows streamfilter at work on real events. See --help.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=demo/events.sh
source "$ROOT/test/demo/events.sh"
# shellcheck source-path=SCRIPTDIR source=demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=demo/measure.sh
source "$ROOT/test/demo/measure.sh"
# shellcheck source-path=SCRIPTDIR source=demo/report.sh
source "$ROOT/test/demo/report.sh"

KIND=auto MEMORY='' FPR=0.01 DELIMITER='' BATCH=500 SESSIONS=2 FILE='' SHOWN='' INSTALLED='' KEY_ARGUMENTS=() OPTION_ARGUMENTS=()

usage() {
	cat <<-'END'
		Usage: test/demo.sh [OPTION...] [FILE]

		Streams events through a trigger that discards repeats, as producers send them: from several sessions, a few hundred
		events a transaction. Compares what it did with the exact truth, other kinds of filters in as much memory, a UNIQUE
		index and a plain INSERT; build/demo/errors.png shows both errors along the stream. Installs packages that are
		missing, builds streamfilter, and uses a copy of the PostgreSQL server below /tmp, which is gone afterwards: the
		system's server stays as it is. Debian 12 or 13, as root or with sudo.

		FILE: a CSV, plain or .gz, with a header: one event per line, oldest first. Every column is read as text, an
		empty field as an empty text. Without FILE: the dependency links in apt's package lists, in file order, as a
		crawler meets them ("have we queued this package already?").

		  --key COLUMN[,COLUMN...]  two events with the same values here are the same event. Default: the column named
		                            key, else all columns. A column without a usable name is column_1, column_2, ...
		  --delimiter CHARACTER     between fields, default: the one of , ; tab | that the header has most of
		  --batch EVENTS            in a transaction, default: 500
		  --sessions N              that send events at the same time, default: 2
		  --kind KIND               of the filter, default: auto
		  --memory SIZE             of the filter, like 64kB or 1MB. Default: the power of two that is nearest to
		                            10 bits per distinct key of this stream
		  --fpr RATE                the false-positive rate it must keep, default: 0.01
		  --option NAME=VALUE       another option of the filter, as in CREATE FOREIGN TABLE; may be repeated
		  --installed               streamfilter is a package that is installed: nothing is built
		  --help                    this text
	END
}

parse_arguments() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) usage && exit 0 ;;
		--*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" && continue ;;
		--key | --delimiter | --batch | --sessions | --kind | --memory | --fpr | --option)
			[ -n "${2:-}" ] || die "$1 needs a value" "See --help."
			take_option "$1" "$2"
			shift 2
			;;
		--installed) INSTALLED=yes && shift ;;
		--) shift && break ;;
		-*) die "unknown option: $1" "See --help." ;;
		*) take_file "$1" && shift ;;
		esac
	done
	[ $# -eq 0 ] || take_file "$@"
}

take_file() {
	if [ -z "$1" ] || [ -n "$FILE" ] || [ $# -gt 1 ]; then
		die "one FILE at most, and not an empty name" "See --help."
	fi
	FILE=$1 SHOWN=$1
	[[ $FILE == /* ]] || FILE=./$FILE
}

take_option() {
	case $1 in
	--key) KEY_ARGUMENTS+=("$2") ;;
	--delimiter) DELIMITER=$2 ;;
	--batch) BATCH=$2 ;;
	--sessions) SESSIONS=$2 ;;
	--kind) KIND=$2 ;;
	--memory) MEMORY=$2 ;;
	--fpr) FPR=$2 ;;
	--option) OPTION_ARGUMENTS+=("$2") ;;
	esac
}

known_kinds() { sed -n 's/^ *&\(.*\)_ops,$/\1/p' "$ROOT/src/core/kind/kind_list.hpp" | paste -sd ' '; }

check_arguments() { # the filter checks the rest; this is what would only show after minutes
	local argument
	[[ $DELIMITER == '' || $DELIMITER == [!\"$'\n\r'] ]] || die "--delimiter takes one character, not a quote"
	[[ $BATCH =~ ^[1-9][0-9]{0,8}$ ]] || die "--batch $BATCH is not a number of events"
	[[ $SESSIONS =~ ^[1-9][0-9]?$ ]] || die "--sessions $SESSIONS is not a number from 1 to 99"
	[[ " auto $(known_kinds) " == *" $KIND "* ]] || die "there is no kind $KIND" "Known: auto $(known_kinds)"
	[[ $MEMORY =~ ^([0-9]+\ *(B|kB|MB|GB)?)?$ ]] || die "--memory $MEMORY is not a size" "Write it like 65536, 64kB or 1MB."
	awk -v fpr="$FPR" 'BEGIN { exit !(fpr ~ /^[0-9]*[.]?[0-9]+([eE]-?[0-9]+)?$/ && fpr > 0 && fpr < 1) }' ||
		die "--fpr $FPR is not a rate" "Write a number between 0 and 1, like 0.01."
	for argument in "${OPTION_ARGUMENTS[@]}"; do
		[[ $argument =~ ^[a-z_][a-z0-9_]*=. ]] || die "--option $argument is not of the form name=value"
	done
}

# About 10 bits per distinct key, as a power of two: small beside an index, and nothing tuned to this stream.
choose_memory() {
	local bytes=1024 wanted=$((DISTINCT * 10))
	if [ -n "$MEMORY" ]; then
		MEMORY_WHY="as --memory says"
		return
	fi
	# A Bloom filter needs 9.6 bits per key for an fpr of 0.01, so it is not rounded down.
	if [ "$KIND" = bloom ]; then
		while [ $((bytes * 8)) -lt "$wanted" ]; do bytes=$((bytes * 2)); done
	else
		while [ $((bytes * 12)) -lt "$wanted" ]; do bytes=$((bytes * 2)); done
	fi
	MEMORY=$((bytes / 1024))kB
	MEMORY_WHY="--memory changes it"
	say "filter memory: $MEMORY, the power of two nearest to 10 bits for each of $(commas "$DISTINCT") distinct keys"
}

# A Bloom filter keeps its fpr only up to a number of keys, and must be told.
compared_options() { # kind
	printf '%s' "kind '$1', memory '$MEMORY', fpr '$FPR'"
	[ "$1" != bloom ] || printf '%s' ", keys '$DISTINCT'"
}

choose_filter() {
	local argument value
	FILTER_OPTIONS="kind '$KIND', memory '$MEMORY', fpr '$FPR'"
	if [ "$KIND" = bloom ] && [[ "${OPTION_ARGUMENTS[*]}" != *keys=* ]]; then OPTION_ARGUMENTS+=("keys=$DISTINCT"); fi
	for argument in "${OPTION_ARGUMENTS[@]}"; do
		value=${argument#*=}
		FILTER_OPTIONS+=", ${argument%%=*} '${value//\'/\'\'}'"
	done
}

load() {
	PROGRESS_SQL="SELECT to_char(tuples_processed, 'FM999,999,999,999') || ' events' FROM pg_stat_progress_copy"
	job "loading the events" load_events
	printf '\n'
	if [ "$JOB_STATUS" -ne 0 ]; then
		grep -E 'ERROR|CONTEXT|DETAIL' "$WORK/job.log" >&2 || cat "$WORK/job.log" >&2
		die "$SHOWN does not read as a CSV with this header" "Every line must have the fields that the header names" \
			"(${#COLUMNS[@]} here, with '$DELIMITER' between them: see --delimiter); the message above names the line."
	fi
	PROGRESS_SQL="SELECT pg_size_pretty(sum(size)) || ' sorted' FROM pg_ls_tmpdir() HAVING sum(size) > 0"
	stage "finding the exact truth" find_truth
	read -r EVENTS DISTINCT < <(sql -F ' ' -c 'SELECT count(*), count(*) FILTER (WHERE event_no = first_no) FROM truth')
	[ "$EVENTS" -gt 0 ] || die "$SHOWN has a header and no event" "There must be an event per line below the header."
}

main() {
	parse_arguments "$@"
	check_arguments
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	[ -z "$FILE" ] || open_file
	PRIVATE=yes
	[ -z "$INSTALLED" ] || find_installed
	prepare gnuplot-nox
	[ -n "$FILE" ] || open_links
	say "key: $KEY_NAME"
	[ -n "$INSTALLED" ] || build_and_copy
	stage "starting a server" create_server
	load
	choose_memory
	choose_filter
	stage "reserving memory for the filter" reserve_memory
	say "inserting the same events in four ways, and by other kinds of filters"
	measure
	report
}

main "$@"
