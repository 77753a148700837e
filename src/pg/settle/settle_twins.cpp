#include "pg/server/postgres.hpp"

#include <algorithm>

#include "pg/catalog/lookup.hpp"
#include "pg/server/rows.hpp"
#include "pg/settle/settle_twins.hpp"
#include "pg/trigger/divert.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kFetched = 4096;  // rows per fetch, and keys per look into an index

// ---- keys ---------------------------------------------------------------------------------------

const char* name_of_column(const SettleColumn& column, Oid table) {
  return psprintf("column \"%s\" of relation \"%s\"", column.name, get_rel_name(table));
}

void init_columns(RowKeys* keys) {
  const SettleTask* task = keys->task;
  auto* types = allocate_zeros<Oid>(task->count);
  auto* what = allocate_zeros<const char*>(task->count);
  for (int i = 0; i < task->count; ++i) {
    types[i] = task->columns[i].type;
    what[i] = name_of_column(task->columns[i], task->target);
  }
  keys->from_there = make_casts(task, task->columns, task->count);
  init_key_call(&keys->call, "streamfilter_settle", types, task->count, false);
  keys->call.what = what;
}

// Without a filter the table's own types say what a key is.
void init_hashers(RowKeys* keys) {
  const SettleTask* task = keys->task;
  keys->hashers = allocate_zeros<TypeHasher*>(task->count);
  keys->values = allocate_zeros<Datum>(task->count);
  keys->isnull = allocate_zeros<bool>(task->count);
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
  keys->equal = allocate_zeros<FmgrInfo>(count);
  keys->kept = allocate_zeros<Datum>(count);
  keys->no_kept = allocate_zeros<bool>(count);
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
  SF_TUPLE_DESC_FINALIZE(keys->type);
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

// The filter may have been altered since the last rows, but what a key is must have stayed.
void ready_row_keys(RowKeys* keys) {
  if (keys->task->filter == nullptr) return;
  begin_key_call(&keys->call, keys->task->filter->relid, Use::insert_granted);
  keys->values = keys->call.keys.values;
  keys->isnull = keys->call.keys.isnull;
  const FilterRelation* filter = keys->task->filter->relation;
  for (int i = 0; keys->type != nullptr && i < filter->key_count; ++i)
    if (filter->key_count != keys->type->natts ||
        getBaseType(filter->keys[i]->type) != TupleDescAttr(keys->type, i)->atttypid)
      raise_changed_by_cast(keys->task->filter);
}

// The key of a row of the table, or of the diverted ones; the filter's columns come after `column`.
// False: it has none.
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

// Is a key that was kept, as a row of keys->type, equal to these values?
bool is_kept_key(RowKeys* keys, HeapTuple key, const Datum* values, const bool* isnull) {
  heap_deform_tuple(key, keys->type, keys->kept, keys->no_kept);
  if (!keys->as_filter_owner) return is_equal_key(keys, values, isnull);
  const FilterHandle* filter = keys->task->filter;
  const Caller caller = become_owner(filter->relid, filter->relation->owner);
  const bool equal = is_equal_key(keys, values, isnull);
  return_to(caller);
  return equal;
}

// ---- rows ---------------------------------------------------------------------------------------

// Calls run(i) for fetched rows that raise nothing, as the table's owner, in memory for one fetch.
template <typename Run, typename Refuse>
void read_fetched(RowKeys* keys, int count, const Run& run, const Refuse& refuse) {
  ready_row_keys(keys);
  const auto run_range = [&](int first, int end) {
    as_owner_of_target(keys->task, [&] {
      const InContext context(keys->memory);
      for (int i = first; i < end; ++i) run(i);
    });
  };
  try_rows(0, count, run_range, refuse);
  MemoryContextReset(keys->memory);
}

void keep_key(RowKeys* keys, KeyedRow* row, MemoryContext memory) {
  const FilterHandle* filter = keys->task->filter;
  row->age = filter != nullptr && filter->relation->time != nullptr ? row->element.time : 0;
  const InContext context(memory);
  row->key = heap_form_tuple(keys->type, keys->values, keys->isnull);
}

// Rows at the end of the round, with nothing but their places.
KeyedRow* add_rows(Round* round, const SPITupleTable* rows) {
  const int first = round->count, count = static_cast<int>(rows->numvals);
  if (first + count > round->room) {
    round->room = Max(2 * round->room, first + count);
    const Size size = sizeof(KeyedRow) * static_cast<Size>(round->room);
    round->rows = static_cast<KeyedRow*>(round->rows == nullptr
                                             ? MemoryContextAllocHuge(CurrentMemoryContext, size)
                                             : repalloc_huge(round->rows, size));
  }
  for (int i = 0; i < count; ++i) {
    round->rows[first + i] = {};
    round->rows[first + i].place = place_of(rows->vals[i], rows->tupdesc);
  }
  round->count += count;
  return &round->rows[first];
}

// The first row of the key, among rows that are sorted by hash; -1: there is none before `end`.
int find_head(RowKeys* keys, const Round* round, uint64 hash, const Datum* values,
              const bool* isnull, int end) {
  const uint64* first = std::lower_bound(round->hashes, round->hashes + end, hash);
  for (auto i = static_cast<int>(first - round->hashes); i < end; ++i) {
    if (round->hashes[i] != hash) break;
    const KeyedRow& row = round->rows[i];
    if (row.key != nullptr && row.head == i && is_kept_key(keys, row.key, values, isnull)) return i;
  }
  return -1;
}

// ---- which rows of the table --------------------------------------------------------------------

// Is the column's equality the filter's, so that an index of the table finds the key?
bool is_comparable(const RowKeys* keys, int key, int column) {
  if (keys->task->filter == nullptr) return true;
  const KeyInput* input = &keys->call.keys.inputs[column];
  const SettleColumn& here = keys->task->columns[column];
  const bool unchanged = input->coercion == nullptr ||
                         (here.type == input->column->type && here.typmod == input->column->typmod);
  if (!unchanged && !(is_integer(here.type) && is_integer(input->column->type))) return false;
  const Oid collation = TupleDescAttr(keys->type, key)->attcollation;
  return !OidIsValid(collation) || collation == here.collation ||
         (get_collation_isdeterministic(collation) &&
          get_collation_isdeterministic(here.collation));
}

// A look-up of keys by the columns in which none of them is NULL.
struct Lookup {
  StringInfoData condition;
  int count;
  int* keys;  // positions in the key
  Oid* arrays;
};

Lookup choose_lookup(const RowKeys* keys, const Round* round, const int* wanted, int count) {
  Lookup lookup = {
      {}, 0, allocate_zeros<int>(keys->type->natts), allocate_zeros<Oid>(keys->type->natts)};
  initStringInfo(&lookup.condition);
  for (int column = 0, key = -1; column < keys->task->count; ++column) {
    if (!keys->task->columns[column].is_key) continue;
    const Oid type = TupleDescAttr(keys->type, ++key)->atttypid;
    const Oid array = get_array_type(type);
    const char* equality = equality_operator(type);
    bool usable = OidIsValid(array) && equality != nullptr && is_comparable(keys, key, column);
    for (int i = 0; i < count && usable; ++i)
      usable = !heap_attisnull(round->rows[wanted[i]].key, key + 1, keys->type);
    if (!usable) continue;
    lookup.keys[lookup.count] = key + 1;
    lookup.arrays[lookup.count++] = array;
    appendStringInfo(&lookup.condition, " %s t.%s %s ANY ($%d)",
                     lookup.count == 1 ? "WHERE" : "AND",
                     quote_identifier(keys->task->columns[column].name), equality, lookup.count);
  }
  return lookup;
}

// A cursor for rows that may have one of these keys.
Portal open_lookup(const RowKeys* keys, const Round* round, const Lookup& lookup, const int* wanted,
                   int count) {
  auto* arrays = allocate_zeros<Datum>(lookup.count);
  auto* values = allocate_zeros<Datum>(count);
  for (int i = 0; i < lookup.count; ++i) {
    const Form_pg_attribute type = TupleDescAttr(keys->type, lookup.keys[i] - 1);
    bool isnull;
    for (int j = 0; j < count; ++j)
      values[j] = heap_getattr(round->rows[wanted[j]].key, lookup.keys[i], keys->type, &isnull);
    arrays[i] = PointerGetDatum(construct_array(values, count, type->atttypid, type->attlen,
                                                type->attbyval, type->attalign));
  }
  return SPI_cursor_open_with_args(nullptr,
                                   query_for_keys(keys->task, false, lookup.condition.data),
                                   lookup.count, lookup.arrays, arrays, nullptr, false, 0);
}

Portal open_scan(const RowKeys* keys, bool places) {
  return SPI_cursor_open_with_args(nullptr, query_for_keys(keys->task, places, ""), 0, nullptr,
                                   nullptr, nullptr, false, 0);
}

double cost_of(Portal portal) {
  return linitial_node(PlannedStmt, portal->stmts)->planTree->total_cost;
}

// Calls visit(rows) for all rows of the cursor, fetched as the table's owner.
template <typename Visit>
void read_table(const RowKeys* keys, Portal portal, const Visit& visit) {
  for (bool more = true; more;) {
    CHECK_FOR_INTERRUPTS();
    as_owner_of_target(keys->task, [&] { SPI_cursor_fetch(portal, true, kFetched); });
    SPITupleTable* rows = SPI_tuptable;
    more = SPI_processed > 0;
    const int count = keys->task->count;
    check_unchanged(keys->task->columns, count, false, rows->tupdesc, rows->tupdesc->natts - count);
    if (more) visit(rows);
    SPI_freetuptable(rows);
  }
  SPI_cursor_close(portal);
}

// A row of the table that cannot have a key is no twin; but the filter must stay what it is.
void leave_out(int, ErrorData* error) {
  if (error->sqlerrcode == ERRCODE_OBJECT_IN_USE) ReThrowError(error);
}

void mark_twins(RowKeys* keys, const SPITupleTable* rows, Round* round) {
  const auto mark = [&](int i) {
    Element element = {};
    if (!make_row_key(keys, rows->vals[i], rows->tupdesc, 0, false, &element)) return;
    const int head = find_head(keys, round, element.hash, keys->values, keys->isnull, round->count);
    if (head >= 0) round->rows[head].known = true;
  };
  read_fetched(keys, static_cast<int>(rows->numvals), mark, leave_out);
}

}  // namespace

