#!/usr/bin/env bash
# A good guest changes nothing that is not its own: PostgreSQL's suites (regress, isolation, postgres_fdw, file_fdw), once in a
# server without the extension, once with the library preloaded and the extension created in each database; then what the
# two have printed is compared.
#
#   test/guest.sh [--asserted] [MAJOR [SOURCES]]       the release's own major version when none is named
#
# The server is Debian's, or with --asserted one with assertions (test/servers/asserted.sh), in a copy that this tree is built
# for and installed into. A version that this release has not is looked for in a newer one, in a system of its own that is made
# with debootstrap and kept in ${XDG_CACHE_HOME:-~/.cache}/streamfilter. PG_CONFIG names another server, that has the extension.
# SOURCES is a folder of PostgreSQL's sources; without, they are Debian's source package (test/servers/sources.sh). Suites named
# in SUITES run, others do not. What may differ stands, with the reason, in test/guest/allowed. Exits with 77, and says so, where
# there is no source or no server. Some minutes for each version; not part of CI: weekly, and before a release.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=servers/sources.sh
source "$ROOT/test/servers/sources.sh"
# shellcheck source-path=SCRIPTDIR source=servers/chroot.sh
source "$ROOT/test/servers/chroot.sh"

# shellcheck disable=SC2031 # changed for the server's user only
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/streamfilter

NOT_TO_BE_HAD=77
HANG=1200
DIFFERENT=0

skip() {
	say "skip: $*"
	exit $NOT_TO_BE_HAD
}

# Only the programs that run the suites: the server is the one that is installed.
compile() {
	local options=(--with-icu --without-readline --without-llvm)
	"$PG_CONFIG" --configure | grep -q -- --enable-cassert && options+=(--enable-cassert)
	cd "$WORK/source"
	./configure -q "${options[@]}" CFLAGS=-O1
	make -s -j2 -C src/test/regress
	make -s -j2 -C src/test/isolation
}

# run HOW SUITE PROGRAM INPUT ARGUMENT…: HOW is `with` or `without`
run() {
	local how=$1 suite=$2 program=$3 input=$4 out=$WORK/$1/$2 arguments=()
	shift 4
	mkdir -p "$out"
	printf 'max_prepared_transactions = 2\nfsync = off\n' >"$out/config"
	if [ "$how" = with ]; then
		printf "shared_preload_libraries = 'streamfilter'\n" >>"$out/config"
		arguments=(--load-extension=streamfilter)
	fi
	give_work
	# A test that fails, as some do without us, is not our concern.
	cd "$out"
	as_server "$program" --bindir="$("$PG_CONFIG" --bindir)" --dlpath="$WORK/source/src/test/regress" --inputdir="$input" \
		--outputdir="$out" --temp-instance="$out/instance" --temp-config="$out/config" --max-concurrent-tests=20 \
		${arguments[@]+"${arguments[@]}"} "$@" || true
	[ -n "$(find "$out" -path '*results/*.out' | head -n 1)" ]
}

run_suite() { # HOW SUITE
	local source=$WORK/source
	local regress=$source/src/test/regress
	case $2 in
	regress) run "$1" "$2" "$regress/pg_regress" "$regress" --schedule="$regress/parallel_schedule" ;;
	isolation)
		run "$1" "$2" "$source/src/test/isolation/pg_isolation_regress" "$source/src/test/isolation" \
			--schedule="$source/src/test/isolation/isolation_schedule"
		;;
	*) run "$1" "$2" "$regress/pg_regress" "$source/contrib/$2" "$2" ;;
	esac
}

# The width of columns follows what is in them.
alike() { sed -E 's/[[:space:]]+/ /g; s/-{2,}/--/g; s/^ +//; s/ +$//' "$1"; }

# Lines that differ and are not allowed.
compare() { # SUITE
	local file name count=0
	: >"$WORK/differences"
	while read -r file; do
		name=$1/$(basename "$file" .out)
		count=$((count + 1))
		diff <(alike "$file") <(alike "${file/"$WORK/without"/"$WORK/with"}") | perl "$ROOT/test/guest/allowed.pl" "$ROOT/test/guest/allowed" "$name" \
			>>"$WORK/differences" || true
	done < <(find "$WORK/without/$1" -path '*results/*.out' | sort)
	if [ -s "$WORK/differences" ]; then
		DIFFERENT=$((DIFFERENT + 1))
		head -n 60 "$WORK/differences"
		say "$1: $(wc -l <"$WORK/differences") lines of $count tests differ"
	else
		say "$1: $count tests, nothing differs that may not"
	fi
	[ "$count" -gt 0 ] || die "no results of suite $1"
}

