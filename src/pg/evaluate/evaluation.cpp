#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_operator.h"
#include "parser/parse_oper.h"
#include "portability/instr_time.h"
#include "utils/datum.h"
#include "utils/tuplesort.h"
}

#include <new>

#include "pg/catalog/element_roles.hpp"
#include "pg/evaluate/evaluation.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kBatch = 1024;

// Columns of the sort.
enum Column : int { kKey, kPosition, kImportance, kAnswers, kColumns };

// Rows on their way into the filters.
struct EvaluatedRows {
  int count;
  Datum keys[kBatch];
  double importance[kBatch];
  int64 time[kBatch];
  uint64 answers[kBatch];
  Element elements[kBatch];  // for the current candidate
  bool has_key[kBatch];
};

struct Reader {
  FmgrInfo equal;
  Oid collation;
  TupleTableSlot* slot;
  Datum key;  // of the last row
  bool has_key;
  int64 position;  // of the last row
  MemoryContext key_context;
  int16 key_length;
  bool key_by_value;
};

TupleDesc sort_descriptor(const FormData_pg_attribute* key) {
  TupleDesc descriptor = CreateTemplateTupleDesc(kColumns);
  TupleDescInitEntry(descriptor, kKey + 1, "key", key->atttypid, key->atttypmod, 0);
  TupleDescInitEntryCollation(descriptor, kKey + 1, key->attcollation);
  TupleDescInitEntry(descriptor, kPosition + 1, "position", INT8OID, -1, 0);
  TupleDescInitEntry(descriptor, kImportance + 1, "importance", FLOAT8OID, -1, 0);
  TupleDescInitEntry(descriptor, kAnswers + 1, "answers", INT8OID, -1, 0);
  SF_TUPLE_DESC_FINALIZE(descriptor);
  return descriptor;
}

// Any order works if equal keys meet: if equality does not depend on the collation, uses the
// fastest.
Oid sort_collation(Oid collation) {
  return OidIsValid(collation) && get_collation_isdeterministic(collation) ? C_COLLATION_OID
                                                                           : collation;
}

// Sorts by key and position, within work_mem.
Tuplesortstate* begin_sort(TupleDesc descriptor, Oid* equal) {
  const FormData_pg_attribute* key = TupleDescAttr(descriptor, kKey);
  Oid key_less, position_less;
  get_sort_group_operators(key->atttypid, true, true, false, &key_less, equal, nullptr, nullptr);
  get_sort_group_operators(INT8OID, true, false, false, &position_less, nullptr, nullptr, nullptr);
  AttrNumber columns[] = {kKey + 1, kPosition + 1};
  Oid operators[] = {key_less, position_less};
  Oid collations[] = {sort_collation(key->attcollation), InvalidOid};
  bool nulls_first[] = {false, false};
  return tuplesort_begin_heap(descriptor, 2, columns, operators, collations, nulls_first, work_mem,
                              nullptr, TUPLESORT_NONE);
}

// The query's columns after the key act like role columns of a named filter.
FilterColumn role_column(TupleDesc source, int column, Role role) {
  FilterColumn result{};
  result.role = role;
  result.attnum = static_cast<AttrNumber>(column + 1);
  if (column < source->natts) {
    const FormData_pg_attribute* attribute = TupleDescAttr(source, column);
    result.type = attribute->atttypid;
    result.typmod = attribute->atttypmod;
    result.name = NameStr(attribute->attname);
  }
  return result;
}

void check_stream_columns(TupleDesc source, const char* function) {
  if (source->natts < 1 || source->natts > 3)
    ereport(ERROR, (errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
                    errmsg("the query of %s must have one to three columns, not %d", function,
                           source->natts),
                    errhint("The first is the key (ROW(a, b) for several columns), the second the "
                            "importance, the third the time.")));
}

