// Table 2 of Dutta et al. 2013, recomputed: the stream of the table is a shuffled list (every one
// of D integers once, then uniform draws from them, all in random order), the fingerprint is the
// integer itself, and r, r', k follow from the memory. Prints printed and measured rates side by
// side.
//
//   make bench
//   build/bench/sqf_table [scale]      scale: a power of two, default 128; everything is divided by
//   it
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/lib/definitions.hpp"
#include "core/filter/filter.hpp"
#include "core/kind/quotient_table.hpp"

namespace {

using namespace streamfilter;

// The reason for the printed figure.
enum class Reading {
  exact_zero,   // every key has a place of its own: no errors at all; the paper rounds up
  same,         // within 3 % or four standard errors
  unexplained,  // no known setting gives it
};

struct PrintedRow {
  unsigned megabytes, r, r_prime, buckets;
  double fpr, fnr;
  Reading reading;
};

struct Part {
  std::uint64_t records;
  double distinct_share;
  unsigned p;
  std::vector<PrintedRow> rows;
};

const Part kTable[] = {
    {1000000000,
     .15,
     28,
     {{8, 5, 2, 3, 11.74, 84.45, Reading::unexplained},
      {32, 4, 2, 4, 11.96, 61.08, Reading::same},
      {64, 2, 1, 4, 0.0031, 0.0042, Reading::exact_zero},
      {128, 2, 1, 4, 0.0006, 0.001, Reading::exact_zero},
      {512, 2, 1, 4, 0.0001, 0.0003, Reading::exact_zero}}},
    {695000000,
     .6,
     29,
     {{32, 5, 2, 3, 13.91, 72.70, Reading::same},
      {64, 4, 2, 4, 12.00, 53.53, Reading::same},
      {128, 2, 1, 4, 0.004, 0.003, Reading::exact_zero},
      {256, 2, 1, 4, 0.001, 0.001, Reading::exact_zero},
      {512, 2, 1, 4, 0.0003, 0.0004, Reading::exact_zero}}},
    {100000000,
     .9,
     27,
     {{8, 5, 2, 3, 13.92, 70.70, Reading::same},
      {16, 4, 2, 4, 12.05, 49.76, Reading::same},
      {32, 2, 1, 4, 0.003, 0.0032, Reading::exact_zero},
      {64, 2, 1, 4, 0.0006, 0.0007, Reading::exact_zero},
      {128, 2, 1, 4, 0.0001, 0.0001, Reading::exact_zero}}},
};

std::vector<std::uint32_t> shuffled_list(std::uint64_t records, std::uint64_t distinct) {
  std::mt19937_64 random(20130806);
  std::vector<std::uint32_t> list(records);
  std::iota(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(distinct), 0u);
  for (std::uint64_t i = distinct; i < records; ++i)
    list[i] = static_cast<std::uint32_t>(scale(random(), distinct));
  for (std::uint64_t i = records; i > 1; --i) std::swap(list[i - 1], list[scale(random(), i)]);
  return list;
}

struct Errors {
  double false_positives = 0, inserted_new = 0, false_negatives = 0, repeats = 0;
  double fpr() const { return 100 * false_positives / inserted_new; }
  double fnr() const { return 100 * false_negatives / repeats; }
};

Errors run(const std::string& definition_text, const std::vector<std::uint32_t>& stream,
           std::uint64_t distinct) {
  Parameters parameters;
  Problem problem;
  if (!bench::make_parameters(definition_text, parameters, problem)) {
    std::fprintf(stderr, "%s: %s\n%s\n%s\n", definition_text.c_str(), problem.message,
                 problem.detail, problem.hint);
    std::exit(2);
  }
  std::vector<std::uint64_t> bytes(block_bytes(parameters) / 8);
  Header* filter = reinterpret_cast<Header*>(bytes.data());
  format(filter, parameters);
  std::vector<bool> seen(distinct);
  Errors errors;
  for (const std::uint32_t number : stream) {
    const bool repeat = seen[number], reported = insert(filter, Element{number});
    seen[number] = true;
    (repeat ? errors.repeats : errors.inserted_new) += 1;
    if (reported != repeat) (repeat ? errors.false_negatives : errors.false_positives) += 1;
  }
  return errors;
}

bool agrees(double percent, double printed, double n) {
  const double rate = printed / 100;
  return std::fabs(percent - printed) <=
         std::max(0.03 * printed, 400 * std::sqrt(rate * (1 - rate) / n));
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t divisor = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 128;
  if (divisor == 0 || divisor > 4096 || (divisor & (divisor - 1)) != 0) {
    std::fprintf(stderr, "usage: %s [scale]\nscale is a power of two up to 4096\n", argv[0]);
    return 2;
  }
  unsigned shift = 0;
  while (divisor >> shift > 1) ++shift;

  std::printf("records distinct   memory  r r' k  fpr printed/measured  fnr printed/measured\n");
  unsigned figures = 0, met = 0;
  for (const Part& part : kTable) {
    const std::uint64_t records = part.records / divisor;
    const std::uint64_t distinct =
        static_cast<std::uint64_t>(std::floor(static_cast<double>(records) * part.distinct_share));
    const std::vector<std::uint32_t> stream = shuffled_list(records, distinct);
    for (const PrintedRow& row : part.rows) {
      // The paper counts the table alone as memory.
      const std::uint64_t memory =
          (std::uint64_t{row.megabytes} << 20) / divisor + kStoredHeader + sizeof(SliceState);
      // If 2^p fingerprints do not fit, the largest number that does.
      const bool fits = row.reading != Reading::unexplained;
      const std::string text =
          "sqf(slices=1, fingerprint=integer, memory=" + std::to_string((memory + 63) & ~63ull) +
          ", r=" + std::to_string(row.r) + ", r_prime=" + std::to_string(row.r_prime) +
          ", buckets=" + std::to_string(row.buckets) +
          (fits ? ", p=" + std::to_string(part.p - shift) : "") + ")";
      const Errors errors = run(text, stream, distinct);
      bool agree = true;
      const char* verdict = "not explained by the paper";
      if (row.reading == Reading::exact_zero) {
        agree = errors.false_positives == 0 && errors.false_negatives == 0;
        verdict = agree ? "agrees: exactly 0/0" : "DIFFERS";
      } else if (row.reading == Reading::same) {
        agree = agrees(errors.fpr(), row.fpr, errors.inserted_new) &&
                agrees(errors.fnr(), row.fnr, errors.repeats);
        verdict = agree ? "agrees" : "DIFFERS";
      }
      if (row.reading != Reading::unexplained) ++figures, met += agree;
      std::printf("%6.0f M %6.0f %%  %4u MB  %u  %u %u   %9.4f %9.4f   %9.4f %9.4f   %s\n",
                  static_cast<double>(part.records) / 1e6, 100 * part.distinct_share, row.megabytes,
                  row.r, row.r_prime, row.buckets, row.fpr, errors.fpr(), row.fnr, errors.fnr(),
                  verdict);
      std::fflush(stdout);
    }
  }
  std::printf("%u of %u asserted figures met\n", met, figures);
  return met == figures ? 0 : 1;
}
