# The ways to insert the same events, timed in turn: in transactions of BATCH events, from SESSIONS sessions. Sourced by
# test/demo.sh.
# shellcheck shell=bash disable=SC2034,SC2153 # the variables are shared by the demo's files

declare -A BEST_US=() KEPT=() LOST=() MISSED=() REFUSED=() LOG_BYTES=() # by way
ROUNDS=3
UNIQUE_FAILED='' # why there is no UNIQUE index on these keys
COMPARED=(sbf bloom lru) # kinds that get the same memory, each by a trigger, as ways trigger-KIND

way_title() {
	case $1 in
	plain) say "INSERT, nothing checked" ;;
	unique) say "INSERT ... ON CONFLICT DO NOTHING" ;;
	trigger) say "INSERT, trigger streamfilter_discard" ;;
	trigger-*) say "the same, kind ${1#trigger-}" ;;
	settled) say "INSERT, trigger streamfilter_divert" ;;
	seen) say "INSERT ... WHERE NOT streamfilter_seen" ;;
	esac
}

filter_sql() { # way
	local columns='' name options=$FILTER_OPTIONS
	for name in "${KEYS_SQL[@]}"; do columns+="${columns:+, }$name text"; done
	case $1 in trigger-*) options=$(compared_options "${1#trigger-}") ;; esac
	say "CREATE FOREIGN TABLE seen ($columns)"
	say "  SERVER streamfilter OPTIONS ($options);"
}

trigger_sql() {
	say "CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON arrivals"
	say "  FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');"
}

divert_sql() {
	say "CREATE TABLE repeats (LIKE arrivals, diverted_at timestamptz);"
	say "CREATE TRIGGER zz_divert_duplicates BEFORE INSERT ON arrivals"
	say "  FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('seen', 'repeats');"
}

settle_sql() { say "SELECT restored, confirmed, waiting, duplicates FROM streamfilter_settle('repeats', 'arrivals', duplicates => 'delete')"; }

# One transaction: the events $1 <= event_no < $2, in the order of their keys.
insert_sql() {
	local keys batch
	keys=$(joined "${KEYS_SQL[@]}")
	batch="SELECT * FROM events WHERE event_no >= \$1 AND event_no < \$2 ORDER BY $keys, event_no"
	case $1 in
	plain | trigger | trigger-* | settled) say "INSERT INTO arrivals $batch" ;;
	unique) say "INSERT INTO arrivals $batch ON CONFLICT DO NOTHING" ;;
	seen) say "INSERT INTO arrivals SELECT * FROM ($batch OFFSET 0) batch WHERE NOT streamfilter_seen('seen', $keys)" ;;
	esac
}

prepare_way() {
	local name
	say "SET client_min_messages = error;"
	say "DROP VIEW IF EXISTS outcome, kept_events; DROP FUNCTION IF EXISTS error_curve; DROP TABLE IF EXISTS arrivals, repeats;"
	say "DROP PROCEDURE IF EXISTS replay; DROP TABLE IF EXISTS replay_memory; DROP FOREIGN TABLE IF EXISTS seen;"
	say "CREATE TABLE arrivals (event_no bigint"
	for name in "${COLUMNS_SQL[@]}"; do say ", $name text"; done
	say ");"
	case $1 in
	unique) say "CREATE UNIQUE INDEX arrivals_key ON arrivals ($(joined "${KEYS_SQL[@]}"));" ;;
	trigger | trigger-*) filter_sql "$1" && trigger_sql ;;
	settled) filter_sql "$1" && divert_sql ;;
	seen) filter_sql "$1" ;;
	esac
	cat "$ROOT/test/demo/replay.sql"
	say "CHECKPOINT;"
}

run_way() {
	local session start=$EPOCHREALTIME sessions=() insertion status=0
	prepare_way "$1" | sql
	insertion=$(insert_sql "$1")
	start=$EPOCHREALTIME
	for ((session = 0; session < SESSIONS; session++)); do
		sql -c "SET client_min_messages = error" \
			-c "CALL replay('$1', '${insertion//\'/\'\'}', $session, $SESSIONS, $BATCH)" &
		sessions+=($!)
	done
	for session in "${sessions[@]}"; do wait "$session" || status=$?; done
	say "took $((${EPOCHREALTIME/./} - ${start/./})) us"
	[ "$1" != settled ] || settle
	return "$status"
}

