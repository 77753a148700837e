#include "core/advise/tuning.hpp"

#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <numeric>

#include "core/base/math_policy.hpp"

namespace streamfilter {
namespace {

constexpr double kKnown = 0.02;  // the relative error of false positives that are expected
constexpr double kSure = 3;      // standard errors beyond which it is not chance

// The chance that fewer than `ranks` others of the bucket came, of a Poisson number.
double stays(double ranks, double others) noexcept {
  return others > 0 ? boost::math::gamma_q(ranks, others, MathPolicy()) : 1;
}

// The chance that fewer than `ranks` of `others` are of the bucket if each is with probability
// p.
double stays(double ranks, double others, double p) noexcept {
  return others < ranks ? 1 : boost::math::ibetac(ranks, others - ranks + 1, p, MathPolicy());
}

// The line y = a + b x, b <= 0, closest to points of different weight, and how far they are from
// it: the weighted sum of squares.
class Line {
 public:
  void add(double x, double y, double weight) noexcept {
    n_ += weight;
    x_ += weight * x;
    y_ += weight * y;
    xx_ += weight * x * x;
    xy_ += weight * x * y;
    yy_ += weight * y * y;
  }

  double at(double x) const noexcept { return (y_ + slope() * (x * n_ - x_)) / n_; }

  double distance() const noexcept {
    return yy_ - y_ * y_ / n_ - slope() * (2 * covariance() - slope() * variance());
  }

 private:
  double covariance() const noexcept { return xy_ - x_ * y_ / n_; }
  double variance() const noexcept { return xx_ - x_ * x_ / n_; }
  double slope() const noexcept {
    return variance() > 0 ? std::min(covariance() / variance(), 0.0) : 0;
  }

