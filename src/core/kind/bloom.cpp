// The Bloom filter (Bloom 1970; Deng, Rafiei 2006 §2.3): m bits, K of them set for every key,
// nothing ever cleared. No false negatives; the false-positive rate grows with the number of
// distinct keys.
//
// With `grow` (Koloniari et al. 2011 §5), a slice is cut into filters of equal size. When the
// newest exceeds its limit of set bits (density) or accepted keys (cardinality), the next filter
// takes over. Lookups search all filters, and new keys go into the newest. When memory is used up,
// the last filter takes all further keys.
//
// Copies of such a filter can be filled with parts of one stream and then merged. For that, a key's
// hash chooses one of the filters that were not full when sharing began. The merged filters are
// then as full as if one filter had been filled, and no fuller than filters that are filled in
// turn.
//
// With layout blocked, the K bits of a key, all different, lie in one 64-byte line. Lines fill
// unevenly, which the rate allows for.

#include "core/base/math_policy.hpp"
#include "core/format/counting_cells.hpp"
#include "core/kind/kind_list.hpp"
#include "core/kind/kind_tools.hpp"
#include "core/model/blocked_model.hpp"
#include "core/model/slicing_model.hpp"

namespace streamfilter {
namespace {

// kBits: m, the bits of one filter; with `grow`, kFilters: how many of them a slice can have, and
// kLimit: the bits or keys of one; with layout blocked, kLineBits: the bits of a line
enum Word : unsigned { kK, kBits, kGrow, kFilters, kLimit, kLineBits };

enum Grow : std::uint64_t { none, density, cardinality };

constexpr std::uint64_t kGrownFilters = 8;
constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 62;  // counters stop here

constexpr unsigned kMaxHashes = 64;

// More hashes are never derived: they cost time, and at this number false positives are already
// rarer than one in ten thousand million.
constexpr double kMaxDerivedHashes = 16;

constexpr OptionSpec kOptions[] = {
    integer_option(kK, "k", 1, kMaxHashes),
    grow_option(kGrow),
    integer_option(kLimit, "limit", 1, 0x1p62),
};

using Bits = PackedCells<1>;
using ConstBits = PackedCells<1, const unsigned char>;

auto& ones(auto& state) noexcept { return state.own[0]; }

// Only with layout blocked: after a resize has joined lines, ones are spread less evenly than keys
// alone would spread them. The rate is then that of so many more keys.
auto& uneven_keys(auto& state) noexcept { return state.own[4]; }

// Only with `grow`:
auto& newest(auto& state) noexcept { return state.own[1]; }  // index of the filter
auto& newest_ones(auto& state) noexcept { return state.own[2]; }
auto& newest_keys(auto& state) noexcept { return state.own[3]; }

// While a stream is shared: kShared, the filter that was the newest when sharing began, and its
// free room in 1/kWholeRoom of a filter. Otherwise: how many of the keys that the bits seem to hold
// are copies made by a resize.
std::uint64_t& sharing_or_copies(SliceState& state) noexcept { return state.own[4]; }

constexpr std::uint64_t kShared = std::uint64_t{1} << 63, kWholeRoom = 1 << 16;
constexpr unsigned kFirstShift = 32;

std::uint64_t sharing(const SliceState& state) noexcept {
  return state.own[4] >= kShared ? state.own[4] : 0;
}
std::uint64_t copies(const SliceState& state) noexcept {
  return state.own[4] < kShared ? state.own[4] : 0;
}

std::uint64_t first_of(std::uint64_t shared) noexcept { return (shared & ~kShared) >> kFirstShift; }
std::uint64_t room_of(std::uint64_t shared) noexcept {
  return shared & ((std::uint64_t{1} << kFirstShift) - 1);
}

// A key's bits in one slice: all k, or fewer if the key lies in several slices.
unsigned own_k(const Parameters& p) noexcept {
  return static_cast<unsigned>(bits_per_probe(p, p.integer(kK)));
}
double real_k(const Parameters& p) noexcept { return own_k(p); }
double real_m(const Parameters& p) noexcept { return to_real(p.integer(kBits)); }
double filters(const Parameters& p) noexcept { return to_real(p.integer(kFilters)); }

std::uint64_t filter_bytes(const Parameters& p) noexcept { return p.integer(kBits) / 8; }

double lines(const Parameters& p) noexcept { return real_m(p) / to_real(p.integer(kLineBits)); }

slicing_model::SlicingShape shape_of(const Parameters& p) noexcept {
  return slicing_model::shape_of(p, to_real(p.integer(kK)), real_m(p));
}

// Deng, Rafiei 2006 §2.3: FP = (1 - (1 - 1/m)^(Kn))^K for n keys in m bits, scattered. The keys are
// those of the slices that a key can be in.
double rate(const Parameters& p, double keys) noexcept {
  return p.layout == Layout::blocked ? blocked_model::blocked_bound(real_k(p), keys, lines(p))
                                     : slicing_model::group_rate(shape_of(p), keys);
}

// A blocked filter mostly does best with fewer hashes than a scattered one.
std::uint64_t best_k(const Parameters& p, double keys) noexcept {
  return p.layout == Layout::blocked
             ? blocked_model::best_k_by_bound(keys, lines(p), kMaxDerivedHashes)
             : timing_model::best_k(keys, real_m(p) * slices_of_group(p));
}

// Keys spread unevenly over slices; the estimate is that of the fullest slice.
double expected_keys(const Parameters& p) noexcept {
  return keys_of_fullest(to_real(p.keys), groups_of(p));
}

bool needs_keys(Problem& problem) noexcept {
  problem.set(Error::conflict, "kind bloom needs to know how many distinct keys to expect");
  problem.add_detail(
      "A Bloom filter never forgets, so it keeps its false-positive rate only up "
      "to a number of keys.");
  return problem.add_hint(
      "Give option keys (or k), or use a kind that forgets old keys, such as "
      "sbf.");
}

// The slices of a part are loaded unevenly, too; each key counts once for each of its probes.
double expected_puts(const Parameters& p) noexcept {
  const slicing_model::SlicingShape shape = shape_of(p);
  return keys_of_fullest(expected_keys(p) * shape.k1, shape.slices);
}

// The number of distinct keys that a filter has seen when the next one takes over; infinity: never.
// A key with several probes is counted in each of its slices, because a slice cannot tell which of
// them are new.
double keys_of_one(const Parameters& p) noexcept {
  const double limit = to_real(p.integer(kLimit));
  if (p.integer(kGrow) != cardinality) return counted_keys(limit, real_m(p), real_k(p));
  return shape_of(p).k1 > 1 ? limit : timing_model::keys_for(real_k(p), limit, real_m(p));
}

// Keys in the newest filter, when `full` filters before it took `each`.
double keys_in_newest(double keys, double full, double each) noexcept {
  return full > 0 ? keys - full * each : keys;
}

// All filters but the last are full; the last key before the limit can set K more bits.
double grown_rate(const Parameters& p) noexcept {
  const double k = real_k(p), m = real_m(p), keys = expected_puts(p), each = keys_of_one(p);
  const double full = std::clamp(std::ceil(keys / each) - 1, 0.0, filters(p) - 1);
  const double one = p.integer(kGrow) == density
                         ? std::pow(std::min(1.0, (to_real(p.integer(kLimit)) + k) / m), k)
                         : timing_model::rate(k, each, m);
  const double last = timing_model::rate(k, keys_in_newest(keys, full, each), m);
  return std::pow(1 - (1 - timing_model::rate_of_filters(one, full)) * (1 - last), shape_of(p).k1);
}

// Shares fpr out among the filters so that all of them together keep it.
bool derive_growth(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  const bool derived = !definition.has(kK);
  if (derived && p.keys == 0) return needs_keys(problem);
  if (p.layout == Layout::blocked) {
    problem.set(Error::unsupported, "kind bloom has no layout \"blocked\" with option grow");
    return problem.add_hint("Use layout scattered, or no grow.");
  }
  p.set_integer(kFilters, kGrownFilters);
  p.set_integer(kBits, body_bytes(p) / kGrownFilters / 8 * 64);
  const double fpr = definition.wanted_fpr();
  if (derived) p.set_integer(kK, timing_model::growing_k(fpr, p.slicing, filters(p)));
  if (!definition.has(kLimit))
    p.set_integer(kLimit, timing_model::growing_limit(p.integer(kGrow) == density, fpr, filters(p),
                                                      shape_of(p).k1, real_k(p), real_m(p)));
  if (!derived || grown_rate(p) <= definition.wanted_fpr() || definition.break_fpr(words(kGrow)))
    return true;
  problem.set(Error::conflict, "kind bloom cannot keep fpr %g for %llu keys in %llu bytes",
              definition.wanted_fpr(), llu(p.keys), llu(p.memory));
  problem.add_detail("Its filters hold %.0f keys.",
                     keys_of_one(p) * filters(p) * p.slices / shape_of(p).k1);
  return problem.add_hint("Use more memory, a larger fpr, or no grow.");
}

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (p.integer(kGrow) != none) return derive_growth(definition, problem);
  if (definition.has(kLimit)) return limit_needs_grow(problem);
  p.set_integer(kBits, Bits::capacity(body_bytes(p)));
  if (p.layout == Layout::blocked) p.set_integer(kLineBits, kRegionLineBytes * 8);
  if (definition.has(kK)) return true;
  if (p.keys == 0) return needs_keys(problem);
  p.set_integer(kK, best_k(p, expected_keys(p)));
  return true;
}

// Filter number `index` of a slice.
ConstBits bits_of(const Parameters& p, ConstSlice slice, std::uint64_t index) noexcept {
  return ConstBits(slice.body() + index * filter_bytes(p));
}
Bits bits_of(const Parameters& p, Slice slice, std::uint64_t index) noexcept {
  return Bits(slice.body() + index * filter_bytes(p));
}

// Calls `visit` with each bit of a key, counted from the start of a filter, until it returns false.
template <typename Visit>
bool all_bits(const Parameters& p, std::uint64_t hash, Visit visit) noexcept {
  const unsigned k = own_k(p);
  if (p.layout == Layout::blocked) {
    const std::uint64_t line = region_start(p, filter_bytes(p), hash) * 8;
    std::uint64_t at[kMaxHashes];
    find_cells(p, hash, k, p.integer(kLineBits), at);
    return std::all_of(at, at + k, [&](std::uint64_t bit) { return visit(line + bit); });
  }
  const std::uint64_t m = p.integer(kBits);
  for (unsigned i = 0; i < k; ++i)
    if (!visit(position(hash, i, m))) return false;
  return true;
}

bool has(const Parameters& p, ConstBits bits, std::uint64_t hash) noexcept {
  return all_bits(p, hash, [&](std::uint64_t at) { return bits.get(at) != 0; });
}

// Prefetches the newest filter: with `grow`, it has most of the recent keys.
void prefetch(const Parameters& p, ConstSlice slice, const Element& element,
              Prefetches& prefetches) noexcept {
  prefetch_cells(p, slice.body() + newest(*slice.state) * filter_bytes(p), filter_bytes(p),
                 element.hash, own_k(p),
                 p.layout == Layout::blocked ? p.integer(kLineBits) : p.integer(kBits), 1,
                 prefetches);
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  for (std::uint64_t i = newest(*slice.state) + 1; i > 0; --i)
    if (has(p, bits_of(p, slice, i - 1), element.hash)) return true;
  return false;
}

// Sets the bits of a key; returns how many of them were unset.
std::uint64_t add(const Parameters& p, Bits bits, std::uint64_t hash) noexcept {
  std::uint64_t fresh = 0;
  all_bits(p, hash, [&](std::uint64_t at) {
    if (bits.get(at) == 0) {
      bits.set(at, 1);
      ++fresh;
    }
    return true;
  });
  return fresh;
}

// While a stream is shared: the filter that a key goes into.
std::uint64_t shared_filter(const Parameters& p, const SliceState& state,
                            std::uint64_t hash) noexcept {
  const std::uint64_t first = first_of(sharing(state)), room = room_of(sharing(state)),
                      whole = p.integer(kFilters) - 1 - first;
  const std::uint64_t all = room + whole * kWholeRoom;
  if (all == 0) return first;
  const std::uint64_t at = scale(mix64(hash + kGoldenRatio), all);
  return at < room ? first : first + 1 + (at - room) / kWholeRoom;
}

void insert_shared(const Parameters& p, Slice slice, std::uint64_t hash) noexcept {
  SliceState& state = *slice.state;
  const std::uint64_t index = shared_filter(p, state, hash),
                      fresh = add(p, bits_of(p, slice, index), hash);
  ones(state) += fresh;
  if (index != newest(state)) return;
  newest_ones(state) += fresh;
  newest_keys(state) += newest_keys(state) < kMaxKeys;
}

// The number that option `grow` compares with its limit.
std::uint64_t newest_load(const Parameters& p, const SliceState& state) noexcept {
  return p.integer(kGrow) == density ? newest_ones(state) : newest_keys(state);
}

void insert_growing(const Parameters& p, Slice slice, std::uint64_t hash) noexcept {
  SliceState& state = *slice.state;
  if (sharing(state) != 0) return insert_shared(p, slice, hash);
  if (newest_load(p, state) >= p.integer(kLimit) && newest(state) + 1 < p.integer(kFilters)) {
    ++newest(state);
    newest_ones(state) = newest_keys(state) = 0;
  }
  const std::uint64_t fresh = add(p, bits_of(p, slice, newest(state)), hash);
  ones(state) += fresh;
  newest_ones(state) += fresh;
  newest_keys(state) += newest_keys(state) < kMaxKeys;
}

void insert_unconditionally(const Parameters& p, Slice slice, const Element& element) noexcept {
  if (p.integer(kGrow) != none)
    insert_growing(p, slice, element.hash);
  else
    ones(*slice.state) += add(p, Bits(slice.body()), element.hash);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  if (p.integer(kGrow) != none) {
    if (test(p, as_const(slice), element)) return true;
    insert_growing(p, slice, element.hash);
    return false;
  }
  const std::uint64_t fresh = add(p, Bits(slice.body()), element.hash);
  ones(*slice.state) += fresh;
  return fresh == 0;
}

std::uint64_t count_ones(const unsigned char* body, std::uint64_t bytes) noexcept {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, body + i, 8);
    count += static_cast<std::uint64_t>(__builtin_popcountll(word));
  }
  return count;
}

