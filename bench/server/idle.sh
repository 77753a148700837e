# The cost of the library for statements that do not use it. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

idle_titles() {
	local section
	for section in idle_select idle_insert; do
		title $section without "library not loaded"
		title $section with "library preloaded, no filter used"
	done
}

idle_source() {
	"$(pg_bin)/pgbench" -i -q -s 1 -h "$WORK" -p 5432 -U postgres postgres
	sql -c "CREATE UNLOGGED TABLE idle (key bigint)"
	say '\set aid random(1, 100000)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;' >"$WORK/tmp/idle_select.sql"
	say 'INSERT INTO idle VALUES (1);' >"$WORK/tmp/idle_insert.sql"
}

restart_with() { # libraries
	say "shared_preload_libraries = '$1'" >>"$WORK/data/postgresql.conf"
	stop_server
	start_server
	sql -c "SELECT FROM pgbench_accounts" >/dev/null
}

section_idle() {
	local round case order=(without with)
	local -A libraries=([without]='' [with]=streamfilter)
	idle_titles
	stage "  table" idle_source
	for ((round = 1; round <= IDLE_ROUNDS; round++)); do
		for case in "${order[@]}"; do
			stage "  restart" restart_with "${libraries[$case]}"
			measure idle_select "$case" 1 "$round" pgbench_us "$WORK/tmp/idle_select.sql" 1 "$PGBENCH_SECONDS"
			measure idle_insert "$case" 1 "$round" pgbench_us "$WORK/tmp/idle_insert.sql" 1 "$PGBENCH_SECONDS"
		done
		order=("${order[1]}" "${order[0]}")
	done
	goal 5.7 "SELECT by primary key, library preloaded: x not loaded" \
		"$(per_round ratio idle_select 1 with without)" most 1.01 x
	goal 5.7 "INSERT of a row, library preloaded: x not loaded" \
		"$(per_round ratio idle_insert 1 with without)" most 1.01 x
	sql -c "DROP TABLE idle, pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history"
}
