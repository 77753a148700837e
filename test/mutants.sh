#!/usr/bin/env bash
# Would a test notice? Small faults are put into src, one at a time: a negated condition, `<` for `<=`, a constant off by one, a call
# left out, an early return, two arguments swapped. The quick tests run until one of them fails.
#
#   test/mutants.sh [N] [SEED [ROOM…]]          N faults (20), each room in its turn; the same SEED makes the same faults in a tree
#   test/mutants.sh --survivors FILE [SUITE…]   those of FILE that no quick test noticed, by these suites of test/all.sh, or all
#
# All this happens in a copy below /tmp, with a copy of the server: the tree stays as it is. A fault counts if it changes the code that
# the compiler makes. A step that takes four times as long as without a fault, or is silent for so long, has noticed, too.
#
# Every fault has a line in build/mutants-SEED.txt, by tabs: verdict, what noticed, seconds, FILE:LINE, rule, the line before and after.
# Where no test could notice, edit "survived" there to "equivalent". The end of what failed is in build/mutants-SEED.log.
# MUTANTS_FROM=N goes on with the Nth fault.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
exec 3>&1

MOST_OBJECTS=12 # a header that more of them include takes too long
MOST_MB=8192    # below our directory: more than that is a log without an end
SURVIVORS_LIMIT=7200

# Seconds, by step, and of the running one: in all, without output, from TERM to KILL.
declare -A LIMITS=() SILENCES=()
LIMIT=7200 SILENCE=7200 GRACE=5
HEARD=0 HEARD_SIZE=0 LONGEST_SILENCE=0 # when its output has grown last
FAILURE='' STOPPED=0 # what the output of a step that has failed says; when it was asked to end
RESULTS='' FILE='' OBJECTS=() IS_FAULT=''
ROOMS=() STEPS=() # that are asked for, and what they need

# --- A step: it is stopped at its first failure ----------------------------------------------------------------------

# Replaces that of lib.sh: called about every second.
job_tick() { # title, seconds so far
	[ ! -t 3 ] || printf '\r%-76s %5d s\033[K' "$1" "$2" >&3
	if [ "$STOPPED" -gt 0 ]; then
		[ $(($2 - STOPPED)) -lt "$GRACE" ] || job_end KILL
		return 0
	fi
	watch_output "$2"
	if [ "$2" -ge "$LIMIT" ] || [ $(($2 - HEARD)) -ge "$SILENCE" ]; then
		say "stopped: it hangs" >>"$WORK/job.log"
	elif [ $(($2 % 15)) -eq 0 ] && [ "$(du -sm "$WORK" 2>/dev/null | cut -f 1)" -gt "$MOST_MB" ]; then
		say "stopped: it has written more than $MOST_MB MB" >>"$WORK/job.log"
	elif [ -z "$FAILURE" ] || ! grep -qE "$FAILURE" "$WORK/job.log"; then
		return 0
	fi
	STOPPED=$2
	job_end TERM
}

watch_output() { # seconds so far
	local size
	size=$(stat -c %s "$WORK/job.log")
	if [ "$size" -ne "$HEARD_SIZE" ]; then HEARD=$1 HEARD_SIZE=$size; fi
	[ $(($1 - HEARD)) -le "$LONGEST_SILENCE" ] || LONGEST_SILENCE=$(($1 - HEARD))
}

# Processes that a step has left to the process above us, such as servers whose directory is gone.
end_leftovers() {
	local pid
	for _ in 1 2 3; do
		for pid in $(pgrep -P "$STREAMFILTER_REAPER" || true); do
			[ "$pid" = "$$" ] || kill -KILL "$pid" 2>/dev/null || true
		done
		sleep 0.1
	done
}

# quiet_job TITLE COMMAND…: sets JOB_STATUS, as job does
quiet_job() {
	STOPPED=0 HEARD=0 HEARD_SIZE=0 LONGEST_SILENCE=0
	job "$@" >/dev/null
	[ ! -t 3 ] || printf '\r\033[K' >&3
}

# --- The tree and the server, both copies -----------------------------------------------------------------------------

in_tree() { make -C "$WORK/tree" --no-print-directory PG_CONFIG="$PG_CONFIG" FLAVOUR=quick "$@"; }