void share(const Parameters& p, Slice slice) noexcept {
  SliceState& state = *slice.state;
  if (p.integer(kGrow) == none || sharing(state) != 0) return;
  const std::uint64_t limit = p.integer(kLimit), last = p.integer(kFilters) - 1;
  const double room = 1 - to_real(std::min(newest_load(p, state), limit)) / to_real(limit);
  sharing_or_copies(state) = kShared | newest(state) << kFirstShift |
                             static_cast<std::uint64_t>(room * to_real(kWholeRoom));
  if (newest(state) != last) newest_ones(state) = newest_keys(state) = 0;
  newest(state) = last;
}

// Filters that were filled in turn cannot be merged within the limit, unless one filter holds the
// keys of both.
bool fits(const Parameters& p, ConstSlice into, ConstSlice from) noexcept {
  const SliceState &a = *into.state, &b = *from.state;
  if (p.integer(kGrow) == none || ones(a) == 0 || ones(b) == 0) return true;
  if (sharing(a) != sharing(b)) return false;
  return sharing(a) != 0 || (newest(a) == 0 && newest(b) == 0 &&
                             newest_load(p, a) + newest_load(p, b) <= p.integer(kLimit));
}

// The number of keys that would set so many bits in a filter that was never resized.
double keys_of_ones(const Parameters& p, std::uint64_t count) noexcept {
  return keys_of_share(to_real(count) / real_m(p), real_m(p), real_k(p));
}

