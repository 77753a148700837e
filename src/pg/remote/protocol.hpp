// Calls of the functions on raw hashes (slice_service.cpp) on other servers: one message there and
// one back for any number of keys, to all servers at once. All connections given here are ready
// (connect.hpp).
#pragma once

extern "C" {
#include "lib/stringinfo.h"
}

#include "core/kind/kind_registry.hpp"
#include "pg/remote/pipeline.hpp"

namespace streamfilter::pg {

enum class Call : uint8 {
  test,   // is it there?
  seen,   // the same, and it is inserted
  claim,  // the same, and no other transaction can add it until this one has ended
  put,    // the same as `seen`, but as a probe of a key that is reserved elsewhere
  erase,  // it is forgotten
};

// Elements that follow each other in a call, of one relation there.
struct CallPart {
  const char* relation;  // quoted, with its schema
  int count;
  bool moved;  // it holds one slice that has come from another server
};

// A call of several parts is one query, which can have so many parameters.
constexpr int kMaxParts = PG_UINT16_MAX / 4;

struct RemoteCall {
  Connection* connection;
  Call call;
  const CallPart* parts;
  int part_count;
  int count;  // of all parts
  Element* elements;
  bool with_time, with_importance;
  Answer* answers;  // `count` places
  bool hasty;       // does not wait long for other transactions
  // Results.
  bool conflict;          // it was hasty, and would have had to wait: it has done nothing
  bool moved;             // a slice is not there any more: it has done nothing
  Failure failure;        // none: it is answered
  uint64 sent, received;  // bytes of hashes and answers
};

// Runs calls to connections that are all different. What a server raises is raised here, once
// all have answered.
void run_calls(RemoteCall* calls, int count);

// The filter whose slices a server is to hold.
struct SliceDefinition {
  const char* schema;
  const char* name;
  const char* definition;  // as print_definition writes it
  const char* conflict;
  const char* persistence;
  const char* producer;  // JSON
};

// Makes the relation there unless there is one; returns the definition that it has, in the current
// memory context, and whether it was made just now; "" if it is only looked for and not there.
// nullptr: the connection has failed. Raises what the server raises.
const char* define_slices(Connection* connection, const SliceDefinition* slices, bool* made);

// Where slices have gone that were in a relation there, as its option `moved` says, in the current
// memory context; "": they are all there, nullptr: there is no such relation. False: the connection
// has failed.
bool read_moved(Connection* connection, const char* relation, const char** moved);

// The slices of a filter that have come to a server, as "slice:1@epoch, ...", but those that have
// left it again; nullptr: none. False: the connection has failed.
bool list_moved_slices(Connection* connection, const SliceDefinition* slices, const char** list);

// Truncates the relation there, as part of the transaction. False: the connection has failed.
bool truncate_slices(Connection* connection, const char* filter);

// Whose relation is one that holds slices there?
enum class Owned : uint8 { absent, by_us, by_others };
struct Ownership {
  Owned owned;        // of the role that the connection is of
  char identity[64];  // of the filter whose slices these are (slice_origin.hpp); "": unknown
};

// False: the connection has failed.
bool read_owner(Connection* connection, const char* relation, Ownership* ownership);

// Runs a command that alters or drops such a relation, as part of the transaction, which cannot
// commit without the server from then on. False: the connection has failed.
bool change_slices(Connection* connection, const char* command);

// The same: the relation gets this definition, unless that is nullptr, and these options. Raises
// 0A000 as well if the server has a version that cannot do it.
bool alter_slices(Connection* connection, const char* relation, const SliceDefinition* to);

// Calls a function of the extension with that relation, as part of the transaction, and adds what
// it returns. False: the connection has failed.
bool call_slices(Connection* connection, const char* function, const char* relation, uint64* sum);

// Does a call fail because the server has not the function? Raises 0A000 then, with its version.
void check_version(const Connection* connection);

// Fetches the state of a filter there, as streamfilter_send has it. False: the connection has
// failed.
bool fetch_value(Connection* connection, const char* filter, StringInfo bytes);

// Queues the preparation of all calls; `schema` is that of the extension there, quoted. False: the
// connection has failed.
bool prepare_calls(Connection* connection, const char* schema);

}  // namespace streamfilter::pg
