
#include "core/model/stream.hpp"

namespace streamfilter {
// Draws with fewer repeats than this share count as all new.
constexpr double kMinDraws = 1e-7;

// With x = rows/keys, distinct/rows = (1 - e^-x) / x, which falls and is at most 1/x.
Stream Stream::uniform(double rows, double distinct) noexcept {
  Stream stream;
  stream.rows_ = rows;
  stream.distinct_ = distinct;
  double low = kMinDraws, high = rows / distinct;
  for (int round = 0; round < 100; ++round) {
    const double x = (low + high) / 2;
    (-std::expm1(-x) / x > distinct / rows ? low : high) = x;
  }
  stream.draws_ = high / rows;
  stream.keys_ = rows / high;
  return stream;
}

Stream Stream::at_gap(double rows, double distinct, double gap) noexcept {
  Stream stream;
  stream.rows_ = rows;
  stream.distinct_ = distinct;
  stream.gap_ = gap;
  stream.again_ = rows > distinct ? (rows - distinct) / (rows - gap) : 0;
  return stream;
}

Stream Stream::listed(double rows, double distinct) noexcept {
  Stream stream;
  stream.rows_ = rows;
  stream.distinct_ = stream.keys_ = distinct;
  stream.list_ = 1 / rows;
  stream.draws_ = std::max(0.0, (rows - distinct) / (rows * distinct));
  return stream;
}

double Stream::undrawn(double rows) const noexcept { return std::exp(-draws_ * rows); }

double Stream::fresh(double age) const noexcept {
  if (gap_ > 0) return age < gap_ ? 1 : 1 - again_;
  return keys_ * undrawn(age) * (list_ + draws_ * (1 - list_ * age));
}

double Stream::distinct_in(double rows) const noexcept {
  if (gap_ > 0) return rows - again_ * std::max(0.0, rows - gap_);
  return keys_ * (undrawn(rows) * list_ * rows - std::expm1(-draws_ * rows));
}

Stream Stream::part(double parts) const noexcept {
  Stream stream = *this;
  stream.rows_ /= parts;
  stream.distinct_ /= parts;
  stream.keys_ /= parts;
  stream.gap_ /= parts;
  stream.list_ *= parts;
  stream.draws_ *= parts;
  return stream;
}

Ages::Ages(const Stream& stream, double first) noexcept {
  first = std::min(first, stream.rows());
  const double scale = std::log1p(stream.rows() / first) / kSteps;
  for (unsigned i = 0; i <= kSteps; ++i) at_[i] = first * std::expm1(scale * i);
  at_[kSteps] = stream.rows();
  const double jump = stream.gap();
  if (jump <= 0 || jump >= stream.rows()) return;
  unsigned i = 1;
  while (at_[i] < jump) ++i;
  if (i + 1 >= kSteps) return;
  at_[i] = jump * (1 - 1e-12);
  at_[i + 1] = jump;
}

}  // namespace streamfilter
