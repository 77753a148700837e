#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_authid.h"
#include "replication/logicalworker.h"
#include "utils/plancache.h"
#include "utils/varlena.h"
}

#include <climits>
#include <utility>

#include "pg/server/settings.hpp"

namespace streamfilter::pg {

int shared_memory_kb, dynamic_memory_kb, max_filters, max_in_flight, commit_wait_timeout_ms,
    restore_workers, min_log_size_kb;
bool enabled, batch_scan, batch_insert, report;
LostRowsSetting lost_rows_setting;

SessionMode session_mode = {};
SettingOrigin enabled_origin = {};
bool set_travels = false, set_traveled = false;
uint64 handle_epoch = 1;

namespace {

constexpr int kOwnMode = -1;
constexpr config_enum_entry kModes[] = {
    {kModeWords[0], 0, false}, {kModeWords[1], 1, false}, {kModeWords[2], 2, false},
    {"", kOwnMode, true},      {nullptr, 0, false},
};
int mode_value = kOwnMode;

constexpr config_enum_entry kLostRows[] = {
    {"error", static_cast<int>(LostRowsSetting::error), false},
    {"warn", static_cast<int>(LostRowsSetting::warn), false},
    {nullptr, 0, false},
};
int lost_rows_value;

// Plans are looked at when they are made.
void assign_lost_rows(int value, void*) {
  const auto given = static_cast<LostRowsSetting>(value);
  if (given != lost_rows_setting) ResetPlanCache();
  lost_rows_setting = given;
}

// Sources that only superusers can set. A role can write its own pg_db_role_setting, so that is
// none.
bool is_configuration(GucSource source) { return source <= PGC_S_ARGV || source == PGC_S_GLOBAL; }

bool remember_origin(void** extra, GucSource source) {
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);  // there may be no user yet
  auto* origin = static_cast<SettingOrigin*>(SF_GUC_MALLOC(sizeof(SettingOrigin)));
  if (origin == nullptr) return false;
  origin->set_by = is_configuration(source) ? InvalidOid : user;
  origin->is_default = source <= PGC_S_DATABASE_USER;
  origin->travels = set_travels;
  *extra = origin;
  return true;
}

// PostgreSQL stores the origin with the value, and restores both after a rollback.
bool check_mode_setting(int*, void** extra, GucSource source) {
  return remember_origin(extra, source);
}
bool check_enabled(bool*, void** extra, GucSource source) { return remember_origin(extra, source); }

void assign_mode(int value, void* extra) {
  const bool given = value != kOwnMode;
  session_mode = {given, given ? static_cast<FilterMode>(value) : FilterMode::enforce,
                  *static_cast<const SettingOrigin*>(extra)};
  ++handle_epoch;
}

void assign_enabled(bool, void* extra) {
  enabled_origin = *static_cast<const SettingOrigin*>(extra);
  ++handle_epoch;
}

// ---- the table ----------------------------------------------------------------------------------

constexpr SettingValue flag(bool* value, bool initial) {
  return {value, nullptr, initial, 0, 0, 0};
}
constexpr SettingValue number(int* value, int initial, int low, int high, int unit = 0) {
  return {nullptr, value, initial, low, high, unit};
}

constexpr Setting kSettings[] = {
    {"streamfilter.enabled", flag(&enabled, true), PGC_SUSET, Reach::needed,
     "Lets filters judge rows.",
     "If off, triggers and streamfilter_seen() let every row pass, and nothing is remembered.",
     &enabled_origin},
    {"streamfilter.mode", number(&mode_value, kOwnMode, 0, 0), PGC_USERSET, Reach::needed,
     "What filters do with repeats, in place of their option mode.",
     "Empty: the option of each filter counts.", &session_mode.origin},
    {"streamfilter.batch_scan", flag(&batch_scan, true), PGC_USERSET, Reach::local,
     "Reads rows ahead where a scan is filtered by NOT streamfilter_seen().",
     "The result is the same; keys are judged one by one all the same."},
    {"streamfilter.batch_insert", flag(&batch_insert, true), PGC_USERSET, Reach::useful,
     "Judges and inserts rows in batches where nothing can tell.",
     "The result is the same; rows are judged in their order all the same."},
    {"streamfilter.lost_rows", number(&lost_rows_value, 0, 0, 0), PGC_USERSET, Reach::useful,
     "What becomes of queries that may lose rows after a filter has remembered them.",
     "error: they fail; warn: a WARNING."},
    {"streamfilter.report", flag(&report, false), PGC_USERSET, Reach::useful,
     "Says after each statement what filters have made of its rows."},
    {"streamfilter.commit_wait_timeout",
     number(&commit_wait_timeout_ms, 60'000, 0, INT_MAX, GUC_UNIT_MS), PGC_USERSET, Reach::useful,
     "Longest wait for other transactions in COMMIT.",
     "statement_timeout has ended there. 0 waits for ever; lock_timeout counts, too."},
    {"streamfilter.min_log_size", number(&min_log_size_kb, 8 * 1024, 64, INT_MAX, GUC_UNIT_KB),
     PGC_SIGHUP, Reach::local, "Log of a filter up to which no image of it is written.",
     "An image is written when the log is larger than this and the filter."},
    {"streamfilter.shared_memory", number(&shared_memory_kb, 256 * 1024, 64, INT_MAX, GUC_UNIT_KB),
     PGC_POSTMASTER, Reach::local, "Memory reserved at server start for named filters."},
    {"streamfilter.dynamic_memory",
     number(&dynamic_memory_kb, 1024 * 1024, 0, INT_MAX, GUC_UNIT_KB), PGC_SIGHUP, Reach::local,
     "Memory that named filters may take beyond streamfilter.shared_memory.",
     "It is taken when a filter needs it."},
    {"streamfilter.max_filters", number(&max_filters, 128, 1, 65536), PGC_POSTMASTER, Reach::local,
     "Largest number of named filters in shared memory."},
    {"streamfilter.max_in_flight", number(&max_in_flight, 100'000, 1000, 100'000'000),
     PGC_POSTMASTER, Reach::local, "Keys of unfinished transactions that have a place reserved.",
     "More of them take up to half of streamfilter.dynamic_memory."},
    {"streamfilter.restore_workers", number(&restore_workers, 1, 0, kMostRestoreWorkers),
     PGC_POSTMASTER, Reach::local, "Workers that restore filters after a start.",
     "0: a filter is restored when it is used."},
};

void define(const Setting& setting) {
  const auto& [name, value, declared_context, reach, summary, detail, origin] = setting;
  // Values that size shared memory count only at the start. A library that is not preloaded knows
  // them, too, because the configuration may have them.
  auto context = static_cast<GucContext>(declared_context);
  if (context == PGC_POSTMASTER && !process_shared_preload_libraries_in_progress)
    context = PGC_SIGHUP;
  if (value.number == &mode_value)
    DefineCustomEnumVariable(name, summary, detail, &mode_value, kOwnMode, kModes, context, 0,
                             check_mode_setting, assign_mode, nullptr);
  else if (value.number == &lost_rows_value)
    DefineCustomEnumVariable(name, summary, detail, &lost_rows_value, value.initial, kLostRows,
                             context, GUC_EXPLAIN, nullptr, assign_lost_rows, nullptr);
  else if (value.number != nullptr)
    DefineCustomIntVariable(name, summary, detail, value.number, value.initial, value.low,
                            value.high, context, value.unit, nullptr, nullptr, nullptr);
  else if (value.flag == &enabled)
    DefineCustomBoolVariable(name, summary, detail, &enabled, true, context, 0, check_enabled,
                             assign_enabled, nullptr);
  else
    DefineCustomBoolVariable(name, summary, detail, value.flag, value.initial != 0, context, 0,
                             nullptr, nullptr, nullptr);
}

}  // namespace

std::span<const Setting> all_settings() { return kSettings; }

bool is_set(const Setting& setting) {
  const SettingValue& value = setting.value;
  return (value.number != nullptr ? *value.number : int{*value.flag}) != value.initial;
}

bool is_restoring() { return !check_function_bodies || IsLogicalWorker(); }

// The whole line: SET replaces what is preloaded already. Before pg_stat_statements, which
// otherwise misses rows that are inserted in batches; Citus must be first.
int errhint_preload() {
  if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS))
    return errhint(
        "Ask a superuser to add streamfilter to shared_preload_libraries and to restart "
        "the server.");
  TextBuffer line;
  const char* own = "'streamfilter'";
  const auto add = [&line](const char* library) {
    appendStringInfo(&line, "%s%s", line.len > 0 ? ", " : "", library);
  };
  List* libraries = NIL;
  SplitDirectoriesString(pstrdup(shared_preload_libraries_string), ',', &libraries);
  for (const auto* library : each<char>(libraries)) {
    if (own != nullptr && strcmp(library, "pg_stat_statements") == 0)
      add(std::exchange(own, nullptr));
    add(quote_literal_cstr(library));
  }
  if (own != nullptr) add(own);
  return errhint("ALTER SYSTEM SET shared_preload_libraries = %s; then restart the server.",
                 line.data);
}

void init_settings() {
  for (const Setting& setting : kSettings) define(setting);
  MarkGUCPrefixReserved("streamfilter");
}

}  // namespace streamfilter::pg