copy_tree() { # with what is built already
	local built=()
	for name in quick library tests; do
		[ ! -d "$ROOT/build/$name" ] || built+=("./build/$name")
	done
	mkdir "$WORK/tree"
	tar -C "$ROOT" --exclude=./.git --exclude=./build --exclude='tmp_check*' --exclude=./output_iso --exclude=./results \
		--exclude=./log --exclude='regression.*' --exclude='*.zip' -cf - . | tar -C "$WORK/tree" -xf -
	[ ${#built[@]} -eq 0 ] || tar -C "$ROOT" -cf - "${built[@]}" | tar -C "$WORK/tree" -xf -
}

link_programs() {
	local targets=(flavour library)
	[[ " ${STEPS[*]} " != *" unit "* ]] || targets+=(build/tests/unit_tests)
	[[ " ${STEPS[*]} " != *" library "* ]] || targets+=(build/library/test_static build/library/test_shared)
	in_tree -j2 "${targets[@]}" || return
	install_built "$WORK/tree" quick "$WORK/server" "$PG_CONFIG"
}

forget_programs() { # they are linked from what was compiled last
	rm -f "$WORK"/tree/build/quick/streamfilter.so "$WORK"/tree/build/tests/unit_tests \
		"$WORK"/tree/build/library/{libstreamfilter,test_}*
}

make_server() {
	copy_binaries "$WORK/server" "$PG_CONFIG"
	rm -f "$WORK/server$("$PG_CONFIG" --sharedir)"/extension/streamfilter*
}

# --- The steps of the first pass ---------------------------------------------------------------------------------------

steps_of() { # file: those of its layer, the quickest first
	case $1 in
	src/core/*) say unit library regress isolation tap ;;
	src/capi/*) say library ;;
	*) say regress isolation tap ;;
	esac
}

find_steps() { # of all ROOMS, into STEPS
	local room step
	for room in ${ROOMS[@]+"${ROOMS[@]}"}; do
		[ -d "$ROOT/src/$room" ] || die "no such room: $room" "They are listed in src/ROOMS."
	done
	[ ${#ROOMS[@]} -gt 0 ] || mapfile -t ROOMS < <(sed -nE 's/^([a-z][^ ]*).*/\1/p' "$ROOT/src/ROOMS")
	for step in unit library regress isolation tap; do
		for room in "${ROOMS[@]}"; do
			if [[ " $(steps_of "src/$room/") " == *" $step "* ]]; then STEPS+=("$step") && break; fi
		done
	done
}

# Tests whose names share words with the path of the file come first, then the quickest. None depends on those before it.
likeliest_first() { # file; names on stdin
	awk -v file="$1" -v times="$WORK/times" '
		BEGIN { count = split(file, words, /[^a-z]+/)
			while ((getline line < times) > 0) { split(line, test, " "); ms[test[1]] = test[2] } }
		{ score = 0
			for (i = 3; i <= count; i++) if (length(words[i]) > 3 && index($0, substr(words[i], 1, 6))) score++
			print 9 - score, ms[$1] + 0, $1 }' | sort -s -n -k 1,1 -k 2,2 | awk '{ print $3 }' | tr '\n' ' '
}

names_of() { # step: its tests, a line each
	case $1 in
	regress) (cd "$ROOT/test/sql" && printf '%s\n' *.sql | sed 's/\.sql$//') ;;
	isolation) (cd "$ROOT/test/isolation/specs" && printf '%s\n' *.spec | sed 's/\.spec$//') ;;
	tap) tap_files quick | tr ' ' '\n' | sed '/^$/d' ;;
	esac
}

note_times() { # of the last step, in milliseconds
	sed -nE -e 's/^(test|    ) +([^ ]+) +\.\.\. +ok +([0-9]+) ms.*/\2 \3/p' -e 's/^ok +[0-9]+ +[-+] +([^ ]+) +([0-9]+) ms.*/\1 \2/p' \
		-e 's/^\[[0-9:]+\] (t[^ ]*\.pl) \.+ *ok +([0-9]+) ms.*/test\/\1 \2/p' "$WORK/job.log" | sed 's,test/test/,test/,' >>"$WORK/times"
}

on_server() { # make-argument…
	local config
	config=$WORK/server$("$PG_CONFIG" --bindir)/pg_config
	as_server env LD_LIBRARY_PATH="$("$config" --libdir)" PG_CONFIG="$config" \
		make -C "$WORK/tree" --no-print-directory PG_CONFIG="$config" CHECKED= "$@"
}

