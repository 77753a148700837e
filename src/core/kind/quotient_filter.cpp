// The Streaming Quotient Filter (Dutta, Narang, Bera, VLDB 2013), Algorithm 1: a table of rows of k
// buckets. A key's fingerprint names a row and a signature; the key is a repeat if the signature is
// in the row. If not, it is stored there, in place of a random one when the row is full.

#include "core/kind/kind_list.hpp"
#include "core/kind/quotient_table.hpp"

namespace streamfilter {
namespace {

using namespace quotient;

constexpr OptionSpec kOptions[] = {
    kROption, kRPrimeOption, integer_option(kBuckets, "buckets", 1, quotient_model::kMaxBuckets),
    kPOption, kOmegaOption,  kFingerprintOption,
};

// With more than `keys` keys, derived parameters limit the false-positive rate to so many times
// fpr.
constexpr double kMaxBeyondKeys = 4;

// With fewer empty rows, linear counting says too little of the number of keys.
constexpr double kFewEmptyRows = 64;

auto& rows_in_use(auto& state) noexcept { return state.own[2]; }
auto& has_evicted(auto& state) noexcept { return state.own[3]; }  // 0 or 1

// How a row lies in memory. Its signatures are all different. If only few signatures exist, a
// bitmap says which of them are in the row: 4 bits for r, r', k = 2, 1, 4 and 12 bits for 4, 2, 4.
// Otherwise the buckets follow each other, empty ones last.
struct RowLayout {
  RowLayout(const Signatures& signatures, unsigned row_buckets) noexcept
      : buckets(row_buckets),
        width(signatures.width()),
        is_bitmap(signatures.count() <= PackedFields<>::kMaxBits &&
                  signatures.count() <= std::uint64_t{buckets} * width),
        bits(is_bitmap ? static_cast<unsigned>(signatures.count()) : buckets * width) {}

  explicit RowLayout(const Parameters& p) noexcept
      : RowLayout(Signatures(p), static_cast<unsigned>(p.integer(kBuckets))) {}

  unsigned buckets;
  unsigned width;
  bool is_bitmap;
  unsigned bits;
};

// One row, for reading and writing.
template <typename Byte>
class Row {
 public:
  Row(const RowLayout& layout, Byte* body, std::uint64_t bytes, std::uint64_t row) noexcept
      : layout_(layout), fields_(body, bytes), start_(row * layout.bits) {}

  bool contains(std::uint64_t code) const noexcept {
    if (layout_.is_bitmap) return bitmap() >> (code - 1) & 1;
    return find(code) < layout_.buckets;
  }

  unsigned size() const noexcept {
    if (layout_.is_bitmap) return static_cast<unsigned>(__builtin_popcountll(bitmap()));
    unsigned i = 0;
    while (i < layout_.buckets && get(i) != 0) ++i;
    return i;
  }

  // Adds a code that is not there; the row is not full.
  void add(std::uint64_t code, unsigned size) const noexcept {
    if (layout_.is_bitmap)
      set_bitmap(bitmap() | std::uint64_t{1} << (code - 1));
    else
      set(size, code);
  }

  // Code i of those in the row.
  std::uint64_t at(unsigned i) const noexcept {
    if (!layout_.is_bitmap) return get(i);
    std::uint64_t bits = bitmap();
    while (i-- > 0) bits &= bits - 1;
    return static_cast<unsigned>(__builtin_ctzll(bits)) + 1;
  }

  // Puts a code that is not there in place of code i.
  void replace(unsigned i, std::uint64_t code) const noexcept {
    if (layout_.is_bitmap)
      set_bitmap((bitmap() & ~(std::uint64_t{1} << (at(i) - 1))) | std::uint64_t{1} << (code - 1));
    else
      set(i, code);
  }

  // Removes a code of a row of `size`; false if it is not there.
  bool remove(std::uint64_t code, unsigned size) const noexcept {
    if (!contains(code)) return false;
    if (layout_.is_bitmap) {
      set_bitmap(bitmap() & ~(std::uint64_t{1} << (code - 1)));
    } else {
      set(find(code), get(size - 1));
      set(size - 1, 0);
    }
    return true;
  }

  // True if the codes are valid, different, and in front of the empty buckets.
  bool is_valid(std::uint64_t count) const noexcept {
    if (layout_.is_bitmap) return size() <= layout_.buckets;
    const unsigned n = size();
    for (unsigned i = 0; i < layout_.buckets; ++i) {
      const std::uint64_t code = get(i);
      if (i >= n ? code != 0 : code > count) return false;
      for (unsigned j = 0; j < i && i < n; ++j)
        if (get(j) == code) return false;
    }
    return true;
  }

