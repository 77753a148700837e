// Hashes keys, equal exactly for keys that their types call equal. column_hash.cpp hashes common
// types by their bytes; arrays, ranges and records are hashed part by part; all other types by the
// hash function of their default operator class.
#include "pg/server/postgres.hpp"

#include "pg/key/key_hash.hpp"

extern "C" {
#include "utils/arrayaccess.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
}

#include "pg/key/column_hash.hpp"
#include "pg/key/enum_births.hpp"
#include "pg/key/hash_method.hpp"

namespace streamfilter::pg {

struct TypeHasher {
  Method method;
  Oid type;  // never a domain
  Oid collation;
  const char* what;
  MemoryContext context;

  // procedure, collated: the prepared call; only the arguments change.
  FmgrInfo function;
  FunctionCallInfo call;
  Form form;  // collated

  // array, range, multirange: hasher and storage of elements or bounds.
  TypeHasher* element;
  int16 length;  // of an element; of the type itself if fixed
  bool element_by_value;
  char element_align;
  TypeCacheEntry* range;

  MemoryContext layout_context;  // context of all below, rebuilt when the row type changes
  Oid row_type;
  int32 row_typmod;
  int attributes;
  TypeHasher** columns;  // by attribute; nullptr: dropped
  Oid* column_types;
  Datum* values;
  bool* isnull;
  uint64* hashes;
};

namespace {

constexpr Size kMaxWhat = 256;  // length of a place of a type in messages

TypeHasher* make_part_hasher(Oid type, Oid collation, const char* what);

void prepare_call(TypeHasher* hasher, Oid function, int arguments) {
  fmgr_info_cxt(function, &hasher->function, hasher->context);
  hasher->call = static_cast<FunctionCallInfo>(
      MemoryContextAllocZero(hasher->context, SizeForFunctionCallInfo(2)));
  InitFunctionCallInfoData(*hasher->call, &hasher->function, arguments, hasher->collation, nullptr,
                           nullptr);
}

void prepare_procedure(TypeHasher* hasher) {
  const TypeCacheEntry* entry =
      lookup_type_cache(hasher->type, TYPECACHE_HASH_EXTENDED_PROC | TYPECACHE_HASH_PROC);
  // For a row type that was altered meanwhile, or an anonymous row.
  if (Fault fault; !check_hashable(hasher->type, hasher->what, fault)) raise(fault);
  if (hasher->method == Method::procedure)
    prepare_call(hasher, entry->hash_extended_proc, 2);
  else
    prepare_call(hasher, entry->hash_proc, 1);
}

// Text under a nondeterministic collation is hashed by the operator class of text.
void prepare_text(TypeHasher* hasher, Form form) {
  if (hasher->type == BYTEAOID) return;
  if (!OidIsValid(hasher->collation)) {
    if (form == Form::c_string) return;
    ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_COLLATION),
                    errmsg("could not determine which collation to use for %s", hasher->what),
                    errhint("Use the COLLATE clause to set the collation explicitly.")));
  }
  if (get_collation_isdeterministic(hasher->collation)) return;
  hasher->method = Method::collated;
  hasher->form = form;
  prepare_call(hasher, F_HASHTEXTEXTENDED, 2);
}

void prepare_element(TypeHasher* hasher, Oid type, Oid collation) {
  hasher->element = make_part_hasher(type, collation, hasher->what);
  get_typlenbyvalalign(type, &hasher->length, &hasher->element_by_value, &hasher->element_align);
}

void prepare_range(TypeHasher* hasher) {
  hasher->range = lookup_type_cache(hasher->type, TYPECACHE_RANGE_INFO);
  prepare_element(hasher, hasher->range->rngelemtype->type_id, hasher->range->rng_collation);
}

