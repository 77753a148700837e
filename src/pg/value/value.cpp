#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/fmgrprotos.h"
#include "utils/json.h"
}

#include "core/filter/sparse_form.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

// What every later access relies on. Values were checked completely when they came in, so this only
// detects bytes that are not ours.
bool is_block_sound(const Header* header, Size length) {
  const Parameters& p = header->parameters;
  return length >= sizeof(Header) && header->magic == kMagic && header->version == kFormatVersion &&
         find_ops(p.kind) != nullptr && p.slices > 0 && p.slice_bytes <= length &&
         block_bytes(p) == length;
}

Header* allocate_value(const Parameters& parameters, MemoryContext context) {
  Problem problem;
  if (!fits_value(parameters, problem)) raise(problem);
  auto* block = static_cast<Header*>(MemoryContextAlloc(context, block_bytes(parameters)));
  format_header(block, parameters);
  SET_VARSIZE(block, block_bytes(parameters));
  return block;
}

bool is_compact_value(const struct varlena* bytes) {
  return is_compact(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}

// Reused, because consecutive values are mostly alike.
CompactReader words_reader;
SparseReader sparse_reader;
StoredReader stored_reader;

// Opens a compact form; `words`: it is one of words.
const Parameters& open_compact(const struct varlena* bytes, bool* words) {
  const void* body = VARDATA_ANY(bytes);
  const Size length = VARSIZE_ANY_EXHDR(bytes);
  Problem problem;
  *words = has_words(body, length);
  if (!(*words ? words_reader.open(body, length, problem)
               : sparse_reader.open(body, length, problem)))
    raise_value(problem);
  return *words ? words_reader.parameters() : sparse_reader.parameters();
}

const Header* decode(const struct varlena* bytes) {
  bool words;
  Problem problem;
  const Parameters& parameters = open_compact(bytes, &words);
  Header* filter = words ? make_value(parameters, CurrentMemoryContext)
                         : allocate_value(parameters, CurrentMemoryContext);
  if (!(words ? read_compact(words_reader, filter, problem) : sparse_reader.read(filter, problem)))
    raise_value(problem);
  SET_VARSIZE(filter, block_bytes(parameters));
  return filter;
}

const Header* copy_stored(const Parameters& parameters, const char* slices) {
  Header* filter = allocate_value(parameters, CurrentMemoryContext);
  memcpy(static_cast<void*>(filter + 1), slices, slices_bytes(parameters));
  return filter;
}

bool is_stored(const struct varlena* bytes) {
  uint32 magic = 0;
  if (VARSIZE(bytes) >= kStoredHeader)
    memcpy(&magic, reinterpret_cast<const char*>(bytes) + kHostWord, sizeof magic);
  return magic == kPackedMagic;
}

}  // namespace

void raise_value(const Problem& problem) {
  const bool is_malformed =
      problem.error == Error::corrupt || problem.error == Error::newer_version;
  ereport(ERROR, (problem_report(problem),
                  is_malformed ? errcode(ERRCODE_INVALID_BINARY_REPRESENTATION) : 0));
}

const Parameters& StoredReader::read_header(const struct varlena* bytes, Size* size) {
  Problem problem;
  if (!parameters_.unpack(bytes, VARSIZE(bytes), *size, problem)) raise_value(problem);
  return parameters();
}

const char* StoredReader::open(const struct varlena* bytes) {
  Size start;
  if (!is_stored(bytes)) return nullptr;
  const Parameters& parameters = read_header(bytes, &start);
  if (VARSIZE(bytes) == start + slices_bytes(parameters))
    return reinterpret_cast<const char*>(bytes) + start;
  Problem problem;
  problem.set(Error::corrupt, "damaged streamfilter: %zu bytes instead of %llu",
              static_cast<Size>(VARSIZE(bytes)), llu(start + slices_bytes(parameters)));
  raise_value(problem);
}

