#!/usr/bin/env bash
# Two libraries that derive parameters differently, and one state: what either has saved or written, the other reads.
#
#   PG_CONFIG=… test/derivation.sh OTHER_PG_CONFIG
#
# Both servers have the library installed, the other one built from sources in which the best k is capped at 6 and filters
# grow at 0.99 of their limit:
#
#   sed -i 's/kMaxDerivedHashes = 16/kMaxDerivedHashes = 6/; s/saturate<std::uint64_t>(limit)/saturate<std::uint64_t>(0.99 * limit)/' \
#     src/core/kind/bloom.cpp src/core/kind/timing_options.cpp
#
# The last line says how many keys were known and how many should be.
set -euo pipefail

bindir=$("${PG_CONFIG:-pg_config}" --bindir) other=$("$1" --bindir)
work=$(mktemp -d /tmp/derivation.XXXXXX)
[ "$(id -u)" -ne 0 ] || chown postgres "$work"

as_server() { if [ "$(id -u)" -eq 0 ]; then (cd "$work" && runuser -u postgres -- "$@"); else "$@"; fi; }
server() { as_server "$1/pg_ctl" -s -w -D "$work/data" -l "$work/log" -m fast "${@:2}"; }
psql_() { as_server "$bindir/psql" -X -q -At -h "$work" -d postgres -v ON_ERROR_STOP=1 "$@"; }
trap 'server "$bindir" stop >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

as_server "$bindir/initdb" -D "$work/data" -A trust -E UTF8 --locale=C >/dev/null
cat >>"$work/data/postgresql.conf" <<-CONF
	listen_addresses = ''
	unix_socket_directories = '$work'
	shared_preload_libraries = 'streamfilter'
CONF

FILTERS="few many grown counted window lasting"
define() { # in a database of its own for the library that has made them
	psql_ <<-SQL
		CREATE FOREIGN TABLE $1_few (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', keys '50000');
		CREATE FOREIGN TABLE $1_many (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '50000', fpr '0.0001');
		CREATE FOREIGN TABLE $1_grown (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', keys '50000', grow 'density');
		CREATE FOREIGN TABLE $1_counted (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', keys '50000', grow 'cardinality');
		CREATE FOREIGN TABLE $1_window (id int) SERVER streamfilter
		  OPTIONS (kind 'timer', memory '8MB', window '1 day', keys '60000', grow 'density');
		CREATE FOREIGN TABLE $1_lasting (id int) SERVER streamfilter
		  OPTIONS (kind 'bloom', memory '1MB', keys '50000', persistence 'unlogged');
	SQL
	for name in $FILTERS; do psql_ -c "INSERT INTO $1_$name SELECT generate_series(1, 30000)"; done
	psql_ -c "SELECT streamfilter_save('$1_few'), streamfilter_save('$1_grown')" >/dev/null
	for name in $FILTERS; do psql_ -c "INSERT INTO $1_$name SELECT generate_series(30001, 50000)"; done
	psql_ <<-SQL
		CREATE TABLE $1_values AS
		SELECT 'grown' AS name, streamfilter_agg(i, 'bloom(memory=256kB, keys=50000, grow=density)')::text AS body
		FROM generate_series(1, 50000) i
		UNION ALL SELECT 'few', streamfilter_agg(i, 'bloom(memory=256kB, keys=50000)')::text FROM generate_series(1, 50000) i
		UNION ALL SELECT 'stored', streamfilter_value('$1_grown')::text;
	SQL
}
known=0 wanted=0
ask() { # prefix, keys
	for name in $FILTERS; do
		count=$(psql_ -c "SELECT count(*) FROM generate_series(1, $2) i WHERE streamfilter_test('$1_$name', i)")
		printf '%s_%s: %s of %s, %s\n' "$1" "$name" "$count" "$2" \
			"$(psql_ -c "SELECT coalesce(state, '') FROM streamfilter_stats WHERE filter = '$1_$name'::regclass")"
		known=$((known + count)) wanted=$((wanted + $2))
	done
	for name in grown few stored; do
		count=$(psql_ -c "CREATE TEMP TABLE v AS SELECT body::streamfilter AS f FROM $1_values WHERE name = '$name'" \
			-c "SELECT count(*) FROM v, generate_series(25, 50000, 25) i WHERE f @> i")
		printf 'value %s of %s: %s of 2000\n' "$name" "$1" "$count"
		known=$((known + count)) wanted=$((wanted + 2000))
	done
}

server "$bindir" start
psql_ -c 'CREATE EXTENSION streamfilter'
define one
server "$bindir" stop
echo "-- the other library reads the state of one, and makes its own"
server "$other" start
ask one 50000
for name in $FILTERS; do psql_ -c "INSERT INTO one_$name SELECT generate_series(50001, 50500)"; done
define two
server "$other" stop
echo "-- back to the first"
server "$bindir" start
ask one 50500
ask two 50000
if grep -E 'PANIC|terminated by signal|set aside' "$work/log"; then exit 1; fi
echo "known: $known of $wanted"
[ "$known" -eq "$wanted" ]