double mean_rate_of_lines(const Parameters& p, ConstSlice slice) noexcept {
  double sum = 0;
  for (std::uint64_t start = 0; start < filter_bytes(p); start += kRegionLineBytes)
    sum += blocked_model::line_fpr(real_k(p),
                                   to_real(count_ones(slice.body() + start, kRegionLineBytes)));
  return sum / lines(p);
}

// Notes how much worse the rate is than the ones suggest, after a resize or merge has joined lines.
void note_lines(const Parameters& p, Slice slice) noexcept {
  const double by_ones = keys_of_ones(p, ones(*slice.state)), most = by_ones * 8 + lines(p),
               wanted = mean_rate_of_lines(p, as_const(slice));
  uneven_keys(*slice.state) = 0;
  if (!std::isfinite(most) || rate(p, by_ones) >= wanted) return;
  double low = by_ones, high = most;
  for (unsigned i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (rate(p, middle) < wanted ? low : high) = middle;
  }
  uneven_keys(*slice.state) = saturate<std::uint64_t>(std::ceil(high - by_ones));
}

// Without `grow`, a resize notes how many keys were known, and how many bits were set. Bits alone
// would mislead: a resize turns one bit into several, or several into one.
auto& known_ones(auto& state) noexcept { return state.own[2]; }
auto& known_keys(auto& state) noexcept { return state.own[3]; }

