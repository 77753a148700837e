# Copies of the server with the library of this tree, or of a commit, built as it is installed: with link-time optimization.
# Sourced after test/lib.sh.
# shellcheck shell=bash

NO_BITCODE=with_llvm=no # no server here compiles queries

resolve_commit() { # commit: prints its hash
	as_owner git -C "$ROOT" rev-parse --verify --quiet "$1^{commit}" || die "no commit here: $1"
}

build_tree() { make_here $NO_BITCODE -j2 all; }

# Builds a commit in a folder of its own; what it installs is kept in build/commits for the next time.
build_commit() { # hash
	local tree=$ROOT/build/commits/$1.tree installed
	installed=$(commit_files "$1")
	[ ! -d "$installed" ] || return 0
	as_owner rm -rf "$tree" "$installed.new"
	as_owner mkdir -p "$tree"
	as_owner git -C "$ROOT" archive "$1" | as_owner tar -C "$tree" -xf -
	as_owner make -C "$tree" --no-print-directory PG_CONFIG="$PG_CONFIG" $NO_BITCODE -j2 all
	as_owner make -C "$tree" --no-print-directory PG_CONFIG="$PG_CONFIG" $NO_BITCODE LIBRARY=no DESTDIR="$installed.new" install
	as_owner mv "$installed.new" "$installed"
	as_owner rm -rf "$tree"
}

commit_files() { say "$ROOT/build/commits/$1-$("$PG_CONFIG" --version | grep -oE '[0-9]+' | head -n 1)"; } # hash

# A copy of the server of PG_CONFIG below $WORK/NAME, without what the system has of streamfilter.
copy_server() { # name
	copy_binaries "$WORK/$1" "$PG_CONFIG"
	find "$WORK/$1" -depth -name 'streamfilter*' -exec rm -rf {} +
}

install_commit() { # name hash
	copy_server "$1"
	cp -a "$(commit_files "$2")/." "$WORK/$1/"
	! is_root || chown -R postgres "$WORK/$1"
}

install_tree() { # name
	copy_server "$1"
	make -C "$ROOT" --no-print-directory PG_CONFIG="$PG_CONFIG" $NO_BITCODE LIBRARY=no DESTDIR="$WORK/$1" install
	! is_root || chown -R postgres "$WORK/$1"
}

config_of() { say "$WORK/$1$("$PG_CONFIG" --bindir)/pg_config"; } # name
