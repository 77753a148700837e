// The layer wall: every source of the core is compiled with it in front (Makefile, library.mk). The
// core is compiled without any path to server headers; if one slips in, the build stops there.
#pragma GCC poison POSTGRES_H