void note_known(SliceState& state, double keys) noexcept {
  known_ones(state) = ones(state);
  known_keys(state) = std::min(
      saturate<std::uint64_t>(std::isfinite(keys) ? std::max(0.0, std::round(keys)) : 0), kMaxKeys);
}

double distinct_of(const Parameters& p, const SliceState& state) noexcept {
  const double all = keys_of_ones(p, ones(state));
  if (known_ones(state) == 0) return all;
  return to_real(known_keys(state)) + std::max(0.0, all - keys_of_ones(p, known_ones(state)));
}

// By how many keys the bits suggest more, since a resize. A union has those of the side that has
// more.
double copied_keys(const Parameters& p, const SliceState& state) noexcept {
  return known_ones(state) > 0 ? keys_of_ones(p, known_ones(state)) - to_real(known_keys(state))
                               : 0;
}

// Merges the first filters of both slices, the second ones, and so on.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  SliceState& state = *into.state;
  state.inserted_new += from.state->inserted_new;
  if (ones(*from.state) == 0) return;
  if (ones(state) == 0) {
    std::memcpy(into.body(), from.body(), into.bytes);
    std::memcpy(state.own, from.state->own, sizeof state.own);
    return;
  }
  const double own = copied_keys(p, state), other = copied_keys(p, *from.state),
               more = std::fabs(own) > std::fabs(other) ? own : other;
  for (std::uint64_t i = 0; i < into.bytes; ++i) into.body()[i] |= from.body()[i];
  ones(state) = count_ones(into.body(), into.bytes);
  if (p.integer(kGrow) == none) {
    if (more != 0) note_known(state, keys_of_ones(p, ones(state)) - more);
    if ((uneven_keys(state) | uneven_keys(*from.state)) != 0) note_lines(p, into);
    return;
  }
  const std::uint64_t keys = newest(*from.state) < newest(state) ? 0 : newest_keys(*from.state);
  if (newest(state) < newest(*from.state)) newest_keys(state) = 0;
  newest(state) = std::max(newest(state), newest(*from.state));
  newest_keys(state) = std::min(newest_keys(state) + keys, kMaxKeys);
  if (sharing(state) == 0) sharing_or_copies(state) = std::max(copies(state), copies(*from.state));
  newest_ones(state) = count_ones(into.body() + newest(state) * filter_bytes(p), filter_bytes(p));
}

