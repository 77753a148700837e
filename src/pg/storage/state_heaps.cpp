#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/index.h"
}

#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/shmem/log_pages.hpp"
#include "pg/storage/page_scan.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kLogName[] = "streamfilter_log";
constexpr char kImageName[] = "streamfilter_image";
constexpr AttrNumber kFilterColumn = 1;  // in both heaps
constexpr int kLogColumns = 5;
constexpr int kImageColumns = 7;
static_assert(BLCKSZ > kRowData, "a row fills a page of 8 kB, or a part of a larger one");

bytea* make_bytea(const char* data, Size size) {
  auto* result = static_cast<bytea*>(palloc(VARHDRSZ + size));
  SET_VARSIZE(result, VARHDRSZ + size);
  if (size > 0) memcpy(VARDATA(result), data, size);
  return result;
}

Size insert_tuple(Relation table, const Datum* values, BlockNumber* page) {
  count_work(Work::rows, 1);
  const bool isnull[kImageColumns] = {};
  HeapTuple tuple = heap_form_tuple(RelationGetDescr(table), const_cast<Datum*>(values),
                                    const_cast<bool*>(isnull));
  if (table->rd_rel->relhasindex)
    CatalogTupleInsert(table, tuple);
  else
    simple_heap_insert(table, tuple);
  const Size bytes = tuple->t_len;
  *page = ItemPointerGetBlockNumber(&tuple->t_self);
  heap_freetuple(tuple);
  return bytes;
}

// Reads a row of `columns` columns, all of them NOT NULL.
bool deform(Relation table, HeapTuple tuple, int columns, Datum* values) {
  bool isnull[kImageColumns];
  if (RelationGetDescr(table)->natts != columns) return false;
  heap_deform_tuple(tuple, RelationGetDescr(table), values, isnull);
  for (int i = 0; i < columns; ++i)
    if (isnull[i]) return false;
  return true;
}

// The data of a row; false if no version writes such a row. The data must lie within the row, since
// nothing else guards against a damaged length.
bool read_data(HeapTuple tuple, Datum value, const char** data, Size* size) {
  const char* start = reinterpret_cast<const char*>(DatumGetPointer(value));
  const char* end = reinterpret_cast<const char*>(tuple->t_data) + tuple->t_len;
  if (start >= end || VARATT_IS_EXTERNAL(start) || VARATT_IS_COMPRESSED(start)) return false;
  *data = VARDATA_ANY(start);
  if (*data > end || VARSIZE_ANY(start) < static_cast<Size>(*data - start)) return false;
  *size = VARSIZE_ANY_EXHDR(start);
  return *size <= kRowData && *size <= static_cast<Size>(end - *data);
}

const char* heap_name(StateTable table) { return table == StateTable::log ? kLogName : kImageName; }

// The heaps are in the handler's schema.
Oid schema_of(Oid handler) { return get_func_namespace(handler); }

// Schema of the filter's extension; InvalidOid if the filter is being dropped.
Oid schema_of_heaps(Oid filter) {
  const ForeignServer* found = GetForeignServerExtended(server_of(filter), FSV_MISSING_OK);
  const ForeignDataWrapper* wrapper =
      found == nullptr ? nullptr : GetForeignDataWrapperExtended(found->fdwid, FDW_MISSING_OK);
  return wrapper == nullptr ? InvalidOid : schema_of(wrapper->fdwhandler);
}

// InvalidOid if it is missing. Never returns another object of that name.
Oid find_heap(StateTable table, Oid schema) {
  const Oid relid = get_relname_relid(heap_name(table), schema);
  return OidIsValid(relid) && get_rel_relkind(relid) == RELKIND_MATVIEW ? relid : InvalidOid;
}

struct HeapPlace {
  Oid schema;  // InvalidOid: the filter is being dropped
  Oid relid;   // InvalidOid: it is missing
};

// An update of the extension may move handler and heaps between the two looks.
HeapPlace place_of_heap(StateTable table, Oid filter) {
  for (int look = 1;; ++look) {
    HeapPlace place = {schema_of_heaps(filter), InvalidOid};
    if (OidIsValid(place.schema)) place.relid = find_heap(table, place.schema);
    if (!OidIsValid(place.schema) || OidIsValid(place.relid) || look == 2) return place;
    AcceptInvalidationMessages();
  }
}

// Where the log was found; InvalidOid after any invalidation that may have moved it.
Oid known_log = InvalidOid;

Oid place_of_log(Oid filter) {
  if (!OidIsValid(known_log)) known_log = place_of_heap(StateTable::log, filter).relid;
  return known_log;
}

