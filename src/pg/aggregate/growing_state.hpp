// What an aggregate keeps of the keys of a group: a filter, or as long as there are few and the
// filter is of kind ell, their words (core/kind/exa_log_log_words.hpp), in memory that grows with
// them. The finished filter is the same.
//
// A filter of a megabyte lies in no near cache: a key that comes waits for some rows, until the
// memory that it changes is there.
#pragma once

#include "core/filter/compact_form.hpp"
#include "core/kind/exa_log_log.hpp"

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

struct WaitingKey {
  exa_log_log::Token token;  // payload 0: none
  uint32 slice;
};

struct GrowingState {
  static constexpr uint32 kFirst = 6, kWaiting = 8;

  Header* filter;                // nullptr: there are words
  const Parameters* parameters;  // of the filter that the words will be, or are added to
  StateExtra* extra;             // nullptr: only the number of keys counts
  union {
    Word* words;          // `bits` 0: in a row, at `first` unless nullptr
    WaitingKey* waiting;  // with a filter that keys are added to: so many of them
  };
  uint32 count;  // with a filter: the place of the key that has waited longest
  uint32 bits;   // of the table
  Word first[kFirst];

  const Parameters& its() const { return filter != nullptr ? filter->parameters : *parameters; }
};

// Do its states begin small? A filter that is a prototype must also be empty.
bool can_grow(const Parameters& parameters);

// `parameters` stay where they are as long as the state is used.
GrowingState* make_growing(const Parameters* parameters, bool for_filter, MemoryContext context);
GrowingState* make_state(Header* filter, MemoryContext context);

void add_word(FunctionCallInfo fcinfo, GrowingState* state, Word word);

// Adds a key that has waited for the filter.
inline void add_waiting(GrowingState* state, WaitingKey* key) {
  if (key->token.payload == 0) return;
  const Slice slice = slice_at(state->filter, key->slice);
  exa_log_log::add_token(*state->parameters, slice, key->token);
  if (state->extra != nullptr) count_insertion(*slice.state, true);
  key->token.payload = 0;
}

inline void wait_for_memory(GrowingState* state, const WaitingKey& key) {
  const Slice slice = slice_at(state->filter, key.slice);
  __builtin_prefetch(slice.body() + exa_log_log::Update(key.token).at);
  WaitingKey* place = &state->waiting[state->count];
  add_waiting(state, place);
  *place = key;
  state->count = (state->count + 1) % GrowingState::kWaiting;
}

inline void insert(FunctionCallInfo fcinfo, GrowingState* state, uint64 hash) {
  const Parameters& p = *state->parameters;
  if (likely(state->filter != nullptr)) {
    const WaitingKey key = {exa_log_log::token_of(hash, p.integer(0)),
                            p.slices > 1 ? slice_of(p, hash) : 0};
    return wait_for_memory(state, key);
  }
  const Word word = exa_log_log::word_of(p, hash);
  if (state->extra != nullptr)
    ++state->extra->insertions[p.slices > 1 ? exa_log_log::slice_of_word(p, word) : 0];
  add_word(fcinfo, state, word);
}

// The state of a window, and the same for it.
GrowingState* make_counting(const Parameters* parameters, MemoryContext context);
void insert_in_window(FunctionCallInfo fcinfo, GrowingState* state, uint64 hash);

// Adds what another one remembers.
void merge_state(FunctionCallInfo fcinfo, GrowingState* into, GrowingState* from);

// A palloc'd copy whose parameters are `parameters` if it has words.
GrowingState* copy_state(GrowingState* from, const Parameters* parameters, MemoryContext context);

// The value, palloc'd.
Datum finished_value(GrowingState* state);

int64 count_keys(GrowingState* state);

// As bytes, and back.
bytea* serialize_state(GrowingState* state);
GrowingState* deserialize_state(Datum bytes);

}  // namespace streamfilter::pg
