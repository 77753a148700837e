// The course of a Stable Bloom Filter with Max 1 over a shuffled list (streams.hpp), as
// biased_model::Course describes it for other kinds. A cell is zero if none of its keys came since
// its last decrement. Decrements reach a cell at the rate P/m, independent of answers, and
// Poisson(D K/m) keys belong to it. So there is nothing to solve: all results are integrals over
// the time since the last decrement, or since a repeat's last sight.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/model/biased_model.hpp"

namespace bench {

class SbfCourse {
 public:
  using Rates = streamfilter::biased_model::Rates;

  SbfCourse(double k, double p, double m, double rows, double distinct) {
    const double list = 1 / rows, draws = (rows - distinct) / (rows * distinct), rate = p / m;
    double unset = 0, missed = 0, unset_was = 0, missed_was = 0;
    const double first = m / (100 * p), step = std::log1p(rows / first) / kSteps;
    for (std::size_t i = 0; i <= kSteps; ++i) {
      const double t = first * std::expm1(step * static_cast<double>(i));
      const double width = i > 0 ? t - points_.back().row : 0;
      const double undrawn = std::exp(-draws * t), absent = undrawn * (1 - list * t);
      const double unseen = std::exp(-distinct * k / m * (1 - absent)), kept = std::exp(-rate * t);
      // For a cell that was set t ago.
      unset += width * (rate * kept * unseen + unset_was) / 2;
      unset_was = rate * kept * unseen;
      // For repeats last seen at most t ago.
      const double last = distinct * draws * undrawn * (2 * list + draws * (1 - list * t));
      const double lost = last * -std::expm1(k * std::log1p(-unset));
      missed += width * (lost + missed_was) / 2;
      missed_was = lost;

      Point now{t, 1 - unset - kept * unseen, 0, missed, distinct * (1 - absent), 0, 0};
      now.fpr = std::pow(std::max(0.0, now.load), k);
      if (i > 0) {
        const Point& before = points_.back();
        now.positives = before.positives + (now.fresh - before.fresh) * (now.fpr + before.fpr) / 2;
        now.negatives = before.negatives + width * (now.missed + before.missed) / 2;
      }
      points_.push_back(now);
    }
  }

  // Results for the first `row` elements; the load is the one after them.
  Rates until(double row) const {
    std::size_t i = 1;
    while (i < kSteps && points_[i].row < row) ++i;
    const Point &a = points_[i - 1], &b = points_[i];
    const double part = std::min(1.0, (row - a.row) / (b.row - a.row));
    const auto at = [&](double Point::*value) { return a.*value + part * (b.*value - a.*value); };
    const double fresh = at(&Point::fresh);
    return {at(&Point::load), fresh > 0 ? at(&Point::positives) / fresh : 0,
            row > fresh ? at(&Point::negatives) / (row - fresh) : 0};
  }

 private:
  static constexpr std::size_t kSteps = 2000;
  struct Point {
    double row, load, fpr;
    double missed;                       // probability that the next element is a repeat and missed
    double fresh, positives, negatives;  // expected so far
  };
  std::vector<Point> points_;
};

}  // namespace bench
