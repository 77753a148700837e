#!/usr/bin/env bash
# Whether this tree is as fast as a commit. Both are built as they are installed, each into a copy of the server, and the two
# servers take turns in every case of every round, so that whatever else the machine does meets both. Prints for each case
# what a row takes with either, and the ratio, this tree to the commit: the median of the rounds, with quartiles and extremes.
#
#   test/speed.sh [--rounds N] [--cases "NAME…"] [--rows N] [COMMIT]     HEAD~1, 7 rounds, all cases, 200000 rows
#   test/speed.sh --list                                                 the cases
#
# "slower" or "faster" stands where three quarters of the rounds agree, by 2 % at least. Takes ten minutes beside the builds; what it
# has built of the commit is kept in build/commits. A file system in memory for TMPDIR and idle cores make the spread
# small. A second table has the ratios of cases to each other, as medians and quartiles of the rounds: what judging takes.
# plain:NAME is the same into a table without a filter; idle:NAME with a trigger that does nothing; unique:NAME with a unique
# index and ON CONFLICT DO NOTHING; first:NAME with the TRUNCATE of the filter before, so that its pages are fresh.
# Debian 12 or 13, as root or with sudo.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=../bench/lib/commit_build.sh
source "$ROOT/bench/lib/commit_build.sh"

# shellcheck disable=SC2034 # for prepare: everything goes into copies of the server
PRIVATE=yes
CASES=(scan distinct plain seen trigger trigger_block first:trigger copy plain:copy copy_block copy_client plain:copy_client
	copy_binary plain:copy_binary values_1 idle:values_1 values_10 plain:values_10 idle:values_10 unique:values_10 values_100 plain:values_100
	idle:values_100 returning plain:returning returned plain:returned block block_10 idle:block_10 loop plain:loop unique:loop
	caught plain:caught unique:caught later plain:later window first:window known)
# Besides each NAME to its OTHER:NAME: a case, and those whose sum it is compared with.
RATIOS=("seen scan distinct" "trigger plain" "trigger distinct" "trigger_block trigger" "copy_block plain:copy")
ROUNDS=7 ROWS=200000 COMMIT='' HASH=''
OPTIONS="memory '16MB', fpr '0.01', seed '1'"

title() { # case
	case $1 in
	plain:*) say "$(title "${1#*:}" | sed 's/, trigger//'), no filter" ;;
	idle:*) say "$(title "${1#*:}" | sed 's/trigger/idle trigger/')" ;;
	unique:*) say "$(title "${1#*:}" | sed 's/trigger/ON CONFLICT/')" ;;
	first:*) say "TRUNCATE, then $(title "${1#*:}")" ;;
	scan) say "scan of the source" ;;
	distinct) say "INSERT SELECT, distinct rows, no filter" ;;
	plain) say "INSERT SELECT, no filter" ;;
	seen) say "INSERT SELECT WHERE NOT seen" ;;
	trigger) say "INSERT SELECT, trigger" ;;
	trigger_block) say "the same between BEGIN and COMMIT" ;;
	copy) say "COPY, text, trigger" ;;
	copy_binary) say "COPY, binary, trigger" ;;
	copy_block) say "COPY, text, trigger, in one block" ;;
	copy_client) say "\\copy, text, trigger" ;;
	values_*) say "VALUES of ${1#values_}, trigger" ;;
	returning) say "VALUES of 10 RETURNING, trigger" ;;
	returned) say "INSERT SELECT RETURNING, trigger" ;;
	block) say "VALUES of 1 in one block, trigger" ;;
	block_10) say "VALUES of 10 in one block, trigger" ;;
	loop) say "INSERT in a loop of PL/pgSQL, trigger" ;;
	caught) say "the same with EXCEPTION, trigger" ;;
	later) say "INSERT SELECT, two triggers, trigger" ;;
	window) say "INSERT SELECT, trigger, window of time" ;;
	known) say "INSERT SELECT, trigger, known keys" ;;
	esac
}

rows_of() { # case
	case ${1#*:} in
	values_1 | block) say $((ROWS / 50)) ;;
	values_10 | returning | block_10) say $((ROWS / 20)) ;;
	values_100 | loop | caught) say $((ROWS / 5)) ;;
	*) say "$ROWS" ;;
	esac
}

