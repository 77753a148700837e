#!/usr/bin/env bash
# Builds a PostgreSQL with assertions, once, and says where its pg_config is.
#
#   test/servers/asserted.sh [MAJOR [SOURCES]]      the release's own major version when none is named
#
# SOURCES is a folder or an archive of PostgreSQL's sources; without, they are Debian's source package, of this release or a
# newer one. The server lies in ${XDG_CACHE_HOME:-~/.cache}/streamfilter/: remove it there to build it anew, after a minor
# release for example. Exits with 77 where sources cannot be had. Debian 12 or 13, as root or with sudo where packages are
# missing.

# shellcheck source-path=SCRIPTDIR source=../lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/sources.sh"

# shellcheck disable=SC2031 # changed for the server's user only
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/streamfilter
RECIPE=2 # to be raised with every change of what is built here
NOT_TO_BE_HAD=77

given() { # a folder, whatever it is under, or an archive
	mkdir "$WORK/source"
	if [ -d "$1" ]; then
		tar -C "$1" --exclude=./.git -cf - . | tar -C "$WORK/source" -xf -
	else
		tar -C "$WORK/source" --strip-components=1 -xf "$1"
	fi
	chmod +x "$WORK/source/configure"
}

compile() {
	local contrib
	cd "$WORK/source"
	# -O1: assertions cost more than what more optimization gains, and compiling counts too.
	./configure -q --prefix="$WORK/built/postgresql" --enable-cassert --enable-tap-tests --with-icu --without-readline \
		--without-llvm CC="$COMPILER" CFLAGS='-O1 -g1' CXXFLAGS='-O1 -g1'
	make -s -j2 -C src
	make -s -C src install
	for contrib in citext file_fdw postgres_fdw; do # of these the tests make use
		make -s -j2 -C "contrib/$contrib"
		make -s -C "contrib/$contrib" install
	done
}

main() {
	local target
	MAJOR=${1:-$(postgres_major)}
	target=$CACHE/postgresql-$MAJOR-asserted-$RECIPE
	if [ ! -x "$target/bin/pg_config" ]; then
		trap remove_work EXIT
		trap 'exit 130' INT
		trap 'exit 143' TERM
		make_work
		install_missing gcc g++ make bison flex perl libipc-run-perl zlib1g-dev libicu-dev pkg-config dpkg-dev ca-certificates
		COMPILER=gcc
		! command -v ccache >/dev/null || COMPILER='ccache gcc'
		if [ $# -gt 1 ]; then
			job "source of PostgreSQL $MAJOR" given "$2"
		else
			job "source of PostgreSQL $MAJOR" fetch
		fi
		printf '\n'
		if [ "$JOB_STATUS" -ne 0 ]; then
			tail -n 5 "$WORK/job.log"
			exit $NOT_TO_BE_HAD
		fi
		stage "PostgreSQL $MAJOR with assertions" compile
		mkdir -p "$CACHE"
		rm -rf "$target"
		mv "$WORK/built/postgresql" "$target"
	fi
	say "$target/bin/pg_config"
}

main "$@"
