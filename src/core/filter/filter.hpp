// Operations on a whole filter, which the host calls on a block of bytes.
#pragma once

#include "core/filter/definition_text.hpp"
#include "core/kind/timing_options.hpp"

namespace streamfilter {

// Writes the header of an empty filter with complete parameters. format_slice then formats the
// slices one by one, so that a host can pause in between.
void format_header(Header* header, const Parameters& parameters) noexcept;
void format_slice(Header* header, std::uint32_t index) noexcept;

// Makes an empty slice number `index` of a filter with these parameters, in any place.
void format_slice(const Parameters& parameters, Slice slice, std::uint32_t index) noexcept;

// format_slice for a block of zeros: writes only bytes that must change.
void format_zeroes(Header* header, std::uint32_t index) noexcept;

// Makes an empty filter in block_bytes (8-byte aligned).
void format(Header* header, const Parameters& parameters) noexcept;

// Is this a filter? Every door (text, binary, image, file of unlogged filters, C library) calls
// this one function. `length` is the number of bytes, which need 8-byte alignment. Safe on any
// bytes. Errors: corrupt, newer_version.
bool check(const void* bytes, std::size_t length, Problem& problem) noexcept;

// Checks only the header.
bool check_header(const Header& header, Problem& problem) noexcept;

// Can bytes of this version of the format be read?
bool check_version(unsigned version, Problem& problem) noexcept;

inline const FilterOps& ops_of(const Header* header) noexcept {
  return *find_ops(header->parameters.kind);
}

// Checks one slice, number `index`, of parameters that have passed check_header.
bool check_slice(const Parameters& parameters, ConstSlice slice, std::uint32_t index,
                 Problem& problem) noexcept;

// These work on one probe, for hosts that lock each slice by itself. To insert a key, test its
// probes; if one says no, put the key in all of them, and count it in the slice of the first. Only
// for keys with several probes (k1 > 0), or with inserts_unconditionally.
bool test_probe(const Header* header, const Element& element, const KeyProbe& probe) noexcept;
void insert_probe(Header* header, const Element& element, const KeyProbe& probe) noexcept;
inline void count_insertion(Header* header, std::uint32_t slice, bool seen) noexcept {
  count_insertion(*slice_at(header, slice).state, seen);
}

// The functions below, for keys of several probes.
void prefetch_probes(const Header* header, const Element& element, Prefetches& prefetches) noexcept;
bool test_probes(const Header* header, const Element& element) noexcept;
bool insert_probes(Header* header, const Element& element) noexcept;

// These work on the slices of the block that probe_of(hash, i) names, in turn. `test` stops at the
// first probe that says no.
inline void prefetch(const Header* header, const Element& element,
                     Prefetches& prefetches) noexcept {
  const Parameters& parameters = header->parameters;
  const auto one = find_ops(parameters.kind)->prefetch;
  if (one == nullptr) return;
  if (parameters.k1 > 0) return prefetch_probes(header, element, prefetches);
  one(parameters, slice_at(header, slice_of(parameters, element.hash)), element, prefetches);
}

inline bool test(const Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  if (parameters.k1 > 0) return test_probes(header, element);
  return find_ops(parameters.kind)
      ->test(parameters, slice_at(header, slice_of(parameters, element.hash)), element);
}

// `test` for slices that lie elsewhere than behind their header.
bool test(const Parameters& parameters, const void* slices, const Element& element) noexcept;

inline bool insert(Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  if (parameters.k1 > 0) return insert_probes(header, element);
  const Slice slice = slice_at(header, slice_of(parameters, element.hash));
  const bool seen = find_ops(parameters.kind)->insert(parameters, slice, element);
  count_insertion(*slice.state, seen);
  return seen;
}

// Inserts many keys in order, and prefetches memory for the next ones meanwhile. Keys without
// has_key get seen[i] = false.
void insert_many(Header* header, const Element* elements, const bool* has_key, std::size_t count,
                 bool* seen) noexcept;

// `test`, and the rank where the key was found among ranks_of_bucket(); kNoRank if the kind has
// none.
bool test(const Header* header, const Element& element, unsigned& rank) noexcept;
unsigned ranks_of_bucket(const Parameters& parameters) noexcept;
double buckets_of(const Parameters& parameters) noexcept;  // buckets with ranks, in all slices

// For hosts that add new keys later, and know that the event is not late: was the key seen? If so,
// inserts it as a repeat; otherwise changes nothing. `rank` as in `test`.
bool promote(Header* header, const Element& element, unsigned& rank) noexcept;

// Would it move the time of its key (FilterOps::renews)?
inline bool renews(const Header* header, const Element& element) noexcept {
  const Parameters& parameters = header->parameters;
  const auto renews = find_ops(parameters.kind)->renews;
  return renews != nullptr &&
         renews(parameters, slice_at(header, slice_of(parameters, element.hash)), element);
}

// Start of the current tick in a key's slice; not finite if nothing tells it.
inline std::int64_t clock_of(const Header* header, std::uint64_t hash) noexcept {
  const Parameters& parameters = header->parameters;
  const auto clock = find_ops(parameters.kind)->clock;
  return clock == nullptr ? std::numeric_limits<std::int64_t>::min()
                          : clock(parameters, slice_at(header, slice_of(parameters, hash)));
}

// Is the event late (timing_options.hpp) by this clock?
inline bool is_late(const Parameters& parameters, const Element& element,
                    std::int64_t clock) noexcept {
  const WindowTicks window = window_of(parameters);
  return window.length != 0 && is_finite(element.time) &&
         is_late(tick_at(element.time, window.length), tick_at(clock, window.length), window.late);
}

bool erase(Header* header, const Element& element) noexcept;

// Remembers a key that was found new some time ago, for hosts that test first and remember later.
// Where keys expire, puts it in its probes even if it looks seen by now, because whatever makes it
// look so may expire earlier (`inserts_unconditionally`); elsewhere this is `insert`.
void insert_new(Header* header, const Element& element) noexcept;
bool inserts_unconditionally(const Parameters& parameters) noexcept;

// Adds the keys of slice `index` of `from` to the same slice of `into`; the filters are mergeable.
void merge_slice(Header* into, const Header* from, std::uint32_t index) noexcept;

// Merges a single slice of another filter.
void merge_slice(Header* into, ConstSlice from, std::uint32_t index) noexcept;

// The two steps of merge_slice, for hosts that add many filters to one: settle_slice comes last.
// Until then the filter can be used and stored as any other.
void merge_slice_unsettled(Header* into, ConstSlice from, std::uint32_t index) noexcept;
void settle_slice(Header* header, std::uint32_t index) noexcept;

// Call before several copies of this filter are filled, each with a part of one stream, and merged:
// prepares what would otherwise not fit together.
void share_stream(Header* header) noexcept;

// Are the two mergeable, and does their promise hold for the union? No stream can make this false
// for copies that share it (share_stream).
bool can_merge(const Header* into, const Header* from, Problem& problem) noexcept;

// Checks the same for one slice of mergeable filters.
bool fits_slice(const Parameters& parameters, ConstSlice into, ConstSlice from,
                Problem& problem) noexcept;

// Checks whether the two can be merged, then merges all slices.
bool merge(Header* into, const Header* from, Problem& problem) noexcept;

// Does the filter remember nothing?
bool is_empty(const Header* header) noexcept;

// Sums over slices.
struct Totals {
  std::uint64_t insertions = 0;
  std::uint64_t inserted_new = 0;
  Estimate estimate{};
  // Sums over the slices added so far:
  std::uint32_t slices = 0;
  double probe_fpr = 0;  // of the group that is being added
};
Totals totals(const Header* header) noexcept;

// Adds one slice to sums over `slices` slices; `totals` calls it for each, in order.
void add_slice(Totals& totals, const Parameters& parameters, ConstSlice slice) noexcept;

// Number of distinct keys that the filter has seen; NaN if its kind cannot tell. For a full filter
// sets `full`: the number is a lower bound.
double distinct_keys(const Header* header, bool& full) noexcept;

// Number of distinct keys that two mergeable filters have both seen, which have seen `first` and
// `second`, and its standard error. Can change the form of their slices. False: not known.
bool keys_of_both(Header* a, double first, Header* b, double second, double& both,
                  double& error) noexcept;

// Does a key use one line of 64 bytes and its slice's counters, and nothing else, whatever is done
// with it? Such a slice can be used before all of its lines are there. `state`: of one of them.
bool uses_one_line(const Parameters& parameters, const SliceState& state) noexcept;

// Bytes from the start of its slice to a key's line.
std::uint64_t line_of_key(const Header* header, std::uint64_t hash) noexcept;

}  // namespace streamfilter
