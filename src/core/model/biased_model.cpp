#include "core/model/biased_model.hpp"

#include <boost/math/tools/roots.hpp>

#include "core/base/math_policy.hpp"

namespace streamfilter::biased_model {
namespace {

// The root of a falling function on 0..1.
template <typename Function>
double root(Function function) noexcept {
  std::uintmax_t rounds = 200;
  const auto [low, high] = boost::math::tools::bisect(
      function, 0.0, 1.0, boost::math::tools::eps_tolerance<double>(), rounds, MathPolicy());
  return low + (high - low) / 2;
}

// 1 + y + … + y^(k-1) = (1-y^k) / (1-y).
double series(double y, double k) noexcept {
  double sum = 0;
  for (double i = 0; i < k; ++i) sum = 1 + y * sum;
  return sum;
}

// Probability that any of k bits is unset.
double any_unset(double unset, double k) noexcept { return -std::expm1(k * std::log1p(-unset)); }

// An integral by the trapezoidal rule, point by point; the first of width 0.
struct Integral {
  double sum = 0, last = 0;
  void add(double width, double value) noexcept {
    sum += width * (value + last) / 2;
    last = value;
  }
};

// The largest c (1-y^k) over all loads y: bits reset per element, at most.
double most_resets(Scheme scheme, double k) noexcept {
  switch (scheme) {
    case Scheme::bsbfsd: return 1 / k;
    case Scheme::rlbsbf: return k / (k + 1) * std::pow(k + 1, -1 / k);
    default: return 1;
  }
}

}  // namespace

double limit_load(const Setting& setting) noexcept {
  const double k = setting.k, s = setting.s;
  switch (setting.scheme) {
    // y = 1 solves the equation always; divided by 1-y, it gives the limit (k > 1).
    case Scheme::bsbf: return k > 1 ? root([=](double y) { return 1 - y * series(y, k); }) : 1;
    case Scheme::rlbsbf:
      return k > 1 ? root([=](double y) { return 1 - y * y * series(y, k); }) : 1;
    case Scheme::bsbfsd: return 1;
    case Scheme::rsbf_printed: return -std::expm1(s * std::log1p(-1 / s));
    // A bit is set if an element that set it is followed by no reset of it: summed over all
    // distances, (1/s) (1-1/s)^(2 gap). Repeats only leave terms out.
    case Scheme::rsbf_measured: return 1 / (2 - 1 / s);
  }
  return 1;
}

double fpr_bound(const Setting& setting, double keys) noexcept {
  const double k = setting.k, s = setting.s;
  const double ever_set = -std::expm1(keys * std::log1p(-1 / s));
  // Where resets depend on answers, the loads of few bits vary together; what that adds was
  // measured as 1.3 to 2.5 in s.
  const bool by_answers = setting.scheme == Scheme::bsbf || setting.scheme == Scheme::rlbsbf;
  const double limit = std::pow(limit_load(setting), k) * (by_answers ? 1 + k * k / s : 1);
  return std::min({1.0, std::pow(ever_set, k), limit});
}

double limit_of_array(const Setting& setting) noexcept {
  return std::pow(fpr_bound(setting, std::numeric_limits<double>::infinity()), 1 / setting.k);
}

double fnr_bound(const Setting& setting, double gap) noexcept {
  const double resets = most_resets(setting.scheme, setting.k);
  const double reset = -std::expm1(-(1 + resets) * gap / setting.s) * resets / (1 + resets);
  return -std::expm1(setting.k * std::log1p(-reset));
}

// Probabilities of the next element, given the past.
struct Course::Next {
  double is_new;        // probability that it is new
  double load;          // that a bit of a new key is set
  double unset_repeat;  // that it is a repeat and one certain bit of it is unset
  double missed;        // that it is a repeat and any bit of it is unset
};

Course::Course(const Setting& setting, const Stream& stream) noexcept
    : setting_(setting), stream_(stream.part(setting.s)) {
  make_grid();
  for (unsigned i = 0; i <= kSteps; ++i) step(i);
}

// t = grid_ (e^(a i) - 1). The phases of Algorithm 1 and the first repeats begin between two
// points next to each other.
void Course::make_grid() noexcept {
  grid_ = std::min(0.02, stream_.rows());
  const double a = std::log1p(stream_.rows() / grid_) / kSteps;
  for (unsigned i = 0; i <= kSteps; ++i) time_[i] = grid_ * std::expm1(a * i);
  if (stream_.gap() > 0) put_on_grid(stream_.gap());
  if (setting_.scheme != Scheme::rsbf_printed) return;
  put_on_grid(1);
  put_on_grid(1 / setting_.p_star);
}

void Course::put_on_grid(double time) noexcept {
  unsigned i = 1;
  while (i < kSteps && time_[i] < time) ++i;
  if (i + 1 >= kSteps) return;
  time_[i] = time * (1 - 1e-9);
  time_[i + 1] = time * (1 + 1e-9);
}

// Algorithm 1 inserts with probability s/iter in its second phase.
double Course::insertion(double t) const noexcept {
  return setting_.scheme == Scheme::rsbf_printed && t > 1 && 1 / t > setting_.p_star ? 1 / t : 1;
}

// Integrates over `lag`, the time since the last reset of a bit or the last insertion of a key.
Course::Next Course::next(unsigned i) const noexcept {
  const double now = time_[i], a = std::log1p(now / grid_) / kSteps;
  Integral unset;  // probability for a bit that was set `lag` ago
  double unset_repeat = 0, missed = 0, last_bit = 0, last_missed = 0;
  double kept = 0, inserted = 0, lag = 0;
  unsigned cell = i;
  for (unsigned j = 0; j <= kSteps; ++j) {
    const double previous = lag;
    lag = j < kSteps ? grid_ * std::expm1(a * j) : now;
    const double then = std::max(0.0, now - lag);
    while (cell > 1 && time_[cell - 1] > then) --cell;
    const double width = i > 0 ? time_[cell] - time_[cell - 1] : 0;
    const double part = width > 0 ? std::min(1.0, (time_[cell] - then) / width) : 0;
    const auto at = [&](const double(&values)[kSteps + 1]) {
      return i == 0 ? values[0] : values[cell] + part * (values[cell - 1] - values[cell]);
    };

    const double newer = inserted;
    inserted = inserted_sum_[i] - at(inserted_sum_);
    // The share of bits that were neither reset since then, nor set again by any of their keys.
    kept = std::exp(at(reset_sum_) - reset_sum_[i] - stream_.distinct_in(inserted));
    unset.add(lag - previous, at(reset_rate_) * kept);

    // The next element was last inserted between the previous lag and this one.
    const double last_inserted = stream_.fresh(newer) - stream_.fresh(inserted),
                 part_of_it = stream_.lags_between(newer, inserted);
    const double bit = std::min(unset.sum, 1.0), any = any_unset(bit, setting_.k);
    unset_repeat += last_inserted * (last_bit + part_of_it * (bit - last_bit));
    missed += last_inserted * (last_missed + part_of_it * (any - last_missed));
    last_bit = bit;
    last_missed = any;
  }
  // Bits of keys that were never inserted, new or passed over: never set, or reset since.
  const double unset_new = std::min(1.0, unset.sum + kept);
  const double is_new = stream_.fresh(now), passed_over = stream_.fresh(inserted) - is_new;
  return {is_new, 1 - unset_new, unset_repeat + passed_over * unset_new,
          missed + passed_over * any_unset(unset_new, setting_.k)};
}

double Course::resets(unsigned i, const Next& next) const noexcept {
  const double t = time_[i], y = next.load;
  const double missed = next.is_new * any_unset(1 - y, setting_.k) + next.missed;
  switch (setting_.scheme) {
    case Scheme::bsbf: return missed;
    case Scheme::bsbfsd: return missed / setting_.k;
    case Scheme::rlbsbf: return missed * y;
    case Scheme::rsbf_measured: return 1;
    case Scheme::rsbf_printed: break;
  }
  if (t <= 1) return 0;
  if (1 / t > setting_.p_star) return insertion(t);
  // A set bit is reset for each that is set, so the load stays what it was; dividing by that
  // instead of the load computed keeps errors from adding up.
  const double unset = next.is_new * (1 - y) + next.unset_repeat;
  return constant_load_ > 0 ? unset / constant_load_ : 0;
}

void Course::step(unsigned i) noexcept {
  const double width = i > 0 ? time_[i] - time_[i - 1] : 0;
  if (i > 0) {
    inserted_sum_[i] =
        inserted_sum_[i - 1] + width * (insertion(time_[i]) + insertion(time_[i - 1])) / 2;
    reset_rate_[i] = reset_rate_[i - 1];
  }
  Next element{};
  for (unsigned round = 0; round < 50; ++round) {
    if (i > 0)
      reset_sum_[i] = reset_sum_[i - 1] + width * (reset_rate_[i] + reset_rate_[i - 1]) / 2;
    element = next(i);
    const double rate = resets(i, element);
    const bool settled = std::fabs(rate - reset_rate_[i]) <= 1e-7 * (1e-3 + rate);
    reset_rate_[i] = rate;
    if (settled) break;
  }
  const double repeats = 1 - element.is_new;
  load_[i] = element.load;
  if (time_[i] * setting_.p_star < 1) constant_load_ = element.load;
  fpr_[i] = std::pow(element.load, setting_.k);
  fnr_[i] = repeats > 0 ? std::min(1.0, element.missed / repeats) : 0;
  if (i == 0) return;
  new_sum_[i] = stream_.distinct_in(time_[i]);
  const double rows = time_[i] - time_[i - 1], fresh = new_sum_[i] - new_sum_[i - 1];
  positive_sum_[i] = positive_sum_[i - 1] + fresh * (fpr_[i] + fpr_[i - 1]) / 2;
  negative_sum_[i] = negative_sum_[i - 1] + (rows - fresh) * (fnr_[i] + fnr_[i - 1]) / 2;
}

double Course::between(const double (&values)[kSteps + 1], double row) const noexcept {
  const double t = std::clamp(row / setting_.s, 0.0, stream_.rows());
  const double* above = std::upper_bound(time_ + 1, time_ + kSteps, t);
  const long i = above - time_;
  const double width = time_[i] - time_[i - 1];
  const double part = width > 0 ? (t - time_[i - 1]) / width : 1;
  return values[i - 1] + part * (values[i] - values[i - 1]);
}

Rates Course::at(double row) const noexcept {
  return {between(load_, row), between(fpr_, row), between(fnr_, row)};
}

Rates Course::until(double row) const noexcept {
  const double fresh = between(new_sum_, row),
               all = std::clamp(row / setting_.s, 0.0, stream_.rows());
  return {between(load_, row), fresh > 0 ? between(positive_sum_, row) / fresh : 0,
          all > fresh ? std::min(1.0, between(negative_sum_, row) / (all - fresh)) : 0};
}

Rates over_stream(const Setting& setting, const Stream& stream) noexcept {
  return Course(setting, stream).until(stream.rows());
}

Prediction predict(const Setting& setting, const Stream& stream) noexcept {
  if (setting.scheme == Scheme::rsbf_printed && stream.gap() > 0 && stream.repeats() > 0)
    return kNoPrediction;
  const Rates rates = over_stream(setting, stream);
  return {rates.fpr, stream.repeats() > 0 ? rates.fnr : kNoPrediction.fnr};
}

}  // namespace streamfilter::biased_model
