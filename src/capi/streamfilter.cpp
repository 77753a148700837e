// libstreamfilter: the core behind a C interface, include/streamfilter/streamfilter.h.
#include "streamfilter/streamfilter.h"

#include "core/filter/value_form.hpp"

using namespace streamfilter;

namespace {

// What an sflt_definition holds.
struct CompleteDefinition {
  Parameters parameters;
  std::uint64_t reserved[64 - sizeof(Parameters) / 8];
};
static_assert(sizeof(CompleteDefinition) == sizeof(sflt_definition));
static_assert(SFLT_MAX_DEFINITION == kMaxDefinitionText);
static_assert(SFLT_BINARY_HEADER >= kMostPacked);
static_assert(sizeof(sflt_element) == sizeof(Element) &&
              offsetof(sflt_element, importance) == offsetof(Element, importance) &&
              offsetof(sflt_element, time) == offsetof(Element, time));
static_assert(static_cast<int>(Error::newer_version) == SFLT_NEWER_VERSION);

constexpr std::size_t kBatch = 32;  // elements that are fetched ahead together

const Header* header_of(const sflt_filter* filter) {
  return reinterpret_cast<const Header*>(filter);
}
Header* header_of(sflt_filter* filter) { return reinterpret_cast<Header*>(filter); }
const Element& element_of(const sflt_element* element) {
  return *reinterpret_cast<const Element*>(element);
}

const Parameters& parameters_of(const sflt_definition* definition) {
  return reinterpret_cast<const CompleteDefinition*>(definition)->parameters;
}
void set_definition(sflt_definition* definition, const Parameters& parameters) {
  *reinterpret_cast<CompleteDefinition*>(definition) = {parameters, {}};
}

bool bad_argument(Problem& problem, const char* message) {
  problem.set(Error::none, "%s", message);
  problem.error = static_cast<Error>(SFLT_ARGUMENT);
  return false;
}

// Tells the caller of a problem, if there is one.
sflt_status report(const Problem& found, sflt_problem* problem) {
  if (problem != nullptr) {
    problem->status = static_cast<int32_t>(found.error);
    static_assert(sizeof found.message == sizeof problem->message &&
                  sizeof found.detail == sizeof problem->detail &&
                  sizeof found.hint == sizeof problem->hint);
    std::memcpy(problem->message, found.message, sizeof found.message);
    std::memcpy(problem->detail, found.detail, sizeof found.detail);
    std::memcpy(problem->hint, found.hint, sizeof found.hint);
  }
  return static_cast<sflt_status>(found.error);
}

// The filter at `memory`, if there was no problem with it.
sflt_filter* filter_at(void* memory, const Problem& found, sflt_problem* problem) {
  return report(found, problem) == SFLT_OK ? static_cast<sflt_filter*>(memory) : nullptr;
}

bool is_usable(const void* memory, Problem& problem) {
  if (memory == nullptr) return bad_argument(problem, "memory is a null pointer");
  if (reinterpret_cast<std::uintptr_t>(memory) % alignof(Header) != 0)
    return bad_argument(problem, "memory is not aligned to 8 bytes");
  return true;
}

// Does memory hold a filter of these parameters?
bool has_room(const void* memory, std::size_t size, const Parameters& parameters,
              Problem& problem) {
  if (!is_usable(memory, problem)) return false;
  const std::uint64_t needed = block_bytes(parameters);
  if (size >= needed) return true;
  bad_argument(problem, "memory is too small for the filter");
  return problem.add_detail("It has %zu bytes instead of %llu.", size, llu(needed));
}

void prefetch_batch(const Header* header, const sflt_element* elements, std::size_t count) {
  Prefetches prefetches;
  for (std::size_t i = 0; i < count; ++i) prefetch(header, element_of(elements + i), prefetches);
  prefetches.start();
}

// Asks `is_seen` about each element. Returns how many are new.
template <typename Question>
std::size_t count_new(const Header* header, const sflt_element* elements, std::size_t count,
                      unsigned char* seen, Question is_seen) {
  std::size_t result = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % kBatch == 0) prefetch_batch(header, elements + i, std::min(kBatch, count - i));
    const bool was_seen = is_seen(element_of(elements + i));
    result += !was_seen;
    if (seen != nullptr) seen[i] = was_seen;
  }
  return result;
}

// Is the filter its definition? `scratch` has room for a slice.
bool is_pristine(const Header* header, void* scratch) {
  for (std::uint32_t i = 0; i < header->parameters.slices; ++i)
    if (!is_pristine(header, i, scratch)) return false;
  return true;
}

void* aligned(void* at) {
  constexpr std::uintptr_t kMask = alignof(Header) - 1;
  return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(at) + kMask) & ~kMask);
}

}  // namespace

unsigned sflt_abi_version(void) { return SFLT_ABI_VERSION; }
unsigned sflt_format_version(void) { return kFormatVersion; }

// ---- definitions