// Takes the fetched rows apart.
void read_batch(EvaluatedRows* batch, TupleDesc source, const FilterColumn* importance,
                const FilterColumn* time) {
  FilterRelation query{};
  query.name = "query";
  batch->count = 0;
  for (uint64 i = 0; i < SPI_processed; ++i) {
    HeapTuple tuple = SPI_tuptable->vals[i];
    bool isnull;
    const Datum key = heap_getattr(tuple, 1, source, &isnull);
    if (isnull) continue;
    const int row = batch->count++;
    batch->keys[row] = key;
    batch->answers[row] = 0;
    Element element{};
    element.importance = 1;
    if (source->natts > 1) {
      const Datum value = heap_getattr(tuple, 2, source, &isnull);
      set_role(&element, importance, &query, value, isnull);
    }
    if (source->natts > 2) {
      const Datum value = heap_getattr(tuple, 3, source, &isnull);
      set_role(&element, time, &query, value, isnull);
    } else {
      element.time = current_time();
    }
    batch->importance[row] = element.importance;
    batch->time[row] = element.time;
  }
}

// Sends a batch through one filter, and times only the filter's own work.
void feed(EvaluatedRows* batch, Candidate* candidate, int index, TypeHasher* hasher) {
  const KeyRule rule = key_rule(candidate->filter->parameters);
  for (int i = 0; i < batch->count; ++i) {
    Element* element = &batch->elements[i];
    element->importance = batch->importance[i];
    element->time = batch->time[i];
    batch->has_key[i] = hash_key_value(hasher, batch->keys[i], rule, &element->hash);
  }
  instr_time start, stop;
  INSTR_TIME_SET_CURRENT(start);
  for (int i = 0; i < batch->count; ++i)
    if (batch->has_key[i])
      batch->answers[i] |= static_cast<uint64>(insert(candidate->filter, batch->elements[i]))
                           << index;
  INSTR_TIME_SET_CURRENT(stop);
  INSTR_TIME_SUBTRACT(stop, start);
  candidate->nanoseconds += INSTR_TIME_GET_DOUBLE(stop) * 1e9;
}

// Samples at equal distances; drops every second one if there are too many.
void sample_fill(Evaluation* evaluation, int64* next) {
  if (evaluation->rows < *next) return;
  FillSamples* samples = &evaluation->samples;
  const int candidates = evaluation->count;
  if (samples->count == FillSamples::kMax) {
    for (int i = 0; i < FillSamples::kMax / 2; ++i) {
      samples->positions[i] = samples->positions[2 * i + 1];
      memcpy(&samples->fill[i * candidates], &samples->fill[(2 * i + 1) * candidates],
             sizeof(float) * candidates);
    }
    samples->count /= 2;
  }
  samples->positions[samples->count] = evaluation->rows;
  for (int i = 0; i < candidates; ++i)
    samples->fill[samples->count * candidates + i] =
        static_cast<float>(totals(evaluation->candidates[i].filter).estimate.fill);
  ++samples->count;
  const int64 distance =
      samples->count > 1 ? samples->positions[1] - samples->positions[0] : samples->positions[0];
  *next = evaluation->rows + distance;
}

Evaluation* new_evaluation(const Header* const* filters, int count) {
  auto* evaluation = allocate_zeros<Evaluation>();
  evaluation->count = count;
  evaluation->candidates = allocate_zeros<Candidate>(count);
  evaluation->samples.fill = allocate_zeros<float>(FillSamples::kMax * Max(count, 1));
  for (int i = 0; i < count; ++i)
    evaluation->candidates[i].filter = copy_value(filters[i], CurrentMemoryContext);
  return evaluation;
}

void begin_reading_stream(Evaluation* evaluation, TupleDesc descriptor,
                          const FormData_pg_attribute* key) {
  auto* reader = allocate_zeros<Reader>();
  Oid equal;
  evaluation->sort = begin_sort(descriptor, &equal);
  fmgr_info(get_opcode(equal), &reader->equal);
  reader->collation = sort_collation(key->attcollation);
  reader->key_length = key->attlen;
  reader->key_by_value = key->attbyval;
  reader->key_context = make_context("streamfilter evaluated key");
  reader->slot = MakeSingleTupleTableSlot(descriptor, &TTSOpsMinimalTuple);
  evaluation->reading = reader;
}

