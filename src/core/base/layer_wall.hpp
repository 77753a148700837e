// The layer wall: the last include of every file in src/core. The core is compiled without any
// server header; if one slips in, the build stops here.
#ifdef POSTGRES_H
#error "src/core must not see PostgreSQL"
#endif