[[noreturn]] void raise_missing(StateTable table, Oid schema, Oid filter) {
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
          errmsg("materialized view \"%s\" of extension streamfilter is missing", heap_name(table)),
          OidIsValid(filter)
              ? errdetail("What is saved of filter \"%s\" belongs there.", get_rel_name(filter))
              : errdetail("What is saved of filters belongs there."),
          errhint("If it was renamed or moved, give it its name back, and schema \"%s\". Otherwise "
                  "create the extension anew.",
                  get_namespace_name(schema)));
}

Oid filter_of_row(Relation table, HeapTuple tuple) {
  bool isnull;
  const Datum value = heap_getattr(tuple, kFilterColumn, RelationGetDescr(table), &isnull);
  return isnull ? InvalidOid : DatumGetObjectId(value);
}

// The index on the heap's filters; InvalidOid: it has none of use now.
Oid index_of(Relation table) {
  Oid found = InvalidOid;
  List* indexes = RelationGetIndexList(table);
  for (const Oid index_oid : each_oid(indexes)) {
    read_catalog<FormData_pg_index>(INDEXRELID, index_oid, [&](const auto& row, HeapTuple) {
      if (!row.indisvalid || row.indcheckxmin || row.indkey.values[0] != kFilterColumn) return;
      found = index_oid;
    });
  }
  list_free(indexes);
  return found;
}

}  // namespace

void on_heap_change(Oid relation) {
  if (relation == known_log || !OidIsValid(relation)) known_log = InvalidOid;
}

Oid schema_of_internals() {
  const ForeignDataWrapper* wrapper = GetForeignDataWrapperByName("streamfilter", true);
  return wrapper == nullptr ? InvalidOid : schema_of(wrapper->fdwhandler);
}

Relation open_state_table(StateTable table, Oid filter, LOCKMODE lock) {
  const HeapPlace place = place_of_heap(table, filter);
  if (!OidIsValid(place.schema)) return nullptr;
  Relation relation = OidIsValid(place.relid) ? try_table_open(place.relid, lock) : nullptr;
  if (relation == nullptr) raise_missing(table, place.schema, filter);
  return relation;
}

Relation try_to_open_log(Oid filter) {
  const Oid relid = place_of_log(filter);
  if (!OidIsValid(relid) || !ConditionalLockRelationOid(relid, RowExclusiveLock)) return nullptr;
  // Taking the lock has brought in changes of other sessions.
  Relation log = place_of_log(filter) == relid ? try_table_open(relid, NoLock) : nullptr;
  if (log == nullptr) UnlockRelationOid(relid, RowExclusiveLock);
  return log;
}

bool has_state_tables(Oid filter) {
  return OidIsValid(place_of_heap(StateTable::log, filter).relid) &&
         OidIsValid(place_of_heap(StateTable::image, filter).relid);
}

bool is_state_table(Oid relation) {
  const Oid schema = schema_of_internals();
  return OidIsValid(schema) && (relation == find_heap(StateTable::log, schema) ||
                                relation == find_heap(StateTable::image, schema));
}

void open_all_saved(StateTables* tables) {
  const Oid schema = schema_of_internals();
  for (StateTable table : {StateTable::image, StateTable::log}) {
    const Oid relid = find_heap(table, schema);
    Relation relation = OidIsValid(relid) ? try_table_open(relid, AccessExclusiveLock) : nullptr;
    if (relation == nullptr) raise_missing(table, schema, InvalidOid);
    (table == StateTable::image ? tables->images : tables->log) = relation;
  }
}

void empty_state_tables(const StateTables& tables) {
  for (Relation table : {tables.images, tables.log}) {
    CheckTableNotInUse(table, "streamfilter_forget_saved()");
    SF_RELATION_SET_NEW_STORAGE(table);
    ReindexParams parameters{};
    SF_REINDEX_RELATION(RelationGetRelid(table), &parameters);
  }
}

bool open_state_tables(Oid filter, LOCKMODE lock, StateTables* tables) {
  tables->images = open_state_table(StateTable::image, filter, lock);
  if (tables->images == nullptr) return false;
  tables->log = open_state_table(StateTable::log, filter, lock);
  if (tables->log == nullptr) table_close(tables->images, NoLock);
  return tables->log != nullptr;
}

void close_state_tables(const StateTables& tables) {
  table_close(tables.log, NoLock);
  table_close(tables.images, NoLock);
}

Snapshot register_latest_snapshot() {
  static SnapshotData latest;
  latest.snapshot_type = SNAPSHOT_MVCC;
  return RegisterSnapshot(GetSnapshotData(&latest));
}

bool has_image_order(Relation images) { return OidIsValid(index_of(images)); }

