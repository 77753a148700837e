# Where the demo's events come from: a CSV, or apt's package lists. Sourced by test/demo.sh.
# shellcheck shell=bash disable=SC2034,SC2153 # the variables are shared by the demo's files

# Set by open_events: the columns as they are called in the database, the key's, and what to call all of it.
COLUMNS_SQL=() KEYS_SQL=() EVENTS_NAME='' KEY_NAME=''
COMPRESSED='' ENCODING=UTF-8
FILE_RULE="It must be a CSV, plain or .gz, whose first line names the columns."

raw_events() { if [ -n "$COMPRESSED" ]; then gzip -dc -- "$FILE"; else cat -- "$FILE"; fi; }

events() { if [ "$ENCODING" = UTF-8 ]; then raw_events; else raw_events | iconv -f "$ENCODING" -t UTF-8; fi; }

check_file() {
	[ -e "$FILE" ] || die "there is no file $SHOWN" "$FILE_RULE" "Without FILE the demo uses apt's package lists."
	[ -f "$FILE" ] || die "$SHOWN is not a regular file" "$FILE_RULE It is read more than once: save it first."
	[ -r "$FILE" ] || die "$SHOWN cannot be read by $(id -un)" "Change its permissions, or run this as another user."
	[ -s "$FILE" ] || die "$SHOWN is empty" "$FILE_RULE"
	case $(head -c 4 -- "$FILE" | od -An -tx1 | tr -d ' \n') in
	1f8b*) COMPRESSED=1 ;;
	fffe* | feff*) die "$SHOWN is UTF-16" "Convert it first: iconv -f UTF-16 -t UTF-8" ;;
	504b0304 | fd377a58 | 28b52ffd | 04224d18 | 425a68*)
		die "$SHOWN is packed, but not by gzip" "Unpack it first, or pack it with gzip."
		;;
	esac
}

# The whole file is read once, so that damage shows before anything is installed. Prints lines and encoding.
inspect() {
	local lines
	lines=$(raw_events | awk "END { print NR }")
	if raw_events | iconv -f UTF-8 -t UTF-8 >/dev/null 2>&1; then
		say "$lines UTF-8" >"$WORK/inspected"
	else
		say "$lines LATIN1" >"$WORK/inspected" # reads every byte as some letter, so different keys stay different
	fi
}

inspect_file() {
	local lines
	job "reading $(basename "$FILE")" inspect
	printf '\n'
	[ "$JOB_STATUS" -eq 0 ] || die "$SHOWN cannot be read: $(tail -n 1 "$WORK/job.log")" \
		"The file is damaged or cut off: fetch it again."
	read -r lines ENCODING <"$WORK/inspected"
	[ "$lines" -gt 0 ] || die "$SHOWN is empty" "$FILE_RULE"
	[ "$lines" -gt 1 ] || die "$SHOWN has a header and nothing else" "There must be an event per line below it."
	[ "$ENCODING" = UTF-8 ] || say "  not UTF-8: read as $ENCODING"
}