// ---- another size

std::uint64_t places(const Parameters& p) noexcept {
  return p.layout == Layout::blocked ? filter_bytes(p) / kRegionLineBytes : p.integer(kBits);
}

// Converts each filter of a slice.
void spread_grown(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
                  std::uint64_t layer) noexcept {
  SliceState& state = *into.state;
  std::memcpy(state.own, from.state->own, sizeof state.own);
  for (std::uint64_t i = 0; i <= newest(state); ++i) {
    const Bits target = bits_of(p, into, i);
    const ConstBits source = bits_of(old, from, i);
    for_each_place(old.integer(kBits), p.integer(kBits), layer,
                   [&](std::uint64_t at, std::uint64_t old_at) {
                     if (source.get(old_at) != 0) target.set(at, 1);
                   });
  }
  ones(state) = count_ones(into.body(), into.bytes);
  newest_ones(state) = count_ones(into.body() + newest(state) * filter_bytes(p), filter_bytes(p));
}

void spread(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
            std::uint64_t layer) noexcept {
  if (p.integer(kGrow) != none) return spread_grown(old, from, p, into, layer);
  const bool blocked = p.layout == Layout::blocked;
  ones(*into.state) = spread_regions(p, from, into, old.integer(kBits),
                                     p.integer(blocked ? kLineBits : kBits), 1, layer);
}

double all_grown(const Parameters& p, const SliceState& state) noexcept;

// Estimates the keys in the newest filter from its bits, so that the next filter opens in time.
void note_grown(const Parameters& p, Slice slice, double keys) noexcept {
  SliceState& state = *slice.state;
  const double filled = keys_of_ones(p, newest_ones(state));
  newest_keys(state) = std::min(saturate<std::uint64_t>(std::ceil(filled)), kMaxKeys);
  if (sharing(state) != 0) return;
  const double more = all_grown(p, state) - keys;
  // At least 1, to note that the filter was resized.
  sharing_or_copies(state) =
      std::clamp(saturate<std::uint64_t>(std::round(more)), std::uint64_t{1}, kMaxKeys);
}

