// The OPTIONS (...) of foreign servers and of user mappings. A server with host, port or dbname is
// another Postgres, which holds the state of its filters; any other is this one.
#pragma once

#include "pg/server/problem_report.hpp"

struct List;

namespace streamfilter::pg {

struct ServerOptions {
  uint64 memory_limit = PG_UINT64_MAX;  // of all its filters together, bytes
  int max_filters = PG_INT32_MAX;       // how many it may have
  int connect_timeout = 2000;           // ms, until a connection stands
  int timeout = 5000;                   // ms, until an answer is there
  int idle_timeout = 600'000;  // ms, until the other side ends a transaction that does nothing
  bool is_remote = false;
};

// Faults: HV00D an unknown option, 22023 bad values. The second raises them.
bool read_server_options(List* options, ServerOptions* result, Fault& fault);
ServerOptions server_options(List* options);

// Is this option one that libpq gets as it is?
bool is_connection_option(const char* name);

// Is it one of a user mapping that libpq gets as it is?
bool is_user_option(const char* name);

// Are the options those of a user mapping? Faults: HV00D; 42501 what only superusers set; 22023.
bool check_user_mapping_options(List* options, Fault& fault);

// Must its user, if he is no superuser, connect with a password of his own?
bool requires_password(List* user_mapping_options);

}  // namespace streamfilter::pg
