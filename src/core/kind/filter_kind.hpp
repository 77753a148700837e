// The interface of a kind of filter: one row of functions. A new kind is one file in this folder
// that defines its row, its number in core/format/parameters.hpp, two lines in kind_list.hpp, its
// tests and its docs.
#pragma once

#include <span>

#include "core/base/prefetch_list.hpp"
#include "core/base/status.hpp"
#include "core/format/layout.hpp"
#include "core/model/exa_log_log_model.hpp"
#include "core/model/stream.hpp"

namespace streamfilter {

// One element of a stream.
struct Element {
  std::uint64_t hash;     // of its key; the key itself where Parameters::key_shift is not 0
  double importance = 0;  // the role 'importance' column
  std::int64_t time = 0;  // the role 'time' column or the clock, microseconds
};

// A window: a number of accepted rows, or a time in ticks.
struct WindowTicks {
  std::uint64_t rows = 0;    // 0: it is none of rows
  std::uint64_t length = 0;  // of a tick, in microseconds; 0: it is none of time
  std::uint64_t near = 0;    // the greatest distance of two ticks within the window
  std::uint64_t late = 1;    // ticks behind the clock beyond which an event is late
  bool extends = false;      // by repeats: they renew the time of their key
};

// Estimates from the state of a slice.
struct Estimate {
  double fill;      // share of cells (slots, entries) in use, 0..1
  double fpr;       // probability that a new key would now be called a repeat
  double distinct;  // distinct keys seen; NaN: not known
};

// How a state is converted to another size (filter/resize.hpp, format/spread.hpp).
struct Resizing {
  // Words that follow from the size. All others must be equal, except:
  WordSet sized = 0;
  // words for the number of a key's places may shrink, because its first places stay the same.
  WordSet hashes = 0;

  // Derived words that must not change.
  WordSet kept = 0;

  // Says whether parameters allow it. nullptr: always.
  bool (*possible)(const Parameters&) noexcept = nullptr;

  // Completes the parameters of another size with what depends on the former ones. False: there
  // are no such parameters. nullptr: nothing does.
  bool (*inherit)(const Parameters& from, Parameters& p) noexcept = nullptr;

  // The number of places of a slice, as in format/spread.hpp.
  std::uint64_t (*places)(const Parameters&) noexcept = nullptr;

  // Fills an empty slice with a layer of the old one. nullptr: there is only `move`.
  void (*spread)(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
                 std::uint64_t layer) noexcept = nullptr;

  // True if all keys of a slice must come into one slice. A key stored in too few bits cannot tell
  // which of several is its own. nullptr: false.
  bool (*undivided)(const Parameters&) noexcept = nullptr;

  // True if two places of this slice may become one. Not while copies of a removed key are there.
  // nullptr: always.
  bool (*may_join_places)(const Parameters&, ConstSlice) noexcept = nullptr;

  // Replaces `spread` for kinds that keep an order: adds all keys of the old slice that belong, or
  // may belong, to slice `index`. nullptr: there is only `spread`.
  void (*move)(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
               std::uint32_t index) noexcept = nullptr;

  // Adds a layer to a slice. nullptr: FilterOps::merge, as for another filter.
  void (*merge)(const Parameters&, Slice into, ConstSlice layer) noexcept = nullptr;

  // Notes the number of distinct keys in the slice, for kinds that count keys by their bits.
  // nullptr: the kind counts otherwise.
  void (*note_keys)(const Parameters&, Slice, double keys) noexcept = nullptr;