unit_tests() { as_server bash -c "cd '$WORK/tree' && exec build/tests/unit_tests --color_output=no --report_level=short --run_test='!@long'"; }

FAILED_SQL='^(test|    ) +[^ ]+ +\.\.\. +(FAILED|failed)|^not ok +[0-9]'

run_step() { # step, file: sets JOB_STATUS
	local title="$1: $2" tests
	tests=$(names_of "$1" | likeliest_first "$2")
	LIMIT=${LIMITS[$1]:-7200} SILENCE=${SILENCES[$1]:-7200}
	case $1 in
	unit)
		FAILURE='error: in "'
		quiet_job "$title" unit_tests
		;;
	library)
		FAILURE=''
		quiet_job "$title" in_tree check-library
		;;
	regress)
		FAILURE=$FAILED_SQL
		quiet_job "$title" on_server check-regress REGRESS="$tests"
		;;
	isolation)
		FAILURE=$FAILED_SQL
		quiet_job "$title" on_server check-isolation ISOLATION="$tests"
		;;
	tap)
		FAILURE='^#   Failed test|Dubious, test returned|Failed [0-9]+/[0-9]+ subtests|^Bail out'
		quiet_job "$title" on_server check-tap PROVE_FLAGS="-j2 --timer" PROVE_TESTS="$tests"
		;;
	esac
}

clean_up() { # after a step
	stop_servers
	end_leftovers
	rm -rf "$WORK"/tree/{tmp_check,tmp_check_iso,output_iso,results,log,regression.diffs,regression.out} "$WORK"/tmp/*
}

first_failure() { # of the last step, in a few words
	local found
	local words=(
		-e 's/.*error: in "([^"]+)".*/\1/p'
		-e 's/^(test|    ) +([^ ]+) +\.\.\. +(FAILED|failed).*/\2/p' -e 's/^not ok +[0-9]+ +[-+] ([^ ]+).*/\1/p'
		-e 's/^(test|    ) +([^ ]+) +\.\.\. +stopped: it hangs/\2 hangs/p' -e 's/.*(stopped: .*)/\1/p'
		-e 's/^#   at (.*\.p[lm]) line ([0-9]+)\.?/\1:\2/p' -e 's/^(\[[0-9:]+\] )?(t[^ ]*\.pl) \.+ *(Dubious|Failed).*/\2/p'
		-e 's/.*server closed the connection.*/the server crashed/p'
	)
	found=$(sed -nE "${words[@]}" "$WORK/job.log" | sed -n 1p)
	say "${found:-$(tail -n 1 "$WORK/job.log" | cut -c 1-60)}"
}

must_pass() { # step
	run_step "$1" ''
	if [ "$JOB_STATUS" -ne 0 ]; then
		tail -n 40 "$WORK/job.log" >&2
		find "$WORK/tree" -name regression.diffs -exec head -n 100 {} + >&2
		die "without any fault, $1 fails: $(first_failure)"
	fi
	note_times
	clean_up
}

# Without a fault everything must pass, and its time gives the limits.
run_unmutated() {
	local step
	printf '%-12s %9s %9s %9s\n' 'no fault' seconds limit silence
	for step in "${STEPS[@]}"; do
		must_pass "$step"
		LIMITS[$step]=$((${JOB_SECONDS%.*} * 4 + 60)) SILENCES[$step]=$((LONGEST_SILENCE * 4 + 30))
		printf '%-12s %9s %9d %9d\n' "$step" "$JOB_SECONDS" "${LIMITS[$step]}" "${SILENCES[$step]}"
	done
}

# --- One fault -----------------------------------------------------------------------------------------------------------

find_objects() { # of FILE, into OBJECTS: paths within the tree
	mapfile -t OBJECTS < <(cd "$WORK/tree" && { grep -rlE --include='*.d' "(^| )$FILE( |\$)" build || true; } | sed 's/\.d$/.o/' | sort)
}

put_in() { # line, old, new; what it changes is kept
	local object
	rm -rf "$WORK/kept"
	for object in "${OBJECTS[@]}" "$FILE"; do
		mkdir -p "$WORK/kept/$(dirname "$object")"
		cp -p "$WORK/tree/$object" "$WORK/kept/$object"
	done
	(cd "$WORK/tree" && perl test/mutants.pl apply "$FILE" "$@")
}

