// Figure 3 of Dutta et al. 2013: the parameters k, r and r', on 1 billion records, 15 % distinct.
#pragma once

#include "bench/papers/sqf/sqf_setting.hpp"
#include "core/kind/quotient_table.hpp"

namespace bench::sqf {

inline unsigned signatures(unsigned r, unsigned r_prime) { return (r - r_prime + 1) << r_prime; }

inline void figure_3a(Report& report, const Arguments& arguments, const Scale& scale) {
  const std::uint64_t rows = rows_of(kBillion, scale.divisor), d = distinct_of(rows, .15);
  const unsigned p = bits_of(d);
  std::vector<std::string> definitions;
  for (const char* fingerprint : {"integer", "hash"})
    for (unsigned k = 1; k <= 4; ++k)
      definitions.push_back(quotient_filter(2, 1, k, p, memory(128, scale.divisor), fingerprint));
  const std::vector<Errors> errors = run_list(definitions, rows, d);
  DataFile file(arguments, "sqf-fig3a",
                "k FPR FNR of integer fingerprints, FPR FNR of hashes (per cent)");
  bool falls = true;
  for (unsigned k = 1; k <= 4; ++k) {
    const Errors &e = errors[k - 1], &hashed = errors[k + 3];
    file.row({double(k), 100 * e.fpr(), 100 * e.fnr(), 100 * hashed.fpr(), 100 * hashed.fnr()});
    falls &= k == 1 || e.fnr() < errors[k - 2].fnr();
    report.check(e.positives == 0, "fig. 3a: FPR does not depend on k", text("r 2, r' 1, k %u", k),
                 "near 0", percent(e.fpr()), "exactly 0");
  }
  report.check(falls && errors[3].negatives == 0, "fig. 3a: FNR falls with k", "k 1 to 4",
               "to near 0", text("%.1f .. %.1f %%", 100 * errors[0].fnr(), 100 * errors[3].fnr()),
               "falls, exactly 0 at k = 4");
  // Each fingerprint has a bit of its own here: D keys in 2^p bits.
  const double x = static_cast<double>(d) / std::ldexp(1, static_cast<int>(p));
  const double expected = 1 + std::expm1(-x) / x;
  report.check(std::fabs(errors[7].fpr() - expected) <= four_errors(expected, errors[7].fresh),
               "fig. 3a: the same, keys hashed", "r 2, r' 1, k 4", "near 0",
               percent(errors[7].fpr()),
               text("formula %.3f %%; NOT REPRODUCED for hashes", 100 * expected));
}

inline void figure_3b(Report& report, const Arguments& arguments, const Scale& scale) {
  const std::uint64_t rows = rows_of(kBillion, scale.divisor), d = distinct_of(rows, .15);
  const unsigned p = bits_of(d);
  std::vector<std::string> definitions;
  for (unsigned r = 2; r <= 7; ++r) {
    const std::uint64_t bytes = memory(256, scale.divisor);
    definitions.push_back(quotient_filter(r, r / 2, signatures(r, r / 2), p, bytes));
    definitions.push_back(quotient_filter(r, r / 2, 4, p, bytes));
  }
  const std::vector<Errors> errors = run_list(definitions, rows, d);
  DataFile file(arguments, "sqf-fig3b",
                "r FPR FNR with room for all signatures, FPR FNR with k = 4 (per cent)");
  for (unsigned r = 2; r <= 7; ++r) {
    const Errors &roomy = errors[2 * (r - 2)], &four = errors[2 * (r - 2) + 1];
    file.row({double(r), 100 * roomy.fpr(), 100 * roomy.fnr(), 100 * four.fpr(), 100 * four.fnr()});
    // Of the 2^r keys of a row, one for each signature is reported as new.
    const double remainders = std::ldexp(1, static_cast<int>(r));
    const double expected = 1 - signatures(r, r / 2) / remainders;
    const bool exact = std::fabs(roomy.fpr() - expected) <= remainders / static_cast<double>(d);
    report.check(exact && roomy.negatives == 0, "fig. 3b: FPR rises with r, FNR same",
                 text("r %u, r' %u, k %u (all)", r, r / 2, signatures(r, r / 2)), "",
                 text("%.2f %5.2f", 100 * roomy.fpr(), 100 * roomy.fnr()),
                 text("exactly %.2f and 0", 100 * expected));
  }
  report.line("fig. 3b: FNR nearly constant", "r 2 to 7, k 4", "constant",
              text("%.1f .. %.1f %%", 100 * errors[1].fnr(), 100 * errors[11].fnr()),
              "NOT REPRODUCED with four buckets: rows fill");
}

inline void figure_3c(Report& report, const Arguments& arguments, const Scale& scale) {
  const std::uint64_t rows = rows_of(kBillion, scale.divisor), d = distinct_of(rows, .15);
  const unsigned p = bits_of(d), r = 7;
  const std::uint64_t bytes = memory(64, scale.divisor);
  std::vector<std::string> definitions;
  std::vector<unsigned> buckets;
  for (unsigned r_prime = 0; r_prime < r; ++r_prime) {
    // The number of buckets that leaves a row for every quotient.
    unsigned k = 65;
    Parameters parameters{};
    Problem problem;
    do --k;
    while (!make_parameters(quotient_filter(r, r_prime, k, p, bytes), parameters, problem) ||
           parameters.integer(quotient::kSliceRows) < std::uint64_t{1} << (p - r));
    buckets.push_back(k);
    definitions.push_back(quotient_filter(r, r_prime, k, p, bytes));
  }
  const std::vector<Errors> errors = run_list(definitions, rows, d);
  DataFile file(arguments, "sqf-fig3c", "r' FPR FNR (per cent) buckets");
  bool falls = true, rises = true;
  unsigned best = 0;
  const auto total = [&](unsigned i) { return errors[i].fpr() + errors[i].fnr(); };
  for (unsigned i = 0; i < r; ++i) {
    file.row({double(i), 100 * errors[i].fpr(), 100 * errors[i].fnr(), double(buckets[i])});
    report.line("fig. 3c: FPR, FNR", text("r 7, r' %u, k %u", i, buckets[i]), "",
                text("%.2f %5.2f", 100 * errors[i].fpr(), 100 * errors[i].fnr()), "");
    if (i > 0) {
      falls &= errors[i].fpr() < errors[i - 1].fpr();
      rises &= errors[i].fnr() >= errors[i - 1].fnr();
    }
    if (total(i) < total(best)) best = i;
  }
  report.check(falls, "fig. 3c: FPR falls with r'", "r 7, 64 MB", "falls",
               falls ? "falls" : "does not", "at every step");
  report.check(rises && errors[r - 1].fnr() > 0, "fig. 3c: FNR rises with r'", "r 7, 64 MB",
               "rises", rises ? "rises" : "does not", "never falls, above 0 in the end");
  report.line("fig. 3c: r' of the least FPR + FNR", "r 7, 64 MB", "r/2", text("%u", best),
              best == r / 2 || best == r / 2 + 1 ? "reproduced" : "NOT REPRODUCED");
}

}  // namespace bench::sqf