table_of() { # case: its filter bears the same name after "seen_"
	case $1 in
	distinct | plain) say arrivals ;;
	plain:later) say changed_plain ;;
	plain:*) say arrivals ;;
	unique:*) say unique_rows ;;
	*later) say changed ;;
	*window) say recent ;;
	*known) say known ;;
	*) say rows ;;
	esac
}

filter_of() { # case
	case $1 in
	*later | *window | *known) say "seen_$(table_of "${1#*:}")" ;;
	*) say seen_rows ;;
	esac
}

# --- The two servers: `on this COMMAND`, `on that COMMAND` -----------------------------------------------------------------

on() { # server command…
	local WORK=$TOP/$1 PG_CONFIG
	PG_CONFIG=$(cat "$WORK/config")
	"${@:2}"
}

build_both() {
	stage "building ${HASH:0:8}" build_commit "$HASH"
	stage "building this tree" build_tree
	stage "installing ${HASH:0:8} in a copy of the server" install_commit that "$HASH"
	stage "installing this tree in another" install_tree this
	local name
	for name in this that; do
		config_of "$name" >"$WORK/$name/config"
		mkdir -p "$WORK/$name/tmp"
		! is_root || chown postgres "$WORK/$name" "$WORK/$name/tmp"
	done
	TOP=$WORK
}

start() {
	create_server
	cat >>"$WORK/data/postgresql.conf" <<-END
		fsync = off
		checkpoint_timeout = 1d
		client_min_messages = 'warning'
		jit = off
		streamfilter.shared_memory = '128MB'
	END
	stop_server
	start_server
	create_tables
}

# 49 % of the rows are distinct.
create_tables() {
	sql <<-END
		CREATE TABLE source AS SELECT hashint8extended(abs(hashint8extended(i, 1) % ($ROWS / 1.6485)::bigint), 0) AS key,
		    repeat('x', 60) AS payload FROM generate_series(1, $ROWS) i;
		CREATE TABLE distinct_rows AS SELECT DISTINCT ON (key) * FROM source;
		CREATE TABLE arrivals (LIKE source);
		$(discarding_table rows "kind 'clq', $OPTIONS")
		$(discarding_table recent "kind 'timer', $OPTIONS, window '30 days'")
		$(discarding_table known "kind 'bloom', keys '$((2 * ROWS))', fpr '0.01', seed '1'")
		$(discarding_table changed "kind 'clq', $OPTIONS")
		CREATE TABLE changed_plain (LIKE source);
		CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER later BEFORE INSERT ON changed FOR EACH ROW EXECUTE FUNCTION later();
		CREATE TRIGGER later BEFORE INSERT ON changed_plain FOR EACH ROW EXECUTE FUNCTION later();
		CREATE TABLE unique_rows (LIKE source, UNIQUE (key));
		VACUUM (FREEZE, ANALYZE);
		COPY source TO '$WORK/tmp/source.copy';
		COPY source TO '$WORK/tmp/source.binary' (FORMAT binary);
	END
	local length
	for length in 1 10 100; do
		sql >"$WORK/tmp/values_$length.sql" <<-END
			SELECT 'INSERT INTO target VALUES ' || string_agg(format('(%s, %L)', key, payload), ', ' ORDER BY n) || ';'
			  FROM (SELECT *, row_number() OVER () - 1 AS n FROM source LIMIT $(rows_of "values_$length")) AS numbered
			  GROUP BY n / $length ORDER BY n / $length
		END
	done
}

discarding_table() { # name options
	cat <<-END
		CREATE TABLE $1 (LIKE source);
		CREATE FOREIGN TABLE seen_$1 (key bigint) SERVER streamfilter OPTIONS ($2);
		CREATE TRIGGER discard BEFORE INSERT ON $1 FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_$1');
	END
}

# --- The cases ----------------------------------------------------------------------------------------------------------

insert() { # source table action
	say "INSERT INTO $2 $1$3;"
}

lists() { sed "s/target/$2/; s/;\$/$3;/" "$WORK/tmp/values_$1.sql"; } # length table action

in_block() {
	say "BEGIN;"
	"$@"
	say "COMMIT;"
}