put_back() { # file by file: folders of the copy belong to the server's user
	local kept
	for kept in "${OBJECTS[@]}" "$FILE"; do
		cp -p "$WORK/kept/$kept" "$WORK/tree/$kept"
	done
}

take_out() {
	put_back
	forget_programs
}

is_other_code() { # compared without what debuggers read
	local object
	for object in "${OBJECTS[@]}"; do
		strip -g -o "$WORK/before.o" "$WORK/kept/$object"
		strip -g -o "$WORK/after.o" "$WORK/tree/$object"
		cmp -s "$WORK/before.o" "$WORK/after.o" || return 0
	done
	return 1
}

# Compiles what the fault changes; sets IS_FAULT if that makes another program.
build_with_fault() {
	FAILURE='' LIMIT=7200 SILENCE=7200 IS_FAULT=''
	quiet_job "compiling $FILE" in_tree -j2 "${OBJECTS[@]}"
	if [ "$JOB_STATUS" -ne 0 ] || ! is_other_code; then return 0; fi
	quiet_job "linking" link_programs
	if [ "$JOB_STATUS" -eq 0 ]; then IS_FAULT=yes; fi
}

VERDICT='' NOTICED=''
judge() { # sets VERDICT to the step that noticed, or to "survived"
	local step
	VERDICT=survived NOTICED=-
	for step in $(steps_of "$FILE"); do
		run_step "$step" "$FILE"
		if [ "$JOB_STATUS" -ne 0 ]; then
			VERDICT=$step NOTICED=$(first_failure)
			(say "== $FILE" && tail -n 40 "$WORK/job.log") >>"${RESULTS%.txt}.log"
		fi
		clean_up
		[ "$VERDICT" = survived ] || return 0
	done
}

# The changed parts of two lines, with a little of what stands around them.
change() { # old, new
	perl -e '
		my ($old, $new) = @ARGV;
		s/^\s+// for $old, $new;
		my $same = 0;
		$same++ while $same < length $old && substr($old, 0, $same + 1) eq substr($new, 0, $same + 1);
		my $from = $same > 24 ? $same - 24 : 0;
		printf "%.40s => %.40s", substr($old, $from), substr($new, $from);' "$1" "$2"
}

report() { # number, seconds, line, rule, old, new
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$VERDICT" "$NOTICED" "$2" "$FILE:$3" "$4" "$5" "$6" >>"$RESULTS"
	printf '%3d %-44s %-20s %-9s %-34.34s %5d s\n' "$1" "${FILE#src/}:$3" "$4" "$VERDICT" "$NOTICED" "$2"
	[ "$VERDICT" != survived ] || printf '      %s\n' "$(change "$5" "$6")"
}

