#!/usr/bin/env bash
# Runs the suites on several versions of PostgreSQL and prints a table.
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
# unit and tap. Ends with 1 if a suite failed; versions that cannot be had are said, and no failure. Debian 12 or 13, as
# root or with sudo.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=servers/chroot.sh
source "$ROOT/test/servers/chroot.sh"

# shellcheck disable=SC2031 # changed for the server's user only
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/streamfilter
LOGS=$(mktemp -d)
FAILED=0

# shellcheck disable=SC2317 # by a trap
finish() {
	local status=$?
	trap - EXIT
	leave_chroots
	exit "$status"
}

# --- Where a server is to be had: each prints how it is reached, "here PG_CONFIG" or "chroot FOLDER" ------------------------

debian_config() { # major [folder]: pg_config of Debian's server, if there is one to build against
	local bin=/usr/lib/postgresql/$1/bin root=${2:-}
	[ -x "$root$bin/pg_config" ] && [ -x "$root$bin/postgres" ] &&
		[ -e "$root/usr/lib/postgresql/$1/lib/pgxs/src/makefiles/pgxs.mk" ] && say "$bin/pg_config"
}

is_packaged() { # major: in this release
	apt-cache show "postgresql-server-dev-$1" >/dev/null 2>&1 && apt-cache show "postgresql-$1" >/dev/null 2>&1
}

install_server() { # major
	as_root apt-get -y --no-install-recommends install "postgresql-$1" "postgresql-server-dev-$1"
}

newer_release() { # major: the release of Debian that has it
	case $1 in
	17) say trixie ;;
	18 | 19) say sid ;;
	*) return 1 ;;
	esac
}

in_newer_release() { # major: a system with the packages, all of it or nothing
	local release folder
	release=$(newer_release "$1") && [ -n "$(debian_mirror)" ] && command -v debootstrap || return 1
	folder=$CACHE/$release
	make_chroot "$folder" "$release" && install_in_chroot "$folder" "$1" && PLACE="chroot $folder"
}

install_in_chroot() { # folder major
	local target=()
	! debian_config "$2" "$1" || return 0
	enter_chroot "$1"
	if [ "$2" -ge 19 ] && ! grep -qs experimental "$1/etc/apt/sources.list"; then
		say "deb $(debian_mirror) experimental main" | as_root tee -a "$1/etc/apt/sources.list"
	fi
	[ "$2" -lt 19 ] || target=(-t experimental)
	in_chroot "$1" apt-get -q update
	in_chroot "$1" apt-get -q -y --no-install-recommends "${target[@]}" install "postgresql-$2" "postgresql-server-dev-$2"
}

built() { # major [sources]
	"$ROOT/test/servers/asserted.sh" "$@" && PLACE="here $CACHE/postgresql-$1-asserted-$RECIPE/bin/pg_config"
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

run_suites() { # major PLACE
	read -r way where <<<"$2"
	if [ "$way" = here ]; then
		# shellcheck disable=SC2086 # words of a list
		PG_CONFIG=$where LD_LIBRARY_PATH=$("$where" --libdir) "$ROOT/test/all.sh" $SUITES
	else
		enter_chroot "$where"
		copy_tree_to "$where/srv/sf"
		# shellcheck disable=SC2086 # words of a list
		in_chroot "$where" env PG_CONFIG="$(debian_config "$1" "$where")" /srv/sf/test/all.sh $SUITES
	fi
}

version_of() { # major PLACE
	read -r way where <<<"$2"
	if [ "$way" = here ]; then "$where" --version; else in_chroot "$where" "$(debian_config "$1" "$where")" --version; fi
}

row() { printf '%-6s %-40s %-36s %s\n' "$@"; }

one_server() { # SERVER
	local major=${1%%=*} status=0
	[[ $major =~ ^[0-9]+$ ]] || die "not a major version: $major"
	# A step that fails ends it: no condition, in which bash would go on.
	set +e
	(set -e; find_server "$1"; printf '%s' "$PLACE" >"$LOGS/$major.place") >"$LOGS/$major.server" 2>&1
	set -e
	if [ ! -s "$LOGS/$major.place" ]; then
		row "$major" - "not to be had" "$(tail -n 1 "$LOGS/$major.server")"
		return
	fi
	PLACE=$(cat "$LOGS/$major.place")
	SECONDS=0
	(run_suites "$major" "$PLACE") >"$LOGS/$major.log" 2>&1 || status=$?
	[ "$status" -eq 0 ] || FAILED=1
	row "$major" "$(version_of "$major" "$PLACE")" "$(tail -n 1 "$LOGS/$major.log")" "$((SECONDS / 60)) min"
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

row major server result time
for server in "${SERVERS[@]}"; do one_server "$server"; done
say "suites: $SUITES; logs: $LOGS"
exit "$FAILED"
