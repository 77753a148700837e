# A filter on one, two and three other servers. All of them share this machine, so more servers mean more work for the same
# cores: the figures show what a row costs, not what more machines would bring. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

HOLDERS=3
DISTRIBUTED_FILTER="kind 'bloom', memory '64MB', k '6', slices '48'"

distributed_titles() {
	local servers
	title distributed here "INSERT INTO a filter of this server"
	for ((servers = 1; servers <= HOLDERS; servers++)); do
		title distributed "horizontal_$servers" "horizontal, $servers server(s)"
	done
	title distributed vertical "vertical, $HOLDERS servers, all places at once"
	title distributed pipelined "the same, pipelined"
	title distributed repeats_vertical "vertical, repeats only"
	title distributed repeats_pipelined "the same, pipelined"
	title distributed_rows here "row by row, this server"
	title distributed_rows horizontal_3 "row by row, horizontal, $HOLDERS servers"
	title distributed_rows vertical "row by row, vertical, $HOLDERS servers"
}

start_holders() { # beside the benchmark's server, in the same directory of sockets
	local i
	for ((i = 1; i <= HOLDERS; i++)); do
		as_server "$(pg_bin)/initdb" -D "$WORK/holder$i" -U postgres -A trust -E UTF8 --locale=C -N
		cat "$WORK/holder.conf" >>"$WORK/holder$i/postgresql.conf"
		say "port = $((5432 + i))" >>"$WORK/holder$i/postgresql.conf"
		as_server "$(pg_bin)/pg_ctl" -D "$WORK/holder$i" -w -l "$WORK/holder$i.log" start
		sql -p $((5432 + i)) -c 'CREATE EXTENSION streamfilter'
		sql -c "CREATE SERVER holder$i FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$WORK', port '$((5432 + i))')" \
			-c "CREATE USER MAPPING FOR CURRENT_USER SERVER holder$i"
	done
}

configure_holders() {
	cat >"$WORK/holder.conf" <<-END
		shared_preload_libraries = 'streamfilter'
		listen_addresses = ''
		unix_socket_directories = '$WORK'
		shared_buffers = '64MB'
		streamfilter.shared_memory = '300MB'
		autovacuum = off
		fsync = off
	END
}

distributed_filters() {
	local servers
	say "CREATE FOREIGN TABLE here (key bigint) SERVER streamfilter OPTIONS ($DISTRIBUTED_FILTER);"
	for ((servers = 1; servers <= HOLDERS; servers++)); do
		distributed_filter "horizontal_$servers" "$servers" ""
	done
	distributed_filter vertical $HOLDERS ", slicing 'vertical'"
	distributed_filter pipelined $HOLDERS ", slicing 'vertical', probe 'pipelined'"
	for servers in here horizontal_{1..3} vertical pipelined; do say "SELECT FROM streamfilter_test('$servers', 0::bigint);"; done
}

distributed_filter() { # name servers options
	local names
	printf -v names 'holder%d,' $(seq "$2")
	say "CREATE FOREIGN TABLE $1 (key bigint) SERVER streamfilter OPTIONS (servers '${names%,}', $DISTRIBUTED_FILTER$3);"
}

# Messages and bytes of a statement, for each row, from the counters of the slices.
traffic() { # filter rows
	sql -F ' ' -c "SELECT coalesce(sum(messages), 0) AS m, coalesce(sum(bytes_sent + bytes_received), 0) AS b
	               FROM streamfilter_slices WHERE filter = '$1'::regclass"
}

# distributed_case FILTER ROWS STATEMENT...: functions that print SQL; notes count messages and bytes to other
# servers.
distributed_case() {
	local filter=$1 rows=$2 before after
	shift 2
	before=$(traffic "$filter")
	timed "say '\\timing on'" "$@"
	after=$(traffic "$filter")
	say "$before $after" | awk -v n="$rows" '{
		if ($3 > 0) printf "note messages/1000_rows %.1f\nnote bytes/row %.1f\n", ($3 - $1) * 1000 / n, ($4 - $2) / n }'
}

insert_keys() { say "INSERT INTO $1 SELECT key FROM distributed_keys;"; }
seen_keys() { say "SELECT count(*) FROM distributed_few WHERE streamfilter_seen('$1', key);"; }

section_distributed() {
	local round filter rows=$DISTRIBUTED_ROWS few=$((DISTRIBUTED_ROWS / 50))
	distributed_titles
	configure_holders
	stage "  $HOLDERS servers" start_holders
	rows_sql distributed_keys "$rows" | sql
	rows_sql distributed_few "$few" | sql
	for ((round = 1; round <= ROUNDS; round++)); do
		distributed_filters | sql
		for filter in here horizontal_{1..3} vertical pipelined; do
			measure distributed "$filter" "$rows" "$round" distributed_case "$filter" "$rows" "insert_keys $filter"
		done
		for filter in vertical pipelined; do
			measure distributed repeats_$filter "$rows" "$round" distributed_case $filter "$rows" "insert_keys $filter"
		done
		for filter in here horizontal_3 vertical; do
			sql -c "TRUNCATE $filter"
			measure distributed_rows $filter "$few" "$round" distributed_case $filter "$few" "seen_keys $filter"
		done
		drop_distributed_filters
	done
}

drop_distributed_filters() { # here, and their parts on the other servers
	local i names='horizontal_1, horizontal_2, horizontal_3, vertical, pipelined'
	sql -c "DROP FOREIGN TABLE here, $names"
	for ((i = 1; i <= HOLDERS; i++)); do
		sql -p $((5432 + i)) -c 'SET client_min_messages = warning' \
			-c "DROP FOREIGN TABLE IF EXISTS $names"
	done
}
