#include "core/model/clq_model.hpp"

#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <iterator>

#include "core/base/math_policy.hpp"
#include "core/bits/line_tail.hpp"

namespace streamfilter::clq_model {
namespace {

// How many fields of fingerprints of so many bits a line has.
unsigned fields(unsigned bits, bool is_aged, unsigned lines) noexcept {
  if (lines > 1) return kEntriesStart / bits;
  return is_aged ? (kLineBits - kStampBits) / (bits + kAgeBits) : kLineBits / bits;
}

// The fingerprints in a line: keys have any of `different` ones with equal probability, and a
// Poisson number of keys has come, so each is there independently of the others.
class Fingerprints {
 public:
  Fingerprints(double different, double keys) noexcept
      : different_(different), keys_(keys), share_(-std::expm1(-keys / different)) {}

  double at_least(double count) const noexcept { return tail(different_, count); }

  // The mean of their number, but at most `limit`.
  double limited(double limit) const noexcept {
    const double fewer = limit > 1 ? 1 - tail(different_ - 1, limit - 1) : 0;
    return different_ * share_ * fewer + limit * at_least(limit);
  }

 private:
  // Beyond this many a binomial and a Poisson number are as good as the same.
  static constexpr double kMany = 1 << 20;

  double tail(double n, double count) const noexcept {
    if (count > n || !(keys_ > 0)) return 0;
    return n > kMany ? boost::math::gamma_p(count, keys_, MathPolicy())
                     : boost::math::ibeta(count, n - count + 1, share_, MathPolicy());
  }

