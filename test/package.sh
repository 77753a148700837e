#!/usr/bin/env bash
# Builds Debian's packages in a bare Debian and looks at them, lintian too; follows README.md in another one, which has nothing
# but them: installs, makes filters, watches, gives another size, removes; follows docs/tutorial.md there, too,
# down to a table of the reader's own; and runs debian/tests by autopkgtest in a third one. What is printed is the log of that.
#
#   test/package.sh [--keep FOLDER] [--built] [RELEASE]      bookworm when none is named
#
# With --keep the packages lie in FOLDER afterwards, and the bare system and what was compiled there are used again; --built
# tries the packages that lie there, and builds none. As root, on Debian, with debootstrap; packages come from the mirror that apt uses.
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

build_packages() {
	local tools=(build-essential debhelper postgresql-common postgresql-server-dev-all)
	unpack_chroot "$BASE" "$WORK/build"
	if [ -n "$KEEP" ]; then # what was compiled, too
		LENT_CCACHE=$KEEP/ccache
		tools+=(ccache)
	fi
	copy_tree_to "$WORK/build/build/streamfilter"
	in_chroot "$WORK/build" apt-get -q update
	in_chroot "$WORK/build" apt-get -q -y --no-install-recommends install "${tools[@]}"
	in_chroot "$WORK/build" sh -euc 'cd /build/streamfilter && pg_buildext updatecontrol && apt-get -q -y --no-install-recommends build-dep ./'
	in_chroot "$WORK/build" sh -euc 'cd /build/streamfilter && dpkg-buildpackage -b -us -uc'
	cp "$WORK"/build/build/*.deb "$WORK"/build/build/*.changes "$PACKAGES/"
}

# Errors of lintian fail, warnings are shown. A server loads a library of ours without symbols for debuggers, and there is
# no bitcode, since its JIT could inline nothing of it: see debian/rules.
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

# What README.md tells the reader, word by word. Services start there as they do on a machine.
follow_readme() {
	local reader=$WORK/user/home/reader
	unpack_chroot "$BASE" "$WORK/user"
	printf '#!/bin/sh\nexit 0\n' >"$WORK/user/usr/sbin/policy-rc.d"
	printf '%s "%s";\n' APT::Get::Assume-Yes true APT::Install-Recommends false DPkg::Use-Pty false \
		>"$WORK/user/etc/apt/apt.conf.d/no-questions"
	say "127.0.0.1 localhost $(uname -n)" >"$WORK/user/etc/hosts"
	mkdir -p "$reader/debian/tests"
	cp "$PACKAGES"/*.deb "$reader/"
	cp "$ROOT/debian/tests/session.sql" "$reader/debian/tests/"
	perl "$ROOT/test/readme.pl" "$ROOT/README.md" >"$reader/readme.sh"
	in_chroot "$WORK/user" apt-get -q update
	in_chroot "$WORK/user" apt-get -q install sudo
	in_chroot "$WORK/user" sh -euc 'cd /home/reader && sh readme.sh'
	! ls "$WORK"/user/usr/lib/postgresql/*/lib/streamfilter.so
}

# Installed again, and what the tutorial tells, from its first line to the filter for a stream of this machine.
follow_tutorial() {
	perl "$ROOT/test/readme.pl" "$ROOT/docs/tutorial.md" tutorial >"$WORK/user/home/reader/tutorial.sh"
	in_chroot "$WORK/user" sh -euc '
		cd /home/reader
		apt-get -q install ./postgresql-*-streamfilter_*.deb
		sudo -u postgres psql -X -c "ALTER SYSTEM SET shared_preload_libraries = streamfilter"
		service postgresql restart
		sudo -u postgres createdb tutorial
		sh tutorial.sh
		sudo -u postgres dropdb tutorial
		sudo -u postgres psql -X -c "ALTER SYSTEM RESET shared_preload_libraries"
		service postgresql restart'
}

# The first thing that readers forget is forgotten. Of all errors so far, none was without a hint.
# shellcheck disable=SC2016 # the shell in there expands
err_as_readers() {
	in_chroot "$WORK/user" sh -euc '
		cd /home/reader
		dpkg -L $(dpkg-query -W -f "\${Package}" "postgresql-*-streamfilter") | grep -E "\.(so|bc|control|sql)$" | xargs ls -l
		! sudo -u postgres psql -X -e -v ON_ERROR_STOP=1 -c "CREATE EXTENSION streamfilter" \
			-c "CREATE FOREIGN TABLE seen (id int) SERVER streamfilter" -c "INSERT INTO seen VALUES (1)"
		service postgresql stop
		perl -ne "\$error = \$_ if / ERROR: /; undef \$error if / HINT: /; die qq(no hint: \$error) if \$error && / STATEMENT: /;
			\$hints++ if / HINT: /; END { die qq(no error at all) unless \$hints }" /var/log/postgresql/*.log'
}

# In a third one, which installs what the tests depend on.
run_autopkgtest() {
	unpack_chroot "$BASE" "$WORK/tested"
	copy_tree_to "$WORK/tested/build/streamfilter"
	cp "$PACKAGES"/*.deb "$WORK/tested/build/"
	in_chroot "$WORK/tested" apt-get -q update
	in_chroot "$WORK/tested" apt-get -q -y --no-install-recommends install autopkgtest postgresql-server-dev-all
	in_chroot "$WORK/tested" sh -euc 'cd /build/streamfilter && pg_buildext updatecontrol'
	in_chroot "$WORK/tested" sh -euc 'cd /build && autopkgtest ./*.deb ./streamfilter/ -- null'
}

make_work_for_chroots
[ -z "$KEEP" ] || { mkdir -p "$KEEP" && KEEP=$(realpath "$KEEP"); }
BASE=${KEEP:-$WORK}/$RELEASE.tar PACKAGES=${KEEP:-$WORK}/$RELEASE
mkdir -p "$PACKAGES"
stage "a bare $RELEASE" pack_chroot "$BASE" "$RELEASE"
if [ -z "$BUILT" ]; then
	rm -f "$PACKAGES"/*.deb "$PACKAGES"/*.changes
	stage "packages built" build_packages
	! grep ': warning: ' "$WORK/job.log" | grep -v '^dpkg-' || die "the compiler has warned"
	stage "packages inspected" inspect_packages
	grep -E '^[EW]: .*streamfilter' "$WORK/job.log" || say "lintian: no error and no warning"
fi
stage "README followed in a bare $RELEASE" follow_readme
sed '1,/^+ sudo apt install/d' "$WORK/job.log"
stage "tutorial followed" follow_tutorial
stage "errors have hints" err_as_readers
cat "$WORK/job.log"
stage "autopkgtest" run_autopkgtest
sed -n '/^autopkgtest .*summary/,$p' "$WORK/job.log"
(cd "$PACKAGES" && ls -l ./*.deb)
