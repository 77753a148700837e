// How many keys a 64-byte line of kind clq could hold if their order were kept less exactly, and
// what that is worth: bits per key of the window, at a false-positive rate.
//
//   make bench
//   build/bench/packings [FPR]     0.01 by default
//
// A line is one bucket of K fingerprints out of N = K/FPR. In order they take K log2 N bits. A
// group of g whose order is not kept takes log2 of the number of multisets, (N + g - 1 over g), so
// more keys fit; a new key enters the first group, which closes when it has g keys, and one of the
// last group falls out, no matter which. A key that comes again leaves its group for the first one.
// Where there would be one group too many, the last two become one.
//
// Bits: as if coded without any loss (`ideal`), and with parts of whole bits, as machines have
// them. `in order`: fingerprints of b bits; as many as need be have a bit more.
// `quotients`: the remainders of a group in the order of their quotients, and these in unary, which
// takes a bit for each key and one for each of the quotients. `by order`: floor(log2 g!)
// bits of a group are not stored but told by the order in which its other bits lie; the
// first and the last group together have g keys, and tell less.
//
// `edge`: line bits by the number of others of its line after which a key is missed with 1 %.
// `mean`: the same for the mean over all numbers up to there. `gaps`: false negatives in per cent
// on a stream of half new keys and half repeats at exponential distances, of 0.63 times 40 keys for
// every line in the mean, without false positives. What simulation adds are the lifetimes of keys,
// in others of its line; the rest are formulas.
//
// Below, measured as a whole on keys that are remembered exactly:
//
// `two lines`: a key may be in either of two lines, and a new one enters that which has taken fewer
// (option lines of kind clq). Twice as many fingerprints are compared, and 5 bits of a line count.
// `neighbours`, `of 64`: the second is another one of so many lines that lie together.
//
// `closed groups`: groups by order that are written only once. New keys go to a group whose
// fingerprints are whole; when it has 8 keys it is closed, put in order, and stays so until it is
// the last one, when it is read, and its keys fall out one by one. These two have no more than 7
// keys together. Where a key comes again from a closed group, one of the last takes its place;
// `lazily`: only if its group is among the older half, others stay where they are. `in lines`, at 1
// % and with AVX-512: the same, packed into bytes as closed_group_line.hpp says. What a key costs
// there beside a line of clq comes last, of 1 MB and keys drawn from as many as that are bytes:
// nanoseconds, of bursts that take turns, without what the library does around it.
#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "bench/lib/streams.hpp"
#include "bench/quality/closed_group_line.hpp"
#include "core/base/hash.hpp"

namespace {

constexpr double kLineBits = 512;

// One line: groups of keys, the first one the newest.
class Line {
 public:
  Line(unsigned keys, unsigned group) : keys_(keys), group_(group), groups_(1) {}

  // Was the key there? It is now.
  template <typename Fallen>
  bool insert(std::uint64_t key, bench::Random& random, Fallen fallen) {
    const bool seen = remove(key);
    if (!seen && size_ == keys_) drop(random, fallen);
    if (groups_.front().size() >= group_) groups_.insert(groups_.begin(), {{}});
    groups_.front().push_back(key);
    ++size_;
    while (groups_.size() > 1 && groups_.back().empty()) groups_.pop_back();
    if (groups_.size() > (keys_ + group_ - 1) / group_ + 1) merge_last();
    return seen;
  }

 private:
  bool remove(std::uint64_t key) {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      auto& group = groups_[i];
      const auto found = std::find(group.begin(), group.end(), key);
      if (found == group.end()) continue;
      group.erase(found);
      if (group.empty() && groups_.size() > 1)
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(i));
      --size_;
      return true;
    }
    return false;
  }

  template <typename Fallen>
  void drop(bench::Random& random, Fallen fallen) {
    auto& last = groups_.back();
    const auto at = last.begin() + static_cast<std::ptrdiff_t>(random.below(last.size()));
    fallen(*at);
    last.erase(at);
    --size_;
    if (last.empty() && groups_.size() > 1) groups_.pop_back();
  }

  void merge_last() {
    auto& before = groups_[groups_.size() - 2];
    before.insert(before.end(), groups_.back().begin(), groups_.back().end());
    groups_.pop_back();
  }

  std::size_t keys_, group_, size_ = 0;
  std::vector<std::vector<std::uint64_t>> groups_;
};

