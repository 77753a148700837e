#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
}

#include "pg/settle/settle_keys.hpp"

namespace streamfilter::pg {
namespace {

const char* name_of_column(const SettleColumn& column, Oid table) {
  return psprintf("column \"%s\" of relation \"%s\"", column.name, get_rel_name(table));
}

void init_columns(RowKeys* keys) {
  const SettleTask* task = keys->task;
  auto* types = allocate<Oid>(task->count);
  auto* what = allocate<const char*>(task->count);
  keys->from_there = allocate<Coercion*>(task->count);
  for (int i = 0; i < task->count; ++i) {
    const SettleColumn& column = task->columns[i];
    types[i] = column.type;
    what[i] = name_of_column(column, task->target);
    keys->from_there[i] = make_table_coercion(
        column.type_there, column.typmod_there,
        {task->target, task->target_owner, column.name, column.type, column.typmod},
        name_of_column(column, task->diverted));
  }
  init_key_call(&keys->call, "streamfilter_settle", types, task->count, false);
  keys->call.what = what;
}

// Without a filter the table's own types say what a key is.
void init_hashers(RowKeys* keys) {
  const SettleTask* task = keys->task;
  keys->hashers = allocate<TypeHasher*>(task->count);
  keys->values = allocate<Datum>(task->count);
  keys->isnull = allocate<bool>(task->count);
  for (int i = 0; i < task->count; ++i)
    keys->hashers[i] =
        make_type_hasher(task->columns[i].type, task->columns[i].collation, keys->call.what[i]);
  keys->rule = {Nulls::distinct, static_cast<uint64>(GetCurrentTimestamp()), false};
}

void init_equality(RowKeys* keys) {
  const SettleTask* task = keys->task;
  const FilterRelation* filter = task->filter == nullptr ? nullptr : task->filter->relation;
  const int count = filter == nullptr ? task->count : filter->key_count;
  keys->type = CreateTemplateTupleDesc(count);
  keys->equal = allocate<FmgrInfo>(count);
  keys->kept = allocate<Datum>(count);
  keys->no_kept = allocate<bool>(count);
  for (int i = 0; i < count; ++i) {
    const Oid type = getBaseType(filter == nullptr ? task->columns[i].type : filter->keys[i]->type);
    const auto number = static_cast<AttrNumber>(i + 1);
    TupleDescInitEntry(keys->type, number, nullptr, type, -1, 0);
    TupleDescInitEntryCollation(
        keys->type, number,
        filter == nullptr ? task->columns[i].collation : filter->keys[i]->collation);
    fmgr_info(get_opcode(lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr), &keys->equal[i]);
    keys->as_filter_owner |= filter != nullptr && type >= FirstNormalObjectId;
  }
}

bool is_equal_key(const RowKeys* keys, const Datum* values, const bool* isnull) {
  for (int i = 0; i < keys->type->natts; ++i) {
    if (keys->no_kept[i] != isnull[i]) return false;
    if (!isnull[i] &&
        !DatumGetBool(FunctionCall2Coll(&keys->equal[i], TupleDescAttr(keys->type, i)->attcollation,
                                        keys->kept[i], values[i])))
      return false;
  }
  return true;
}

}  // namespace

void init_row_keys(RowKeys* keys, const SettleTask* task) {
  *keys = {};
  keys->task = task;
  keys->row = allocate<NullableDatum>(task->count);
  keys->memory = AllocSetContextCreate(CurrentMemoryContext, "streamfilter_settle keys",
                                       ALLOCSET_DEFAULT_SIZES);
  init_columns(keys);
  if (task->filter == nullptr) init_hashers(keys);
  ready_row_keys(keys);
  init_equality(keys);
}

void ready_row_keys(RowKeys* keys) {
  if (keys->task->filter == nullptr) return;
  begin_key_call(&keys->call, keys->task->filter->relid, Use::insert_granted);
  keys->values = keys->call.keys.values;
  keys->isnull = keys->call.keys.isnull;
}

bool make_row_key(RowKeys* keys, HeapTuple row, TupleDesc type, int column, bool from_there,
                  Element* element) {
  const int count = keys->task->count;
  for (int i = 0; i < count; ++i) {
    NullableDatum* value = &keys->row[i];
    value->value = SPI_getbinval(row, type, column + i + 1, &value->isnull);
    if (from_there) value->value = coerce(keys->from_there[i], value->value, &value->isnull);
  }
  if (keys->task->filter != nullptr) return build_element(&keys->call.keys, keys->row, element);
  for (int i = 0; i < count; ++i) {
    keys->values[i] = keys->row[i].value;
    keys->isnull[i] = keys->row[i].isnull;
  }
  return hash_key(keys->hashers, keys->values, keys->isnull, count, keys->rule, &element->hash);
}

bool is_kept_key(RowKeys* keys, HeapTuple key, const Datum* values, const bool* isnull) {
  heap_deform_tuple(key, keys->type, keys->kept, keys->no_kept);
  if (!keys->as_filter_owner) return is_equal_key(keys, values, isnull);
  const FilterHandle* filter = keys->task->filter;
  const Caller caller = become_owner(filter->relid, filter->relation->owner);
  const bool equal = is_equal_key(keys, values, isnull);
  return_to(caller);
  return equal;
}

void note_refusal(Refusals* refusals, const ErrorData* error) {
  if (refusals->count++ == 0)
    refusals->reason = MemoryContextStrdup(refusals->memory, error->message);
}

bool is_none_of_a_row(const ErrorData* error) {
  if (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE) return true;
  switch (ERRCODE_TO_CATEGORY(error->sqlerrcode)) {
    case ERRCODE_CONNECTION_EXCEPTION:
    case ERRCODE_INVALID_TRANSACTION_STATE:
    case ERRCODE_TRANSACTION_ROLLBACK:
    case ERRCODE_INSUFFICIENT_RESOURCES:
    case ERRCODE_OPERATOR_INTERVENTION:
    case ERRCODE_SYSTEM_ERROR:
    case ERRCODE_INTERNAL_ERROR: return true;
    default: return false;
  }
}

}  // namespace streamfilter::pg
