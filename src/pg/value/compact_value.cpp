#include "pg/server/postgres.hpp"

#include "pg/value/compact_value.hpp"

#include "core/filter/sparse_form.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

// A compact form pays if it takes less than this share of the filter's memory.
bool pays(Size size, const Parameters& parameters) { return size <= parameters.memory / 4 * 3; }

// Others, which are decoded as a whole, pay if they take less than one part of so many: reading
// that many pages takes longer.
constexpr Size kSparseShare = 4;

// Reused, because consecutive values are mostly alike.
CompactReader the_reader;

// Opens the compact form of words in a datum; nullptr: it has another form.
struct varlena* open_compact(Datum value, CompactReader* reader) {
  struct varlena* bytes = PG_DETOAST_DATUM_PACKED(value);
  if (!has_words(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes))) return nullptr;
  Problem problem;
  if (!reader->open(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), problem)) raise_value(problem);
  return bytes;
}

void finish_reading(const CompactReader& reader) {
  Problem problem;
  if (!reader.finish(problem)) raise_value(problem);
}

void count_repeats(const CompactReader& reader, uint64* insertions) {
  for (uint32 i = 0; i < reader.parameters().slices; ++i)
    insertions[i] = std::min(insertions[i] + reader.repeats(i), kMaxInsertions);
}

}  // namespace

Datum words_datum(const Parameters& parameters, const Word* words, uint32 count,
                  const uint64* insertions) {
  if (!pays(count, parameters) || !exa_log_log::have_room(parameters, words, count)) return 0;
  const Size room = most_compact(parameters, count);
  auto* bytes = allocate<unsigned char>(room);
  const Size size = write_compact(parameters, words, count, insertions, bytes, room);
  if (!pays(size, parameters)) {
    pfree(bytes);
    return 0;
  }
  SET_VARSIZE(bytes, size);
  return PointerGetDatum(bytes);
}

static Datum sparse_datum(Header* filter) {
  const Size most = filter->parameters.memory / kSparseShare;
  SparsePlan plan;
  if (!plan_sparse(filter, most, plan)) return stored_datum(filter);
  auto* bytes = allocate<unsigned char>(plan.room);
  const Size size = write_sparse(filter, plan, bytes);
  SET_VARSIZE(bytes, size);
  return size <= most ? PointerGetDatum(bytes) : stored_datum(filter);
}

Datum value_datum(Header* filter) {
  if (ops_of(filter).has_sparse_form) return sparse_datum(filter);
  uint32 count;
  if (!count_words(filter, count) || !pays(count, filter->parameters)) return stored_datum(filter);
  Word* words = allocate<Word>(Size{count} + 1);
  auto* insertions = allocate<uint64>(filter->parameters.slices);
  list_words(filter, words);
  list_insertions(filter, insertions);
  const Datum result = words_datum(filter->parameters, words, count, insertions);
  pfree(words);
  pfree(insertions);
  return result != 0 ? result : stored_datum(filter);
}

bool read_words(Datum value, WordsOfValue* result) {
  CompactReader& reader = the_reader;
  if (open_compact(value, &reader) == nullptr) return false;
  const Parameters& p = result->parameters = reader.parameters();
  result->words = allocate<Word>(Size{reader.count()} + 1);
  result->insertions = allocate_zeros<uint64>(p.slices);
  result->count = reader.next(result->words, reader.count());
  for (uint32 i = 0; i < result->count; ++i)
    ++result->insertions[exa_log_log::slice_of_word(p, result->words[i])];
  finish_reading(reader);
  count_repeats(reader, result->insertions);
  return true;
}

bool count_few(Datum value, uint32* count) {
  CompactReader& reader = the_reader;
  if (open_compact(value, &reader) == nullptr ||
      !exa_log_log::are_few(reader.parameters(), reader.count()))
    return false;
  for (Word words[64]; reader.next(words, lengthof(words)) > 0;) continue;
  finish_reading(reader);
  *count = reader.count();
  return true;
}

void add_hash(WordsOfValue* value, uint64 hash) {
  const Word word = exa_log_log::word_of(value->parameters, hash);
  uint64& insertions = value->insertions[exa_log_log::slice_of_word(value->parameters, word)];
  insertions = std::min(insertions + 1, kMaxInsertions);
  Word* end = value->words + value->count;
  Word* at = std::lower_bound(value->words, end, word);
  if (at != end && *at == word) return;
  std::copy_backward(at, end, end + 1);
  *at = word;
  ++value->count;
}

void add_words(WordsOfValue* value, const WordsOfValue& other) {
  Problem problem;
  if (!mergeable(value->parameters, other.parameters, problem)) raise(problem);
  const Size most = Size{value->count} + other.count + 1;
  Word* words = allocate<Word>(most);
  const Word* end = std::set_union(value->words, value->words + value->count, other.words,
                                   other.words + other.count, words);
  value->words = words;
  value->count = static_cast<uint32>(end - words);
  for (uint32 i = 0; i < value->parameters.slices; ++i)
    value->insertions[i] = std::min(value->insertions[i] + other.insertions[i], kMaxInsertions);
}

Datum words_datum(const WordsOfValue& value) {
  const Datum compact = words_datum(value.parameters, value.words, value.count, value.insertions);
  return compact != 0 ? compact : stored_datum(filter_of(value));
}

Header* filter_of(const WordsOfValue& value) {
  Header* filter = make_value(value.parameters, CurrentMemoryContext);
  for (uint32 i = 0; i < value.count; ++i) exa_log_log::add_word(filter, value.words[i]);
  for (uint32 i = 0; i < value.parameters.slices; ++i)
    slice_at(filter, i).state->insertions = value.insertions[i];
  settle_value(filter);
  return filter;
}

void merge_datum(Header* into, Datum from) {
  CompactReader& reader = the_reader;
  struct varlena* bytes = open_compact(from, &reader);
  if (bytes == nullptr) return merge_value(into, get_value(from));
  Problem problem;
  if (!mergeable(into->parameters, reader.parameters(), problem)) raise(problem);
  if (!merge_compact(reader, into, problem)) raise_value(problem);
  if (reinterpret_cast<void*>(bytes) != DatumGetPointer(from)) pfree(bytes);
}

}  // namespace streamfilter::pg