// The share of keys that live so many others of their line, where all are new.
std::vector<double> lifetimes(unsigned keys, unsigned group) {
  constexpr std::uint64_t kRows = 200000;
  std::vector<double> share(8 * keys + 1);
  bench::Random random(1);
  Line line(keys, group);
  double count = 0;
  for (std::uint64_t row = 0; row < kRows; ++row)
    line.insert(row, random, [&](std::uint64_t key) {
      if (key < 100 * keys) return;
      ++share[std::min<std::uint64_t>(row - key, 8 * keys)];
      ++count;
    });
  for (double& one : share) one /= count;
  return share;
}

// A key is missed after a Poisson number of mean x of others.
double missed(const std::vector<double>& lifetime, double x) {
  double sum = 0;
  for (std::size_t t = 1; t < lifetime.size(); ++t)
    if (lifetime[t] > 0) sum += lifetime[t] * boost::math::gamma_p(static_cast<double>(t), x);
  return sum;
}

template <typename Rate>
double longest(Rate rate) {
  double low = 0, high = 200;
  for (int i = 0; i < 40; ++i) (rate((low + high) / 2) < .01 ? low : high) = (low + high) / 2;
  return low;
}

double mean_missed(const std::vector<double>& lifetime, double x) {
  constexpr int kSteps = 50;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) sum += missed(lifetime, x * (i + .5) / kSteps);
  return sum / kSteps;
}

// `insert(key)`: was it there, among so many lines?
template <typename Insert>
double missed_at_gaps(unsigned lines, unsigned rows, Insert insert) {
  bench::ExponentialGaps stream(.5, .63 * 40 * lines, 1);
  std::vector<bool> known;
  double repeats = 0, negatives = 0;
  for (unsigned row = 0; row < rows; ++row) {
    const std::uint64_t key = stream.next();
    if (key >= known.size()) known.resize(2 * key + 1);
    const bool repeated = known[key];
    known[key] = true;
    const bool seen = insert(key);
    if (row < rows / 2 || !repeated) continue;
    ++repeats;
    negatives += !seen;
  }
  return negatives / repeats;
}

double missed_at_gaps(unsigned keys, unsigned group) {
  constexpr unsigned kLines = 128;
  std::vector<Line> lines(kLines, Line(keys, group));
  bench::Random random(2);
  return missed_at_gaps(kLines, 400000, [&](std::uint64_t key) {
    return lines[streamfilter::mix64(key) % kLines].insert(key, random, [](auto) {});
  });
}

// ---- lines that are measured as a whole --------------------------------------------------------

using Keys = std::vector<std::uint64_t>;