  // The false-positive rate of a slice once it has its share of Parameters::keys, or its present
  // rate until its keys expire. nullptr: the kind keeps its rate on any stream.
  double (*fpr_to_come)(const Parameters&, ConstSlice) noexcept = nullptr;
};

// An option worth trying beside what a kind derives by itself (core/advise).
struct OptionToTry {
  const char* name;
  const char* value;
  bool has_model = true;  // its rates can be predicted
};

// When a kind forgets a key. Trees, advice and what is done about an overfull filter depend on it.
enum class Forgets : std::uint8_t {
  in_its_own_time,  // by the keys that came to the filter after it, or by chance
  when_full,        // where there is no room left, and with a window after it
  after_window,     // the option `window`, which must be given, says when, whatever else comes
  never,
};

struct FilterOps {
  Kind kind;
  const char* name;
  const char* summary;  // one line, for people who choose a kind
  std::span<const OptionSpec> options;
  WordSet chosen_by = 0;  // options of a window that `auto` takes, too: it then is this kind
  bool has_blocked_layout = false;
  bool keeps_fpr_forever = false;  // without `keys`, on any stream
  // Then `keys`, if it is given, says how many are to be remembered. Other kinds that forget would
  // need far too much memory.
  bool remembers_keys = false;
  bool has_probes = false;   // keys can have several probes: any slicing (layout.hpp)
  bool counts_only = false;  // counts distinct keys, and finds repeats only while there are few
  Forgets forgets = Forgets::in_its_own_time;

  // A value that is mostly as it was when it was empty is stored as what differs
  // (filter/sparse_form.hpp). false: the kind has a compact form of its own, or none.
  bool has_sparse_form = true;

  // Does the kind use an element's importance, or time? nullptr: never.
  bool (*uses_importance)(const Parameters&) noexcept = nullptr;
  bool (*uses_time)(const Parameters&) noexcept = nullptr;

  // True if inserting a key that is there changes more than counters. nullptr: never.
  bool (*learns_from_repeats)(const Parameters&) noexcept = nullptr;

  // Checks the given parameters and derives the others, for slices of slice_bytes each.
  bool (*derive)(Definition& definition, Problem& problem) noexcept;

  // True if nothing can be derived without the number of keys. nullptr: never.
  bool (*needs_keys)(const Definition& definition) noexcept = nullptr;

  // Writes all bytes of an empty slice that are not zero. nullptr: there are none.
  void (*init)(const Parameters&, Slice) noexcept = nullptr;

  // Adds the memory that `test` and `insert` will read to the prefetches. nullptr: not worth it.
  void (*prefetch)(const Parameters&, ConstSlice, const Element&, Prefetches&) noexcept = nullptr;

  // True if all that a slice has of a key lies in the one line that `prefetch` fetches. nullptr:
  // never.
  bool (*in_one_line)(const Parameters&, const SliceState&) noexcept = nullptr;

  // Returns true if the key was (probably) seen, however late this event is. Changes nothing.
  bool (*test)(const Parameters&, ConstSlice, const Element&) noexcept;

  // Returns true if the key was (probably) seen before and the event is not late, and remembers it.
  bool (*insert)(const Parameters&, Slice, const Element&) noexcept;

  // True if this event, if it is a repeat, moves the time of its key, which others want to know.
  // Ask before it is inserted. nullptr: repeats never do.
  bool (*renews)(const Parameters&, ConstSlice, const Element&) noexcept = nullptr;

  // The window, within which an event is a repeat of another one (timing_options.hpp). nullptr:
  // keys never expire.
  WindowTicks (*window)(const Parameters&) noexcept = nullptr;

  // Where events tell the time: the start of this slice's present, in microseconds; not finite: no
  // event has come. Safe while others write. nullptr: the kind has no clock.
  std::int64_t (*clock)(const Parameters&, ConstSlice) noexcept = nullptr;

  // Forgets one key; false if it was not there. nullptr: the kind cannot.
  bool (*erase)(const Parameters&, Slice, const Element&) noexcept = nullptr;

  // Adds the keys of `from` to `into`, and its `inserted_new`. If both together exceed the
  // parameters, forgets so much of both that the false-positive rate stays within its bound,
  // without preferring either side. nullptr: the kind cannot.
  void (*merge)(const Parameters&, Slice into, ConstSlice from) noexcept = nullptr;