loop() { # table action before after
	cat <<-END
		DO 'DECLARE r record; BEGIN
		  FOR r IN SELECT * FROM source LIMIT $(rows_of loop) LOOP $3 INSERT INTO $1 VALUES (r.key, r.payload)$2; $4 END LOOP; END';
	END
}

statements() { # case
	local table action=''
	table=$(table_of "$1")
	[ "$1" = "${1#unique:}" ] || action=' ON CONFLICT DO NOTHING'
	case ${1#*:} in
	scan) say "SELECT sum(length(payload)) FROM source;" ;;
	distinct) insert "SELECT * FROM distinct_rows" "$table" ;;
	seen) insert "SELECT * FROM source WHERE NOT streamfilter_seen('seen_rows', key)" arrivals ;;
	trigger_block) in_block insert "SELECT * FROM source" "$table" ;;
	returned) insert "SELECT * FROM source RETURNING key" "$table" ;;
	copy) say "COPY $table FROM '$WORK/tmp/source.copy';" ;;
	copy_block) in_block say "COPY $table FROM '$WORK/tmp/source.copy';" ;;
	copy_client) say "\\copy $table FROM '$WORK/tmp/source.copy'" ;;
	copy_binary) say "COPY $table FROM '$WORK/tmp/source.binary' (FORMAT binary);" ;;
	values_*) lists "${1##*_}" "$table" "$action" ;;
	returning) lists 10 "$table" ' RETURNING key' ;;
	block) in_block lists 1 "$table" ;;
	block_10) in_block lists 10 "$table" ;;
	loop) loop "$table" "$action" ;;
	caught) loop "$table" "$action" BEGIN 'EXCEPTION WHEN division_by_zero THEN NULL; END;' ;;
	*) insert "SELECT * FROM source" "$table" ;;
	esac
}

# What the clock does not see, and what it does besides the statements.
settings() { # case
	case $1 in idle:*) say "SET streamfilter.enabled = off; SET streamfilter.batch_insert = off;" ;; esac
}

first() { # case
	case $1 in first:*) say "TRUNCATE $(filter_of "$1");" ;; esac
}

# Before the clock starts, the session writes to every page of the filter, and reads every row, so that it has all mapped.
script_of() { # case
	local filter
	filter=$(filter_of "$1")
	cat <<-END
		TRUNCATE arrivals, rows, recent, known, changed, changed_plain, unique_rows;
		TRUNCATE $filter;
		SELECT 'VACUUM ' || oid::regclass FROM pg_class WHERE relname = 'streamfilter_log' \gexec
		CHECKPOINT;
		INSERT INTO $filter SELECT hashint8extended(i, 2) FROM generate_series(1, 100000) i;
		SELECT sum(length(payload)) FROM source \g /dev/null
		SELECT sum(length(payload)) FROM distinct_rows \g /dev/null
		$(settings "$1")
		\o /dev/null
		SELECT clock_timestamp() AS begin \gset
	END
	first "$1"
	statements "$1"
	cat <<-END
		\o
		SELECT extract(epoch FROM clock_timestamp() - :'begin');
	END
}

measure() { # server case round: a line "case server round seconds"
	local seconds
	on "$1" script_of "$2" >"$WORK/script"
	seconds=$(on "$1" sql <"$WORK/script")
	say "$2 $1 $3 $seconds" >>"$WORK/times"
}

measure_round() { # round: who comes first changes
	local case first=this second=that
	[ $(($1 % 2)) -eq 0 ] || first=that second=this
	for case in "${CASES[@]}"; do
		measure $first "$case" "$1"
		measure $second "$case" "$1"
	done
}

# --- The table ----------------------------------------------------------------------------------------------------------

