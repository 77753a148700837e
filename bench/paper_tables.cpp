// Tables 1-9 of rsbf-bsbf-rlbsbf.txt, recomputed at a smaller scale: records and memory are divided
// by --scale, the rates depend on their ratios only. The streams are shuffled lists (streams.hpp),
// false positives are counted per new element and false negatives per repeat.
//
//   make bench
//   build/bench/paper_tables [--scale 100] [--threads 2] [--table 4] [--seed 1]
//
// A figure is met if it is within 3 % or four standard errors of the printed one, whichever is
// larger. RSBF is variant 'measured', SBF is Max 1, K 2, P 4 in one slice. Cells in arrays of more
// than 2^31 bits were printed from runs with 31-bit random numbers, which decrement or reset the
// first 2^31 bits only; these are compared with a plain filter that does the same.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "streamfilter/core/filter.hpp"
#include "streamfilter/core/random.hpp"
#include "streams.hpp"

namespace {

using namespace streamfilter;

struct PrintedRow {
  unsigned table;
  unsigned records;       // millions
  unsigned distinct;      // per cent
  unsigned memory;        // MiB
  double fpr[5], fnr[5];  // per cent
};

// Tables 1-3: columns are k = 1 … 5 of one kind; tables 4-9: columns are the kinds, k = 2.
constexpr const char* kKindOfTable[] = {nullptr, "bsbf", "bsbfsd", "rlbsbf"};
constexpr const char* kKindOfColumn[] = {"sbf", "rsbf", "bsbf", "bsbfsd", "rlbsbf"};

// clang-format off
constexpr PrintedRow kPrinted[] = {
    {1, 1000, 60, 8, {75.979, 35.4924, 15.2961, 6.95161, 3.28054}, {9.20901, 59.0297, 82.0828, 91.5512, 95.7754}},
    {1, 1000, 60, 128, {21.0883, 11.9472, 6.67181, 3.47978, 1.76989}, {9.83893, 34.7514, 59.2496, 75.1262, 84.1857}},
    {1, 1000, 60, 512, {6.46215, 1.82011, 0.777613, 0.386642, 0.205833}, {3.34108, 13.5658, 27.7512, 43.4681, 56.9057}},
    {2, 1000, 60, 8, {75.9827, 78.6056, 81.2512, 83.3572, 85.0294}, {9.2090, 7.8180, 6.4065, 5.3588, 4.5864}},
    {2, 1000, 60, 128, {21.0876, 15.5928, 15.2615, 16.4467, 18.2903}, {9.8405, 17.7438, 22.9224, 26.2752, 28.3608}},
    {2, 1000, 60, 512, {6.4618, 1.9692, 1.0095, 0.6880, 0.5590}, {3.3399, 6.8855, 9.9011, 12.6723, 15.1324}},
    {3, 1000, 60, 8, {81.4726, 52.9291, 30.2439, 17.3562, 10.1282}, {5.3103, 40.466, 66.0585, 80.3262, 88.3195}},
    {3, 1000, 60, 128, {22.8676, 16.3554, 12.3957, 8.56757, 5.5645}, {2.4337, 15.0161, 35.6592, 55.2835, 69.3118}},
    {3, 1000, 60, 512, {6.6563, 2.07884, 1.0555, 0.6773, 0.4828}, {0.2553, 1.98971, 6.1959, 13.3911, 23.2844}},
    {4, 695, 15, 64, {1.9319, 2.6276, 3.2569, 3.5475, 3.7064}, {53.2681, 35.9014, 8.7547, 3.3299, 1.3453}},
    {4, 695, 15, 128, {0.7414, 0.8903, 1.0128, 1.0530, 1.0821}, {37.7853, 23.126, 3.888, 1.7048, 0.3773}},
    {4, 695, 15, 256, {0.2384, 0.2637, 0.2822, 0.2881, 0.2924}, {23.8930, 13.5047, 1.8199, 0.8551, 0.1010}},
    {4, 695, 15, 512, {0.0688, 0.0719, 0.0747, 0.0753, 0.0759}, {12.9392, 7.3674, 0.8794, 0.4267, 0.0262}},
    {5, 695, 60, 64, {6.7672, 12.2408, 16.0723, 22.4491, 22.7214}, {70.832, 52.8855, 39.9809, 19.9394, 20.2164}},
    {5, 695, 60, 128, {4.3075, 6.7265, 8.0154, 9.7951, 10.4734}, {57.9713, 39.2682, 28.6708, 14.7555, 9.8051}},
    {5, 695, 60, 256, {2.0861, 2.7654, 3.0816, 3.4335, 3.6588}, {42.0788, 25.7648, 17.7509, 9.0574, 3.4843}},
    {5, 695, 60, 512, {0.8151, 0.9189, 0.9779, 1.0331, 1.0775}, {24.2902, 15.2035, 9.8819, 4.9892, 1.0236}},
    {6, 695, 90, 64, {8.5028, 16.3502, 20.6486, 31.104, 30.1024}, {73.134, 55.0285, 45.7102, 24.1625, 26.8786}},
    {6, 695, 90, 128, {6.3252, 10.6716, 11.9222, 15.7484, 16.6894}, {61.1759, 41.9224, 36.5123, 20.3118, 16.4363}},
    {6, 695, 90, 256, {3.5908, 5.0678, 5.3168, 6.3016, 6.8635}, {45.4987, 28.179, 25.3195, 13.8078, 7.0784}},
    {6, 695, 90, 512, {1.6058, 1.8497, 1.8911, 2.0783, 2.2248}, {26.6313, 16.9302, 15.3766, 8.1061, 2.3059}},
    {7, 1000, 15, 64, {2.9156, 4.2891, 5.5775, 6.3441, 6.6755}, {60.8981, 43.1705, 13.7096, 4.6175, 2.5795}},
    {7, 1000, 15, 128, {1.2608, 1.6079, 1.9023, 2.0181, 2.0930}, {45.9566, 29.5540, 5.9096, 2.4357, 0.7400}},
    {7, 1000, 15, 256, {0.4413, 0.5059, 0.5572, 0.5727, 0.5849}, {30.8269, 18.1142, 2.6956, 1.2296, 0.2026}},
    {7, 1000, 15, 512, {0.1341, 0.1431, 0.1506, 0.1526, 0.1543}, {17.1336, 10.2015, 1.2846, 0.6139, 0.0535}},
    {8, 1000, 60, 64, {7.8507, 15.0561, 20.7283, 31.3858, 30.044}, {75.7271, 58.6734, 44.9042, 21.0835, 25.7526}},
    {8, 1000, 60, 128, {5.6378, 9.5676, 11.9472, 15.5928, 16.3554}, {65.2456, 46.6885, 34.7514, 17.7438, 15.0161}},
    {8, 1000, 60, 256, {3.1629, 4.5557, 5.2369, 6.0937, 6.5378}, {50.5726, 32.6139, 23.2001, 11.9067, 6.2079}},
    {8, 1000, 60, 512, {1.4504, 1.6747, 1.82011, 1.9692, 2.0788}, {30.2739, 20.2770, 13.5658, 6.8855, 1.9897}},
    {9, 1000, 90, 64, {9.2617, 18.6342, 25.0083, 40.5501, 36.7959}, {77.5273, 60.3738, 49.2073, 23.8819, 31.0134}},
    {9, 1000, 90, 128, {7.5909, 13.8357, 16.4207, 23.192, 23.5977}, {68.0553, 49.2204, 41.7178, 22.89, 22.2474}},
    {9, 1000, 90, 256, {5.0231, 7.7876, 8.3846, 10.4808, 11.3415}, {54.0293, 35.2653, 31.2527, 17.2991, 11.5338}},
    {9, 1000, 90, 512, {2.7427, 3.2263, 3.33317, 3.7953, 4.1133}, {32.8335, 22.3998, 20.2695, 10.8729, 4.2852}},
};
// clang-format on

struct Options {
  double scale = 100;
  unsigned threads = 2;
  unsigned table = 0;  // 0: all
  std::uint64_t seed = 1;
};

struct Counts {
  double fresh = 0, repeats = 0, positives = 0, negatives = 0;
};

class AnyFilter {
 public:
  virtual ~AnyFilter() = default;
  virtual bool insert(std::uint64_t hash) = 0;
};

// A filter of the library.
class LibraryFilter : public AnyFilter {
 public:
  explicit LibraryFilter(const std::string& text) {
    Definition definition;
    Problem problem;
    std::size_t used;
    if (!parse_definition(text.data(), text.size(), definition, used, problem) ||
        !complete(definition, problem)) {
      std::fprintf(stderr, "%s: %s\n", text.c_str(), problem.message);
      std::exit(1);
    }
    bytes_.resize((definition.parameters.memory + 7) / 8);
    format(header(), definition.parameters);
  }

