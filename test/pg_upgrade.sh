#!/usr/bin/env bash
# pg_upgrade with filters: what was known before is known after.
#
#   test/pg_upgrade.sh [OLD_PG_CONFIG NEW_PG_CONFIG]
#
# Both servers have the extension installed. Without arguments: from the server of PG_CONFIG to a copy of it, and to every
# installed server of a later major version that has the extension. The last line counts.
set -euo pipefail

work=$(mktemp -d /tmp/upgrade.XXXXXX)
[ "$(id -u)" -ne 0 ] || chown postgres "$work"
passed=0 failed=0 skipped=0 old='' new=''

as_server() { if [ "$(id -u)" -eq 0 ]; then (cd "$work" && runuser -u postgres -- "$@"); else (cd "$work" && "$@"); fi; }
start() { as_server "$1/pg_ctl" -s -w -D "$2" -l "$work/log" start; }
stop() { as_server "$1/pg_ctl" -s -w -D "$2" -m fast stop; }
run_sql() { as_server "$new/psql" -X -q -At -h "$work" -d postgres -v ON_ERROR_STOP=1 "$@"; }
finish() {
	[ ! -f "$work/old/postmaster.pid" ] || stop "$old" "$work/old" || true
	[ ! -f "$work/new/postmaster.pid" ] || stop "$new" "$work/new" || true
	rm -rf "$work"
}
trap finish EXIT

expect() { # what, is, should be
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
		echo "ok: $1"
	else
		failed=$((failed + 1))
		echo "NOT ok: $1"
		echo "  is:        $2"
		echo "  should be: $3"
	fi
}

init() { # bin directory, data directory
	as_server "$1/initdb" -D "$2" -A trust -E UTF8 --locale=C --no-sync >/dev/null
	cat >>"$2/postgresql.conf" <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$work'
		shared_preload_libraries = 'streamfilter'
		max_prepared_transactions = 5
		fsync = off
	CONF
}

# --- what is upgraded

FILTERS="logged_image logged_log lasting lasting_window grown recent of_enum far.away forgetful"

fill() {
	run_sql <<-'SQL'
		CREATE EXTENSION streamfilter;
		CREATE SCHEMA far;
		CREATE TYPE mood AS ENUM ('bad', 'good');
		CREATE DOMAIN number AS int CHECK (VALUE > 0);
		CREATE FOREIGN TABLE logged_image (id int) SERVER streamfilter OPTIONS (kind 'sbf', memory '256kB');
		CREATE FOREIGN TABLE logged_log (id number) SERVER streamfilter OPTIONS (kind 'lru', memory '256kB');
		CREATE FOREIGN TABLE lasting (id int) SERVER streamfilter OPTIONS (memory '128kB', persistence 'unlogged');
		CREATE FOREIGN TABLE lasting_window (id int) SERVER streamfilter
		  OPTIONS (kind 'timer', window '30 days', keys '20000', persistence 'unlogged');
		CREATE FOREIGN TABLE grown (id int) SERVER streamfilter OPTIONS (kind 'bloom', memory '256kB', grow 'density');
		CREATE FOREIGN TABLE recent (id int) SERVER streamfilter OPTIONS (kind 'timer', window '30 days', memory '256kB');
		CREATE FOREIGN TABLE of_enum (id int, mood mood) SERVER streamfilter OPTIONS (kind 'lru', memory '512kB');
		CREATE FOREIGN TABLE far.away (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '20000', seed '7');
		CREATE FOREIGN TABLE forgetful (id int) SERVER streamfilter OPTIONS (kind 'clq', memory '64kB');
		CREATE TABLE events (id int, note text);
		CREATE TRIGGER zz_drop_duplicates BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('logged_log', 'id');
		CREATE TABLE stored AS SELECT streamfilter_agg(i, 'dsqf(memory=64kB)') AS f FROM generate_series(1, 3000) i;
		INSERT INTO events SELECT i, 'a' FROM generate_series(1, 3000) i;
		BEGIN;
		SAVEPOINT a;
		INSERT INTO events SELECT i, 'b' FROM generate_series(3001, 3100) i;
		ROLLBACK TO a;
		INSERT INTO events SELECT i, 'c' FROM generate_series(3101, 3200) i;
		COMMIT;
	SQL
	for name in $FILTERS; do
		[ "$name" != logged_log ] || continue
		run_sql -c "INSERT INTO $name SELECT i$([ "$name" != of_enum ] || echo ", 'good'::mood") FROM generate_series(1, 10000) i"
	done
	run_sql <<-'SQL'
		SELECT streamfilter_save('logged_image'), streamfilter_save('grown') \g /dev/null
		ALTER TYPE mood RENAME VALUE 'good' TO 'fine';
		ALTER TYPE mood RENAME VALUE 'bad' TO 'good';
		INSERT INTO logged_image SELECT generate_series(10001, 12000);
		INSERT INTO grown SELECT generate_series(10001, 12000);
		DELETE FROM forgetful WHERE id = 9999;
		BEGIN;
		INSERT INTO logged_image SELECT generate_series(12001, 12500);
		PREPARE TRANSACTION 'pending';
	SQL
}

