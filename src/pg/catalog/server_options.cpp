#include "pg/server/postgres.hpp"

extern "C" {
#include <libpq-fe.h>
}

#include "core/filter/option_values.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/server_options.hpp"

namespace streamfilter::pg {
namespace {

enum class OptionUse : uint8 {
  ours,   // read here
  libpq,  // passed to libpq unchanged
  place,  // likewise, and makes a server another PostgreSQL server
};

// An option of a server, or of a user mapping.
struct Option {
  const char* name;
  OptionUse use;
  bool is_usual = false;  // named in the hint of an unknown option
  // False: a bad value. nullptr: libpq reads it as it connects.
  bool (*read)(const char* value, ServerOptions* options) = nullptr;
  const char* hint = nullptr;  // describes valid values
  bool is_of_superusers = false;
};

// ---- readers

template <auto member, int low, int high, int unit = 0>
bool read_number(const char* value, ServerOptions* options) {
  return parse_int(value, &(options->*member), unit, nullptr) && options->*member >= low &&
         options->*member <= high;
}

bool read_memory_limit(const char* value, ServerOptions* options) {
  return parse_size(value, options->memory_limit);
}

// One port for each of several hosts, or one for all.
bool check_port(const char* value, ServerOptions*) {
  for (char *rest = pstrdup(value), *next; rest != nullptr; rest = next) {
    next = strchr(rest, ',');
    if (next != nullptr) *next++ = '\0';
    int port;
    if (!parse_int(rest, &port, 0, nullptr) || port < 1 || port > 65535) return false;
  }
  return true;
}

bool check_bool(const char* value, ServerOptions*) {
  bool ignored;
  return parse_bool(value, &ignored);
}

// ---- the tables

constexpr auto kOurs = OptionUse::ours, kLibpq = OptionUse::libpq, kPlace = OptionUse::place;
constexpr bool kUsual = true, kOfSuperusers = true;
constexpr int kDay = 86'400'000;  // ms

template <auto member>
constexpr auto read_timeout = read_number<member, 10, 3'600'000, GUC_UNIT_MS>;
constexpr char kTimeouts[] =
    "Give a time between 10 ms and 1 h, in milliseconds or with a unit: ms, s, min.";

// Of libpq all but those that say who connects, those by which a server's owner could use files and
// services of this server's account, and those that we set (connect.cpp).
constexpr Option kServerOptions[] = {
    {"memory_limit", kOurs, kUsual, read_memory_limit,
     "Give a number of bytes, or a number with a unit: B, kB, MB, GB, TB."},
    {"max_filters", kOurs, kUsual, read_number<&ServerOptions::max_filters, 0, PG_INT32_MAX>,
     "Give a number of filters, 0 or more."},
    {"host", kPlace, kUsual},
    {"hostaddr", kPlace},
    {"port", kPlace, kUsual, check_port, "Give the number of a port, 1 to 65535."},
    {"dbname", kPlace, kUsual},
    {"sslmode", kLibpq, kUsual},
    {"sslrootcert", kLibpq, kUsual},
    {"connect_timeout", kOurs, kUsual, read_timeout<&ServerOptions::connect_timeout>, kTimeouts},
    {"timeout", kOurs, kUsual, read_timeout<&ServerOptions::timeout>, kTimeouts},
    {"idle_timeout", kOurs, kUsual, read_number<&ServerOptions::idle_timeout, 0, kDay, GUC_UNIT_MS>,
     "Give a time up to 1 day, in milliseconds or with a unit: s, min, h; 0: no limit."},
};

// Others, which are libpq's alone.
constexpr const char* kPlain[] = {"sslcrl",           "sslcertmode",    "ssl_min_protocol_version",
                                  "sslcrldir",        "sslnegotiation", "ssl_max_protocol_version",
                                  "sslsni",           "require_auth",   "min_protocol_version",
                                  "channel_binding",  "requirepeer",    "max_protocol_version",
                                  "keepalives_idle",  "krbsrvname",     "target_session_attrs",
                                  "tcp_user_timeout", "keepalives",     "load_balance_hosts",
                                  "keepalives_count", "gssencmode",     "keepalives_interval",
                                  "application_name", nullptr};

// This server's account reads certificate files, so only superusers name them; likewise, only they
// let a user connect without a password.
constexpr Option kUserOptions[] = {
    {"user", kLibpq, kUsual},
    {"password", kLibpq, kUsual},
    {"password_required", kOurs, kUsual, check_bool, "Give true or false.", kOfSuperusers},
    {"sslcert", kLibpq, kUsual, nullptr, nullptr, kOfSuperusers},
    {"sslkey", kLibpq, kUsual, nullptr, nullptr, kOfSuperusers},
    {"sslpassword", kLibpq, kUsual},
};

const Option* find_server_option(const char* name) {
  static constexpr Option kOfLibpq = {nullptr, kLibpq};
  return find_word(kPlain, name) >= 0 ? &kOfLibpq : find_named(kServerOptions, name);
}

template <std::size_t count>
const char* list_usual(const Option (&options)[count]) {
  TextBuffer list;
  for (const Option& option : options)
    if (option.is_usual) appendStringInfo(&list, "%s%s", list.len > 0 ? ", " : "", option.name);
  return list.data;
}

// Versions of libpq differ.
bool is_known_to_libpq(const char* name) {
  static const PQconninfoOption* known = PQconndefaults();
  if (known == nullptr) return true;  // out of memory for the list; connecting will tell
  for (const PQconninfoOption* option = known; option->keyword != nullptr; ++option)
    if (strcmp(option->keyword, name) == 0) return true;
  return false;
}

bool read_value(DefElem* given, const Option* option, ServerOptions* result, Fault& fault) {
  if (option->read == nullptr || option->read(value_of(given), result)) return true;
  bad_value(given, fault);
  return fault.add_hint("%s", option->hint);
}

bool read_server_option(DefElem* given, ServerOptions* result, Fault& fault) {
  const Option* option = find_server_option(given->defname);
  if (option == nullptr || (option->use != kOurs && !is_known_to_libpq(given->defname)))
    return unknown_option(
        given, "server of filters",
        psprintf("%s, and others of libpq that docs/servers.md names", list_usual(kServerOptions)),
        fault);
  result->is_remote |= option->use == kPlace;
  return read_value(given, option, result, fault);
}

bool check_user_option(DefElem* given, Fault& fault) {
  const Option* option = find_named(kUserOptions, given->defname);
  if (option == nullptr)
    return unknown_option(given, "user of a server of filters", list_usual(kUserOptions), fault);
  if (!read_value(given, option, nullptr, fault)) return false;
  if (!option->is_of_superusers || superuser()) return true;
  fault.set(ERRCODE_INSUFFICIENT_PRIVILEGE, "permission denied to set option \"%s\"",
            given->defname);
  return fault.add_detail("Only superusers set or keep it in a user mapping.");
}

}  // namespace

bool is_connection_option(const char* name) {
  const Option* option = find_server_option(name);
  return option != nullptr && option->use != kOurs;
}

bool is_place_option(const char* name) {
  const Option* option = find_server_option(name);
  return option != nullptr && option->use == kPlace;
}

bool is_user_option(const char* name) {
  const Option* option = find_named(kUserOptions, name);
  return option != nullptr && option->use != kOurs;
}

bool read_server_options(List* options, ServerOptions* result, Fault& fault) {
  for (auto* option : each<DefElem>(options))
    if (!read_server_option(option, result, fault)) return false;
  return true;
}

ServerOptions server_options(List* options) {
  ServerOptions result;
  Fault fault;
  if (!read_server_options(options, &result, fault)) raise(fault);
  return result;
}

bool check_user_mapping_options(List* options, Fault& fault) {
  for (auto* option : each<DefElem>(options))
    if (!check_user_option(option, fault)) return false;
  return true;
}

bool requires_password(List* user_mapping_options) {
  bool required = true;
  const char* given = find_option(user_mapping_options, "password_required");
  return given == nullptr || !parse_bool(given, &required) || required;
}

}  // namespace streamfilter::pg