  bool insert(std::uint64_t hash) override { return streamfilter::insert(header(), {hash}); }

 private:
  Header* header() { return reinterpret_cast<Header*>(bytes_.data()); }
  std::vector<std::uint64_t> bytes_;
};

// One array of bits of which only the first `reach` are ever reset: SBF with Max 1, K 2, P 4, and
// the biased kinds with k = 1 (where BSBF and BSBFSD are the same).
class LimitedFilter : public AnyFilter {
 public:
  LimitedFilter(const char* kind, std::uint64_t bits, std::uint64_t reach, std::uint64_t seed)
      : kind_(kind), bits_(bits), reach_(reach), random_(seed) {}

  bool insert(std::uint64_t hash) override {
    const bool stable = kind_ == "sbf";
    const std::uint64_t m = bits_.size(), at[] = {position(hash, 0, m), position(hash, 1, m)};
    const bool seen = bits_[at[0]] && (!stable || bits_[at[1]]);
    if (stable) {
      const std::uint64_t start = random_below(random_, reach_);
      for (unsigned i = 0; i < 4; ++i) bits_[(start + i) % m] = false;
      bits_[at[0]] = bits_[at[1]] = true;
    } else if (!seen) {
      if (kind_ != "rlbsbf" || random_below(random_, m) < ones_)
        assign(random_below(random_, reach_), false);
      assign(at[0], true);
    }
    return seen;
  }