void note_keys(const Parameters& p, Slice slice, double keys) noexcept {
  if (p.integer(kGrow) != none) return note_grown(p, slice, keys);
  if (p.layout == Layout::blocked) note_lines(p, slice);
  note_known(*slice.state, keys);
}

// The number of keys that would give a filter that was never resized the present rate.
double keys_of_rate(const Parameters& p, const SliceState& state) noexcept {
  return keys_of_ones(p, ones(state)) +
         (p.layout == Layout::blocked ? to_real(uneven_keys(state)) : 0);
}

// The number of keys that the bits suggest; filters before the newest are about equally full.
double all_grown(const Parameters& p, const SliceState& state) noexcept {
  const double last = to_real(newest_ones(state)) / real_m(p), full = to_real(newest(state)),
               share = full > 0 ? (to_real(ones(state)) / real_m(p) - last) / full : 0;
  return -real_m(p) / real_k(p) * (full * std::log1p(-share) + std::log1p(-last));
}

// The keys still to come fill the newest filter up to its limit, then the next ones.
double grown_to_come(const Parameters& p, ConstSlice slice) noexcept {
  const double known = all_grown(p, *slice.state) - to_real(copies(*slice.state)),
               each = keys_of_one(p);
  double more = std::max(0.0, expected_puts(p) - std::max(0.0, known)), none_has = 1;
  for (std::uint64_t i = 0; i < p.integer(kFilters); ++i) {
    const double held =
        keys_of_ones(p, count_ones(slice.body() + i * filter_bytes(p), filter_bytes(p)));
    double taken = 0;
    if (i >= newest(*slice.state)) {
      taken = i + 1 < p.integer(kFilters) ? std::clamp(each - held, 0.0, more) : more;
      more -= taken;
    }
    none_has *= 1 - timing_model::rate(real_k(p), held + taken, real_m(p));
  }
  return std::pow(1 - none_has, shape_of(p).k1);
}

double fpr_to_come(const Parameters& p, ConstSlice slice) noexcept {
  if (p.keys == 0) return 0;
  if (p.integer(kGrow) != none) return grown_to_come(p, slice);
  const slicing_model::SlicingShape shape = shape_of(p);
  const double each = shape.slices / shape.k1,  // keys of the group for each key that the slice has
      more = std::max(0.0, to_real(p.keys) / groups_of(p) - each * distinct_of(p, *slice.state));
  return rate(p, each * keys_of_rate(p, *slice.state) + more);
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  const SliceState& state = *slice.state;
  const std::uint64_t most = p.integer(kGrow) == none ? 1 : p.integer(kFilters);
  if (newest(state) >= most || ones(state) != count_ones(slice.body(), slice.bytes)) return false;
  if (p.integer(kGrow) == none)
    return known_ones(state) <= ones(state) && known_keys(state) <= kMaxKeys &&
           (known_ones(state) > 0 || known_keys(state) == 0) && uneven_keys(state) <= kMaxKeys;
  if (sharing(state) != 0 && (newest(state) + 1 != most || first_of(sharing(state)) >= most ||
                              room_of(sharing(state)) > kWholeRoom))
    return false;
  const std::uint64_t start = newest(state) * filter_bytes(p), end = start + filter_bytes(p);
  return newest_keys(state) <= kMaxKeys && copies(state) <= kMaxKeys &&
         newest_ones(state) == count_ones(slice.body() + start, filter_bytes(p)) &&
         count_ones(slice.body() + end, slice.bytes - end) == 0;
}

// Filters before the newest are about equally full, except after a resize.
double grown_rate_now(const Parameters& p, ConstSlice slice) noexcept {
  const SliceState& state = *slice.state;
  const double m = real_m(p), k = real_k(p), full = to_real(newest(state)),
               last = to_real(newest_ones(state)) / m;
  double none_has = 1 - std::pow(last, k);
  if (copies(state) == 0) {
    const double share = full > 0 ? (to_real(ones(state)) / m - last) / full : 0;
    return 1 - none_has * (1 - timing_model::rate_of_filters(std::pow(share, k), full));
  }
  for (std::uint64_t i = 0; i < newest(state); ++i)
    none_has *=
        1 -
        std::pow(to_real(count_ones(slice.body() + i * filter_bytes(p), filter_bytes(p))) / m, k);
  return 1 - none_has;
}

