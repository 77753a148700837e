#!/usr/bin/env bash
# Builds Citus from its sources, once, and runs all tests that need it, on a coordinator and up to four workers.
#
#   test/citus.sh --build FOLDER|TARBALL     sources of Citus 13 or 14, as `git clone` or a release has them; what is built is kept
#   test/citus.sh [TEST…]                    the tests, with what was built
#   test/citus.sh FOLDER|TARBALL [TEST…]     both
#   test/citus.sh --bench                    bench/citus.pl
#   test/citus.sh --matrix                   all 192 cells of citus_lives.pl, instead of a quarter, and citus_gates.pl: half an hour
#
# As root or with sudo, Debian 12 or 13. PG_CONFIG says for which server. The tests run on a copy of that server, which gets Citus
# and streamfilter; it stays as it is itself. STREAMFILTER_CITUS is the folder where what was built is kept, build/citus if it is
# not set. A build takes about two minutes, the tests six. Logs of tests that fail are kept in that folder, too.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PG_CONFIG=${PG_CONFIG:-$(command -v pg_config || true)}
[ -n "$PG_CONFIG" ] || die "no pg_config" "Install postgresql-server-dev-15, or set PG_CONFIG."
VERSION=$("$PG_CONFIG" --version | grep -oE '[0-9]+' | head -n 1)
KEPT=${STREAMFILTER_CITUS:-$ROOT/build/citus}
BUILT=$KEPT/pg$VERSION # what `make install DESTDIR=…` leaves

WORK=$(mktemp -d /tmp/streamfilter-citus.XXXXXX)
trap 'rm -rf "$WORK"' EXIT

unpack() { # sources
	mkdir "$WORK/citus"
	if [ -d "$1" ]; then
		tar -C "$1" --exclude=./.git -cf - . | tar -C "$WORK/citus" -xf -
	else
		tar -C "$WORK/citus" --strip-components=1 -xf "$1"
	fi
	[ -x "$WORK/citus/configure" ] || die "no configure in $1" "Are these the sources of Citus?"
}

# Newer minor releases of PostgreSQL 15 export a function that Citus defines for itself there.
mend() {
	local header
	header=$("$PG_CONFIG" --includedir-server)/commands/dbcommands.h
	if grep -q '^extern.* have_createdb_privilege' "$header"; then
		sed -i 's/^have_createdb_privilege(void)$/citus_&/' "$WORK/citus/src/include/pg_version_compat.h"
	fi
}

run() { # title command…
	say "$1 …"
	shift
	"$@" >"$WORK/log" 2>&1 || { tail -n 40 "$WORK/log" >&2; die "failed: $*"; }
}

build() { # sources
	[ -e "$1" ] || die "usage: test/citus.sh --build FOLDER|TARBALL"
	unpack "$1"
	install_missing flex liblz4-dev libzstd-dev libssl-dev libpq-dev libxml2-dev libselinux1-dev libpam0g-dev libkrb5-dev \
		libreadline-dev libicu-dev libipc-run-perl
	mend
	cd "$WORK/citus"
	run "configuring Citus" ./configure PG_CONFIG="$PG_CONFIG" --without-libcurl
	run "compiling Citus" nice make -s -j"$(nproc)" with_llvm=no
	rm -rf "$BUILT"
	run "keeping it in $BUILT" make -s with_llvm=no DESTDIR="$BUILT" install
	cd "$ROOT"
}

copy_server() {
	copy_binaries "$WORK/server" "$PG_CONFIG"
	cp -a "$BUILT/." "$WORK/server/"
	cd "$ROOT"
	run "compiling streamfilter" make -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG"
	run "installing it in a copy of the server" make -s PG_CONFIG="$PG_CONFIG" DESTDIR="$WORK/server" install
}

run_tests() { # test…
	local files=() file bin pgxs
	for file in "$@"; do
		if [[ $file == bench/* ]]; then files+=("$file"); else files+=("test/t/$(basename "$file")"); fi
	done
	bin=$WORK/server$("$PG_CONFIG" --bindir)
	pgxs=$WORK/server$(dirname "$("$PG_CONFIG" --pgxs)")
	mkdir "$WORK/tree" "$WORK/tmp" # a server refuses root
	tar -C "$ROOT" --exclude=./.git --exclude=./build --exclude='./tmp_check*' -cf - . | tar -C "$WORK/tree" -xf -
	if is_root; then chown -R postgres "$WORK"; fi
	chmod 755 "$WORK"
	cd "$WORK/tree"
	as_server env -C "$PWD" TESTDIR="$PWD" TESTDATADIR="$PWD/tmp_check" TESTLOGDIR="$PWD/tmp_check/log" PGPORT=65432 \
		STREAMFILTER_CELLS="${STREAMFILTER_CELLS:-}" ${BENCH_ROWS:+"BENCH_ROWS=$BENCH_ROWS"} PATH="$bin:$PATH" PG_REGRESS="$pgxs/../test/regress/pg_regress" \
		prove --timer -I "$pgxs/../test/perl" -I test/t "${files[@]}" && return
	rm -rf "$KEPT/log"
	mkdir -p "$KEPT"
	cp -r "$WORK/tree/tmp_check/log" "$KEPT/log"
	die "tests failed" "What they and the servers have said is kept in $KEPT/log."
}

if [ "${1:-}" = --build ]; then
	build "${2:-}"
	exit
fi
if [ "${1:-}" = --matrix ]; then
	STREAMFILTER_CELLS=all
	set -- citus_lives.pl citus_gates.pl
fi
if [ "${1:-}" = --bench ]; then set -- bench/citus.pl; fi
if [ -n "${1:-}" ] && [[ $1 != *.pl ]]; then
	build "$1"
	shift
fi
[ -d "$BUILT" ] || die "Citus is not built for PostgreSQL $VERSION" "Type: test/citus.sh --build FOLDER"
copy_server
# shellcheck disable=SC2046 # names of files have no blanks
[ $# -gt 0 ] || set -- $(cd "$ROOT/test/t" && grep -lE 'CitusCluster|citus' ./*.pl)
run_tests "$@"
