#include "pg/server/postgres.hpp"

#include "pg/value/compact_value.hpp"

#include <algorithm>

#include "pg/server/problem_report.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

// A compact form pays where it takes less than so much of the filter's memory.
bool pays(Size size, const Parameters& parameters) { return size <= parameters.memory / 4 * 3; }

// Opens the compact form in a datum; nullptr: it has another one.
struct varlena* open_compact(Datum value, CompactReader* reader) {
  struct varlena* bytes = PG_DETOAST_DATUM(value);
  if (!is_compact(bytes, VARSIZE(bytes))) return nullptr;
  Problem problem;
  if (!reader->open(bytes, VARSIZE(bytes), problem)) raise(problem);
  return bytes;
}

void finish_reading(const CompactReader& reader) {
  Problem problem;
  if (!reader.finish(problem)) raise(problem);
}

void count_repeats(const CompactReader& reader, uint64* insertions) {
  for (uint32 i = 0; i < reader.parameters().slices; ++i)
    insertions[i] = std::min(insertions[i] + reader.repeats(i), kMaxInsertions);
}

}  // namespace

Datum words_datum(const Parameters& parameters, const Word* words, uint32 count,
                  const uint64* insertions) {
  if (!pays(count, parameters)) return 0;
  const Size size = write_compact(parameters, words, count, insertions, nullptr, 0);
  if (!pays(size, parameters)) return 0;
  auto* bytes = static_cast<unsigned char*>(palloc(size));
  write_compact(parameters, words, count, insertions, bytes, size);
  SET_VARSIZE(bytes, size);
  return PointerGetDatum(bytes);
}

Datum value_datum(Header* filter) {
  uint32 count;
  if (!count_words(filter, count) || !pays(count, filter->parameters))
    return PointerGetDatum(filter);
  Word* words = static_cast<Word*>(palloc((Size{count} + 1) * sizeof(Word)));
  auto* insertions = static_cast<uint64*>(palloc(filter->parameters.slices * sizeof(uint64)));
  list_words(filter, words);
  list_insertions(filter, insertions);
  const Datum result = words_datum(filter->parameters, words, count, insertions);
  pfree(words);
  pfree(insertions);
  return result != 0 ? result : PointerGetDatum(filter);
}

bool read_words(Datum value, WordsOfValue* result) {
  CompactReader reader;
  if (open_compact(value, &reader) == nullptr) return false;
  const Parameters& p = result->parameters = reader.parameters();
  result->words = static_cast<Word*>(palloc((Size{reader.count()} + 1) * sizeof(Word)));
  result->insertions = static_cast<uint64*>(palloc0(p.slices * sizeof(uint64)));
  result->count = 0;
  for (Word word; reader.next(word);) {
    result->words[result->count++] = word;
    ++result->insertions[exa_log_log::slice_of_word(p, word)];
  }
  finish_reading(reader);
  count_repeats(reader, result->insertions);
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
  Word* words = static_cast<Word*>(palloc(most * sizeof(Word)));
  const Word* end = std::set_union(value->words, value->words + value->count, other.words,
                                   other.words + other.count, words);
  value->words = words;
  value->count = static_cast<uint32>(end - words);
  for (uint32 i = 0; i < value->parameters.slices; ++i)
    value->insertions[i] = std::min(value->insertions[i] + other.insertions[i], kMaxInsertions);
}

// Where it does not pay any more, tokens may have no room either: the filter decides.
Datum words_datum(const WordsOfValue& value) {
  const Datum compact = words_datum(value.parameters, value.words, value.count, value.insertions);
  if (compact != 0) return compact;
  Header* filter = make_value(value.parameters, CurrentMemoryContext);
  for (uint32 i = 0; i < value.count; ++i) exa_log_log::add_word(filter, value.words[i]);
  for (uint32 i = 0; i < value.parameters.slices; ++i)
    slice_at(filter, i).state->insertions = value.insertions[i];
  settle_value(filter);
  return PointerGetDatum(filter);
}

void merge_datum(Header* into, Datum from) {
  CompactReader reader;
  struct varlena* bytes = open_compact(from, &reader);
  if (bytes == nullptr) return merge_value(into, get_value(from));
  Problem problem;
  const Parameters& p = into->parameters;
  if (!mergeable(p, reader.parameters(), problem)) raise(problem);
  for (Word word; reader.next(word);) {
    exa_log_log::add_word(into, word);
    ++slice_at(into, exa_log_log::slice_of_word(p, word)).state->insertions;
  }
  finish_reading(reader);
  for (uint32 i = 0; i < p.slices; ++i) {
    uint64& insertions = slice_at(into, i).state->insertions;
    insertions = std::min(insertions + reader.repeats(i), kMaxInsertions);
  }
  if (reinterpret_cast<void*>(bytes) != DatumGetPointer(from)) pfree(bytes);
}

}  // namespace streamfilter::pg
