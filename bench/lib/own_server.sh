# A server of its own for a script that measures the extension installed for PG_CONFIG (default: pg_config). Sourced
# after test/lib.sh and test/demo/server.sh.
# shellcheck shell=bash

PG_CONFIG=${PG_CONFIG:-pg_config}

quietly() { "$@" >"$WORK/tmp/output" 2>&1 || { cat "$WORK/tmp/output" >&2 && return 1; }; }

own_server() { # setting...; the server ends with the script
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	give_work
	quietly create_server
	restart_with "fsync = off" "max_connections = 100" "client_min_messages = 'warning'" "$@"
}

restart_with() { # setting...
	printf '%s\n' "$@" >>"$WORK/data/postgresql.conf"
	quietly stop_server
	quietly start_server
}

rate() { # script clients seconds [arguments of pgbench]: transactions a second
	"$(pg_bin)/pgbench" -n -h "$WORK" -p 5432 -U postgres -f "$1" -c "$2" -j 2 -T "$3" "${@:4}" postgres 2>&1 |
		awk '/^tps = / { print $3 }'
}

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