# For every filter how many keys are known, and which, known or not.
answers() {
	for name in $FILTERS; do
		run_sql -c "SELECT '$name', count(*) FILTER (WHERE known), md5(string_agg(known::int::text, '' ORDER BY i))
			FROM (SELECT i, streamfilter_test('$name', i$([ "$name" != of_enum ] || echo ", 'fine'::mood")) AS known
			  FROM generate_series(1, 15000) i) _"
	done
	run_sql -c "SELECT 'stored', count(*) FROM stored, generate_series(1, 4000) i WHERE f @> i"
}

upgrade() { # further options
	(cd "$work" && as_server "$new/pg_upgrade" -b "$old" -B "$new" -d "$work/old" -D "$work/new" -s "$work" "$@") >"$work/upgrade.log" 2>&1
}

test_upgrade() { # further options of pg_upgrade
	local before busy status
	rm -rf "$work/old" "$work/new"
	init "$old" "$work/old"
	start "$old" "$work/old"
	fill
	init "$new" "$work/new"

	# While it is in use, with a transaction that is prepared: pg_upgrade itself does not take that.
	as_server "$new/psql" -X -q -h "$work" -d postgres \
		-c "SELECT count(*) FROM generate_series(1, 300) i, LATERAL (SELECT streamfilter_test('lasting', i), pg_sleep(0.05)) _" >/dev/null &
	busy=$!
	status=0
	upgrade --check || status=$?
	expect "--check of a server in use refuses prepared transactions" \
		"$status $(grep -c 'contains prepared transactions' "$work/upgrade.log")" "1 1"
	run_sql -c "COMMIT PREPARED 'pending'"
	status=0
	upgrade --check || status=$?
	expect "--check of a server in use" "$status" 0
	wait "$busy"
	before=$(answers)
	echo "$before"
	stop "$old" "$work/old"

	status=0
	upgrade "$@" || status=$?
	expect "pg_upgrade $*" "$status" 0
	[ "$status" -eq 0 ] || { tail -n 20 "$work/upgrade.log" && cat "$work"/new/pg_upgrade_output.d/*/log/*dump*.log && return; }
	# Files of the data directory that are no relations are not carried over.
	cp -p "$work/old/streamfilter.unlogged" "$work/new/streamfilter.unlogged.upgrade"
	start "$new" "$work/new"
	expect "every answer is as before" "$(answers)" "$before"
	expect "nothing is set aside, and no file" "$(run_sql -c "SELECT count(*) FROM streamfilter_stats WHERE state NOT LIKE 'loaded%'")$(
		cd "$work/new" && find . -maxdepth 1 -name 'streamfilter.unlogged*')" 0
	run_sql -c "INSERT INTO events SELECT i, 'd' FROM generate_series(2901, 3300) i" 2>/dev/null || true
	expect "the trigger discards repeats, what was rolled back is new" \
		"$(run_sql -c "SELECT count(*) FILTER (WHERE id <= 3000), count(*) FILTER (WHERE id BETWEEN 3001 AND 3100),
			count(*) FILTER (WHERE id BETWEEN 3101 AND 3200), count(*) FILTER (WHERE id > 3200) FROM events")" "3000|100|100|100"
	run_sql -c "INSERT INTO lasting SELECT generate_series(10001, 10100)" -c "INSERT INTO recent SELECT generate_series(10001, 10100)"
	before=$(answers)
	stop "$new" "$work/new"
	start "$new" "$work/new"
	expect "so they are after another restart" "$(answers)" "$before"
	as_server "$new/pg_ctl" -s -w -D "$work/new" -m immediate stop
	start "$new" "$work/new"
	expect "and after a crash, unlogged ones aside" "$(answers | grep -v lasting)" "$(grep -v lasting <<<"$before")"
	expect "the trigger's filter is a dependency" \
		"$(run_sql -c 'DROP FOREIGN TABLE logged_log' 2>&1 | grep -c 'other objects depend on it')" 1
	run_sql -c 'DROP EXTENSION streamfilter CASCADE' 2>/dev/null
	stop "$new" "$work/new"
	expect "no session crashed" "$(grep -cE 'PANIC|terminated by signal [0-9]+: (Seg|Ab)' "$work/log")" 0
}

major_of() { "$1" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/'; }

between() { # pg_configs, further options
	old=$("$1" --bindir) new=$("$2" --bindir)
	echo "-- from $("$1" --version) to $("$2" --version) ${*:3}"
	test_upgrade "${@:3}"
}

to_copy() { # of the same server, which finds its files below another directory at the paths they had
	local path
	for path in "$("$1" --bindir)" "$("$1" --pkglibdir)" "$("$1" --sharedir)"; do
		mkdir -p "$work/copy$(dirname "$path")"
		[ -d "$work/copy$path" ] || cp -a "$path" "$work/copy$path"
	done
	chmod 755 "$work"
	between "$1" "$work/copy$("$1" --bindir)/pg_config" --link
}

if [ $# -eq 2 ]; then
	between "$1" "$2"
else
	config=${PG_CONFIG:-pg_config}
	to_copy "$config"
	others=0
	for other in /usr/lib/postgresql/*/bin/pg_config; do
		[ -x "$other" ] || continue
		[ "$(major_of "$other")" -gt "$(major_of "$config")" ] || continue
		[ -f "$("$other" --pkglibdir)/streamfilter.so" ] || continue
		others=$((others + 1))
		between "$config" "$other"
	done
	if [ "$others" -eq 0 ]; then
		echo "skipped: no server of a later major version has streamfilter"
		skipped=1
	fi
fi
echo "pg_upgrade: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
