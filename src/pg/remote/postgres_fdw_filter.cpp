// Inserts rows as COPY does into foreign partitions: BeginForeignInsert, then ExecForeignInsert for
// each. An insertion stays open until its subtransaction ends, because postgres_fdw sets its
// savepoints where an insertion begins.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/table.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "foreign/fdwapi.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/typcache.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/key/trusted_code.hpp"
#include "pg/remote/postgres_fdw_filter.hpp"
#include "pg/server/hooks.hpp"
#include "pg/server/shared_memory.hpp"
#include "pg/server/transaction_use.hpp"

namespace streamfilter::pg {

// Has its own context within that of its subtransaction.
struct Insertion {
  Insertion* next;
  MemoryContext context;
  SubTransactionId since;
  const PostgresFdwFilter* fdw_filter;
  Relation table;
  EState* executor;
  ResultRelInfo* target;
  TupleTableSlot* slot;
};

// Values in the order of relation->keys.
struct KeptRow {
  uint64 hash;
  Datum* values;  // nullptr: out of memory
  bool* isnull;
};

struct KeptRows {
  MemoryContext memory;
  HTAB* by_hash;
};

struct PostgresFdwFilter {
  const FilterRelation* relation;
  bool is_checked;
  MemoryContext memory;  // context of all that is kept
  KeptRows recent, older;
  uint64 last_number;
};

namespace {

Insertion* insertions = nullptr;  // open ones, the newest first

// ---- insertions --------------------------------------------------------------------------------

// The table's owner connects, as for all filters, whichever role asks.
void set_up_executor(Insertion* insertion, const FilterRelation* relation) {
  RangeTblEntry* entry = makeNode(RangeTblEntry);
  entry->rtekind = RTE_RELATION;
  entry->relid = relation->relid;
  entry->relkind = RELKIND_FOREIGN_TABLE;
  entry->rellockmode = RowExclusiveLock;
  insertion->executor = CreateExecutorState();
  SF_INIT_RANGE_TABLE(insertion->executor, entry, relation->owner);
  insertion->target = makeNode(ResultRelInfo);
  InitResultRelInfo(insertion->target, insertion->table, 1, nullptr, 0);
  const FdwRoutine* wrapper = insertion->target->ri_FdwRoutine;
  if (wrapper->ExecForeignInsert == nullptr ||
      (wrapper->IsForeignRelUpdatable(insertion->table) & 1 << CMD_INSERT) == 0)
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("foreign table \"%s\" does not allow inserts", relation->name),
            errhint("Leave out option updatable."));
}

void begin_foreign_insertion(Insertion* insertion) {
  auto* state = makeNode(ModifyTableState);
  state->ps.state = insertion->executor;
  state->operation = CMD_INSERT;
  state->mt_nrels = 1;
  state->resultRelInfo = state->rootResultRelInfo = insertion->target;
  const FdwRoutine* wrapper = insertion->target->ri_FdwRoutine;
  if (wrapper->BeginForeignInsert != nullptr) wrapper->BeginForeignInsert(state, insertion->target);
}

// Its memory belongs to its subtransaction, not to the current query.
Insertion* begin_insertion(const PostgresFdwFilter* fdw_filter) {
  MemoryContext context =
      AllocSetContextCreate(CurTransactionContext, "streamfilter insertion", ALLOCSET_SMALL_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  ResourceOwner owner = CurrentResourceOwner;
  CurrentResourceOwner = CurTransactionResourceOwner;
  auto* insertion = static_cast<Insertion*>(palloc0(sizeof(Insertion)));
  insertion->context = context;
  insertion->since = GetCurrentSubTransactionId();
  insertion->fdw_filter = fdw_filter;
  insertion->table = table_open(fdw_filter->relation->relid, NoLock);  // make_ready has it locked
  set_up_executor(insertion, fdw_filter->relation);
  insertion->slot = MakeSingleTupleTableSlot(
      CreateTupleDescCopy(RelationGetDescr(insertion->table)), &TTSOpsVirtual);
  begin_foreign_insertion(insertion);
  CurrentResourceOwner = owner;
  MemoryContextSwitchTo(caller);
  transaction_uses_filters = true;
  insertion->next = insertions;
  insertions = insertion;
  kUpwardCalls.on_foreign_insertion();
  return insertion;
}

// Removed from the list first: if this raises, it is not tried again.
void end_insertion(Insertion* insertion) {
  ResourceOwner owner = CurrentResourceOwner;
  CurrentResourceOwner = CurTransactionResourceOwner;
  const FdwRoutine* wrapper = insertion->target->ri_FdwRoutine;
  if (wrapper->EndForeignInsert != nullptr)
    wrapper->EndForeignInsert(insertion->executor, insertion->target);
  ExecDropSingleTupleTableSlot(insertion->slot);
  table_close(insertion->table, NoLock);
  FreeExecutorState(insertion->executor);
  CurrentResourceOwner = owner;
  MemoryContextDelete(insertion->context);
}

Insertion* find_insertion(const PostgresFdwFilter* fdw_filter) {
  const SubTransactionId current = GetCurrentSubTransactionId();
  for (Insertion* at = insertions; at != nullptr && at->since == current; at = at->next)
    if (at->fdw_filter == fdw_filter) return at;
  return begin_insertion(fdw_filter);
}

// ---- rows --------------------------------------------------------------------------------------

// Limit for keys that a caller hashes before it asks for them.
constexpr long kKept = 1024;

void turn_over(PostgresFdwFilter* fdw_filter) {
  if (fdw_filter->older.memory != nullptr) MemoryContextDelete(fdw_filter->older.memory);
  fdw_filter->older = fdw_filter->recent;
  fdw_filter->recent = {};
  MemoryContext memory = fdw_filter->recent.memory =
      AllocSetContextCreate(fdw_filter->memory, "streamfilter rows", ALLOCSET_SMALL_SIZES);
  fdw_filter->recent.by_hash = make_hash_table<uint64, KeptRow>("streamfilter rows", 64, memory);
}

const KeptRow* find_row(const KeptRows& rows, uint64 hash) {
  if (rows.by_hash == nullptr) return nullptr;
  const auto* row = static_cast<KeptRow*>(hash_search(rows.by_hash, &hash, HASH_FIND, nullptr));
  return row != nullptr && row->values != nullptr ? row : nullptr;
}

const KeptRow* row_of(const PostgresFdwFilter* fdw_filter, const Element& element) {
  const KeptRow* row = find_row(fdw_filter->recent, element.hash);
  if (row == nullptr) row = find_row(fdw_filter->older, element.hash);
  if (likely(row != nullptr)) return row;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("filter \"%s\" was changed while it was used", fdw_filter->relation->name),
          errhint("Repeat the statement."));
  pg_unreachable();
}

void fill_slot(const FilterRelation* relation, const KeptRow* row, TupleTableSlot* slot) {
  ExecClearTuple(slot);
  memset(slot->tts_isnull, true,
         sizeof(bool) * static_cast<Size>(slot->tts_tupleDescriptor->natts));
  for (int i = 0; i < relation->key_count; ++i) {
    const int at = relation->keys[i]->attnum - 1;
    slot->tts_values[at] = row->values[i];
    slot->tts_isnull[at] = row->isnull[i];
  }
  ExecStoreVirtualTuple(slot);
}

// ---- queries -----------------------------------------------------------------------------------

// Runs a query as the table's owner. Does it return rows?
bool finds_rows(const FilterRelation* relation, const char* query, int count, Oid* types,
                Datum* values) {
  const Caller caller = become_owner(relation->relid, relation->owner);
  SPI_connect();
  if (SPI_execute_with_args(query, count, types, values, nullptr, true, 1) != SPI_OK_SELECT)
    elog(ERROR, "could not ask filter \"%s\"", relation->name);
  const bool found = SPI_processed > 0;
  SPI_finish();
  return_to(caller);
  return found;
}

const char* equality_there(const FilterColumn* column) {
  const char* name = equality_operator(getBaseType(column->type));
  if (name == nullptr)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_FUNCTION),
            errmsg("type %s has no equality operator", format_type_be(column->type)));
  return name;
}

