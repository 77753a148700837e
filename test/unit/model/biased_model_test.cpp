// The model of rsbf, bsbf, bsbfsd and rlbsbf along a finite stream: against the printed tables and
// against simulation; and the printed tables by simulation, at 1/1000 of their scale.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "bench/lib/streams.hpp"
#include "core/model/biased_model.hpp"
#include "unit/support/filters.hpp"
#include "unit/support/rates.hpp"
#include "unit/support/streams.hpp"

using namespace streamfilter;
using namespace streamfilter::biased_model;
using namespace unit;

BOOST_AUTO_TEST_SUITE(bit_arrays_models, *boost::unit_test::label("long"))

namespace {

// Some cells of tables 1-9: one filter of `memory` MiB over millions of records.
struct Cell {
  double records, distinct, memory;
  const char* kind;
  double k, fpr, fnr;  // per cent

  Scheme scheme() const {
    const std::string name = kind;
    return name == "bsbf"     ? Scheme::bsbf
           : name == "bsbfsd" ? Scheme::bsbfsd
           : name == "rlbsbf" ? Scheme::rlbsbf
                              : Scheme::rsbf_measured;
  }
  double s() const { return memory * 0x1p23 / k; }
};

constexpr Cell kCells[] = {
    {695, 0.15, 64, "rsbf", 2, 2.6276, 35.9014},
    {695, 0.15, 64, "bsbf", 2, 3.2569, 8.7547},
    {695, 0.15, 64, "bsbfsd", 2, 3.5475, 3.3299},
    {695, 0.15, 64, "rlbsbf", 2, 3.7064, 1.3453},
    {695, 0.60, 128, "rsbf", 2, 6.7265, 39.2682},
    {695, 0.60, 128, "bsbf", 2, 8.0154, 28.6708},
    {695, 0.90, 256, "bsbfsd", 2, 6.3016, 13.8078},
    {695, 0.90, 256, "rlbsbf", 2, 6.8635, 7.0784},
    {1000, 0.15, 512, "rsbf", 2, 0.1431, 10.2015},
    {1000, 0.15, 512, "bsbf", 2, 0.1506, 1.2846},
    {1000, 0.15, 64, "bsbf", 2, 5.5775, 13.7096},
    {1000, 0.15, 64, "rlbsbf", 2, 6.6755, 2.5795},
    {1000, 0.60, 256, "rsbf", 2, 4.5557, 32.6139},
    {1000, 0.60, 64, "bsbfsd", 2, 31.3858, 21.0835},
    {1000, 0.90, 64, "bsbf", 2, 25.0083, 49.2073},
    {1000, 0.90, 512, "rlbsbf", 2, 4.1133, 4.2852},
    {1000, 0.60, 8, "bsbf", 5, 3.28054, 95.7754},
    {1000, 0.60, 128, "bsbf", 4, 3.47978, 75.1262},
    {1000, 0.60, 128, "bsbfsd", 5, 18.2903, 28.3608},
    {1000, 0.60, 8, "bsbfsd", 3, 81.2512, 6.4065},
    {1000, 0.60, 8, "rlbsbf", 1, 81.4726, 5.3103},
    {1000, 0.60, 512, "rlbsbf", 5, 0.4828, 23.2844},
};

Errors measure(const std::string& kind, unsigned k, std::uint64_t s, const std::string& options,
               std::uint64_t rows, std::uint64_t distinct) {
  const std::uint64_t body = k * (8 + s / 64 * 8);
  Filter filter(kind + "(slices=1, k=" + std::to_string(k) + ", memory=" +
                std::to_string(kStoredHeader + sizeof(SliceState) + (body + 63) / 64 * 64) +
                options + ")");
  bench::ShuffledList stream(rows, distinct, 1);
  return errors_of(filter, rows, [&] { return stream.next(); });
}

// Within 3 % or four standard errors, whichever is larger.
bool is_met(double rate, double expected, double n) {
  return std::fabs(rate - expected) <=
         std::max(0.03 * expected, 4 * std::sqrt(std::max(rate, expected) * (1 - expected) / n));
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_model_gives_the_printed_tables) {
  for (const Cell& c : kCells) {
    const Rates rates = over_stream({c.scheme(), c.k, c.s()},
                                    Stream::listed(c.records * 1e6, c.records * c.distinct * 1e6));
    BOOST_TEST_CONTEXT(c.kind << " k " << c.k << " " << c.records << " M, " << c.distinct << ", "
                              << c.memory << " MiB: " << 100 * rates.fpr << " "
                              << 100 * rates.fnr) {
      BOOST_TEST(std::fabs(100 * rates.fpr / c.fpr - 1) <= 0.02);
      BOOST_TEST(std::fabs(100 * rates.fnr / c.fnr - 1) <= 0.02);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_filters_give_the_printed_tables) {
  for (const Cell& c : kCells) {
    const double scale = kSanitized ? 2000 : 1000;
    const Errors m =
        measure(c.kind, static_cast<unsigned>(c.k), static_cast<std::uint64_t>(c.s() / scale),
                c.scheme() == Scheme::rsbf_measured ? ", variant=measured" : "",
                static_cast<std::uint64_t>(c.records * 1e6 / scale),
                static_cast<std::uint64_t>(c.records * c.distinct * 1e6 / scale));
    BOOST_TEST_CONTEXT(c.kind << " k " << c.k << " " << c.records << " M, " << c.distinct << ", "
                              << c.memory << " MiB: " << 100 * m.fpr() << " " << 100 * m.fnr()
                              << ", printed " << c.fpr << " " << c.fnr) {
      BOOST_TEST(is_met(m.fpr(), c.fpr / 100, m.fresh));
      BOOST_TEST(is_met(m.fnr(), c.fnr / 100, m.repeats));
    }
  }
}

// Algorithm 1 reaches its third phase at p_star = 0.2 within 5 s elements.
BOOST_AUTO_TEST_CASE(the_model_gives_algorithm_1_in_every_phase) {
  const std::uint64_t s = 20032;
  for (const double length : {0.8, 3., 15.})
    for (const double distinct : {0.3, 0.8, 1.}) {
      const std::uint64_t rows = static_cast<std::uint64_t>(length * static_cast<double>(s)),
                          keys = static_cast<std::uint64_t>(distinct * static_cast<double>(rows));
      const Errors m = measure("rsbf", 2, s, ", p_star=0.2", rows, keys);
      const Rates rates =
          over_stream({Scheme::rsbf_printed, 2, static_cast<double>(s), 0.2},
                      Stream::listed(static_cast<double>(rows), static_cast<double>(keys)));
      BOOST_TEST_CONTEXT(length << " s elements, " << distinct << " new: " << m.fpr() << " "
                                << m.fnr() << ", model " << rates.fpr << " " << rates.fnr) {
        BOOST_TEST(is_met(rates.fpr, m.fpr(), m.fresh));
        if (distinct < 1) BOOST_TEST(is_met(rates.fnr, m.fnr(), m.repeats));
      }
    }
}

BOOST_AUTO_TEST_CASE(the_course_of_a_stream_is_consistent) {
  const Setting setting{Scheme::rlbsbf, 2, 1e6};
  const Course course(setting, Stream::listed(5e6, 2e6));
  BOOST_TEST(course.at(0).load == 0);
  BOOST_TEST(course.until(0).fpr == 0);
  double load = 0, positives = 0;
  for (double row = 1e4; row <= 5e6; row += 1e4) {
    const Rates now = course.at(row);
    BOOST_TEST(now.load > load);
    BOOST_TEST(now.fpr == std::pow(now.load, 2), tolerance(0.01));
    load = now.load;
    positives += now.fpr;
  }
  // Rates depend on ratios only, and a course ends with the whole stream.
  const Rates all = course.until(5e6),
              same = over_stream({Scheme::rlbsbf, 2, 1e3}, Stream::listed(5e3, 2e3));
  BOOST_TEST(all.fpr == same.fpr, tolerance(1e-9));
  BOOST_TEST(all.fnr == same.fnr, tolerance(1e-9));
}

// New keys alone, for long: the load becomes the limit of the closed form.
BOOST_AUTO_TEST_CASE(the_course_tends_to_the_limits) {
  for (const Scheme scheme : {Scheme::bsbf, Scheme::rlbsbf, Scheme::rsbf_measured})
    for (double k = 2; k <= 5; ++k) {
      const Setting setting{scheme, k, 1e6};
      BOOST_TEST(Course(setting, Stream::listed(1e8, 1e8)).at(1e8).load == limit_load(setting),
                 tolerance(0.002));
    }
}

// In the third phase of Algorithm 1 the load of an array does not change any more, however long.
BOOST_AUTO_TEST_CASE(the_course_keeps_the_load_of_the_third_phase) {
  for (const double distinct : {1e6, 1e8, 1e9}) {
    const Setting setting{Scheme::rsbf_printed, 6, 1e5};
    const Course course(setting, Stream::uniform(1e9, distinct));
    const double load = course.at(1e5 / setting.p_star * 1.01).load;
    for (const double row : {1e7, 1e8, 1e9})
      BOOST_TEST(course.at(row).load == load, tolerance(0.01));
  }
}

BOOST_AUTO_TEST_SUITE_END()
