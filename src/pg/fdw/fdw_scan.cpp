// SELECT at run time: one look-up, and a row made of the values asked for. The plan's fdw_exprs
// have a value for every key column, in order; none means that the filter would have to be listed.
#include "pg/server/postgres.hpp"

#include "pg/fdw/fdw_handler.hpp"
#include "pg/handle/filter_keys.hpp"

namespace streamfilter::pg {
namespace {

struct KeyValue {
  ExprState* expression;
  Oid source;  // its type and the column's, without domains
  Oid target;
  int32 typmod;
  bool has_length;  // `to_length` cuts, pads or rounds it
  FmgrInfo to_length;
  AttrNumber attnum;
};

struct ScanState {
  FilterHandle* filter;
  bool done;
  int count;
  KeyValue* keys;
  Datum* values;
  bool* isnull;
};

[[noreturn]] void raise_listing(const FilterRelation* relation) {
  TextBuffer keys;
  for (int i = 0; i < relation->key_count; ++i)
    appendStringInfo(&keys, "%s%s = ...", i > 0 ? " AND " : "",
                     quote_identifier(relation->keys[i]->name));
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" cannot be listed", relation->name),
          errdetail("A filter only answers whether one key was seen."),
          errhint("Give every key column a value of its type, by constants, a join or EXISTS: "
                  "WHERE %s",
                  keys.data));
}

// Converts numbers of different width; false if it does not fit, and so equals no value of the
// column.
bool convert(Oid source, Oid target, Datum* value) {
  if (source == target) return true;
  if (source == FLOAT4OID && target == FLOAT8OID) {
    *value = Float8GetDatum(DatumGetFloat4(*value));
    return true;
  }
  if (source == FLOAT8OID && target == FLOAT4OID) {
    const double wide = DatumGetFloat8(*value);
    const float narrow = static_cast<float>(wide);
    *value = Float4GetDatum(narrow);
    return narrow == wide || wide != wide;
  }
  int64 number;
  switch (source) {
    case INT2OID: number = DatumGetInt16(*value); break;
    case INT4OID: number = DatumGetInt32(*value); break;
    case INT8OID: number = DatumGetInt64(*value); break;
    default: return true;  // the plan's value has the column's type
  }
  switch (target) {
    case INT2OID:
      *value = Int16GetDatum(static_cast<int16>(number));
      return number >= PG_INT16_MIN && number <= PG_INT16_MAX;
    case INT4OID:
      *value = Int32GetDatum(static_cast<int32>(number));
      return number >= PG_INT32_MIN && number <= PG_INT32_MAX;
    case INT8OID: *value = Int64GetDatum(number); return true;
    default: return true;
  }
}

// Types whose typmod never raises an error. (A numeric that is too large raises one.)
bool can_be_cut(Oid type) {
  switch (type) {
    case BPCHAROID:
    case VARCHAROID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
    case TIMEOID:
    case TIMETZOID:
    case INTERVALOID: return true;
    default: return false;
  }
}

// A value that its column would change was never seen. If only its form differs, such as the blanks
// of char(n), the row shows the column's form.
bool fits_column(const FilterHandle* filter, KeyValue* key, int number, Datum* value) {
  if (!key->has_length) return true;
  const Datum fitted =
      FunctionCall3(&key->to_length, *value, Int32GetDatum(key->typmod), BoolGetDatum(true));
  if (fitted == *value) return true;
  const uint64 hash = hash_datum(filter->hashers[number], *value, filter->rule.seed);
  *value = fitted;
  return hash_datum(filter->hashers[number], fitted, filter->rule.seed) == hash;
}

// A change of the columns invalidates plans, and is refused while a scan is open.
void check_keys(const ScanState* scan) {
  const FilterRelation* relation = scan->filter->relation;
  bool same = relation->key_count == scan->count;
  for (int i = 0; same && i < scan->count; ++i)
    same = relation->keys[i]->attnum == scan->keys[i].attnum;
  if (!same) elog(ERROR, "key columns of filter \"%s\" have changed", relation->name);
}

