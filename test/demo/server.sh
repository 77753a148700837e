# The demo's own server, and what is asked of it. Sourced by test/demo.sh.
# shellcheck shell=bash disable=SC2034,SC2153 # the variables are shared by the demo's files

sql() { # arguments of psql; the answer comes without decoration
	"$(pg_bin)/psql" -XqAt -v ON_ERROR_STOP=1 -h "$WORK" -p 5432 -U postgres -d postgres "$@"
}

job_progress() { [ -z "$PROGRESS_SQL" ] || sql -c "$PROGRESS_SQL" 2>/dev/null || true; }
PROGRESS_SQL=''

# Reachable through a socket in a directory that only its user enters. What would make times jump is off; what makes a
# commit durable is on.
configure_server() {
	cat >>"$WORK/data/postgresql.conf" <<-END
		shared_preload_libraries = 'streamfilter'
		listen_addresses = ''
		port = 5432
		unix_socket_directories = '$WORK'
		unix_socket_permissions = 0700
		shared_buffers = '256MB'
		work_mem = '128MB'
		maintenance_work_mem = '128MB'
		max_wal_size = '8GB'
		autovacuum = off
		jit = off
		synchronize_seqscans = off
		max_parallel_workers_per_gather = 0
		max_parallel_maintenance_workers = 0
	END
}

start_server() {
	as_server "$(pg_bin)/pg_ctl" -D "$WORK/data" -w -l "$WORK/server.log" start || {
		tail -n 20 "$WORK/server.log"
		return 1
	}
}

stop_server() { as_server "$(pg_bin)/pg_ctl" -D "$WORK/data" -w -m fast stop; }

create_server() {
	as_server "$(pg_bin)/initdb" -D "$WORK/data" -U postgres -A trust -E UTF8 --locale=C -N
	configure_server
	start_server
	sql -c 'CREATE EXTENSION streamfilter'
}

reserve_memory() { # the filters of the demo live in what the server reserves at its start
	local bytes
	bytes=$(sql -c "SELECT pg_size_bytes('$MEMORY')")
	[ "$bytes" -gt $((100 << 20)) ] || return 0
	say "streamfilter.shared_memory = '$(((bytes >> 20) * 2))MB'" >>"$WORK/data/postgresql.conf"
	stop_server
	start_server
}

joined() { # the arguments with commas between them
	local text
	printf -v text '%s, ' "$@"
	printf '%s' "${text%, }"
}

create_events() {
	local columns='' name
	for name in "${COLUMNS_SQL[@]}"; do columns+=", $name text"; done
	sql <<-END
		CREATE UNLOGGED TABLE events (event_no bigint GENERATED ALWAYS AS IDENTITY$columns);
	END
}

# Every column is text, and an empty field an empty text: NULLs would never be repeats of one another.
load_events() {
	local columns
	columns=$(joined "${COLUMNS_SQL[@]}")
	create_events
	events | sql -c "COPY events ($columns) FROM STDIN (FORMAT csv, HEADER, DELIMITER '${DELIMITER//\'/\'\'}',
		FORCE_NOT_NULL ($columns), ENCODING 'UTF8')"
	sql -c 'ALTER TABLE events ADD PRIMARY KEY (event_no)' -c 'VACUUM (FREEZE, ANALYZE) events'
}

# The exact truth: of every event, the first one that has its key.
find_truth() {
	sql -c "CREATE UNLOGGED TABLE truth AS SELECT event_no,
		min(event_no) OVER (PARTITION BY $(joined "${KEYS_SQL[@]}")) AS first_no FROM events" \
		-c 'ALTER TABLE truth ADD PRIMARY KEY (event_no)' -c 'VACUUM (FREEZE, ANALYZE) truth'
}
