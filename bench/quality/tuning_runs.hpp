// Filters of kind clq with less and more memory on the same stream, and the estimates that the
// middle one makes for the others.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "bench/lib/streams.hpp"
#include "core/advise/tuning.hpp"
#include "core/filter/filter.hpp"

namespace bench {

// The number of different keys since a key's last sight: a Fenwick tree over the rows, where the
// last row of each key is marked.
class Lags {
 public:
  explicit Lags(std::uint64_t rows) : tree_(rows + 1) {}

  // The lag of the next row; -1 if its key is new.
  double next(std::uint64_t key) {
    const std::uint64_t now = ++row_;
    const auto [at, is_new] = last_.try_emplace(key, now);
    double lag = -1;
    if (!is_new) {
      lag = static_cast<double>(last_.size() - marked_until(at->second));
      mark(at->second, -1);
      at->second = now;
    }
    mark(now, 1);
    return lag;
  }

 private:
  void mark(std::uint64_t row, int by) {
    for (; row < tree_.size(); row += row & -row) tree_[row] += by;
  }
  std::uint64_t marked_until(std::uint64_t row) const {
    std::int64_t sum = 0;
    for (; row > 0; row -= row & -row) sum += tree_[row];
    return static_cast<std::uint64_t>(sum);
  }

  std::uint64_t row_ = 0;
  std::vector<std::int32_t> tree_;
  std::unordered_map<std::uint64_t, std::uint64_t> last_;
};

// The same keys again and again, in the same order.
class Cycle {
 public:
  explicit Cycle(std::uint64_t keys, std::uint64_t first = 0) : first_(first), keys_(keys) {}
  std::uint64_t next() { return first_ + next_++ % keys_; }

 private:
  std::uint64_t first_, keys_, next_ = 0;
};

// Every other row belongs to a cycle; those between are uniform draws.
class HalfCycle {
 public:
  HalfCycle(std::uint64_t keys, std::uint64_t near) : cycle_(keys, near), near_(near, 1) {}
  std::uint64_t next() { return (is_near_ = !is_near_) ? near_.next() : cycle_.next(); }

 private:
  Cycle cycle_;
  Uniform near_;
  bool is_near_ = false;
};

constexpr double kFactors[] = {0.25, 0.5, 1, 2, 4};
constexpr unsigned kRuns = 5, kMiddle = 2;

// One filter, and the repeats that it has found among the rows that count.
class TuningRun {
 public:
  // One slice with `lines` lines.
  TuningRun(const std::string& options, std::uint64_t lines) : bytes_(nullptr, std::free) {
    using namespace streamfilter;
    const std::string text = "clq(" + options + ", slices=1, memory=" +
                             std::to_string(kStoredHeader + sizeof(SliceState) + lines * 64) + ")";
    Parameters parameters;
    Problem problem;
    if (!make_parameters(text, parameters, problem)) {
      std::fprintf(stderr, "%s: %s\n", text.c_str(), problem.message);
      std::exit(2);
    }
    bytes_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, block_bytes(parameters))));
    format(header(), parameters);
  }

  streamfilter::Header* header() const {
    return reinterpret_cast<streamfilter::Header*>(bytes_.get());
  }

  void take(const streamfilter::Element& element, bool is_within, bool counts) {
    unsigned position;
    const bool seen = test(header(), element, position);
    if (counts && !seen) miss();
    insert(header(), element);
    if (!counts) return;
    if (seen) ++hits[position];
    found += seen && is_within;
  }

  // A row of a large transaction that began when the filter was empty; the transaction finds
  // repeats among its own keys.
  void load(const streamfilter::Element& element, bool is_new) {
    insert(header(), element);
    misses_at[0] += is_new;
    misses += is_new;
  }

  void clear() {
    const streamfilter::Parameters parameters = header()->parameters;
    format(header(), parameters);
    next_look_ = 0;
  }

  streamfilter::Answers answers() {
    const streamfilter::Parameters& p = header()->parameters;
    const unsigned ranks = streamfilter::ranks_of_bucket(p);
    const double fpr = streamfilter::find_ops(p.kind)->fpr_bound(p);
    streamfilter::expect_false_hits(misses_at, ranks, fpr, false_hits_);
    return {hits, ranks, misses, fpr, false_hits_, streamfilter::buckets_of(p)};
  }

  std::uint64_t hits[streamfilter::kMaxRanks] = {}, misses = 0;
  std::uint64_t misses_at[streamfilter::kFillSteps + 1] = {};
  double found = 0;

 private:
  // Like a server, looks at the fill when a 64th more keys were new.
  void miss() {
    if (misses >= next_look_) {
      fill_ = streamfilter::totals(header()).estimate.fill;
      next_look_ = misses + misses / 64 + 1;
    }
    ++misses_at[streamfilter::fill_step(fill_)];
    ++misses;
  }

  std::unique_ptr<unsigned char, void (*)(void*)> bytes_;
  double fill_ = 0, false_hits_[streamfilter::kMaxRanks] = {};
  std::uint64_t next_look_ = 0;
};

// The history of a filter before its figures are read.
enum class Life {
  restarted,  // the first half of the rows only fills it, as a replayed log does
  cold,       // it began empty, and all rows count
  warmed,     // the first half came in one transaction
  truncated,  // all rows count, but it was emptied after a half
};

struct TuningRuns {
  std::vector<TuningRun> runs;  // by kFactors
  double within = 0;            // repeats within Tuning::kReach

  double fnr(unsigned run) const { return 1 - runs[run].found / within; }

  // A row is a repeat within reach if its lag is at most kReach times the places of the middle
  // filter.
  template <typename Stream>
  TuningRuns(const std::string& options, std::uint64_t lines, Stream stream, std::uint64_t rows,
             Life life = Life::restarted) {
    for (const double factor : kFactors)
      runs.emplace_back(options, static_cast<std::uint64_t>(factor * static_cast<double>(lines)));
    const double reach = streamfilter::Tuning::kReach * places();
    std::optional<Lags> lags(rows);
    for (std::uint64_t row = 0; row < rows; ++row) {
      if (life == Life::truncated && row == rows / 2) {
        for (TuningRun& run : runs) run.clear();
        lags.emplace(rows);
      }
      const std::uint64_t key = stream.next();
      const streamfilter::Element element{streamfilter::hash_word(key, 0)};
      const double lag = lags->next(key);
      const bool is_second = row >= rows / 2, is_within = lag >= 0 && lag < reach;
      const bool is_loaded = life == Life::warmed && !is_second,
                 counts = is_second || life == Life::cold || life == Life::truncated;
      within += counts && is_within;
      for (TuningRun& run : runs)
        is_loaded ? run.load(element, lag < 0) : run.take(element, is_within, counts);
    }
  }

  // The lag limit of the middle filter.
  double places() const {
    const auto& p = runs[kMiddle].header()->parameters;
    return streamfilter::buckets_of(p) * streamfilter::ranks_of_bucket(p);
  }
};

}  // namespace bench
