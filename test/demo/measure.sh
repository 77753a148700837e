# The four ways to insert the same events, timed in turn. Sourced by test/demo.sh.
# shellcheck shell=bash disable=SC2034,SC2153 # the variables are shared by the demo's files

declare -A BEST_US=() KEPT=() # by way
ROUNDS=3
UNIQUE_FAILED='' # why there is no UNIQUE index on these keys

way_title() {
	case $1 in
	plain) say "INSERT, nothing checked" ;;
	unique) say "INSERT ... ON CONFLICT DO NOTHING" ;;
	trigger) say "INSERT, trigger streamfilter_discard" ;;
	seen) say "INSERT ... WHERE NOT streamfilter_seen" ;;
	esac
}

filter_sql() {
	local columns='' name
	for name in "${KEYS_SQL[@]}"; do columns+="${columns:+, }$name text"; done
	say "CREATE FOREIGN TABLE seen ($columns)"
	say "  SERVER streamfilter OPTIONS ($FILTER_OPTIONS);"
}

trigger_sql() {
	say "CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON arrivals"
	say "  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');"
}

insert_sql() {
	local keys
	keys=$(joined "${KEYS_SQL[@]}")
	case $1 in
	plain | trigger) say "INSERT INTO arrivals SELECT * FROM events ORDER BY event_no;" ;;
	unique) say "INSERT INTO arrivals SELECT * FROM events ORDER BY event_no ON CONFLICT DO NOTHING;" ;;
	seen) say "INSERT INTO arrivals SELECT * FROM events WHERE NOT streamfilter_seen('seen', $keys) ORDER BY event_no;" ;;
	esac
}

prepare_way() {
	local name
	say "DROP TABLE IF EXISTS arrivals; DROP FOREIGN TABLE IF EXISTS seen;"
	say "CREATE TABLE arrivals (event_no bigint"
	for name in "${COLUMNS_SQL[@]}"; do say ", $name text"; done
	say ");"
	case $1 in
	unique) say "CREATE UNIQUE INDEX arrivals_key ON arrivals ($(joined "${KEYS_SQL[@]}"));" ;;
	trigger) filter_sql && trigger_sql ;;
	seen) filter_sql ;;
	esac
	say "CHECKPOINT;"
}

run_way() {
	{
		say "SET client_min_messages = error;"
		prepare_way "$1"
		say "\\timing on"
		insert_sql "$1"
	} | sql
}

note_time() {
	local us
	us=$(awk '/^Time:/ { us = $2 * 1000 } END { printf "%d", us }' "$WORK/job.log")
	if [ -z "${BEST_US[$1]:-}" ] || [ "$us" -lt "${BEST_US[$1]}" ]; then BEST_US[$1]=$us; fi
}

note_result() { # what the first round kept; read before the next way takes the table
	KEPT[$1]=$(sql -c "SELECT count(*) FROM arrivals")
	case $1 in
	unique)
		INDEX_BYTES=$(sql -c "SELECT pg_relation_size('arrivals_key')")
		INDEX_BYTES_FRESH=$(sql -c "REINDEX INDEX arrivals_key" -c "SELECT pg_relation_size('arrivals_key')")
		;;
	trigger)
		FILTER_BYTES=$(sql -c "SELECT memory FROM streamfilter_stats WHERE filter = 'seen'::regclass")
		read -r WRONGLY_DISCARDED MISSED < <(sql -F ' ' -c "SELECT
			count(*) FILTER (WHERE is_new AND a.event_no IS NULL), count(a.event_no) FILTER (WHERE NOT is_new)
			FROM truth LEFT JOIN arrivals a USING (event_no)")
		;;
	esac
}

measure_way() { # way, round
	[ "$1" != unique ] || [ -z "$UNIQUE_FAILED" ] || return 0
	job "  $2 of $ROUNDS: $(way_title "$1")" run_way "$1"
	if [ "$JOB_STATUS" -eq 0 ]; then
		printf '\n'
		note_time "$1"
		[ "$2" -gt 1 ] || note_result "$1"
	elif [ "$1" = unique ]; then
		printf '  impossible\n'
		UNIQUE_FAILED=$(sed -n 's/.*ERROR:  //p' "$WORK/job.log" | head -n 1)
	else
		printf '  failed\n'
		cat "$WORK/job.log" >&2
		grep -E 'PANIC|FATAL|terminated by signal' "$WORK/server.log" | tail -n 3 >&2 || true
		die "failed: $(way_title "$1")"
	fi
}

# In turn, so that a busy machine disturbs all of them alike; the best of the rounds counts.
measure() {
	local round way start=$SECONDS
	PROGRESS_SQL="SELECT pg_size_pretty(pg_relation_size('arrivals')) || ' written'"
	for ((round = 1; round <= ROUNDS; round++)); do
		for way in plain unique trigger seen; do measure_way "$way" "$round"; done
		if [ "$round" -eq 1 ] && [ $((SECONDS - start)) -gt 20 ]; then ROUNDS=2; fi
	done
	PROGRESS_SQL=''
}
