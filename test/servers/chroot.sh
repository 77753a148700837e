# Bare Debian systems below a folder, for test/matrix.sh, guest.sh, package.sh and container.sh: sourced by them after lib.sh,
# never run.
# shellcheck shell=bash

# What programs ask for of /dev.
enter_chroot() { # folder
	local node
	as_root mkdir -p "$1/proc" "$1/dev/shm"
	for node in null zero random urandom; do
		[ -e "$1/dev/$node" ] || as_root cp -a "/dev/$node" "$1/dev/$node"
	done
	[ -e "$1/dev/fd" ] || as_root ln -s /proc/self/fd "$1/dev/fd"
}

# Each command sees mounts of its own, which end with it: those of another one stay. LENT_CCACHE is a folder of ours that
# its compilers use.
# shellcheck disable=SC2016 # the shell in there expands
in_chroot() { # folder command…
	as_root unshare --mount sh -euc '
		mountpoint -q "$1/proc" || mount -t proc proc "$1/proc"
		mountpoint -q "$1/dev/shm" || mountpoint -q "$1/dev" || mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
		[ -z "$2" ] || { mkdir -p "$2" "$1/ccache" && mount --bind "$2" "$1/ccache"; }
		shift 2
		exec "$@"' sh "$1" "${LENT_CCACHE:-}" \
		env -i PATH=/usr/lib/ccache:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
		DEBIAN_FRONTEND=noninteractive ${MAKEFLAGS:+"MAKEFLAGS=$MAKEFLAGS"} ${DEB_BUILD_OPTIONS:+"DEB_BUILD_OPTIONS=$DEB_BUILD_OPTIONS"} \
		${CCACHE_DIR:+"CCACHE_DIR=$CCACHE_DIR"} ${LENT_CCACHE:+CCACHE_DIR=/ccache} chroot "$@"
}

# What was started there may have left its process group.
end_in_chroots() { # one, or the folder they lie in
	local process
	for process in /proc/[0-9]*; do
		[[ $(readlink "$process/root" || true)/ != "$1"/* ]] || kill -TERM "${process#/proc/}" || true
	done 2>/dev/null
}

make_chroot() { # folder release: nothing is started there by installing it
	[ ! -e "$1/etc/debian_version" ] || return 0
	as_root mkdir -p "$1"
	as_root debootstrap --variant=minbase "$2" "$1" "$(debian_mirror)"
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$1/usr/sbin/policy-rc.d" >/dev/null
	as_root chmod 755 "$1/usr/sbin/policy-rc.d"
	say force-unsafe-io | as_root tee "$1/etc/dpkg/dpkg.cfg.d/thrown-away" >/dev/null # no fsync for what lives an hour
}

# For scripts whose systems live no longer than they: these lie below $WORK.
make_work_for_chroots() {
	is_root || die "must be root: packages are installed in systems of their own"
	trap remove_work_of_chroots EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	chmod 755 "$WORK"
	install_missing debootstrap
}

# shellcheck disable=SC2317 # by a trap
remove_work_of_chroots() {
	local status=$?
	trap - EXIT
	job_end TERM
	end_in_chroots "$WORK"
	remove_work
	exit "$status"
}

pack_chroot() { # file release: bare, and packed, for several are made of it
	[ ! -s "$1" ] || return 0
	make_chroot "$WORK/bare" "$2"
	tar -C "$WORK/bare" -cf "$1.new" .
	mv "$1.new" "$1"
	rm -rf "$WORK/bare"
}

unpack_chroot() { # file folder
	mkdir -p "$2"
	tar -C "$2" -xf "$1"
	enter_chroot "$2"
}

copy_tree_to() { # folder: the tree as it stands, without what was built
	as_root rm -rf "$1"
	as_root mkdir -p "$1"
	tar -C "$ROOT" --exclude=./.git --exclude=./build --exclude='./tmp_check*' --exclude='./*.so' --exclude=./results \
		--exclude='./sql/streamfilter--*.sql' -cf - . | as_root tar -C "$1" --no-same-owner -xf -
}

# --- Servers of a newer release, in systems that are kept below $CACHE -----------------------------------------------------

debian_config() { # major [folder]: pg_config of Debian's server, if there is one to build against
	local bin=/usr/lib/postgresql/$1/bin system=${2:-}
	[ -x "$system$bin/pg_config" ] && [ -x "$system$bin/postgres" ] &&
		[ -e "$system/usr/lib/postgresql/$1/lib/pgxs/src/makefiles/pgxs.mk" ] && say "$bin/pg_config"
}

newer_release() { # major: the release of Debian that has it
	case $1 in
	17) say trixie ;;
	18 | 19) say sid ;;
	*) return 1 ;;
	esac
}

# shellcheck disable=SC2034 # for the caller
in_newer_release() { # major: a system with the packages, all of it or nothing; sets PLACE
	local release folder
	release=$(newer_release "$1") && [ -n "$(debian_mirror)" ] && command -v debootstrap || return 1
	folder=$CACHE/$release
	make_chroot "$folder" "$release" && install_in_chroot "$folder" "$1" && PLACE="chroot $folder"
}

install_in_chroot() { # folder major
	local target=()
	! debian_config "$2" "$1" || return 0
	enter_chroot "$1"
	if [ "$2" -ge 19 ] && ! grep -qs experimental "$1/etc/apt/sources.list"; then
		say "deb $(debian_mirror) experimental main" | as_root tee -a "$1/etc/apt/sources.list"
	fi
	[ "$2" -lt 19 ] || target=(-t experimental)
	in_chroot "$1" apt-get -q update
	in_chroot "$1" apt-get -q -y --no-install-recommends "${target[@]}" install "postgresql-$2" "postgresql-server-dev-$2"
}