sflt_status sflt_define(sflt_definition* definition, const char* text, sflt_problem* problem) {
  Problem found;
  TextStart start;
  if (definition == nullptr || text == nullptr)
    bad_argument(found, "definition or text is a null pointer");
  else if (read_text_start(text, std::strlen(text), Reading::request, start, found) &&
           !start.has_version)
    set_definition(definition, start.definition.parameters);
  else if (!found)
    found.set(Error::syntax, "the text is a filled filter, not a definition");
  return report(found, problem);
}

size_t sflt_print_definition(const sflt_definition* definition, char* buffer, size_t size) {
  return print_definition(parameters_of(definition), buffer, size);
}

uint64_t sflt_size(const sflt_definition* definition) {
  return block_bytes(parameters_of(definition));
}
uint64_t sflt_seed(const sflt_definition* definition) { return parameters_of(definition).seed; }

unsigned sflt_traits(const sflt_definition* definition) {
  const Parameters& p = parameters_of(definition);
  const FilterOps& ops = *find_ops(p.kind);
  unsigned traits = 0;
  const auto add = [&](bool has, unsigned trait) { traits |= has ? trait : 0; };
  add(uses_importance(p), SFLT_USES_IMPORTANCE);
  add(uses_time(p), SFLT_USES_TIME);
  add(ops.erase != nullptr, SFLT_CAN_FORGET);
  add(ops.merge != nullptr, SFLT_CAN_MERGE);
  add(p.key_shift != 0, SFLT_TAKES_INTEGERS);
  add(p.nulls == Nulls::not_distinct, SFLT_NULLS_NOT_DISTINCT);
  add(ops.keeps_fpr_forever, SFLT_KEEPS_FPR_FOREVER);
  return traits;
}

double sflt_fpr_bound(const sflt_definition* definition) {
  const Parameters& p = parameters_of(definition);
  return find_ops(p.kind)->fpr_bound(p);
}

double sflt_window_keys(const sflt_definition* definition, double fnr) {
  return window_keys(parameters_of(definition), fnr);
}

// ---- filters

sflt_filter* sflt_init(void* memory, size_t size, const sflt_definition* definition,
                       sflt_problem* problem) {
  Problem found;
  if (definition == nullptr)
    bad_argument(found, "definition is a null pointer");
  else if (const Parameters& p = parameters_of(definition); has_room(memory, size, p, found))
    format(static_cast<Header*>(memory), p);
  return filter_at(memory, found, problem);
}

sflt_filter* sflt_open(void* memory, size_t size, sflt_problem* problem) {
  return sflt_check(memory, size, problem) == SFLT_OK ? static_cast<sflt_filter*>(memory) : nullptr;
}

sflt_status sflt_check(const void* memory, size_t size, sflt_problem* problem) {
  Problem found;
  if (is_usable(memory, found)) check(memory, size, found);
  return report(found, problem);
}

void sflt_definition_of(const sflt_filter* filter, sflt_definition* definition) {
  set_definition(definition, header_of(filter)->parameters);
}

// ---- elements

int sflt_test(const sflt_filter* filter, const sflt_element* element) {
  return test(header_of(filter), element_of(element));
}

int sflt_insert(sflt_filter* filter, const sflt_element* element) {
  return insert(header_of(filter), element_of(element));
}

size_t sflt_test_many(const sflt_filter* filter, const sflt_element* elements, size_t count,
                      unsigned char* seen) {
  const Header* header = header_of(filter);
  return count_new(header, elements, count, seen,
                   [&](const Element& element) { return test(header, element); });
}

size_t sflt_insert_many(sflt_filter* filter, const sflt_element* elements, size_t count,
                        unsigned char* seen) {
  Header* header = header_of(filter);
  return count_new(header, elements, count, seen,
                   [&](const Element& element) { return insert(header, element); });
}

sflt_status sflt_forget(sflt_filter* filter, const sflt_element* element, int* found,
                        sflt_problem* problem) {
  Problem trouble;
  const FilterOps& ops = ops_of(header_of(filter));
  bool was_there = false;
  if (ops.erase != nullptr)
    was_there = erase(header_of(filter), element_of(element));
  else
    trouble.set(Error::unsupported, "filters of kind %s cannot forget a key", ops.name);
  if (found != nullptr) *found = was_there;
  return report(trouble, problem);
}

sflt_status sflt_merge(sflt_filter* into, const sflt_filter* from, sflt_problem* problem) {
  Problem found;
  merge(header_of(into), header_of(from), found);
  return report(found, problem);
}

void sflt_estimate_of(const sflt_filter* filter, sflt_estimate* estimate) {
  const Header* header = header_of(filter);
  const Totals sums = totals(header);
  bool full;
  *estimate = {};
  estimate->fill = sums.estimate.fill;
  estimate->fpr = sums.estimate.fpr;
  estimate->distinct = distinct_keys(header, full);
  estimate->inserted = sums.insertions;
  estimate->inserted_new = sums.inserted_new;
  estimate->full = full;
}

// ---- keys