// Makes the hashers of a row type's columns.
void prepare_columns(TypeHasher* hasher, TupleDesc columns) {
  if (hasher->layout_context == nullptr)
    hasher->layout_context =
        AllocSetContextCreate(hasher->context, "streamfilter row hasher", ALLOCSET_SMALL_SIZES);
  else
    MemoryContextReset(hasher->layout_context);
  hasher->attributes = -1;  // in case of an error below
  const MemoryContext caller = MemoryContextSwitchTo(hasher->layout_context);
  const Size count = Max(columns->natts, 1);
  hasher->columns = static_cast<TypeHasher**>(palloc0(count * sizeof(TypeHasher*)));
  hasher->column_types = static_cast<Oid*>(palloc0(count * sizeof(Oid)));
  hasher->values = static_cast<Datum*>(palloc(count * sizeof(Datum)));
  hasher->isnull = static_cast<bool*>(palloc(count * sizeof(bool)));
  hasher->hashes = static_cast<uint64*>(palloc(count * sizeof(uint64)));
  for (int i = 0; i < columns->natts; ++i) {
    const FormData_pg_attribute* attribute = TupleDescAttr(columns, i);
    hasher->column_types[i] = attribute->atttypid;
    if (attribute->attisdropped) continue;
    const char* what = hasher->what;
    if (strlen(what) < kMaxWhat)
      what = psprintf("column \"%s\" of %s", NameStr(attribute->attname), what);
    // Types in a named type were checked together with it.
    if (Fault fault;
        columns->tdtypeid == RECORDOID && !check_hashable(attribute->atttypid, what, fault))
      raise(fault);
    hasher->columns[i] = make_part_hasher(attribute->atttypid, attribute->attcollation, what);
  }
  MemoryContextSwitchTo(caller);
  hasher->row_type = columns->tdtypeid;
  hasher->row_typmod = columns->tdtypmod;
  hasher->attributes = columns->natts;
}

bool fits(const TypeHasher* hasher, TupleDesc columns) {
  if (hasher->attributes != columns->natts || hasher->row_type != columns->tdtypeid ||
      hasher->row_typmod != columns->tdtypmod)
    return false;
  for (int i = 0; i < columns->natts; ++i) {
    const FormData_pg_attribute* attribute = TupleDescAttr(columns, i);
    if (hasher->column_types[i] != attribute->atttypid ||
        (hasher->columns[i] == nullptr) != attribute->attisdropped)
      return false;
  }
  return true;
}

// Takes a row apart into hasher->values. Returns a detoasted copy to free, or nullptr.
void* open_row(TypeHasher* hasher, Datum value) {
  HeapTupleHeader header = DatumGetHeapTupleHeader(value);
  HeapTupleData tuple;
  tuple.t_len = HeapTupleHeaderGetDatumLength(header);
  ItemPointerSetInvalid(&tuple.t_self);
  tuple.t_tableOid = InvalidOid;
  tuple.t_data = header;
  // Looked up for every row, as in record_out: the next row of an anonymous record may differ.
  TupleDesc columns =
      lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
  if (!fits(hasher, columns)) prepare_columns(hasher, columns);
  heap_deform_tuple(&tuple, columns, hasher->values, hasher->isnull);
  ReleaseTupleDesc(columns);
  return reinterpret_cast<void*>(header) == DatumGetPointer(value) ? nullptr : header;
}

// Hashes an open row. Returns false for a NULL if `nulls` says that such a row has no key.
bool hash_row(TypeHasher* hasher, Nulls nulls, uint64 seed, uint64* hash) {
  int count = 0;
  for (int i = 0; i < hasher->attributes; ++i) {
    if (hasher->columns[i] == nullptr) continue;
    if (hasher->isnull[i] && nulls == Nulls::distinct) return false;
    hasher->hashes[count++] = hasher->isnull[i]
                                  ? null_hash(seed)
                                  : hash_datum(hasher->columns[i], hasher->values[i], seed);
  }
  *hash = count == 1 ? hasher->hashes[0] : hash_columns(hasher->hashes, count, seed);
  return true;
}

