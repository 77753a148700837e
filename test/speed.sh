#!/usr/bin/env bash
# Whether this tree is as fast as a commit. Both are built as they are installed, each into a copy of the server, and the two
# servers take turns in every case of every round, so that whatever else the machine does meets both. Prints for each case
# what a row takes with either, and the ratio, this tree to the commit: the median of the rounds, with quartiles and extremes.
#
#   test/speed.sh [--rounds N] [--cases "NAME…"] [--rows N] [COMMIT]     HEAD~1, 7 rounds, all cases, 200000 rows
#   test/speed.sh --list                                                 the cases
#
# "slower" or "faster" stands where three quarters of the rounds agree, by 2 % at least. Takes four minutes beside the builds; what it
# has built of the commit is kept in build/commits. A file system in memory for TMPDIR and idle cores make the spread
# small. The last line says what judging takes: WHERE NOT seen beside a scan and an INSERT of the rows that pass.
# Debian 12 or 13, as root or with sudo.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=../bench/lib/commit_build.sh
source "$ROOT/bench/lib/commit_build.sh"

# shellcheck disable=SC2034 # for prepare: everything goes into copies of the server
PRIVATE=yes
CASES=(scan distinct plain seen trigger trigger_block copy copy_binary values_1 values_10 values_100 returning block loop window known)
ROUNDS=7 ROWS=200000 COMMIT='' HASH=''
OPTIONS="memory '16MB', fpr '0.01', seed '1'"

title() { # case
	case $1 in
	scan) say "scan of the source" ;;
	distinct) say "INSERT SELECT, distinct rows, no filter" ;;
	plain) say "INSERT SELECT, no filter" ;;
	seen) say "INSERT SELECT WHERE NOT seen" ;;
	trigger) say "INSERT SELECT, trigger" ;;
	trigger_block) say "the same between BEGIN and COMMIT" ;;
	copy) say "COPY, text, trigger" ;;
	copy_binary) say "COPY, binary, trigger" ;;
	values_*) say "VALUES of ${1#values_}, trigger" ;;
	returning) say "VALUES of 10 RETURNING, trigger" ;;
	block) say "VALUES of 1 in one block, trigger" ;;
	loop) say "INSERT in a loop of PL/pgSQL, trigger" ;;
	window) say "INSERT SELECT, trigger, window of time" ;;
	known) say "INSERT SELECT, trigger, known keys" ;;
	esac
}

rows_of() { # case
	case $1 in
	values_1 | block) say $((ROWS / 50)) ;;
	values_10 | returning) say $((ROWS / 20)) ;;
	values_100 | loop) say $((ROWS / 5)) ;;
	*) say "$ROWS" ;;
	esac
}

filter_of() { # case: of its table, which bears the same name without "seen_"
	case $1 in
	window) say seen_recent ;;
	known) say seen_known ;;
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
		VACUUM (FREEZE, ANALYZE);
		COPY source TO '$WORK/tmp/source.copy';
		COPY source TO '$WORK/tmp/source.binary' (FORMAT binary);
	END
	local length
	for length in 1 10 100; do
		sql >"$WORK/tmp/values_$length.sql" <<-END
			SELECT 'INSERT INTO rows VALUES ' || string_agg(format('(%s, %L)', key, payload), ', ' ORDER BY n) || ';'
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

statements() { # case
	case $1 in
	scan) say "SELECT sum(length(payload)) FROM source;" ;;
	distinct) say "INSERT INTO arrivals SELECT * FROM distinct_rows;" ;;
	plain) say "INSERT INTO arrivals SELECT * FROM source;" ;;
	seen) say "INSERT INTO arrivals SELECT * FROM source WHERE NOT streamfilter_seen('seen_rows', key);" ;;
	trigger) say "INSERT INTO rows SELECT * FROM source;" ;;
	trigger_block) printf '%s\n' "BEGIN;" "INSERT INTO rows SELECT * FROM source;" "COMMIT;" ;;
	copy) say "COPY rows FROM '$WORK/tmp/source.copy';" ;;
	copy_binary) say "COPY rows FROM '$WORK/tmp/source.binary' (FORMAT binary);" ;;
	values_*) cat "$WORK/tmp/$1.sql" ;;
	returning) sed 's/;$/ RETURNING key;/' "$WORK/tmp/values_10.sql" ;;
	block) say "BEGIN;" && cat "$WORK/tmp/values_1.sql" && say "COMMIT;" ;;
	loop)
		cat <<-END
			DO 'DECLARE r record; BEGIN
			  FOR r IN SELECT * FROM source LIMIT $(rows_of loop) LOOP INSERT INTO rows VALUES (r.key, r.payload); END LOOP; END';
		END
		;;
	window) say "INSERT INTO recent SELECT * FROM source;" ;;
	known) say "INSERT INTO known SELECT * FROM source;" ;;
	esac
}

# Before the clock starts, the session writes to every page of the filter, and reads every row, so that it has all mapped.
script_of() { # case
	local filter
	filter=$(filter_of "$1")
	cat <<-END
		TRUNCATE arrivals, ${filter#seen_};
		TRUNCATE $filter;
		SELECT 'VACUUM ' || oid::regclass FROM pg_class WHERE relname = 'streamfilter_log' \gexec
		CHECKPOINT;
		INSERT INTO $filter SELECT hashint8extended(i, 2) FROM generate_series(1, 100000) i;
		SELECT sum(length(payload)) FROM source \g /dev/null
		SELECT sum(length(payload)) FROM distinct_rows \g /dev/null
		\o /dev/null
		SELECT clock_timestamp() AS begin \gset
	END
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
	[[ " ${CASES[*]} " != *" scan "*"distinct "*"seen "* ]] || judging
}

# WHERE NOT seen to what must be done in any case, as medians of the rounds.
judging() {
	local name
	printf '\nWHERE NOT seen / (scan + INSERT of the distinct rows):'
	for name in that this; do
		awk -v name=$name '$2 == name { seconds[$1, $3] = $4; rounds = $3 > rounds ? $3 : rounds }
			END { for (i = 1; i <= rounds; i++) print seconds["seen", i] / (seconds["scan", i] + seconds["distinct", i]) }' "$WORK/times" |
			sort -g | awk -v name=$name -v commit="${HASH:0:8}" '{ ratio[NR] = $1 }
				END { printf " %s %.2f", name == "this" ? "this tree" : commit, ratio[int((NR + 1) / 2)] }'
	done
	printf '\n'
}

read_arguments() {
	local known=" ${CASES[*]} " name
	while [ $# -gt 0 ]; do
		case $1 in
		--rounds) ROUNDS=$2 && shift 2 ;;
		--rows) ROWS=$2 && shift 2 ;;
		--cases) read -ra CASES <<<"$2" && shift 2 ;;
		--list) printf '%s\n' "${CASES[@]}" && exit 0 ;;
		-*) sed -n '2,13s/^# \{0,1\}//p' "$0" && exit 0 ;;
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
