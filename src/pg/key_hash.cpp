// Keys are hashed over bytes that are the same exactly for values that the type calls equal. Common
// types have such bytes at hand; arrays and records are hashed element by element; everything else
// goes through the hash function of the type's default operator class.
#include "streamfilter/pg/pg.hpp"

#include "streamfilter/pg/key_hash.hpp"

extern "C" {
#include "access/tupdesc.h"
#include "catalog/pg_enum.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/typcache.h"
}

#include <cmath>
#include <limits>

#include "streamfilter/core/hash.hpp"
#include "streamfilter/pg/key_types.hpp"

namespace streamfilter::pg {

struct TypeHasher {
  Method method;
  Oid type;  // never a domain
  Oid collation;
  const char* what;
  MemoryContext context;

  // procedure: its call, prepared; only the arguments change.
  FmgrInfo function;
  FunctionCallInfo call;

  // array: how elements are hashed and stored. record: a hasher per column that is not dropped.
  TypeHasher* element;
  int16 element_length;
  bool element_by_value;
  char element_align;

  MemoryContext layout_context;  // holds what follows, made anew when the row type changes
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

// A NULL inside a key is one more value. Not made by XXH3, so that no value is sure to share it.
uint64 null_hash(uint64 seed) { return mix64(seed ^ kGoldenRatio); }

uint64 combine(const uint64* hashes, int count, uint64 seed) {
  return count == 1 ? hashes[0] : hash_columns(hashes, count, seed);
}

uint64 chain(uint64 hash, uint64 next, uint64 seed) {
  const uint64 words[] = {hash, next};
  return hash_bytes(words, sizeof words, seed);
}

void prepare_text(TypeHasher* hasher) {
  if (!OidIsValid(hasher->collation))
    ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_COLLATION),
                    errmsg("could not determine which collation to use for %s",
                           hasher->what != nullptr ? hasher->what : "the key"),
                    errhint("Use the COLLATE clause to set the collation explicitly.")));
}

void prepare_procedure(TypeHasher* hasher) {
  const TypeCacheEntry* entry = lookup_type_cache(
      hasher->type, TYPECACHE_HASH_EXTENDED_PROC_FINFO | TYPECACHE_HASH_PROC_FINFO);
  const bool extended = OidIsValid(entry->hash_extended_proc);
  if (!extended && !OidIsValid(entry->hash_proc))
    raise_unhashable(hasher->type, hasher->type, hasher->what);
  hasher->method = extended ? Method::procedure : Method::procedure32;
  fmgr_info_cxt(extended ? entry->hash_extended_proc : entry->hash_proc, &hasher->function,
                hasher->context);
  hasher->call = static_cast<FunctionCallInfo>(
      MemoryContextAllocZero(hasher->context, SizeForFunctionCallInfo(2)));
  InitFunctionCallInfoData(*hasher->call, &hasher->function, extended ? 2 : 1, hasher->collation,
                           nullptr, nullptr);
}

// Makes the hashers of a row type's columns.
void prepare_columns(TypeHasher* hasher, TupleDesc columns) {
  if (hasher->layout_context == nullptr)
    hasher->layout_context =
        AllocSetContextCreate(hasher->context, "streamfilter row hasher", ALLOCSET_SMALL_SIZES);
  else
    MemoryContextReset(hasher->layout_context);
  hasher->attributes = -1;  // nothing valid, should this fail
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
    hasher->columns[i] = make_type_hasher(
        attribute->atttypid, attribute->attcollation,
        psprintf("column \"%s\" of %s", NameStr(attribute->attname), hasher->what));
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

// Takes a row apart into hasher->values. Returns what was detoasted for it, or nullptr.
void* open_row(TypeHasher* hasher, Datum value) {
  HeapTupleHeader header = DatumGetHeapTupleHeader(value);
  HeapTupleData tuple;
  tuple.t_len = HeapTupleHeaderGetDatumLength(header);
  ItemPointerSetInvalid(&tuple.t_self);
  tuple.t_tableOid = InvalidOid;
  tuple.t_data = header;
  // Asked for every time, as record_out does: the next row of an anonymous record may differ.
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
  *hash = combine(hasher->hashes, count, seed);
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
  array_iter_setup(&iterator, array);
  for (int i = 0; i < count; ++i) {
    bool isnull;
    const Datum element = array_iter_next(&iterator, &isnull, i, hasher->element_length,
                                          hasher->element_by_value, hasher->element_align);
    hash = chain(hash, isnull ? null_hash(seed) : hash_datum(hasher->element, element, seed), seed);
  }
  if (!VARATT_IS_EXPANDED_HEADER(array) && reinterpret_cast<void*>(array) != DatumGetPointer(value))
    pfree(array);
  return hash;
}

// Where the value is not toasted its bytes are hashed where they are.
uint64 hash_varlena(Datum value, bool padded, uint64 seed) {
  struct varlena* bytes = PG_DETOAST_DATUM_PACKED(value);
  char* data = VARDATA_ANY(bytes);
  int length = VARSIZE_ANY_EXHDR(bytes);
  if (padded) length = bpchartruelen(data, length);
  const uint64 hash = hash_bytes(data, length, seed);
  if (reinterpret_cast<void*>(bytes) != DatumGetPointer(value)) pfree(bytes);
  return hash;
}

// -0 equals 0, and every NaN equals every other.
uint64 hash_real(double real, uint64 seed) {
  if (real == 0) real = 0;
  if (std::isnan(real)) real = std::numeric_limits<double>::quiet_NaN();
  uint64 bits;
  memcpy(&bits, &real, sizeof bits);
  return hash_word(bits, seed);
}

// By its label: the OID behind an enum value differs from database to database.
uint64 hash_label(Oid value, uint64 seed) {
  HeapTuple tuple = SearchSysCache1(ENUMOID, ObjectIdGetDatum(value));
  if (!HeapTupleIsValid(tuple))
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                    errmsg("invalid internal value for enum: %u", value)));
  const char* label = NameStr(reinterpret_cast<Form_pg_enum>(GETSTRUCT(tuple))->enumlabel);
  const uint64 hash = hash_bytes(label, strlen(label), seed);
  ReleaseSysCache(tuple);
  return hash;
}

