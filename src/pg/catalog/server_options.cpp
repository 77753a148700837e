#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "utils/guc.h"
}

#include "core/format/parameters.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/server_options.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kConnection[] = {"host", "port", "dbname", "sslmode", "sslrootcert"};
constexpr int kLeastTimeout = 10;        // ms
constexpr int kMostTimeout = 3'600'000;  // ms

[[noreturn]] void raise_invalid(const DefElem* option, const char* value, const char* hint) {
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
          errmsg("invalid value for option \"%s\": \"%s\"", option->defname, value),
          errhint("%s", hint));
  pg_unreachable();
}

int read_timeout(DefElem* option) {
  const char* value = defGetString(option);
  int result;
  if (!parse_int(value, &result, GUC_UNIT_MS, nullptr) || result < kLeastTimeout ||
      result > kMostTimeout)
    raise_invalid(option, value,
                  "Give a time between 10 ms and 1 h, in milliseconds or with a unit: ms, s, min.");
  return result;
}

void check_port(DefElem* option) {
  const char* value = defGetString(option);
  int port;
  if (!parse_int(value, &port, 0, nullptr) || port < 1 || port > 65535)
    raise_invalid(option, value, "Give the number of a port, 1 to 65535.");
}

}  // namespace

bool is_connection_option(const char* name) {
  for (const char* known : kConnection)
    if (strcmp(name, known) == 0) return true;
  return false;
}

ServerOptions read_server_options(List* options) {
  ServerOptions result;
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (strcmp(option->defname, "memory_limit") == 0) {
      if (!parse_size(defGetString(option), result.memory_limit))
        raise_invalid(option, defGetString(option),
                      "Give a number of bytes, or a number with a unit: B, kB, MB, GB, TB.");
    } else if (strcmp(option->defname, "connect_timeout") == 0) {
      result.connect_timeout = read_timeout(option);
    } else if (strcmp(option->defname, "timeout") == 0) {
      result.timeout = read_timeout(option);
    } else if (is_connection_option(option->defname)) {
      if (strcmp(option->defname, "port") == 0) check_port(option);
      result.is_remote |= strncmp(option->defname, "ssl", 3) != 0;
    } else {
      raise_unknown_option(option, "server of filters",
                           "memory_limit, host, port, dbname, sslmode, sslrootcert, "
                           "connect_timeout, timeout");
    }
  }
  return result;
}

void check_user_mapping_options(List* options) {
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (strcmp(option->defname, "user") != 0 && strcmp(option->defname, "password") != 0)
      raise_unknown_option(option, "user of a server of filters", "user, password");
  }
}

}  // namespace streamfilter::pg
