// Options of a filter relation and its columns that are not in the filter's bytes.
#pragma once

#include "core/filter/tree_walk.hpp"
#include "core/format/parameters.hpp"
#include "core/model/lost_slice_rule.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {

// Meaning of a column.
enum class Role : uint8 { key, importance, time };

// What to do with a key that another, unfinished transaction has added.
enum class Conflict : uint8 {
  wait,     // wait for the end of that transaction
  admit,    // call it new
  discard,  // call it a repeat
};

enum class Persistence : uint8 { logged, unlogged };

// What happens to repeats while a filter holds more than its false-positive rate allows.
enum class Overfull : uint8 { pass, discard };

// Asks the probes of a key on several servers all at once, or in turn until one says no.
enum class Probe : uint8 { parallel, pipelined };

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
  const char* servers = nullptr;   // names, separated by commas
  const char* producer = nullptr;  // JSON: the filter on another server whose slices these are
  const char* identity = nullptr;  // of the filter that streamfilter_distribute() was called for
  const char* parent = nullptr;    // in a tree of filters, as SQL names it; nullptr: none
  TreeKind tree = TreeKind::sparse;
  // How far ahead of the server's clock an event may move the filter's clock, in microseconds;
  // PG_INT64_MAX: any time; -1: not given.
  int64 max_future = -1;
  unsigned top_down = 0;  // level down to which matches are tested; 0: no such tests
  Definition asked;       // the options of the bytes as given, nothing derived
};

}  // namespace streamfilter::pg
