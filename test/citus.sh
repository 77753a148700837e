#!/usr/bin/env bash
# Builds Citus from its sources and runs all tests that need it, on a coordinator and up to four workers.
#
#   test/citus.sh FOLDER|TARBALL [TEST…]     sources of Citus 13, as `git clone` or a release has them
#
# As root or with sudo, Debian 12 or 13. PG_CONFIG says for which server. Citus is installed there, beside streamfilter; nothing
# of it is kept elsewhere. A build takes about two minutes, the tests four.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PG_CONFIG=${PG_CONFIG:-$(command -v pg_config || true)}
[ -n "$PG_CONFIG" ] || die "no pg_config" "Install postgresql-server-dev-15, or set PG_CONFIG."
SOURCE=${1:-}
[ -e "$SOURCE" ] || die "usage: test/citus.sh FOLDER|TARBALL [TEST…]"
shift
TESTS=("$@")
[ ${#TESTS[@]} -gt 0 ] || TESTS=("$ROOT"/test/t/*citus*.pl)

WORK=$(mktemp -d /tmp/streamfilter-citus.XXXXXX)
trap 'rm -rf "$WORK"' EXIT

unpack() {
	mkdir "$WORK/citus"
	if [ -d "$SOURCE" ]; then
		tar -C "$SOURCE" --exclude=./.git -cf - . | tar -C "$WORK/citus" -xf -
	else
		tar -C "$WORK/citus" --strip-components=1 -xf "$SOURCE"
	fi
	[ -x "$WORK/citus/configure" ] || die "no configure in $SOURCE" "Are these the sources of Citus?"
}

install_needed() {
	local missing=() package
	for package in flex liblz4-dev libzstd-dev libssl-dev libpq-dev libxml2-dev libselinux1-dev libpam0g-dev libkrb5-dev \
		libreadline-dev libicu-dev libipc-run-perl; do
		dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
	done
	[ ${#missing[@]} -eq 0 ] && return
	as_root apt-get update -qq
	as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
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

unpack
install_needed
mend
cd "$WORK/citus"
run "configuring Citus" ./configure PG_CONFIG="$PG_CONFIG" --without-libcurl
run "compiling Citus" nice make -s -j"$(nproc)" with_llvm=no
run "installing Citus" as_root make -s with_llvm=no install
cd "$ROOT"
run "compiling streamfilter" make -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG"
run "installing streamfilter" as_root make -s PG_CONFIG="$PG_CONFIG" install

# A server refuses root.
mkdir "$WORK/tree"
tar -C "$ROOT" --exclude=./.git --exclude=./build --exclude='./tmp_check*' -cf - . | tar -C "$WORK/tree" -xf -
mkdir "$WORK/tmp"
if is_root; then chown -R postgres "$WORK"; fi
chmod 755 "$WORK"
FILES=()
for file in "${TESTS[@]}"; do FILES+=("test/t/$(basename "$file")"); done
PGXS=$(dirname "$("$PG_CONFIG" --pgxs)")
cd "$WORK/tree"
as_server env -C "$PWD" TESTDIR="$PWD" TESTDATADIR="$PWD/tmp_check" TESTLOGDIR="$PWD/tmp_check/log" PGPORT=65432 \
	PATH="$("$PG_CONFIG" --bindir):$PATH" PG_REGRESS="$PGXS/../test/regress/pg_regress" \
	prove --timer -I "$PGXS/../test/perl" -I . "${FILES[@]}"
