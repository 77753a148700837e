#!/usr/bin/env bash
# Filters over several servers, while those are terminated, killed, stopped, restarted, filled up, cut off and failed over;
# an exact model counts the rows that are lost and those that are there twice.
#
#   test/chaos.sh SECONDS [SEED]
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
cp -r "$root/test/chaos" "$root/test/t/HostileProxy.pm" "$work"
as_server=()
if [ "$(id -u)" -eq 0 ]; then
	chown -R postgres "$work"
	as_server=(runuser -u postgres --)
fi
sources=$(dirname "$("$config" --pgxs)")/../.. # of the server's own tests
cd "$work"
if ${as_server[@]+"${as_server[@]}"} env PATH="$("$config" --bindir):$PATH" TESTDIR="$work" TMPDIR="$work" PGPORT=65432 \
	PG_REGRESS="$sources/src/test/regress/pg_regress" STREAMFILTER_SECONDS="$1" STREAMFILTER_SEED="${2:-${STREAMFILTER_SEED:-$((RANDOM * 32768 + RANDOM))}}" \
	perl -I "$sources/src/test/perl" -I "$work" -I "$work/chaos" chaos/chaos.pl; then
	cd /
	[ -n "${KEEP:-}" ] || rm -rf "$work"
else
	printf 'the servers and what the workers have noted are in %s\n' "$work"
	exit 1
fi
