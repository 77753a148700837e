// Tables 1-9 of Bera et al. 2012, recomputed at a smaller scale: records and memory are divided
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

#include "bench/lib/figures.hpp"
#include "bench/lib/streams.hpp"
#include "bench/papers/rsbf/printed_tables.hpp"
#include "core/base/hash.hpp"

namespace {

using namespace streamfilter;
using bench::Errors;
using bench::kKindOfColumn;
using bench::kKindOfTable;
using bench::kPrinted;
using bench::PrintedRow;

struct Options {
  double scale = 100;
  unsigned threads = 2;
  unsigned table = 0;  // 0: all
  std::uint64_t seed = 1;
};

class AnyFilter {
 public:
  virtual ~AnyFilter() = default;
  virtual bool insert(std::uint64_t hash) = 0;
};

class LibraryFilter : public AnyFilter {
 public:
  explicit LibraryFilter(const std::string& text) : filter_(text) {}
  bool insert(std::uint64_t hash) override { return filter_.insert({hash}); }

 private:
  bench::Filter filter_;
};

// One array of bits, with resets in its first `reach` bits only: SBF with Max 1, K 2, P 4, and the
// biased kinds with k = 1 (where BSBF and BSBFSD are the same).
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
  // The number of bits in one array at full scale.
  double array() const { return row->memory * 0x1p23 / (is_sbf() ? 1 : k()); }
  bool is_limited() const { return array() > 0x1p31; }

  std::unique_ptr<AnyFilter> filter(const Options& options) const {
    const std::uint64_t bits = static_cast<std::uint64_t>(array() / options.scale) / 64 * 64;
    if (is_limited())
      return std::make_unique<LimitedFilter>(
          kind(), bits, static_cast<std::uint64_t>(0x1p31 / options.scale), options.seed);
    const std::uint64_t body = is_sbf() ? bits / 8 : k() * (8 + bits / 8);
    std::string text = kind();
    text += "(slices=1, memory=" + std::to_string(bench::memory_for(body)) +
            ", k=" + std::to_string(k());
    text += ", seed=" + std::to_string(options.seed);
    if (is_sbf()) text += ", max=1, p=4";
    if (text.compare(0, 4, "rsbf") == 0) text += ", variant=measured";
    return std::make_unique<LibraryFilter>(text + ")");
  }
};

// Runs the filters of some cells over the stream that they share.
std::vector<Errors> run(const std::vector<Cell>& cells, const Options& options) {
  const PrintedRow& row = *cells.front().row;
  const std::uint64_t rows = static_cast<std::uint64_t>(row.records * 1e6 / options.scale);
  const std::uint64_t distinct = rows * row.distinct / 100;
  bench::ShuffledList stream(rows, distinct, options.seed);
  bench::SeenKeys truth(distinct);
  std::vector<std::unique_ptr<AnyFilter>> filters;
  for (const Cell& cell : cells) filters.push_back(cell.filter(options));
  std::vector<Errors> counts(cells.size());
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t key = stream.next(), hash = hash_word(key, options.seed);
    const bool repeat = truth.is_repeat(key);
    for (std::size_t c = 0; c < cells.size(); ++c)
      counts[c].count(repeat, filters[c]->insert(hash));
  }
  return counts;
}

// Prints one figure. True if it is met.
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
  std::vector<std::vector<Cell>> jobs;  // one printed row each: its cells share stream and memory
  for (const PrintedRow& row : kPrinted) {
    if (options.table != 0 && options.table != row.table) continue;
    jobs.emplace_back();
    for (unsigned column = 0; column < 5; ++column) jobs.back().push_back({&row, column});
  }
  std::vector<std::vector<Errors>> results(jobs.size());
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
      const Errors& counts = results[job][c];
      met += compare(cell, "fpr", cell.row->fpr[cell.column], counts.positives, counts.fresh);
      met += compare(cell, "fnr", cell.row->fnr[cell.column], counts.negatives, counts.repeats);
      figures += 2;
    }
  std::printf("%u of %u figures met at scale 1/%g\n", met, figures, options.scale);
  return met == figures ? 0 : 1;
}
