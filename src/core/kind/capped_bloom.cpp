// A blocked Bloom filter that forgets only when it must: a key sets K different bits of one 64-byte
// line. If the line then has more ones than the cap allows, that many random ones are cleared, none
// of the key's own. Up to the number of keys that it is made for, the filter works like a Bloom
// filter and forgets next to nothing. On any stream its false-positive rate stays below cap^K.

#include "core/format/spread.hpp"
#include "core/kind/kind_list.hpp"
#include "core/model/capped_model.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

// kOnes: the cap as a number of bits
enum Word : unsigned { kK, kCap, kAdmission, kOnes };

constexpr unsigned kLineBytes = 64;
constexpr unsigned kLineWords = 8;
constexpr unsigned kLineBits = 512;

// Keeps lines from filling up, and rarely clears a bit before the number of keys is reached.
constexpr double kDefaultCap = 0.65;

constexpr OptionSpec kOptions[] = {
    {.word = kK,
     .name = "k",
     .type = OptionType::integer,
     .low = 1,
     .high = capped_model::kMaxHashes},
    {.word = kCap, .name = "cap", .type = OptionType::real, .low = 0.002, .high = 1},
    {.word = kAdmission, .name = "admission", .type = OptionType::real, .low = 0.01, .high = 1},
};

// Sums over all lines: the number of ones, and its square.
auto& ones(auto& state) noexcept { return state.own[0]; }
auto& squares(auto& state) noexcept { return state.own[1]; }

double lines_of_slice(const Parameters& p) noexcept {
  return static_cast<double>(body_bytes(p) / kLineBytes);
}
double real_k(const Parameters& p) noexcept { return static_cast<double>(p.integer(kK)); }
double keys_of_line(const Parameters& p) noexcept {
  return static_cast<double>(p.keys) / (lines_of_slice(p) * p.slices);
}
capped_model::Setting setting(const Parameters& p) noexcept {
  return {real_k(p), static_cast<double>(p.integer(kOnes))};
}

unsigned ones_of(double cap) noexcept {
  return static_cast<unsigned>(std::floor(cap * kLineBits + 1e-9));
}

// With a number of keys, K is that of the best blocked Bloom filter. Without, of all pairs of K and
// cap that keep fpr, the one whose new keys clear the fewest bits of older keys.
void derive_k_and_cap(Definition& definition) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kK) && (p.keys > 0 || definition.has(kCap))) {
    if (p.keys > 0)
      p.set_integer(kK, capped_model::best_k(keys_of_line(p)));
    else
      for (unsigned k = capped_model::kMaxHashes; k > 0; --k)
        if (k == capped_model::kMaxHashes ||
            capped_model::line_fpr(k, ones_of(p.real(kCap))) <= definition.wanted_fpr())
          p.set_integer(kK, k);
  }
  if (definition.has(kCap)) return;
  if (p.keys > 0) return p.set_real(kCap, kDefaultCap);
  double least = 2 * capped_model::kMaxHashes;
  const unsigned given = definition.has(kK) ? static_cast<unsigned>(p.integer(kK)) : 0;
  p.set_real(kCap, 0);
  for (unsigned k = 1; k <= capped_model::kMaxHashes; ++k) {
    if (given != 0 && given != k) continue;
    const unsigned most = capped_model::most_ones(definition.wanted_fpr(), k);
    if (most <= k) continue;
    const double cost =
        k * capped_model::clearing({static_cast<double>(k), static_cast<double>(most)});
    if (cost >= least) continue;
    least = cost;
    p.set_integer(kK, k);
    p.set_real(kCap, most / static_cast<double>(kLineBits));
  }
}

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kAdmission)) p.set_real(kAdmission, 1);
  derive_k_and_cap(definition);
  p.set_integer(kOnes, ones_of(p.real(kCap)));
  if (p.integer(kOnes) > p.integer(kK)) return true;
  if (!definition.has(kCap)) {
    problem.set(Error::conflict, "kind capped cannot keep fpr %g", definition.wanted_fpr());
    return problem.add_hint("Use a larger fpr, or leave out k.");
  }
  problem.set(Error::conflict, "a line that is full would not hold a second key");
  problem.add_detail("Cap %g leaves %llu ones in a line; a key sets k = %llu.", p.real(kCap),
                     static_cast<unsigned long long>(p.integer(kOnes)),
                     static_cast<unsigned long long>(p.integer(kK)));
  return problem.add_hint("Use a larger cap or a smaller k.");
}

// Draws bits of a line, each uniform and independent: nine bits at a time from a sequence of words.
template <typename NextWord>
class RandomBits {
 public:
  explicit RandomBits(NextWord next_word) noexcept : next_word_(next_word) {}

  unsigned next() noexcept {
    if (left_ == 0) {
      word_ = next_word_();
      left_ = 7;
    }
    --left_;
    const unsigned bit = word_ % kLineBits;
    word_ /= kLineBits;
    return bit;
  }

 private:
  NextWord next_word_;
  std::uint64_t word_ = 0;
  unsigned left_ = 0;
};

