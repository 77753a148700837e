#!/usr/bin/env bash
# Builds the packages of rpm/streamfilter.spec by rpmbuild, unpacks them over a copy of the server, and plays
# debian/tests/session.sql there.
#
#   test/rpm.sh [--keep FOLDER]      the packages lie in FOLDER afterwards
#
# Wants rpmbuild: package rpm-build of Fedora and its kin; package rpm of Debian, whose names of what a build needs are others,
# so there nothing asks for them. PG_CONFIG names the server. MAKE_OPTIONS=LTO= compiles in a third of the time.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

KEEP=''
while [ $# -gt 0 ]; do
	case $1 in
	--keep) KEEP=${2:?} && shift 2 ;;
	*) die "unknown option: $1" ;;
	esac
done

build_rpms() {
	local name tree asks=()
	name=streamfilter-$(sed -n 's/^Version: //p' "$ROOT/rpm/streamfilter.spec")
	tree=$WORK/$name
	mkdir -p "$tree" "$WORK/rpm/SOURCES"
	tar -C "$ROOT" --exclude=./.git --exclude=./build --exclude='./tmp_check*' --exclude='./*.so' --exclude=./results \
		--exclude='./sql/streamfilter--*.sql' -cf - . | tar -C "$tree" --no-same-owner -xf -
	(cd "$WORK" && zip -q -r "rpm/SOURCES/$name.zip" "$name")
	[ ! -e /etc/debian_version ] || asks=(--nodeps --define 'debug_package %{nil}')
	rpmbuild -bb ${asks[@]+"${asks[@]}"} --define "_topdir $WORK/rpm" --define "_smp_mflags -j2" --define "pg_config $PG_CONFIG" \
		${MAKE_OPTIONS:+--define "make_options $MAKE_OPTIONS"} \
		"$ROOT/rpm/streamfilter.spec"
	find "$WORK/rpm/RPMS" -name '*.rpm' | while read -r package; do
		rpm -qp --qf '%{NAME} %{VERSION} %{ARCH}\n' "$package"
		rpm -qpl "$package"
	done
}

# As it is installed, but below the copy.
unpack_rpms() {
	local package
	copy_binaries "$WORK/server" "$PG_CONFIG"
	find "$WORK/rpm/RPMS" -name '*.rpm' | while read -r package; do
		(cd "$WORK/server" && rpm2cpio "$package" | cpio -idmu --quiet)
	done
}

play_session() {
	local bin
	bin=$WORK/server$(pg_bin)
	as_server "$bin/initdb" -D "$WORK/data" -A trust -E UTF8 --locale=C.UTF-8
	as_server "$bin/pg_ctl" -D "$WORK/data" -w -l "$WORK/log" \
		-o "-c shared_preload_libraries=streamfilter -c listen_addresses='' -c unix_socket_directories=$WORK" start
	as_server "$bin/psql" -X -e -v ON_ERROR_STOP=1 -h "$WORK" -d postgres <"$ROOT/debian/tests/session.sql"
	as_server "$bin/pg_ctl" -D "$WORK/data" -m fast -w stop
}

trap remove_work EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
make_work
if [ -e /etc/debian_version ]; then prepare rpm cpio zip unzip; else PG_CONFIG=${PG_CONFIG:-$(command -v pg_config)} && give_work; fi
stage "packages built" build_rpms
grep -E '^(postgresql|lib|/)' "$WORK/job.log" | sed '/^Processing/d'
stage "unpacked over a copy of the server" unpack_rpms
give_work
stage "a session" play_session
[ -z "$KEEP" ] || { mkdir -p "$KEEP" && find "$WORK/rpm/RPMS" -name '*.rpm' -exec cp -t "$KEEP" {} +; }
say "PostgreSQL $("$PG_CONFIG" --version | sed 's/[^0-9]* //'), $(rpm --version): ok"
