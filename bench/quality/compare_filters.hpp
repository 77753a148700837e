// The filters of bench/quality/compare.cpp: every kind of the papers with several settings, and the
// kinds that these are compared with.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/quality/aging_blooms.hpp"
#include "bench/quality/compare_streams.hpp"

namespace bench {

// One curve of the plots.
struct ComparedKind {
  const char* name;
  bool of_a_paper;
  std::vector<std::string> options;

  // "clq 2 lines" is clq with a choice of lines.
  const char* definition() const { return std::strcmp(name, "clq 2 lines") == 0 ? "clq" : name; }
};

constexpr const char* kForgettingRates[] = {"0.00003", "0.0001", "0.0003", "0.001", "0.003",
                                            "0.01",    "0.03",   "0.06",   "0.12",  "0.3"};

inline std::vector<ComparedKind> compared_kinds() {
  const std::vector<std::string> rates = {"fpr=0.002", "fpr=0.01", "fpr=0.03", "fpr=0.1"};
  const std::vector<std::string> hashes = {"k=1", "k=2", "k=3", "k=4", "k=6"};
  std::vector<std::string> up_to_keys = rates;
  for (const std::string& rate : rates) up_to_keys.push_back(rate + ", keys=%keys");
  std::vector<std::string> forgetting, of_two_lines;
  for (const char* rate : kForgettingRates) {
    for (const char* rest : {"", ", keys=%keys"})
      forgetting.push_back(std::string("fpr=") + rate + rest);
    of_two_lines.push_back(std::string("lines=2, fpr=") + rate);
  }
  for (const char* rate : {"0.06", "0.12", "0.2", "0.3"})
    forgetting.push_back(std::string("policy=second, fpr=") + rate);
  return {
      {"sbf",
       true,
       {"fpr=0.002", "fpr=0.01", "fpr=0.03", "fpr=0.1", "max=1, k=2, p=4", "max=3, fpr=0.01",
        "max=3, fpr=0.03", "max=3, fpr=0.1", "max=7, fpr=0.03", "gap=%keys, fpr=0.03"}},
      {"rsbf",
       true,
       {"fpr=0.01", "fpr=0.1", "fpr=0.03, variant=measured", "fpr=0.1, variant=measured"}},
      {"bsbf", true, hashes},
      {"bsbfsd", true, hashes},
      {"rlbsbf", true, hashes},
      {"sqf", true, up_to_keys},
      {"dsqf", true, rates},
      {"ibf2c", true, {"fpr=0.01", "fpr=0.1", "fpr=0.1, k=2"}},
      {"ibfmc", true, {"fpr=0.01", "fpr=0.1", "fpr=0.1, k=2"}},
      {"timer",
       true,
       {"window='%keys/1 rows', k=1", "window='%keys/2 rows', k=2", "window='%keys/4 rows', k=3",
        "window='%keys/8 rows', k=4"}},
      {"lru", true, {"entry_bits=32", "entry_bits=32, policy=clock"}},
      {"fplru", true, {"entry_bits=16, policy=clock, fpr=0.03"}},
      {"bloom", false, {"k=1", "k=2", "k=3", "k=4", "k=5", "k=6", "k=8", "k=11"}},
      {"clq", false, forgetting},
      {"clq 2 lines", false, of_two_lines},
      {"vqf", false, up_to_keys},
      {"two buffers", false, {"3", "4", "5", "6", "8", "10"}},
      {"partitioned", false, {"2 2", "3 3", "4 3", "5 7", "7 5", "8 8", "10 7"}},
  };
}

// The rates of one filter on one stream.
struct Point {
  std::string setting;
  Errors all, end;
};

// Runs filters of one size over one stream; equal definitions run once.
class Runner {
 public:
  Runner(const ComparedStream& stream, double bits_per_key)
      : stream_(stream),
        bits_(static_cast<std::uint64_t>(bits_per_key * stream.keys()) / 512 * 512) {}

  // False: there is no such filter of this size.
  bool run(const ComparedKind& kind, const std::string& options, Point& point) {
    unsigned k, l;
    if (std::strcmp(kind.name, "two buffers") == 0)
      point = measure(TwoBuffers(bits_, static_cast<unsigned>(std::atoi(options.c_str()))));
    else if (std::sscanf(options.c_str(), "%u %u", &k, &l) == 2)
      point = measure(AgePartitioned(bits_, k, l));
    else
      return run(std::string(kind.definition()) + "(" + options, point);
    point.setting = std::string(kind.name) + " " + options;
    return true;
  }

  bool run_auto(double fpr, Point& point) {
    const std::string keys = stream_.gap > 0 ? "" : text(", keys=%.0f", stream_.keys());
    return run(text("auto(fpr=%.9g", std::fmin(fpr, 0.999)) + keys, point);
  }

 private:
  bool run(std::string definition, Point& point) {
    for (std::size_t at; (at = definition.find("%keys")) != std::string::npos;) {
      const bool is_part = definition[at + 5] == '/';
      const double part = is_part ? definition[at + 6] - '0' : 1;
      definition.replace(at, is_part ? 7 : 5, text("%.0f", std::ceil(stream_.keys() / part)));
    }
    definition +=
        text(", slices=1, memory=%llu)", static_cast<unsigned long long>(memory_for(bits_ / 8)));
    streamfilter::Parameters parameters;
    streamfilter::Problem problem;
    if (!make_parameters(definition, parameters, problem)) return false;
    // Equal filters count as one, whatever fpr and keys they were made for.
    parameters.fpr = 0;
    parameters.keys = 0;
    char printed[streamfilter::kMaxDefinitionText];
    print_definition(parameters, printed, sizeof printed);
    const auto [known, is_new] = known_.try_emplace(printed);
    if (is_new) {
      struct Insertion {
        std::shared_ptr<Filter> filter;
        bool insert(std::uint64_t hash) { return filter->insert({hash}); }
      };
      known->second = measure(Insertion{std::make_shared<Filter>(definition)});
      known->second.setting = printed;
    }
    point = known->second;
    return true;
  }

  template <typename Tested>
  Point measure(Tested filter) const {
    Point point;
    const double from = stream_.counted_from(), end = stream_.end_from();
    stream_.rows.for_each_row([&](std::size_t row, std::uint32_t key, bool repeat) {
      const bool reported = filter.insert(streamfilter::hash_word(key, 0));
      const double at = static_cast<double>(row);
      if (at >= from) point.all.count(repeat, reported);
      if (at >= end) point.end.count(repeat, reported);
    });
    return point;
  }

  const ComparedStream& stream_;
  std::uint64_t bits_;
  std::map<std::string, Point> known_;
};

}  // namespace bench
