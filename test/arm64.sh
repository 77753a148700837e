#!/usr/bin/env bash
# Debian's packages for arm64, cross-built in a bare Debian; their library called from C, and debian/tests/session.sql played on
# arm64's own server with them, under qemu-user. `make check-arm64` runs the unit tests of the core likewise.
#
#   test/arm64.sh [--keep FOLDER] [--base FILE] [RELEASE]      bookworm when none is named
#
# With --keep the packages lie in FOLDER/RELEASE-arm64 afterwards; FILE: a bare system that test/package.sh --keep has left.
# As root, on Debian on another machine, with debootstrap; packages come from the mirror that apt uses.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=servers/chroot.sh
source "$ROOT/test/servers/chroot.sh"

KEEP='' BASE='' RELEASE=bookworm
while [ $# -gt 0 ]; do
	case $1 in
	--keep) KEEP=${2:?} && shift 2 ;;
	--base) BASE=$(realpath "${2:?}") && shift 2 ;;
	-*) die "unknown option: $1" ;;
	*) RELEASE=$1 && shift ;;
	esac
done

# The compiler is of this machine, libraries and server headers are arm64's. Packages of headers cannot be installed for two
# machines at once, so those of arm64 are unpacked over the others, whose programs stay.
# shellcheck disable=SC2016 # the shell in there expands
prepare_cross_build() {
	unpack_chroot "$BASE" "$WORK/build"
	in_chroot "$WORK/build" dpkg --add-architecture arm64
	in_chroot "$WORK/build" apt-get -q update
	in_chroot "$WORK/build" apt-get -q -y --no-install-recommends install build-essential crossbuild-essential-arm64 debhelper \
		postgresql-common postgresql-server-dev-all libboost-dev libboost-math-dev libpq5:arm64 libssl-dev:arm64 libxxhash-dev:arm64 \
		qemu-user-static
	in_chroot "$WORK/build" sh -euc '
		mkdir /tmp/headers && cd /tmp/headers
		apt-get -q download libpq-dev:arm64 $(ls /usr/lib/postgresql | sed "s/.*/postgresql-server-dev-&:arm64/")
		for package in ./*.deb; do dpkg -x $package unpacked; done
		rm -rf unpacked/usr/bin unpacked/usr/lib/postgresql/*/bin
		cp -a unpacked/. /'
}

# shellcheck disable=SC2016
build_packages() {
	copy_tree_to "$WORK/build/build/streamfilter"
	in_chroot "$WORK/build" sh -euc 'cd /build/streamfilter && pg_buildext updatecontrol && dpkg-buildpackage -aarm64 -d -b -us -uc'
	in_chroot "$WORK/build" sh -euc 'cd /build && for package in *.deb; do dpkg-deb -I $package | grep -E "^ (Package|Architecture|Depends)"; done'
	[ -z "$KEEP" ] || { mkdir -p "$KEEP/$RELEASE-arm64" && cp "$WORK"/build/build/*.deb "$KEEP/$RELEASE-arm64/"; }
}

# All of a server for arm64, not installed: nothing of it could run at that.
# shellcheck disable=SC2016
unpack_arm64() {
	in_chroot "$WORK/build" sh -euc '
		mkdir -p /arm64
		server=postgresql-$(ls /usr/lib/postgresql | tail -n 1)
		apt-get -q clean
		(cd /tmp && rm -f ./*.deb && apt-get -q download $(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
			--no-breaks --no-replaces --no-enhances $server:arm64 | grep -E "^[a-z0-9.+-]+:arm64$" |
			grep -vE "^(perl|dpkg|apt|debconf|bash|coreutils)") && for package in ./*_arm64.deb; do dpkg -x $package /arm64; done)
		for package in /build/*_arm64.deb; do dpkg -x $package /arm64; done
		[ -e /arm64/lib/ld-linux-aarch64.so.1 ] || ln -s usr/lib /arm64/lib
		readelf -h /arm64/usr/lib/postgresql/*/lib/streamfilter.so | grep -E "Machine: *AArch64"'
}

# shellcheck disable=SC2016
call_library() {
	in_chroot "$WORK/build" sh -euc '
		cd /build/streamfilter
		aarch64-linux-gnu-gcc -std=c11 -Iinclude -o /tmp/capi_test test/capi/capi_test.c -L/arm64/usr/lib/aarch64-linux-gnu -lstreamfilter -lm
		qemu-aarch64-static -L /arm64 /tmp/capi_test'
}

# The cluster is made by the server of this machine, whose files are the same as those of arm64: what an emulated initdb starts
# would not be emulated.
# shellcheck disable=SC2016
play_session() {
	in_chroot "$WORK/build" sh -euc '
		major=$(ls /usr/lib/postgresql | tail -n 1)
		apt-get -q -y --no-install-recommends install postgresql-$major
		bin=/usr/lib/postgresql/$major/bin
		server() { runuser -u postgres -- "$@"; }
		server $bin/initdb -D /tmp/data -A trust -E UTF8 --locale=C
		server qemu-aarch64-static -L /arm64 /arm64$bin/postgres -D /tmp/data -c shared_preload_libraries=streamfilter -c jit=off \
			-c listen_addresses= -c unix_socket_directories=/tmp &
		timeout 120 sh -c "until $bin/pg_isready -h /tmp; do sleep 1; done"
		status=0
		server $bin/psql -X -e -v ON_ERROR_STOP=1 -h /tmp -d postgres -c "SELECT version()" -f - </build/streamfilter/debian/tests/session.sql || status=$?
		kill -INT $(head -n 1 /tmp/data/postmaster.pid)
		wait
		exit $status'
}

make_work_for_chroots
BASE=${BASE:-$WORK/$RELEASE.tar}
stage "a bare $RELEASE" pack_chroot "$BASE" "$RELEASE"
stage "a cross compiler in it" prepare_cross_build
stage "packages for arm64" build_packages
sed -n '/^ Package/,$p' "$WORK/job.log"
stage "unpacked beside arm64's server" unpack_arm64
stage "the library, called from C" call_library
stage "a session, under qemu-user" play_session
sed -n '/PostgreSQL [0-9]/,$p' "$WORK/job.log"
