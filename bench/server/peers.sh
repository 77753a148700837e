# The same question asked of another server: redis, SET key 1 NX through a Unix socket, pipelined. Sourced by bench/run.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

# Debian's package starts a service of its own when it is installed, so that is left to whoever runs this.
section_peers() {
	local round
	if ! command -v redis-server >/dev/null || ! command -v redis-cli >/dev/null; then
		say "  redis: left out, for its package is not installed (redis-server)"
		return
	fi
	title peers redis "redis, SET key 1 NX, pipelined"
	title peers redis_memory "redis, memory per distinct key"
	stage "  $(commas "$REDIS_ROWS") commands" redis_source
	for ((round = 1; round <= ROUNDS; round++)); do
		measure peers redis "$REDIS_ROWS" "$round" redis_load
		measure peers redis_memory "$REDIS_ROWS" "$round" redis_memory
		redis_end
	done
}

redis_source() {
	{
		rows_sql peer_rows "$REDIS_ROWS"
		say "COPY peer_rows TO '$WORK/tmp/keys';"
		say "DROP TABLE peer_rows;"
	} | sql
	awk '{ printf "*4\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\n1\r\n$2\r\nNX\r\n", length($1), $1 }' "$WORK/tmp/keys" \
		>"$WORK/tmp/commands"
}

redis_start() {
	as_server redis-server --port 0 --unixsocket "$WORK/tmp/redis.sock" --unixsocketperm 700 --save '' --appendonly no \
		--daemonize yes --pidfile "$WORK/tmp/redis.pid" --dir "$WORK/tmp" >/dev/null
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		! redis-cli -s "$WORK/tmp/redis.sock" ping >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}

redis_load() {
	redis_start
	local start=$EPOCHREALTIME
	redis-cli -s "$WORK/tmp/redis.sock" --pipe <"$WORK/tmp/commands"
	awk -v start="$start" -v end="$EPOCHREALTIME" 'BEGIN { printf "sample %.6f s\n", end - start }'
}

redis_memory() {
	redis-cli -s "$WORK/tmp/redis.sock" info memory | tr -d '\r' >"$WORK/tmp/redis.info"
	awk -F ':' -v n="$(redis-cli -s "$WORK/tmp/redis.sock" dbsize)" \
		'$1 == "used_memory" { print "sample", $2 / n, "bytes" }' "$WORK/tmp/redis.info"
}

redis_end() {
	[ ! -S "$WORK/tmp/redis.sock" ] || timeout 10 redis-cli -s "$WORK/tmp/redis.sock" shutdown nosave 2>/dev/null || true
}