 private:
  void assign(std::uint64_t at, bool value) {
    ones_ += value - bits_[at];
    bits_[at] = value;
  }

  std::string kind_;
  std::vector<bool> bits_;
  std::uint64_t reach_, random_, ones_ = 0;
};

struct Cell {
  const PrintedRow* row;
  unsigned column;

  const char* kind() const {
    return row->table <= 3 ? kKindOfTable[row->table] : kKindOfColumn[column];
  }
  unsigned k() const { return row->table <= 3 ? column + 1 : 2; }
  bool is_sbf() const { return std::strcmp(kind(), "sbf") == 0; }
  // Bits of one array at full scale.
  double array() const { return row->memory * 0x1p23 / (is_sbf() ? 1 : k()); }
  bool is_limited() const { return array() > 0x1p31; }

  std::unique_ptr<AnyFilter> filter(const Options& options) const {
    const std::uint64_t bits = static_cast<std::uint64_t>(array() / options.scale) / 64 * 64;
    if (is_limited())
      return std::make_unique<LimitedFilter>(
          kind(), bits, static_cast<std::uint64_t>(0x1p31 / options.scale), options.seed);
    const std::uint64_t body = is_sbf() ? bits / 8 : k() * (8 + bits / 8);
    std::string text = kind();
    text += "(slices=1, k=" + std::to_string(k());
    text +=
        ", memory=" + std::to_string(sizeof(Header) + sizeof(SliceState) + (body + 63) / 64 * 64);
    text += ", seed=" + std::to_string(options.seed);
    if (is_sbf()) text += ", max=1, p=4";
    if (text.compare(0, 4, "rsbf") == 0) text += ", variant=measured";
    return std::make_unique<LibraryFilter>(text + ")");
  }
};

// Runs the filters of some cells over the one stream that they share.
std::vector<Counts> run(const std::vector<Cell>& cells, const Options& options) {
  const PrintedRow& row = *cells.front().row;
  const std::uint64_t rows = static_cast<std::uint64_t>(row.records * 1e6 / options.scale);
  const std::uint64_t distinct = rows * row.distinct / 100;
  bench::ShuffledList stream(rows, distinct, options.seed);
  bench::SeenKeys truth(distinct);
  std::vector<std::unique_ptr<AnyFilter>> filters;
  for (const Cell& cell : cells) filters.push_back(cell.filter(options));
  std::vector<Counts> counts(cells.size());
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t key = stream.next(), hash = hash_word(key, options.seed);
    const bool repeat = truth.is_repeat(key);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool seen = filters[c]->insert(hash);
      (repeat ? counts[c].repeats : counts[c].fresh) += 1;
      counts[c].positives += seen && !repeat;
      counts[c].negatives += !seen && repeat;
    }
  }
  return counts;
}

