// OPTIONS (...) of foreign servers and user mappings. A server with host, port or dbname is another
// PostgreSQL server, which holds the state of its filters; any other means this one.
#pragma once

#include "pg/server/problem_report.hpp"

struct List;

namespace streamfilter::pg {

struct ServerOptions {
  uint64 memory_limit = PG_UINT64_MAX;  // of all its filters together, in bytes
  int max_filters = PG_INT32_MAX;       // limit for the number of its filters
  int connect_timeout = 2000;           // ms, to establish a connection
  int timeout = 5000;                   // ms, for an answer
  int idle_timeout = 600'000;           // ms, until the other side ends what is idle
  bool is_remote = false;
};

// Faults: HV00D for an unknown option, 22023 for bad values. The second function raises them.
bool read_server_options(List* options, ServerOptions* result, Fault& fault);
ServerOptions server_options(List* options);

// Is this option passed to libpq unchanged?
bool is_connection_option(const char* name);

// Does this option make a server another PostgreSQL server?
bool is_place_option(const char* name);

// Is it an option of a user mapping that is passed to libpq unchanged?
bool is_user_option(const char* name);

// Checks the options of a user mapping. Faults: HV00D; 42501 for options that only superusers set;
// 22023.
bool check_user_mapping_options(List* options, Fault& fault);

// Must a user without superuser rights connect with a password of their own?
bool requires_password(List* user_mapping_options);

}  // namespace streamfilter::pg
