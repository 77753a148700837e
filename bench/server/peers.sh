# The same question asked of another server: redis, SET key 1 NX through a Unix socket, pipelined. Sourced by bench/run.sh
# and bench/peers.sh.
# shellcheck shell=bash disable=SC2153,SC2317 # variables are shared; functions are called by name

# Debian's package starts a service of its own when it is installed, so readers install it themselves.
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
	redis_commands "$@"
}

# Writes commands from a file of keys; with a filter, those of the Bloom module.
# shellcheck disable=SC2120 # the argument comes from bench/peers.sh
redis_commands() { # [filter]
	if [ $# -eq 0 ]; then
		awk '{ printf "*4\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\n1\r\n$2\r\nNX\r\n", length($1), $1 }' "$WORK/tmp/keys"
	else
		awk -v f="$1" '{ printf "*3\r\n$6\r\nBF.ADD\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", length(f), f, length($1), $1 }' "$WORK/tmp/keys"
	fi >"$WORK/tmp/commands"
}

redis_start() { # [argument...]
	as_server redis-server --port 0 --unixsocket "$WORK/tmp/redis.sock" --unixsocketperm 700 --save '' --appendonly no \
		--daemonize yes --pidfile "$WORK/tmp/redis.pid" --dir "$WORK/tmp" "$@" >/dev/null
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		! redis-cli -s "$WORK/tmp/redis.sock" ping >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}

redis_load() { # [argument of the server...]
	redis_start "$@"
	redis_pipe
}

redis_pipe() {
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
