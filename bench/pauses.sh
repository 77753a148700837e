#!/usr/bin/env bash
# How long rows wait for a filter: during streamfilter_resize(), after a restart, at the first use of a large one, and
# during TRUNCATE. Prints a table in Markdown; docs/benchmarks.md explains it.
#
#   bench/pauses.sh [MB]     of the filter that is restored, 4096; the largest has twice as many. 64 is a quick try.
#
# Makes a server of its own from PG_CONFIG, which has the extension, below TMPDIR; run it as a user who may start one. It
# takes three times as much memory as the filter has, and about ten minutes for 4096.
set -euo pipefail

size=${1:-4096}
bin=$("${PG_CONFIG:-pg_config}" --bindir)
work=$(mktemp -d "${TMPDIR:-/tmp}/pauses.XXXXXX")
log=$work/log
# shellcheck disable=SC2329 # called by trap
finish() {
	"$bin/pg_ctl" -D "$work/data" -m immediate stop >>"$log" 2>&1 || true
	rm -rf "$work" "/dev/shm/pauses.$$"
}
trap finish EXIT
export PGHOST=$work PGDATABASE=postgres PGUSER=postgres PGOPTIONS='-c client_min_messages=warning'

"$bin/initdb" -A trust -U postgres -D "$work/data" >"$log"
cat >>"$work/data/postgresql.conf" <<-CONF
	listen_addresses = ''
	unix_socket_directories = '$work'
	shared_preload_libraries = 'streamfilter'
	streamfilter.shared_memory = '1MB'
	streamfilter.dynamic_memory = '$((size * 3))MB'
	max_wal_size = '16GB'
CONF
start() { "$bin/pg_ctl" -w -D "$work/data" -l "$work/server.log" -o "$*" start >>"$log" 2>&1; }
stop() { "$bin/pg_ctl" -w -D "$work/data" -m fast stop >>"$log" 2>&1; }
query() { "$bin/psql" -X -q -At -v ON_ERROR_STOP=1 "$@"; }
seconds() { # statement
	{ printf '%s\n' '\timing on' "$1;"; } | query | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | awk '{ printf "%.3f", $1 / 1000 }'
}
since() { awk -v from="$1" -v to="$(date +%s.%N)" 'BEGIN { printf "%.3f", to - from }'; }
row() { printf '| %s | %s |\n' "$1" "$2"; }
create() { # name, MB
	query -c "CREATE FOREIGN TABLE $1 (id bigint) SERVER streamfilter OPTIONS (memory '$2MB', slices '64')"
}
fill() { query -c "INSERT INTO $1 SELECT generate_series(1, $(($2 * 512)))"; } # name, MB: nearly all of its pages
longest() { cat "$work"/waits.* | awk '$3 > most { most = $3 } END { printf "%.3f", most / 1e6 }'; }

start
query -c 'CREATE EXTENSION streamfilter'
echo '| | s |'
echo '|---|---|'

create large $((size * 2))
row "first row into a new filter of $((size * 2)) MB" "$(seconds 'INSERT INTO large VALUES (1)')"
fill large $((size * 2))
row "TRUNCATE of $((size * 2)) MB" "$(seconds 'TRUNCATE large')"
fill large $((size * 2))
row "DROP of $((size * 2)) MB" "$(seconds 'DROP FOREIGN TABLE large')"

create seen $((size / 4))
query -c 'CREATE TABLE events (id bigint)' -c "CREATE TRIGGER discard BEFORE INSERT ON events FOR EACH ROW
	EXECUTE FUNCTION streamfilter_discard('seen')"
fill seen $((size / 4))
printf '%s\n' '\set id random(1, 1000000000000)' 'INSERT INTO events VALUES (:id);' >"$work/insert.sql"
for to in $((size / 2)) "$size"; do
	(cd "$work" && exec "$bin/pgbench" -n -c 4 -j 2 -T 3600 -f insert.sql -l --log-prefix=waits) >>"$log" 2>&1 &
	bench=$!
	sleep 2
	took=$(seconds "CALL streamfilter_resize('seen', '${to}MB')")
	kill "$bench"
	wait "$bench" || true
	row "longest wait of a row while streamfilter_resize() to $to MB runs ($took s)" "$(longest)"
	rm -f "$work"/waits.*
done
fill seen "$size"
query -c "SELECT streamfilter_save('seen')" >>"$log"

head -c "${size}M" /dev/zero >"$work/copied"
from=$(date +%s.%N)
cp "$work/copied" "/dev/shm/pauses.$$"
row "cp of $size MB into /dev/shm" "$(since "$from")"
rm -f "/dev/shm/pauses.$$" "$work/copied"
stop
start -c streamfilter.restore_workers=0
row "restart, $size MB, no worker: the first row" "$(seconds 'INSERT INTO events VALUES (-1)')"
stop
start -c streamfilter.restore_workers=1
row "restart, $size MB, a worker: the first row" "$(seconds 'INSERT INTO events VALUES (-2)')"
restored="FROM streamfilter_stats WHERE filter = 'seen'::regclass"
until [ "$(query -c "SELECT restored IS NOT NULL $restored")" = t ]; do sleep .05; done
took="round(extract(epoch FROM restored - pg_postmaster_start_time()), 3)"
row "restart, $size MB, a worker: all of it, from the start of the server" "$(query -c "SELECT $took $restored")"
