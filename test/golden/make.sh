#!/usr/bin/env bash
# Writes what the installed version of streamfilter makes of the cases in cases.sql, for every later version to read:
#
#   PG_CONFIG=… test/golden/make.sh     → test/golden/VERSION/{values,filters,images,logs,hashes,unlogged}.tsv, unlogged.gz.base64
#
# Until a version is released, a change of bytes comes with a new set; that of a released version stays as it is.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bindir=$("${PG_CONFIG:-pg_config}" --bindir)
work=$(mktemp -d /tmp/golden.XXXXXX)

as_server() { if [ "$(id -u)" -eq 0 ]; then (cd "$work" && runuser -u postgres -- "$@"); else "$@"; fi; }
psql_() { as_server "$bindir/psql" -X -q -h "$work" -d postgres -v ON_ERROR_STOP=1 "$@"; }
server() { as_server "$bindir/pg_ctl" -s -w -D "$work/data" -l "$work/log" "$@"; }
trap 'server -m immediate stop || true; rm -rf "$work"' EXIT
[ "$(id -u)" -ne 0 ] || chown postgres "$work"

as_server "$bindir/initdb" -D "$work/data" -A trust -E UTF8 --locale=C >/dev/null
cat >>"$work/data/postgresql.conf" <<-CONF
	listen_addresses = ''
	unix_socket_directories = '$work'
	shared_preload_libraries = 'streamfilter'
	timezone = 'UTC'
	autovacuum = off
	streamfilter.shared_memory = '24MB'
CONF
server start
psql_ -c 'CREATE EXTENSION streamfilter'
psql_ <"$here/cases.sql"
out=$here/$(psql_ -At -c "SELECT extversion FROM pg_extension WHERE extname = 'streamfilter'")
rm -rf "$out"
mkdir "$out"

copy() { psql_ -c "COPY ($1) TO STDOUT"; }

# Named filters: the first keys in the image, the others in the log.
logged_and_values() {
	psql_ -c 'SELECT golden_filter(name, options) FROM golden_case' \
		-c 'SELECT golden_insert(name, options, 1) FROM golden_case' -c 'SELECT streamfilter_save(name::regclass) FROM golden_case' \
		-c 'SELECT golden_insert(name, options, 2) FROM golden_case' >/dev/null
	server restart

	local base64="translate(encode(data, 'base64'), E'\\n', '')"
	copy "WITH filled AS (
        SELECT name, streamfilter_agg(id, golden_value(options)) AS value
        FROM golden_case, golden_keys(3) GROUP BY name, options)
      SELECT name, value::text, translate(encode(streamfilter_send(value), 'base64'), E'\\n', ''), golden_answers(value)
      FROM filled ORDER BY name" >"$out/values.tsv"
	copy "SELECT name, options, golden_answers(name::regclass) FROM golden_case ORDER BY name" >"$out/filters.tsv"
	copy "SELECT relname, chunks, number, sum, image, saved, $base64 FROM _streamfilter.streamfilter_image
      JOIN pg_class f ON f.oid = filter ORDER BY relname, number" >"$out/images.tsv"
	copy "SELECT relname, change, number, identity, $base64 FROM _streamfilter.streamfilter_log
      JOIN pg_class f ON f.oid = filter ORDER BY relname, number" >"$out/logs.tsv"
	psql_ -At -F $'\t' >"$out/hashes.tsv" <<-'SQL'
		SELECT format('SELECT %L, streamfilter_hash(%s), streamfilter_hash(%s, ''bloom(memory=1kB, k=1, seed=12345)''::streamfilter)',
		              key, key, key) FROM golden_key ORDER BY key COLLATE "C" \gexec
	SQL
}

# One filter of each kind, with OIDs that the test can have, too.
unlogged() {
	psql_ -c "DELETE FROM golden_case WHERE name NOT IN
		(SELECT min(name) FROM golden_case GROUP BY substring(options FROM 'kind ''(\w+)'''))" >/dev/null
	psql_ -c 'SELECT golden_unlogged(name, options, (20000 + 20 * row_number() OVER (ORDER BY name))::int::oid) FROM golden_case' \
		-c 'SELECT golden_insert(name, options, 3) FROM golden_case' >/dev/null
	copy "SELECT name, options, name::regclass::oid AS relation, golden_answers(name::regclass) FROM golden_case ORDER BY name" >"$work/unlogged.tsv"
	server stop
	gzip -9n <"$work/data/streamfilter.unlogged" | base64 >"$out/unlogged.gz.base64"
	cp "$work/unlogged.tsv" "$out/"
}

logged_and_values
psql_ -c "DO \$\$ DECLARE f text; BEGIN
  FOR f IN SELECT name FROM golden_case LOOP EXECUTE format('DROP FOREIGN TABLE %I', f); END LOOP; END \$\$"
unlogged
du -bc "$out"/* | tail -1