void put_into_sort(Evaluation* evaluation, const EvaluatedRows* batch, TupleTableSlot* row) {
  for (int i = 0; i < batch->count; ++i) {
    ExecClearTuple(row);
    row->tts_values[kKey] = batch->keys[i];
    row->tts_values[kPosition] = Int64GetDatum(++evaluation->rows);
    row->tts_values[kImportance] = Float8GetDatum(batch->importance[i]);
    row->tts_values[kAnswers] = Int64GetDatum(static_cast<int64>(batch->answers[i]));
    memset(row->tts_isnull, 0, sizeof(bool) * kColumns);
    ExecStoreVirtualTuple(row);
    tuplesort_puttupleslot(evaluation->sort, row);
  }
}

}  // namespace

Evaluation* evaluate(const char* query, const Header* const* filters, int count,
                     const char* function, Command command) {
  Evaluation* evaluation = new_evaluation(filters, count);
  Portal portal = open_query(query, function);
  TupleDesc source = portal->tupDesc;
  check_stream_columns(source, function);
  FilterColumn importance = role_column(source, 1, Role::importance);
  FilterColumn time = role_column(source, 2, Role::time);
  FilterRelation named{};
  named.name = "query";
  if (source->natts > 1) check_role(&importance, &named);
  if (source->natts > 2) check_role(&time, &named);
  const FormData_pg_attribute* key = TupleDescAttr(source, 0);
  TypeHasher* hasher = make_type_hasher(key->atttypid, key->attcollation, "the key of the query");

  TupleDesc descriptor = sort_descriptor(key);
  begin_reading_stream(evaluation, descriptor, key);

  TupleTableSlot* row = MakeSingleTupleTableSlot(descriptor, &TTSOpsVirtual);
  auto* batch = allocate<EvaluatedRows>();
  evaluation->progress = new (palloc(sizeof(Progress))) Progress(command, InvalidOid, function);
  int64 next_sample = kBatch;
  read_in_batches(portal, kBatch, evaluation->progress, [&] {
    read_batch(batch, source, &importance, &time);
    for (int i = 0; i < count; ++i) feed(batch, &evaluation->candidates[i], i, hasher);
    put_into_sort(evaluation, batch, row);
    sample_fill(evaluation, &next_sample);
    return true;
  });
  next_sample = 0;  // the end is always sampled
  sample_fill(evaluation, &next_sample);
  ExecDropSingleTupleTableSlot(row);
  evaluation->progress->begin("sorting", 0, "rows");
  tuplesort_performsort(evaluation->sort);
  evaluation->progress->begin("comparing", static_cast<uint64>(evaluation->rows), "rows");
  return evaluation;
}

bool next_judged_row(Evaluation* evaluation, JudgedRow* row) {
  auto* reader = static_cast<Reader*>(evaluation->reading);
  if (!tuplesort_gettupleslot(evaluation->sort, true, false, reader->slot, nullptr)) return false;
  if (++evaluation->judged % kBatch == 0) evaluation->progress->advance(kBatch);
  slot_getallattrs(reader->slot);
  const Datum* values = reader->slot->tts_values;
  const bool repeat =
      reader->has_key &&
      DatumGetBool(FunctionCall2Coll(&reader->equal, reader->collation, reader->key, values[kKey]));
  row->position = DatumGetInt64(values[kPosition]);
  row->previous = repeat ? reader->position : 0;
  row->importance = DatumGetFloat8(values[kImportance]);
  row->answers = static_cast<uint64>(DatumGetInt64(values[kAnswers]));
  reader->position = row->position;
  if (!repeat) {
    MemoryContextReset(reader->key_context);
    const InContext context(reader->key_context);
    reader->key = datumCopy(values[kKey], reader->key_by_value, reader->key_length);
    reader->has_key = true;
  }
  return true;
}

void end_evaluation(Evaluation* evaluation) {
  evaluation->progress->end();
  ExecDropSingleTupleTableSlot(static_cast<Reader*>(evaluation->reading)->slot);
  tuplesort_end(evaluation->sort);
}

double fill_at(const Evaluation* evaluation, int candidate, int64 position) {
  const FillSamples& samples = evaluation->samples;
  if (samples.count == 0) return 0;
  int best = 0;
  for (int i = 1; i < samples.count; ++i)
    if (std::llabs(samples.positions[i] - position) <
        std::llabs(samples.positions[best] - position))
      best = i;
  return samples.fill[best * evaluation->count + candidate];
}

}  // namespace streamfilter::pg
