#!/usr/bin/env bash
# Which functions of streamfilter a row passes, and in which files they are: from the trigger streamfilter_discard to the change
# log of its transaction, and from there to the log of the filter, for a logged local filter of kind clq. Prints them in the order
# in which the row comes to them, and their number. docs/internals/architecture.md says what is made of it.
#
#   bench/row_functions.sh
#
# gdb follows a row through a stand-alone backend; inlined functions count. The extension must be installed for PG_CONFIG, built
# by `make LTO=`, which keeps the names.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=lib/own_server.sh
source "$ROOT/bench/lib/own_server.sh"

# A line is a statement, and a transaction. The last one is followed: a row that is the first of its statement, and a further one.
rows() { printf 'INSERT INTO discarding VALUES (%s)\n' 1 2 3 '4), (5), (6' '7), (8), (9'; }

follow() {
	rows | as_server env STREAMFILTER_TRACE="$WORK/tmp/trace" gdb --batch -x "$WORK/tmp/trace_row.py" --args \
		"$(pg_bin)/postgres" --single -D "$WORK/data" -c streamfilter.batch_insert=off postgres
}

main() {
	case ${1:-} in -*) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 0 ;; esac
	command -v gdb addr2line >/dev/null || die "gdb or addr2line is not there" "apt-get install gdb binutils"
	own_server "log_min_messages = 'warning'"
	sql <<-END
		CREATE TABLE discarding (key bigint);
		CREATE FOREIGN TABLE seen (key bigint) SERVER streamfilter OPTIONS (kind 'clq', fpr '0.01', memory '16MB');
		CREATE TRIGGER discard BEFORE INSERT ON discarding FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen');
	END
	quietly stop_server
	cp "$ROOT/bench/lib/trace_row.py" "$WORK/tmp/" # where the server's user reads it
	quietly follow
	perl "$ROOT/bench/lib/row_functions.pl" "$ROOT" "$("$PG_CONFIG" --pkglibdir)/streamfilter.so" "$WORK/tmp/trace"
}

main "$@"
