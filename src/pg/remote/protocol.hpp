// Calls functions on raw hashes (slice_service.cpp) on other servers: one message there and one
// back for any number of keys, to all servers at once. All connections given here must be ready
// (connect.hpp).
#pragma once

#include "core/kind/kind_registry.hpp"
#include "pg/remote/pipeline.hpp"
#include "pg/shmem/server_health.hpp"

namespace streamfilter::pg {

enum class Call : uint8 {
  test,       // is the key there?
  seen,       // test, and insert
  reserve,    // the same, and keep other transactions from adding it until this one has ended
  put,        // as `seen`, for a probe of a key that is reserved elsewhere
  erase,      // forget the key
  take_back,  // it was new, but its row was not stored after all
};

struct RemoteCall {
  Connection* connection;
  Call call;
  const char* relation;  // quoted, with its schema
  int count;
  Element* elements;
  bool with_time, with_importance;
  Answer* answers;      // `count` places
  bool gives_up_early;  // does not wait long for other transactions
  // Results.
  bool conflict;          // would have had to wait for long: nothing was done
  Failure failure;        // none: answered
  uint64 sent, received;  // bytes of hashes and answers
};

// Runs calls on different connections. Raises a server's error once all have answered.
void run_calls(RemoteCall* calls, int count);

// The filter whose slices a server will hold.
struct SliceDefinition {
  const char* schema;
  const char* name;
  const char* definition;  // as print_definition writes it
  const char* conflict;
  const char* persistence;
  const char* producer;  // JSON
};

// Makes the relation there unless it exists. Returns its definition, in the current memory context,
// and whether it was made now; "" if it was only looked for and does not exist. nullptr: the
// connection has failed. Raises the server's errors.
const char* define_slices(Connection* connection, const SliceDefinition* slices, bool* made,
                          PartState* state = nullptr);

// Who owns a relation with slices there?
enum class Owned : uint8 { absent, by_us, by_others };
struct Ownership {
  Owned owned;             // by the connection's role
  const char* identity;    // of the filter whose slices these are; nullptr: not known
  ReceivedValue producer;  // what says so
};

// False: the connection has failed.
bool read_owner(Connection* connection, const char* relation, Ownership* ownership);

// Runs a command that empties such a relation, or alters or drops it, in the transaction, which
// then cannot commit without the server. False: the connection has failed.
bool change_slices(Connection* connection, const char* command, bool alters = true);

// Gives the relation these options, but no other definition. Also raises 0A000 if the server's
// version cannot do it.
bool alter_slices(Connection* connection, const char* relation, const SliceDefinition* to);

// Calls a function of the extension with that relation, in the transaction, and adds its result.
// Also raises 0A000 if the server's version does not have it. False: the connection has failed.
bool call_slices(Connection* connection, const char* function, const char* relation, uint64* sum);

// Fetches the state of a filter of this memory, as streamfilter_send returns it. False: the
// connection has failed.
bool fetch_value(Connection* connection, const char* filter, uint64 memory, StringInfo bytes);

// Queues the preparation of all calls; `schema` is that of the extension there, quoted. False: the
// connection has failed.
bool prepare_calls(Connection* connection, const char* schema);

}  // namespace streamfilter::pg