  double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0, yy_ = 0;
};

// The mean of a Poisson number whose mean, if it is cut at `ranks`, is `taken`.
double arrived(double taken, unsigned ranks) noexcept {
  const auto cut_mean = [ranks](double mean) {
    double sum = 0;
    for (unsigned j = 1; j <= ranks; ++j) sum += 1 - stays(j, mean);
    return sum;
  };
  double low = 0, high = 4.0 * ranks + 20;
  for (int i = 0; i < 40; ++i) (cut_mean((low + high) / 2) < taken ? low : high) = (low + high) / 2;
  return high;
}

}  // namespace

// In a bucket with s of N different fingerprints, a new key is reported as new with probability 1 -
// s/N, and found at each of the s ranks with 1/N. Hashes spread keys over buckets, so s is a
// Poisson number, cut at the length of a bucket.
void expect_false_hits(const std::uint64_t* misses, unsigned ranks, double fpr,
                       double* false_hits) noexcept {
  std::fill_n(false_hits, ranks, 0.0);
  for (unsigned step = 1; step <= kFillSteps; ++step) {
    if (misses[step] == 0) continue;
    const double fill = to_real(step) / kFillSteps,
                 keys = step < kFillSteps ? arrived(fill * ranks, ranks) : 0,
                 rows = to_real(misses[step]) / std::max(1 - fpr * fill, 1e-6);
    for (unsigned j = 0; j < ranks; ++j)
      false_hits[j] += rows * fpr / ranks * (step < kFillSteps ? 1 - stays(j + 1, keys) : 1);
  }
}

Tuning::Tuning(const Answers& answers) noexcept
    : ranks_(answers.ranks), fpr_(answers.fpr), buckets_(answers.buckets) {
  if (answers.false_hits != nullptr) {
    for (unsigned j = 0; j < ranks_; ++j) hits_[none][j] = to_real(answers.hits[j]);
    take_away(answers.false_hits);
  } else {
    take_hits(answers);
  }
  continue_hits(to_real(answers.misses));
  find_lags();
}

void Tuning::take_away(const double* false_hits) noexcept {
  seen_ = 0;
  for (unsigned j = 0; j < ranks_; ++j) {
    raw_[j] = hits_[none][j];
    surplus_[j] = raw_[j] - false_hits[j];
    const double hits = std::max(surplus_[j], 0.0);
    for (auto& tail : hits_) tail[j] = hits;
    seen_ += hits;
    false_ += false_hits[j];
  }
}

// A row without its own fingerprint in the filter meets an equal one with probability fpr, at every
// rank alike.
void Tuning::take_hits(const Answers& answers) noexcept {
  const std::uint64_t all = std::accumulate(answers.hits, answers.hits + ranks_, std::uint64_t{0});
  const double wrong = to_real(answers.misses) * fpr_,
               right = std::max(to_real(all) * (1 - fpr_) - wrong, 0.0),
               each = fpr_ < 1 ? (to_real(all) - right / (1 - fpr_)) / ranks_ : 0;
  double false_hits[kMaxRanks];
  for (unsigned j = 0; j < ranks_; ++j) {
    hits_[none][j] = to_real(answers.hits[j]);
    false_hits[j] = each;
  }
  take_away(false_hits);
}

// Whether more hits were counted than chance and false positives explain. A stream that repeats
// itself repeats its false positives too: then no more of them are independent than a filter has in
// one look at all its places.
bool Tuning::has_repeats() const noexcept {
  const double hits = std::accumulate(surplus_, surplus_ + ranks_, 0.0),
               raw = std::accumulate(raw_, raw_ + ranks_, 0.0),
               draws = fpr_ * buckets_ * ranks_ + 1;
  return hits > kSure * std::sqrt(raw + false_ * false_ * (kKnown * kKnown + 1 / draws));
}

// Whether hits become more towards the last ranks, which are those of a lag beyond them.
bool Tuning::rises() const noexcept {
  const unsigned part = std::max(ranks_ / 8, 1u);
  if (ranks_ < 2 * part) return false;
  double last = 0, before = 0, raw = 0;
  for (unsigned j = ranks_ - part; j < ranks_; ++j) {
    last += surplus_[j];
    before += surplus_[j - part];
    raw += raw_[j] + raw_[j - part];
  }
  return last - before > kSure * std::sqrt(raw + kKnown * kKnown * before * before);
}

// Hits beyond the last rank: as many as at the last quarter of the ranks, and none, and in
// between a geometric series or a power of the rank, whichever is closer to the second half of
// the ranks. They are not more than rows were reported as new.
void Tuning::continue_hits(double most) noexcept {
  Line geometric, power;
  for (unsigned j = ranks_ / 2; j < ranks_; ++j) {
    const double hits = hits_[none][j];
    if (!(hits > 0)) continue;
    geometric.add(j + 1, std::log(hits), hits);
    power.add(std::log(j + 1), std::log(hits), hits);
  }
  const bool is_geometric = geometric.distance() < power.distance();
  const unsigned last = std::max(ranks_ / 4, 1u);
  const double end = std::accumulate(hits_[none] + ranks_ - last, hits_[none] + ranks_, 0.0) / last;
  for (unsigned j = ranks_; j < kReach * ranks_; ++j) {
    const double fitted = is_geometric ? geometric.at(j + 1) : power.at(std::log(j + 1));
    hits_[continued][j] = end > 0 ? std::min(std::exp(fitted), end) : 0;
    hits_[none][j] = 0;
    hits_[level][j] = end;
  }
  for (auto& tail : hits_) {
    const double beyond = std::accumulate(tail + ranks_, tail + kReach * ranks_, 0.0);
    if (beyond > most)
      for (unsigned j = ranks_; j < kReach * ranks_; ++j) tail[j] *= most / beyond;
  }
  if (!has_repeats() || rises()) expect_the_worst(most);
}

// All rows reported as new were repeats, as far away as counts, and so were those of them that met
// an equal fingerprint.
void Tuning::expect_the_worst(double misses) noexcept {
  std::fill(hits_[level] + ranks_, hits_[level] + kReach * ranks_, 0.0);
  hits_[level][kReach * ranks_ - 1] = misses / std::max(1 - fpr_, 1e-6);
}

// The lags that make the hits most likely, from evenly spread ones towards there (Richardson 1972,
// Lucy 1974). What lies beyond the last rank is not seen, and each lag is given as many repeats
// that are not.
void Tuning::find_lags() noexcept {
  constexpr int kRounds = 100;
  const double last = std::sqrt(1.5 * ranks_ + 10), step = last / kLags;
  double seen[kLags];
  for (unsigned i = 0; i < kLags; ++i) {
    const double root = (i + 0.5) * step;
    lag_[i] = root * root;
    weight_[i] = root;
    seen[i] = stays(ranks_, lag_[i]);
  }
  for (int round = 0; round < kRounds; ++round) {
    double expected[kMaxRanks] = {}, likelihood[kLags] = {};
    const auto for_each = [this](auto visit) {
      for (unsigned i = 0; i < kLags; ++i) {
        double chance = std::exp(-lag_[i]);
        for (unsigned j = 0; j < ranks_; chance *= lag_[i] / ++j) visit(i, j, chance);
      }
    };
    for_each([&](unsigned i, unsigned j, double p) { expected[j] += weight_[i] * p; });
    for_each([&](unsigned i, unsigned j, double p) {
      if (expected[j] > 0) likelihood[i] += hits_[none][j] / expected[j] * p;
    });
    for (unsigned i = 0; i < kLags; ++i) weight_[i] *= likelihood[i] / seen[i];
    if (round == kRounds / 4) std::copy_n(weight_, kLags, early_);
  }
}

// Repeats that less memory still finds, by the share of each lag's keys that stay there.
double Tuning::found_with_less(double factor, const double* weight) const noexcept {
  double found = 0, now = 0;
  for (unsigned i = 0; i < kLags; ++i) {
    found += weight[i] * stays(ranks_, lag_[i] / factor);
    now += weight[i] * stays(ranks_, lag_[i]);
  }
  return now > 0 ? seen_ * found / now : 0;
}

// With `factor` times the buckets, each of the others is still of the same one with probability
// 1/factor.
double Tuning::found_with_more(double factor, Tail tail) const noexcept {
  double found = 0;
  for (unsigned j = 0; j < kReach * ranks_; ++j)
    found += hits_[tail][j] * stays(ranks_, j, 1 / factor);
  return found;
}

double Tuning::repeats(Tail tail) const noexcept {
  return std::accumulate(hits_[tail], hits_[tail] + kReach * ranks_, 0.0);
}

// Keys that are gone look like others as often as new keys do.
double Tuning::found(double factor, Tail tail) const noexcept {
  const double there = factor < 1   ? found_with_less(factor, weight_)
                       : factor > 1 ? found_with_more(factor, tail)
                                    : seen_;
  return there + fpr_ * (repeats(tail) - there);
}

// By chance, here and in the other filter: repeats are a sample, and those of one bucket at about
// one time have their others in common, which makes them one draw at worst. What was taken away as
// false hits is a Poisson number, known to some hundredths. The lags are as blurred as they still
// move while they are sought.
double Tuning::error_at(double factor) const noexcept {
  constexpr double kShared = 0.5;
  const double all = repeats(continued),
               missed = std::clamp(1 - found(factor, continued) / all, 0.0, 1.0),
               share = (missed * all + 1) / (all + 2);
  const double draws = 2 / (all + 2) + kShared * (1 + 1 / factor) / (buckets_ + 2);
  double variance =
      share * (1 - share) * draws + false_ * (1 + kKnown * kKnown * false_) / (all * all);
  if (factor < 1) {
    const double blur = (found_with_less(factor, weight_) - found_with_less(factor, early_)) / all;
    variance += blur * blur;
  }
  return std::sqrt(variance);
}

Tuned Tuning::at(double factor) const noexcept {
  const auto fnr = [&](Tail tail) {
    return std::max(1 - found(factor, tail) / repeats(tail), 0.0);
  };
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (!(repeats(continued) > 0))
    return {found(factor, continued), kUnknown, kUnknown, kUnknown, kUnknown};
  return {found(factor, continued), fnr(continued), fnr(none), fnr(level), error_at(factor)};
}

}  // namespace streamfilter
