# Bare Debian systems below a folder, for test/matrix.sh and test/package.sh: sourced by them after lib.sh, never run.
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

# Each command sees mounts of its own, which end with it: those of another one stay.
in_chroot() { # folder command…
	as_root unshare --mount sh -euc '
		mountpoint -q "$1/proc" || mount -t proc proc "$1/proc"
		mountpoint -q "$1/dev/shm" || mountpoint -q "$1/dev" || mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
		shift
		exec "$@"' sh "$1" \
		env -i PATH=/usr/lib/ccache:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
		DEBIAN_FRONTEND=noninteractive ${MAKEFLAGS:+"MAKEFLAGS=$MAKEFLAGS"} ${DEB_BUILD_OPTIONS:+"DEB_BUILD_OPTIONS=$DEB_BUILD_OPTIONS"} \
		${CCACHE_DIR:+"CCACHE_DIR=$CCACHE_DIR"} chroot "$@"
}

make_chroot() { # folder release: nothing is started there by installing it
	[ ! -e "$1/etc/debian_version" ] || return 0
	as_root mkdir -p "$1"
	as_root debootstrap --variant=minbase "$2" "$1" "$(debian_mirror)"
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$1/usr/sbin/policy-rc.d" >/dev/null
	as_root chmod 755 "$1/usr/sbin/policy-rc.d"
	say force-unsafe-io | as_root tee "$1/etc/dpkg/dpkg.cfg.d/thrown-away" >/dev/null # no fsync for what lives an hour
}

copy_tree_to() { # folder: the tree as it stands, without what was built
	as_root rm -rf "$1"
	as_root mkdir -p "$1"
	tar -C "$ROOT" --exclude=./.git --exclude=./build --exclude='./tmp_check*' --exclude='./*.so' --exclude=./results \
		--exclude='./sql/streamfilter--*.sql' -cf - . | as_root tar -C "$1" --no-same-owner -xf -
}
