#!/usr/bin/env python3
"""An ingest node that drops repeated lines before it sends them: ingest.c, in Python.

    python3 ingest.py 'bloom(keys=1e6, seed=42)' seen.copy < events > new_events

Needs libstreamfilter.so where the loader finds it, or its path in LIBSTREAMFILTER. ingest.c says what becomes of
seen.copy in the server.
"""
import ctypes
import os
import sys


class Problem(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("message", ctypes.c_char * 256),
                ("detail", ctypes.c_char * 384), ("hint", ctypes.c_char * 384)]


class Definition(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 64)]


class Element(ctypes.Structure):
    _fields_ = [("hash", ctypes.c_uint64), ("importance", ctypes.c_double), ("time", ctypes.c_int64)]


def load_library():
    library = ctypes.CDLL(os.environ.get("LIBSTREAMFILTER", "libstreamfilter.so.1"))
    definition, problem = ctypes.POINTER(Definition), ctypes.POINTER(Problem)
    signatures = {
        "sflt_define": (ctypes.c_int, definition, ctypes.c_char_p, problem),
        "sflt_size": (ctypes.c_uint64, definition),
        "sflt_seed": (ctypes.c_uint64, definition),
        "sflt_init": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, definition, problem),
        "sflt_hash_bytes": (ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64),
        "sflt_insert": (ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Element)),
        "sflt_text_size": (ctypes.c_size_t, ctypes.c_void_p),
        "sflt_write_text": (ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Filter:
    """A filter in memory of its own."""

    def __init__(self, library, text):
        self.library = library
        problem, definition = Problem(), Definition()
        if library.sflt_define(definition, text.encode(), problem) != 0:
            raise ValueError(" ".join(part.decode() for part in (problem.message, problem.detail, problem.hint)))
        size = library.sflt_size(definition)
        self.seed = library.sflt_seed(definition)
        self.memory = (ctypes.c_uint64 * ((size + 7) // 8))()  # words, so that it is aligned
        self.filter = library.sflt_init(self.memory, size, definition, problem)

    def insert(self, key):
        """Was this key, one column of type text, seen before? It is remembered now."""
        element = Element(hash=self.library.sflt_hash_bytes(key, len(key), self.seed))
        return self.library.sflt_insert(self.filter, element) == 1

    def text(self):
        """The text form: a value of type streamfilter."""
        size = self.library.sflt_text_size(self.filter)
        buffer = ctypes.create_string_buffer(size)
        self.library.sflt_write_text(self.filter, buffer, size)
        return buffer.value


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: ingest.py DEFINITION FILE < lines > new lines")
    seen = Filter(load_library(), sys.argv[1])
    for line in sys.stdin.buffer:
        if not seen.insert(line.rstrip(b"\n")):
            sys.stdout.buffer.write(line)
    with open(sys.argv[2], "wb") as file:
        file.write(seen.text() + b"\n")


if __name__ == "__main__":
    main()