uint64 hash_record(TypeHasher* hasher, Datum value, uint64 seed) {
  check_stack_depth();
  void* copy = open_row(hasher, value);
  uint64 hash = 0;
  hash_row(hasher, Nulls::not_distinct, seed, &hash);
  if (copy != nullptr) pfree(copy);
  return hash;
}

// Arrays are equal if shape, lower bounds and elements are.
uint64 hash_array(TypeHasher* hasher, Datum value, uint64 seed) {
  AnyArrayType* array = DatumGetAnyArrayP(value);
  const int dimensions = AARR_NDIM(array);
  uint64 hash = hash_word(dimensions, seed);
  for (int i = 0; i < dimensions; ++i) {
    hash = chain(hash, AARR_DIMS(array)[i], seed);
    hash = chain(hash, AARR_LBOUND(array)[i], seed);
  }
  const int count = ArrayGetNItems(dimensions, AARR_DIMS(array));
  array_iter iterator;
  SF_ARRAY_ITER_SETUP(&iterator, array, hasher->length, hasher->element_by_value,
                      hasher->element_align);
  for (int i = 0; i < count; ++i) {
    bool isnull;
    const Datum element = SF_ARRAY_ITER_NEXT(&iterator, &isnull, i, hasher->length,
                                             hasher->element_by_value, hasher->element_align);
    hash = chain(hash, isnull ? null_hash(seed) : hash_datum(hasher->element, element, seed), seed);
  }
  if (!VARATT_IS_EXPANDED_HEADER(array) && reinterpret_cast<void*>(array) != DatumGetPointer(value))
    pfree(array);
  return hash;
}

uint64 hash_bound(TypeHasher* hasher, const RangeBound& bound, uint64 seed) {
  if (bound.infinite) return chain(0, bound.lower, seed);
  return chain(bound.inclusive ? 1 : 2, hash_datum(hasher->element, bound.val, seed), seed);
}

uint64 hash_range(TypeHasher* hasher, Datum value, uint64 seed) {
  RangeType* range = DatumGetRangeTypeP(value);
  RangeBound lower, upper;
  bool empty;
  range_deserialize(hasher->range, range, &lower, &upper, &empty);
  const uint64 hash =
      empty ? hash_word(0, seed)
            : chain(hash_bound(hasher, lower, seed), hash_bound(hasher, upper, seed), seed);
  if (reinterpret_cast<void*>(range) != DatumGetPointer(value)) pfree(range);
  return hash;
}

// The element is the range type.
uint64 hash_multirange(TypeHasher* hasher, Datum value, uint64 seed) {
  MultirangeType* ranges = DatumGetMultirangeTypeP(value);
  uint64 hash = hash_word(ranges->rangeCount, seed);
  for (uint32 i = 0; i < ranges->rangeCount; ++i) {
    RangeBound lower, upper;
    multirange_get_bounds(hasher->element->range, ranges, i, &lower, &upper);
    hash = chain(hash, hash_bound(hasher->element, lower, seed), seed);
    hash = chain(hash, hash_bound(hasher->element, upper, seed), seed);
  }
  if (reinterpret_cast<void*>(ranges) != DatumGetPointer(value)) pfree(ranges);
  return hash;
}

uint64 call_procedure(TypeHasher* hasher, Datum value, uint64 seed) {
  FunctionCallInfo call = hasher->call;
  call->isnull = false;
  call->args[0].value = value;
  call->args[1].value = UInt64GetDatum(seed);
  const Datum result = FunctionCallInvoke(call);
  return hash_word(
      hasher->method == Method::procedure32 ? DatumGetUInt32(result) : DatumGetUInt64(result),
      seed);
}

uint64 hash_collated(TypeHasher* hasher, Datum value, uint64 seed) {
  const Bytes bytes = open_bytes(value, hasher->form);
  text* copy = cstring_to_text_with_len(bytes.data, bytes.length);
  const uint64 hash = call_procedure(hasher, PointerGetDatum(copy), seed);
  pfree(copy);
  if (bytes.copy != nullptr) pfree(bytes.copy);
  return hash;
}