// A filter refuses to be listed; another table returns a row.
bool refuses_to_be_listed(const FilterRelation* relation) {
  ErrorData* error = error_in_savepoint([relation] {
    finds_rows(relation, psprintf("SELECT FROM %s LIMIT 1", qualified_name(relation->relid)), 0,
               nullptr, nullptr);
  });
  if (error != nullptr && error->sqlerrcode != ERRCODE_FEATURE_NOT_SUPPORTED) ReThrowError(error);
  return error != nullptr;
}

// Checked once, with the first key.
void check_is_filter(PostgresFdwFilter* fdw_filter) {
  if (fdw_filter->is_checked) return;
  if (!refuses_to_be_listed(fdw_filter->relation))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("\"%s\" is not a filter", fdw_filter->relation->name),
            errdetail("On its server, there are rows behind it."),
            errhint("Let option table_name name a filter there."));
  fdw_filter->is_checked = true;
}

}  // namespace

PostgresFdwFilter* make_postgres_fdw_filter(const FilterRelation* relation) {
  auto* fdw_filter = static_cast<PostgresFdwFilter*>(palloc0(sizeof(PostgresFdwFilter)));
  fdw_filter->relation = relation;
  fdw_filter->memory = CurrentMemoryContext;
  return fdw_filter;
}