bool has(const Keys& keys, std::uint64_t key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

class TwoLines {
 public:
  TwoLines(unsigned lines, unsigned keys, unsigned together)
      : keys_(keys), together_(together), lines_(lines), entered_(lines) {}

  bool test(std::uint64_t key) const {
    return has(lines_[line(key, 0)], key) || has(lines_[line(key, 1)], key);
  }

  bool insert(std::uint64_t key) {
    const std::size_t first = line(key, 0), second = line(key, 1);
    const bool seen = test(key);
    const bool is_second = seen ? !has(lines_[first], key) : entered_[second] < entered_[first];
    const std::size_t at = is_second ? second : first;
    std::erase(lines_[at], key);
    lines_[at].insert(lines_[at].begin(), key);
    if (lines_[at].size() > keys_) lines_[at].pop_back();
    entered_[at] += !seen;
    return seen;
  }

 private:
  std::size_t line(std::uint64_t key, unsigned i) const {
    if (i == 0) return streamfilter::position(key, 0, lines_.size());
    const std::size_t first = line(key, 0), at = first % together_;
    return first - at + (at + 1 + streamfilter::position(key, 1, together_ - 1)) % together_;
  }

  std::size_t keys_, together_;
  std::vector<Keys> lines_;
  std::vector<unsigned> entered_;
};

class ClosedGroups {
 public:
  ClosedGroups(unsigned lines, unsigned keys, unsigned group, bool lazily)
      : keys_(keys), group_(group), lazily_(lazily), lines_(lines) {}

  bool test(std::uint64_t key) const {
    const Line& line = line_of(key);
    return has(line.open, key) || has(line.last, key) ||
           std::any_of(line.closed.begin(), line.closed.end(),
                       [=](const Keys& group) { return has(group, key); });
  }

  bool insert(std::uint64_t key) {
    Line& line = const_cast<Line&>(line_of(key));
    if (has(line.open, key)) return true;
    for (std::size_t i = 0; i < line.closed.size(); ++i) {
      if (!has(line.closed[i], key)) continue;
      if (lazily_ && i < line.closed.size() / 2) return true;
      if (line.last.empty()) read_last(line);
      if (i == line.closed.size()) break;  // it was that one
      *std::find(line.closed[i].begin(), line.closed[i].end(), key) = drop(line);
      return put(line, key), true;
    }
    const bool seen = std::erase(line.last, key) > 0;
    const std::size_t size = line.open.size() + line.last.size() + line.closed.size() * group_;
    if (!seen && size == keys_) drop(line);
    put(line, key);
    return seen;
  }

 private:
  struct Line {
    Keys open, last;
    std::vector<Keys> closed;  // the first one the newest
  };

  const Line& line_of(std::uint64_t key) const {
    return lines_[streamfilter::position(key, 0, lines_.size())];
  }

  void put(Line& line, std::uint64_t key) {
    line.open.push_back(key);
    if (line.open.size() < group_) return;
    line.closed.insert(line.closed.begin(), line.open);
    line.open.clear();
  }

  static void read_last(Line& line) {
    line.last = line.closed.back();
    line.closed.pop_back();
  }

  std::uint64_t drop(Line& line) {
    if (line.last.empty()) read_last(line);
    const std::size_t at = random_.below(line.last.size());
    const std::uint64_t key = line.last[at];
    line.last.erase(line.last.begin() + static_cast<std::ptrdiff_t>(at));
    return key;
  }

  std::size_t keys_, group_;
  bool lazily_;
  bench::Random random_{4};
  std::vector<Line> lines_;
};

constexpr unsigned kMeasuredLines = 512;

// Where the rates of parts of all lags, of a `part` of lines each, come to 1 %.
double reach(const std::vector<double>& rates, double part) {
  std::size_t i = 0;
  while (i + 1 < rates.size() && rates[i + 1] < .01) ++i;
  const double beyond = (.01 - rates[i]) / (rates[i + 1] - rates[i]);
  return (static_cast<double>(i) + .5 + beyond) * part;
}

template <typename Lines>
void show_measured(const char* name, unsigned keys, const Lines& empty) {
  constexpr unsigned kRounds = 24, kPart = kMeasuredLines / 2, kParts = 2 * 60;
  Lines lines = empty;
  std::vector<double> missed(kParts), mean(kParts);
  std::uint64_t next = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    for (unsigned i = 0; i < 100 * kMeasuredLines; ++i) lines.insert(next++);
    for (unsigned i = 0; i < kPart * kParts; ++i)
      missed[i / kPart] += lines.test(next - 1 - i) ? 0 : 1. / (kPart * kRounds);
  }
  double sum = 0;
  for (unsigned i = 0; i < kParts; ++i) mean[i] = (sum += missed[i]) / (i + 1);
  lines = empty;
  const double gaps =
      missed_at_gaps(kMeasuredLines, 1000000, [&](std::uint64_t key) { return lines.insert(key); });
  std::printf("%-26s %5u %8.1f %8.1f %8.2f\n", name, keys, kLineBits / reach(missed, .5),
              kLineBits / (reach(mean, .5) + .25), 100 * gaps);
}

