// The streams of bench have the properties that their comments state.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <list>
#include <unordered_map>
#include <vector>

#include "bench/lib/crawl.hpp"
#include "bench/lib/importance_streams.hpp"
#include "bench/lib/streams.hpp"
#include "unit/support/statistics.hpp"

using namespace unit;

BOOST_AUTO_TEST_SUITE(bench_streams)

BOOST_AUTO_TEST_CASE(a_shuffled_list_has_every_key_and_no_order) {
  const std::uint64_t rows = 100000, distinct = 30000;
  bench::ShuffledList stream(rows, distinct, 1), same(rows, distinct, 1);
  std::vector<std::uint64_t> times(distinct), fresh(10);
  bench::SeenKeys truth(distinct);
  double ascending = 0;
  for (std::uint64_t row = 0, last = 0; row < rows; ++row) {
    const std::uint64_t key = stream.next();
    BOOST_REQUIRE(key < distinct);
    BOOST_REQUIRE(same.next() == key);
    ++times[key];
    fresh[row * 10 / rows] += !truth.is_repeat(key);
    ascending += key > last;
    last = key;
  }
  for (const std::uint64_t count : times) BOOST_TEST_REQUIRE(count >= 1u);
  BOOST_TEST(fits(ascending, rows, 0.5));
  // New with probability D e^(-draws t) (1/N + draws (1 - t/N)), draws = (N-D)/(N D).
  const double n = rows, d = distinct, draws = (n - d) / (n * d);
  const auto new_until = [=](double t) { return d * (1 - std::exp(-draws * t) * (1 - t / n)); };
  for (int part = 0; part < 10; ++part) {
    const double expected = new_until(n * (part + 1) / 10) - new_until(n * part / 10);
    BOOST_TEST(fits(fresh[part], n / 10, expected / (n / 10)));
  }
}

BOOST_AUTO_TEST_CASE(uniform_draws_are_uniform) {
  bench::Uniform stream(100, 2);
  std::vector<std::uint64_t> times(100);
  for (int i = 0; i < 100000; ++i) ++times[stream.next()];
  BOOST_TEST(is_uniform(times));
}

BOOST_AUTO_TEST_CASE(zipf_draws_have_zipf_shares) {
  for (const double exponent : {0.5, 1., 1.3, 2.}) {
    const std::uint64_t universe = 1000;
    const double n = 300000;
    bench::Zipf stream(universe, exponent, 3);
    std::vector<double> times(universe);
    for (double i = 0; i < n; ++i) times.at(stream.next()) += 1;
    double sum = 0;
    for (std::uint64_t i = 1; i <= universe; ++i) sum += std::pow(i, -exponent);
    for (const std::uint64_t i : {1, 2, 3, 10, 100, 999, 1000})
      BOOST_TEST(fits(times[i - 1], n, std::pow(i, -exponent) / sum), exponent << " " << i);
  }
}

// Deng, Rafiei 2006 §5.1: the limits of l that it prints, and 70 % of the frequent keys in the
// first half.
BOOST_AUTO_TEST_CASE(the_b_model_is_bursty) {
  const auto possible = [](double b, unsigned level, double v) {
    return bench::BModel(1000, b, level, v, 10, 1).is_possible();
  };
  BOOST_TEST(possible(0.7, 6, 0.1));
  BOOST_TEST(!possible(0.7, 7, 0.1));
  BOOST_TEST(possible(0.8, 1, 0.5));
  BOOST_TEST(!possible(0.8, 2, 0.5));
  BOOST_TEST(possible(0.5, 30, 0.9));
  const std::uint64_t rows = 200000;
  bench::BModel stream(rows, 0.7, 3, 0.2, 100, 4);
  std::vector<double> frequent(8);
  for (std::uint64_t row = 0; row < rows; ++row)
    frequent[row * 8 / rows] += stream.next() >> 63 == 0;
  const double n = rows / 8;
  BOOST_TEST(fits(frequent[0], n, 0.2 * 1.4 * 1.4 * 1.4));
  BOOST_TEST(fits(frequent[1], n, 0.2 * 1.4 * 1.4 * 0.6));
  BOOST_TEST(fits(frequent[4], n, 0.2 * 0.6 * 1.4 * 1.4));
  BOOST_TEST(fits(frequent[7], n, 0.2 * 0.6 * 0.6 * 0.6));
}

