#!/usr/bin/env bash
# Weeks in hours: ingest, deletes, savepoints, crashes, a standby that lags, a long transaction and many filters, while images, WAL,
# heaps, memory of a session and what a first use reads are held against their bounds.
#
#   test/soak.sh HOURS [SEED]         .02 is a minute
#
# The extension must be installed for PG_CONFIG (default: pg_config). Servers run in a directory of their own below /tmp, as
# user postgres if root calls. The figures are comments of its output; the directory stays if something was wrong.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -ge 1 ] || {
	sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
	exit 2
}
config=${PG_CONFIG:-pg_config}
for name in "${!PG@}"; do [ "$name" = PG_CONFIG ] || unset "$name"; done

work=$(mktemp -d /tmp/sf.XXXXXX)
cp -r "$root/test/soak" "$root/test/t/Sessions.pm" "$work"
as_server=()
if [ "$(id -u)" -eq 0 ]; then
	chown -R postgres "$work"
	as_server=(runuser -u postgres --)
fi
sources=$(dirname "$("$config" --pgxs)")/../.. # of the server's own tests
cd "$work"
if ${as_server[@]+"${as_server[@]}"} env PATH="$("$config" --bindir):$PATH" TESTDIR="$work" TMPDIR="$work" PGPORT=65432 \
	PGCTLTIMEOUT=600 PG_TEST_TIMEOUT_DEFAULT=1800 \
	PG_REGRESS="$sources/src/test/regress/pg_regress" STREAMFILTER_SECONDS="$(awk -v hours="$1" 'BEGIN { print int(hours * 3600) }')" STREAMFILTER_SEED="${2:-$((RANDOM * 32768 + RANDOM))}" \
	perl -I "$sources/src/test/perl" soak/soak.pl; then
	cd /
	[ -n "${KEEP:-}" ] || rm -rf "$work"
else
	printf 'the servers are in %s\n' "$work"
	exit 1
fi
