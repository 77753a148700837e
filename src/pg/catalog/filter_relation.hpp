// What a filter relation (a foreign table of this extension) says: its definition and its columns.
#pragma once

#include "core/filter/hierarchy_walk.hpp"
#include "core/format/parameters.hpp"
#include "core/model/lost_shard_rule.hpp"
#include "pg/server/problem_report.hpp"

struct List;

namespace streamfilter::pg {

enum class Role : uint8 { key, importance, time };

// What happens to a key that another, unfinished transaction has added.
enum class Conflict : uint8 {
  wait,     // for the end of that transaction
  admit,    // it is new
  discard,  // it is a repeat
};

enum class Persistence : uint8 { logged, unlogged };

// The places of a key on several servers are asked all at once, or in turn until one says no.
enum class Probe : uint8 { parallel, pipelined };

// What is made of keys that have bits on a server that cannot be reached.
struct LostSlice {
  LostRule rule = LostRule::distinct;
  uint32 least = 0;
};

// Options that only named filters have, not their bytes.
struct HostOptions {
  Conflict conflict = Conflict::wait;
  Persistence persistence = Persistence::logged;
  Probe probe = Probe::parallel;
  LostSlice lost_slice;
  const char* servers = nullptr;   // names, separated by commas
  const char* producer = nullptr;  // JSON: the filter whose slices these are, on another server
  const char* parent = nullptr;    // in a tree of filters, as SQL names it; nullptr: none
  TreeKind tree = TreeKind::sparse;
  unsigned top_down = 0;  // the level down to which a match is tested; 0: no such tests
};

struct FilterColumn {
  AttrNumber attnum;
  Role role;
  Oid type;  // as declared, a domain included
  int32 typmod;
  Oid collation;
  const char* name;
};

// Read from the catalogs; lives in one memory context and points to nothing outside it.
struct FilterRelation {
  Oid relid;
  Oid server;
  Oid owner;
  const char* name;       // for messages
  Definition definition;  // complete; its seed counts only if seed_given
  HostOptions host;
  Oid parent;        // InvalidOid: none, or there is no such relation
  int level;         // in its tree, 0: the root; -1: there is no way up to a root
  bool adopts_seed;  // a node has the seed of its root
  int column_count;  // dropped columns excluded, in order
  FilterColumn* columns;
  int key_count;
  FilterColumn** keys;       // the columns with role `key`, in order
  FilterColumn* importance;  // nullptr: none
  FilterColumn* time;        // nullptr: none
  int server_count;          // of the servers that hold the state; 0: it is this one
  Oid* servers;
  uint64 signature;  // of all that the state depends on: equal signature, state can be kept
  bool uncommitted;  // created or changed by the current transaction
};

// Is this relation a filter of this extension? False as well if there is no such relation.
bool is_filter(Oid relid);

// The options of a filter as they are written, DefElems; NIL if it is none.
List* options_of_filter(Oid relid);

// The OIDs of the filters of this database.
List* list_filters();

// Reads a filter relation into the current memory context, or finds out why that cannot be done:
// nullptr then. The faults: 42P01 no such relation, 42809 not a filter, 42501 its owner has no
// USAGE on a server that holds it, and whatever is wrong with its definition. Raises nothing that
// a role could bring about for others.
FilterRelation* read_filter_relation(Oid relid, Fault& fault);

// The same for whoever uses a filter, and so has a lock on it: raises the fault.
FilterRelation* load_filter_relation(Oid relid);

// The same for a row of a view: nullptr without a fault if it is no filter, or none any more.
FilterRelation* show_filter_relation(Oid relid, Fault& fault);

// Does another server hold the state?
inline bool is_remote(const FilterRelation* relation) { return relation->server_count > 0; }
// Gives a node of a tree the seed of its root.
void adopt_seed(FilterRelation* relation, uint64 seed);

// What the definitions of the filters of a server ask for; `except` is left out. Filters on several
// servers take memory on none of them here.
struct ServerUse {
  int filters;
  uint64 memory;
};
ServerUse use_of_server(Oid server, Oid except);

}  // namespace streamfilter::pg
