#!/usr/bin/env bash
# Whether this tree is as fast as a commit. Both are built as they are installed, each into a copy of the server, and the two
# servers take turns in every case of every round, so that whatever else the machine does meets both. Prints for each case
# what a row takes with either, and the ratio, this tree to the commit: the median of the rounds, with quartiles and extremes.
# Tables in Markdown.
#
#   test/speed.sh [--rounds N] [--cases "NAME…"] [--rows N] [COMMIT]     HEAD~1, 7 rounds, all cases, 400000 rows
#   test/speed.sh --list                                                 the cases
#
# "slower" or "faster" stands where three quarters of the rounds agree, by 2 % at least. Takes about ten minutes beside the two
# builds, of five each, and says after each round how much is left. What it has built of the commit is kept in build/commits.
# A file system in memory for TMPDIR and idle cores make the spread small. A second table has the ratios of cases to each other,
# as medians and quartiles of the rounds: what judging takes.
# plain:NAME is the same into a table without a filter; idle:NAME with a trigger that does nothing; unique:NAME with a unique
# index and ON CONFLICT DO NOTHING; first:NAME with the TRUNCATE of the filter before, so that its pages are fresh; bare:NAME
# into a plain table of a server without the library, in the second table only; exact:NAME counts exactly; hll:NAME with hll,
# where its package is. NAME.p99 is the latency of a transaction that 99 of 100 keep, in microseconds.
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
	copy_binary plain:copy_binary values_1 idle:values_1 values_10 plain:values_10 bare:values_10 idle:values_10 unique:values_10
	values_100 plain:values_100 bare:values_100 idle:values_100 returning plain:returning returned plain:returned
	block idle:block block_10 idle:block_10 loop plain:loop unique:loop caught plain:caught unique:caught later plain:later
	window first:window known clients_10 plain:clients_10 clients_1 plain:clients_1
	groups exact:groups workers exact:workers rollup hll:rollup)
# Besides each NAME to its OTHER:NAME: a case, and those whose sum it is compared with.
RATIOS=("seen scan distinct" "trigger plain" "trigger distinct" "trigger_block trigger" "copy_block plain:copy"
	"plain:values_10 bare:values_10" "plain:values_100 bare:values_100" "window plain" "first:window plain" "known plain")
# shellcheck disable=SC2034 # for prepare: installed where the system has it
PG_MODULES=(hll)
ROUNDS=7 ROWS=400000 COMMIT='' HASH=''
OPTIONS="memory '16MB', fpr '0.01', seed '1'"

title() { # case
	case $1 in
	plain:*) say "$(title "${1#*:}" | sed 's/, trigger//'), no filter" ;;
	idle:*) say "$(title "${1#*:}" | sed 's/trigger/idle trigger/')" ;;
	unique:*) say "$(title "${1#*:}" | sed 's/trigger/ON CONFLICT/')" ;;
	first:*) say "TRUNCATE, then $(title "${1#*:}")" ;;
	exact:*) say "$(title "${1#*:}"), count(DISTINCT)" ;;
	hll:*) say "$(title "${1#*:}"), hll" ;;
	*.p99) say "$(title "${1%.p99}"), p99" ;;
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
	later) say "INSERT SELECT, another BEFORE trigger, trigger" ;;
	window) say "INSERT SELECT, trigger, window of time" ;;
	known) say "INSERT SELECT, trigger, known keys" ;;
	clients_*) say "$(sessions_of "$1") sessions, VALUES of ${1#clients_}, trigger" ;;
	groups) say "distinct keys, $((ROWS * 5 / 2)) groups" ;;
	workers) say "distinct keys, two workers" ;;
	rollup) say "distinct keys, a rollup" ;;
	esac
}

rows_of() { # case
	case ${1#*:} in
	*.p99) say 1 ;;
	values_1 | block) say $((ROWS / 50)) ;;
	values_10 | returning | block_10 | clients_1) say $((ROWS / 20)) ;;
	clients_10) say $((ROWS / 5)) ;;
	groups | workers) say $((5 * ROWS)) ;;
	values_100 | loop | caught) say $((ROWS / 5)) ;;
	*) say "$ROWS" ;;
	esac
}

sessions_of() { # case
	case ${1#*:} in
	clients_10) say 4 ;;
	*) say 8 ;;
	esac
}

table_of() { # case: its filter bears the same name after "seen_"
	case $1 in
	distinct | plain) say arrivals ;;
	plain:later) say changed_plain ;;
	plain:* | bare:*) say arrivals ;;
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
	mkdir "$WORK/bare"
	for name in this that bare; do
		config_of "${name/bare/this}" >"$WORK/$name/config"
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
	create_source
	create_tables
}