// ---- bits of a line ----------------------------------------------------------------------------

double log2_factorial(double n) { return std::lgamma(n + 1) / std::log(2); }

double ideal_bits(double fpr, double keys, double group) {
  const double n = keys / fpr;
  return keys / group *
         (log2_factorial(n + group - 1) - log2_factorial(n - 1) - log2_factorial(group));
}

// Fingerprints of b bits, those of the rest one more, such that sum of 1/2^b is fpr.
double bits_beyond(double fpr, double keys, double values) {
  const double more = 2 * (keys / values - fpr) * values;  // that must have a bit more
  return more <= 0 ? 0 : more <= keys ? std::ceil(more) : INFINITY;
}

// The least over b of what a fingerprint of b bits takes for each key, and the bits beyond.
template <typename Least>
double least_bits(double fpr, double keys, Least least) {
  double best = INFINITY;
  for (int bits = 2; bits < 40; ++bits)
    best = std::min(best, least(bits) + bits_beyond(fpr, keys, std::ldexp(1, bits)));
  return best;
}

double ordered_bits(double fpr, double keys, double) {
  return least_bits(fpr, keys, [=](int bits) { return keys * bits; });
}

double quotient_bits(double fpr, double keys, double group) {
  return least_bits(fpr, keys, [=](int bits) {
    double best = INFINITY;
    for (int quotient = 1; quotient < bits; ++quotient)
      best = std::min(best, keys * (bits - quotient + 1) +
                                std::ceil(keys / group + 1) * std::ldexp(1, quotient));
    return best;
  });
}

// Which of the first and the last group has how many takes log2 g bits.
double order_bits(double fpr, double keys, double group) {
  const auto told = [](double n) { return std::floor(log2_factorial(n)); };
  double ends = INFINITY;
  for (double i = 0; i <= group; ++i) ends = std::min(ends, told(i) + told(group - i));
  const double full = std::floor(keys / group) - 1;
  const double saved = full * told(group) + ends - std::ceil(std::log2(group));
  return least_bits(fpr, keys, [=](int bits) { return keys * bits - saved; });
}

// Half the rate for each of two lines, and 5 bits of a line.
unsigned most_in_two_lines(double fpr) {
  unsigned most = 0;
  for (int bits = 2; bits < 40; ++bits)
    most = std::max(most, static_cast<unsigned>(std::min(std::floor((kLineBits - 5) / bits),
                                                         fpr / 2 * (std::ldexp(1, bits) - 1))));
  return most;
}

// All but `group` - 1 keys are in closed groups; 3 bits say how many the open one has.
double closed_bits(double fpr, double keys, double group) {
  const double closed = std::floor((keys + 1) / group) - 1;
  return least_bits(fpr, keys, [=](int bits) {
    return keys * bits - closed * std::floor(log2_factorial(group)) + std::ceil(std::log2(group));
  });
}

// ---- the time of telling bits by an order ------------------------------------------------------

constexpr unsigned kGroup = 8;

// The number of an order, from how many of the later ones are smaller.
unsigned number_of(const std::uint16_t* keys) {
  unsigned number = 0;
  for (unsigned i = 0; i < kGroup; ++i) {
    unsigned smaller = 0;
    for (unsigned j = i + 1; j < kGroup; ++j) smaller += keys[j] < keys[i];
    number = number * (kGroup - i) + smaller;
  }
  return number;
}

