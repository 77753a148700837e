#!/usr/bin/env bash
# How many instructions a row takes, counted by callgrind in a stand-alone backend: the same on every run and however busy
# the machine is, but blind to how long memory takes. docs/benchmarks.md says what is made of it.
#
#   bench/instructions.sh [OUTDIR]
#
# Prints a table, instructions for each row of the source: all, those of streamfilter itself, those of the server and its
# libraries. OUTDIR (build/instructions) gets it as instructions.txt; as functions.txt which functions of streamfilter take
# them, what the compiler has inlined counted where it is; and the profiles, for callgrind_annotate. Takes about
# three minutes. valgrind knows no registers of 64 bytes: kind clq runs its portable code. Debian 12 or 13, as root or with
# sudo.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"

ROWS=100000
OPTIONS="kind 'clq', fpr '0.01', memory '16MB'"
SINGLES=2000 # transactions of one row: they take more
CASES=(scan plain all trigger_off seen seen_alone seen_rows seen_text seen_columns trigger trigger_two trigger_rows copy copy_trigger
	copy_rows copy_new copy_new_trigger lists lists_trigger into distinct small_plain small_trigger single_plain single_unlogged single_logged)

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
	END { print all, own }'

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

title() { # case
	case $1 in
	scan) say "scan of the source" ;;
	plain) say "INSERT, distinct rows only" ;;
	all) say "INSERT, all rows" ;;
	trigger_off) say "INSERT, all rows, trigger switched off" ;;
	seen) say "INSERT WHERE NOT streamfilter_seen" ;;
	seen_alone) say "the same, batch_scan off" ;;
	seen_rows | trigger_rows | copy_rows) say "the same, batch_insert off" ;;
	seen_text) say "INSERT WHERE NOT seen, key of text" ;;
	seen_columns) say "INSERT WHERE NOT seen, key of bigint, text" ;;
	trigger) say "INSERT, trigger streamfilter_discard" ;;
	trigger_two) say "the same, clq with two lines" ;;
	copy) say "COPY, all rows" ;;
	copy_trigger) say "COPY, trigger streamfilter_discard" ;;
	copy_new) say "COPY, distinct rows only" ;;
	copy_new_trigger) say "the same, trigger streamfilter_discard" ;;
	lists) say "INSERT of lists of 1000 rows, all rows" ;;
	lists_trigger) say "the same, trigger streamfilter_discard" ;;
	into) say "INSERT INTO a filter" ;;
	distinct) say "streamfilter_distinct" ;;
	small_plain) say "transactions of 1000 new rows" ;;
	small_trigger) say "the same, trigger streamfilter_discard" ;;
	single_plain) say "transactions of one new row" ;;
	single_unlogged) say "the same, trigger, filter unlogged" ;;
	single_logged) say "the same, trigger, filter logged" ;;
	esac
}

rows_of() { # case
	case $1 in single_*) say $SINGLES ;; *) say $ROWS ;; esac
}

create_tables() {
	create_server
	sql <<-END
		SELECT FROM setseed(0.5);
		CREATE TABLE source AS SELECT hashint8extended((random() * $ROWS / 1.6485)::bigint, 0) AS key, repeat('x', 60) AS payload
		  FROM generate_series(1, $ROWS);
		CREATE TABLE distinct_rows AS SELECT DISTINCT ON (key) * FROM source;
		CREATE TABLE named AS SELECT key, 'user ' || key AS name, payload FROM source;
		CREATE TABLE arrivals (LIKE source);
		CREATE TABLE arrivals_named (LIKE named);
		CREATE TABLE discarding (LIKE source);
		CREATE TABLE discarding_unlogged (LIKE source);
		CREATE FOREIGN TABLE seen (key bigint) SERVER streamfilter OPTIONS ($OPTIONS);
		CREATE TRIGGER discard BEFORE INSERT ON discarding FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
		CREATE FOREIGN TABLE seen_text (name text) SERVER streamfilter OPTIONS ($OPTIONS);
		CREATE FOREIGN TABLE seen_columns (key bigint, name text) SERVER streamfilter OPTIONS ($OPTIONS);
		CREATE FOREIGN TABLE seen_unlogged (key bigint) SERVER streamfilter OPTIONS ($OPTIONS, persistence 'unlogged');
		CREATE TRIGGER discard BEFORE INSERT ON discarding_unlogged FOR EACH ROW
		  EXECUTE FUNCTION streamfilter_discard('seen_unlogged');
		CREATE TABLE discarding_two (LIKE source);
		CREATE FOREIGN TABLE seen_two (key bigint) SERVER streamfilter OPTIONS ($OPTIONS, lines '2');
		CREATE TRIGGER discard BEFORE INSERT ON discarding_two FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_two');
		VACUUM (FREEZE, ANALYZE);
		COPY source TO '$WORK/tmp/source.copy';
		COPY distinct_rows TO '$WORK/tmp/distinct.copy';
		COPY (SELECT 'INSERT INTO arrivals VALUES ' || string_agg(format('(%s, %L)', key, payload), ', ')
		  FROM (SELECT *, (row_number() OVER () - 1) / 1000 AS list FROM source) AS numbered GROUP BY list) TO '$WORK/tmp/lists.sql';
	END
	stop_server
}

