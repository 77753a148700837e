#!/usr/bin/env bash
# Two libraries that derive parameters differently, and one state: what either has saved or written, the other reads.
#
#   test/derivation.sh [OTHER_PG_CONFIG]
#
# The server of PG_CONFIG has the library installed. The other one has it built from sources in which the best k is capped at
# 6 and filters grow at 0.99 of their limit; without an argument it is made here, from what the tree has built and a copy of
# the server. The last line says how many keys were known and how many should be.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PG_CONFIG=${PG_CONFIG:-pg_config}
bindir=$("$PG_CONFIG" --bindir)
work=$(mktemp -d /tmp/derivation.XXXXXX)
server_dir=$work/server
mkdir "$server_dir"
[ "$(id -u)" -ne 0 ] || chown postgres "$work" "$server_dir"

as_server() { if [ "$(id -u)" -eq 0 ]; then (cd "$server_dir" && runuser -u postgres -- "$@"); else "$@"; fi; }
server() { as_server "$1/pg_ctl" -s -w -D "$server_dir/data" -l "$server_dir/log" -m fast "${@:2}"; }
psql_() { as_server "$bindir/psql" -X -q -At -h "$server_dir" -d postgres -v ON_ERROR_STOP=1 "$@"; }
trap 'as_server "$bindir/pg_ctl" -s -D "$server_dir/standby" -m immediate stop >/dev/null 2>&1 || true; server "$bindir" stop >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

# --- the other library

patch() { # in the tree $1
	local kind=$1/src/core/kind model=$1/src/core/model
	replace 'double kMax = 16;' 'double kMax = 6;' "$model/timing_model.cpp"
	replace 'double kMaxDerivedHashes = 16;' 'double kMaxDerivedHashes = 6;' "$kind/bloom.cpp"
	replace 'saturate<std::uint64_t>(limit)' 'saturate<std::uint64_t>(0.99 * limit)' "$model/timing_model.cpp"
}

replace() { # text by text in files, where it must be
	local file
	for file in "${@:3}"; do
		grep -qF "$1" "$file" || { echo "$file has no '$1' any more" >&2 && exit 1; }
		sed -i "s/$(printf %s "$1" | sed 's/[][\.*^$/]/\\&/g')/$2/" "$file"
	done
}

make_other() { # a copy of the server below $work/other, where it finds its files at the paths they had
	local path top=$work/other
	mkdir "$work/tree"
	tar -C "$root" --exclude=./.git --exclude=./build/tests --exclude='tmp_check*' -cf - . | tar -C "$work/tree" -xf -
	patch "$work/tree"
	make -s -C "$work/tree" PG_CONFIG="$PG_CONFIG" with_llvm=no -j2 all
	for path in "$("$PG_CONFIG" --bindir)" "$("$PG_CONFIG" --pkglibdir)" "$("$PG_CONFIG" --sharedir)"; do
		mkdir -p "$top$(dirname "$path")"
		[ -d "$top$path" ] || cp -a "$path" "$top$path"
	done
	install -m 755 "$work/tree/streamfilter.so" "$top$("$PG_CONFIG" --pkglibdir)/"
	other=$top$bindir
	rm -rf "$work/tree"
}

if [ $# -gt 0 ]; then other=$("$1" --bindir); else make_other; fi

# --- the state

as_server "$bindir/initdb" -D "$server_dir/data" -A trust -E UTF8 --locale=C >/dev/null
cat >>"$server_dir/data/postgresql.conf" <<-CONF
	listen_addresses = ''
	unix_socket_directories = '$server_dir'
	shared_preload_libraries = 'streamfilter'
	fsync = off
CONF
FILTERS="few many grown counted window lasting reworded"
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
		CREATE FOREIGN TABLE $1_reworded (id int) SERVER streamfilter
		  OPTIONS (kind 'bloom', memory '1MB', keys '50000', persistence 'unlogged');
	SQL
	for name in $FILTERS; do psql_ -c "INSERT INTO $1_$name SELECT generate_series(1, 30000)"; done
	psql_ -c "ALTER FOREIGN TABLE $1_reworded OPTIONS (ADD layout 'scattered')"
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
# What a filter goes on with is not what this library would derive: the statistics say so.
expect_derivations() { # prefix, own or another's
	local name told
	for name in few grown counted window; do
		told=$(psql_ -c "SELECT coalesce(params ->> 'derived_now', 'own') FROM streamfilter_stats WHERE filter = '$1_$name'::regclass")
		echo "$1_$name: $told"
		if [ "$2" = own ] && [ "$told" != own ]; then exit 1; fi
		if [ "$2" != own ] && [ "$told" = own ]; then exit 1; fi
	done
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
expect_derivations one another
for name in $FILTERS; do psql_ -c "INSERT INTO one_$name SELECT generate_series(50001, 50500)"; done
define two
expect_derivations two own
server "$other" stop
# A standby with the first library has looked at a filter before the primary, with the other one, has saved anything of it.
server "$other" start
psql_ -c "CREATE FOREIGN TABLE fresh (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '1MB', keys '50000')" \
	-c "CREATE FOREIGN TABLE larger (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '50000', fpr '0.0001')"
as_server "$bindir/pg_basebackup" -D "$server_dir/standby" -h "$server_dir" -R -c fast
cat >>"$server_dir/standby/postgresql.conf" <<-CONF
	port = 5433
CONF
standby() { as_server "$bindir/pg_ctl" -s -w -D "$server_dir/standby" -l "$server_dir/log" -m fast "$@"; }
on_standby() { as_server "$bindir/psql" -X -q -At -h "$server_dir" -p 5433 -d postgres -v ON_ERROR_STOP=1 "$@"; }
standby start
count_on_standby() { on_standby -c "SELECT count(*) FROM generate_series(1, 20000) i WHERE streamfilter_test('$1', i)"; }
on_standby -c "SELECT streamfilter_test('fresh', 1), streamfilter_test('larger', 1)" >/dev/null
psql_ -c 'INSERT INTO fresh SELECT generate_series(1, 20000)' -c 'INSERT INTO larger SELECT generate_series(1, 20000)'
until [ "$(on_standby -c "SELECT pg_last_wal_replay_lsn() >= '$(psql_ -c 'SELECT pg_current_wal_lsn()')'")" = t ]; do sleep 0.1; done
for name in fresh larger; do
	count=$(count_on_standby "$name")
	echo "$name on a standby: $count of 20000"
	known=$((known + count)) wanted=$((wanted + 20000))
done
echo "loaded anew: $(grep -c 'is loaded anew' "$server_dir/log")"
standby stop
server "$other" stop
echo "-- back to the first"
server "$bindir" start
ask one 50500
ask two 50000
expect_derivations one own
expect_derivations two another
if grep -E 'PANIC|terminated by signal|set aside' "$server_dir/log"; then exit 1; fi
echo "known: $known of $wanted"
[ "$known" -eq "$wanted" ]
