// The settings (GUCs) of the extension, and what a setting of the server tells.
#pragma once

#include <span>

namespace streamfilter::pg {

// What a filter does with rows that it judges.
enum class FilterMode : uint8 {
  enforce,  // repeats are discarded, marked, diverted
  shadow,   // all rows pass unchanged; keys are remembered, repeats counted
  off,      // all rows pass unchanged; the filter is not asked
};
inline constexpr const char* kModeWords[] = {"enforce", "shadow", "off", nullptr};
inline const char* name_of(FilterMode mode) { return kModeWords[static_cast<int>(mode)]; }

extern int shared_memory_kb;        // streamfilter.shared_memory
extern int dynamic_memory_kb;       // streamfilter.dynamic_memory
extern int max_filters;             // streamfilter.max_filters
extern int max_in_flight;           // streamfilter.max_in_flight
extern int commit_wait_timeout_ms;  // streamfilter.commit_wait_timeout
extern int restore_workers;         // streamfilter.restore_workers
extern int min_log_size_kb;         // streamfilter.min_log_size
extern bool enabled;                // streamfilter.enabled
extern bool batch_scan;             // streamfilter.batch_scan
extern bool batch_insert;           // streamfilter.batch_insert
extern bool report;                 // streamfilter.report

// What to do with a query that may lose rows which a filter remembers.
enum class LostRowsSetting : int { error, warn };
extern LostRowsSetting lost_rows_setting;  // streamfilter.lost_rows

constexpr int kMostRestoreWorkers = 16;

// Origin of a value that other nodes of Citus may not have.
struct SettingOrigin {
  Oid set_by;       // the role that has set it; InvalidOid: the server's configuration
  bool is_default;  // from the configuration, the database or the role
  bool travels;     // nodes get it: by a SET LOCAL that Citus sends, or anyway
};

// streamfilter.mode
struct SessionMode {
  bool given;  // false: every filter's own mode counts
  FilterMode mode;
  SettingOrigin origin;
};
extern SessionMode session_mode;
extern SettingOrigin enabled_origin;

// Must the value of a session reach the nodes of Citus where rows are judged?
enum class Reach : uint8 {
  local,   // it acts here
  useful,  // it changes nothing of what is stored there: a NOTICE
  needed,  // else an error
};

struct SettingValue {
  bool* flag;   // where it is; nullptr: it is a number,
  int* number;  // or an enum
  int initial, low, high;
  int unit;  // GUC_UNIT_…
};

struct Setting {
  const char* name;
  SettingValue value;
  int context;  // GucContext
  Reach reach;
  const char* summary;
  const char* detail = nullptr;
  SettingOrigin* origin = nullptr;  // kept of those that are needed
};

std::span<const Setting> all_settings();

// Has it another value than by default?
bool is_set(const Setting& setting);

// True while a SET LOCAL runs that Citus sends to the nodes; has one of this session?
extern bool set_travels, set_traveled;

// Changes with `enabled` and `session_mode`, and with what else a filter that is in use depends on:
// it is made ready again (pg/handle/filter_handle.hpp).
extern uint64 handle_epoch;

// Is a dump being restored, or a table copied by a subscription, so that rows are not new? Setting
// check_function_bodies tells, which pg_dump turns off so that function bodies are not checked.
bool is_restoring();

// In ereport(): the statement that preloads the library, with what is preloaded already.
int errhint_preload();

// Called by _PG_init. Never raises.
void init_settings();

}  // namespace streamfilter::pg
