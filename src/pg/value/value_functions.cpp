// Functions and operators on values of type streamfilter.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/detoast.h"
}

#include "core/filter/resize.hpp"
#include "pg/catalog/element_roles.hpp"
#include "pg/value/compact_value.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

// The false-negative rate behind window_keys, as in streamfilter_stats.
constexpr double kWindowFnr = 0.01;

bool read_element(FunctionCallInfo fcinfo, TypeHasher* hasher, const Parameters& parameters,
                  Element* element) {
  return hash_key_value(hasher, PG_GETARG_DATUM(1), key_rule(parameters), &element->hash);
}

// What streamfilter_contains keeps from row to row, in fn_extra.
struct CallSite {
  TypeHasher* hasher;
  StoredReader reader;      // of filters that are used where they lie
  const Header* decoded;    // the last filter that was stored out of line or in compact form
  struct varlena* compact;  // the datum of the latter
  bool is_stored;           // it is the former, and came from this:
  varatt_external stored;
};

CallSite* call_site(FunctionCallInfo fcinfo) {
  FmgrInfo* function = fcinfo->flinfo;
  if (function->fn_extra == nullptr) {
    auto* site = allocate_zeros<CallSite>(1, function->fn_mcxt);
    site->hasher = make_key_hasher(fcinfo, 1);
    function->fn_extra = site;
  }
  return static_cast<CallSite*>(function->fn_extra);
}

// Forgets the filter of the rows before.
void forget_filter(CallSite* site) {
  if (site->compact != nullptr) pfree(site->compact);
  if (site->decoded != nullptr) pfree(const_cast<Header*>(site->decoded));
  site->compact = nullptr;
  site->decoded = nullptr;
  site->is_stored = false;
}

// Decodes a compact filter once, not for every key.
const Header* decode_once(FunctionCallInfo fcinfo, CallSite* site, struct varlena* bytes) {
  const Size size = VARSIZE_ANY(bytes);
  if (site->compact != nullptr && VARSIZE_ANY(site->compact) == size &&
      memcmp(site->compact, bytes, size) == 0)
    return site->decoded;
  forget_filter(site);
  const InContext context(fcinfo->flinfo->fn_mcxt);
  site->decoded = get_value(PointerGetDatum(bytes));
  site->compact = static_cast<struct varlena*>(memcpy(palloc(size), bytes, size));
  return site->decoded;
}

// Where a filter can be asked.
struct Asked {
  const Parameters& parameters;
  const void* slices;
};

Asked in_block(const Header* header) { return {header->parameters, header + 1}; }

Asked read_inline(FunctionCallInfo fcinfo, CallSite* site, struct varlena* bytes) {
  if (is_compact(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes)))
    return in_block(decode_once(fcinfo, site, bytes));
  const bool is_aligned = reinterpret_cast<uintptr_t>(bytes) % alignof(SliceState) == 0;
  const char* slices = is_aligned && !VARATT_IS_SHORT(bytes) ? site->reader.open(bytes) : nullptr;
  if (slices != nullptr) return {site->reader.parameters(), slices};
  return in_block(get_value(PointerGetDatum(bytes)));
}

// Reads a filter stored out of line once, not for every key.
Asked read_filter(FunctionCallInfo fcinfo, CallSite* site) {
  const Datum value = PG_GETARG_DATUM(0);
  struct varlena* pointer = reinterpret_cast<struct varlena*>(DatumGetPointer(value));
  if (!VARATT_IS_EXTERNAL_ONDISK(pointer))
    return read_inline(fcinfo, site, PG_DETOAST_DATUM_PACKED(value));
  varatt_external stored;
  VARATT_EXTERNAL_GET_POINTER(stored, pointer);
  if (site->is_stored && memcmp(&stored, &site->stored, sizeof stored) == 0)
    return in_block(site->decoded);
  forget_filter(site);
  const InContext context(fcinfo->flinfo->fn_mcxt);
  struct varlena* bytes = PG_DETOAST_DATUM(value);
  site->decoded = get_value(PointerGetDatum(bytes));
  if (static_cast<const void*>(site->decoded) != bytes) pfree(bytes);
  site->stored = stored;
  site->is_stored = true;
  return in_block(site->decoded);
}

void append_count(StringInfo json, const char* name, uint64 value) {
  appendStringInfo(json, ", \"%s\": " UINT64_FORMAT, name, value);
}