StateScan::StateScan(Relation table, Oid filter, Snapshot snapshot, const Chunks* chunks)
    : table_(table), filter_(filter), settings_(NewGUCNestLevel()) {
  set_config_option("zero_damaged_pages", "on", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                    false);
  ScanKeyData keys[3];
  ScanKeyInit(&keys[0], kFilterColumn, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(filter));
  if (chunks != nullptr) {
    ScanKeyInit(&keys[1], kNumberColumn, BTGreaterEqualStrategyNumber, F_INT4GE,
                Int32GetDatum(chunks->first));
    ScanKeyInit(&keys[2], kNumberColumn, BTLessEqualStrategyNumber, F_INT4LE,
                Int32GetDatum(chunks->last));
  }
  const int count = chunks != nullptr ? 3 : 1;
  const Oid index = index_of(table);
  if (OidIsValid(index))
    places_ = begin_index_scan(table, index, snapshot, keys, count);
  else if (RelationGetDescr(table)->natts == kLogColumns)
    pages_ = begin_page_scan(table, filter, snapshot, &keys[0]);
  else
    rows_ = table_beginscan_strat(table, snapshot, count, keys, true, false);
}

// For a damaged row the index may name another filter.
HeapTuple StateScan::next() {
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    count_work(Work::rows, 1);
    HeapTuple tuple = places_ != nullptr  ? next_row(places_)
                      : pages_ != nullptr ? next_row(pages_)
                                          : heap_getnext(rows_, ForwardScanDirection);
    if (tuple == nullptr || filter_of_row(table_, tuple) == filter_) return tuple;
  }
}

void StateScan::end() {
  if (places_ != nullptr)
    end_index_scan(places_);
  else if (pages_ != nullptr)
    end_page_scan(pages_);
  else
    table_endscan(rows_);
  AtEOXact_GUC(true, settings_);
}

// A session that goes on with the same filter stays where it is, or where the server has sent it.
static void aim_at_page(Relation log, Oid filter, uint32 next_page) {
  static Oid latest = InvalidOid;
  if (filter == latest) return;
  latest = filter;
  if (next_page > 0 && next_page <= RelationGetNumberOfBlocks(log))
    RelationSetTargetBlock(log, next_page - 1);
}

Size write_state_row(Relation table, const LogRow& row, pg_atomic_uint32* last_page) {
  bytea* data = make_bytea(row.data, row.size);
  const Datum values[kLogColumns] = {ObjectIdGetDatum(row.filter),
                                     CharGetDatum(letter_of(row.change)), Int64GetDatum(row.number),
                                     Int64GetDatum(row.identity), PointerGetDatum(data)};
  aim_at_page(table, row.filter, pg_atomic_read_u32(last_page));
  BlockNumber page;
  const Size bytes = insert_tuple(table, values, &page);
  note_row(file_of(table), page, row.filter);
  if (pg_atomic_read_u32(last_page) != page + 1) pg_atomic_write_u32(last_page, page + 1);
  pfree(data);
  return bytes;
}

void write_state_row(Relation table, const ImageRow& row) {
  bytea* data = make_bytea(row.data, row.size);
  const Datum values[kImageColumns] = {ObjectIdGetDatum(row.filter), Int32GetDatum(row.chunks),
                                       Int32GetDatum(row.number),    Int64GetDatum(row.sum),
                                       Int64GetDatum(row.image),     TimestampTzGetDatum(row.saved),
                                       PointerGetDatum(data)};
  BlockNumber page;
  insert_tuple(table, values, &page);
  pfree(data);
}

bool read_state_row(Relation table, HeapTuple tuple, LogRow* row) {
  Datum values[kImageColumns];
  if (!deform(table, tuple, kLogColumns, values)) return false;
  row->filter = DatumGetObjectId(values[0]);
  row->change = change_of_letter(DatumGetChar(values[1]));
  row->number = DatumGetInt64(values[2]);
  row->identity = DatumGetInt64(values[3]);
  return read_data(tuple, values[4], &row->data, &row->size);
}

bool read_state_row(Relation table, HeapTuple tuple, ImageRow* row) {
  Datum values[kImageColumns];
  if (!deform(table, tuple, kImageColumns, values)) return false;
  row->filter = DatumGetObjectId(values[0]);
  row->chunks = DatumGetInt32(values[1]);
  row->number = DatumGetInt32(values[2]);
  row->sum = DatumGetInt64(values[3]);
  row->image = DatumGetInt64(values[4]);
  row->saved = DatumGetTimestampTz(values[5]);
  return read_data(tuple, values[6], &row->data, &row->size);
}

uint64 delete_rows(Relation table, Oid filter, Snapshot snapshot) {
  uint64 bytes = 0;
  StateScan scan(table, filter, snapshot);
  while (HeapTuple tuple = scan.next()) {
    bytes += tuple->t_len;
    simple_heap_delete(table, &tuple->t_self);
  }
  scan.end();
  return bytes;
}

}  // namespace streamfilter::pg
