// What a filter relation (a foreign table of this extension) says: its definition and its columns.
#pragma once

#include "core/format/parameters.hpp"
#include "pg/catalog/relation_options.hpp"
#include "pg/server/problem_report.hpp"

struct List;

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
  Definition definition;  // complete; its seed counts only if it is given
  RelationOptions options;
  Oid parent;        // InvalidOid: none, or there is no such relation
  int level;         // in its tree, 0: the root; -1: there is no way up to a root
  bool adopts_seed;  // a node has the seed of its root
  int column_count;  // dropped columns excluded, in order
  FilterColumn* columns;
  int key_count;
  FilterColumn** keys;       // the columns with role `key`, in order
  FilterColumn* importance;  // nullptr: none
  FilterColumn* time;        // nullptr: none
  bool behind_postgres_fdw;  // a table of postgres_fdw that stands for a filter: only columns
  int server_count;          // of the servers that hold the state; 0: it is this one
  Oid* servers;
  uint64 signature;  // of all that the state depends on: equal signature, state can be kept
  bool uncommitted;  // created or changed by the current transaction
  // Does it go on with what another version has derived? Then what this one would.
  bool is_adopted;
  Parameters derived_now;
};

// Is this relation a filter of this extension? False as well if there is no such relation.
bool is_filter(Oid relid);

// Are foreign tables of this wrapper filters?
bool is_wrapper_of_filters(Oid wrapper);

// Is it a table of postgres_fdw? It may stand for a filter: whether it does, its server knows.
bool may_stand_for_filter(Oid relid);

// One of these two?
bool may_take_keys(Oid relid);

// Of a foreign table; InvalidOid: it is none, or has gone.
Oid server_of(Oid relid);

// The options of a filter as they are written, DefElems; NIL if it is none.
List* options_of_filter(Oid relid);

// The OIDs of the filters of this database.
List* list_filters();

// Reads a filter relation into the current memory context, all but its place in a tree of filters
// (load_filter_relation in handle/tree.hpp has that, too), or finds out why that cannot be
// done: nullptr then. The faults: 42P01 no such relation, 42809 not a filter, 42501 its owner has
// no USAGE on a server that holds it, and whatever is wrong with its definition. Raises nothing
// that a role could bring about for others.
FilterRelation* read_filter_relation(Oid relid, Fault& fault);

// Does another server hold the state?
inline bool is_remote(const FilterRelation* relation) {
  return relation->server_count > 0 || relation->behind_postgres_fdw;
}

// Of the servers that hold the state, the first so many were there from the beginning: slice i was
// put on server i mod so many, and leads to where it is now.
inline int home_count(const FilterRelation* relation) {
  const int homes = relation->options.home_servers;
  return homes > 0 ? homes : relation->server_count;
}

// May its slices move? Then there must be those that say where they are.
inline bool may_move_slices(const FilterRelation* relation) {
  return relation->options.home_servers > 0;
}

// Of its columns alone: what a key is.
uint64 key_signature(const FilterRelation* relation);

// What ties saved state to a filter: a hash of what is asked for (as if `keys` and `fpr` were
// these) and of the columns. It does not depend on how a version derives the rest.
uint64 asked_signature(const FilterRelation* relation, uint64 keys, double fpr);
// The same of version 1.0: a hash of complete parameters and of the columns.
uint64 signature_of(const FilterRelation* relation, const Parameters& complete);
// Do these parameters have what was asked for, whichever version derived the rest?
bool is_asked_for(const FilterRelation* relation, const Parameters& complete);

// Rates as options and bytes have them: 0, not given, is the same as the default of 1.1.
bool is_same_fpr(double a, double b);

// The false-positive rate that it is to keep; 0: none was promised. Of slices for another server,
// that is their producer's filter.
double promised_fpr_of(const FilterRelation* relation);

// Are repeats discarded also where the filter holds more than that allows?
bool discards_overfull(const FilterRelation* relation);

// A filter whose state was made by another version goes on with the geometry that it has.
void adopt_geometry(FilterRelation* relation, const Parameters& parameters);

// Are the two equal but for what is only requested, NULL policy and seed?
bool has_same_geometry(const Parameters& a, const Parameters& b);

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