// Unknown and infinite numbers become null.
void append_real(StringInfo json, const char* name, const char* format, double value) {
  appendStringInfo(json, ", \"%s\": ", name);
  if (std::isfinite(value))
    appendStringInfo(json, format, value);
  else
    appendStringInfoString(json, "null");
}

constexpr char kRate[] = "%.6g";
constexpr char kWhole[] = "%.0f";

}  // namespace

// streamfilter_add(filter, key): a copy that remembers the key; the same filter for a NULL key.
SF_FUNCTION(streamfilter_add) {
  if (PG_ARGISNULL(0)) PG_RETURN_NULL();
  if (PG_ARGISNULL(1)) PG_RETURN_DATUM(PG_GETARG_DATUM(0));
  TypeHasher* hasher = key_hasher(fcinfo, 1);
  Element element{};
  if (WordsOfValue words; read_words(PG_GETARG_DATUM(0), &words)) {
    if (!read_element(fcinfo, hasher, words.parameters, &element))
      PG_RETURN_DATUM(PG_GETARG_DATUM(0));
    add_hash(&words, element.hash);
    PG_RETURN_DATUM(words_datum(words));
  }
  const Header* header = get_value(PG_GETARG_DATUM(0));
  element = new_element(header->parameters);
  if (!read_element(fcinfo, hasher, header->parameters, &element))
    PG_RETURN_DATUM(PG_GETARG_DATUM(0));
  require_promise(header);
  Header* copy = copy_value(header, CurrentMemoryContext);
  insert(copy, element);
  // Kinds that count keys estimate by what they hold, however it got there.
  if (ops_of(copy).counts_only) settle_slice(copy, slice_of(copy->parameters, element.hash));
  PG_RETURN_DATUM(value_datum(copy));
}

// streamfilter_contains(filter, key), filter @> key. A record with a NULL is no repeat (unless the
// filter has nulls = not distinct).
SF_FUNCTION(streamfilter_contains) {
  CallSite* site = call_site(fcinfo);
  const Asked filter = read_filter(fcinfo, site);
  Element element = new_element(filter.parameters);
  PG_RETURN_BOOL(read_element(fcinfo, site->hasher, filter.parameters, &element) &&
                 test(filter.parameters, filter.slices, element));
}

// streamfilter_union(a, b), a || b; NULL adds nothing. Error: the two differ in kind, parameters or
// seed.
SF_FUNCTION(streamfilter_union) {
  if (PG_ARGISNULL(0) && PG_ARGISNULL(1)) PG_RETURN_NULL();
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) PG_RETURN_DATUM(PG_GETARG_DATUM(PG_ARGISNULL(0) ? 1 : 0));
  const Datum left = PG_GETARG_DATUM(0), right = PG_GETARG_DATUM(1);
  if (WordsOfValue words, more; read_words(left, &words) && read_words(right, &more)) {
    add_words(&words, more);
    PG_RETURN_DATUM(words_datum(words));
  }
  Header* result = copy_value(get_value(left), CurrentMemoryContext);
  merge_datum(result, right);
  settle_value(result);
  PG_RETURN_DATUM(value_datum(result));
}

// streamfilter_info(filter): what it is and how full.
SF_FUNCTION(streamfilter_info) {
  const Header* header = get_value(PG_GETARG_DATUM(0));
  const Parameters& parameters = header->parameters;
  const FilterOps& ops = ops_of(header);
  const Totals sums = totals(header);
  bool full;
  TextBuffer json;
  appendStringInfo(&json, "{\"kind\": \"%s\", \"parameters\": ", ops.name);
  Parameters derived_now;
  append_parameters_json(&json, parameters, nullptr,
                         derive_again(parameters, derived_now) ? &derived_now : nullptr);
  append_count(&json, "memory", parameters.memory);
  append_count(&json, "slices", parameters.slices);
  append_count(&json, "seed", parameters.seed);
  append_count(&json, "arrivals", sums.insertions);
  append_real(&json, "fill", kRate, sums.estimate.fill);
  append_real(&json, "fpr", kRate, sums.estimate.fpr);
  append_real(&json, "fpr_bound", kRate, fpr_bound(header, OverfullLimit{}));
  append_real(&json, "distinct_estimate", kWhole, distinct_keys(header, full));
  append_real(&json, "window_keys", kWhole, window_keys(parameters, kWindowFnr));
  appendStringInfoChar(&json, '}');
  PG_RETURN_DATUM(json_to_jsonb(json.data));
}

}  // namespace streamfilter::pg
