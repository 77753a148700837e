# For programs that start servers of their own: sourced, with their arguments, by test/chaos.sh, test/soak.sh and
# test/model/run.sh. All is in a directory below /tmp, and runs as user postgres if root calls.
# shellcheck shell=bash

set -euo pipefail

# shellcheck disable=SC2034 # for the caller
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -ge 1 ] || {
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}
config=${PG_CONFIG:-pg_config}
# The caller's connection settings must not lead to another server.
for name in "${!PG@}"; do [ "$name" = PG_CONFIG ] || unset "$name"; done

enter_work() { # file…: what is wanted there
	work=$(mktemp -d /tmp/sf.XXXXXX) # short: the path of a socket is limited
	cp -r "$@" "$work"
	as_server=()
	if [ "$(id -u)" -eq 0 ]; then
		chown -R postgres "$work"
		as_server=(runuser -u postgres --)
	fi
	cd "$work"
}

leave_work() {
	cd /
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}

# A script with the modules of the server's own tests. The directory stays if something was wrong.
run_perl() { # script, what is left then, NAME=VALUE…
	local sources
	sources=$(dirname "$("$config" --pgxs)")/../..
	if ${as_server[@]+"${as_server[@]}"} env PATH="$("$config" --bindir):$PATH" TESTDIR="$work" TMPDIR="$work" PGPORT=65432 \
		PG_REGRESS="$sources/src/test/regress/pg_regress" "${@:3}" \
		perl -I "$sources/src/test/perl" -I "$work" -I "$(dirname "$1")" "$1"; then
		leave_work
	else
		printf '%s are in %s\n' "$2" "$work"
		exit 1
	fi
}
