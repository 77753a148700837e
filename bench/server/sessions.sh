# Several sessions on one filter. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

SESSIONS=(1 2 16)

session_titles() {
	title sessions seen "streamfilter_seen on $BATCH keys"
	title sessions insert "INSERT of $BATCH rows, no filter"
	title sessions trigger "INSERT of $BATCH rows, trigger streamfilter_discard"
}

session_tables() {
	{
		filter_sql shared "$MEMORY"
		say "CREATE TABLE s_insert (key bigint, payload text);"
		say "CREATE TABLE s_trigger (key bigint, payload text);"
		discard_sql s_trigger shared
	} | sql
}

# Every session has keys of its own: the result shows how sessions share the filter, not how they wait for each
# other's keys. Together they have a million keys, whatever their number, so that repeats are equally frequent.
session_scripts() { # sessions
	local count=$((1000000 / $1))
	local keys="SELECT :client_id * 1000000000::bigint + (random() * $count)::bigint AS key FROM generate_series(1, $BATCH)"
	say "SELECT count(*) FILTER (WHERE streamfilter_seen('shared', key)) FROM ($keys) AS keys;" >"$WORK/tmp/seen.sql"
	say "INSERT INTO s_insert SELECT key, repeat('x', 60) FROM ($keys) AS keys;" >"$WORK/tmp/insert.sql"
	say "INSERT INTO s_trigger SELECT key, repeat('x', 60) FROM ($keys) AS keys;" >"$WORK/tmp/trigger.sql"
}

session_way() { # case sessions
	sql -c "TRUNCATE s_insert, s_trigger" -c "TRUNCATE shared" -c CHECKPOINT
	session_scripts "$2"
	pgbench_tps "$WORK/tmp/$1.sql" "$2" "$PGBENCH_SECONDS"
}

session_goals() {
	local case
	for case in seen trigger; do
		session_goal $case 2 1 1.9
		session_goal $case 16 2 1
	done
}

# The goal: to scale as well as sessions that insert without a filter.
session_goal() { # case sessions fewer limit
	local reached plain
	reached=$(across_sizes "$1" "$2" "$3")
	plain=$(across_sizes insert "$2" "$3")
	[ -n "$reached" ] && [ -n "$plain" ] || return 0
	goal 5.5 "$(title_of sessions "$1"), $2 sessions: x $3 (without a filter $plain)" "$reached" least \
		"$(awk -v limit="$4" -v plain="$plain" 'BEGIN { print limit < plain ? limit : plain }')" x
}

across_sizes() { # case sessions fewer: the ratio of both throughputs in each round, its median
	awk -F '\t' -v c="$1" -v a="$2" -v b="$3" '
		$1 == "sessions" && $2 == c { value[$3, $4] = $5; rounds[$4] }
		END { for (r in rounds) if (((a, r) in value) && ((b, r) in value)) print value[a, r] / value[b, r] }' \
		"$RESULTS/samples" | median
}

section_sessions() {
	local round sessions case
	session_titles
	session_tables
	for ((round = 1; round <= ROUNDS; round++)); do
		for sessions in "${SESSIONS[@]}"; do
			for case in seen insert trigger; do
				measure sessions $case "$sessions" "$round" session_way $case "$sessions"
			done
		done
	done
	session_goals
	sql -c "DROP TABLE s_insert, s_trigger" -c "DROP FOREIGN TABLE shared"
}
