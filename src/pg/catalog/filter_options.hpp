// OPTIONS (…) of filters and their columns.
#pragma once

#include "core/filter/tree_walk.hpp"
#include "core/model/slicing_model.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/settings.hpp"

struct DefElem;
struct List;

namespace streamfilter::pg {

struct Producer;

// Options of a filter relation and its columns that are not in the filter's bytes.

// Meaning of a column.
enum class Role : uint8 { key, importance, time };
inline constexpr const char* kRoleWords[] = {"key", "importance", "time", nullptr};
inline const char* name_of(Role role) { return kRoleWords[static_cast<int>(role)]; }

// Unit of a time that is a number. unsaid: microseconds, by any clock, as with `none`; but what
// looks like a time in another unit is told of.
enum class TimeUnit : uint8 { unsaid, s, ms, us, ns, none };
inline constexpr const char* kUnitWords[] = {"", "s", "ms", "us", "ns", "none", nullptr};
inline const char* name_of(TimeUnit unit) { return kUnitWords[static_cast<int>(unit)]; }

// What to do with a key that another, unfinished transaction has added.
enum class Conflict : uint8 {
  wait,     // wait for the end of that transaction
  admit,    // call it new
  discard,  // call it a repeat
};
inline constexpr const char* kConflictWords[] = {"wait", "admit", "discard", nullptr};
inline const char* name_of(Conflict conflict) { return kConflictWords[static_cast<int>(conflict)]; }

enum class Persistence : uint8 { logged, unlogged };
inline constexpr const char* kPersistenceWords[] = {"logged", "unlogged", nullptr};
inline const char* name_of(Persistence persistence) {
  return kPersistenceWords[static_cast<int>(persistence)];
}

// What happens to repeats while a filter holds more than its false-positive rate allows.
enum class Overfull : uint8 { pass, discard };
inline constexpr const char* kOverfullWords[] = {"pass", "discard", nullptr};
inline const char* name_of(Overfull overfull) { return kOverfullWords[static_cast<int>(overfull)]; }

// Asks the probes of a key on several servers all at once, or in turn until one says no.
enum class Probe : uint8 { parallel, pipelined };
inline constexpr const char* kProbeWords[] = {"parallel", "pipelined", nullptr};

// What to do with keys that have bits on an unreachable server.
struct LostSlice {
  LostRule rule = LostRule::distinct;
  uint32 least = 0;
};

// Options of a filter as a relation, which are not in its bytes.
struct RelationOptions {
  Conflict conflict = Conflict::wait;
  Persistence persistence = Persistence::logged;
  FilterMode mode = FilterMode::enforce;
  Overfull overfull = Overfull::pass;
  Probe probe = Probe::parallel;
  LostSlice lost_slice;
  const char* servers = nullptr;       // names, separated by commas
  const Producer* producer = nullptr;  // the filter on another server whose slices these are
  const char* identity = nullptr;  // of the filter that streamfilter_distribute() was called for
  const char* parent = nullptr;    // in a tree of filters, as SQL names it; nullptr: none
  TreeKind tree = TreeKind::sparse;
  // How far ahead of the server's clock an event may move the filter's clock, in microseconds;
  // PG_INT64_MAX: any time; -1: not given.
  int64 max_future = -1;
  unsigned top_down = 0;  // level down to which matches are tested; 0: no such tests
  Definition asked;       // the options of the bytes as given, nothing derived
};

// ---- reading them -------------------------------------------------------------------------------

// Makes the complete definition from a filter's options (DefElems); options outside of it go to
// `relation_options`, which keeps its defaults for others. Faults: HV00D for an unknown option,
// 22023 for bad values and promises that cannot be kept.
bool read_table_options(List* options, Definition* definition, RelationOptions* relation_options,
                        Fault& fault);

// CREATE writes it into the options, so that a later default does not change a filter.
constexpr char kDefaultFpr[] = "1e-06";

// Do the options name no fpr, and work with this one? Options that set numbers of the kind may
// override it; others that cannot keep it are a fault: 22023. Nothing else is.
bool takes_fpr(List* options, const char* fpr, Fault& fault);

// Reads an option of the relation; false if it is another option. A bad value is a fault: 22023.
bool read_relation_option(DefElem* option, RelationOptions* relation_options, Fault& fault);

// Can all of these options be altered without looking at the filter's keys?
bool keeps_state(List* options);

// Names in option servers (char*), NIL if not given. Fault: 22023.
bool read_server_names(const RelationOptions* relation_options, List** names, Fault& fault);

// The role of a column, and its unit. Faults: HV00D, 22023.
bool read_column_options(List* options, Role* role, TimeUnit* unit, Fault& fault);

// ---- options of trees ---------------------------------------------------------------------------

// Options that make a filter a node of a tree: parent, tree, top_down.

// Do they fit each other and the rest of a complete definition? Faults: 22023, 0A000.
bool check_tree_options(List* options, const Definition& definition,
                        const RelationOptions& relation_options, Fault& fault);

// Splits a name as SQL writes it, such as my_schema."My Filter"; without a schema, that is nullptr.
// False: it is no such name.
bool split_name(const char* text, char** schema, char** name);

}  // namespace streamfilter::pg
