// What a filter relation (a foreign table of this extension) says: its definition and its columns.
#pragma once

#include "core/format/parameters.hpp"
#include "pg/catalog/relation_options.hpp"

namespace streamfilter::pg {

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

// Reads a filter relation into the current memory context, all but its place in a tree of filters
// (load_filter_relation in handle/hierarchy.hpp has that, too). The caller holds a lock on it.
// Raises: 42P01 no such relation, 42809 not a filter, and whatever is wrong with its definition.
FilterRelation* read_filter_relation(Oid relid);

// Does another server hold the state?
inline bool is_remote(const FilterRelation* relation) { return relation->server_count > 0; }
// Gives a node of a tree the seed of its root.
void adopt_seed(FilterRelation* relation, uint64 seed);

// Sum of `memory` over the definitions of all filters of a server; `except` is left out.
uint64 memory_of_server(Oid server, Oid except);

// Server option memory_limit in bytes; PG_UINT64_MAX if there is none.
uint64 memory_limit_of_server(Oid server);

}  // namespace streamfilter::pg
