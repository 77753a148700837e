// Parameters derived from memory, keys and fpr keep the promise made to the user; explicit ones are
// taken as given.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <string>

#include "unit/support/filters.hpp"
#include "unit/support/kind_checks.hpp"

using namespace streamfilter;
using namespace unit;

BOOST_AUTO_TEST_SUITE(definition_derivation)

namespace {

double bound_of(const Parameters& parameters) {
  return find_ops(parameters.kind)->fpr_bound(parameters);
}

// Up to rounding: where Eq. 17 is whole, Eq. 8 gives fpr itself.
bool keeps(const Parameters& parameters, double fpr) {
  return bound_of(parameters) <= fpr * (1 + 1e-9);
}

}  // namespace

BOOST_AUTO_TEST_CASE(sbf_keeps_fpr_in_any_memory) {
  for (const char* memory : {"4kB", "64kB", "100001", "1MB", "1GB", "1TB"})
    for (const double fpr : {0.5, 0.2, 0.1, 0.05, 0.01, 0.001, 1e-6})
      for (const char* rest : {"", ", max=1", ", max=2", ", max=3", ", max=7", ", max=15", ", k=2",
                               ", gap=100", ", gap=1e6", ", keys=1e6", ", cell_bits=4"}) {
        const std::string text =
            std::string("sbf(memory=") + memory + ", fpr=" + std::to_string(fpr) + rest + ")";
        Parameters parameters;
        Problem problem;
        if (!make_parameters(text, parameters, problem)) {
          BOOST_TEST((problem.error == Error::too_small), text << ": " << problem.message);
          continue;
        }
        BOOST_TEST(keeps(parameters, fpr), text << " gives " << bound_of(parameters));
      }
}

BOOST_AUTO_TEST_CASE(without_fpr_it_is_one_percent) {
  BOOST_TEST(keeps(parameters_of("sbf()"), 0.01));
  BOOST_TEST(keeps(parameters_of("bloom(keys=100000)"), 0.01));
  BOOST_TEST(!keeps(parameters_of("sbf()"), 0.009));
}

BOOST_AUTO_TEST_CASE(bloom_takes_the_memory_that_its_keys_need) {
  for (const char* keys : {"100", "12345", "1e6", "1e9", "1e12"})
    for (const double fpr : {0.3, 0.01, 0.0001}) {
      const Parameters parameters =
          parameters_of(std::string("bloom(keys=") + keys + ", fpr=" + std::to_string(fpr) + ")");
      BOOST_TEST(bound_of(parameters) <= fpr);
      // n ln(1/fpr) / ln(2)^2 bits in theory; headers, whole K and slices cost a little.
      const double bits = std::atof(keys) * -std::log(fpr) / (std::log(2) * std::log(2));
      BOOST_TEST(static_cast<double>(parameters.memory) <= 2048 + 1.15 * bits / 8);
    }
}

// A kind with a promise up to `keys` takes the memory it needs for that, and not much more.
BOOST_AUTO_TEST_CASE(keys_follow_memory_where_a_kind_must_know_them) {
  for (const std::string text :
       {"bloom(memory=64kB", "bloom(memory=1MB, fpr=0.001", "bloom(memory=1MB, layout=blocked",
        "bloom(memory=1MB, slicing=vertical", "bloom(memory=1MB, grow=density",
        "bloom(memory=1MB, grow=cardinality, fpr=0.05", "timer(memory=1MB, window=1 hour",
        "bloom(fpr=0.1", "bloom("}) {
    const Parameters p = parameters_of(text + ")");
    const FilterOps& ops = *find_ops(p.kind);
    const double fpr = p.fpr > 0 ? p.fpr : 0.01;
    BOOST_TEST_CONTEXT(text << ": " << text_of(p)) {
      BOOST_TEST(p.keys > 0u);
      BOOST_TEST(ops.fpr_bound(p) <= fpr);
      // The same number of keys, given as an option, would make it; one percent more is too much.
      Parameters given{};
      Problem problem;
      const std::string before = text.back() == '(' ? text : text + ", ";
      const auto with = [&](double keys) {
        return before + "memory=" + std::to_string(p.memory) +
               ", keys=" + std::to_string(static_cast<std::uint64_t>(keys)) + ")";
      };
      BOOST_TEST(make_parameters(with(static_cast<double>(p.keys)), given, problem),
                 problem.message);
      BOOST_TEST(std::memcmp(&p, &given, sizeof p) == 0);
      BOOST_TEST((!make_parameters(with(1.01 * static_cast<double>(p.keys) + 1), given, problem) ||
                  ops.fpr_bound(given) > fpr));
    }
  }
  // Explicit parameters make no promise.
  BOOST_TEST(parameters_of("bloom(memory=64kB, k=4)").keys == 0u);
}

