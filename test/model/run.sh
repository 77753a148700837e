#!/usr/bin/env bash
# Random transactions against an exact model of rows and keys: see README.md.
#
#   test/model/run.sh SECONDS [SEED [DEFECT]]
#
# The extension must be installed for PG_CONFIG (default: pg_config). Servers run in a directory of their own below /tmp, as
# user postgres if root calls. It ends with `ok`, or with `not ok` and status 1; then the directory stays, with the trace.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ $# -ge 1 ] || {
	sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
	exit 2
}
seconds=$1 seed=${2:-$((RANDOM * 32768 + RANDOM))} defect=${3:-}
config=${PG_CONFIG:-pg_config}
# The caller's connection settings must not lead to another server.
for name in "${!PG@}"; do [ "$name" = PG_CONFIG ] || unset "$name"; done

[ -n "${CHECKER:-}" ] || make -s -C "$root" PG_CONFIG="$config" build/model/checker # an old one may be out of date
work=$(mktemp -d /tmp/sf.XXXXXX) # short: the path of a socket is limited
cp "$root/build/model/checker" "$work"

as_server=()
if [ "$(id -u)" -eq 0 ]; then
	chown -R postgres "$work"
	as_server=(runuser -u postgres --)
fi

printf 'model: seed %s, %s s, in %s\n' "$seed" "$seconds" "$work"
cd "$work"
if ${as_server[@]+"${as_server[@]}"} ./checker "$("$config" --bindir)" "$work" "$seconds" "$seed" "$defect"; then
	printf 'ok model, seed %s\n' "$seed"
	cd /
	rm -rf "$work"
else
	printf 'not ok model, seed %s\n' "$seed"
	exit 1
fi
