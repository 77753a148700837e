#!/usr/bin/env bash
# How many instructions a row takes, counted by callgrind in a stand-alone backend: the same on every run and however busy
# the machine is, but blind to how long memory takes. docs/benchmarks.md says what is made of it.
#
#   bench/instructions.sh [OUTDIR]          prints a table
#   bench/instructions.sh --check           fails if a case takes more than bench/instructions.base says; 3 minutes
#   bench/instructions.sh --write [REASON]  writes what this tree takes into that file
#   bench/instructions.sh --write-first     writes what the commit in its head takes, for cases that are new in it
#
# CASES="trigger seen" counts some only. The table has instructions for each row of the source: all, those of streamfilter
# itself, those of the server and its libraries. OUTDIR (build/instructions) gets it as instructions.txt; as functions.txt
# which functions of streamfilter take them, what the compiler has inlined counted where it is; and the profiles, for
# callgrind_annotate. --check allows 1 % more, of all and of streamfilter's own. --write refuses to raise a figure without
# a REASON, which stands beside the figure then. valgrind knows no registers of 64 bytes: kind clq runs its portable code.
# Debian 12 or 13, as root or with sudo; the server of the system stays as it is.

CHOSEN=${CASES:-}
# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=lib/instruction_cases.sh
source "$ROOT/bench/lib/instruction_cases.sh"
# shellcheck source-path=SCRIPTDIR source=lib/commit_build.sh
source "$ROOT/bench/lib/commit_build.sh"

# shellcheck disable=SC2034 # for prepare: everything goes into a copy of the server
PRIVATE=yes
BASE=$ROOT/bench/instructions.base
WORKERS=$(nproc)
MARK=pg_backend_pid # a function of the server; a call begins another part of the profile

# Adds up the instructions of a profile, all and those of streamfilter's object. A name follows its number only where
# it comes first. The line after `calls=` repeats the costs of the called function, and is skipped.
# shellcheck disable=SC2016
SUMS='
	function is_own(name, number) {
		number = name
		sub(/\).*/, ")", number)
		if (name ~ / /) own_objects[number] = name ~ /streamfilter\.so$/
		return own_objects[number]
	}
	/^cob=/ { is_own(substr($0, 5)) }
	/^ob=/ { counts = is_own(substr($0, 4)) }
	/^calls=/ { getline; next }
	/^[0-9*+-]/ { all += $2; if (counts) own += $2 }
	END { printf "%d %d\n", all, own }'

# Adds up the same for each function; its name follows a tab.
# shellcheck disable=SC2016
FUNCTIONS='
	function number_of(name, number) {
		number = name
		sub(/\).*/, ")", number)
		if (name ~ / /) names[kind, number] = substr(name, index(name, " ") + 1)
		return number
	}
	{ kind = $0 ~ /^c?ob=/ ? "object" : "function" }
	/^c(ob|fn)=/ { number_of(substr($0, index($0, "=") + 1)) }
	/^ob=/ { object = number_of(substr($0, 4)) }
	/^fn=/ { called = number_of(substr($0, 4)) }
	/^calls=/ { getline; next }
	/^[0-9*+-]/ { count[object, called] += $2 }
	END {
		for (key in count) {
			split(key, part, SUBSEP)
			if (names["object", part[1]] ~ /streamfilter\.so$/) printf "%d\t%s\n", count[key], names["function", part[2]]
		}
	}'

# --- Counting ----------------------------------------------------------------------------------------------------------

# Between the last two marks lies the case, between the two before them nothing: what a mark itself takes.
input_of() { # case
	settings "$1"
	statements "$1" few
	say "SELECT $MARK()"
	say "SELECT $MARK()"
	statements "$1" all
	say "SELECT $MARK()"
}

# Every case begins with the same files, and with no variables of the caller's, which lie on the stack.
count_case() { # case worker
	local profile=$WORK/tmp/$1.callgrind data=$WORK/run_$2 answer=$WORK/tmp/answer_$2
	local options
	mapfile -t options < <(options "$1")
	rm -rf "$data"
	as_server cp -a "$WORK/data" "$data"
	input_of "$1" | as_server env -i PATH="$PATH" LC_ALL=C valgrind --tool=callgrind --callgrind-out-file="$profile" \
		--dump-before="$MARK" "$(pg_bin)/postgres" --single -D "$data" "${options[@]}" postgres >"$answer" 2>&1 ||
		fail_case "$1" "$answer"
	! grep -qE 'ERROR|FATAL|PANIC' "$answer" || fail_case "$1" "$answer"
	paste -d ' ' <(awk "$SUMS" "$profile.3") <(awk "$SUMS" "$profile.2") |
		awk -v name="$1" -v rows="$(rows_of "$1")" '{ printf "%s %.1f %.1f\n", name, ($1 - $3) / rows, ($2 - $4) / rows }' \
			>"$WORK/tmp/$1.figures"
}

fail_case() { # case file
	say "case $1:"
	grep -E 'ERROR|FATAL|PANIC|HINT|DETAIL' "$2" || tail -n 20 "$2"
	exit 1
}

# Cases are dealt out to as many workers as there are processors.
count_all() {
	local worker status=0 pids=()
	for ((worker = 0; worker < WORKERS; worker++)); do
		count_every "$worker" &
		pids+=($!)
	done
	for worker in "${pids[@]}"; do wait "$worker" || status=1; done
	return $status
}

