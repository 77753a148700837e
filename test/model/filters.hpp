// The filters under test. Each guards the rows of two tables: a trigger discards repeats in t_NAME,
// while statements with streamfilter_seen() and INSERT INTO the filter fill p_NAME.
#pragma once

#include <string>
#include <vector>

namespace checker {

enum class Conflict { wait, admit, discard };

struct FilterSpec {
  const char* name;
  const char* options;
  Conflict conflict;
  bool logged;
  bool deletes;  // the kind can forget single keys
  bool follows;  // only triggers with streamfilter_forget() on both tables forget keys
  int keys;      // 0 to keys - 1 are tried

  // False: in another size it starts empty.
  bool is_kept_in_other_sizes() const {
    return std::string(options).find("'sqf'") == std::string::npos;
  }

  bool is_resized_meanwhile() const {
    return is_kept_in_other_sizes() && std::string(options).find("'vertical'") == std::string::npos;
  }

  std::string memory(int times = 1) const {
    const std::string text = options, before = "memory '";
    const int mb = std::stoi(text.substr(text.find(before) + before.size()));
    return std::to_string(mb * times) + "MB";
  }
};

// Memory is large enough for no answer to be wrong: README.md says how likely an error is, and
// checker.cpp tries all pairs of keys.
inline const std::vector<FilterSpec> kFilters = {
    {"bloom", "kind 'bloom', memory '2MB', k '10', persistence 'logged'", Conflict::wait, true,
     false, false, 8192},
    {"clq", "kind 'clq', memory '1MB', bits '48', bucket '10', persistence 'logged'",
     Conflict::wait, true, true, false, 1024},
    {"sqf", "kind 'sqf', memory '4MB', fpr '2.4e-7', seed '20240817', persistence 'logged'",
     Conflict::wait, true, true, false, 1024},
    {"vqf", "kind 'vqf', memory '1MB', bits '32', buckets '19', persistence 'logged'",
     Conflict::wait, true, true, false, 1024},
    {"vertical",
     "kind 'bloom', memory '2MB', k '8', slices '8', slicing 'vertical', persistence 'logged'",
     Conflict::wait, true, false, false, 8192},
    {"unlogged", "kind 'clq', memory '1MB', bits '48', bucket '10', persistence 'unlogged'",
     Conflict::wait, false, true, false, 1024},
    {"admit", "kind 'bloom', memory '2MB', k '10', conflict 'admit', persistence 'logged'",
     Conflict::admit, true, false, false, 8192},
    {"discard",
     "kind 'clq', memory '1MB', bits '48', bucket '10', conflict 'discard', persistence 'logged'",
     Conflict::discard, true, true, false, 1024},
    {"follows", "kind 'clq', memory '1MB', bits '48', bucket '10', persistence 'logged'",
     Conflict::wait, true, true, true, 1024},
};

// Filters without tables that are filled beyond what they are made for, emptied and brought into
// other sizes: what they say of their rates must be so.
struct RateSpec {
  const char* name;
  const char* options;
  bool deletes;
};

inline const std::vector<RateSpec> kRateFilters = {
    {"r_bloom", "kind 'bloom', fpr '0.01', keys '4000'", false},
    {"r_vqf", "kind 'vqf', fpr '0.01', keys '4000'", false},
    {"r_rsbf", "kind 'rsbf', fpr '0.05', keys '3000'", false},
    {"r_rlbsbf", "kind 'rlbsbf', fpr '0.02', keys '3000'", false},
    {"r_timer", "kind 'timer', fpr '0.01', window '500 rows'", false},
    {"r_clq", "kind 'clq', fpr '0.01'", true},
};

// The first is the one that they are created with.
inline constexpr const char* kRateSizes[] = {"16kB", "32kB", "20kB", "12kB", "64kB"};

}  // namespace checker