// The number of distinct keys that would have set the present bits.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const double m = real_m(p), k = real_k(p), all = to_real(ones(*slice.state));
  if (p.integer(kGrow) == none) {
    return {
        all / m,
        p.layout == Layout::blocked ? rate(p, keys_of_rate(p, *slice.state)) : std::pow(all / m, k),
        distinct_of(p, *slice.state)};
  }
  return {all / m / filters(p), grown_rate_now(p, slice),
          std::max(0.0, all_grown(p, *slice.state) - to_real(copies(*slice.state)))};
}

std::uint64_t load(const Parameters& p, ConstSlice slice) noexcept {
  const std::uint64_t uneven = p.layout == Layout::blocked ? uneven_keys(*slice.state) : 0;
  return ones(*slice.state) + std::min(uneven, kMaxKeys / kMaxHashes) * own_k(p);
}

// With `grow`, the rate is highest if all ones lie in one filter.
double rate_at(const Parameters& p, double load) noexcept {
  const double m = real_m(p), share = std::min(load / m, 1.0);
  if (p.layout != Layout::blocked) return std::pow(share, real_k(p));
  return share < 1 ? rate(p, keys_of_ones(p, static_cast<std::uint64_t>(load))) : 1;
}

double fpr_bound(const Parameters& p) noexcept {
  if (p.keys == 0) return 1;
  if (p.integer(kGrow) != none) return grown_rate(p);
  return rate(p, expected_keys(p));
}

double fnr_at(const Parameters&, double) noexcept { return 0; }

// The rate after n distinct keys. With `grow`, these lie in full filters and the newest.
double rate_after(const Parameters& p, double n) noexcept {
  const slicing_model::SlicingShape shape = shape_of(p);
  if (p.layout == Layout::blocked) return rate(p, n / p.slices);
  if (p.integer(kGrow) == none) return slicing_model::rate(shape, n);
  const double k = real_k(p), m = real_m(p), puts = n * shape.k1 / p.slices;
  const double each = keys_of_one(p), full = std::min(std::floor(puts / each), filters(p) - 1);
  const double one = timing_model::rate(k, each, m);
  return std::pow(1 - (1 - timing_model::rate_of_filters(one, full)) *
                          (1 - timing_model::rate(k, keys_in_newest(puts, full, each), m)),
                  shape.k1);
}

// A Bloom filter's false positives depend on the number of distinct keys alone.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  return {
      exact_store_model::mean_fpr(stream.distinct(), [&](double n) { return rate_after(p, n); }),
      stream.repeats() > 0 ? 0 : std::numeric_limits<double>::quiet_NaN()};
}

// ln(2) m/n.
unsigned k_beyond_fpr(double bits, double keys) noexcept {
  return static_cast<unsigned>(std::clamp(std::round(std::log(2) * bits / keys), 1.0, 16.0));
}

}  // namespace

const FilterOps bloom_ops = {
    .kind = Kind::bloom,
    .name = "bloom",
    .summary = "classic Bloom filter: no false negatives, for a known number of distinct keys",
    .options = kOptions,
    .has_blocked_layout = true,
    .has_probes = true,
    .forgets = Forgets::never,
    .derive = derive,
    .needs_keys = [](const Definition& definition) noexcept { return !definition.has(kK); },
    .prefetch = prefetch,
    .in_one_line = [](const Parameters& p,
                      const SliceState&) noexcept { return p.layout == Layout::blocked; },
    .test = test,
    .insert = insert,
    .merge = merge,
    .check = check,
    .estimate = estimate,
    .fpr_bound = fpr_bound,
    .load = load,
    .rate_at = rate_at,
    .fnr_at = fnr_at,
    .predict = predict,
    .insert_unconditionally = insert_unconditionally,
    .share = share,
    .fits = fits,
    .k_beyond_fpr = k_beyond_fpr,
    .resize = {.sized = words(kBits, kLimit),
               .hashes = words(kK),
               .places = places,
               .spread = spread,
               .note_keys = note_keys,
               .fpr_to_come = fpr_to_come},
};

}  // namespace streamfilter