prepare_sources() {
	if [ $# -gt 0 ]; then
		mkdir "$WORK/source"
		tar -C "$1" --exclude=./.git -cf - . | tar -C "$WORK/source" -xf -
	else
		job "source of PostgreSQL $MAJOR" fetch
		printf '\n'
		[ "$JOB_STATUS" -eq 0 ] || skip "no source of PostgreSQL $MAJOR: $(tail -n 1 "$WORK/job.log")"
	fi
}

# --- The server -----------------------------------------------------------------------------------------------------------

find_original() { # sources…: sets ORIGINAL, the pg_config of a server that is as it was
	ORIGINAL=/usr/lib/postgresql/$MAJOR/bin/pg_config
	if [ -n "$ASSERTED" ]; then
		job "a server with assertions" "$ROOT/test/servers/asserted.sh" "$MAJOR" "$@"
		printf '\n'
		ORIGINAL=$(tail -n 1 "$WORK/job.log")
		[ "$JOB_STATUS" -eq 0 ] || skip "no server of PostgreSQL $MAJOR with assertions: $ORIGINAL"
	elif [ ! -x "$ORIGINAL" ] || [ ! -e "$("$ORIGINAL" --pgxs)" ]; then
		install_missing "postgresql-$MAJOR" "postgresql-server-dev-$MAJOR"
	fi
}

copy_server() {
	copy_binaries "$WORK/server" "$ORIGINAL"
	copy_tree_to "$WORK/tree"
	make -s -C "$WORK/tree" PG_CONFIG="$ORIGINAL" LTO= with_llvm=no DESTDIR="$WORK/server" install
}

make_server() { # sources…
	install_missing make g++ libboost-dev libboost-math-dev libxxhash-dev libpq-dev
	find_original "$@"
	stage "the extension in a copy of the server" copy_server
	PG_CONFIG=$WORK/server$("$ORIGINAL" --bindir)/pg_config
}

# --- A newer release ------------------------------------------------------------------------------------------------------

is_here() { # sources…
	[ "$MAJOR" = "$(postgres_major)" ] || debian_config "$MAJOR" >/dev/null || { [ -n "$ASSERTED" ] && [ $# -gt 0 ]; }
}

run_elsewhere() { # arguments…
	local folder
	folder=$CACHE/$(newer_release "$MAJOR" || true)
	is_root || skip "PostgreSQL $MAJOR is in a newer release: a system of that one is made by root only"
	command -v debootstrap >/dev/null || skip "PostgreSQL $MAJOR is in a newer release: debootstrap is missing, which makes a system of that one"
	job "a system that has PostgreSQL $MAJOR" in_newer_release "$MAJOR"
	printf '\n'
	[ "$JOB_STATUS" -eq 0 ] || skip "no system that has PostgreSQL $MAJOR: $(tail -n 1 "$WORK/job.log")"
	enter_chroot "$folder"
	copy_tree_to "$folder/srv/guest"
	in_chroot "$folder" env ${SUITES:+"SUITES=$SUITES"} /srv/guest/test/guest.sh "$@"
}

run_suites() {
	local suite how
	for suite in ${SUITES:-regress isolation postgres_fdw file_fdw}; do
		case $suite in
		*_fdw)
			[ -f "$("$PG_CONFIG" --sharedir)/extension/$suite.control" ] || {
				say "skip: the server has no $suite"
				continue
			}
			;;
		esac
		for how in without with; do stage "$suite, $how the extension" run_suite "$how" "$suite"; done
		compare "$suite"
	done
	[ -z "${KEEP:-}" ] || cp -r "$WORK/without" "$WORK/with" "$KEEP"
	[ "$DIFFERENT" -eq 0 ]
}

main() {
	local given=("$@")
	ASSERTED=''
	if [ "${1:-}" = --asserted ]; then ASSERTED=yes && shift; fi
	MAJOR=${1:-$(postgres_major)}
	[ $# -eq 0 ] || shift
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	if [ -z "${PG_CONFIG:-}" ] && ! is_here "$@"; then
		run_elsewhere "${given[@]}"
		exit
	fi
	install_missing gcc make bison flex perl zlib1g-dev libicu-dev pkg-config dpkg-dev ca-certificates
	prepare_sources "$@"
	[ -n "${PG_CONFIG:-}" ] || make_server "$@"
	[ -f "$("$PG_CONFIG" --sharedir)/extension/streamfilter.control" ] || skip "$PG_CONFIG has no extension streamfilter"
	stage "programs that run the suites" compile
	run_suites
}

main "$@"