try_fault() { # number, line, rule, old, new: sets IS_FAULT
	local start=$SECONDS
	IS_FAULT=''
	find_objects
	if [ ${#OBJECTS[@]} -eq 0 ] || [ ${#OBJECTS[@]} -gt "$MOST_OBJECTS" ]; then return 0; fi
	put_in "$2" "$4" "$5"
	build_with_fault
	if [ -n "$IS_FAULT" ]; then
		judge
		report "$1" $((SECONDS - start)) "$2" "$3" "$4" "$5"
	fi
	take_out
}

first_pass() { # number of faults, seed
	local turn line rule old new step done_turn=$((${MUTANTS_FROM:-1} - 1))
	say "$1 faults, seed $2, $(git -C "$ROOT" describe --always --dirty 2>/dev/null || true)"
	printf '%3s %-44s %-20s %-9s %-34s %7s\n' '' place fault 'noticed' by seconds
	while IFS=$'\t' read -r turn FILE line rule old new <&4; do
		[ "$turn" -gt "$done_turn" ] || continue
		try_fault "$turn" "$line" "$rule" "$old" "$new"
		if [ -n "$IS_FAULT" ]; then done_turn=$turn; fi
	done 4< <(cd "$WORK/tree" && perl test/mutants.pl list "$1" "$2" "${ROOMS[@]}")
	link_programs >"$WORK/job.log" 2>&1
	for step in "${STEPS[@]}"; do # nothing but the faults has failed
		[ "$step" = tap ] || must_pass "$step"
	done
}

# --- The second pass -------------------------------------------------------------------------------------------------------

# A server that can be built for: headers and libraries are those of the system.
make_complete() {
	local path
	rm -rf "$WORK/server$("$PG_CONFIG" --includedir)" # it has the header of install_built only
	for path in "$("$PG_CONFIG" --includedir)" "$("$PG_CONFIG" --includedir-server)"; do
		mkdir -p "$(dirname "$WORK/server$path")"
		[ -e "$WORK/server$path" ] || ln -s "$path" "$WORK/server$path"
	done
	PG_CONFIG=$WORK/server$("$PG_CONFIG" --bindir)/pg_config
}

other_suites() { "$ROOT/test/all.sh" --list | grep -vxE 'layers|format|scripts|library|quick|citus' | tr '\n' ' '; }

second_pass() { # FILE SUITE…
	local verdict place rule old new number=0 start suites=("${@:2}")
	[ ${#suites[@]} -gt 0 ] || read -ra suites <<<"$(other_suites)"
	say "survivors of $1, by ${suites[*]}"
	while IFS=$'\t' read -r verdict _ _ place rule old new <&4; do
		[ "$verdict" = survived ] || continue
		start=$SECONDS FILE=${place%:*} VERDICT=survived NOTICED=-
		OBJECTS=()
		put_in "${place##*:}" "$old" "$new"
		give_work
		FAILURE=', [1-9][0-9]* failed' LIMIT=$SURVIVORS_LIMIT GRACE=90
		quiet_job "$place" env PG_CONFIG="$PG_CONFIG" INSTALL=yes bash "$WORK/tree/test/all.sh" "${suites[@]}"
		if [ "$JOB_STATUS" -ne 0 ]; then VERDICT=noticed NOTICED=$(first_failure); fi
		put_back
		touch "$WORK/tree/$FILE" # newer than what was built with the fault
		report $((++number)) $((SECONDS - start)) "${place##*:}" "$rule" "$old" "$new"
	done 4<"$1"
}

# --- The end -----------------------------------------------------------------------------------------------------------------

table() { # of verdicts by room
	awk -F '\t' '{ room = $4; sub(/^src\//, "", room); sub(/\/[^\/]*$/, "", room); rooms[room] = 1
			for (i = 1; i <= 2; i++) { made[room]++; count[room, $1]++; room = "all" } }
		function row(room,  alive) {
			alive = count[room, "survived"] + 0
			printf "%-18s %6d %8d %8d %11d %7.0f %%\n", room, made[room], made[room] - alive - count[room, "equivalent"],
				alive, count[room, "equivalent"], 100 * (1 - alive / (made[room] - count[room, "equivalent"] + 1e-9)) }
		END { printf "%-18s %6s %8s %8s %11s %9s\n", "room", "faults", "noticed", "survived", "equivalent", "share"
			while ((getline line < "src/ROOMS") > 0) { split(line, words, " "); if (words[1] in rooms) row(words[1]) }
			if ("all" in made) row("all") }' "$RESULTS"
}

finish() {
	local status=$?
	trap - EXIT
	trap '' INT TERM
	[ ! -t 3 ] || printf '\r\033[K'
	remove_work || true
	if [ -s "$RESULTS" ]; then
		printf '\n'
		(cd "$ROOT" && table)
		printf '\nwhat became of each fault: %s\n' "${RESULTS#"$ROOT/"}"
	fi
	exit "$status"
}

prepare_copies() {
	make_work
	prepare libboost-test-dev libipc-run-perl libffi-platypus-perl perl procps
	stage "a copy of the tree" copy_tree
	stage "building" build_first
	give_work
}

build_first() {
	in_tree -j2 scripts
	make_server
	link_programs
}

main() {
	local seed=${2:-$((RANDOM * 32768 + RANDOM))}
	trap finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkdir -p "$ROOT/build"
	if [ "${1:-}" = --survivors ]; then
		[ -r "${2:-}" ] || die "no such file: ${2:-}"
		RESULTS=$(realpath "$2").second
		: >"$RESULTS"
		prepare_copies
		make_complete
		second_pass "${@:2}"
	else
		[[ ${1:-20} =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ ]] ||
			die "usage: test/mutants.sh [N] [SEED [ROOM…]] | --survivors FILE [SUITE…]"
		RESULTS=$ROOT/build/mutants-$seed.txt
		[ -n "${MUTANTS_FROM:-}" ] || : >"$RESULTS"
		ROOMS=("${@:3}")
		find_steps
		prepare_copies
		run_unmutated
		first_pass "${1:-20}" "$seed"
	fi
}

main "$@"
