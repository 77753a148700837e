#!/usr/bin/env bash
# Random transactions against an exact model of rows and keys: see README.md.
#
#   test/model/run.sh SECONDS [SEED [DEFECT]]
#
# The extension must be installed for PG_CONFIG (default: pg_config). Servers run in a directory of their own below /tmp, as
# user postgres if root calls. It ends with `ok`, or with `not ok` and status 1; then the directory stays, with the trace.

# shellcheck source-path=SCRIPTDIR source=../own_servers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../own_servers.sh"

seconds=$1 seed=${2:-$((RANDOM * 32768 + RANDOM))} defect=${3:-}
[ -n "${CHECKER:-}" ] || make -s -C "$root" PG_CONFIG="$config" build/model/checker # an old one may be out of date
enter_work "$root/build/model/checker"
printf 'model: seed %s, %s s, in %s\n' "$seed" "$seconds" "$work"
if ${as_server[@]+"${as_server[@]}"} ./checker "$("$config" --bindir)" "$work" "$seconds" "$seed" "$defect"; then
	printf 'ok model, seed %s\n' "$seed"
	leave_work
else
	printf 'not ok model, seed %s\n' "$seed"
	exit 1
fi
