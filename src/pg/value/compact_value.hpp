// Values in their stored form, which is short for few keys: core/filter/compact_form.hpp of kind
// ell, core/filter/sparse_form.hpp of others.
#pragma once

#include "core/filter/compact_form.hpp"

namespace streamfilter::pg {

// A function's result for our filter: its compact form if that is shorter. The filter must not be
// used afterwards.
Datum value_datum(Header* filter);

// The same for sorted words; 0: the compact form is not shorter.
Datum words_datum(const Parameters& parameters, const Word* words, uint32 count,
                  const uint64* insertions);

// A compact value in parts, palloc'd.
struct WordsOfValue {
  Parameters parameters;
  Word* words;  // with room for one more
  uint32 count;
  uint64* insertions;
};

// False: the value has no compact form. Raises invalid_binary_representation.
bool read_words(Datum value, WordsOfValue* result);

// Has a compact value so few keys that each is counted? Sets `count` then.
bool count_few(Datum value, uint32* count);

// Adds one more hash, or all words of another value with mergeable parameters.
void add_hash(WordsOfValue* value, uint64 hash);
void add_words(WordsOfValue* value, const WordsOfValue& other);
Datum words_datum(const WordsOfValue& value);
Header* filter_of(const WordsOfValue& value);

// Adds a value of any form to our filter, like merge_value.
void merge_datum(Header* into, Datum from);

}  // namespace streamfilter::pg