count_every() { # worker
	local i
	for ((i = $1; i < ${#CASES[@]}; i += WORKERS)); do count_case "${CASES[i]}" "$1"; done
}

job_progress() { say "$(find "$WORK/tmp" -name '*.figures' | wc -l) of ${#CASES[@]}"; }

figures() { local case && for case in "${CASES[@]}"; do cat "$WORK/tmp/$case.figures"; done; }

count_cases() { # of the server of PG_CONFIG
	stage "starting a server" create_tables
	stage "counting ${#CASES[@]} cases" count_all
}

# What figures depend on beside the sources. valgrind offers programs AVX2 if the machine has it.
platform() {
	local library compiler vectors='without AVX2'
	library=$("$PG_CONFIG" --pkglibdir)/streamfilter.so
	compiler=$(readelf -p .comment "$library" | grep -oE '(GCC|clang).*' | sort -u | tr '\n' ' ')
	! grep -qw avx2 /proc/cpuinfo || vectors='with AVX2'
	printf '%s; PostgreSQL %s; %s; %s %s\n' "${compiler% }" "$("$PG_CONFIG" --version | grep -oE '[0-9]+' | head -n 1)" \
		"$(valgrind --version)" "$(uname -m)" "$vectors"
}

# --- The table of this tree --------------------------------------------------------------------------------------------

table() {
	printf 'Instructions per row of a source of %d rows, 49 %% of them distinct, and per statement of one row\n\n' "$ROWS"
	printf '%-44s %8s %14s %10s\n' '' all streamfilter server
	local case all own
	figures | while read -r case all own; do say "$(title "$case")|$all|$own"; done |
		awk -F '|' '{ printf "%-44s %8.0f %14.0f %10.0f\n", $1, $2, $3, $2 - $3 }'
}

functions_of() { # case
	printf '\n%s\n' "$(title "$1")"
	awk "$FUNCTIONS" "$WORK/tmp/$1.callgrind.3" |
		awk -F '\t' -v rows="$(rows_of "$1")" '$1 >= 5 * rows { printf "%8.1f  %s\n", $1 / rows, $2 }' |
		sed 's/streamfilter:://g; s/pg:://g; s/(anonymous namespace):://g' | sort -k 1,1 -rn
}

save() { # outdir
	local name
	as_owner mkdir -p "$1"
	table | as_owner tee "$1/instructions.txt"
	for name in "${CASES[@]}"; do functions_of "$name"; done | as_owner tee "$1/functions.txt" >/dev/null
	for name in "${CASES[@]}"; do as_owner tee "$1/$name.callgrind" <"$WORK/tmp/$name.callgrind.3" >/dev/null; done
	printf '\nwritten: %s\n' "$1"
}

# --- The base -----------------------------------------------------------------------------------------------------------

base() { as_owner perl "$ROOT/bench/lib/instruction_base.pl" "$1" "$BASE" "${@:2}" "${ALL_CASES[@]}"; }

use_tree() {
	stage "building streamfilter" build_tree
	stage "installing it in a copy of the server" install_tree server
	PG_CONFIG=$(config_of server)
}

use_first() {
	local hash
	hash=$(resolve_commit "$(sed -n 's/^# first: //p' "$BASE")")
	stage "building ${hash:0:8}" build_commit "$hash"
	stage "installing it in a copy of the server" install_commit server "$hash"
	PG_CONFIG=$(config_of server)
}

check() {
	local here there
	use_tree
	here=$(platform) there=$(sed -n 's/^# platform: //p' "$BASE")
	if [ "$here" = "$there" ]; then
		count_cases
		figures | base check
	else
		printf '%s\n' "skip: not tested: $BASE is of" "  $there" "and this is" "  $here"
	fi
}

write() { # [reason]
	use_tree
	count_cases
	figures | base write "$(platform)" "${1:-}"
	say "written: $BASE"
}

missing_at_first() {
	local name
	for name in $(base missing); do [[ " $REFUSED_AT_FIRST " == *" $name "* ]] || printf '%s ' "$name"; done
}

write_first() {
	[ -n "$CHOSEN" ] || read -ra CASES <<<"$(missing_at_first)"
	[ ${#CASES[@]} -gt 0 ] || die "no case is new" "CASES=… names those that are to be counted again."
	use_first
	count_cases
	figures | base write-first
	say "written: $BASE"
}

main() {
	local name
	case ${1:-} in
	--check | --write | --write-first) ;;
	-*) sed -n '2,16s/^# \{0,1\}//p' "$0" && exit 0 ;;
	esac
	ALL_CASES=("${CASES[@]}")
	read -ra CASES <<<"${CHOSEN:-${CASES[*]}}"
	for name in "${CASES[@]}"; do [[ " ${ALL_CASES[*]} " == *" $name "* ]] || die "unknown case: $name" "Known: ${ALL_CASES[*]}"; done
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	prepare valgrind binutils git
	case ${1:-} in
	--check) check ;;
	--write) write "${@:2}" ;;
	--write-first) write_first ;;
	*)
		use_tree
		count_cases
		save "$(realpath -m "${1:-$ROOT/build/instructions}")"
		;;
	esac
}

main "$@"