BOOST_AUTO_TEST_CASE(memory_follows_keys_beside_other_options) {
  for (const char* text :
       {"bloom(keys=1e6, k=3", "bloom(keys=1e6, k=3, layout=blocked",
        "bloom(keys=1e6, grow=density", "bloom(keys=1e6, fpr=0.001, grow=cardinality",
        "bsbf(keys=1e6, k=3", "rlbsbf(keys=1e6, k=1", "bsbfsd(keys=1000, k=2",
        "timer(window='1 hour', keys=1e7", "timer(window='1 hour', keys=1000, fpr=0.1, k=4",
        "timer(window='1 hour', keys=1e5, grow=density",
        "timer(window='100000 rows', keys=1e6, grow=cardinality"})
    BOOST_TEST_CONTEXT(text) {
      const Parameters p = parameters_of(std::string(text) + ")");
      BOOST_TEST(bound_of(p) <= (p.fpr > 0 ? p.fpr : 0.01));
      Parameters less;
      Problem problem;
      const bool fits = make_parameters(std::string(text) + ", memory=" +
                                            std::to_string(static_cast<std::uint64_t>(
                                                static_cast<double>(p.memory) * 0.95 - 64)) +
                                            ", slices=" + std::to_string(p.slices) + ")",
                                        less, problem);
      BOOST_TEST((!fits || bound_of(less) > (p.fpr > 0 ? p.fpr : 0.01)));
    }
}

BOOST_AUTO_TEST_CASE(memory_that_follows_from_nothing_is_the_default) {
  for (const char* text :
       {"sbf()", "sbf(keys=1e6)", "bloom(k=3)", "timer(window='1 hour', k=3)", "lru(keys=1e6)"})
    BOOST_TEST(parameters_of(text).memory == 1u << 20, text);
}

// A refused Bloom filter's hint is right: the memory it names is enough, and 2 % less is not.
// (Memory has steps of 64 bytes, so small filters have a little more.)
BOOST_AUTO_TEST_CASE(the_memory_in_the_hint_suffices_and_no_less_does) {
  for (const char* keys : {"12345", "30000", "54000", "100000", "1e6", "123456789"})
    for (const char* fpr : {"0.2", "0.01", "0.001", "1e-7"})
      for (const char* slices : {"", ", slices=1", ", slices=5"}) {
        const std::string rest = std::string(", keys=") + keys + ", fpr=" + fpr + slices + ")";
        Parameters parameters;
        Problem problem;
        BOOST_REQUIRE(!make_parameters("bloom(memory=2kB" + rest, parameters, problem));
        BOOST_REQUIRE((problem.error == Error::conflict));
        char* unit = nullptr;
        const double needed = static_cast<double>(std::strtoull(problem.hint, &unit, 10));
        BOOST_REQUIRE(std::string(unit).find(" bytes would do.") == 0u);

        const auto with = [](double memory) {
          return "bloom(memory=" + std::to_string(static_cast<std::uint64_t>(memory));
        };
        const bool enough = make_parameters(with(needed) + rest, parameters, problem);
        BOOST_TEST(enough, with(needed) << rest << ": " << problem.message);
        const bool less = make_parameters(with(needed * 0.98 - 64) + rest, parameters, problem);
        BOOST_TEST(!less, with(needed * 0.98 - 64) << rest << " would do, too");
      }
}

BOOST_AUTO_TEST_CASE(the_rate_that_would_be_reached_is_told) {
  const Problem problem = refusal("bloom(memory=10kB, keys=10000)");
  const double bits = (10240 - 64 - 64) / 64 * 64 * 8.0, load = 10000 / bits;
  const double best =
      std::min(std::pow(1 - std::exp(-5 * load), 5), std::pow(1 - std::exp(-6 * load), 6));
  char detail[100];
  std::snprintf(detail, sizeof detail, "Its false-positive rate would reach %.3g.", best);
  BOOST_TEST(std::string(problem.detail) == detail);
}

BOOST_AUTO_TEST_CASE(explicit_parameters_override) {
  // The settings of Deng, Rafiei 2006, with P rounded down, are never refused (Eq. 8 gives 11.1 %
  // there) …
  const Parameters paper = parameters_of("sbf(memory=64kB, fpr=0.1, max=1, k=2, p=4)");
  BOOST_TEST(option_value(paper, "p") == 4u);
  BOOST_TEST(bound_of(paper) == 0.1111, tolerance(1e-3));
  // … and an explicit k may overfill a Bloom filter.
  const Parameters full = parameters_of("bloom(memory=1kB, keys=1000000, fpr=0.01, k=3)");
  BOOST_TEST(bound_of(full) > 0.99);
  // Without keys the filter promises nothing.
  BOOST_TEST(bound_of(parameters_of("bloom(memory=1kB, k=3)")) == 1);
}

