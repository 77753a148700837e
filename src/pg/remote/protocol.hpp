// Calls of the functions on raw hashes (slice_service.cpp) on other servers: one message there and
// one back for any number of keys, to all servers at once.
#pragma once

extern "C" {
#include "lib/stringinfo.h"
}

#include "core/kind/filter_ops.hpp"
#include "pg/remote/connection.hpp"

namespace streamfilter::pg {

enum class Call : uint8 {
  test,   // is it there?
  seen,   // the same, and it is remembered
  claim,  // the same, and no other transaction can add it until this one has ended
  put,    // the same as `seen`, but as part of a key that is claimed elsewhere
  erase,  // it is forgotten
};

// What a server says of a hash; `taken`: it is claimed by another transaction.
enum class Answer : char { no = 'f', yes = 't', taken = 'N' };

struct RemoteCall {
  Connection* connection;
  Call call;
  const char* filter;  // quoted, with its schema
  int count;
  Element* elements;
  bool with_time, with_importance;
  Answer* answers;  // `count` places
  // Results.
  bool lost;
  uint64 sent, received;  // bytes of hashes and answers
};

// Runs calls of which no two go to the same connection. A call that cannot reach its server, or has
// no answer in time, is lost; what a server raises is raised here, once all have answered.
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
// memory context, and whether it was made just now. nullptr: lost. Raises what the server raises.
const char* define_slices(Connection* connection, const SliceDefinition* slices, bool* made);

// Runs one statement without a result there, as part of the transaction. False: lost.
bool run_statement(Connection* connection, const char* statement);

// Appends the state of a filter there, as streamfilter_send has it. False: lost.
bool fetch_value(Connection* connection, const char* filter, StringInfo bytes);

// Queues the preparation of all calls; `schema` is that of the extension there, quoted.
void prepare_calls(Connection* connection, const char* schema);

}  // namespace streamfilter::pg
