# Shared by test/all.sh, test/mutants.sh and test/demo.sh: sourced by them, never run.
# shellcheck shell=bash

set -euo pipefail
umask 022 # what is installed must be readable for the server's user
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
# The caller's connection settings must not lead psql to another server.
for name in "${!PG@}"; do [ "$name" = PG_CONFIG ] || unset "$name"; done

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Below a process that stays the parent of the servers we start, so that what they cost is counted: see cpu_used.
[ "${STREAMFILTER_REAPER:-}" = "$PPID" ] || exec perl "$ROOT/test/reaper.pl" bash "$0" "$@"
WORK='' # a directory of our own under /tmp, see make_work
JOB_PID=''
BUILDING=yes # prepare installs a compiler, too
PRIVATE=''   # what is built goes into a copy of the server: see install_in_copy

say() { printf '%s\n' "$*"; }

die() {
	printf '%s: %s\n' "$(basename "$0")" "$1" >&2
	shift
	[ $# -eq 0 ] || printf '  %s\n' "$@" >&2
	exit 1
}

is_root() { [ "$(id -u)" -eq 0 ]; }

as_root() {
	if is_root; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -- "$@"
	else
		die "must be root for: $*" "Run it as root, or install sudo."
	fi
}

# The owner of the tree, so that root does not leave files there that its owner cannot remove.
as_owner() {
	local owner
	owner=$(stat -c %U "$ROOT")
	if is_root && [ "$owner" != root ] && runuser -u "$owner" -- test -w "$ROOT" 2>/dev/null; then
		runuser -u "$owner" -- env HOME="$(getent passwd "$owner" | cut -d: -f6)" "$@"
	else
		"$@"
	fi
}

# A server refuses root, and its user may not be able to read the current directory.
as_server() (
	cd "$WORK"
	export HOME=$WORK TMPDIR=$WORK/tmp
	if is_root; then
		exec runuser -u postgres -- "$@"
	else
		exec "$@"
	fi
)

# --- One job at a time, with its progress ----------------------------------------------------------------------------

HANG=300 # seconds without output and without work after which a job is taken for hung; there is no other limit

elapsed() { # seconds since $1, with one decimal
	local us=$((${EPOCHREALTIME/./} - ${1/./}))
	printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}

# Centiseconds of CPU that everything below us has used, servers included. What has ended is counted by its parent,
# so the sum over those that run never falls. With an argument, a process id: without this script and those of its
# children that are not that one.
cpu_used() {
	{ cat /proc/[0-9]*/stat 2>/dev/null || true; } | awk -v top="$STREAMFILTER_REAPER" -v hertz="$(getconf CLK_TCK)" \
		-v script="$$" -v job="${1:-}" '
		{ pid = $1; sub(/^.*\) /, ""); parent[pid] = $2; ticks[pid] = $12 + $13 + $14 + $15 }
		END {
			for (pid in ticks) {
				for (up = pid; up != top && up in parent && !(job && parent[up] == script && up != job);) up = parent[up]
				if (up == top && !(job && pid == script)) sum += ticks[pid]
			}
			printf "%d\n", sum * 100 / hertz
		}'
}

job_progress() { :; } # scripts may replace it: prints how far the running job has come

job_tick() { # title, seconds so far
	if [ -t 1 ]; then
		printf '\r%-52s %5d s  %s\033[K' "$1" "$2" "$([ "$2" -lt 2 ] || job_progress)"
	elif [ $(($2 % 30)) -eq 0 ] && [ "$2" -gt 0 ]; then
		printf '%-52s %5d s  %s\n' "$1 ..." "$2" "$(job_progress)"
	fi
}

job_end() { # TERM or KILL, for the whole process group
	[ -z "$JOB_PID" ] || kill "-$1" -- "-$JOB_PID" 2>/dev/null || true
}

# An idle server wakes up now and then: less than a hundredth of a processor is no work.
job_hangs() { # seconds so far
	local cpu size
	[ $(($1 % 10)) -eq 0 ] || return 1
	cpu=$(cpu_used "$JOB_PID") size=$(stat -c %s "$WORK/job.log")
	if [ "$size" -ne "$JOB_SIZE" ] || [ $((cpu - JOB_CPU_SEEN)) -gt $(($1 - JOB_ALIVE)) ]; then
		JOB_SIZE=$size JOB_CPU_SEEN=$cpu JOB_ALIVE=$1
	fi
	[ $(($1 - JOB_ALIVE)) -ge "$HANG" ]
}

job_stop() {
	say "stopped: no output and no work for $HANG seconds" >>"$WORK/job.log"
	job_end TERM
	sleep 3
	job_end KILL
	JOB_STATUS=124
}

