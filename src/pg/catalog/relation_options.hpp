// Options of a filter relation and its columns that are not in the bytes of the filter.
#pragma once

#include "core/filter/tree_walk.hpp"
#include "core/format/parameters.hpp"
#include "core/model/lost_slice_rule.hpp"
#include "pg/catalog/moved_slices.hpp"
#include "pg/server/filter_mode.hpp"

namespace streamfilter::pg {

// What a column tells of an element.
enum class Role : uint8 { key, importance, time };

// What happens to a key that another, unfinished transaction has added.
enum class Conflict : uint8 {
  wait,     // for the end of that transaction
  admit,    // it is new
  discard,  // it is a repeat
};

enum class Persistence : uint8 { logged, unlogged };

// What becomes of repeats while a filter holds more than its false-positive rate allows.
enum class Overfull : uint8 { pass, discard };

// The probes of a key on several servers are asked all at once, or in turn until one says no.
enum class Probe : uint8 { parallel, pipelined };

// What is made of keys that have bits on a server that cannot be reached.
struct LostSlice {
  LostRule rule = LostRule::distinct;
  uint32 least = 0;
};

// The relation options: those that a filter has as a relation, and its bytes have not.
struct RelationOptions {
  Conflict conflict = Conflict::wait;
  Persistence persistence = Persistence::logged;
  FilterMode mode = FilterMode::enforce;
  Overfull overfull = Overfull::pass;
  Probe probe = Probe::parallel;
  LostSlice lost_slice;
  const char* servers = nullptr;   // names, separated by commas
  const char* producer = nullptr;  // JSON: the filter whose slices these are, on another server
  const char* identity = nullptr;  // of the filter that streamfilter_distribute() was called for
  // The slices were cut for the first so many of `servers`; others were added later. 0: for all.
  int home_servers = 0;
  MovedSlices moved;  // of a relation with `producer`
  // Slices whose first server was retired: where a search for them begins.
  MovedSlices first_places;
  const char* parent = nullptr;  // in a tree of filters, as SQL names it; nullptr: none
  TreeKind tree = TreeKind::sparse;
  // How far ahead of the server's clock an event may move that of the filter, in microseconds;
  // PG_INT64_MAX: any time; -1: not given.
  int64 max_future = -1;
  unsigned top_down = 0;  // the level down to which a match is tested; 0: no such tests
  Definition asked;       // the options of the bytes as they are given, nothing derived
};

}  // namespace streamfilter::pg