statements() { # case: one a line; the first ones warm up the last, so that only its own work is added
	say "SELECT count(*) FROM source"
	say "SELECT count(*) FROM distinct_rows"
	say "SELECT streamfilter_test('seen', 0::bigint)"
	case $1 in
	seen_text) say "SELECT count(*), streamfilter_test('seen_text', '') FROM named" ;;
	seen_columns) say "SELECT count(*), streamfilter_test('seen_columns', 0::bigint, '') FROM named" ;;
	trigger_two) say "SELECT streamfilter_test('seen_two', 0::bigint)" ;;
	single_unlogged) say "SELECT streamfilter_test('seen_unlogged', 0::bigint)" ;;
	esac
	case $1 in
	scan) say "SELECT count(*) FROM source" ;;
	plain) say "INSERT INTO arrivals SELECT * FROM distinct_rows" ;;
	all) say "INSERT INTO arrivals SELECT * FROM source" ;;
	seen_alone) say "SET streamfilter.batch_scan = off" ;;&
	*_rows) say "SET streamfilter.batch_insert = off" ;;&
	seen_text) say "INSERT INTO arrivals_named SELECT * FROM named WHERE NOT streamfilter_seen('seen_text', name)" ;;
	seen_columns)
		say "INSERT INTO arrivals_named SELECT * FROM named WHERE NOT streamfilter_seen('seen_columns', key, name)"
		;;
	seen*) say "INSERT INTO arrivals SELECT * FROM source WHERE NOT streamfilter_seen('seen', key)" ;;
	trigger_off) say "SET streamfilter.enabled = off" ;;&
	trigger_two) say "INSERT INTO discarding_two SELECT * FROM source" ;;
	trigger*) say "INSERT INTO discarding SELECT * FROM source" ;;
	copy) say "COPY arrivals FROM '$WORK/tmp/source.copy'" ;;
	copy_new) say "COPY arrivals FROM '$WORK/tmp/distinct.copy'" ;;
	copy_new_trigger) say "COPY discarding FROM '$WORK/tmp/distinct.copy'" ;;
	copy_*) say "COPY discarding FROM '$WORK/tmp/source.copy'" ;;
	lists) cat "$WORK/tmp/lists.sql" ;;
	lists_trigger) sed 's/arrivals/discarding/' "$WORK/tmp/lists.sql" ;;
	into) say "INSERT INTO seen SELECT key FROM source" ;;
	distinct)
		say "SELECT count(*) FROM streamfilter_distinct(NULL::source, 'SELECT * FROM source', 'clq(memory=16MB, fpr=0.01)', '{key}')"
		;;
	small_plain) small arrivals ;;
	small_trigger) small discarding ;;
	single_plain) single arrivals ;;
	single_unlogged) single discarding_unlogged ;;
	single_logged) single discarding ;;
	esac
}

single() { # table
	local i
	for ((i = 0; i < SINGLES; i++)); do say "INSERT INTO $1 VALUES ($i * 1234567891011, repeat('x', 60))"; done
}

small() { # table: as many rows as the source has
	local i
	for ((i = 0; i < ROWS; i += 1000)); do
		say "INSERT INTO $1 SELECT random() * 1e15, repeat('x', 60) FROM generate_series(1, 1000)"
	done
}

clean() { # every case begins with the same state
	printf '%s\n' "TRUNCATE arrivals, arrivals_named, discarding, discarding_unlogged, discarding_two" \
		"TRUNCATE seen, seen_text, seen_columns, seen_unlogged, seen_two" "VACUUM FULL _streamfilter.streamfilter_log" "CHECKPOINT" |
		alone >/dev/null
}

alone() { as_server "$@" "$(pg_bin)/postgres" --single -D "$WORK/data" postgres; }

count_case() { # case
	clean
	statements "$1" | alone valgrind --tool=callgrind --callgrind-out-file="$WORK/tmp/$1.callgrind"
	as_server cat "$WORK/tmp/$1.callgrind" | awk "$SUMS" >"$WORK/tmp/$1.sums"
}

table() {
	local case
	printf 'Instructions per row of a source of %d rows, 49 %% of them distinct, and per transaction of one row\n\n' "$ROWS"
	printf '%-44s %8s %14s %10s\n' '' all streamfilter server
	for case in "${CASES[@]}"; do
		paste -d ' ' "$WORK/tmp/$case.sums" "$WORK/tmp/nothing.sums" |
			awk -v title="$(title "$case")" -v rows="$(rows_of "$case")" '{ all = ($1 - $3) / rows; own = ($2 - $4) / rows
				printf "%-44s %8.0f %14.0f %10.0f\n", title, all, own, all - own }'
	done
}

# The cost of a case, without that of starting the server.
functions_of() { # case
	printf '\n%s\n' "$(title "$1")"
	awk -F '\t' -v rows="$(rows_of "$1")" '{ count[$2] += FNR == NR ? $1 : -$1 }
		END { for (name in count) if (count[name] >= 5 * rows) printf "%8.1f  %s\n", count[name] / rows, name }' \
		<(awk "$FUNCTIONS" "$WORK/tmp/$1.callgrind") <(awk "$FUNCTIONS" "$WORK/tmp/nothing.callgrind") |
		sed 's/streamfilter:://g; s/pg:://g; s/(anonymous namespace):://g' | sort -k 1,1 -rn
}

save() {
	as_owner mkdir -p "$OUT"
	table | as_owner tee "$OUT/instructions.txt"
	local name
	for name in "${CASES[@]}"; do functions_of "$name"; done | as_owner tee "$OUT/functions.txt" >/dev/null
	for name in nothing "${CASES[@]}"; do as_owner tee "$OUT/$name.callgrind" <"$WORK/tmp/$name.callgrind" >/dev/null; done
	printf '\nwritten: %s\n' "$OUT"
}

main() {
	local case
	case ${1:-} in -*) sed -n '2,10s/^# \{0,1\}//p' "$0" && exit 0 ;; esac
	OUT=$(realpath -m "${1:-$ROOT/build/instructions}")
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	prepare valgrind
	stage "building streamfilter" make_here -j2
	stage "installing it" install_extension
	stage "starting a server" create_tables
	for case in nothing "${CASES[@]}"; do stage "  counting: $case" count_case "$case"; done
	save
}

main "$@"