# job TITLE COMMAND…: runs the command, its output goes to $WORK/job.log, and shows the seconds it takes. Sets JOB_STATUS
# (124: it hung) and JOB_CPU, in centiseconds. The line is left open: the caller says how it ended. Never called in a
# condition, for there bash would ignore every error of the command but its last.
job() {
	local title=$1 start=$EPOCHREALTIME last=0 now before
	JOB_STATUS=0 JOB_SIZE=0 JOB_ALIVE=0 JOB_CPU_SEEN=0
	before=$(cpu_used)
	shift
	set -m # a process group of its own, to be ended as a whole
	("$@") </dev/null >"$WORK/job.log" 2>&1 &
	JOB_PID=$!
	set +m
	[ ! -t 1 ] || printf '%-52s' "$title"
	while kill -0 "$JOB_PID" 2>/dev/null; do
		sleep 0.1
		now=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000000))
		[ "$now" -ne "$last" ] || continue
		job_tick "$title" "$now"
		last=$now
		! job_hangs "$now" || job_stop
	done
	wait "$JOB_PID" 2>/dev/null || JOB_STATUS=$((JOB_STATUS ? JOB_STATUS : $?))
	JOB_PID=''
	JOB_SECONDS=$(elapsed "$start")
	# shellcheck disable=SC2034 # for the caller
	JOB_CPU=$(($(cpu_used) - before))
	[ ! -t 1 ] || printf '\r\033[K'
	printf '%-52s %7s s' "$title" "$JOB_SECONDS"
}

# A job that must succeed.
stage() {
	job "$@"
	if [ "$JOB_STATUS" -eq 0 ]; then
		printf '\n'
	else
		printf '  failed\n'
		tail -n 40 "$WORK/job.log" >&2
		die "failed: $1"
	fi
}

