// What an aggregate keeps of the keys of a group: a filter, or as long as there are few and the
// filter is of kind ell, their words (core/kind/exa_log_log_words.hpp), in memory that grows with
// them. The finished filter is the same.
#pragma once

#include "core/filter/compact_form.hpp"

namespace streamfilter::pg {

// What few aggregates need. `insertions` has a number for each slice.
struct StateExtra {
  // If the prototype is no constant: the checksum of the one that the state started from, and what
  // the last row gave for it.
  uint64 prototype, given;
  // Of a window, which asks for the number after every row: the number so far, by the changes that
  // keys have made, each counted by how likely it was (Ertl 2024, section 3.3), and how likely the
  // next one is. Nothing is merged there.
  bool in_window;
  double counted, change;
  uint64 insertions[FLEXIBLE_ARRAY_MEMBER];
};

struct GrowingState {
  static constexpr uint32 kFirst = 6;

  Header* filter;                // nullptr: there are words
  const Parameters* parameters;  // of the filter that the words will be
  StateExtra* extra;             // nullptr: only the number of keys counts
  Word* words;                   // `bits` 0: in a row, at `first` unless nullptr
  uint32 count;
  uint32 bits;  // of the table
  Word first[kFirst];

  const Parameters& its() const { return filter != nullptr ? filter->parameters : *parameters; }
};

// Do its states begin small? A filter that is a prototype must also be empty.
bool can_grow(const Parameters& parameters);

// `parameters` stay where they are as long as the state is used.
GrowingState* make_growing(const Parameters* parameters, bool for_filter, MemoryContext context);
GrowingState* make_state(Header* filter, MemoryContext context);

void add_word(FunctionCallInfo fcinfo, GrowingState* state, Word word);

inline void insert(FunctionCallInfo fcinfo, GrowingState* state, uint64 hash) {
  const Parameters& p = *state->parameters;
  const Word word = exa_log_log::word_of(p, hash);
  if (state->extra != nullptr)
    ++state->extra->insertions[p.slices > 1 ? exa_log_log::slice_of_word(p, word) : 0];
  add_word(fcinfo, state, word);
}

// The state of a window, and the same for it.
GrowingState* make_counting(const Parameters* parameters, MemoryContext context);
void insert_in_window(FunctionCallInfo fcinfo, GrowingState* state, uint64 hash);

// Adds what another one remembers.
void merge_state(FunctionCallInfo fcinfo, GrowingState* into, const GrowingState* from);

// A palloc'd copy whose parameters are `parameters` if it has words.
GrowingState* copy_state(const GrowingState* from, const Parameters* parameters,
                         MemoryContext context);

// The value, palloc'd.
Datum finished_value(const GrowingState* state);

int64 count_keys(const GrowingState* state);

// As bytes, and back.
bytea* serialize_state(const GrowingState* state);
GrowingState* deserialize_state(Datum bytes);

}  // namespace streamfilter::pg