  double different_, keys_, share_;
};

// Calls visit(shape) for those that keep `fpr` and that none of as many buckets and bits surpasses.
template <typename Visit>
void for_each_shape(double fpr, unsigned bits, unsigned length, bool is_aged, unsigned lines,
                    Visit visit) noexcept {
  const auto consider = [&](const LineShape& shape) {
    if (shape.is_possible() && shape.fpr() <= fpr) visit(shape);
  };
  for (unsigned width = kMinBits; width <= kMaxFingerprintBits; ++width) {
    if (bits != 0 && bits != width) continue;
    if (length != 0) {
      consider({width, length, is_aged, lines});
      continue;
    }
    // For every number of buckets to a line, the longest that keep fpr.
    const double most = fpr * (std::ldexp(1, static_cast<int>(width)) - 1) / lines;
    const unsigned possible = longest(width, is_aged, lines),
                   limit = most < possible ? static_cast<unsigned>(most) : possible;
    const unsigned all = fields(width, is_aged, lines), most_buckets = lines > 1 ? 1 : all;
    unsigned last = 0;
    for (unsigned buckets = 1; buckets <= most_buckets; ++buckets) {
      const unsigned fits = std::min(limit, all / buckets);
      if (fits > 0 && fits != last) consider({width, fits, is_aged, lines});
      last = fits;
    }
    // Wider ones have no longer buckets.
    if (limit == possible && most >= kMaxQueue) break;
  }
}

}  // namespace

unsigned longest(unsigned bits, bool is_aged, unsigned lines) noexcept {
  const unsigned different = bits < 10 ? (1u << bits) - 1 : kMaxQueue;
  return std::min({kMaxQueue, fields(bits, is_aged, lines), different});
}

unsigned LineShape::buckets() const noexcept {
  return lines > 1 ? 1 : fields(bits, is_aged, lines) / length;
}

bool LineShape::is_possible() const noexcept { return length <= longest(bits, is_aged, lines); }

// The sum of Poisson probabilities from `length` on is an incomplete gamma function.
double fnr(double others, double length, double buckets) noexcept {
  if (!(others > 0)) return 0;
  return boost::math::gamma_p(length, others / buckets, MathPolicy());
}

// The mean over its places: the mean number of the others that come, but at most `length`, of that.
double moved(double others, double length, double buckets) noexcept {
  double sum = 0;
  for (double least = 1; least <= length; ++least) sum += fnr(others, least, buckets);
  return sum / length;
}

// Where each ball falls into the emptier of two bins, the share s(k) of bins with at least k balls
// changes by s(k-1)^2 - s(k)^2, and a bin with k gets the next with a rate of s(k) + s(k+1). From
// this, with very many bins: the probability that a bin which has got a ball gets at least d more
// than the mean is p, ln(1/p - 1) = kLogOdds[2d]; it is 1 - p for -d. (Mitzenmacher 2001; two_lines
// in test/unit/model integrates it.)
constexpr double kLogOdds[] = {0,       0.66949, 1.35479, 2.06632, 2.80624, 3.56962, 4.34871,
                               5.13679, 5.92949, 6.7244,  7.52035, 8.31678, 9.11342};
constexpr double kTailRate = 1.59362;  // beyond: p falls by exp(-this) for each ball

static double probability_of_more(double d) noexcept {
  constexpr unsigned kLast = std::size(kLogOdds) - 1;
  const double at = 2 * std::fabs(d);
  double odds = kLogOdds[kLast] + (at - kLast) / 2 * kTailRate;
  if (at < kLast) {
    const unsigned i = static_cast<unsigned>(at);
    odds = kLogOdds[i] + (at - i) * (kLogOdds[i + 1] - kLogOdds[i]);
  }
  return 1 / (1 + std::exp(d < 0 ? -odds : odds));
}

// How many of the others are in the key's slice varies; three points stand for the normal
// distribution.
double fnr_of_two(double others, double length, double lines, double slices) noexcept {
  if (!(others > 0)) return 0;
  const double mean = others / slices / lines,
               deviation = std::sqrt(3 * mean / lines * (1 - 1 / slices));
  return 2. / 3 * probability_of_more(length - mean) +
         1. / 6 *
             (probability_of_more(length - mean - deviation) +
              probability_of_more(length - mean + deviation));
}

// The mean of fnr_after(lag) over the lags of all repeats.
template <typename Rate>
static double mean_of_repeats(const Stream& stream, Rate fnr_after) noexcept {
  const Ages age(stream, 1e-3 * stream.distinct());
  double negatives = 0, repeats = 0;
  for (unsigned i = 1; i <= Ages::kSteps; ++i) {
    const double middle = (age[i - 1] + age[i]) / 2;
    const double rows =
        (stream.fresh(age[i - 1]) - stream.fresh(age[i])) * (stream.rows() - middle);
    negatives += rows * fnr_after(middle);
    repeats += rows;
  }
  return repeats > 0 ? std::clamp(negatives / repeats, 0.0, 1.0) : 0;
}

// Of so many keys that came to a line of two: those held in the mean. One with `others` behind it
// is there unless they were so many more than its line should have got.
static double held_of_two(double keys, unsigned length) noexcept {
  constexpr int kParts = 64;
  double held = 0;
  for (int i = 0; i < kParts; ++i)
    held += 1 - probability_of_more(length - keys * (i + .5) / kParts);
  return held * keys / kParts;
}

// Where a key has two lines, of draws each key is found that is held; at one gap, repeats come in
// the order in which their keys have entered, which is as even as that was.
static Prediction predict_two(const LineShape& shape, double lines, const Stream& stream) noexcept {
  const double values = std::ldexp(1, static_cast<int>(shape.bits)) - 1;
  // Fingerprints of so many keys, for each line: one that is in either line enters neither.
  const auto different = [&](double keys) noexcept {
    return -std::expm1(-2 * keys / lines / values) * values / 2;
  };
  const auto rate = [&](double keys) noexcept {
    const double one = std::min(different(keys), double(shape.length)) / values;
    return one * (2 - one);
  };
  const auto held = [&](double keys) noexcept {
    const double mean = different(keys);
    return keys * held_of_two(mean, shape.length) / mean;
  };
  const double fpr = exact_store_model::mean_fpr(stream.distinct(), rate);
  if (stream.gap() == 0) return {fpr, exact_store_model::mean_fnr(stream, held, rate)};
  if (!(stream.repeats() > 0)) return {fpr, std::numeric_limits<double>::quiet_NaN()};
  return {fpr, mean_of_repeats(stream, [&](double lag) {
            return (1 - shape.fpr()) *
                   probability_of_more(shape.length - different(stream.distinct_in(lag)));
          })};
}

// A key is found if its fingerprint is among the last `length` different ones. All are equally
// likely to be, so one that nobody has shown is with probability fpr(); and a key that was seen is
// lost if there are `length` of others, its own not among them.
Prediction predict(const LineShape& shape, double buckets, const Stream& stream) noexcept {
  if (shape.lines > 1) return predict_two(shape, buckets, stream);
  const double length = shape.length, different = length / shape.fpr();
  const double fpr = exact_store_model::mean_fpr(stream.distinct(), [&](double n) {
    return Fingerprints(different, n / buckets).limited(length) / different;
  });
  if (!(stream.repeats() > 0)) return {fpr, std::numeric_limits<double>::quiet_NaN()};
  return {fpr, mean_of_repeats(stream, [&](double lag) {
            const Fingerprints others(different, stream.distinct_in(lag) / buckets);
            return (1 - shape.fpr()) * others.at_least(length);
          })};
}

bool best_shape(double fpr, unsigned bits, unsigned length, LineShape& best, bool is_aged,
                unsigned lines) noexcept {
  double reached = 0;
  double window[kMaxQueue + 1] = {};  // of one bucket, by its length; 0: not known yet
  for_each_shape(fpr, bits, length, is_aged, lines, [&](const LineShape& shape) {
    double& one = window[shape.length];
    if (one == 0) one = boost::math::gamma_p_inv(to_real(shape.length), 0.01, MathPolicy());
    if (one * shape.buckets() <= reached) return;
    reached = one * shape.buckets();
    best = shape;
  });
  return reached > 0;
}

double mean_held(const LineShape& shape, double keys) noexcept {
  constexpr int kPoints = 8;
  double sum = 0, held;
  for (int i = 1; i <= kPoints; ++i) {
    const double now = keys * i / kPoints;
    if (shape.lines > 1) {
      held = held_of_two(now, shape.length);
    } else {
      const double buckets = shape.buckets();
      held =
          Fingerprints(shape.length / shape.fpr(), now / buckets).limited(shape.length) * buckets;
    }
    sum += held / i;
  }
  return sum;
}

bool best_shape_for(double keys, double fpr, unsigned bits, unsigned length, LineShape& best,
                    bool is_aged) noexcept {
  double most = 0;
  for_each_shape(fpr, bits, length, is_aged, 1, [&](const LineShape& shape) {
    const double held = mean_held(shape, keys);
    if (held <= most) return;
    most = held;
    best = shape;
  });
  return most > 0;
}

}  // namespace streamfilter::clq_model