# The TAP files whose head names that flavour.
tap_files() { # flavour
	(cd "$ROOT" && grep -lE "^# flavours:.* $1( |\$)" test/t/*.pl | tr '\n' ' ')
}

# --- The work directory ----------------------------------------------------------------------------------------------

make_work() { # in /tmp and with a short name: the path of a socket is limited to 107 bytes
	WORK=$(mktemp -d /tmp/streamfilter.XXXXXX)
	mkdir "$WORK/tmp"
}

give_work() { # once the packages are there, and with them the server's user
	! is_root || chown -R postgres "$WORK"
}

stop_servers() { # every server whose data directory is below ours: each by its own data directory
	local pid_file
	{ find "$WORK" -name postmaster.pid 2>/dev/null || true; } | while read -r pid_file; do
		as_server "$(pg_bin)/pg_ctl" -D "$(dirname "$pid_file")" -m immediate -w stop >/dev/null 2>&1 || true
	done
}

remove_work() {
	[ -n "$WORK" ] || return 0
	job_end TERM
	stop_servers
	cd /
	rm -rf "$WORK"
	WORK=''
}

# --- Packages --------------------------------------------------------------------------------------------------------

ask_password() { # now, at the terminal: jobs run in the background
	is_root || sudo -v || die "installing needs root or sudo"
}

missing_packages() {
	local package
	for package in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
	done
}

# postgresql-common first, and told not to create and start a cluster: these scripts start servers of their own.
install_quietly() {
	apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=120 install postgresql-common
	local conf=/etc/postgresql-common/createcluster.conf
	cp -p "$conf" "$1/createcluster.conf"
	# shellcheck disable=SC2064 # the names are wanted as they are now
	trap "cp -p '$1/createcluster.conf' '$conf'" EXIT
	printf '\ncreate_main_cluster = false\n' >>"$conf"
	shift
	apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=120 install "$@"
}

install_missing() {
	local missing
	read -ra missing <<<"$(missing_packages "$@")"
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "${INSTALL:-yes}" = yes ] || die "packages are missing: ${missing[*]}" "Install them, or run without INSTALL=no."
	command -v apt-get >/dev/null || die "not Debian: apt-get is not there" "These packages are needed: ${missing[*]}"
	say "Installing what is missing: ${missing[*]}"
	ask_password
	stage "  apt-get update" as_root apt-get -o DPkg::Lock::Timeout=120 update
	stage "  apt-get install" as_root bash -euc "$(declare -f install_quietly)"'; install_quietly "$@"' bash \
		"$WORK" "${missing[@]}"
}

# What some tests want and a release may lack: they are skipped without it.
install_if_available() {
	local missing package candidate
	read -ra missing <<<"$(missing_packages "$@")"
	[ "${INSTALL:-yes}" = yes ] || return 0
	for package in ${missing[@]+"${missing[@]}"}; do
		candidate=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: //p' || true)
		if [ -z "$candidate" ] || [ "$candidate" = "(none)" ]; then continue; fi
		ask_password
		job "  apt-get install $package, for some tests" as_root bash -euc \
			"$(declare -f install_quietly)"'; install_quietly "$@"' bash "$WORK" "$package"
		if [ "$JOB_STATUS" -eq 0 ]; then printf '\n'; else printf '  failed, and can be done without\n'; fi
	done
}

# Where apt gets Debian's packages from.
debian_mirror() {
	{ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
		sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([^ ]*\/debian)\/?( .*)?$/\3/p' | head -n 1
}

# The major version of the release's own package.
postgres_major() {
	local release
	# shellcheck source=/dev/null
	release=$(. /etc/os-release && printf '%s' "${ID:-} ${VERSION_ID:-}")
	case $release in
	"debian 12") say 15 ;;
	"debian 13") say 17 ;;
	*) apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]\{1,\}\)$/\1/p' | head -n 1 ;;
	esac
}

# The server that streamfilter is installed for, the newest of those of packages unless PG_CONFIG names one; then prepare
# installs no compiler.
find_installed() {
	local library
	BUILDING=''
	[ -z "${PG_CONFIG:-}" ] || return 0
	library=$(printf '%s\n' /usr/lib/postgresql/*/lib/streamfilter.so | sort -V | tail -n 1)
	[ -e "$library" ] || die "streamfilter is not installed" "See docs/install.md."
	PG_CONFIG=${library%/lib/*}/bin/pg_config
}

# prepare PACKAGE…: these, a compiler and PostgreSQL; PG_CONFIG names another PostgreSQL than the release's. In
# PG_MODULES, what is wanted of the modules that are packaged for every major version.
prepare() {
	local packages=("$@") major=''
	[ -z "$BUILDING" ] || packages+=(make g++ libboost-dev libboost-math-dev libxxhash-dev libpq-dev)
	if [ -z "${PG_CONFIG:-}" ]; then
		major=$(postgres_major)
		[ -n "$major" ] || die "cannot tell the release's PostgreSQL" \
			"This is made for Debian 12 and 13. Elsewhere set PG_CONFIG to the path of pg_config."
		PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config
		packages+=("postgresql-$major" "postgresql-server-dev-$major")
	fi
	install_missing "${packages[@]}"
	[ -z "$major" ] || install_if_available ${PG_MODULES[@]+"${PG_MODULES[@]/#/postgresql-$major-}"}
	[ -x "$PG_CONFIG" ] || die "$PG_CONFIG cannot be run" "PG_CONFIG must be the path of PostgreSQL's pg_config."
	export PG_CONFIG
	[ -z "$BUILDING" ] || [ -n "$PRIVATE" ] || [ "${INSTALL:-yes}" != yes ] || [ -w "$("$PG_CONFIG" --pkglibdir)" ] || ask_password
	give_work
}

pg_bin() { "$PG_CONFIG" --bindir; }

make_here() { as_owner make -C "$ROOT" --no-print-directory PG_CONFIG="$PG_CONFIG" "$@"; }

install_extension() {
	local command=(make -C "$ROOT" --no-print-directory PG_CONFIG="$PG_CONFIG" install)
	if [ -w "$("$PG_CONFIG" --pkglibdir)" ]; then "${command[@]}"; else as_root "${command[@]}"; fi
}

copy_binaries() { # directory pg_config: below it all paths are as they were; a server finds its files itself
	local path
	for path in "$("$2" --bindir)" "$("$2" --pkglibdir)" "$("$2" --sharedir)"; do
		mkdir -p "$1$(dirname "$path")"
		[ -d "$1$path" ] || cp -a "$path" "$1$path"
	done
}

# The system's server stays as it is. The caller goes on with the copy's PG_CONFIG, $WORK/server/….
install_in_copy() {
	copy_binaries "$WORK/server" "$PG_CONFIG"
	make -C "$ROOT" --no-print-directory PG_CONFIG="$PG_CONFIG" DESTDIR="$WORK/server" install
}

# What was built of a tree, as a copy of the server finds it; some TAP tests link the C library.
install_built() { # tree flavour directory pg_config
	local libdir
	libdir=$3$("$4" --libdir)
	mkdir -p "$libdir"
	install -m 755 "$1/build/$2/streamfilter.so" "$3$("$4" --pkglibdir)/"
	cp -P "$1"/build/library/libstreamfilter.{a,so*} "$libdir/"
	install -D -m 644 -t "$3$("$4" --includedir)/streamfilter" "$ROOT/include/streamfilter/streamfilter.h"
	install -m 644 "$ROOT"/streamfilter.control "$1"/sql/streamfilter--*.sql "$3$("$4" --sharedir)/extension/"
	find "$ROOT/sql/update" -name "*.sql" -exec install -m 644 -t "$3$("$4" --sharedir)/extension/" {} +
}

build_and_copy() { # PG_CONFIG is that of the copy afterwards
	stage "building streamfilter" make_here -j2
	stage "installing it in a copy of the server" install_in_copy
	PG_CONFIG=$WORK/server$("$PG_CONFIG" --bindir)/pg_config
}
