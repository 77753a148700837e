// What a kind of filter is: one row of functions. A new kind is one file in this folder that
// defines its row, its number in core/format/parameters.hpp, two lines in kind_list.hpp, its tests
// and its docs.
#pragma once

#include "core/base/prefetch_list.hpp"
#include "core/base/status.hpp"
#include "core/format/element.hpp"
#include "core/format/layout.hpp"
#include "core/model/stream.hpp"

namespace streamfilter {

// What the state of a slice says of itself.
struct Estimate {
  double fill;      // share of the cells (slots, entries) in use, 0..1
  double fpr;       // probability that a new key would now be called a repeat
  double distinct;  // distinct keys seen; NaN: unknown
};

// How the state of one size becomes that of another (filter/resize.hpp, format/spread.hpp).
struct Resizing {
  // Words that follow from the size; all others must be equal, but
  WordSet sized = 0;
  // those that say how many places a key has: fewer will do, since they are the first ones.
  WordSet hashes = 0;

  // Those that are derived, but must stay what they are.
  WordSet kept = 0;

  // Not with these parameters? nullptr: with all.
  bool (*possible)(const Parameters&) noexcept = nullptr;

  // How many places, in the sense of format/spread.hpp, a slice has.
  std::uint64_t (*places)(const Parameters&) noexcept = nullptr;

  // Fills an empty slice with a layer of the old one. nullptr: only `move`.
  void (*spread)(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
                 std::uint64_t layer) noexcept = nullptr;

  // Must all of a slice come into one? A key that is kept in too few bits cannot tell which of
  // several would be its own. nullptr: no.
  bool (*undivided)(const Parameters&) noexcept = nullptr;

  // May two places of this slice come into one? Not while a key that was removed has copies there.
  // nullptr: always.
  bool (*may_join_places)(const Parameters&, ConstSlice) noexcept = nullptr;

  // In place of `spread`, for kinds that keep an order: adds all of the old slice that belongs, or
  // may belong, to slice `index`. nullptr: `spread`.
  void (*move)(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
               std::uint32_t index) noexcept = nullptr;

  // Adds a layer to a slice. nullptr: FilterOps::merge, as for another filter.
  void (*merge)(const Parameters&, Slice into, ConstSlice layer) noexcept = nullptr;

  // So many distinct keys are in the slice, for kinds that count them by its bits. nullptr: others.
  void (*note_keys)(const Parameters&, Slice, double keys) noexcept = nullptr;

  // The false-positive rate that a slice comes to with its share of Parameters::keys, or is at
  // until its keys have expired. nullptr: the kind keeps its rate whatever comes.
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
  bool counts_only = false;        // distinct keys: repeats are told only while they are few

  // Does it make use of an element's importance, or time? nullptr: never.
  bool (*uses_importance)(const Parameters&) noexcept = nullptr;
  bool (*uses_time)(const Parameters&) noexcept = nullptr;

  bool learns_from_repeats = false;  // inserting a key that is there changes more than counters

  // Checks the given parameters and derives the others, for slices of slice_bytes each.
  bool (*derive)(Definition& definition, Problem& problem) noexcept;

  // Can nothing be derived before it is known how many keys to expect? nullptr: never.
  bool (*needs_keys)(const Definition& definition) noexcept = nullptr;

  // Writes whatever an empty slice holds besides zeros. nullptr: nothing.
  void (*init)(const Parameters&, Slice) noexcept = nullptr;

  // Adds the memory that `test` and `insert` will need, for callers that know their next keys.
  // nullptr: nothing to gain.
  void (*prefetch)(const Parameters&, ConstSlice, const Element&, Prefetches&) noexcept = nullptr;

  // Was this key (probably) seen? Changes nothing.
  bool (*test)(const Parameters&, ConstSlice, const Element&) noexcept;

  // Was it seen before? It is remembered now.
  bool (*insert)(const Parameters&, Slice, const Element&) noexcept;

  // `added` was inserted, and `since` other keys after it; is it forgotten by the time of
  // `present`, however much room there is? nullptr: never, for that reason.
  bool (*expired)(const Parameters&, const Element& added, const Element& present,
                  std::uint64_t since) noexcept = nullptr;
  // Does that ever happen with these parameters? nullptr: yes.
  bool (*expires)(const Parameters&) noexcept = nullptr;

  // Where events tell the time: when the present of this slice began, in microseconds; not finite:
  // no event has come. Safe while others write. nullptr: it has none.
  std::int64_t (*clock)(const Parameters&, ConstSlice) noexcept = nullptr;

  // Forgets one key; false if it was not there. nullptr: this kind cannot.
  bool (*erase)(const Parameters&, Slice, const Element&) noexcept = nullptr;

  // Adds what `from` remembers to `into`, and its `inserted_new`. Where both together are more than
  // the parameters allow, so much of both is forgotten that the false-positive rate stays within
  // its bound; neither side is preferred. nullptr: this kind cannot.
  void (*merge)(const Parameters&, Slice into, ConstSlice from) noexcept = nullptr;

  // After the last of several that `merge` has added to a slice, and their `insertions`: what needs
  // all of them. nullptr: nothing does.
  void (*settle)(const Parameters&, Slice) noexcept = nullptr;

  // Could these bytes be a slice of this kind? Must be safe on any bytes.
  bool (*check)(const Parameters&, ConstSlice) noexcept;

  Estimate (*estimate)(const Parameters&, ConstSlice) noexcept;

  // The false-positive rate that the parameters imply as a bound: with `keys`, up to that many
  // distinct keys; otherwise for ever. 1: no promise.
  double (*fpr_bound)(const Parameters&) noexcept;

  // What the false-positive rate of a slice grows with, as a whole number; and the rate that a
  // slice has at most with so much of it. Safe while others write. nullptr: no stream and no size
  // makes the rate exceed fpr_bound.
  std::uint64_t (*load)(const Parameters&, ConstSlice) noexcept = nullptr;
  double (*rate_at)(const Parameters&, double load) noexcept = nullptr;

  // Predicted false-negative rate of a key that was last seen `gap` elements ago.
  double (*fnr_at)(const Parameters&, double gap) noexcept = nullptr;

  // The error rates of an empty filter on a stream whose rows are of importance 0. nullptr: this
  // kind has no model of them.
  Prediction (*predict)(const Parameters&, const Stream&) noexcept = nullptr;

  // Puts a new key in one of its probes, whatever the slice held before: Element.hash is the
  // probe's. nullptr: horizontal slices only (slicing.hpp).
  void (*insert_unconditionally)(const Parameters&, Slice, const Element&) noexcept = nullptr;

  // For kinds with ranks in the order of recency (tuning.hpp): how many a bucket has, up to
  // kMaxRanks; 0 if these parameters keep another order. nullptr: never.
  unsigned (*ranks)(const Parameters&) noexcept = nullptr;

  // How many buckets a slice has.
  double (*buckets)(const Parameters&) noexcept = nullptr;

  // `test`, and the rank where the key was found, 0 the front; kNoRank if it was not.
  unsigned (*find_rank)(const Parameters&, ConstSlice, const Element&) noexcept = nullptr;

  // `promote` (filter.hpp) without the counters of a slice, at once. nullptr: `test`, then
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

// For kinds that use importance or time whatever their parameters are.
inline bool always(const Parameters&) noexcept { return true; }

}  // namespace streamfilter