// False: a value is NULL, which equals nothing, or not possible in the column.
bool evaluate_key(ForeignScanState* node, ScanState* scan) {
  for (int i = 0; i < scan->count; ++i) {
    const KeyValue* key = &scan->keys[i];
    scan->values[i] = ExecEvalExpr(key->expression, node->ss.ps.ps_ExprContext, &scan->isnull[i]);
    if (scan->isnull[i] || !convert(key->source, key->target, &scan->values[i])) return false;
  }
  return true;
}

bool look_up_key(const ScanState* scan) {
  use_filter(scan->filter, Use::test_granted);
  check_keys(scan);
  for (int i = 0; i < scan->count; ++i)
    if (!fits_column(scan->filter, &scan->keys[i], i, &scan->values[i])) return false;
  Element element = new_element(scan->filter->relation->definition.parameters);
  return hash_filter_key(scan->filter, scan->values, scan->isnull, &element.hash) &&
         judge_key(scan->filter, element, Intent::test) != Verdict::fresh;
}

}  // namespace

void begin_foreign_scan(ForeignScanState* node, int flags) {
  auto* plan = reinterpret_cast<ForeignScan*>(node->ss.ps.plan);
  FilterHandle* filter = filter_for_use(RelationGetRelid(node->ss.ss_currentRelation), Use::define);
  if (plan->fdw_exprs == NIL) raise_listing(filter->relation);
  if (flags & EXEC_FLAG_EXPLAIN_ONLY) return;
  use_filter(filter, Use::test_granted);  // raises errors now

  auto* scan = allocate_zeros<ScanState>();
  scan->filter = filter;
  scan->count = list_length(plan->fdw_exprs);
  scan->keys = allocate_zeros<KeyValue>(scan->count);
  scan->values = allocate_zeros<Datum>(scan->count);
  scan->isnull = allocate_zeros<bool>(scan->count);
  for (int i = 0; i < Min(scan->count, filter->relation->key_count); ++i) {
    auto* value = static_cast<Expr*>(list_nth(plan->fdw_exprs, i));
    const FilterColumn* column = filter->relation->keys[i];
    KeyValue* key = &scan->keys[i];
    key->expression = ExecInitExpr(value, &node->ss.ps);
    key->source = getBaseType(exprType(reinterpret_cast<Node*>(value)));
    key->typmod = column->typmod;
    key->target = getBaseTypeAndTypmod(column->type, &key->typmod);
    key->attnum = column->attnum;
    Oid function;
    key->has_length = key->typmod >= 0 && can_be_cut(key->target) &&
                      find_typmod_coercion_function(key->target, &function) == COERCION_PATH_FUNC;
    if (key->has_length) fmgr_info(function, &key->to_length);
  }
  check_keys(scan);
  node->fdw_state = scan;
}

TupleTableSlot* iterate_foreign_scan(ForeignScanState* node) {
  auto* scan = static_cast<ScanState*>(node->fdw_state);
  TupleTableSlot* slot = ExecClearTuple(node->ss.ss_ScanTupleSlot);
  if (scan->done) return slot;
  scan->done = true;
  if (!evaluate_key(node, scan) || !look_up_key(scan)) return slot;

  // The values live in this row's memory, as the slot expects. Role columns are not known.
  memset(slot->tts_isnull, true, sizeof(bool) * slot->tts_tupleDescriptor->natts);
  for (int i = 0; i < scan->count; ++i) {
    slot->tts_values[scan->keys[i].attnum - 1] = scan->values[i];
    slot->tts_isnull[scan->keys[i].attnum - 1] = false;
  }
  return ExecStoreVirtualTuple(slot);
}

void rescan_foreign_scan(ForeignScanState* node) {
  static_cast<ScanState*>(node->fdw_state)->done = false;
}

void end_foreign_scan(ForeignScanState*) {}

}  // namespace streamfilter::pg