 private:
  std::uint64_t bitmap() const noexcept { return fields_.get(start_, layout_.bits); }
  void set_bitmap(std::uint64_t bits) const noexcept { fields_.set(start_, layout_.bits, bits); }
  std::uint64_t get(unsigned i) const noexcept {
    return fields_.get(start_ + std::uint64_t{i} * layout_.width, layout_.width);
  }
  void set(unsigned i, std::uint64_t code) const noexcept {
    fields_.set(start_ + std::uint64_t{i} * layout_.width, layout_.width, code);
  }
  unsigned find(std::uint64_t code) const noexcept {
    for (unsigned i = 0; i < layout_.buckets; ++i) {
      const std::uint64_t here = get(i);
      if (here == code) return i;
      if (here == 0) break;
    }
    return layout_.buckets;
  }

  const RowLayout& layout_;
  PackedFields<Byte> fields_;
  std::uint64_t start_;
};

// Without `keys`: on an endless stream of new keys, each evicts any stored key with equal
// probability, so more buckets are better; 4 to a row (§6.1) if fpr can be kept so. With `keys`:
// the loss is the share of keys that do not fit into their rows. Rows that take nearly every
// signature would do best up to that number and then fill with false positives, so options must ask
// for them.
bool appraise(const Definition& definition, QuotientShape& shape) noexcept {
  const Parameters& p = definition.parameters;
  const Signatures signatures(shape.r, shape.r_prime);
  const unsigned k = shape.row_buckets;
  const RowLayout layout(signatures, k);
  if (!set_rows(definition, body_bytes(p) * 8 / layout.bits, shape)) return false;
  if (is_integer(definition)) {
    shape.loss = shape.r == 1 ? kMaxRemainderBits + 1 : shape.r;  // take r = 2 if that fits
    shape.bound = signatures.unselected() == 1 ? 0 : 1;
    return true;
  }
  const double for_ever =
      quotient_model::fpr_bound(shape.r_prime, signatures.unselected(), k, /*keys=*/0, /*rows=*/1);
  const bool too_full = p.keys > 0 && for_ever > kMaxBeyondKeys * definition.wanted_fpr();
  if ((too_full || k >= signatures.count()) && !definition.has(kR) && !definition.has(kBuckets))
    return false;
  const double keys = to_real(p.keys), rows = to_real(shape.rows) * p.slices;
  shape.bound = quotient_model::fpr_bound(shape.r_prime, signatures.unselected(), k, keys, rows);
  if (p.keys > 0)
    shape.loss = std::max(1e-6, 1 - quotient_model::mean_fill(keys, rows, k) * rows / keys);
  else
    shape.loss = (k < kDefaultBuckets ? kDefaultBuckets - k : 0) + 1 / (rows * k);
  return true;
}

bool derive(Definition& definition, Problem& problem) noexcept {
  QuotientShape shape{};
  if (!quotient::derive(definition, appraise, shape, problem)) return false;
  definition.parameters.set_integer(kBuckets, shape.row_buckets);
  return true;
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const RowEntry entry = locate(p, element);
  const RowLayout layout(p);
  return Row(layout, slice.body(), slice.bytes, entry.row).contains(entry.code);
}

// Stores a code that is not in the row.
template <typename Byte>
void store(const Parameters& p, SliceState& state, const Row<Byte>& row, unsigned size,
           std::uint64_t code) noexcept {
  const Signatures signatures(p);
  if (size < p.integer(kBuckets)) {
    row.add(code, size);
    ++used(state);
    rows_in_use(state) += size == 0;
  } else {
    const unsigned victim = static_cast<unsigned>(random_below(state.random, size));
    weight(state) -= signatures.weight(row.at(victim));
    row.replace(victim, code);
    has_evicted(state) = 1;
  }
  weight(state) += signatures.weight(code);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const RowEntry entry = locate(p, element);
  const RowLayout layout(p);
  const Row row(layout, slice.body(), slice.bytes, entry.row);
  if (row.contains(entry.code)) return true;
  store(p, *slice.state, row, row.size(), entry.code);
  return false;
}

// Another key of the same row and signature is forgotten as well.
bool erase(const Parameters& p, Slice slice, const Element& element) noexcept {
  const RowEntry entry = locate(p, element);
  const RowLayout layout(p);
  const Row row(layout, slice.body(), slice.bytes, entry.row);
  const unsigned size = row.size();
  if (!row.remove(entry.code, size)) return false;
  --used(*slice.state);
  weight(*slice.state) -= Signatures(p).weight(entry.code);
  rows_in_use(*slice.state) -= size == 1;
  return true;
}

// Merges row by row: the union of the signatures, or a random k of it where it is larger than the
// row (reservoir sampling), so that neither side is preferred.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  const RowLayout layout(p);
  const Signatures signatures(p);
  SliceState& state = *into.state;
  const unsigned k = layout.buckets;
  std::uint64_t added = 0;
  for (std::uint64_t at = 0; at < p.integer(kSliceRows); ++at) {
    const Row target(layout, into.body(), into.bytes, at);
    const Row source(layout, from.body(), from.bytes, at);
    const unsigned offered = source.size();
    std::uint64_t fresh[quotient_model::kMaxBuckets];
    unsigned count = 0;
    for (unsigned i = 0; i < offered; ++i)
      if (!target.contains(source.at(i))) fresh[count++] = source.at(i);
    added += count;
    unsigned seen = target.size();
    for (unsigned i = 0; i < count; ++i, ++seen) {
      const std::uint64_t code = fresh[i];
      if (seen < k) {
        store(p, state, target, seen, code);
        continue;
      }
      has_evicted(state) = 1;
      const std::uint64_t victim = random_below(state.random, seen + 1);
      if (victim >= k) continue;
      const unsigned bucket = static_cast<unsigned>(victim);
      weight(state) += signatures.weight(code) - signatures.weight(target.at(bucket));
      target.replace(bucket, code);
    }
  }
  state.inserted_new =
      merged_new_by_entries(state.inserted_new, from.state->inserted_new, added, used(*from.state));
  has_evicted(state) |= has_evicted(*from.state);
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  const RowLayout layout(p);
  const Signatures signatures(p);
  const std::uint64_t rows = p.integer(kSliceRows);
  std::uint64_t buckets = 0, weights = 0, in_use = 0;
  for (std::uint64_t at = 0; at < rows; ++at) {
    const Row row(layout, slice.body(), slice.bytes, at);
    if (!row.is_valid(signatures.count())) return false;
    const unsigned size = row.size();
    buckets += size;
    in_use += size > 0;
    for (unsigned i = 0; i < size; ++i) weights += signatures.weight(row.at(i));
  }
  return buckets == used(*slice.state) && weights == weight(*slice.state) &&
         in_use == rows_in_use(*slice.state) && has_evicted(*slice.state) <= 1 &&
         slice.state->own[4] == 0 &&
         PackedFields(slice.body(), slice.bytes).is_zero_from(rows * layout.bits);
}

// Until the first eviction, signatures tell the number of keys. Later the rows that are still empty
// do: linear counting (Whang et al. 1990), which evictions do not disturb.
double distinct_keys(const Parameters& p, const SliceState& state) noexcept {
  if (!has_evicted(state)) return quotient::distinct(p, used(state));
  const double rows = to_real(p.integer(kSliceRows)), empty = rows - to_real(rows_in_use(state));
  if (p.key_shift != 0 || empty < kFewEmptyRows) return std::numeric_limits<double>::quiet_NaN();
  return -rows * std::log(empty / rows);
}

Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const SliceState& state = *slice.state;
  const double buckets = to_real(p.integer(kSliceRows)) *
                         to_real(std::min(p.integer(kBuckets), Signatures(p).count()));
  return {to_real(used(state)) / buckets, fpr_now(p, used(state), weight(state)),
          distinct_keys(p, state)};
}

