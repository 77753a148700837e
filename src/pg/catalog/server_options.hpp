// The OPTIONS (...) of foreign servers and of user mappings. A server with host, port or dbname is
// another Postgres, which holds the state of its filters; any other is this one.
#pragma once

struct List;

namespace streamfilter::pg {

struct ServerOptions {
  uint64 memory_limit = PG_UINT64_MAX;  // of all its filters together, bytes
  int connect_timeout = 2000;           // ms, until a connection stands
  int timeout = 5000;                   // ms, until an answer is there
  bool is_remote = false;
};

// Raises HV00D for an unknown option, 22023 for bad values.
ServerOptions read_server_options(List* options);

// Is this option one that libpq gets as it is?
bool is_connection_option(const char* name);

// Raises HV00D unless the options are those of a user mapping: user, password.
void check_user_mapping_options(List* options);

}  // namespace streamfilter::pg
