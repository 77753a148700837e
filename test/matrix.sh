#!/usr/bin/env bash
# Runs the suites on several versions of PostgreSQL and prints a table, in Markdown: passed, failed, skipped.
#
#   test/matrix.sh [--brief] [--installed] [SERVER…]      15 to 19 when none is named
#
# A SERVER is a major version, or one with where it is to be had: 16=FOLDER or 16=ARCHIVE of PostgreSQL's sources,
# 17=/path/of/pg_config, 18=CHROOT, the folder of a Debian system. A version alone is looked for in this order: as installed
# from Debian's packages; Debian's packages of this release; those of a newer release, in a system of its own that is made
# with debootstrap; Debian's source package, built with assertions (test/servers/asserted.sh). What was made is kept in
# ${XDG_CACHE_HOME:-~/.cache}/streamfilter for the next time.
#
# --brief compiles without optimization across files and runs regress alone. --installed takes what is installed beside the
# release's own version, and does nothing where there is none. SUITES="regress tap" runs others than regress, isolation,
# unit and tap; TAP='test/t/restore_*.pl' is a part of the last. Ends with 1 if a suite failed; versions that cannot be had are said,
# and no failure. Debian 12 or 13, as root or with sudo.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=servers/chroot.sh
source "$ROOT/test/servers/chroot.sh"

# shellcheck disable=SC2031 # changed for the server's user only
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/streamfilter
LOGS=$(mktemp -d)
COPIES=$(mktemp -d /tmp/streamfilter.XXXXXX)
FAILED=0

# shellcheck disable=SC2317 # by a trap
finish() {
	local status=$?
	trap - EXIT
	rm -rf "$COPIES"
	exit "$status"
}

# --- Where a server is to be had: each prints how it is reached, "here PG_CONFIG" or "chroot FOLDER" ------------------------

is_packaged() { # major: in this release
	apt-cache show "postgresql-server-dev-$1" >/dev/null 2>&1 && apt-cache show "postgresql-$1" >/dev/null 2>&1
}

install_server() { # major
	as_root apt-get -y --no-install-recommends install "postgresql-$1" "postgresql-server-dev-$1"
}

# From a copy, for what root keeps is closed to the server's user. A server finds its files itself.
built() { # major [sources]
	"$ROOT/test/servers/asserted.sh" "$@" || return 1
	chmod 755 "$COPIES"
	cp -a "$CACHE/postgresql-$1-asserted-$RECIPE" "$COPIES/$1"
	PLACE="here $COPIES/$1/bin/pg_config"
}
RECIPE=$(sed -n 's/^RECIPE=\([0-9]*\).*/\1/p' "$ROOT/test/servers/asserted.sh")

named() { # major place
	if [ -x "$2" ] && [ ! -d "$2" ]; then
		PLACE="here $2"
	elif [ -e "$2/etc/debian_version" ]; then
		install_in_chroot "$2" "$1" && PLACE="chroot $2"
	else
		built "$1" "$(realpath "$2")"
	fi
}

find_server() { # SERVER: sets PLACE
	local major=${1%%=*} config
	PLACE=''
	if [[ $1 == *=* ]]; then
		named "$major" "${1#*=}"
	elif config=$(debian_config "$major"); then
		PLACE="here $config"
	elif is_packaged "$major"; then
		install_server "$major" && PLACE="here $(debian_config "$major")"
	else
		in_newer_release "$major" || built "$major"
	fi
}

# --- The suites ---------------------------------------------------------------------------------------------------------

# Two runs on one server would replace what the other has installed. A lock ends with its last process.
lock_system() { # folder
	exec 9<"$1"
	flock -n 9 || die "$1 is in use by another run of test/matrix.sh: wait for its end, or give this one a copy of the system"
}