bool hashes_integer(const TypeHasher* hasher) {
  return hasher->method == Method::int16 || hasher->method == Method::int32 ||
         hasher->method == Method::int64;
}

// Sign-extended.
uint64 integer_of(const TypeHasher* hasher, Datum value) {
  switch (hasher->method) {
    case Method::int16: return static_cast<uint64>(static_cast<int64>(DatumGetInt16(value)));
    case Method::int32: return static_cast<uint64>(static_cast<int64>(DatumGetInt32(value)));
    default: return static_cast<uint64>(DatumGetInt64(value));
  }
}

// A function of its own, because it needs much stack.
pg_noinline bool hash_columns_of_key(TypeHasher* const* hashers, const Datum* values,
                                     const bool* isnull, int count, const KeyRule& rule,
                                     uint64* hash) {
  uint64 hashes[MaxTupleAttributeNumber];
  for (int i = 0; i < count; ++i) {
    if (isnull[i] && rule.nulls == Nulls::distinct) return false;
    hashes[i] = isnull[i] ? null_hash(rule.seed) : hash_datum(hashers[i], values[i], rule.seed);
  }
  *hash = hash_columns(hashes, static_cast<Size>(count), rule.seed);
  return true;
}

// Columns are prepared when the first row comes, because nested row types have more columns than
// values ever use.
TypeHasher* make_part_hasher(Oid type, Oid collation, const char* what) {
  check_stack_depth();
  TypeHasher* hasher = static_cast<TypeHasher*>(palloc0(sizeof(TypeHasher)));
  hasher->type = getBaseType(type);
  hasher->collation = collation;
  hasher->what = pstrdup(what);
  hasher->context = CurrentMemoryContext;
  hasher->attributes = -1;
  hasher->method = method_of(hasher->type);
  switch (hasher->method) {
    case Method::fixed: hasher->length = get_typlen(hasher->type); break;
    case Method::varlena: prepare_text(hasher, Form::varlena); break;
    case Method::padded: prepare_text(hasher, Form::padded); break;
    case Method::name: prepare_text(hasher, Form::name); break;
    case Method::c_string: prepare_text(hasher, Form::c_string); break;
    case Method::array: prepare_element(hasher, get_element_type(hasher->type), collation); break;
    case Method::range: prepare_range(hasher); break;
    case Method::multirange:
      prepare_element(hasher, get_multirange_range(hasher->type), InvalidOid);
      break;
    case Method::procedure:
    case Method::procedure32: prepare_procedure(hasher); break;
    default: break;
  }
  return hasher;
}

}  // namespace

bool check_type(Oid type, const char* what, Fault& fault) {
  if (is_in_catalog(TYPEOID, ObjectIdGetDatum(type))) return true;
  return fault.set(ERRCODE_UNDEFINED_OBJECT, "the type of %s does not exist any more",
                   what != nullptr ? what : "the key");
}

bool check_hashable(Oid type, const char* what, Fault& fault) {
  if (!check_type(type, what, fault)) return false;
  const Oid culprit = find_unhashable(type);
  return !OidIsValid(culprit) || unhashable(type, culprit, what, fault);
}

TypeHasher* make_type_hasher(Oid type, Oid collation, const char* what) {
  Fault fault;
  if (!check_hashable(type, what, fault)) raise(fault);
  return make_part_hasher(type, collation, what != nullptr ? what : "the key");
}

// Rows always, because their types can be altered to call other functions.
bool hasher_runs_untrusted_code(const TypeHasher* hasher) {
  if (hasher->method == Method::record) return true;
  if (hasher->call != nullptr && !is_trusted_function(hasher->function.fn_oid)) return true;
  return hasher->element != nullptr && hasher_runs_untrusted_code(hasher->element);
}