uint64 next_number(PostgresFdwFilter* fdw_filter) { return ++fdw_filter->last_number; }

void keep_row(PostgresFdwFilter* fdw_filter, const Datum* values, const bool* isnull, uint64 hash) {
  const FilterRelation* relation = fdw_filter->relation;
  if (fdw_filter->recent.by_hash == nullptr ||
      hash_get_num_entries(fdw_filter->recent.by_hash) >= kKept)
    turn_over(fdw_filter);
  bool found;
  auto* row =
      static_cast<KeptRow*>(hash_search(fdw_filter->recent.by_hash, &hash, HASH_ENTER, &found));
  if (found && row->values != nullptr) return;  // of an equal key
  row->values = nullptr;
  MemoryContext caller = MemoryContextSwitchTo(fdw_filter->recent.memory);
  const auto count = static_cast<Size>(relation->key_count);
  auto* copies = static_cast<Datum*>(palloc(sizeof(Datum) * count));
  row->isnull = static_cast<bool*>(palloc(sizeof(bool) * count));
  for (int i = 0; i < relation->key_count; ++i) {
    int16 length;
    bool by_value;
    get_typlenbyval(relation->keys[i]->type, &length, &by_value);
    row->isnull[i] = isnull[i];
    copies[i] = isnull[i] ? Datum{} : datumCopy(values[i], by_value, length);
  }
  row->values = copies;
  MemoryContextSwitchTo(caller);
}

bool test_and_insert_postgres_fdw_key(PostgresFdwFilter* fdw_filter, const Element& element) {
  check_is_filter(fdw_filter);
  const Insertion* insertion = find_insertion(fdw_filter);
  fill_slot(fdw_filter->relation, row_of(fdw_filter, element), insertion->slot);
  const FdwRoutine* wrapper = insertion->target->ri_FdwRoutine;
  // The wrapper keeps memory that it allocates for the first row.
  MemoryContext caller = MemoryContextSwitchTo(insertion->executor->es_query_cxt);
  const bool is_new = wrapper->ExecForeignInsert(insertion->executor, insertion->target,
                                                 insertion->slot, nullptr) != nullptr;
  MemoryContextSwitchTo(caller);
  return !is_new;
}

bool test_postgres_fdw_key(PostgresFdwFilter* fdw_filter, const Element& element) {
  check_is_filter(fdw_filter);
  const FilterRelation* relation = fdw_filter->relation;
  const KeptRow* row = row_of(fdw_filter, element);
  StringInfoData query;
  initStringInfo(&query);
  appendStringInfo(&query, "SELECT FROM %s", qualified_name(relation->relid));
  Oid types[FUNC_MAX_ARGS];
  bool has_key = relation->key_count <= FUNC_MAX_ARGS;
  for (int i = 0; i < relation->key_count && has_key; ++i) {
    const FilterColumn* column = relation->keys[i];
    types[i] = column->type;
    has_key = !row->isnull[i];
    appendStringInfo(&query, "%s %s %s $%d", i == 0 ? " WHERE" : " AND",
                     quote_identifier(column->name), equality_there(column), i + 1);
  }
  return has_key && finds_rows(relation, query.data, relation->key_count, types, row->values);
}

void end_insertions() {
  while (insertions != nullptr) {
    Insertion* first = insertions;
    insertions = first->next;
    end_insertion(first);
  }
}

void end_insertions_of(SubTransactionId subtransaction) {
  while (insertions != nullptr && insertions->since == subtransaction) {
    Insertion* first = insertions;
    insertions = first->next;
    end_insertion(first);
  }
}

void forget_insertions() { insertions = nullptr; }

void forget_insertions_of(SubTransactionId subtransaction) {
  while (insertions != nullptr && insertions->since == subtransaction)
    insertions = insertions->next;
}

}  // namespace streamfilter::pg
