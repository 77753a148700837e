// The interface of a kind of filter: one row of functions. A new kind is one file in this folder
// that defines its row, its number in core/format/parameters.hpp, two lines in kind_list.hpp, its
// tests and its docs.
#pragma once

#include "core/base/prefetch_list.hpp"
#include "core/base/status.hpp"
#include "core/format/element.hpp"
#include "core/format/layout.hpp"
#include "core/model/stream.hpp"

namespace streamfilter {

// Estimates from the state of a slice.
struct Estimate {
  double fill;      // share of cells (slots, entries) in use, 0..1
  double fpr;       // probability that a new key would now be called a repeat
  double distinct;  // distinct keys seen; NaN: not known
};

// How a state is converted to another size (filter/resize.hpp, format/spread.hpp).
struct Resizing {
  // Words that follow from the size; all others must be equal, but
  WordSet sized = 0;
  // those that say how many places a key has: fewer will do, since they are the first ones.
  WordSet hashes = 0;

  // Derived words that must keep their values.
  WordSet kept = 0;

  // Is it possible with these parameters? nullptr: with all.
  bool (*possible)(const Parameters&) noexcept = nullptr;

  // Number of places of a slice, in the sense of format/spread.hpp.
  std::uint64_t (*places)(const Parameters&) noexcept = nullptr;

  // Fills an empty slice with a layer of the old one. nullptr: only `move`.
  void (*spread)(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
                 std::uint64_t layer) noexcept = nullptr;

  // Must all keys of a slice come into one? A key stored in too few bits cannot tell which of
  // several would be its own. nullptr: no.
  bool (*undivided)(const Parameters&) noexcept = nullptr;

  // May two places of this slice become one? Not while a removed key has copies there. nullptr:
  // always.
  bool (*may_join_places)(const Parameters&, ConstSlice) noexcept = nullptr;

  // Replaces `spread` for kinds that keep an order: adds all keys of the old slice that belong, or
  // may belong, to slice `index`. nullptr: `spread`.
  void (*move)(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
               std::uint32_t index) noexcept = nullptr;

  // Adds a layer to a slice. nullptr: FilterOps::merge, as for another filter.
  void (*merge)(const Parameters&, Slice into, ConstSlice layer) noexcept = nullptr;

  // Notes the number of distinct keys in the slice, for kinds that count them by its bits. nullptr:
  // other kinds.
  void (*note_keys)(const Parameters&, Slice, double keys) noexcept = nullptr;

  // The false-positive rate of a slice once it has its share of Parameters::keys, or its present
  // rate until its keys expire. nullptr: the kind keeps its rate whatever comes.
  double (*fpr_to_come)(const Parameters&, ConstSlice) noexcept = nullptr;
};

struct FilterOps {
  Kind kind;
  const char* name;
  const char* summary;  // one line, for people who choose a kind
  const OptionSpec* options;
  unsigned option_count;
  bool has_blocked_layout = false;
  bool keeps_fpr_forever = false;  // without `keys`, on any stream
  bool counts_only = false;  // counts distinct keys, and finds repeats only while there are few

  // Does the kind use an element's importance, or time? nullptr: never.
  bool (*uses_importance)(const Parameters&) noexcept = nullptr;
  bool (*uses_time)(const Parameters&) noexcept = nullptr;

  bool learns_from_repeats = false;  // inserting a key that is there changes more than counters

  // Checks the given parameters and derives the others, for slices of slice_bytes each.
  bool (*derive)(Definition& definition, Problem& problem) noexcept;

  // Must the number of keys be known to derive anything? nullptr: never.
  bool (*needs_keys)(const Definition& definition) noexcept = nullptr;

  // Writes everything but zeros of an empty slice. nullptr: nothing.
  void (*init)(const Parameters&, Slice) noexcept = nullptr;

  // Adds the memory that `test` and `insert` will read to the prefetches. nullptr: not worth it.
  void (*prefetch)(const Parameters&, ConstSlice, const Element&, Prefetches&) noexcept = nullptr;

  // Was this key (probably) seen? Changes nothing.
  bool (*test)(const Parameters&, ConstSlice, const Element&) noexcept;

