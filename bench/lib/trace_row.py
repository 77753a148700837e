# For gdb, which runs a stand-alone backend: writes down the places in streamfilter.so that it executes in a part of
# a row's way, in order, without what the server does. Used by bench/row_functions.sh.
import os
import gdb

OUT = os.environ["STREAMFILTER_TRACE"]


def value(text):
    return int(gdb.parse_and_eval(text)) & 0xFFFFFFFFFFFFFFFF


def library():
    maps = open("/proc/%d/maps" % gdb.selected_inferior().pid).read().splitlines()
    spans = [line.split()[0].split("-") for line in maps if line.endswith("/streamfilter.so")]
    return int(spans[0][0], 16), int(spans[-1][1], 16)


def follow(part, ends):
    base, end = library()
    with open(OUT, "a") as out:
        out.write("part %s\n" % part)
        while True:
            at = value("$pc")
            if base <= at < end:
                out.write("%x\n" % (at - base))
                gdb.execute("stepi", to_string=True)
            else:
                gdb.execute("tbreak *%d" % value("*(unsigned long *) $sp"), to_string=True)
                gdb.execute("continue", to_string=True)
            if ends():
                return


# Until the function that was just called returns.
def follow_call(part):
    back, stack = gdb.newest_frame().older().pc(), value("$sp")
    follow(part, lambda: value("$pc") == back and value("$sp") > stack)


# Until it is called again, from the same place.
def follow_round(part):
    again = value("$pc")
    follow(part, lambda: value("$pc") == again)


# Goes to a call of the function, so many calls from here.
def go_to(function, calls):
    breakpoint = gdb.Breakpoint(function)
    breakpoint.ignore_count = calls - 1
    gdb.execute("continue", to_string=True)
    return breakpoint


gdb.execute("set pagination off")
gdb.execute("set breakpoint pending on")
gdb.execute("handle all nostop noprint pass", to_string=True)
start = gdb.Breakpoint("streamfilter_discard")
gdb.execute("run", to_string=True)
start.delete()

go_to("streamfilter_discard", 2).delete()  # the third statement
go_to("streamfilter::pg::save_transaction_changes", 1).delete()
follow_call("commit")

go_to("streamfilter_discard", 1000).delete()
follow_call("row")

# COPY inserts its first row itself. A line's round begins where it is given to its batch and ends where the next one is, so
# that the reading of a line is in it, too.
ingest = go_to("streamfilter::pg::ingest_row", 999)
follow_round("line")
for place in range(1001, 1001 + 16):  # one of these fills the batch
    before = os.path.getsize(OUT)
    follow_call("batch")
    if os.path.getsize(OUT) - before > 30000:
        break
    os.truncate(OUT, before)
    gdb.execute("continue", to_string=True)
gdb.execute("kill")
