#!/usr/bin/env bash
# Builds Debian's packages in a bare Debian, installs them in another one, and does there what somebody does who has just
# installed them: create, filter, watch, upgrade, resize, remove. The last lines are the log of that.
#
#   test/package.sh [--keep FOLDER] [RELEASE]      bookworm when none is named
#
# With --keep the packages lie in FOLDER afterwards, and the bare system there is used again. As root, on Debian, with
# debootstrap; packages come from the mirror that apt uses. DEB_BUILD_OPTIONS=nolto compiles in a third of the time.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=servers/chroot.sh
source "$ROOT/test/servers/chroot.sh"

KEEP='' RELEASE=bookworm
while [ $# -gt 0 ]; do
	case $1 in
	--keep) KEEP=${2:?} && shift 2 ;;
	-*) die "unknown option: $1" ;;
	*) RELEASE=$1 && shift ;;
	esac
done

# shellcheck disable=SC2317 # by a trap
finish() {
	local status=$?
	trap - EXIT
	job_end TERM
	leave_chroots
	remove_work
	exit "$status"
}

bare_system() { # kept packed: two systems are made of it
	[ ! -s "$BASE" ] || return 0
	make_chroot "$WORK/bare" "$RELEASE"
	tar -C "$WORK/bare" -cf "$BASE.new" .
	mv "$BASE.new" "$BASE"
	rm -rf "$WORK/bare"
}

unpack() { mkdir -p "$1" && tar -C "$1" -xf "$BASE"; }

build_packages() {
	unpack "$WORK/build"
	enter_chroot "$WORK/build"
	copy_tree_to "$WORK/build/build/streamfilter"
	in_chroot "$WORK/build" apt-get -q update
	in_chroot "$WORK/build" apt-get -q -y --no-install-recommends install build-essential debhelper postgresql-common \
		postgresql-server-dev-all
	in_chroot "$WORK/build" sh -euc 'cd /build/streamfilter && pg_buildext updatecontrol && apt-get -q -y --no-install-recommends build-dep ./'
	in_chroot "$WORK/build" sh -euc 'cd /build/streamfilter && dpkg-buildpackage -b -us -uc'
	cp "$WORK"/build/build/*.deb "$PACKAGES/"
}

install_packages() {
	unpack "$WORK/user"
	enter_chroot "$WORK/user"
	cp "$PACKAGES"/*.deb "$WORK/user/tmp/"
	in_chroot "$WORK/user" apt-get -q update
	in_chroot "$WORK/user" sh -euc 'apt-get -q -y --no-install-recommends install /tmp/postgresql-*-streamfilter_*.deb'
}

# As the documents say, in the cluster that the server's package has made.
# shellcheck disable=SC2016 # the shell in there expands
use_them() {
	cp "$ROOT/debian/tests/session.sql" "$WORK/user/tmp/"
	in_chroot "$WORK/user" sh -euc '
		version=$(ls /usr/lib/postgresql)
		echo "shared_preload_libraries = '"'streamfilter'"'" >"/etc/postgresql/$version/main/conf.d/streamfilter.conf"
		pg_ctlcluster "$version" main start
		trap "pg_ctlcluster $version main stop" EXIT
		runuser -u postgres -- psql -X -e -v ON_ERROR_STOP=1 -f /tmp/session.sql
		file=/usr/lib/postgresql/$version/lib/streamfilter.so
		ls -l "$file"
		dpkg -L "postgresql-$version-streamfilter" | grep -E "\.(so|bc|control|sql)$"'
	in_chroot "$WORK/user" sh -euc 'apt-get -q -y purge "postgresql-*-streamfilter"; ! ls /usr/lib/postgresql/*/lib/streamfilter.so'
}

is_root || die "must be root: packages are installed in systems of their own"
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
make_work
chmod 755 "$WORK"
install_missing debootstrap
[ -z "$KEEP" ] || mkdir -p "$KEEP"
BASE=${KEEP:-$WORK}/$RELEASE.tar PACKAGES=${KEEP:-$WORK}/$RELEASE
mkdir -p "$PACKAGES"
stage "a bare $RELEASE" bare_system
rm -f "$PACKAGES"/*.deb
stage "packages built" build_packages
stage "packages installed in a bare $RELEASE" install_packages
stage "used as one who has installed them" use_them
cat "$WORK/job.log"
(cd "$PACKAGES" && ls -l ./*.deb)