const Header* get_value(Datum value) {
  struct varlena* bytes = PG_DETOAST_DATUM_PACKED(value);
  if (is_compact_value(bytes)) return decode(bytes);
  bytes = PG_DETOAST_DATUM(PointerGetDatum(bytes));
  if (const char* slices = stored_reader.open(bytes)) {
    const Header* filter = copy_stored(stored_reader.parameters(), slices);
    if (static_cast<const void*>(bytes) != DatumGetPointer(value)) pfree(bytes);
    return filter;
  }
  const Size length = VARSIZE(bytes);
  if (reinterpret_cast<uintptr_t>(bytes) % alignof(Header) != 0)
    bytes = static_cast<struct varlena*>(memcpy(palloc(length), bytes, length));
  const Header* header = reinterpret_cast<const Header*>(bytes);
  if (is_block_sound(header, length)) return header;

  Problem problem;
  if (check(header, length, problem)) problem.set(Error::corrupt, "damaged streamfilter");
  raise_value(problem);
}

const Parameters& parameters_of_value(Datum value) {
  const bool is_elsewhere = VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value));
  struct varlena* start = is_elsewhere ? PG_DETOAST_DATUM_SLICE(value, 0, kMostPacked - VARHDRSZ)
                                       : PG_DETOAST_DATUM_PACKED(value);
  bool words;
  Size size;
  if (!is_elsewhere && is_compact_value(start)) return open_compact(start, &words);
  if (!VARATT_IS_SHORT(start) && is_stored(start)) return stored_reader.read_header(start, &size);
  return get_value(value)->parameters;
}

Datum stored_datum(Header* filter) {
  const PackedHeader packed(filter->parameters);
  const Size slices = slices_bytes(filter->parameters);
  char* bytes = reinterpret_cast<char*>(filter);
  memmove(bytes + packed.size, filter + 1, slices);
  memcpy(bytes, packed.bytes, packed.size);
  SET_VARSIZE(bytes, packed.size + slices);
  return PointerGetDatum(bytes);
}

Header* copy_value(const Header* value, MemoryContext context) {
  const Size size = block_bytes(value->parameters);
  void* copy = memcpy(MemoryContextAlloc(context, size), value, size);
  SET_VARSIZE(copy, size);
  return static_cast<Header*>(copy);
}

Header* make_value(const Parameters& parameters, MemoryContext context) {
  Header* header = allocate_value(parameters, context);
  for (uint32 i = 0; i < parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    format_slice(header, i);
  }
  return header;
}

bool fits_value(const Parameters& parameters, Problem& problem) {
  if (parameters.memory <= kMaxValueMemory) return true;
  char size[32];
  print_size(parameters.memory, size, sizeof size);
  problem.set(Error::too_large, "a streamfilter value of %s is too large", size);
  problem.add_detail("Values take up to %llu bytes of memory.", llu(kMaxValueMemory));
  return problem.add_hint(
      "Use less memory, or a filter in shared memory: CREATE FOREIGN TABLE ... SERVER "
      "streamfilter.");
}

void require_promise(const Header* value) {
  for (uint32 i = 0; i < value->parameters.slices; ++i)
    if (slice_at(value, i).state->insertions > 0) return;
  Problem problem;
  if (!check_promise(value->parameters, problem)) raise(problem);
}

void merge_value(Header* into, const Header* from) {
  Problem problem;
  if (!can_merge(into, from, problem)) raise(problem);
  for (uint32 i = 0; i < into->parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    merge_slice_unsettled(into, slice_at(from, i), i);
  }
}

void settle_value(Header* value) {
  for (uint32 i = 0; i < value->parameters.slices; ++i) settle_slice(value, i);
}

TypeHasher* make_key_hasher(FunctionCallInfo fcinfo, int number) {
  const Oid type = get_fn_expr_argtype(fcinfo->flinfo, number);
  if (!OidIsValid(type))
    ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_DATATYPE),
                    errmsg("could not determine the data type of the key")));
  const InContext context(fcinfo->flinfo->fn_mcxt);
  TypeHasher* hasher = make_type_hasher(type, PG_GET_COLLATION(), "the key");
  return hasher;
}