BOOST_AUTO_TEST_CASE(cells_follow_max_and_max_follows_cells) {
  const auto bits = [](const char* text) { return option_value(parameters_of(text), "cell_bits"); };
  BOOST_TEST(bits("sbf(max=1)") == 1u);
  BOOST_TEST(bits("sbf(max=2)") == 2u);
  BOOST_TEST(bits("sbf(max=3)") == 2u);
  BOOST_TEST(bits("sbf(max=4)") == 3u);
  BOOST_TEST(bits("sbf(max=7)") == 3u);
  BOOST_TEST(bits("sbf(max=8)") == 4u);
  BOOST_TEST(bits("sbf(max=3, cell_bits=4)") == 4u);
  BOOST_TEST(option_value(parameters_of("sbf(cell_bits=3)"), "max") == 7u);
  BOOST_TEST(option_value(parameters_of("sbf()"), "max") == 1u);
}

// Deng, Rafiei 2006 §4.1: the shorter the gap, the more levels pay.
BOOST_AUTO_TEST_CASE(max_follows_the_typical_gap) {
  const auto max = [](const char* gap) {
    return option_value(parameters_of(std::string("sbf(memory=64kB, gap=") + gap + ")"), "max");
  };
  BOOST_TEST(max("100000") == 1u);
  BOOST_TEST(max("12000") == 3u);
  BOOST_TEST(max("2000") == 7u);
}

BOOST_AUTO_TEST_CASE(auto_keeps_fpr_and_then_misses_the_fewest) {
  const auto kind = [](const std::string& text) {
    return find_ops(parameters_of(text).kind)->name;
  };
  BOOST_TEST(kind("auto()") == "clq");
  BOOST_TEST(kind("auto(memory=64kB)") == "clq");
  BOOST_TEST(kind("auto(keys=10000)") == "bloom");
  BOOST_TEST(kind("auto(memory=64kB, keys=10000)") == "bloom");
  BOOST_TEST(kind("auto(memory=64kB, keys=1000000)") == "clq");
  BOOST_TEST(kind("auto(memory=64kB, keys=100000, fpr=0.2)") == "bloom");
  BOOST_TEST(kind("auto(keys=10000, fpr=0.02)") == "bloom");
  BOOST_TEST(kind("auto(keys=10000, fpr=0.001)") == "vqf");
  BOOST_TEST(kind("auto(memory=64kB, keys=70000)") == "vqf");  // it misses a few of them
  BOOST_TEST(kind("auto(memory=64kB, keys=1000, fpr=1e-6, layout=blocked)") == "bloom");
  for (const char* window : {"1000 rows", "1 hour', lateness='1 minute", "1 hour', extend='yes"})
    BOOST_TEST(kind(std::string("auto(memory=64kB, window='") + window + "')") == "vqf");
  for (const char* memory : {"1kB", "64kB", "1MB", "100MB"})
    for (const double fpr : {0.5, 0.1, 0.01, 1e-6})
      for (const char* rest : {"", ", keys=1000", ", keys=1e6", ", keys=1e8", ", keys=1e12"}) {
        const std::string text =
            std::string("auto(memory=") + memory + ", fpr=" + std::to_string(fpr) + rest + ")";
        BOOST_TEST(keeps(parameters_of(text), fpr), text);
      }
}

// Without keys the window decides, unless two lines have far less room; with keys, how many of them
// are held.
BOOST_AUTO_TEST_CASE(auto_takes_two_lines_where_they_remember_more) {
  const auto lines = [](const std::string& text) {
    const Parameters p = parameters_of(text);
    BOOST_TEST_REQUIRE((p.kind == Kind::clq), text);
    return text_of(p).find("lines=2") == std::string::npos ? 1 : 2;
  };
  for (const char* fpr : {"0.1", "0.05", "0.03", "0.01", "0.003", "0.001", "1e-4", "1e-6"})
    for (const char* memory : {"4kB", "1MB", "64MB"}) {
      const std::string rest = std::string("(memory=") + memory + ", fpr=" + fpr;
      BOOST_TEST(lines("auto" + rest + ")") == 2, rest);
      const double window = window_keys(parameters_of("auto" + rest + ")"), .01);
      BOOST_TEST(window >= window_keys(parameters_of("clq" + rest + ", lines=1)"), .01), rest);
      BOOST_TEST(window >= window_keys(parameters_of("clq" + rest + ", lines=2)"), .01), rest);
    }
  BOOST_TEST(window_keys(parameters_of("auto(memory=1MB, fpr=0.01)"), .01) >= 575000);
  for (const char* fpr : {"0.5", "0.3", "0.2"})
    BOOST_TEST(lines(std::string("auto(memory=1MB, fpr=") + fpr + ")") == 1, fpr);
  BOOST_TEST(lines("auto(memory=1MB, fpr=1e-4, keys=5000000)") == 1);
}