void put_in_order(std::uint16_t* keys, unsigned number) {
  std::sort(keys, keys + kGroup);
  unsigned digits[kGroup];
  for (unsigned i = 0; i < kGroup; ++i) {
    digits[kGroup - 1 - i] = number % (i + 1);
    number /= i + 1;
  }
  for (unsigned i = 0; i < kGroup; ++i)
    std::rotate(keys + i, keys + i + digits[i], keys + i + digits[i] + 1);
}

// A group is read when it is the last one, and another one was written when it was full.
double nanoseconds_of_a_group() {
  constexpr unsigned kRounds = 1000000;
  bench::Random random(3);
  std::vector<std::uint16_t> keys(kGroup * 256);
  for (auto& key : keys) key = static_cast<std::uint16_t>(random.below(1 << 10));
  const std::clock_t start = std::clock();
  unsigned sum = 0;
  for (unsigned i = 0; i < kRounds; ++i) {
    std::uint16_t* group = &keys[kGroup * ((i + sum) % 256)];
    sum += number_of(group);
    group[sum % kGroup] = static_cast<std::uint16_t>(group[sum % kGroup] + i);
    put_in_order(group, sum % (1 << 15));
  }
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC * 1e9 / kRounds;
}

// ---- the time of a key, with vectors ------------------------------------------------------------

#if defined(__x86_64__)

// What kind clq does, and in 1 % of the cases what it does not, for its lines have 12 bits x 40.
class QueueLines {
 public:
  explicit QueueLines(unsigned lines) : lines_(lines) {}

  FOR_WIDE_REGISTERS bool insert(std::uint64_t key) {
    unsigned char* line = lines_[streamfilter::position(key, 0, lines_.size())].bytes;
    streamfilter::BasicFingerprintQueue<true, true> queue(12, 40, line, 0);
    streamfilter::LineVector reach;
    const std::uint64_t fingerprint = 1 + streamfilter::position(key, 1, 4095);
    const bool seen = queue.find(fingerprint, reach);
    queue.push(fingerprint, reach);
    queue.store(line);
    return seen;
  }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64] = {};
  };
  std::vector<Line> lines_;
};

template <typename Lines>
double burst(Lines& lines, bench::Uniform& stream, unsigned& repeats) {
  constexpr unsigned kKeys = 1 << 18;
  timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (unsigned i = 0; i < kKeys; ++i) repeats += lines.insert(streamfilter::mix64(stream.next()));
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (static_cast<double>(end.tv_sec - start.tv_sec) * 1e9 +
          static_cast<double>(end.tv_nsec - start.tv_nsec)) /
         kKeys;
}

double at_the_fastest_tenth(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 10];
}

// Keys from `parts` times as many as the lines have bytes.
void show_times(const char* name, double parts) {
  constexpr unsigned kLines = 16384, kTurns = 60;
  QueueLines queues(kLines);
  bench::CodedLines groups(kLines);
  const auto universe = static_cast<std::uint64_t>(parts * kLines * 64);
  bench::Uniform of_queues(universe, 1), of_groups(universe, 1);
  std::vector<double> queue_times, group_times;
  unsigned repeats = 0;
  for (unsigned turn = 0; turn < kTurns + 10; ++turn) {
    const double one = burst(queues, of_queues, repeats), other = burst(groups, of_groups, repeats);
    if (turn < 10) continue;
    queue_times.push_back(one);
    group_times.push_back(other);
  }
  const double queue = at_the_fastest_tenth(queue_times), group = at_the_fastest_tenth(group_times);
  std::printf("%-26s %8.1f %8.1f %8.2f\n", name, queue, group, repeats > 0 ? group / queue : 0.);
}

// False positives of lines that are packed so, in per cent.
double positives_of_coded_lines() {
  bench::CodedLines lines(kMeasuredLines);
  unsigned positives = 0;
  constexpr unsigned kKeys = 400000;
  for (unsigned i = 0; i < kKeys; ++i) positives += lines.test(kKeys + i);
  return 100. * positives / kKeys;
}

