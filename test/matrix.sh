#!/usr/bin/env bash
# Runs the suites on several versions of PostgreSQL and prints a table.
#
#   test/matrix.sh [MAJOR…]      15 to 19 when none is named; SUITES="regress isolation" runs less
#
# A server is, in this order: Debian's, as installed; Debian's package, where the release has one; built from Debian's
# source package, of this release or a newer one, with assertions (test/servers/asserted.sh; it is kept for the next time).
# Ends with 1 if a suite failed; versions that cannot be had are said, and no failure. Debian 12 or 13, as root or with sudo.

set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SUITES=${SUITES:-regress isolation tap}
LOGS=$(mktemp -d)
FAILED=0

debian_config() { # major: where pg_config of Debian's server is, if there is one to build against
	local config=/usr/lib/postgresql/$1/bin/pg_config
	[ -x "$config" ] && [ -e "$("$config" --pgxs)" ] && [ -x "$("$config" --bindir)/postgres" ] && printf '%s\n' "$config"
}

install_server() { # major
	local sudo=()
	[ "$(id -u)" -eq 0 ] || sudo=(sudo)
	apt-cache show "postgresql-server-dev-$1" >/dev/null 2>&1 || return 1
	"${sudo[@]}" apt-get -y --no-install-recommends install "postgresql-$1" "postgresql-server-dev-$1" >"$LOGS/$1.install" 2>&1
}

server() { # major: prints its pg_config
	debian_config "$1" && return
	if install_server "$1" && debian_config "$1"; then return; fi
	"$HERE/servers/asserted.sh" "$1" >"$LOGS/$1.server" 2>&1 && tail -n 1 "$LOGS/$1.server"
}

row() { printf '%-8s %-34s %s\n' "$@"; }

row major server result
# Words of a list.
# shellcheck disable=SC2086
for major in "${@:-15 16 17 18 19}"; do
	for version in $major; do
		if ! config=$(server "$version"); then
			row "$version" - "not to be had: $(tail -n 1 "$LOGS/$version.server" 2>/dev/null || true)"
			continue
		fi
		status=0
		PG_CONFIG=$config "$HERE/all.sh" $SUITES >"$LOGS/$version.log" 2>&1 || status=$?
		row "$version" "$("$config" --version)" "$(tail -n 1 "$LOGS/$version.log")"
		[ "$status" -eq 0 ] || FAILED=1
	done
done
printf 'logs: %s\n' "$LOGS"
exit "$FAILED"
