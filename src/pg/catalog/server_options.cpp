#include "pg/server/postgres.hpp"

extern "C" {
#include <libpq-fe.h>

#include "utils/guc.h"
}

#include "core/filter/option_values.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/server_options.hpp"

namespace streamfilter::pg {
namespace {

// Options of libpq, except those that say who connects, those by which a server's owner could use
// files and services of this server's account, and those that we set (connect.cpp).
constexpr const char* kConnection[] = {"host",
                                       "hostaddr",
                                       "port",
                                       "dbname",
                                       "sslmode",
                                       "sslcertmode",
                                       "sslrootcert",
                                       "sslcrl",
                                       "sslcrldir",
                                       "sslsni",
                                       "sslnegotiation",
                                       "ssl_min_protocol_version",
                                       "ssl_max_protocol_version",
                                       "min_protocol_version",
                                       "max_protocol_version",
                                       "channel_binding",
                                       "require_auth",
                                       "requirepeer",
                                       "gssencmode",
                                       "krbsrvname",
                                       "target_session_attrs",
                                       "load_balance_hosts",
                                       "keepalives",
                                       "keepalives_idle",
                                       "keepalives_interval",
                                       "keepalives_count",
                                       "tcp_user_timeout",
                                       "application_name"};
constexpr const char* kPlace[] = {"host", "hostaddr", "port", "dbname"};
// Options of a user mapping. This server's account reads certificate files, so only superusers name
// them; likewise, only they let a user connect without a password.
constexpr const char* kUser[] = {"user", "password", "sslcert", "sslkey", "sslpassword"};
constexpr const char* kSuperusers[] = {"sslcert", "sslkey", "password_required"};
constexpr int kMinTimeout = 10;           // ms
constexpr int kMaxTimeout = 3'600'000;    // ms
constexpr int kMaxIdleTime = 86'400'000;  // ms

template <std::size_t count>
bool is_among(const char* name, const char* const (&names)[count]) {
  for (const char* known : names)
    if (strcmp(name, known) == 0) return true;
  return false;
}

// Versions of libpq differ.
bool is_known_to_libpq(const char* name) {
  static const PQconninfoOption* known = PQconndefaults();
  if (known == nullptr) return true;  // out of memory for the list; connecting will tell
  for (const PQconninfoOption* option = known; option->keyword != nullptr; ++option)
    if (strcmp(option->keyword, name) == 0) return true;
  return false;
}

bool bad_value(DefElem* option, const char* hint, Fault& fault) {
  pg::bad_value(option, fault);
  return fault.add_hint("%s", hint);
}

bool read_idle_timeout(DefElem* option, int* result, Fault& fault) {
  return (parse_int(value_of(option), result, GUC_UNIT_MS, nullptr) && *result >= 0 &&
          *result <= kMaxIdleTime) ||
         bad_value(
             option,
             "Give a time up to 1 day, in milliseconds or with a unit: s, min, h; 0: no limit.",
             fault);
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

// Option port: one for each of several hosts, or one for all.
bool check_port(DefElem* option, Fault& fault) {
  for (char *rest = pstrdup(value_of(option)), *next; rest != nullptr; rest = next) {
    next = strchr(rest, ',');
    if (next != nullptr) *next++ = '\0';
    int port;
    if (!parse_int(rest, &port, 0, nullptr) || port < 1 || port > 65535)
      return bad_value(option, "Give the number of a port, 1 to 65535.", fault);
  }
  return true;
}

bool read_option(DefElem* option, ServerOptions* result, Fault& fault) {
  if (is_named(option, "memory_limit")) return read_memory_limit(option, result, fault);
  if (is_named(option, "max_filters")) return read_max_filters(option, result, fault);
  if (is_named(option, "connect_timeout"))
    return read_timeout(option, &result->connect_timeout, fault);
  if (is_named(option, "timeout")) return read_timeout(option, &result->timeout, fault);
  if (is_named(option, "idle_timeout"))
    return read_idle_timeout(option, &result->idle_timeout, fault);
  if (!is_connection_option(option->defname) || !is_known_to_libpq(option->defname))
    return unknown_option(
        option, "server of filters",
        "memory_limit, max_filters, host, port, dbname, sslmode, sslrootcert, "
        "connect_timeout, timeout, idle_timeout, and others of libpq that docs/servers.md "
        "names",
        fault);
  result->is_remote |= is_place_option(option->defname);
  return !is_named(option, "port") || check_port(option, fault);
}

}  // namespace

bool is_connection_option(const char* name) { return is_among(name, kConnection); }

bool is_place_option(const char* name) { return is_among(name, kPlace); }

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

bool is_user_option(const char* name) { return is_among(name, kUser); }

bool check_user_mapping_options(List* options, Fault& fault) {
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    const bool is_requirement = is_named(option, "password_required");
    if (!is_requirement && !is_user_option(option->defname))
      return unknown_option(option, "user of a server of filters",
                            "user, password, password_required, sslcert, sslkey, sslpassword",
                            fault);
    bool required;
    if (is_requirement && !parse_bool(value_of(option), &required))
      return bad_value(option, "Give true or false.", fault);
    if (!is_among(option->defname, kSuperusers) || superuser()) continue;
    fault.set(ERRCODE_INSUFFICIENT_PRIVILEGE, "permission denied to set option \"%s\"",
              option->defname);
    return fault.add_detail("Only superusers set or keep it in a user mapping.");
  }
  return true;
}

bool requires_password(List* user_mapping_options) {
  bool required = true;
  const char* given = find_option(user_mapping_options, "password_required");
  return given == nullptr || !parse_bool(given, &required) || required;
}

}  // namespace streamfilter::pg
