// Every kind of the library and other published filters, by the bits that each key of a window
// costs.
#pragma once

#include <string>
#include <vector>

#include "bench/quality/aging_blooms.hpp"
#include "bench/quality/window_courses.hpp"

namespace bench {

// One curve: the best of some settings that all keep the false-positive rate.
struct WindowKind {
  const char* name;  // of the library: up to a comma
  bool is_ours;
  std::vector<std::string> options;  // of the library
};

inline std::vector<WindowKind> window_kinds() {
  std::vector<std::string> stable, bits;
  for (const char* max : {"1", "3", "7"})
    for (const char* k : {"2", "3", "4", "6"})
      stable.push_back(std::string("fpr=%fpr, max=") + max + ", k=" + k);
  for (const unsigned k : {4, 8, 10, 12, 16, 24}) bits.push_back("k=" + std::to_string(k));
  return {
      {"clq", true, {"fpr=%fpr", "fpr=%fpr, policy=fifo"}},
      {"clq, two lines", true, {"fpr=%fpr, lines=2"}},
      {"lru", true, {"entry_bits=32", "entry_bits=16"}},
      {"fplru", false, {"fpr=%fpr", "fpr=%fpr, policy=clock"}},
      {"sqf", false, {"fpr=%fpr", "fpr=%fpr, fingerprint=integer"}},
      {"dsqf", false, {"fpr=%fpr"}},
      {"sbf", false, stable},
      {"rsbf", false, {"fpr=%fpr", "fpr=%fpr, variant=measured"}},
      {"bsbf", false, bits},
      {"bsbfsd", false, bits},
      {"rlbsbf", false, bits},
      {"ibf2c", false, {"fpr=%fpr"}},
      {"ibfmc", false, {"fpr=%fpr"}},
      {"ibfh", false, {"fpr=%fpr"}},
      {"timer", false, {}},
      {"two buffers", false, {}},
      {"age-partitioned", false, {}},
      {"cuckoo with time stamps", false, {}},
  };
}

class WindowRunner {
 public:
  WindowRunner(double fpr, bool quick) : fpr_(fpr), quick_(quick) {}

  // The settings that keep the rate.
  std::vector<Course> courses(const WindowKind& kind) {
    courses_.clear();
    const std::string name = kind.name;
    if (name == "timer") timers();
    if (name == "two buffers") two_buffers();
    if (name == "age-partitioned") age_partitioned();
    if (name == "cuckoo with time stamps") cuckoos();
    for (const std::string& options : kind.options)
      add(name.substr(0, name.find(',')) + "(" + options);
    return courses_;
  }

 private:
  static std::uint64_t bits() { return static_cast<std::uint64_t>(kCourseBits); }

  // The bits, half of them set, that keep the rate.
  unsigned least_hashes() const { return static_cast<unsigned>(std::ceil(std::log2(1 / fpr_))); }

  template <typename Tested>
  void add(Tested filter, const std::string& setting) {
    Course course = measure_course(filter, quick_);
    course.setting = setting;
    if (keeps_fpr(course, fpr_, quick_)) courses_.push_back(course);
  }

  // The settings, without impossible ones.
  bool add(std::string definition) {
    if (const std::size_t at = definition.find("%fpr"); at != std::string::npos)
      definition.replace(at, 4, text("%g", fpr_));
    const std::string whole =
        definition +
        text(", slices=1, memory=%llu)", static_cast<unsigned long long>(memory_for(bits() / 8)));
    streamfilter::Parameters parameters;
    streamfilter::Problem problem;
    if (!make_parameters(whole, parameters, problem)) return false;
    struct Tested {
      Filter filter;
      bool insert(std::uint64_t hash) { return filter.insert({hash}); }
      bool test(std::uint64_t hash) { return filter.test({hash}); }
    };
    add(Tested{Filter(whole)}, definition + ")");
    return true;
  }

  // For each number of hash functions, the largest window for which the rate is kept.
  void timers() {
    for (const char* k : {"", ", k=4", ", k=6", ", k=8"})
      for (double bits_per_key = 12; bits_per_key < 200; bits_per_key *= 1.05)
        if (add(text("timer(fpr=%g, window='%.0f rows'%s", fpr_, kCourseBits / bits_per_key, k)))
          break;
  }
  void two_buffers() {
    for (unsigned k = least_hashes(); k < least_hashes() + 4; ++k)
      add(TwoBuffers(bits(), k), text("k = %u", k));
  }
  void age_partitioned() {
    for (unsigned k = least_hashes() + 1; k < least_hashes() + 8; ++k) {
      unsigned l = 0;
      while (l < 200 && age_partitioned_fpr(k, l + 1) <= fpr_) ++l;
      if (l > 0) add(AgePartitioned(bits(), k, l), text("k = %u, l = %u", k, l));
    }
  }
  void cuckoos() {
    const auto fingerprint = static_cast<unsigned>(std::ceil(std::log2(8 * .95 / fpr_ + 1)));
    for (unsigned age = 3; age < 7; ++age)
      add(TimestampedCuckoo(bits(), fingerprint, age),
          text("%u bits and %u of age", fingerprint, age));
  }

  double fpr_;
  bool quick_;
  std::vector<Course> courses_;
};

// The lower bound for a window of keys: log2(1 / fpr) + log2 log2 (1 / fpr) bits a key, if none may
// be missed (Naor, Yogev 2013).
inline double window_bound(double fpr) {
  return std::log2(1 / fpr) + std::log2(std::log2(1 / fpr));
}

// The lower bound for any set of keys if a share of them may be missed: the information in an
// answer.
inline double set_bound(double fpr, double fnr) {
  return (1 - fnr) * std::log2((1 - fnr) / fpr) + (fnr > 0 ? fnr * std::log2(fnr / (1 - fpr)) : 0);
}

}  // namespace bench