  // Was it seen before? Remembers it.
  bool (*insert)(const Parameters&, Slice, const Element&) noexcept;

  // Has a key expired that was inserted as `added`, with `since` other keys after it, by the time
  // of `present`, however much room there is? nullptr: keys never expire.
  bool (*expired)(const Parameters&, const Element& added, const Element& present,
                  std::uint64_t since) noexcept = nullptr;
  // Can keys expire with these parameters? nullptr: yes.
  bool (*expires)(const Parameters&) noexcept = nullptr;

  // If events tell the time: start of this slice's present, in microseconds; not finite: no event
  // has come. Safe while others write. nullptr: the kind has no clock.
  std::int64_t (*clock)(const Parameters&, ConstSlice) noexcept = nullptr;

  // Forgets one key; false if it was not there. nullptr: the kind cannot.
  bool (*erase)(const Parameters&, Slice, const Element&) noexcept = nullptr;

  // Adds the keys of `from` to `into`, and its `inserted_new`. If both together are more than the
  // parameters allow, forgets so much of both that the false-positive rate stays within its bound,
  // without preferring either side. nullptr: the kind cannot.
  void (*merge)(const Parameters&, Slice into, ConstSlice from) noexcept = nullptr;

  // Call after the last of several merges into a slice and their `insertions`: finishes what needs
  // all of them. nullptr: nothing does.
  void (*settle)(const Parameters&, Slice) noexcept = nullptr;

  // Could these bytes be a slice of this kind? Must be safe on any bytes.
  bool (*check)(const Parameters&, ConstSlice) noexcept;

  Estimate (*estimate)(const Parameters&, ConstSlice) noexcept;

  // Upper bound of the false-positive rate by the parameters: with `keys`, up to that many distinct
  // keys; otherwise for ever. 1: no promise.
  double (*fpr_bound)(const Parameters&) noexcept;

  // The load of a slice, a whole number with which its false-positive rate grows; and the highest
  // rate that a slice can have with this load. Safe while others write. nullptr: no stream and no
  // size makes the rate exceed fpr_bound.
  std::uint64_t (*load)(const Parameters&, ConstSlice) noexcept = nullptr;
  double (*rate_at)(const Parameters&, double load) noexcept = nullptr;

  // Predicted false-negative rate of a key last seen `gap` elements ago.
  double (*fnr_at)(const Parameters&, double gap) noexcept = nullptr;

  // Predicted error rates of an empty filter on a stream whose rows have importance 0. nullptr: the
  // kind has no such model.
  Prediction (*predict)(const Parameters&, const Stream&) noexcept = nullptr;

  // Puts a new key in one of its probes, whatever the slice held before; Element.hash is the
  // probe's. nullptr: horizontal slices only (slicing.hpp).
  void (*insert_unconditionally)(const Parameters&, Slice, const Element&) noexcept = nullptr;

  // For kinds with ranks in the order of recency (tuning.hpp): number of ranks of a bucket, up to
  // kMaxRanks; 0 if these parameters keep another order. nullptr: never.
  unsigned (*ranks)(const Parameters&) noexcept = nullptr;

  // Number of buckets of a slice.
  double (*buckets)(const Parameters&) noexcept = nullptr;

  // `test`, and the rank where the key was found, 0 for the front; kNoRank if it was not.
  unsigned (*find_rank)(const Parameters&, ConstSlice, const Element&) noexcept = nullptr;

  // `promote` (filter.hpp) in one step, without the counters of a slice. nullptr: `test`, then
  // `insert`.
  bool (*promote)(const Parameters&, Slice, const Element&, unsigned& rank) noexcept = nullptr;

  // `share_stream` (filter.hpp) for a slice. nullptr: nothing to do.
  void (*share)(const Parameters&, Slice) noexcept = nullptr;

  // Can `merge` keep what the parameters promise? nullptr: always.
  bool (*fits)(const Parameters&, ConstSlice into, ConstSlice from) noexcept = nullptr;

  Resizing resize = {};
};

constexpr unsigned kMaxRanks = 64;
constexpr unsigned kNoRank = ~0u;

// For kinds that use importance or time whatever their parameters.
inline bool always(const Parameters&) noexcept { return true; }

}  // namespace streamfilter