start_bare() {
	start
	say "shared_preload_libraries = ''" >>"$WORK/data/postgresql.conf"
	stop_server
	start_server
}

# 49 % of the rows are distinct.
create_source() {
	sql <<-END
		CREATE TABLE source AS SELECT hashint8extended(abs(hashint8extended(i, 1) % ($ROWS / 1.6485)::bigint), 0) AS key,
		    repeat('x', 60) AS payload FROM generate_series(1, $ROWS) i;
		CREATE TABLE distinct_rows AS SELECT DISTINCT ON (key) * FROM source;
		CREATE TABLE arrivals (LIKE source);
		CREATE UNLOGGED TABLE events AS SELECT i::bigint * 7919 % 1000003 AS key, i % ($ROWS * 5 / 2) AS many, i
		    FROM generate_series(1, $ROWS * 5) i;
		CREATE INDEX ON events (i);
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

create_tables() {
	sql <<-END
		$(discarding_table rows "kind 'clq', $OPTIONS")
		$(discarding_table recent "$OPTIONS, window '30 days'")
		$(discarding_table known "kind 'bloom', keys '$((2 * ROWS))', fpr '0.01', seed '1'")
		$(discarding_table changed "kind 'clq', $OPTIONS")
		CREATE TABLE changed_plain (LIKE source);
		CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER later BEFORE INSERT ON changed FOR EACH ROW EXECUTE FUNCTION later();
		CREATE TRIGGER later BEFORE INSERT ON changed_plain FOR EACH ROW EXECUTE FUNCTION later();
		CREATE TABLE unique_rows (LIKE source, UNIQUE (key));
		CREATE TABLE rollup (g int PRIMARY KEY, s streamfilter);
		$(! has_hll || say 'CREATE EXTENSION hll; CREATE TABLE rollup_hll (g int PRIMARY KEY, s hll);')
		VACUUM (FREEZE, ANALYZE);
	END
}

has_hll() { [ -f "$("$PG_CONFIG" --sharedir)/extension/hll.control" ]; }

discarding_table() { # name options
	cat <<-END
		CREATE TABLE $1 (LIKE source);
		CREATE FOREIGN TABLE seen_$1 (key bigint) SERVER streamfilter OPTIONS ($2);
		CREATE TRIGGER discard BEFORE INSERT ON $1 FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_$1');
	END
}

# --- The cases ----------------------------------------------------------------------------------------------------------

insert() { # source table [action]
	say "INSERT INTO $2 $1${3:-};"
}

lists() { sed "s/target/$2/; s/;\$/${3:-};/" "$WORK/tmp/values_$1.sql"; } # length table [action]

in_block() {
	say "BEGIN;"
	"$@"
	say "COMMIT;"
}

loop() { # table [action [before after]]
	cat <<-END
		DO 'DECLARE r record; BEGIN
		  FOR r IN SELECT * FROM source LIMIT $(rows_of loop) LOOP ${3:-} INSERT INTO $1 VALUES (r.key, r.payload)${2:-}; ${4:-} END LOOP; END';
	END
}

groups() { say "SELECT sum(n) FROM (SELECT $1 AS n FROM events GROUP BY many) x;"; } # aggregate

rollup() { # table aggregate: 40 statements
	cat <<-END
		DO 'BEGIN FOR n IN 0..39 LOOP
		  INSERT INTO $1 AS r SELECT i % 200, $2 FROM events WHERE i > n * $ROWS / 40 AND i <= (n + 1) * $ROWS / 40 GROUP BY 1
		  ON CONFLICT (g) DO UPDATE SET s = r.s || excluded.s;
		  COMMIT; END LOOP; END';
	END
}

statements() { # case
	local table action=''
	table=$(table_of "$1")
	[ "$1" = "${1#unique:}" ] || action=' ON CONFLICT DO NOTHING'
	case $1 in
	exact:groups) groups "count(DISTINCT key)" && return ;;
	exact:workers) say "SELECT count(DISTINCT key) FROM events;" && return ;;
	hll:rollup) rollup rollup_hll "hll_add_agg(hll_hash_bigint(key))" && return ;;
	esac
	case ${1#*:} in
	groups) groups "approx_count_distinct(key)" ;;
	workers) say "SELECT approx_count_distinct(key) FROM events;" ;;
	rollup) rollup rollup "streamfilter_agg(key, ''ell(memory=16kB)'')" ;;
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
	case $1 in
	idle:*) say "SET streamfilter.enabled = off; SET streamfilter.batch_insert = off;" ;;
	*workers) say "SET max_parallel_workers_per_gather = 2;" ;;
	esac
}