uint64 hash_by_procedure(TypeHasher* hasher, Datum value, uint64 seed) {
  FunctionCallInfo call = hasher->call;
  call->isnull = false;
  call->args[0].value = value;
  if (hasher->method == Method::procedure) call->args[1].value = UInt64GetDatum(seed);
  const Datum result = FunctionCallInvoke(call);
  return hash_word(
      hasher->method == Method::procedure ? DatumGetUInt64(result) : DatumGetUInt32(result), seed);
}

}  // namespace

TypeHasher* make_type_hasher(Oid type, Oid collation, const char* what) {
  check_stack_depth();
  if (const Oid culprit = find_unhashable(type); OidIsValid(culprit))
    raise_unhashable(type, culprit, what);

  TypeHasher* hasher = static_cast<TypeHasher*>(palloc0(sizeof(TypeHasher)));
  hasher->type = getBaseType(type);
  hasher->collation = collation;
  hasher->what = pstrdup(what != nullptr ? what : "the key");
  hasher->context = CurrentMemoryContext;
  hasher->attributes = -1;
  if (find_direct_method(hasher->type, &hasher->method)) {
    if (!type_is_collatable(hasher->type) || hasher->method == Method::name) return hasher;
    prepare_text(hasher);
    if (!get_collation_isdeterministic(collation)) prepare_procedure(hasher);
  } else if (const Oid element = get_element_type(hasher->type); OidIsValid(element)) {
    hasher->method = Method::array;
    hasher->element = make_type_hasher(element, collation, hasher->what);
    get_typlenbyvalalign(element, &hasher->element_length, &hasher->element_by_value,
                         &hasher->element_align);
  } else if (hasher->type == RECORDOID) {
    hasher->method = Method::record;
  } else if (type_is_enum(hasher->type)) {
    hasher->method = Method::label;
  } else if (TupleDesc columns = row_columns(hasher->type)) {
    hasher->method = Method::record;
    prepare_columns(hasher, columns);
    ReleaseTupleDesc(columns);
  } else {
    prepare_procedure(hasher);
  }
  return hasher;
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
    case Method::name: {
      const char* name = NameStr(*DatumGetName(value));
      return hash_bytes(name, strnlen(name, NAMEDATALEN), seed);
    }
    case Method::c_string: {
      const char* text = DatumGetCString(value);
      return hash_bytes(text, strlen(text), seed);
    }
    case Method::varlena: return hash_varlena(value, false, seed);
    case Method::padded: return hash_varlena(value, true, seed);
    case Method::six_bytes: return hash_bytes(DatumGetPointer(value), 6, seed);
    case Method::eight_bytes: return hash_bytes(DatumGetPointer(value), 8, seed);
    case Method::sixteen_bytes: return hash_bytes(DatumGetPointer(value), 16, seed);
    case Method::label: return hash_label(DatumGetObjectId(value), seed);
    case Method::procedure:
    case Method::procedure32: return hash_by_procedure(hasher, value, seed);
    case Method::array: return hash_array(hasher, value, seed);
    case Method::record: return hash_record(hasher, value, seed);
  }
  pg_unreachable();
}

bool hash_key(TypeHasher* const* hashers, const Datum* values, const bool* isnull, int count,
              Nulls nulls, uint64 seed, uint64* hash) {
  uint64 hashes[MaxTupleAttributeNumber];
  for (int i = 0; i < count; ++i) {
    if (isnull[i] && nulls == Nulls::distinct) return false;
    hashes[i] = isnull[i] ? null_hash(seed) : hash_datum(hashers[i], values[i], seed);
  }
  *hash = combine(hashes, count, seed);
  return true;
}

bool hash_key_value(TypeHasher* hasher, Datum value, Nulls nulls, uint64 seed, uint64* hash) {
  if (hasher->method != Method::record) {
    *hash = hash_datum(hasher, value, seed);
    return true;
  }
  void* copy = open_row(hasher, value);
  const bool has_key = hash_row(hasher, nulls, seed, hash);
  if (copy != nullptr) pfree(copy);
  return has_key;
}

}  // namespace streamfilter::pg
