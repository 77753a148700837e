#include "pg/server/postgres.hpp"

extern "C" {
#include "access/subtrans.h"
#include "funcapi.h"
#include "parser/parse_func.h"
}

#include "core/base/hash.hpp"
#include "pg/server/citus.hpp"

namespace streamfilter::pg {

// Columns of get_current_transaction_id(): database, process, and of the distributed transaction
// the node that has begun it, its number there (0: none), and the time.
constexpr int kNode = 2, kNumber = 3, kTime = 4, kColumns = 5;

static Oid transaction_id_function() {
  char schema[] = "pg_catalog", name[] = "get_current_transaction_id";
  return LookupFuncName(list_make2(makeString(schema), makeString(name)), 0, nullptr, true);
}

// It is preloaded or not.
bool is_citus_loaded() {
  static int loaded = -1;
  if (unlikely(loaded < 0)) loaded = GetConfigOption("citus.version", true, false) != nullptr;
  return loaded != 0;
}

uint64 distributed_transaction() {
  if (likely(!is_citus_loaded()) || !IsTransactionState()) return 0;
  const Oid function = transaction_id_function();
  if (!OidIsValid(function)) return 0;  // not in this database
  HeapTupleHeader row = DatumGetHeapTupleHeader(OidFunctionCall0(function));
  HeapTupleData tuple = {};
  tuple.t_len = HeapTupleHeaderGetDatumLength(row);
  tuple.t_data = row;
  TupleDesc columns =
      lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));
  Datum values[kColumns] = {};
  bool nulls[kColumns] = {};
  const bool expected = columns->natts == kColumns;
  if (expected) heap_deform_tuple(&tuple, columns, values, nulls);
  ReleaseTupleDesc(columns);
  if (!expected || nulls[kNumber] || DatumGetInt64(values[kNumber]) == 0) return 0;
  uint64 id = static_cast<uint64>(DatumGetInt64(values[kNumber])) * kGoldenRatio;
  id = (id ^ static_cast<uint64>(DatumGetInt32(values[kNode]))) * kGoldenRatio;
  if (!nulls[kTime]) id = (id ^ static_cast<uint64>(DatumGetInt64(values[kTime]))) * kGoldenRatio;
  return id | 1;
}

uint64 shard_in_name(const char* name) {
  const char* separator = strrchr(name, '_');
  if (separator == nullptr || separator[1] < '1' || separator[1] > '9') return 0;
  char* end;
  const uint64 number = strtou64(separator + 1, &end, 10);
  return *end == '\0' ? number : 0;
}

// ---- distributed transactions -------------------------------------------------------------------

namespace {

// Per session, the distributed transaction that it works for.
pg_atomic_uint64* transactions = nullptr;
uint64 own = 0;

Size bytes() { return mul_size(sizeof(pg_atomic_uint64), static_cast<Size>(MaxBackends)); }

// Ordinary sessions come first among all processes.
pg_atomic_uint64* transaction_of(const PGPROC* session) {
  return &transactions[session - ProcGlobal->allProcs];
}

}  // namespace

void join_distributed_transaction(uint64 distributed) {
  if (distributed == own) return;
  own = distributed;
  pg_atomic_write_u64(transaction_of(MyProc), own);
}

void leave_distributed_transaction() {
  if (likely(own == 0)) return;
  own = 0;
  pg_atomic_write_u64(transaction_of(MyProc), 0);
}

bool is_same_distributed_transaction(FullTransactionId transaction) {
  if (likely(own == 0)) return false;
  const TransactionId xid = XidFromFullTransactionId(transaction);
  if (!TransactionIdIsInProgress(xid)) return false;
  const int pid = BackendXidGetPid(SubTransGetTopmostTransaction(xid));
  const PGPROC* session = pid == 0 ? nullptr : BackendPidGetProc(pid);
  return session != nullptr && session != MyProc &&
         pg_atomic_read_u64(transaction_of(session)) == own;
}

void request_citus_transactions() { RequestAddinShmemSpace(bytes()); }

void start_citus_transactions() {
  if (attach_shared(transactions, "streamfilter citus transactions", bytes()))
    for (int i = 0; i < MaxBackends; ++i) pg_atomic_init_u64(&transactions[i], 0);
}

}  // namespace streamfilter::pg