run_suites() { # major PLACE
	local way where status=0
	read -r way where <<<"$2"
	if [ "$way" = here ]; then
		lock_system "$("$where" --pkglibdir)"
		# shellcheck disable=SC2086 # words of a list
		PG_CONFIG=$where SUITE_RESULTS=$LOGS/$1.results LD_LIBRARY_PATH=$("$where" --libdir) "$ROOT/test/all.sh" $SUITES || status=$?
	else
		lock_system "$where"
		enter_chroot "$where"
		copy_tree_to "$where/srv/sf"
		# shellcheck disable=SC2086 # words of a list
		in_chroot "$where" env PG_CONFIG="$(debian_config "$1" "$where")" SUITE_RESULTS=/srv/sf/results \
			${TAP:+"TAP=$TAP"} /srv/sf/test/all.sh $SUITES || status=$?
		[ ! -e "$where/srv/sf/results" ] || cp "$where/srv/sf/results" "$LOGS/$1.results"
	fi
	return "$status"
}

version_of() { # major PLACE
	read -r way where <<<"$2"
	if [ "$way" = here ]; then "$where" --version; else in_chroot "$where" "$(debian_config "$1" "$where")" --version; fi |
		sed 's/^PostgreSQL //; s/ .*//'
}

# The rows of a table, whose columns are the suites.
row() {
	printf '| %-8s' "$1"
	shift
	printf ' | %-16s' "$@"
	printf ' |\n'
}

header() {
	# shellcheck disable=SC2086 # words of a list
	row server $SUITES time
	# shellcheck disable=SC2046,SC2086 # words of a list
	row --- $(printf -- '--- %.0s' $SUITES) ---
}

cell() { # suite, of the results on standard input: several lines may share a name
	awk -v suite="$1" '$1 == suite { passed += $2; failed += $3; skipped += $4; ran = 1 }
		END { if (!ran) print "not run"
			else print passed (failed ? ", " failed " failed" : "") (skipped ? ", " skipped " skipped" : "") }'
}

one_server() { # SERVER
	local major=${1%%=*} status=0 suite cells=()
	[[ $major =~ ^[0-9]+$ ]] || die "not a major version: $major"
	# A step that fails ends it: no condition, in which bash would go on.
	set +e
	(set -e; find_server "$1"; printf '%s' "$PLACE" >"$LOGS/$major.place") >"$LOGS/$major.server" 2>&1
	set -e
	if [ ! -s "$LOGS/$major.place" ]; then
		row "$major" "not to be had: $(tail -n 1 "$LOGS/$major.server")"
		return
	fi
	PLACE=$(cat "$LOGS/$major.place")
	SECONDS=0
	(run_suites "$major" "$PLACE") >"$LOGS/$major.log" 2>&1 || status=$?
	touch "$LOGS/$major.results"
	for suite in $SUITES; do cells+=("$(cell "$suite" <"$LOGS/$major.results")"); done
	row "$(version_of "$major" "$PLACE")" "${cells[@]}" "$((SECONDS / 60)) min"
	[ "$status" -ne 0 ] || return 0
	FAILED=1
	{ grep '^failed: ' "$LOGS/$major.log" || tail -n 1 "$LOGS/$major.log"; } | sed "s/^/$major: /" >>"$LOGS/failures"
}

installed_servers() { # beside the release's own
	local config major
	for config in /usr/lib/postgresql/*/bin/pg_config; do
		major=$(basename "$(dirname "$(dirname "$config")")")
		[ "$major" = "$(postgres_major)" ] || ! debian_config "$major" >/dev/null || say "$major"
	done
}

trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
SERVERS=() INSTALLED=''
DEFAULT_SUITES="regress isolation unit tap"
while [ $# -gt 0 ]; do
	case $1 in
	--brief)
		DEFAULT_SUITES=regress
		export MAKEFLAGS='LTO= with_llvm=no'
		;;
	--installed) INSTALLED=1 ;;
	-*) die "unknown option: $1" ;;
	*) SERVERS+=("$1") ;;
	esac
	shift
done
SUITES=${SUITES:-$DEFAULT_SUITES}
if [ -n "$INSTALLED" ]; then
	mapfile -t SERVERS < <(installed_servers)
	[ ${#SERVERS[@]} -gt 0 ] || { say "no other version of PostgreSQL is installed" && exit 0; }
fi
[ ${#SERVERS[@]} -gt 0 ] || SERVERS=(15 16 17 18 19)

header
for server in "${SERVERS[@]}"; do one_server "$server"; done
[ "$FAILED" -eq 0 ] || cat "$LOGS/failures"
say "logs: $LOGS"
exit "$FAILED"
