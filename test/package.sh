#!/usr/bin/env bash
# Builds Debian's packages in a bare Debian and looks at them, lintian too; installs them in another one, does there what
# somebody does who has just installed them (create, filter, watch, upgrade, resize, remove), and runs debian/tests by
# autopkgtest. The last lines are the log of that.
#
#   test/package.sh [--keep FOLDER] [--built] [RELEASE]      bookworm when none is named
#
# With --keep the packages lie in FOLDER afterwards, and the bare system there is used again; --built tries those that lie
# there, and builds none. As root, on Debian, with debootstrap; packages come from the mirror that apt uses.
# DEB_BUILD_OPTIONS=nolto compiles in a third of the time.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=servers/chroot.sh
source "$ROOT/test/servers/chroot.sh"

KEEP='' BUILT='' RELEASE=bookworm
while [ $# -gt 0 ]; do
	case $1 in
	--keep) KEEP=${2:?} && shift 2 ;;
	--built) BUILT=yes && shift ;;
	-*) die "unknown option: $1" ;;
	*) RELEASE=$1 && shift ;;
	esac
done

# shellcheck disable=SC2317 # by a trap
finish() {
	local status=$?
	trap - EXIT
	job_end TERM
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
	cp "$WORK"/build/build/*.deb "$WORK"/build/build/*.changes "$PACKAGES/"
}

# Errors of lintian fail, warnings are shown. A server loads a library of ours without symbols for debuggers, and there is
# no bitcode, of which its JIT could inline nothing: see debian/rules.
# shellcheck disable=SC2016 # the shell in there expands
inspect_packages() {
	in_chroot "$WORK/build" apt-get -q -y --no-install-recommends install lintian
	in_chroot "$WORK/build" sh -euc '
		cd /build
		lintian --allow-root --fail-on error --info --tag-display-limit 0 ./*.changes
		for package in ./postgresql-*-streamfilter_*.deb; do dpkg-deb -x "$package" inspected; done
		! find inspected -name "*.bc" | grep . || { echo "there is bitcode"; exit 1; }
		for library in inspected/usr/lib/postgresql/*/lib/streamfilter.so; do
			! readelf --sections --wide "$library" | grep -E "\.(symtab|debug_info)" || { echo "$library is not stripped"; exit 1; }
		done'
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

# In a third one, which installs what the tests depend on.
run_autopkgtest() {
	unpack "$WORK/tested"
	enter_chroot "$WORK/tested"
	copy_tree_to "$WORK/tested/build/streamfilter"
	cp "$PACKAGES"/*.deb "$WORK/tested/build/"
	in_chroot "$WORK/tested" apt-get -q update
	in_chroot "$WORK/tested" apt-get -q -y --no-install-recommends install autopkgtest postgresql-server-dev-all
	in_chroot "$WORK/tested" sh -euc 'cd /build/streamfilter && pg_buildext updatecontrol'
	in_chroot "$WORK/tested" sh -euc 'cd /build && autopkgtest ./*.deb ./streamfilter/ -- null'
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
if [ -z "$BUILT" ]; then
	rm -f "$PACKAGES"/*.deb "$PACKAGES"/*.changes
	stage "packages built" build_packages
	stage "packages inspected" inspect_packages
	grep -E '^[EW]: ' "$WORK/job.log" || true
fi
stage "packages installed in a bare $RELEASE" install_packages
stage "used as one who has installed them" use_them
cat "$WORK/job.log"
stage "autopkgtest" run_autopkgtest
sed -n '/^autopkgtest .*summary/,$p' "$WORK/job.log"
(cd "$PACKAGES" && ls -l ./*.deb)
