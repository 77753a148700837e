// A report that compares figures with a model, and the bounds of its assertions.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "bench/lib/figures.hpp"

namespace bench {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

class ModelReport {
 public:
  explicit ModelReport(const char* title) : report_(title) {}

  // A figure that must be met. Numbers that do not exist are kNone.
  void judge(const std::string& figure, const std::string& setting, const std::string& what,
             double printed, double model, double ours, bool met) {
    report_.check(met, label(figure) + what, setting, number(printed), number(ours),
                  std::isnan(model) ? "as claimed" : by(model));
  }
  // A figure without a target; the remark says why.
  void show(const std::string& figure, const std::string& setting, const std::string& what,
            double printed, double model, double ours, const std::string& remark) {
    report_.line(label(figure) + what, setting, number(printed), number(ours),
                 remark + (remark.empty() || std::isnan(model) ? "" : "; ") + by(model));
  }
  void note(const std::string& remark) { std::printf("# %s\n", remark.c_str()); }

  int end() { return report_.end(); }

 private:
  // "fig. 3: " for sbf-fig3.
  static std::string label(const std::string& figure) {
    return "fig. " + figure.substr(figure.find("fig") + 3) + ": ";
  }
  static std::string number(double value) { return std::isnan(value) ? "-" : text("%.4g", value); }
  static std::string by(double model) { return std::isnan(model) ? "" : "model " + number(model); }

  Report report_;
};

// The `slices` and `memory` of a filter of one slice with a body of `bits` bits.
inline std::string one_slice(double bits) {
  return text("slices=1, memory=%llu", static_cast<unsigned long long>(
                                           memory_for(static_cast<std::uint64_t>(bits + 7) / 8)));
}

// Bounds are five standard errors: a correct program exceeds one in 1.7 million. `spread` is the
// factor by which the variance exceeds that of independent trials.
inline double five_errors(double rate, double n, double spread = 1) {
  return 5 * std::sqrt(spread * rate * (1 - rate) / n);
}

}  // namespace bench