first() { # case
	case $1 in first:*) say "TRUNCATE $(filter_of "$1");" ;; esac
}

tables_emptied() { # case
	local filter
	filter=$(filter_of "$1")
	case $1 in
	bare:*) say "TRUNCATE arrivals;" ;;
	*)
		cat <<-END
			TRUNCATE arrivals, rows, recent, known, changed, changed_plain, unique_rows, rollup$(! has_hll || say ', rollup_hll');
			TRUNCATE $filter;
			SELECT 'VACUUM ' || oid::regclass FROM pg_class WHERE relname = 'streamfilter_log' \gexec
			INSERT INTO $filter SELECT hashint8extended(i, 2) FROM generate_series(1, 100000) i;
		END
		;;
	esac
}

# Before the clock starts, the session writes to every page of the filter, and reads every row, so that it has all mapped.
script_of() { # case
	tables_emptied "$1"
	cat <<-END
		CHECKPOINT;
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

seconds_of() { # case: a line "suffix of the case, or -; seconds"
	local seconds
	script_of "$1" >"$WORK/tmp/script" && seconds=$(sql <"$WORK/tmp/script") && say "- $seconds"
}

clients_script() { # rows of a transaction, rows of all, table
	local i list=''
	for ((i = 1; i <= $1; i++)); do
		say "\\set k$i random(1, $2 * 10 / 16)"
		list+="${list:+, }(:k$i, repeat('x', 60))"
	done
	say "INSERT INTO $3 VALUES $list;"
}

clients() { # case round: what pgbench says
	local length=${1#*clients_} sessions rows
	sessions=$(sessions_of "$1") rows=$(rows_of "$1")
	clients_script "$length" "$rows" "$(table_of "$1")" >"$WORK/tmp/script"
	rm -f "$WORK"/tmp/latency.*
	"$(pg_bin)/pgbench" -n -h "$WORK" -p 5432 -U postgres -c "$sessions" -j 2 -t $((rows / length / sessions)) --random-seed="$2" \
		-f "$WORK/tmp/script" -l --log-prefix="$WORK/tmp/latency" postgres
}

# Each session's first transactions, which map pages, are among the rest.
seconds_of_clients() { # case round: lines as above
	{ tables_emptied "$1" && say "CHECKPOINT;"; } | sql && clients "$@" >"$WORK/tmp/pgbench" &&
		awk -v transactions=$(($(rows_of "$1") / ${1#*clients_})) '/^tps/ { print "-", transactions / $3 }' "$WORK/tmp/pgbench" &&
		sort -k 3,3 -n "$WORK"/tmp/latency.* | awk '{ latency[NR] = $3 } END { print ".p99", latency[int(NR * .99)] / 1e6 }'
}

# The commit may refuse what this tree does.
measure() { # server case round: lines "case server round seconds"
	local how=seconds_of lines suffix seconds
	[[ $2 != *clients_* ]] || how=seconds_of_clients
	lines=$(on "$1" $how "$2" "$3") || {
		[ "$1" = that ] || exit 1
		return 0
	}
	while read -r suffix seconds; do say "$2${suffix#-} $1 $3 $seconds" >>"$WORK/times"; done <<<"$lines"
}

measure_round() { # round: who comes first changes; a server without the library is the same for both
	local case first=this second=that
	[ $(($1 % 2)) -eq 0 ] || first=that second=this
	for case in "${CASES[@]}"; do
		if [[ $case = bare:* ]]; then
			measure bare "$case" "$1"
			tail -n 1 "$WORK/times" | sed 's/ bare / this /; p; s/ this / that /' >"$WORK/bare/times"
			cat "$WORK/bare/times" >>"$WORK/times"
		else
			measure $first "$case" "$1"
			measure $second "$case" "$1"
		fi
	done
}

job_progress() { [ ! -s "$WORK/times" ] || tail -n 1 "$WORK/times" | cut -d ' ' -f 1; }

say_what_is_left() { # round, seconds of all so far
	[ "$1" -eq "$ROUNDS" ] || say "$((ROUNDS - $1)) rounds more: $((($2 * (ROUNDS - $1) + $1 * 60 - 1) / ($1 * 60))) minutes"
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
		known = ("that", 1) in seconds
		for (round = 1; round <= rounds; round++) {
			this[round] = seconds["this", round]
			that[round] = seconds["that", round]
			ratio[round] = !known ? 0 : this[round] / that[round]
		}
		sort(this, rounds); sort(that, rounds); sort(ratio, rounds)
		if (!known) {
			printf "| %s | - | %.3f | | | | |\n", title, quantile(this, rounds, .5) * 1e6 / rows
			exit
		}
		low = quantile(ratio, rounds, .25)
		high = quantile(ratio, rounds, .75)
		printf "| %s | %.3f | %.3f | %.3f | %.3f-%.3f | %.3f-%.3f | %s |\n", title, quantile(that, rounds, .5) * 1e6 / rows,
			quantile(this, rounds, .5) * 1e6 / rows, quantile(ratio, rounds, .5), low, high, ratio[1], ratio[rounds],
			(low > 1.02 ? "slower" : high < .98 ? "faster" : "")
	}'

table() {
	local case shown=()
	for case in "${CASES[@]}"; do
		shown+=("$case")
		[[ $case != *clients_* ]] || shown+=("$case.p99")
	done
	printf '\nPostgreSQL %s, %s processors%s; %s rows, %s rounds\n' "$("$PG_CONFIG" --version | grep -oE '[0-9.]+' | head -n 1)" "$(nproc)" \
		"$(sed -n 's/^model name.*: /, /p' /proc/cpuinfo | head -n 1)" "$ROWS" "$ROUNDS"
	printf '\n| microseconds a row | %s | this | ratio | quartiles | extremes | |\n|---|---|---|---|---|---|---|\n' "${HASH:0:8}"
	for case in "${shown[@]}"; do
		[[ $case = bare:* ]] ||
			awk -v name="$case" -v title="$(title "$case")" -v rows="$(rows_of "$case")" -v rounds="$ROUNDS" "$COMPARE" "$WORK/times"
	done
	printf '\n| ratios of cases | %s | quartiles | this | quartiles |\n|---|---|---|---|---|\n' "${HASH:0:8}"
	for case in "${shown[@]}"; do
		case $case in
		bare:*) ;;
		first:*) ratio "$case" "${case#*:}" ;;
		*:*) ratio "${case#*:}" "$case" ;;
		esac
	done
	for case in "${RATIOS[@]}"; do
		# shellcheck disable=SC2086 # several words
		ratio $case
	done
}

# One case to the sum of others, for each server: median and quartiles of the rounds, of what a row takes.
ratio() { # case others…
	local name
	for name in "$@"; do [[ " ${CASES[*]} " == *" ${name%.p99} "* ]] || return 0; done
	printf '| %s ' "$1 / $(joined_by_plus "${@:2}")"
	for name in that this; do
		awk -v name=$name -v measured="$1" -v others="${*:2}" -v share="$(rows_of "$1")" -v whole="$(rows_of "$2")" '
			$2 == name { seconds[$1, $3] = $4; rounds = $3 > rounds ? $3 : rounds }
			END {
				count = split(others, other, " ")
				for (i = 1; i <= rounds; i++) {
					sum = 0
					for (k = 1; k <= count; k++) sum += seconds[other[k], i]
					if (sum > 0 && (measured, i) in seconds) print seconds[measured, i] / share / (sum / whole)
				}
			}' "$WORK/times" | sort -g | awk '{ ratio[NR] = $1 }
			END {
				if (NR == 0) printf "| - | "
				else printf "| %.3f | %.3f-%.3f ", ratio[int((NR + 1) / 2)], ratio[int((NR + 3) / 4)], ratio[int((3 * NR + 3) / 4)]
			}'
	done
	say '|'
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
		-*) sed -n '2,17s/^# \{0,1\}//p' "$0" && exit 0 ;;
		*) COMMIT=$1 && shift ;;
		esac
	done
	for name in "${CASES[@]}"; do [[ $known == *" $name "* ]] || die "unknown case: $name" "Known:$known"; done
	[[ $ROUNDS =~ ^[1-9][0-9]*$ && $ROWS =~ ^[1-9][0-9]{3,}$ ]] || die "--rounds and --rows take numbers, of rows 1000 at least"
	HASH=$(resolve_commit "${COMMIT:-HEAD~1}")
}

main() {
	local round began
	read_arguments "$@"
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	prepare git
	has_hll || read -ra CASES <<<"${CASES[*]/#hll:*/}"
	say "about $((ROUNDS * ${#CASES[@]} * (500 + ROWS / 700) / 60000 + 1)) minutes of an idle machine, beside the builds"
	build_both
	stage "starting a server for ${HASH:0:8}" on that start
	stage "starting a server for this tree" on this start
	stage "starting a server without the library" on bare start_bare
	began=$SECONDS
	for ((round = 1; round <= ROUNDS; round++)); do
		stage "round $round of $ROUNDS" measure_round "$round"
		say_what_is_left "$round" $((SECONDS - began))
	done
	table
}

main "$@"
