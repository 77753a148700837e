#!/usr/bin/env bash
# Builds what Containerfile says, starts it, and plays the first hour in it (debian/tests/session.sql). With podman; without
# it, or with --chroot, each of its lines is carried out in bare Debian systems, which is the same but for the layers.
#
#   test/container.sh [--chroot] [--base FILE]      FILE: a bare bookworm that test/package.sh --keep has left
#
# As root, on Debian; needs podman, or debootstrap.

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=servers/chroot.sh
source "$ROOT/test/servers/chroot.sh"

CHROOT='' BASE=''
while [ $# -gt 0 ]; do
	case $1 in
	--chroot) CHROOT=yes && shift ;;
	--base) BASE=$(realpath "${2:?}") && shift 2 ;;
	*) die "unknown option: $1" ;;
	esac
done

with_podman() {
	podman build -t streamfilter-test "$ROOT"
	local container
	container=$(podman run -d streamfilter-test)
	# shellcheck disable=SC2064 # the name is wanted as it is now
	trap "podman rm -f '$container'" EXIT
	podman exec "$container" timeout 60 sh -c "$UNTIL_READY"
	podman exec -i "$container" psql -X -e -v ON_ERROR_STOP=1 <"$ROOT/debian/tests/session.sql"
}

UNTIL_READY='until pg_isready; do sleep 1; done'

# ---- the same in bare systems --------------------------------------------------------------------------

STAGE='' STAGE_ROOT='' FOLDER=/ USER_NAME=root ENVIRONMENT=() COMMAND=()

as_user_there() { # command…
	in_chroot "$STAGE_ROOT" env -u LC_ALL ${ENVIRONMENT[@]+"${ENVIRONMENT[@]}"} runuser -u "$USER_NAME" -- "$@"
}

run_there() { as_user_there sh -c "cd '$FOLDER' && $1"; }

carry_out() { # instruction arguments
	local from to stage
	case $1 in
	FROM)
		[[ $2 == debian:12-slim* ]] || die "this is made for debian:12-slim, not $2"
		STAGE=last
		[[ $2 != *" AS "* ]] || STAGE=${2##* }
		STAGE_ROOT=$WORK/$STAGE FOLDER=/ USER_NAME=root ENVIRONMENT=()
		unpack_chroot "$BASE" "$STAGE_ROOT"
		;;
	RUN) run_there "$2" ;;
	ENV) ENVIRONMENT+=("$2") ;;
	WORKDIR) FOLDER=$2 && mkdir -p "$STAGE_ROOT$2" ;;
	USER) USER_NAME=$2 ;;
	EXPOSE) ;;
	CMD) mapfile -t COMMAND < <(perl -MJSON::PP -e 'print "$_\n" for @{ decode_json($ARGV[0]) }' "$2") ;;
	COPY)
		read -r from to <<<"${2#--from=* }"
		if [[ $2 == --from=* ]]; then
			stage=${2%% *}
			cp -a "$WORK/${stage#--from=}$from/." "$STAGE_ROOT$to"
		else
			copy_tree_to "$STAGE_ROOT$to"
		fi
		;;
	*) die "Containerfile has an instruction that this does not know: $1" ;;
	esac
}

in_chroots() {
	local line
	pack_chroot "$BASE" bookworm
	while IFS= read -r line; do
		say "### $line"
		carry_out "${line%% *}" "${line#* }"
	done < <(sed -e '/^#/d' -e '/^$/d' "$ROOT/Containerfile" | sed -e ':a' -e '/\\$/{N;s/\\\n *//;ta' -e '}')
	as_user_there "${COMMAND[@]}" &
	FOLDER=/
	run_there "timeout 60 sh -c '$UNTIL_READY'"
	run_there 'psql -X -e -v ON_ERROR_STOP=1' <"$ROOT/debian/tests/session.sql"
	run_there 'psql -X -Atc "SHOW server_encoding"' | grep -x UTF8
	end_in_chroots "$STAGE_ROOT"
	wait
}

make_work_for_chroots
BASE=${BASE:-$WORK/bookworm.tar}
if [ -z "$CHROOT" ] && command -v podman >/dev/null; then
	stage "Containerfile, by podman" with_podman
else
	stage "Containerfile, line by line in bare systems" in_chroots
fi
sed -n '/^CREATE EXTENSION streamfilter/,/^UTF8$/p' "$WORK/job.log"