settle() {
	local start=$EPOCHREALTIME settled
	settled=$(sql -F ' ' -c "$(settle_sql)")
	say "settled $((${EPOCHREALTIME/./} - ${start/./})) $settled"
}

note_time() {
	local us
	us=$(sed -n 's/^took \([0-9]*\) us$/\1/p' "$WORK/job.log")
	if [ -z "${BEST_US[$1]:-}" ] || [ "$us" -lt "${BEST_US[$1]}" ]; then BEST_US[$1]=$us; fi
}

note_result() { # what the first round kept; read before the next way takes the table
	KEPT[$1]=$(sql -c "ANALYZE arrivals, truth" -c "SELECT count(*) FROM arrivals")
	LOG_BYTES[$1]=$(sql -c "SELECT sum(bytes) FROM replay_memory")
	case $1 in
	unique)
		INDEX_BYTES=$(sql -c "SELECT pg_relation_size('arrivals_key')")
		INDEX_BYTES_FRESH=$(sql -c "REINDEX INDEX arrivals_key" -c "SELECT pg_relation_size('arrivals_key')")
		;;
	trigger | trigger-* | seen | settled) read -r "LOST[$1]" "MISSED[$1]" < <(sql -F ' ' -c "SET enable_nestloop = off" -c "SELECT lost, missed FROM outcome") ;;
	esac
	if [ "$1" = settled ]; then
		read -r SETTLE_US RESTORED CONFIRMED WAITING DUPLICATES < <(sed -n 's/^settled //p' "$WORK/job.log")
	fi
	if [ "$1" = trigger ]; then
		FILTER_KIND=$(sql -c "SELECT kind FROM streamfilter_stats WHERE filter = 'seen'::regclass")
		FILTER_BYTES=$(sql -c "SELECT memory FROM streamfilter_stats WHERE filter = 'seen'::regclass")
		IN_FLIGHT_BYTES=$(sql -c "SELECT sum(allocated_size) FROM pg_shmem_allocations WHERE name = 'streamfilter in flight'")
		sql -F ' ' -P null=NaN -c "SELECT * FROM error_curve(40)" >"$WORK/errors.dat"
	fi
}

measure_way() { # way, round
	[ "$1" != unique ] || [ -z "$UNIQUE_FAILED" ] || return 0
	job "  $2: $(way_title "$1")" run_way "$1"
	if [ "$JOB_STATUS" -eq 0 ]; then
		printf '\n'
		note_time "$1"
		[ -n "${KEPT[$1]:-}" ] || note_result "$1"
	elif [ "$1" = unique ]; then
		printf '  impossible\n'
		UNIQUE_FAILED=$(sed -n 's/.*ERROR:  //p' "$WORK/job.log" | head -n 1)
	elif [[ $1 == trigger-* ]]; then
		printf '  impossible\n'
		REFUSED[$1]=$(sed -n 's/.*ERROR:  //p' "$WORK/job.log" | head -n 1)
	else
		printf '  failed\n'
		cat "$WORK/job.log" >&2
		grep -E 'PANIC|FATAL|terminated by signal' "$WORK/server.log" | tail -n 3 >&2 || true
		die "failed: $(way_title "$1")"
	fi
}

# In turn, so that a busy machine disturbs all of them alike; the best of the rounds counts.
measure() {
	local round way kind start=$SECONDS
	PROGRESS_SQL="SELECT pg_size_pretty(pg_relation_size('arrivals')) || ' written'"
	for ((round = 1; round <= ROUNDS; round++)); do
		for way in plain unique trigger seen; do measure_way "$way" "$round of $ROUNDS"; done
		if [ "$round" -eq 1 ] && [ $((SECONDS - start)) -gt 20 ]; then ROUNDS=1; fi
	done
	for kind in "${COMPARED[@]}"; do [ "$kind" = "$KIND" ] || measure_way "trigger-$kind" "as much memory"; done
	measure_way settled "and settled"
	PROGRESS_SQL=''
}
