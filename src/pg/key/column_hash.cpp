#include "pg/server/postgres.hpp"

#include "pg/key/column_hash.hpp"

extern "C" {
#include "utils/date.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"
}

namespace streamfilter::pg {
namespace {

// The stored form of a numeric (numeric.c): two bytes of flags, in the long form two more of
// weight, then base-10000 digits.
constexpr uint16 kNumericSpecial = 0xC000;  // both bits: NaN or infinity; the next two tell which
constexpr uint16 kNumericSpecialMask = 0xF000;
constexpr uint16 kNumericShort = 0x8000;
constexpr uint16 kShortNegative = 0x2000;
constexpr uint16 kShortWeightSign = 0x0040;
constexpr uint16 kShortWeight = 0x003F;
constexpr uint16 kLongNegative = 0x4000;

uint16 digit_at(const char* digits, Size index) {
  uint16 digit;
  memcpy(&digit, digits + index * sizeof digit, sizeof digit);
  return digit;
}

// Sign, weight and digits without zeros at either end; ignores the scale.
uint64 hash_numeric_bytes(const char* bytes, Size length, uint64 seed) {
  const uint16 flags = digit_at(bytes, 0);
  if ((flags & kNumericSpecial) == kNumericSpecial)
    return decimal_hash(static_cast<SpecialDecimal>(flags & kNumericSpecialMask), seed);
  const bool is_short = (flags & kNumericShort) != 0;
  const bool negative = (flags & (is_short ? kShortNegative : kLongNegative)) != 0;
  int weight = is_short ? (flags & kShortWeight) - (flags & kShortWeightSign)
                        : static_cast<int16>(digit_at(bytes, 1));
  const Size start = is_short ? sizeof(uint16) : 2 * sizeof(uint16);
  const char* digits = bytes + start;
  Size count = (length - start) / sizeof(uint16);
  for (; count > 0 && digit_at(digits, 0) == 0; --count, --weight) digits += sizeof(uint16);
  while (count > 0 && digit_at(digits, count - 1) == 0) --count;
  if (count == 0) return decimal_hash(SpecialDecimal::zero, seed);
  return decimal_hash(hash_bytes(digits, count * sizeof(uint16), seed), weight, negative, seed);
}

// Hash of one token of a jsonb value. The numbers are part of the hash: never change them.
uint64 hash_jsonb_scalar(const JsonbValue& value, uint64 seed) {
  switch (value.type) {
    case jbvString:
      return chain(1, hash_bytes(value.val.string.val, value.val.string.len, seed), seed);
    case jbvNumeric: return chain(2, hash_numeric(NumericGetDatum(value.val.numeric), seed), seed);
    case jbvBool: return chain(3, value.val.boolean, seed);
    default: return chain(4, 0, seed);  // null
  }
}

}  // namespace

uint64 hash_numeric(Datum value, uint64 seed) {
  const Bytes bytes = open_bytes(value, Form::varlena);
  const uint64 hash = hash_numeric_bytes(bytes.data, bytes.length, seed);
  if (bytes.copy != nullptr) pfree(bytes.copy);
  return hash;
}

uint64 hash_interval(Datum value, uint64 seed) {
  const Interval* interval = DatumGetIntervalP(value);
  return hash_interval(interval->month, interval->day, interval->time, seed);
}

uint64 hash_timetz(Datum value, uint64 seed) {
  const TimeTzADT* time = DatumGetTimeTzADTP(value);
  return chain(time->time, static_cast<int64>(time->zone), seed);
}

uint64 hash_jsonb(Datum value, uint64 seed) {
  Jsonb* document = DatumGetJsonbP(value);
  JsonbIterator* iterator = JsonbIteratorInit(&document->root);
  JsonbValue token;
  JsonbIteratorToken kind;
  uint64 hash = 0;
  bool scalar = false;  // `1` is also stored as an array, but differs from `[1]`
  while ((kind = JsonbIteratorNext(&iterator, &token, false)) != WJB_DONE) {
    switch (kind) {
      case WJB_BEGIN_ARRAY:
        scalar = token.val.array.rawScalar;
        if (!scalar) hash = chain(hash, 5, seed);
        break;
      case WJB_END_ARRAY:
        if (!scalar) hash = chain(hash, 6, seed);
        break;
      case WJB_BEGIN_OBJECT: hash = chain(hash, 7, seed); break;
      case WJB_END_OBJECT: hash = chain(hash, 8, seed); break;
      default: hash = chain(hash, hash_jsonb_scalar(token, seed), seed); break;
    }
  }
  if (reinterpret_cast<void*>(document) != DatumGetPointer(value)) pfree(document);
  return hash;
}

Bytes open_bytes(Datum value, Form form) {
  if (form == Form::c_string) {
    const char* text = DatumGetCString(value);
    return {text, strlen(text), nullptr};
  }
  if (form == Form::name) {
    const char* name = NameStr(*DatumGetName(value));
    return {name, strnlen(name, NAMEDATALEN), nullptr};
  }
  struct varlena* bytes = PG_DETOAST_DATUM_PACKED(value);
  char* data = VARDATA_ANY(bytes);
  int length = VARSIZE_ANY_EXHDR(bytes);
  if (form == Form::padded) length = bpchartruelen(data, length);
  void* copy = reinterpret_cast<void*>(bytes) == DatumGetPointer(value) ? nullptr : bytes;
  return {data, static_cast<Size>(length), copy};
}

}  // namespace streamfilter::pg