BOOST_AUTO_TEST_CASE(auto_lays_a_bloom_filter_out_in_lines_beyond_the_cache) {
  const auto layout = [](const char* text) { return parameters_of(text).layout; };
  BOOST_TEST((layout("auto(memory=1MB, keys=10000)") == Layout::scattered));
  BOOST_TEST((layout("auto(memory=64MB, keys=1e7)") == Layout::blocked));
  BOOST_TEST((layout("auto(memory=64MB, keys=1e7, layout=scattered)") == Layout::scattered));
  // Scattered bits keep 1 % for that many keys, blocked ones do not.
  BOOST_TEST((layout("auto(memory=64MB, keys=5.55e7)") == Layout::scattered));
  BOOST_TEST((parameters_of("auto(memory=64MB, keys=5.55e7)").kind == Kind::bloom));
  // A key of clq lies in one line in any case.
  BOOST_TEST((parameters_of("auto(memory=64kB, layout=blocked)").kind == Kind::clq));
}

// Takes enough memory for the promised window, and no more; given options stay.
BOOST_AUTO_TEST_CASE(clq_takes_the_memory_that_its_keys_need) {
  for (const char* rest : {"", ", fpr=0.1", ", fpr=0.0001", ", bits=16", ", bits=16, bucket=32"})
    for (const char* keys : {"100", "10000", "1e6", "1e9"}) {
      const std::string text = std::string("clq(keys=") + keys + rest;
      const Parameters p = parameters_of(text + ")");
      BOOST_TEST(window_keys(p, 0.01) >= std::atof(keys), text);
      const double less = static_cast<double>(p.memory) * 0.97 - 64 * p.slices;
      if (less < 1024 * p.slices) continue;
      BOOST_TEST(window_keys(parameters_of(text + ", memory=" +
                                           std::to_string(static_cast<std::uint64_t>(less)) +
                                           ", slices=" + std::to_string(p.slices) + ")"),
                             0.01) < std::atof(keys),
                 text);
    }
  BOOST_TEST(parameters_of("clq(memory=64kB, keys=1e6)").memory == 65536u);
}

// With more keys than memory can hold, shorter buckets hold more of them.
BOOST_AUTO_TEST_CASE(clq_in_too_little_memory_holds_the_most_keys) {
  const Stream stream = Stream::uniform(200000, 100000);
  const auto fnr = [&](const char* text) {
    const Parameters p = parameters_of(text);
    BOOST_TEST(find_ops(p.kind)->fpr_bound(p) <= 0.01);
    return find_ops(p.kind)->predict(p, stream).fnr;
  };
  BOOST_TEST(fnr("clq(memory=100kB, keys=100000)") < 0.8 * fnr("clq(memory=100kB)"));
}

BOOST_AUTO_TEST_CASE(slices_are_many_but_none_is_small) {
  BOOST_TEST(default_slices(0) == 1u);
  BOOST_TEST(default_slices((128 << 10) - 1) == 1u);
  BOOST_TEST(default_slices(128 << 10) == 2u);
  BOOST_TEST(default_slices(1 << 20) == 16u);
  BOOST_TEST(default_slices(4 << 20) == 64u);
  BOOST_TEST(default_slices(std::uint64_t{1} << 46) == 64u);
  for (const char* memory : {"1kB", "128kB", "1MB", "1GB"}) {
    const Parameters p = parameters_of(std::string("sbf(memory=") + memory + ")");
    BOOST_TEST(p.slices == default_slices(p.memory));
  }
}

BOOST_AUTO_TEST_CASE(slices_fill_the_memory_but_for_a_rest) {
  for (const std::uint64_t memory : {640u, 1000u, 65536u, 1000003u, 67108864u}) {
    const Parameters p = parameters_of("sbf(memory=" + std::to_string(memory) + ")");
    BOOST_TEST(p.memory == memory);
    BOOST_TEST(p.slice_bytes % 64 == 0u);
    const std::uint64_t used = kStoredHeader + slices_bytes(p);
    BOOST_TEST(used <= memory);
    BOOST_TEST(used + 64 * p.slices > memory);
  }
}

BOOST_AUTO_TEST_SUITE_END()
