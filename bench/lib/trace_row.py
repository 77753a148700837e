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


# Until the function that was just called returns.
def trace(part):
    back, stack = gdb.newest_frame().older().pc(), value("$sp")
    base, end = library()
    with open(OUT, "a") as out:
        out.write("part %s\n" % part)
        while not (value("$pc") == back and value("$sp") > stack):
            at = value("$pc")
            if base <= at < end:
                out.write("%x\n" % (at - base))
                gdb.execute("stepi", to_string=True)
            else:
                gdb.execute("tbreak *%d" % value("*(unsigned long *) $sp"), to_string=True)
                gdb.execute("continue", to_string=True)


gdb.execute("set pagination off")
gdb.execute("set breakpoint pending on")
gdb.execute("handle all nostop noprint pass", to_string=True)
trigger = gdb.Breakpoint("streamfilter_discard")
gdb.execute("run", to_string=True)
for part in [""] * 6 + ["first", "", "further"]:
    if part:
        trace(part)
    gdb.execute("continue", to_string=True) if part != "further" else None
trigger.delete()
gdb.Breakpoint("streamfilter::pg::save_transaction_changes")
gdb.execute("continue", to_string=True)
trace("commit")
gdb.execute("kill")