// The bits of a line.
struct Line {
  static Line read(const unsigned char* from) noexcept {
    Line line;
    std::memcpy(line.word, from, kLineBytes);
    return line;
  }
  void write(unsigned char* to) const noexcept { std::memcpy(to, word, kLineBytes); }

  bool has(unsigned bit) const noexcept { return word[bit / 64] >> bit % 64 & 1; }
  void flip(unsigned bit) noexcept { word[bit / 64] ^= std::uint64_t{1} << bit % 64; }

  bool contains(const Line& other) const noexcept {
    std::uint64_t missing = 0;
    for (unsigned i = 0; i < kLineWords; ++i) missing |= other.word[i] & ~word[i];
    return missing == 0;
  }
  void add(const Line& other) noexcept {
    for (unsigned i = 0; i < kLineWords; ++i) word[i] |= other.word[i];
  }
  unsigned count() const noexcept {
    unsigned sum = 0;
    for (const std::uint64_t bits : word) sum += static_cast<unsigned>(__builtin_popcountll(bits));
    return sum;
  }

  std::uint64_t word[kLineWords] = {};
};

std::uint64_t line_start(std::uint64_t bytes, std::uint64_t hash) noexcept {
  return position(hash, 0, bytes / kLineBytes) * kLineBytes;
}

// The line of a key, and the key's bits in it.
struct KeyLine {
  KeyLine(const Parameters& p, std::uint64_t bytes, std::uint64_t hash) noexcept
      : start(line_start(bytes, hash)) {
    std::uint64_t state = hash + kGoldenRatio;
    RandomBits draws([&]() noexcept { return next_random(state); });
    for (std::uint64_t left = p.integer(kK); left > 0;) {
      const unsigned bit = draws.next();
      if (bits.has(bit)) continue;
      bits.flip(bit);
      --left;
    }
  }

  std::uint64_t start;  // byte of the body
  Line bits;
};

// Clears random ones that are not `kept`, until `most` of `count` are left.
void clear_down(Line& line, const Line& kept, unsigned count, unsigned most,
                std::uint64_t& random) noexcept {
  RandomBits draws([&]() noexcept { return next_random(random); });
  while (count > most) {
    const unsigned bit = draws.next();
    if (!line.has(bit) || kept.has(bit)) continue;
    line.flip(bit);
    --count;
  }
}

void prefetch(const Parameters&, ConstSlice slice, const Element& element,
              Prefetches& prefetches) noexcept {
  prefetches.add(slice.body() + line_start(slice.bytes, element.hash));
}

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const KeyLine key(p, slice.bytes, element.hash);
  return Line::read(slice.body() + key.start).contains(key.bits);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const KeyLine key(p, slice.bytes, element.hash);
  Line line = Line::read(slice.body() + key.start);
  if (line.contains(key.bits)) return true;
  SliceState& state = *slice.state;
  const double admission = p.real(kAdmission);
  if (admission < 1 && !random_chance(state.random, admission)) return false;
  const unsigned most = static_cast<unsigned>(p.integer(kOnes)), before = line.count();
  line.add(key.bits);
  const unsigned all = line.count(), after = std::min(all, most);
  clear_down(line, key.bits, all, most, state.random);
  line.write(slice.body() + key.start);
  ones(state) += after - before;
  squares(state) += std::uint64_t{after} * after - std::uint64_t{before} * before;
  return false;
}

// Sets each bit that either line has. If a line gets more ones than the cap allows, random ones are
// cleared, so that neither side is preferred.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  SliceState& state = *into.state;
  const unsigned most = static_cast<unsigned>(p.integer(kOnes));
  const double bits = lines_of_slice(p) * kLineBits, k = real_k(p);
  const double parts = counted_keys(static_cast<double>(ones(state)), bits, k) +
                       counted_keys(static_cast<double>(ones(*from.state)), bits, k);
  std::uint64_t sum = 0;
  ones(state) = squares(state) = 0;
  for (std::uint64_t start = 0; start < into.bytes; start += kLineBytes) {
    Line line = Line::read(into.body() + start);
    line.add(Line::read(from.body() + start));
    const unsigned all = line.count(), left = std::min(all, most);
    clear_down(line, Line{}, all, most, state.random);
    line.write(into.body() + start);
    sum += all;
    ones(state) += left;
    squares(state) += std::uint64_t{left} * left;
  }
  state.inserted_new = merged_new_by_cells(state.inserted_new, from.state->inserted_new, parts,
                                           counted_keys(static_cast<double>(sum), bits, k));
}