# shellcheck disable=SC2016
COMPARE='
	function quantile(values, count, share, at) {
		at = (count - 1) * share
		return values[int(at) + 1] + (at - int(at)) * (values[int(at) + (at > int(at)) + 1] - values[int(at) + 1])
	}
	function sort(values, count, i, j, value) {
		for (i = 2; i <= count; i++) {
			value = values[i]
			for (j = i - 1; j > 0 && values[j] > value; j--) values[j + 1] = values[j]
			values[j + 1] = value
		}
	}
	$1 == name { seconds[$2, $3] = $4 }
	END {
		for (round = 1; round <= rounds; round++) {
			this[round] = seconds["this", round]
			that[round] = seconds["that", round]
			ratio[round] = this[round] / that[round]
		}
		sort(this, rounds); sort(that, rounds); sort(ratio, rounds)
		low = quantile(ratio, rounds, .25)
		high = quantile(ratio, rounds, .75)
		printf "%-40s %9.3f %9.3f %8.3f   %.3f-%.3f   %.3f-%.3f  %s\n", title, quantile(that, rounds, .5) * 1e6 / rows,
			quantile(this, rounds, .5) * 1e6 / rows, quantile(ratio, rounds, .5), low, high, ratio[1], ratio[rounds],
			(low > 1.02 ? "slower" : high < .98 ? "faster" : "")
	}'

table() {
	local case
	printf '\n%-40s %9s %9s %8s   %-11s   %s\n' "microseconds a row, $ROUNDS rounds" "${HASH:0:8}" this ratio quartiles extremes
	for case in "${CASES[@]}"; do
		awk -v name="$case" -v title="$(title "$case")" -v rows="$(rows_of "$case")" -v rounds="$ROUNDS" "$COMPARE" "$WORK/times"
	done
	printf '\n%-40s %10s %-15s %10s %s\n' 'ratios of cases' "${HASH:0:8}" '' this ''
	for case in "${CASES[@]}"; do [ "$case" = "${case#*:}" ] || ratio "${case#*:}" "$case"; done
	for case in "${RATIOS[@]}"; do
		# shellcheck disable=SC2086 # several words
		ratio $case
	done
}

# One case to the sum of others, for each server: median and quartiles of the rounds, of what a row takes.
ratio() { # case others…
	local name
	for name in "$@"; do [[ " ${CASES[*]} " == *" $name "* ]] || return 0; done
	printf '%-40s' "$1 / $(joined_by_plus "${@:2}")"
	for name in that this; do
		awk -v name=$name -v measured="$1" -v others="${*:2}" -v share="$(rows_of "$1")" -v whole="$(rows_of "$2")" '
			$2 == name { seconds[$1, $3] = $4; rounds = $3 > rounds ? $3 : rounds }
			END {
				count = split(others, other, " ")
				for (i = 1; i <= rounds; i++) {
					sum = 0
					for (k = 1; k <= count; k++) sum += seconds[other[k], i]
					print seconds[measured, i] / share / (sum / whole)
				}
			}' "$WORK/times" | sort -g | awk '{ ratio[NR] = $1 }
			END { printf " %10.3f %-15s", ratio[int((NR + 1) / 2)], sprintf("%.3f-%.3f", ratio[int((NR + 3) / 4)], ratio[int((3 * NR + 3) / 4)]) }'
	done
	printf '\n'
}

joined_by_plus() { local IFS=+ && say "$*"; }

read_arguments() {
	local known=" ${CASES[*]} " name
	while [ $# -gt 0 ]; do
		case $1 in
		--rounds) ROUNDS=$2 && shift 2 ;;
		--rows) ROWS=$2 && shift 2 ;;
		--cases) read -ra CASES <<<"$2" && shift 2 ;;
		--list) printf '%s\n' "${CASES[@]}" && exit 0 ;;
		-*) sed -n '2,15s/^# \{0,1\}//p' "$0" && exit 0 ;;
		*) COMMIT=$1 && shift ;;
		esac
	done
	for name in "${CASES[@]}"; do [[ $known == *" $name "* ]] || die "unknown case: $name" "Known:$known"; done
	[[ $ROUNDS =~ ^[1-9][0-9]*$ && $ROWS =~ ^[1-9][0-9]{2,}$ ]] || die "--rounds and --rows take numbers, of rows 100 at least"
	HASH=$(resolve_commit "${COMMIT:-HEAD~1}")
}

main() {
	local round
	read_arguments "$@"
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	prepare git
	build_both
	stage "starting a server for ${HASH:0:8}" on that start
	stage "starting a server for this tree" on this start
	for ((round = 1; round <= ROUNDS; round++)); do stage "round $round of $ROUNDS" measure_round "$round"; done
	table
}

main "$@"