TypeHasher* key_hasher(FunctionCallInfo fcinfo, int number) {
  void*& extra = fcinfo->flinfo->fn_extra;
  if (extra == nullptr) extra = make_key_hasher(fcinfo, number);
  return static_cast<TypeHasher*>(extra);
}

// ---- parameters as jsonb ------------------------------------------------------------------------

namespace {

StringInfo begin_member(StringInfo out, const char* name) {
  appendStringInfo(out, "%s\"%s\": ", out->data[out->len - 1] == '{' ? "" : ", ", name);
  return out;
}

void append_option(const Parameters& parameters, const OptionSpec& option, StringInfo out) {
  char value[512];
  print_option(parameters, option, value, sizeof value);
  if (option.type == OptionType::integer || option.type == OptionType::real)
    appendStringInfoString(out, value);
  else if (option.type == OptionType::reals)
    appendStringInfo(out, "[%s]", value);
  else
    escape_json(out, value);
}

bool is_derived_alike(const Parameters& a, const Parameters& b) {
  return a.memory == b.memory && a.slices == b.slices && a.slice_bytes == b.slice_bytes &&
         memcmp(a.word, b.word, sizeof a.word) == 0;
}

void append_differences(const Parameters& parameters, const Parameters& derived, StringInfo out) {
  const auto append_number = [&](const char* name, uint64 number, uint64 now) {
    if (number != now) appendStringInfo(begin_member(out, name), UINT64_FORMAT, now);
  };
  appendStringInfoChar(out, '{');
  append_number("memory", parameters.memory, derived.memory);
  append_number("slices", parameters.slices, derived.slices);
  for (const OptionSpec& option : find_ops(parameters.kind)->options)
    if (parameters.integer(option.word) != derived.integer(option.word) && in_use(derived, option))
      append_option(derived, option, begin_member(out, option.name));
  appendStringInfoChar(out, '}');
}

void append_option(const Parameters& parameters, const CommonOption& option, StringInfo out) {
  char value[64];
  TextWriter text(value, sizeof value);
  option.write(text, parameters);
  if (option.choices != nullptr)
    escape_json(out, value);
  else
    appendStringInfoString(out, value);
}

// Seed and memory are columns of their own, the kind too.
constexpr auto kBeside = set_of(Common::kind, Common::memory, Common::seed, Common::slices);

}  // namespace

void append_parameters_json(StringInfo out, const Parameters& parameters, const char* reason,
                            const Parameters* derived_now) {
  const FilterOps* ops = find_ops(parameters.kind);
  appendStringInfoChar(out, '{');
  for (const OptionSpec& option : ops->options)
    if (in_use(parameters, option))
      append_option(parameters, option, begin_member(out, option.name));
  appendStringInfo(begin_member(out, "slices"), "%u", parameters.slices);
  if (parameters.slicing == Slicing::diced)
    appendStringInfo(begin_member(out, "slices2"), "%u", parameters.slices2);
  for (const CommonOption& option : kCommonOptions)
    if (!contains(kBeside, option.id) &&
        (option.id == Common::nulls || option.is_needed(parameters)))
      append_option(parameters, option, begin_member(out, option.name));
  if (reason != nullptr)
    escape_json(begin_member(out, "chosen"), psprintf("%s: %s", ops->name, reason));
  if (derived_now != nullptr && !is_derived_alike(parameters, *derived_now))
    append_differences(parameters, *derived_now, begin_member(out, "derived_now"));
  appendStringInfoChar(out, '}');
}

Datum json_to_jsonb(const char* json) {
  return DirectFunctionCall1(jsonb_in, CStringGetDatum(json));
}

}  // namespace streamfilter::pg