void show_coded_lines() {
  show_measured("closed groups, in lines", bench::CodedLines::kKeys,
                bench::CodedLines(kMeasuredLines));
  std::printf("(with %.2f %% of false positives)\n", positives_of_coded_lines());
}

void show_times() {
  std::printf("%-26s %8s %8s %8s\n", "ns of a key, 1 MB", "clq", "groups", "times");
  show_times("new keys only", 1e6);
  show_times("keys of as many as bytes", 1);
  show_times("most are repeats", .5);
}

bool has_vectors() { return streamfilter::has_wide_registers() && bench::has_coded_lines(); }

#else

void show_coded_lines() {}
void show_times() {}
bool has_vectors() { return false; }

#endif

template <typename Bits>
unsigned most_keys(double fpr, double group, Bits bits) {
  unsigned keys = 1;
  while (bits(fpr, keys + 1, group) <= kLineBits) ++keys;
  return keys;
}

void show(const char* name, unsigned keys, unsigned group) {
  const std::vector<double> lifetime = lifetimes(keys, group);
  const double edge = longest([&](double x) { return missed(lifetime, x); }),
               mean = longest([&](double x) { return mean_missed(lifetime, x); });
  std::printf("%-26s %5u %8.1f %8.1f %8.2f\n", name, keys, kLineBits / edge, kLineBits / mean,
              100 * missed_at_gaps(keys, group));
}

}  // namespace

int main(int argc, char** argv) {
  const double fpr = argc > 1 ? std::atof(argv[1]) : .01;
  if (!(fpr > 0 && fpr < 1)) return 2;
  std::printf("FPR %g\n%-26s %5s %8s %8s %8s\n", fpr, "", "keys", "edge", "mean", "gaps %");
  unsigned whole = 0;
  for (unsigned bits = 2; bits < 40; ++bits)
    whole = std::max(
        whole, static_cast<unsigned>(std::min(kLineBits / bits, fpr * (std::ldexp(1, bits) - 1))));
  show("clq, whole bits", whole, 1);
  for (const unsigned group : {1u, 2u, 4u, 6u, 8u, 12u}) {
    char name[64];
    std::snprintf(name, sizeof name, group == 1 ? "in order, ideal" : "groups of %u, ideal", group);
    show(name, most_keys(fpr, group, ideal_bits), group);
    if (group == 1) {
      show("in order", most_keys(fpr, group, ordered_bits), group);
      continue;
    }
    std::snprintf(name, sizeof name, "groups of %u, quotients", group);
    show(name, most_keys(fpr, group, quotient_bits), group);
    std::snprintf(name, sizeof name, "groups of %u, by order", group);
    show(name, most_keys(fpr, group, order_bits), group);
  }
  const unsigned two = most_in_two_lines(fpr), closed = most_keys(fpr, kGroup, closed_bits);
  show_measured("two lines", two, TwoLines(kMeasuredLines, two, kMeasuredLines));
  show_measured("two lines of 64", two, TwoLines(kMeasuredLines, two, 64));
  show_measured("two lines, neighbours", two, TwoLines(kMeasuredLines, two, 2));
  for (const bool lazily : {false, true})
    show_measured(lazily ? "closed groups of 8, lazily" : "closed groups of 8", closed,
                  ClosedGroups(kMeasuredLines, closed, kGroup, lazily));
  if (fpr == .01 && has_vectors()) show_coded_lines();
  // Naor and Yogev 2013: log2(1/fpr) + log2 log2(1/fpr) bits a key, if no line were fuller than
  // another.
  const double bound = std::log2(1 / fpr) + std::log2(std::log2(1 / fpr));
  std::printf("%-26s %5.0f %8.1f %8.1f\n", "bound", kLineBits / bound, bound, bound);
  std::printf("a group of %u by order, read and written: %.0f ns\n", kGroup,
              nanoseconds_of_a_group());
  if (fpr == .01 && has_vectors()) show_times();
}
