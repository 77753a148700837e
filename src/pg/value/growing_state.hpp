// An aggregate's state for the keys of a group: a filter, or, for few keys of kind ell, their words
// (core/kind/exa_log_log_words.hpp), in memory that grows with them. The finished filter is the
// same.
//
// A filter of a megabyte exceeds near caches, and so do the words of many groups: a new key waits
// for some rows until its memory has arrived, or for others of its group, to fetch theirs at once.
#pragma once

#include "core/filter/compact_form.hpp"

namespace streamfilter::pg {

// State that few aggregates need. `insertions` has a number for each slice.
struct StateExtra {
  // If the prototype is not constant: the checksum of the one that the state started from, and
  // given_prototype() of the last row.
  uint64 prototype, given;
  // For a window, which asks for the count after every row: the count so far, from the changes that
  // keys have made, each weighted by its probability (Ertl 2024, section 3.3), and the probability
  // of the next change. Nothing is merged there.
  bool in_window;
  double counted, change;
  uint64 insertions[FLEXIBLE_ARRAY_MEMBER];
};

struct WaitingKey {
  exa_log_log::Token token;  // payload 0: none
  uint32 slice;
};

struct GrowingState {
  static constexpr uint32 kFirst = 6, kFirstBits = 4, kWaiting = 8;

  Header* filter;                // nullptr: there are words
  const Parameters* parameters;  // of the filter that words become, or are added to
  StateExtra* extra;             // nullptr: only the number of keys counts
  union {
    Word* words;          // `bits` 0: a list, starting at `first` unless nullptr
    WaitingKey* waiting;  // with a filter: keys to be added
  };
  uint32 count;  // with a filter: place of the key that has waited longest
  uint16 bits;   // of the table
  uint16 waits;  // words in `first` that are to be added to the table
  Word first[kFirst];

  const Parameters& its() const { return filter != nullptr ? filter->parameters : *parameters; }
};

// Can its states begin small? A filter as prototype must also be empty.
bool can_grow(const Parameters& parameters);

// `parameters` must live as long as the state.
GrowingState* make_growing(const Parameters* parameters, bool for_filter, MemoryContext context);
GrowingState* make_state(Header* filter, MemoryContext context);

void add_word(FunctionCallInfo fcinfo, GrowingState* state, Word word);

// Adds the words that have waited for the table.
void add_waiting_words(FunctionCallInfo fcinfo, GrowingState* state);

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

inline void insert_hash(FunctionCallInfo fcinfo, GrowingState* state, uint64 hash) {
  const Parameters& p = *state->parameters;
  if (likely(state->filter != nullptr)) {
    const WaitingKey key = {exa_log_log::token_of(hash, p.integer(0)),
                            p.slices > 1 ? slice_of(p, hash) : 0};
    return wait_for_memory(state, key);
  }
  const Word word = exa_log_log::word_of(p, hash);
  if (state->extra != nullptr)
    ++state->extra->insertions[p.slices > 1 ? exa_log_log::slice_of_word(p, word) : 0];
  if (state->bits <= GrowingState::kFirstBits) return add_word(fcinfo, state, word);
  state->first[state->waits] = word;
  if (++state->waits == GrowingState::kFirst) add_waiting_words(fcinfo, state);
}

// Makes the state of a window, and adds a key to it.
GrowingState* make_counting(const Parameters* parameters, MemoryContext context);
void insert_in_window(FunctionCallInfo fcinfo, GrowingState* state, uint64 hash);

// Adds the keys of another state.
void merge_state(FunctionCallInfo fcinfo, GrowingState* into, GrowingState* from);

// A palloc'd copy, with these `parameters` if it has words.
GrowingState* copy_growing_state(GrowingState* from, const Parameters* parameters,
                                 MemoryContext context);

// The value, palloc'd.
Datum finished_value(GrowingState* state);

int64 count_keys(GrowingState* state);

// The state as bytes, and back.
bytea* serialize_state(GrowingState* state);
GrowingState* deserialize_state(Datum bytes);

// Facts about the call of an aggregate's transition function.

// Context of the state. Raises if the function was called outside an aggregate.
MemoryContext aggregate_context(FunctionCallInfo fcinfo);

// Is argument `number` of the aggregate (from 0) the same in all rows? For aggregates whose last
// argument is no record: an engine may run the transition function inside an aggregate of its own,
// and pass the arguments as a record.
bool is_constant_argument(FunctionCallInfo fcinfo, int number);

// Is it the same, too, whenever the aggregate runs again?
bool is_literal_argument(FunctionCallInfo fcinfo, int number);

// In a function that finishes or serializes a state that no row has begun: the prototype in
// argument 1 of the aggregate, if it is constant and not NULL.
bool constant_prototype(FunctionCallInfo fcinfo, Datum* value);

// The prototype in argument `number` of the transition function. Both raise if it is NULL.
const Header* get_prototype(FunctionCallInfo fcinfo, int number);
void check_prototype(FunctionCallInfo fcinfo, int number);

// A number for the given prototype: if it is the same for two rows, so is the prototype, and need
// not be read. (A large value is given by its storage place.) 0: not known.
uint64 given_prototype(FunctionCallInfo fcinfo, int number);

[[noreturn]] void raise_changed_prototype();

// Counts distinct keys, for aggregates.

// The default: for any number of keys, and nearly exact for few.
constexpr char kCountingPrototype[] = "ell(memory=1MB)";

// Complete parameters. Raises errors in the definition.
Parameters parse_prototype(const char* definition);

// Number of distinct keys that the filter has seen. Raises feature_not_supported if its kind cannot
// tell; warns if it is full, because the number is then a lower bound.
int64 count_keys(const Header* filter);

// The number of keys behind `count` words in `places` places (exa_log_log_words.hpp).
int64 count_distinct_words(const Parameters& parameters, const exa_log_log::Word* words,
                           uint32 places, uint32 count);

}  // namespace streamfilter::pg
