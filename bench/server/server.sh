# The benchmark's own server, and timing in it. Sourced by bench/run.sh, after test/demo/server.sh.
# shellcheck shell=bash disable=SC2153 # the variables are shared by the benchmark's files

# Added to the settings of the demo. A section that needs others says so.
configure_benchmark() {
	# shellcheck disable=SC2015 # say does not fail
	cat >>"$WORK/data/postgresql.conf" <<-END
		shared_buffers = '1GB'
		huge_pages = '$([ "$HUGE_PAGES" = on ] && say try || say off)'
		work_mem = '2GB'
		hash_mem_multiplier = 2
		maintenance_work_mem = '512MB'
		max_wal_size = '32GB'
		checkpoint_timeout = '1h'
		fsync = off
		statement_timeout = '600s'
		max_connections = 50
		client_min_messages = 'warning'
		streamfilter.shared_memory = '${SHARED_MEMORY}'
	END
}

# In a large filter, most of a key's time goes into finding its page, so the server gets huge pages if root can
# reserve them; they are given back at the end.
HUGE_BEFORE=''
NR_HUGEPAGES=/proc/sys/vm/nr_hugepages

reserve_huge_pages() {
	local kilobytes=$((3 * 1024 * 1024)) page
	{ [ "$HUGE_PAGES" = on ] && is_root && [ -w "$NR_HUGEPAGES" ]; } || return 0
	page=$(awk '/^Hugepagesize/ { print $2 }' /proc/meminfo)
	HUGE_BEFORE=$(cat "$NR_HUGEPAGES")
	say $((HUGE_BEFORE + kilobytes / page)) >"$NR_HUGEPAGES"
}

release_huge_pages() { [ -z "$HUGE_BEFORE" ] || say "$HUGE_BEFORE" >"$NR_HUGEPAGES"; }

page_size() { # of the server's shared memory
	local pid
	pid=$(head -n 1 "$WORK/data/postmaster.pid")
	if grep -qE '^KernelPageSize: +(2048|[1-9][0-9]{5,}) kB' "/proc/$pid/smaps" 2>/dev/null; then say huge; else say small; fi
}

create_benchmark_server() {
	as_server "$(pg_bin)/initdb" -D "$WORK/data" -U postgres -A trust -E UTF8 --locale=C -N
	configure_server
	configure_benchmark
	start_server
	sql -c 'CREATE EXTENSION streamfilter'
}

set_server() { # name = value ...: settings that need no restart
	local setting
	for setting in "$@"; do sql -c "ALTER SYSTEM SET $setting"; done
	sql -c 'SELECT pg_reload_conf()' >/dev/null
	sleep 0.2
}

# timed SCRIPT...: functions that print SQL; the last statement's time is the sample.
timed() {
	local script
	for script in "$@"; do eval "$script"; done | sql |
		awk '/^Time:/ { ms = $2; next } { print } END { printf "sample %.6f s\n", ms / 1000 }'
}

# The same; the sample is the time of all statements since \timing on.
timed_all() {
	local script
	for script in "$@"; do eval "$script"; done | sql | awk '/^Time:/ { ms += $2 } END { printf "sample %.6f s\n", ms / 1000 }'
}

# pgbench_us SCRIPT SESSIONS SECONDS [SETTING]: the sample is the time of a transaction, in microseconds.
pgbench_us() {
	env PGOPTIONS="${4:+-c $4}" "$(pg_bin)/pgbench" -n -M prepared -h "$WORK" -p 5432 -U postgres -f "$1" -c "$2" -j "$2" \
		-T "$3" postgres >"$WORK/tmp/pgbench.out"
	cat "$WORK/tmp/pgbench.out"
	awk -v sessions="$2" '/^tps = / { printf "sample %.3f us\n", sessions * 1e6 / $3 }' "$WORK/tmp/pgbench.out"
}

pgbench_tps() { pgbench_us "$@" | awk -v sessions="$2" '/^sample/ { printf "sample %.3f tps\n", sessions * 1e6 / $2 }'; }

# filter_sql NAME MEMORY [OPTION...]: an empty filter of the benchmark's kind, with its memory already taken.
filter_sql() {
	local name=$1 memory=$2
	shift 2
	say "DROP FOREIGN TABLE IF EXISTS $name CASCADE;"
	say "CREATE FOREIGN TABLE $name (key bigint) SERVER streamfilter"
	say "  OPTIONS ($(joined "$FILTER" "memory '$memory'" "$@"));"
	say "SELECT FROM streamfilter_test('$name', 0::bigint);"
}

discard_sql() { # table filter
	say "CREATE TRIGGER zz_discard BEFORE INSERT ON $1 FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('$2');"
}

# rows_sql TABLE ROWS [COLUMNS]: that many rows in random order, 49 % of them distinct. Draws with replacement from d
# keys give d (1 - e^(-rows/d)) distinct ones, which is .49 of the rows for rows/d = 1.6485.
rows_sql() {
	say "SELECT FROM setseed(0.5);"
	say "CREATE UNLOGGED TABLE $1 AS"
	say "  SELECT hashint8extended((random() * $2 / 1.6485)::bigint, 0) AS key${3:-} FROM generate_series(1, $2);"
	say "VACUUM (FREEZE, ANALYZE) $1;"
}
