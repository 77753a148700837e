#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/guc.h"
}

#include "core/filter/option_values.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/server_options.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kConnection[] = {"host", "port", "dbname", "sslmode", "sslrootcert"};
constexpr int kMinTimeout = 10;         // ms
constexpr int kMaxTimeout = 3'600'000;  // ms

bool bad_value(DefElem* option, const char* hint, Fault& fault) {
  fault.set(ERRCODE_INVALID_PARAMETER_VALUE, "invalid value for option \"%s\": \"%s\"",
            option->defname, value_of(option));
  return fault.add_hint("%s", hint);
}

bool read_timeout(DefElem* option, int* result, Fault& fault) {
  return (parse_int(value_of(option), result, GUC_UNIT_MS, nullptr) && *result >= kMinTimeout &&
          *result <= kMaxTimeout) ||
         bad_value(option,
                   "Give a time between 10 ms and 1 h, in milliseconds or with a unit: ms, s, min.",
                   fault);
}

bool read_memory_limit(DefElem* option, ServerOptions* result, Fault& fault) {
  return parse_size(value_of(option), result->memory_limit) ||
         bad_value(option, "Give a number of bytes, or a number with a unit: B, kB, MB, GB, TB.",
                   fault);
}

bool read_max_filters(DefElem* option, ServerOptions* result, Fault& fault) {
  return (parse_int(value_of(option), &result->max_filters, 0, nullptr) &&
          result->max_filters >= 0) ||
         bad_value(option, "Give a number of filters, 0 or more.", fault);
}

bool check_port(DefElem* option, Fault& fault) {
  int port;
  return (parse_int(value_of(option), &port, 0, nullptr) && port >= 1 && port <= 65535) ||
         bad_value(option, "Give the number of a port, 1 to 65535.", fault);
}

bool read_option(DefElem* option, ServerOptions* result, Fault& fault) {
  if (is_named(option, "memory_limit")) return read_memory_limit(option, result, fault);
  if (is_named(option, "max_filters")) return read_max_filters(option, result, fault);
  if (is_named(option, "connect_timeout"))
    return read_timeout(option, &result->connect_timeout, fault);
  if (is_named(option, "timeout")) return read_timeout(option, &result->timeout, fault);
  if (!is_connection_option(option->defname))
    return unknown_option(option, "server of filters",
                          "memory_limit, max_filters, host, port, dbname, sslmode, sslrootcert, "
                          "connect_timeout, timeout",
                          fault);
  result->is_remote |= strncmp(option->defname, "ssl", 3) != 0;
  return !is_named(option, "port") || check_port(option, fault);
}

}  // namespace

bool is_connection_option(const char* name) {
  for (const char* known : kConnection)
    if (strcmp(name, known) == 0) return true;
  return false;
}

bool read_server_options(List* options, ServerOptions* result, Fault& fault) {
  ListCell* cell;
  foreach (cell, options)
    if (!read_option(static_cast<DefElem*>(lfirst(cell)), result, fault)) return false;
  return true;
}

ServerOptions server_options(List* options) {
  ServerOptions result;
  Fault fault;
  if (!read_server_options(options, &result, fault)) raise(fault);
  return result;
}

bool check_user_mapping_options(List* options, Fault& fault) {
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (!is_named(option, "user") && !is_named(option, "password"))
      return unknown_option(option, "user of a server of filters", "user, password", fault);
  }
  return true;
}

}  // namespace streamfilter::pg