uint64 hash_datum(TypeHasher* hasher, Datum value, uint64 seed) {
  switch (hasher->method) {
    case Method::boolean: return hash_word(DatumGetBool(value), seed);
    case Method::character: return hash_word(DatumGetUInt8(value), seed);
    case Method::int16: return hash_word(static_cast<int64>(DatumGetInt16(value)), seed);
    case Method::int32: return hash_word(static_cast<int64>(DatumGetInt32(value)), seed);
    case Method::int64: return hash_word(DatumGetInt64(value), seed);
    case Method::unsigned32: return hash_word(DatumGetUInt32(value), seed);
    case Method::real4: return hash_real(DatumGetFloat4(value), seed);
    case Method::real8: return hash_real(DatumGetFloat8(value), seed);
    case Method::numeric: return hash_numeric(value, seed);
    case Method::interval: return hash_interval(value, seed);
    case Method::timetz: return hash_timetz(value, seed);
    case Method::jsonb: return hash_jsonb(value, seed);
    case Method::enumeration: return hash_enum(DatumGetObjectId(value), seed);
    case Method::fixed: return hash_bytes(DatumGetPointer(value), hasher->length, seed);
    case Method::varlena: return hash_text(value, Form::varlena, seed);
    case Method::padded: return hash_text(value, Form::padded, seed);
    case Method::name: return hash_text(value, Form::name, seed);
    case Method::c_string: return hash_text(value, Form::c_string, seed);
    case Method::collated: return hash_collated(hasher, value, seed);
    case Method::array: return hash_array(hasher, value, seed);
    case Method::range: return hash_range(hasher, value, seed);
    case Method::multirange: return hash_multirange(hasher, value, seed);
    case Method::record: return hash_record(hasher, value, seed);
    case Method::procedure:
    case Method::procedure32: return call_procedure(hasher, value, seed);
  }
  pg_unreachable();
}

KeyRule key_rule(const Parameters& parameters) {
  return {parameters.nulls, parameters.seed, parameters.key_shift != 0};
}

void check_key_rule(TypeHasher* const* hashers, int count, const KeyRule& rule) {
  if (!rule.integer || (count == 1 && hashes_integer(hashers[0]))) return;
  ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                  errmsg("fingerprint 'integer' needs a key of one integer column"),
                  count == 1 ? errdetail("It is %s, of type %s.", hashers[0]->what,
                                         format_type_be(hashers[0]->type))
                             : errdetail("It has %d columns.", count),
                  errhint("Use fingerprint 'hash'.")));
}

WordKey word_key(const TypeHasher* const* hashers, int count, const KeyRule& rule) {
  if (count != 1 || rule.integer) return WordKey::no;
  switch (hashers[0]->method) {
    case Method::int16: return WordKey::int16;
    case Method::int32: return WordKey::int32;
    case Method::int64: return WordKey::int64;
    case Method::unsigned32: return WordKey::unsigned32;
    default: return WordKey::no;
  }
}

bool hash_key(TypeHasher* const* hashers, const Datum* values, const bool* isnull, int count,
              const KeyRule& rule, uint64* hash) {
  if (unlikely(rule.integer)) {
    check_key_rule(hashers, count, rule);
    if (isnull[0]) return false;
    *hash = integer_of(hashers[0], values[0]);
    return true;
  }
  if (count > 1) return hash_columns_of_key(hashers, values, isnull, count, rule, hash);
  if (isnull[0] && rule.nulls == Nulls::distinct) return false;
  *hash = isnull[0] ? null_hash(rule.seed) : hash_datum(hashers[0], values[0], rule.seed);
  return true;
}

bool hash_key_value(TypeHasher* hasher, Datum value, const KeyRule& rule, uint64* hash) {
  if (unlikely(rule.integer)) {
    check_key_rule(&hasher, 1, rule);
    *hash = integer_of(hasher, value);
    return true;
  }
  if (hasher->method != Method::record) {
    *hash = hash_datum(hasher, value, rule.seed);
    return true;
  }
  void* copy = open_row(hasher, value);
  const bool has_key = hash_row(hasher, rule.nulls, rule.seed, hash);
  if (copy != nullptr) pfree(copy);
  return has_key;
}

}  // namespace streamfilter::pg
