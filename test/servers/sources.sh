# PostgreSQL's own sources, from Debian's source package: sourced by the scripts that build something of them, never run.
# They set MAJOR and WORK before. The configuration of apt is not touched: sources are looked up with one of our own, on the
# mirror that apt uses.
# shellcheck shell=bash

private_apt() { # apt-get or apt-cache, with the release's source packages only
	"$1" -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$WORK/apt/sources" -o Dir::State="$WORK/apt/state" \
		-o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$WORK/apt/cache" -o APT::Sandbox::User=root "${@:2}"
}

private_sources() {
	local file name
	mkdir -p "$WORK/apt/sources" "$WORK/apt/state/lists/partial" "$WORK/apt/cache/archives/partial"
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		grep -qsE 'debian\.org|/debian' "$file" || continue
		name=$(basename "$file")
		sed -E 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$file" >"$WORK/apt/sources/${name/%sources.list/debian.list}"
	done
	[ "$MAJOR" = "$(postgres_major)" ] || newer_sources
}

newer_sources() { # of the releases that come, for versions that this one has not
	local suite mirror
	mirror=$(debian_mirror)
	[ -n "$mirror" ] || return 0
	for suite in trixie sid experimental; do
		say "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
	done >"$WORK/apt/sources/newer.list"
}

fetch() { # the newest version that can be had, as Debian builds it, unpacked in $WORK/source
	local version
	private_sources
	private_apt apt-get update
	cd "$WORK/apt" || return
	private_apt apt-cache showsrc "postgresql-$MAJOR" | sed -n 's/^Version: //p' | sort -rVu >versions
	while read -r version; do
		rm -f postgresql-*
		private_apt apt-get source --download-only "postgresql-$MAJOR=$version" </dev/null || continue
		dpkg-source -x ./*.dsc "$WORK/source"
		return
	done <versions
	return 1
}