double all_rows(const Parameters& p) noexcept { return to_real(p.integer(kSliceRows)) * p.slices; }

// Integer keys: 0 if each has a signature of its own. Otherwise a stream could bring about any
// rate.
double fpr_bound(const Parameters& p) noexcept {
  if (p.key_shift != 0) return is_injective(p) ? 0 : 1;
  const Signatures signatures(p);
  return quotient_model::fpr_bound(signatures.selected(), signatures.unselected(),
                                   static_cast<unsigned>(p.integer(kBuckets)), to_real(p.keys),
                                   all_rows(p));
}

double fnr_at(const Parameters& p, double gap) noexcept {
  const Signatures signatures(p);
  return quotient_model::fnr(gap, signatures.selected(), signatures.unselected(),
                             static_cast<unsigned>(p.integer(kBuckets)), all_rows(p));
}

double fpr_after(const Parameters& p, double keys) noexcept {
  const Signatures signatures(p);
  if (!(keys > 0)) return 0;
  return quotient_model::fpr_bound(signatures.selected(), signatures.unselected(),
                                   static_cast<unsigned>(p.integer(kBuckets)), keys, all_rows(p));
}

// The probability that `least` or more of n keys fall into a row.
double has_met(const Parameters& p, double least, double n) noexcept {
  const double mean = n / all_rows(p);
  double fewer = 0, term = std::exp(-mean);
  for (double i = 0; i < least; ++i) {
    fewer += term;
    term *= mean / (i + 1);
  }
  return std::max(0.0, 1 - fewer);
}