BOOST_AUTO_TEST_CASE(poisson_and_exponential_streams_have_their_means) {
  const double n = 200000;
  bench::Poisson poisson(0.3, 50, 5);
  double frequent = 0, first = 0, pairs = 0, before = 0;
  for (double i = 0; i < n; ++i) {
    const std::uint64_t key = poisson.next();
    const double is_frequent = key >> 63 == 0;
    frequent += is_frequent;
    pairs += is_frequent * before;
    before = is_frequent;
    first += key == 0;
  }
  BOOST_TEST(fits(frequent, n, 0.3));
  BOOST_TEST(fits(pairs, frequent, 0.3));  // without memory
  BOOST_TEST(fits(first, n, 0.3 * -std::expm1(-1 / 50.)));

  bench::ExponentialGaps gaps(0.4, 1000, 6);
  std::vector<std::uint64_t> seen;
  double repeats = 0;
  for (double i = 0; i < n; ++i) {
    const std::uint64_t key = gaps.next();
    repeats += key < seen.size();
    if (key == seen.size()) seen.push_back(key);
  }
  // No repeat comes from before the beginning.
  const double possible = n - std::expm1(-n / 1000) / std::expm1(-1 / 1000.);
  BOOST_TEST(fits(repeats, n, 0.4 * possible / n));

  bench::ArrivalTimes times(1000, 7);
  std::int64_t last = 0;
  for (double i = 0; i < n; ++i) last = times.next();
  BOOST_TEST(std::fabs(static_cast<double>(last) / (n * 1000) - 1) < 5 / std::sqrt(n));
}

// A crawl has the given distinct keys and misses of buffers.
BOOST_AUTO_TEST_CASE(a_crawl_has_the_printed_curves) {
  const std::uint64_t rows = 200000;
  bench::Crawl stream({{1, 1}, {1000, 800}, {200000, 60000}},
                      {{1, 1}, {10, 0.7}, {1000, 0.3}, {20000, 0.05}, {60000, 0}}, rows, 9);
  const std::uint64_t sizes[] = {10, 1000, 20000};
  std::vector<std::list<std::uint64_t>> recent(3);
  std::vector<std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator>> where(3);
  double distinct = 0, misses[3] = {};
  for (std::uint64_t row = 1; row <= rows; ++row) {
    const std::uint64_t key = stream.next();
    const bool is_new = static_cast<double>(key) == distinct;
    BOOST_REQUIRE(static_cast<double>(key) <= distinct);
    distinct += is_new;
    for (int i = 0; i < 3; ++i) {
      const auto entry = where[i].find(key);
      if (entry != where[i].end())
        recent[i].erase(entry->second);
      else
        misses[i] += !is_new;
      recent[i].push_front(key);
      where[i][key] = recent[i].begin();
      if (recent[i].size() <= sizes[i]) continue;
      where[i].erase(recent[i].back());
      recent[i].pop_back();
    }
    if (row == 1000) BOOST_TEST(fits(distinct, 1000, 0.8));
  }
  const double n = rows, repeats = n - distinct;
  BOOST_TEST(fits(distinct, n, 0.3));
  BOOST_TEST(fits(misses[0], repeats, 0.7));
  BOOST_TEST(fits(misses[1], repeats, 0.3));
  BOOST_TEST(fits(misses[2], repeats, 0.05));
}

// Importances have the shares that their frequency says, keys of one importance are equally
// frequent, and the wanted share of the elements is repeats. (Draws are independent, so the count
// of distinct keys varies less than a binomial one.)
BOOST_AUTO_TEST_CASE(importance_streams_have_their_frequencies) {
  using bench::Frequency;
  const std::uint64_t rows = 100000;
  const double n = rows;
  for (const Frequency frequency :
       {Frequency::equal, Frequency::inverse, Frequency::proportional}) {
    const double low = frequency == Frequency::equal ? 1 : 50;
    const double ratio = frequency == Frequency::inverse ? low : 1 / low;
    for (const double repeats : {.1, .5}) {
      bench::ImportanceStream stream(rows, repeats, frequency, 8);
      BOOST_TEST(stream.share(1) / stream.share(50) == ratio, boost::test_tools::tolerance(1e-12));
      bench::SeenKeys truth(stream.universe());
      std::vector<double> times(51);
      const std::uint64_t keys = stream.universe() / 50;  // of one importance
      std::vector<double> parts(10), sizes(10);
      for (std::uint64_t key = 0; key < keys; ++key) ++sizes[key * 10 / keys];
      double again = 0;
      for (std::uint64_t row = 0; row < rows; ++row) {
        const std::uint64_t key = stream.next();
        BOOST_REQUIRE(key < stream.universe());
        ++times[stream.importance(key)];
        ++parts[key / 50 * 10 / keys];
        again += truth.is_repeat(key);
      }
      for (unsigned i = 1; i <= 50; ++i) BOOST_TEST(fits(times[i], n, stream.share(i)));
      for (int part = 0; part < 10; ++part)
        BOOST_TEST(fits(parts[part], n, sizes[part] / static_cast<double>(keys)));
      BOOST_TEST(fits(again, n, repeats));
    }
  }
  bench::ImportanceStream distinct(rows, 0, Frequency::inverse, 9);
  for (std::uint64_t row = 0; row < 1000; ++row) BOOST_TEST(distinct.next() / 50 == row);
}

BOOST_AUTO_TEST_SUITE_END()
