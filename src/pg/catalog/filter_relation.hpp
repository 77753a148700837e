// A filter relation (a foreign table of this extension): its definition and columns.
#pragma once

#include "pg/catalog/filter_options.hpp"

struct List;

namespace streamfilter::pg {

struct FilterColumn {
  AttrNumber attnum;
  Role role;
  Oid type;  // as declared, possibly a domain
  int32 typmod;
  Oid collation;
  const char* name;
  Oid base_type;  // below domains; where it was read as a column of a filter, as is the unit
  TimeUnit unit = TimeUnit::unsaid;
};

// Read from the catalogs; lives in one memory context and points to nothing outside it.
struct FilterRelation {
  Oid relid;
  Oid server;
  Oid owner;
  const char* name;       // for messages
  Definition definition;  // complete; its seed counts only if it is given
  RelationOptions options;
  Oid parent;        // InvalidOid: none, or no such relation
  int level;         // in its tree, 0: the root; -1: no path to a root
  bool adopts_seed;  // a node takes its root's seed
  int column_count;  // without dropped columns, in order
  FilterColumn* columns;
  int key_count;
  FilterColumn** keys;       // columns with role `key`, in order
  FilterColumn* importance;  // nullptr: none
  FilterColumn* time;        // nullptr: none
  int server_count;          // number of servers that hold the state; 0: this one does
  Oid* servers;
  bool uncommitted;  // the current transaction has created or changed it
  // Does it keep parameters that another version has derived? Then those that this one would
  // derive.
  bool is_adopted;
  Parameters derived_now;
};

// Is this relation a filter of this extension? False if there is no such relation.
bool is_filter(Oid relid);

// Are foreign tables of this wrapper filters?
bool is_wrapper_of_filters(Oid wrapper);

// Server of a foreign table; InvalidOid: it is none, or was dropped.
Oid server_of(Oid relid);

// Options of a filter as written (DefElems); NIL if it is none.
List* options_of_filter(Oid relid);

// OIDs of the filters of this database; with an option's name, only of those that may have it.
List* list_filters(const char* option = nullptr);

// Reads a filter relation into the current memory context, except its place in a tree (for that,
// use load_filter_relation in handle/tree.hpp). nullptr, with a fault, if it cannot be read: 42P01
// no such relation, 42809 not a filter, 42501 its owner has no USAGE on a server that holds it, or
// errors in its definition. Raises nothing that one role could cause for others.
FilterRelation* read_filter_relation(Oid relid, Fault& fault);

// Do other servers hold the state?
inline bool is_remote(const FilterRelation* relation) { return relation->server_count > 0; }

// A hash of its columns: what a key is.
uint64 key_signature(const FilterRelation* relation);

// Can contents with these parameters be the filter's? `columns`: its key_signature when they began;
// 0: not known. Only a definition that was changed where no hook ran, or a tree with another seed,
// says otherwise.
bool is_state_of(const FilterRelation* relation, const Parameters& parameters, uint64 columns);

// Compares rates in options and bytes: 0 (not given) equals the default.
bool is_same_fpr(double a, double b);

// A filter with state of another version keeps that state's geometry.
void adopt_geometry(FilterRelation* relation, const Parameters& parameters);

// Are the two equal, apart from requests, NULL policy and seed?
bool has_same_geometry(const Parameters& a, const Parameters& b);

// Gives a node of a tree its root's seed.
void adopt_seed(FilterRelation* relation, uint64 seed);

// Memory and number that the definitions of a server's filters ask for, without `except`. Filters
// over several servers take none here.
struct ServerUse {
  int filters;
  uint64 memory;
};
ServerUse use_of_server(Oid server, Oid except);

// Dependencies of filters on the servers that hold them and on their parent in a tree, so that DROP
// names filters and CASCADE drops them. CREATE, ALTER and IMPORT record them; if no event trigger
// ran (pg_upgrade, or disabled triggers), the filter's first change does.

// OIDs of the objects of a class that a filter depends on, and of the filters that depend on an
// object.
List* objects_needed_by(Oid relid, Oid class_id);
List* filters_depending_on(Oid class_id, Oid object);

// The relations that depend on a filter, without those that another session is dropping, or is
// taking from it.
List* lasting_children(Oid filter);

// Makes a filter depend on an object, or no more. True: it did already.
bool depend_on(Oid relid, Oid class_id, Oid object);
void depend_no_more_on(Oid relid, Oid class_id, Oid object);

// Records dependencies on its own server and those in option servers, and on no others.
bool depend_on_servers(const FilterRelation* relation);

// May the current transaction change the catalog?
bool may_record_dependencies();

}  // namespace streamfilter::pg