void spread(const Parameters&, ConstSlice from, const Parameters&, Slice into,
            std::uint64_t layer) noexcept {
  SliceState& state = *into.state;
  for_each_place(from.bytes / kLineBytes, into.bytes / kLineBytes, layer,
                 [&](std::uint64_t to, std::uint64_t at) {
                   const Line line = Line::read(from.body() + at * kLineBytes);
                   line.write(into.body() + to * kLineBytes);
                   const std::uint64_t count = line.count();
                   ones(state) += count;
                   squares(state) += count * count;
                 });
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  std::uint64_t sum = 0, of_squares = 0, largest = 0;
  for (std::uint64_t start = 0; start < slice.bytes; start += kLineBytes) {
    const std::uint64_t count = Line::read(slice.body() + start).count();
    sum += count;
    of_squares += count * count;
    largest = std::max(largest, count);
  }
  const std::uint64_t(&own)[5] = slice.state->own;
  return sum == ones(*slice.state) && of_squares == squares(*slice.state) &&
         largest <= p.integer(kOnes) && (own[2] | own[3] | own[4]) == 0;
}

// The mean of line_fpr over all lines, from the mean and variance of their ones. A key's K bits are
// different ones, hence the product; nearly empty lines hold one key at most, so there a power
// does.
double mean_line_fpr(double k, double mean, double variance) noexcept {
  if (mean < 2 * k) {
    const double curve = mean > 0 ? k * (k - 1) / (mean * mean) : 0;
    return std::pow(mean / kLineBits, k) * (1 + curve * variance / 2);
  }
  double slope = 0, squared = 0;
  for (double i = 0; i < k; ++i) {
    slope += 1 / (mean - i);
    squared += 1 / ((mean - i) * (mean - i));
  }
  return capped_model::line_fpr(k, mean) * (1 + (slope * slope - squared) * variance / 2);
}

std::uint64_t load(const Parameters&, ConstSlice slice) noexcept { return ones(*slice.state); }

// The highest rate for this load: some lines are at the cap, the others are empty.
double rate_at(const Parameters& p, double load) noexcept {
  const capped_model::Setting full = setting(p);
  return load / lines_of_slice(p) / full.ones * capped_model::line_fpr(full.k, full.ones);
}

// A key is counted as distinct when it is reported as new.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const double lines = lines_of_slice(p), k = real_k(p),
               mean = static_cast<double>(ones(*slice.state)) / lines,
               variance = static_cast<double>(squares(*slice.state)) / lines - mean * mean;
  const double rate = mean_line_fpr(k, mean, std::max(0.0, variance));
  return {mean / kLineBits,
          std::min(rate, capped_model::line_fpr(k, static_cast<double>(p.integer(kOnes)))),
          static_cast<double>(slice.state->inserted_new)};
}

// The line as it is after a resize, then the keys still to come: a Poisson number for each line,
// and each key sets a share of the line's zeros.
double fpr_to_come(const Parameters& p, ConstSlice slice) noexcept {
  if (p.keys == 0) return 0;
  const double lines = lines_of_slice(p), k = real_k(p), all = keys_of_line(p);
  const double more = std::max(0.0, all - static_cast<double>(slice.state->inserted_new) / lines),
               mean = static_cast<double>(ones(*slice.state)) / lines,
               variance = static_cast<double>(squares(*slice.state)) / lines - mean * mean,
               left = std::exp(more * std::log1p(-k / kLineBits)),
               zeros = (kLineBits - mean) * left, each = k * zeros / kLineBits;
  return std::min(mean_line_fpr(k, kLineBits - zeros,
                                std::max(0.0, variance) * left * left + more * each * each),
                  capped_model::line_fpr(k, static_cast<double>(p.integer(kOnes))));
}

double fpr_bound(const Parameters& p) noexcept {
  const double for_ever = capped_model::line_fpr(real_k(p), setting(p).ones);
  return p.keys > 0 ? std::min(for_ever, capped_model::blocked_fpr(real_k(p), keys_of_line(p)))
                    : for_ever;
}

// The rate for a key that came once; with `admission`, it may not have been admitted.
double fnr_at(const Parameters& p, double gap) noexcept {
  const double admission = p.real(kAdmission),
               others = admission * gap / (lines_of_slice(p) * p.slices);
  const double lost = p.keys > 0
                          ? capped_model::fnr_after(setting(p), others, admission * keys_of_line(p))
                          : capped_model::mean_fnr(setting(p), others);
  return 1 - admission * (1 - lost);
}

// There is no model of keys that `admission` leaves out.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  if (p.real(kAdmission) < 1) return kNoPrediction;
  return capped_model::predict(setting(p), stream.part(lines_of_slice(p) * p.slices));
}

}  // namespace

const FilterOps capped_ops = {
    .kind = Kind::capped,
    .name = "capped",
    .summary =
        "blocked Bloom filter that clears bits only where a line gets too full: for a number of "
        "keys "
        "that is about known",
    .options = kOptions,
    .keeps_fpr_forever = true,
    .derive = derive,
    .prefetch = prefetch,
    .in_one_line = [](const Parameters&, const SliceState&) noexcept { return true; },
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
    .resize =
        {
            .hashes = words(kK),
            .places = [](const Parameters& p) noexcept { return body_bytes(p) / kLineBytes; },
            .spread = spread,
            .fpr_to_come = fpr_to_come,
        },
};

}  // namespace streamfilter