Coercion** make_casts(const SettleTask* task, const SettleColumn* columns, int count) {
  auto* casts = allocate_zeros<Coercion*>(count);
  for (int i = 0; i < count; ++i)
    casts[i] = make_table_coercion(
        columns[i].type_there, columns[i].typmod_there,
        {task->target, task->target_owner, columns[i].name, columns[i].type, columns[i].typmod},
        name_of_column(columns[i], task->diverted));
  return casts;
}

void init_row_keys(RowKeys* keys, const SettleTask* task) {
  *keys = {};
  keys->task = task;
  keys->row = allocate_zeros<NullableDatum>(task->count);
  keys->memory = make_context("streamfilter_settle keys");
  init_columns(keys);
  if (task->filter == nullptr) init_hashers(keys);
  ready_row_keys(keys);
  init_equality(keys);
}

void note_refusal(Refusals* refusals, const ErrorData* error) {
  if (refusals->count++ == 0)
    refusals->reason = MemoryContextStrdup(
        refusals->memory, error->message != nullptr ? error->message : "no message");
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

bool is_older(const KeyedRow& a, const KeyedRow& b) {
  if (a.age != b.age) return a.age < b.age;
  if (a.diverted_at != b.diverted_at) return a.diverted_at < b.diverted_at;
  if (a.place.part != b.place.part) return a.place.part < b.place.part;
  return ItemPointerCompare(const_cast<ItemPointerData*>(&a.place.at),
                            const_cast<ItemPointerData*>(&b.place.at)) < 0;
}

void add_diverted_rows(RowKeys* keys, const SPITupleTable* rows, Round* round, Refusals* refusals) {
  const MemoryContext memory = CurrentMemoryContext;
  KeyedRow* added = add_rows(round, rows);
  const int count = static_cast<int>(rows->numvals), time = kPlaceColumns + keys->task->count + 1;
  check_unchanged(keys->task->columns, keys->task->count, true, rows->tupdesc, kPlaceColumns);
  if (keys->task->has_time && TupleDescAttr(rows->tupdesc, time - 1)->atttypid != TIMESTAMPTZOID)
    raise_table_changed("diverted_at", "it has another type");
  for (int i = 0; i < count && keys->task->has_time; ++i) {
    bool isnull;
    const Datum value = SPI_getbinval(rows->vals[i], rows->tupdesc, time, &isnull);
    added[i].diverted_at = isnull ? DT_NOEND : DatumGetInt64(value);
  }
  const auto make = [&](int i) {
    if (make_row_key(keys, rows->vals[i], rows->tupdesc, kPlaceColumns, true, &added[i].element))
      keep_key(keys, &added[i], memory);
  };
  read_fetched(keys, count, make, [&](int i, const ErrorData* error) {
    added[i].fate = Fate::refused;
    note_refusal(refusals, error);
  });
}

void group_rows(RowKeys* keys, Round* round) {
  std::sort(round->rows, round->rows + round->count, [](const KeyedRow& a, const KeyedRow& b) {
    return a.element.hash != b.element.hash ? a.element.hash < b.element.hash : is_older(a, b);
  });
  round->hashes = allocate_zeros<uint64>(round->count);
  for (int i = 0; i < round->count; ++i) round->hashes[i] = round->rows[i].element.hash;
  auto* values = allocate_zeros<Datum>(keys->type->natts);
  auto* isnull = allocate_zeros<bool>(keys->type->natts);
  as_owner_of_target(keys->task, [&] {
    const InContext context(keys->memory);
    for (int i = 0; i < round->count; ++i) {
      if (i % kFetched == 0) MemoryContextReset(keys->memory);
      KeyedRow* row = &round->rows[i];
      row->head = row->last = i;
      row->next = -1;
      if (row->key == nullptr) continue;
      heap_deform_tuple(row->key, keys->type, values, isnull);
      const int head = find_head(keys, round, row->element.hash, values, isnull, i);
      if (head < 0) continue;
      row->head = head;
      round->rows[round->rows[head].last].next = i;
      round->rows[head].last = i;
    }
  });
}

bool keeps_its_key(RowKeys* keys, const SPITupleTable* stored, const KeyedRow& row) {
  const SettleTask* task = keys->task;
  bool same = false;
  check_unchanged(task->columns, task->count, false, stored->tupdesc, 0);
  ready_row_keys(keys);
  as_owner_of_target(task, [&] {
    const InContext context(keys->memory);
    Element element = {};
    const bool has_key = make_row_key(keys, stored->vals[0], stored->tupdesc, 0, false, &element);
    same = has_key == (row.key != nullptr) &&
           (!has_key || is_kept_key(keys, row.key, keys->values, keys->isnull));
  });
  MemoryContextReset(keys->memory);
  return same;
}

// Looks the keys up, many at a time, or reads the whole table, whatever the planner expects to
// cost less.
void find_twins(RowKeys* keys, Round* round) {
  auto* wanted = allocate_zeros<int>(round->count);
  int count = 0;
  for (int i = 0; i < round->count; ++i) {
    const KeyedRow& row = round->rows[i];
    if (row.key != nullptr && row.head == i && !row.known && !row.busy) wanted[count++] = i;
  }
  ready_row_keys(keys);
  const Lookup lookup = choose_lookup(keys, round, wanted, count);
  for (int done = 0; done < count; done += kFetched) {
    Portal portal = nullptr;
    as_owner_of_target(keys->task, [&] {
      if (lookup.count > 0)
        portal = open_lookup(keys, round, lookup, wanted + done, Min(count - done, kFetched));
      if (portal != nullptr && (done > 0 || count <= kFetched)) return;
      Portal scan = open_scan(keys, false);
      Portal* dear = &portal;
      const int lookups = (count + kFetched - 1) / kFetched;
      if (portal != nullptr && cost_of(portal) * lookups < cost_of(scan)) dear = &scan;
      if (*dear != nullptr) SPI_cursor_close(*dear);
      if (dear != &portal) return;
      portal = scan;
      done = count;
    });
    read_table(keys, portal, [&](const SPITupleTable* rows) { mark_twins(keys, rows, round); });
  }
}

// ---- twins in the table -------------------------------------------------------------------------

namespace {

// The rows whose hashes are of this part, of so many.
void read_part(RowKeys* keys, Portal portal, uint64 part, uint64 parts, Round* round) {
  const MemoryContext memory = CurrentMemoryContext;
  read_table(keys, portal, [&](const SPITupleTable* rows) {
    KeyedRow* added = add_rows(round, rows);
    const int count = static_cast<int>(rows->numvals);
    const auto make = [&](int i) {
      Element* element = &added[i].element;
      if (make_row_key(keys, rows->vals[i], rows->tupdesc, kPlaceColumns, false, element) &&
          element->hash % parts == part)
        keep_key(keys, &added[i], memory);
    };
    read_fetched(keys, count, make, leave_out);
    round->count -= count;
    for (int i = 0; i < count; ++i)
      if (added[i].key != nullptr) round->rows[round->count++] = added[i];
  });
}

// Deletes the rows that are not the first of their keys; or counts them.
int64 remove_later(const SettleTask* task, const Round* round, bool remove) {
  auto* later = static_cast<StoredRow*>(MemoryContextAllocHuge(
      CurrentMemoryContext, sizeof(StoredRow) * static_cast<Size>(Max(round->count, 1))));
  int64 count = 0;
  for (int i = 0; i < round->count; ++i)
    if (round->rows[i].head != i) later[count++] = round->rows[i].place;
  if (!remove || count == 0) return count;
  const int places = static_cast<int>(count);
  while_restoring({topmost_table(task->target), InvalidOid, kNoStatement, true}, [&] {
    as_owner_of_target(task, [&] { count = delete_stored_rows(task->target, later, places); });
  });
  return count;
}

}  // namespace

// Where the table is larger than memory, each part of its keys takes a scan.
int64 settle_twins_in_table(RowKeys* keys, bool remove) {
  constexpr uint64 kRowBytes = sizeof(KeyedRow) + 100;
  const uint64 most = static_cast<uint64>(maintenance_work_mem) * 1024;
  uint64 parts = 1;
  int64 found = 0;
  MemoryContext memory = make_context("streamfilter_settle twins");
  for (uint64 part = 0; part < parts; ++part) {
    const MemoryContext caller = MemoryContextSwitchTo(memory);
    Portal portal = nullptr;
    as_owner_of_target(keys->task, [&] { portal = open_scan(keys, true); });
    if (part == 0) parts += expected_rows(portal) * kRowBytes / most;
    Round round = {};
    read_part(keys, portal, part, parts, &round);
    group_rows(keys, &round);
    found += remove_later(keys->task, &round, remove);
    MemoryContextSwitchTo(caller);
    MemoryContextReset(memory);
  }
  return found;
}

}  // namespace streamfilter::pg