  // Called after the last of several merges into a slice and their `insertions`, for what depends
  // on all of them. nullptr: nothing does.
  void (*settle)(const Parameters&, Slice) noexcept = nullptr;

  // True if these bytes can be a slice of this kind. Must be safe on any bytes.
  bool (*check)(const Parameters&, ConstSlice) noexcept;

  Estimate (*estimate)(const Parameters&, ConstSlice) noexcept;

  // The relative standard error of Estimate::distinct once keys are many. nullptr: not known.
  double (*distinct_error)(const Parameters&) noexcept = nullptr;

  // Upper bound of the false-positive rate by the parameters: with `keys`, up to that many distinct
  // keys; otherwise for ever. 1: no promise.
  double (*fpr_bound)(const Parameters&) noexcept;

  // The load of a slice: a whole number with which its false-positive rate grows; and the highest
  // rate that a slice of this load can have. Safe while others write. nullptr: the rate never
  // exceeds fpr_bound, on any stream and after any resize.
  std::uint64_t (*load)(const Parameters&, ConstSlice) noexcept = nullptr;
  double (*rate_at)(const Parameters&, double load) noexcept = nullptr;

  // The predicted false-negative rate of a key last seen `gap` elements ago.
  double (*fnr_at)(const Parameters&, double gap) noexcept = nullptr;

  // The number of distinct keys up to which no more are lost than the kind calls none: so many are
  // what `keys` asks for where the kind remembers_keys. nullptr: those with an fnr_at of 1 %.
  double (*held_keys)(const Parameters&) noexcept = nullptr;

  // The predicted error rates of an empty filter on a stream whose rows have importance 0. nullptr:
  // the kind has no such model.
  Prediction (*predict)(const Parameters&, const Stream&) noexcept = nullptr;

  // Puts a new key into one of its probes, whatever the slice holds; Element.hash is the probe's.
  // nullptr: `insert` does the same.
  void (*insert_unconditionally)(const Parameters&, Slice, const Element&) noexcept = nullptr;

  // For kinds with ranks in the order of recency (tuning.hpp): the number of ranks of a bucket, up
  // to kMaxRanks; 0 if these parameters keep another order. nullptr: never.
  unsigned (*ranks)(const Parameters&) noexcept = nullptr;

  // Number of buckets of a slice.
  double (*buckets)(const Parameters&) noexcept = nullptr;

  // Like `test`, but returns the key's rank, 0 for the front; kNoRank if it was not there.
  unsigned (*find_rank)(const Parameters&, ConstSlice, const Element&) noexcept = nullptr;

  // `promote` (filter.hpp) in one step, without the counters of a slice. nullptr: `test`, then
  // `insert`.
  bool (*promote)(const Parameters&, Slice, const Element&, unsigned& rank) noexcept = nullptr;

  // `share_stream` (filter.hpp) for a slice. nullptr: nothing to do.
  void (*share)(const Parameters&, Slice) noexcept = nullptr;

  // True if `merge` can keep what the parameters promise. nullptr: always.
  bool (*fits)(const Parameters&, ConstSlice into, ConstSlice from) noexcept = nullptr;

  std::span<const OptionToTry> to_try = {};

  // The `k` to advise for so many keys in so many bits where no derived one keeps fpr. nullptr:
  // none.
  unsigned (*k_beyond_fpr)(double bits, double keys) noexcept = nullptr;

  Resizing resize = {};

  // Adds what two slices of the same number tell of the keys that they share; may change their
  // form. False: that is not known. nullptr: never.
  bool (*compare)(const Parameters&, Slice, Slice,
                  exa_log_log_model::JointLikelihood&) noexcept = nullptr;
};

constexpr unsigned kMaxRanks = 64;
constexpr unsigned kNoRank = ~0u;

// For kinds that use importance or time whatever their parameters.
inline bool always(const Parameters&) noexcept { return true; }

}  // namespace streamfilter