uint64_t sflt_hash_integer(int64_t value, uint64_t seed) {
  return hash_word(static_cast<std::uint64_t>(value), seed);
}
uint64_t sflt_hash_real(double value, uint64_t seed) { return hash_real(value, seed); }
uint64_t sflt_hash_bytes(const void* bytes, size_t length, uint64_t seed) {
  return hash_bytes(bytes, length, seed);
}
uint64_t sflt_hash_interval(int32_t months, int32_t days, int64_t microseconds, uint64_t seed) {
  return hash_interval(months, days, microseconds, seed);
}
uint64_t sflt_hash_array(const uint64_t* elements, size_t count, uint64_t seed) {
  return hash_array(elements, count, seed);
}
uint64_t sflt_hash_columns(const uint64_t* columns, size_t count, uint64_t seed) {
  return count == 1 ? columns[0] : hash_columns(columns, count, seed);
}
uint64_t sflt_hash_null(uint64_t seed) { return null_hash(seed); }

sflt_status sflt_hash_numeric(const char* text, size_t length, uint64_t seed, uint64_t* hash,
                              sflt_problem* problem) {
  Problem found;
  if (text == nullptr || hash == nullptr)
    bad_argument(found, text == nullptr ? "text is a null pointer" : "hash is a null pointer");
  else
    hash_decimal_text(text, length, seed, *hash, found);
  return report(found, problem);
}

uint64_t sflt_key_integer(const sflt_definition* definition, int64_t value) {
  const Parameters& p = parameters_of(definition);
  return p.key_shift != 0 ? static_cast<std::uint64_t>(value) : sflt_hash_integer(value, p.seed);
}

// ---- text and binary form

size_t sflt_binary_size(const sflt_filter* filter) {
  return binary_size(header_of(filter)->parameters);
}

size_t sflt_write_binary(const sflt_filter* filter, void* buffer, size_t size) {
  const std::size_t needed = sflt_binary_size(filter);
  if (size >= needed) write_binary(header_of(filter), buffer);
  return needed;
}

// The body is longer than the memory that it stands for, so a slice fits into its place.
size_t sflt_text_size(const sflt_filter* filter) {
  return kMaxTextStart + BodyText(header_of(filter)->parameters).length() + alignof(Header);
}

size_t sflt_write_text(const sflt_filter* filter, char* buffer, size_t size) {
  const Header* header = header_of(filter);
  if (size < sflt_text_size(filter)) return sflt_text_size(filter);
  const bool is_filled = !is_pristine(header, aligned(buffer));
  std::size_t length = write_text_start(header, is_filled, buffer, size);
  if (is_filled) {
    BodyWriter writer(header, buffer + length);
    while (writer.step()) {
    }
    length += BodyText(header->parameters).length();
    buffer[length] = '\0';
  }
  return length + 1;
}

sflt_status sflt_define_from_binary(sflt_definition* definition, const void* bytes, size_t length,
                                    sflt_problem* problem) {
  Problem found;
  Parameters parameters;
  std::size_t used;
  if (definition == nullptr || bytes == nullptr)
    bad_argument(found, "definition or bytes is a null pointer");
  else if (unpack_header(bytes, length, parameters, used, found))
    set_definition(definition, parameters);
  return report(found, problem);
}

sflt_filter* sflt_read_binary(void* memory, size_t size, const void* bytes, size_t length,
                              sflt_problem* problem) {
  Problem found;
  Parameters parameters;
  std::size_t used;
  if (bytes == nullptr)
    bad_argument(found, "bytes is a null pointer");
  else if (read_binary_header(bytes, length, parameters, used, found) &&
           has_room(memory, size, parameters, found))
    read_binary(bytes, length, static_cast<Header*>(memory), found);
  return filter_at(memory, found, problem);
}

sflt_status sflt_define_from_text(sflt_definition* definition, const char* text, size_t length,
                                  sflt_problem* problem) {
  Problem found;
  Definition read;
  std::size_t used;
  if (definition == nullptr || text == nullptr)
    bad_argument(found, "definition or text is a null pointer");
  else if (parse_definition(text, length, read, used, found)) {
    const Definition asked = read;
    if (complete(read, found) && check_request(asked, read, found))
      set_definition(definition, read.parameters);
  }
  return report(found, problem);
}

sflt_filter* sflt_read_text(void* memory, size_t size, const char* text, size_t length,
                            sflt_problem* problem) {
  Problem found;
  TextStart start;
  if (text == nullptr)
    bad_argument(found, "text is a null pointer");
  else if (read_text_start(text, length, Reading::request, start, found) &&
           has_room(memory, size, start.definition.parameters, found)) {
    Header* header = static_cast<Header*>(memory);
    if (start.body == nullptr) {
      format(header, start.definition.parameters);
    } else {
      format_header(header, start.definition.parameters);
      BodyReader reader(header, start.body);
      while (reader.step()) {
      }
      reader.finish(found);
    }
  }
  return filter_at(memory, found, problem);
}
