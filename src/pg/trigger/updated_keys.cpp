#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/hsearch.h"
}

#include "pg/server/shared_memory.hpp"
#include "pg/trigger/row_source.hpp"
#include "pg/trigger/updated_keys.hpp"

namespace streamfilter::pg {
namespace {

struct UpdatedKey {
  uint64 hash;
  uint64 filter;  // first field, without a gap behind it, for the hash table's key
};

HTAB* keys = nullptr;  // in the transaction's memory
uint64 statement = 0;  // the statement that the keys belong to

void on_memory_reset(void*) { keys = nullptr; }

void begin_statement() {
  if (keys != nullptr && statement == running_statement) return;
  if (keys != nullptr) {
    hash_destroy(keys);
  } else {
    auto* callback = static_cast<MemoryContextCallback*>(
        MemoryContextAllocZero(TopTransactionContext, sizeof(MemoryContextCallback)));
    callback->func = on_memory_reset;
    MemoryContextRegisterResetCallback(TopTransactionContext, callback);
  }
  keys = nullptr;
  keys = make_hash_table<UpdatedKey>("streamfilter updated keys", 16, TopTransactionContext);
  statement = running_statement;
}

}  // namespace

void note_updated_to(Oid filter, uint64 hash) {
  begin_statement();
  const UpdatedKey key = {hash, filter};
  hash_search(keys, &key, HASH_ENTER, nullptr);
}

bool was_updated_to(Oid filter, uint64 hash) {
  if (keys == nullptr || statement != running_statement) return false;
  const UpdatedKey key = {hash, filter};
  return hash_search(keys, &key, HASH_FIND, nullptr) != nullptr;
}

}  // namespace streamfilter::pg
