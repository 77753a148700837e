#include "pg/server/postgres.hpp"

extern "C" {
#include "replication/logicalworker.h"
#include "utils/guc.h"
#include "utils/plancache.h"
}

#include <climits>

#include "pg/server/settings.hpp"

namespace streamfilter::pg {

int shared_memory_kb = 256 * 1024;
int dynamic_memory_kb = 1024 * 1024;
int max_filters = 128;
int max_in_flight = 100000;
int commit_wait_timeout_ms = kCommitWaitTimeout;
int restore_workers = 1;
int min_log_size_kb = 8 * 1024;
bool enabled = true;
bool batch_scan = true;
bool batch_insert = true;
bool report = false;
LostRowsSetting lost_rows_setting = LostRowsSetting::error;

SessionMode session_mode = {};
SettingOrigin enabled_origin = {};
bool set_travels = false, set_traveled = false;
uint64 handle_epoch = 1;

namespace {

constexpr int kOwnMode = -1;
constexpr config_enum_entry kModes[] = {
    {"enforce", static_cast<int>(FilterMode::enforce), false},
    {"shadow", static_cast<int>(FilterMode::shadow), false},
    {"off", static_cast<int>(FilterMode::off), false},
    {"", kOwnMode, true},
    {nullptr, 0, false},
};
int mode_value = kOwnMode;

constexpr config_enum_entry kLostRows[] = {
    {"error", static_cast<int>(LostRowsSetting::error), false},
    {"warn", static_cast<int>(LostRowsSetting::warn), false},
    {nullptr, 0, false},
};
int lost_rows_value = static_cast<int>(LostRowsSetting::error);

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

void init_switches() {
  DefineCustomBoolVariable("streamfilter.enabled", "Lets filters judge rows.",
                           "If off, triggers and streamfilter_seen() let every row pass, and "
                           "nothing is remembered.",
                           &enabled, true, PGC_SUSET, 0, check_enabled, assign_enabled, nullptr);
  DefineCustomEnumVariable("streamfilter.mode",
                           "What filters do with repeats, in place of their option mode.",
                           "Empty: the option of each filter counts.", &mode_value, kOwnMode,
                           kModes, PGC_USERSET, 0, check_mode_setting, assign_mode, nullptr);
  DefineCustomBoolVariable("streamfilter.batch_scan",
                           "Reads rows ahead where a scan is filtered by NOT streamfilter_seen().",
                           "The result is the same; keys are judged one by one all the same.",
                           &batch_scan, true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
  DefineCustomBoolVariable("streamfilter.batch_insert",
                           "Judges and inserts rows in batches where nothing can tell.",
                           "The result is the same; rows are judged in their order all the same.",
                           &batch_insert, true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
  DefineCustomEnumVariable("streamfilter.lost_rows",
                           "What becomes of queries that may lose rows after a filter has "
                           "remembered them.",
                           "error: they fail; warn: a WARNING.", &lost_rows_value,
                           static_cast<int>(LostRowsSetting::error), kLostRows, PGC_USERSET,
                           GUC_EXPLAIN, nullptr, assign_lost_rows, nullptr);
  DefineCustomBoolVariable("streamfilter.report",
                           "Says after each statement what filters have made of its rows.", nullptr,
                           &report, false, PGC_USERSET, 0, nullptr, nullptr, nullptr);
}

void init_limits() {
  DefineCustomIntVariable(
      "streamfilter.min_log_size", "Log of a filter up to which no image of it is written.",
      "An image is written when the log is larger than this and the filter.", &min_log_size_kb,
      8 * 1024, 64, INT_MAX, PGC_SIGHUP, GUC_UNIT_KB, nullptr, nullptr, nullptr);
  DefineCustomIntVariable(
      "streamfilter.commit_wait_timeout", "Longest wait for other transactions in COMMIT.",
      "statement_timeout has ended there. 0 waits for ever; lock_timeout counts, too.",
      &commit_wait_timeout_ms, kCommitWaitTimeout, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr,
      nullptr, nullptr);
}

void init_memory() {
  // These settings size shared memory, so only values at the start count. A library that is not
  // preloaded knows them, too, because the configuration may have them.
  const GucContext at_start =
      process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP;
  DefineCustomIntVariable(
      "streamfilter.shared_memory", "Memory reserved at server start for named filters.", nullptr,
      &shared_memory_kb, 256 * 1024, 64, INT_MAX, at_start, GUC_UNIT_KB, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("streamfilter.dynamic_memory",
                          "Memory that named filters may take beyond streamfilter.shared_memory.",
                          "It is taken when a filter needs it.", &dynamic_memory_kb, 1024 * 1024, 0,
                          INT_MAX, PGC_SIGHUP, GUC_UNIT_KB, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("streamfilter.max_filters",
                          "Largest number of named filters in shared memory.", nullptr,
                          &max_filters, 128, 1, 65536, at_start, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable(
      "streamfilter.max_in_flight", "Keys of unfinished transactions that have a place reserved.",
      "More of them take up to half of streamfilter.dynamic_memory.", &max_in_flight, 100000, 1000,
      100000000, at_start, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("streamfilter.restore_workers",
                          "Workers that restore filters after a start.",
                          "0: a filter is restored when it is used.", &restore_workers, 1, 0,
                          kMostRestoreWorkers, at_start, 0, nullptr, nullptr, nullptr);
}

}  // namespace

bool is_restoring() { return !check_function_bodies || IsLogicalWorker(); }

void init_settings() {
  init_switches();
  init_limits();
  init_memory();
  MarkGUCPrefixReserved("streamfilter");
}

}  // namespace streamfilter::pg