column_names() { # as in the file → as in the database, where some names are taken, too long, double or empty
	local name taken=$'\nevent_no\ntableoid\nxmin\ncmin\nxmax\ncmax\nctid\n' number=0
	COLUMNS=()
	for name in "$@"; do
		number=$((number + 1))
		while [ -z "$name" ] || [ ${#name} -gt 63 ] || [[ $taken == *$'\n'"$name"$'\n'* ]]; do
			if [[ $name == column_"$number"* ]]; then name+=_; else name=column_$number; fi
		done
		taken+=$name$'\n'
		COLUMNS+=("$name")
	done
}

# The separator that the first line has most of; what stands in quotes counts, too, but rarely decides.
guess_delimiter() {
	local line candidate count most=0
	[ -z "$DELIMITER" ] || return 0
	DELIMITER=,
	line=$(raw_events 2>/dev/null | head -n 1 | head -c 1000000) || true
	for candidate in ',' ';' $'\t' '|'; do
		count=${line//[!"$candidate"]/}
		[ ${#count} -le "$most" ] || { most=${#count} && DELIMITER=$candidate; }
	done
	[ "$DELIMITER" = , ] || say "  fields are separated by $(printf '%q' "$DELIMITER"), it seems; --delimiter says otherwise"
}

read_header() {
	guess_delimiter
	mapfile -t HEADER < <({ raw_events 2>/dev/null || true; } | head -c 1000000 | iconv -c -f "$ENCODING" -t UTF-8 |
		awk -v delimiter="$DELIMITER" -f "$ROOT/test/demo/header.awk")
	[ -n "${HEADER[*]}" ] || die "$SHOWN has no header" "Its first line is empty or has a quote that is never closed." \
		"The first line must name the columns, for example: time,user,url"
	column_names "${HEADER[@]}"
}

quoted_name() { printf '"%s"' "${1//\"/\"\"}"; }

named_columns() {
	local text
	printf -v text '%s, ' "${COLUMNS[@]:0:40}"
	printf '%s' "${text%, }"
}

add_key() { # a column by its name in the header or in the database
	local i
	for i in "${!COLUMNS[@]}"; do
		if [ "$1" = "${HEADER[i]}" ] || [ "$1" = "${COLUMNS[i]}" ]; then
			[[ " ${KEY_NUMBERS[*]} " == *" $i "* ]] || KEY_NUMBERS+=("$i")
			return 0
		fi
	done
	return 1
}

choose_key() { # the columns named by --key, else the one called key, else all
	local named part parts field
	KEY_NUMBERS=()
	for named in "${KEY_ARGUMENTS[@]}"; do
		! add_key "$named" || continue
		IFS=, read -ra parts <<<"$named"
		for part in "${parts[@]}"; do
			add_key "$part" || die "$SHOWN has no column '$part'" "Its columns: $(named_columns)" \
				"If these are not names but the first event, add a header line to the file."
		done
	done
	[ ${#KEY_NUMBERS[@]} -eq 0 ] || return 0
	for field in "${HEADER[@]}"; do
		[[ ! $field =~ ^-?[0-9]+([.][0-9]+)?$ ]] || die "the first line of $SHOWN looks like an event, not like a header" \
			"It has the field $field. Add a line that names the columns, or name the key's with --key if it is a header."
	done
	add_key key || KEY_NUMBERS=("${!COLUMNS[@]}")
	[ ${#KEY_NUMBERS[@]} -le 32 ] || die "$SHOWN has ${#COLUMNS[@]} columns, too many for one key" \
		"Name the ones that make two events the same with --key a,b,… (32 at most). Columns: $(named_columns)"
}

describe_events() {
	local i
	for i in "${!COLUMNS[@]}"; do COLUMNS_SQL+=("$(quoted_name "${COLUMNS[i]}")"); done
	for i in "${KEY_NUMBERS[@]}"; do
		KEYS_SQL+=("${COLUMNS_SQL[i]}")
		KEY_NAME+="${KEY_NAME:+, }${COLUMNS[i]}"
	done
}

open_file() { # everything that can be wrong with FILE is said here, before anything is installed
	check_file
	inspect_file
	read_header
	choose_key
	describe_events
	EVENTS_NAME=$(basename "$FILE")
}

list_links() {
	local lists
	mapfile -t lists < <(apt-get indextargets --format "\$(FILENAME)" 'Created-By: Packages')
	# An image may come without lists; what is installed has links of the same form.
	if [ ${#lists[@]} -eq 0 ]; then lists=(/var/lib/dpkg/status); fi
	/usr/lib/apt/apt-helper cat-file "${lists[@]}" | awk -f "$ROOT/test/demo/links.awk" >"$1"
}

open_links() {
	FILE=$WORK/links.csv SHOWN="the list of links" DELIMITER=,
	stage "reading the links in apt's package lists" list_links "$FILE"
	HEADER=(package needed_by)
	[ ${#KEY_ARGUMENTS[@]} -gt 0 ] || KEY_ARGUMENTS=(package)
	column_names "${HEADER[@]}"
	choose_key
	describe_events
	EVENTS_NAME="links in apt's package lists (is this package already queued?)"
}