// The probability that a key has left its row while `others` came there. Each key that is stored
// evicts it with probability `risk`; new keys are stored, and repeats of keys that had left.
double left_row(double others, double risk, double fresh) noexcept {
  double missed = 0;
  for (int round = 0; round < 100; ++round) {
    const double stored = fresh + (1 - fresh) * missed;
    const double now = -std::expm1(others * std::log1p(-risk * stored));
    if (now - missed <= 1e-9) return now;
    missed = now;
  }
  return missed;
}

// For repeats that all come after one gap: a Poisson number of other keys comes to the row in
// between, and most of these come again in the next gap.
double mean_fnr_at_gap(const Parameters& p, const Stream& stream) noexcept {
  constexpr int kTimes = 64, kCounts = 64;
  const double gap = stream.gap(), k = to_real(p.integer(kBuckets)), mean = gap / all_rows(p),
               spread = 6 * std::sqrt(mean) + 6;
  const double first = std::max(0.0, std::floor(mean - spread)),
               stride = std::max(1.0, std::ceil((mean + spread - first) / kCounts));
  double sum = 0;
  for (int i = 0; i < kTimes; ++i) {
    const double time = gap + (stream.rows() - gap) * (i + 0.5) / kTimes,
                 fresh = (stream.distinct_in(time) - stream.distinct_in(time - gap)) / gap,
                 n = stream.distinct_in(time - gap / 2);
    double missed = 0, all = 0;
    for (double others = first; others <= mean + spread; others += stride) {
      // The row's earlier keys count, too: is it full when one of these is stored?
      const double risk = has_met(p, k - others, std::max(0.0, n - gap)) / k;
      const double weight = std::exp(others * std::log(mean) - mean - std::lgamma(others + 1));
      missed += weight * left_row(others, risk, fresh);
      all += weight;
    }
    sum += missed / all * (1 - fpr_after(p, n));
  }
  return sum / kTimes;
}

// The expected number of n equally frequent keys that are found. In a row of few keys, a further
// key has the signature of one that is there with probability collision() for each. If there are
// more than k signatures, each stays with equal probability. In long rows, keys are as good as
// independent.
double found(const Parameters& p, double n) noexcept {
  constexpr double kLongRow = 6;
  constexpr int kMax = 48;
  const Signatures signatures(p);
  const double per_row = n / all_rows(p);
  const unsigned k = static_cast<unsigned>(p.integer(kBuckets));
  if (per_row > kLongRow) {
    const double held = std::min(n, quotient_model::mean_fill(n, all_rows(p), k) * all_rows(p));
    return held + (n - held) * fpr_after(p, n);
  }
  const double same = quotient_model::collision(signatures.selected(), signatures.unselected());
  double different[kMax + 1] = {1};  // [i]: the probability of i different signatures
  double missed = 0, rows = std::exp(-per_row);
  for (int keys = 1; keys <= kMax; ++keys) {
    rows *= per_row / keys;  // the share of rows with so many keys
    double missed_here = 0;
    for (int i = keys; i > 0; --i) {
      different[i] = different[i] * std::min(1.0, i * same) +
                     different[i - 1] * std::max(0.0, 1 - (i - 1) * same);
      if (static_cast<unsigned>(i) > k) missed_here += different[i] * (1 - k / to_real(i));
    }
    different[0] = 0;
    missed += rows * keys * missed_here;
  }
  return std::max(0.0, n - missed * all_rows(p));
}

Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  if (p.key_shift != 0) return kNoPrediction;
  double fnr = kNoPrediction.fnr;
  if (stream.gap() == 0)
    fnr = exact_store_model::mean_fnr(
        stream, [&](double n) { return found(p, n); }, [](double) { return 0.0; });
  else if (stream.repeats() > 0)
    fnr = mean_fnr_at_gap(p, stream);
  return {exact_store_model::mean_fpr(stream.distinct(), [&](double n) { return fpr_after(p, n); }),
          fnr};
}

}  // namespace

const FilterOps sqf_ops = {
    .kind = Kind::sqf,
    .name = "sqf",
    .summary =
        "Streaming Quotient Filter: short signatures in small rows, forgets a random one when full",
    .options = kOptions,
    .keeps_fpr_forever = true,
    .derive = derive,
    .test = test,
    .insert = insert,
    .erase = erase,
    .merge = merge,
    .check = check,
    .estimate = estimate,
    .fpr_bound = fpr_bound,
    .load = load,
    .rate_at = rate_at,
    .fnr_at = fnr_at,
    .predict = predict,
};

}  // namespace streamfilter
