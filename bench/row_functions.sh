#!/usr/bin/env bash
# Which functions of streamfilter a row passes, and in which files they are. Prints them in the order in which the row comes to
# them, and their number, for the thousandth row of
#
#   - an INSERT with trigger streamfilter_discard, into a logged local filter of kind clq: from the trigger to the change log of
#     the transaction; then the commit of such a row, from there to the log of the filter;
#   - a COPY into a table with that trigger: from the line to its place in a batch; then the batch, judged and written at once for
#     all of its lines.
#
#   bench/row_functions.sh [--check]   or: make walk
#
# Functions that are inlined count. What is one statement does not (row_functions.pl says what that is), nor the core, whose
# functions are counted apart: it is the arithmetic of the kind. --check fails if row or line pass more than 22 functions in 10
# files. docs/internals/architecture.md says what is made of it.
#
# gdb follows them through a stand-alone backend of a copy of the server, with the library of build/quick: the linker has inlined
# nothing there, and names are kept.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=lib/own_server.sh
source "$ROOT/bench/lib/own_server.sh"

LIBRARY=$ROOT/build/quick/streamfilter.so

# PG_CONFIG is that of the copy afterwards.
copy_server() {
	local extension
	copy_binaries "$WORK/server" "$PG_CONFIG"
	install -m 755 "$LIBRARY" "$WORK/server$("$PG_CONFIG" --pkglibdir)/"
	extension=$WORK/server$("$PG_CONFIG" --sharedir)/extension
	install -m 644 "$ROOT/streamfilter.control" "$ROOT"/sql/streamfilter--*.sql "$extension/"
	! is_root || chown -R postgres "$WORK/server"
	PG_CONFIG=$WORK/server$("$PG_CONFIG" --bindir)/pg_config
}

# A line is a statement, and a transaction; the commit of the third one is followed. 16 wide rows fill a batch of COPY, so that it
# is followed in seconds.
statements() {
	printf 'INSERT INTO discarding VALUES (%s)\n' -1 -2 -3
	echo 'INSERT INTO discarding SELECT generate_series(1, 1100)'
	echo 'SET streamfilter.batch_insert = on'
	echo "COPY copied FROM '$WORK/tmp/lines'"
}

follow() {
	statements | as_server env STREAMFILTER_TRACE="$WORK/tmp/trace" gdb --batch -x "$WORK/tmp/trace_row.py" --args \
		"$(pg_bin)/postgres" --single -D "$WORK/data" -c streamfilter.batch_insert=off postgres
}

main() {
	local check=''
	case ${1:-} in
	--check) check=yes ;;
	-*) sed -n '2,19s/^# \{0,1\}//p' "$0" && exit 0 ;;
	esac
	command -v gdb addr2line >/dev/null || die "gdb or addr2line is not there" "apt-get install gdb binutils"
	[ -e "$LIBRARY" ] || die "$LIBRARY is not there" "make FLAVOUR=quick flavour scripts"
	trap remove_work EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	make_work
	give_work
	copy_server
	quietly create_server
	sql <<-END
		CREATE TABLE discarding (key bigint);
		CREATE TABLE copied (key bigint, payload text);
		CREATE FOREIGN TABLE seen (key bigint) SERVER streamfilter OPTIONS (kind 'clq', fpr '0.01', memory '16MB');
		CREATE TRIGGER discard BEFORE INSERT ON discarding FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
		CREATE TRIGGER discard BEFORE INSERT ON copied FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	END
	quietly stop_server
	perl -e 'printf "%d\t%s\n", $_, "x" x 4200 for 2001 .. 3100' >"$WORK/tmp/lines"
	cp "$ROOT/bench/lib/trace_row.py" "$WORK/tmp/" # where the server's user reads it
	quietly follow
	perl "$ROOT/bench/lib/row_functions.pl" "$ROOT" "$LIBRARY" "$WORK/tmp/trace" $check
}

main "$@"