// Prints one figure; true if it is met.
bool compare(const Cell& cell, const char* figure, double printed, double errors, double of) {
  const double rate = errors / of, expected = printed / 100;
  const double deviation = std::sqrt(std::max(rate, expected) * (1 - expected) / of);
  const bool met = std::fabs(rate - expected) <= std::max(0.03 * expected, 4 * deviation);
  std::printf("%u\t%u\t%u\t%u\t%s\t%u\t%s\t%g\t%.4f\t%+.2f\t%+.1f\t%s%s\n", cell.row->table,
              cell.row->records, cell.row->distinct, cell.row->memory, cell.kind(), cell.k(),
              figure, printed, 100 * rate, 100 * (rate / expected - 1),
              (rate - expected) / deviation, met ? "met" : "MISSED",
              cell.is_limited() ? " (31-bit)" : "");
  return met;
}

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const double value = i + 1 < count ? std::atof(words[i + 1]) : 0;
    if (std::strcmp(words[i], "--scale") == 0 && value >= 1)
      options.scale = value;
    else if (std::strcmp(words[i], "--threads") == 0 && value >= 1)
      options.threads = static_cast<unsigned>(value);
    else if (std::strcmp(words[i], "--table") == 0 && value >= 1 && value <= 9)
      options.table = static_cast<unsigned>(value);
    else if (std::strcmp(words[i], "--seed") == 0 && value >= 0)
      options.seed = static_cast<std::uint64_t>(value);
    else {
      std::fprintf(stderr,
                   "usage: paper_tables [--scale 100] [--threads 2] [--table 1..9] [--seed 1]\n");
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = read_options(count, words);
  std::vector<std::vector<Cell>> jobs;  // a printed row each: the same stream and memory
  for (const PrintedRow& row : kPrinted) {
    if (options.table != 0 && options.table != row.table) continue;
    jobs.emplace_back();
    for (unsigned column = 0; column < 5; ++column) jobs.back().push_back({&row, column});
  }
  std::vector<std::vector<Counts>> results(jobs.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < options.threads; ++i)
    workers.emplace_back([&] {
      for (std::size_t job; (job = next++) < jobs.size();) results[job] = run(jobs[job], options);
    });
  for (std::thread& worker : workers) worker.join();

  std::printf(
      "table\tmillions\tdistinct\tMB\tkind\tk\tfigure\tprinted\tmeasured\tdeviation %%\t"
      "standard errors\tverdict\n");
  unsigned figures = 0, met = 0;
  for (std::size_t job = 0; job < jobs.size(); ++job)
    for (std::size_t c = 0; c < jobs[job].size(); ++c) {
      const Cell& cell = jobs[job][c];
      const Counts& counts = results[job][c];
      met += compare(cell, "fpr", cell.row->fpr[cell.column], counts.positives, counts.fresh);
      met += compare(cell, "fnr", cell.row->fnr[cell.column], counts.negatives, counts.repeats);
      figures += 2;
    }
  std::printf("%u of %u figures met at scale 1/%g\n", met, figures, options.scale);
  return met == figures ? 0 : 1;
}
