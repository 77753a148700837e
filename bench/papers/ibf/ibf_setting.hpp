// Shared by the figures of Bhoraskar et al. 2013: the setting of table III and the combinations of
// table IV.
#pragma once

#include <limits>

#include "bench/lib/figures.hpp"
#include "bench/lib/importance_streams.hpp"
#include "core/model/importance_model.hpp"

namespace bench::ibf {

using namespace streamfilter;

inline constexpr unsigned kM = 7;
inline constexpr double kK = 5, kP = 10;
inline constexpr unsigned kHigh = 36;  // Bhoraskar et al. 2013 §IV-E speaks of importances above 35

// Table IV: ways to insert and to delete. With M-insert all elements count as most important.
struct Combination {
  const char* name;
  const char* definition;
  bool most_important;
};

enum Column : unsigned { bf, sbf, two, multi, h, two_value, m_value, m_random, kColumns };

inline constexpr Combination kCombinations[kColumns] = {
    {"BF", "bloom(k=5", false},
    {"SBF", "sbf(max=7, cell_bits=3, k=5, p=10", false},
    {"IBF-2C", "ibf2c(max=7, k=5, p=10, importance_range='1,51'", false},
    {"IBF-MC", "ibfmc(max=7, k=5, p=10, importance_range='1,51'", false},
    {"IBF-H", "ibfh(max=7, k=5, p=10, importance_range='1,51'", false},
    {"M/2-insert, value", "ibf2c(max=7, k=5, p=10, delete=value, importance_range='1,51'", false},
    {"M-insert, value", "ibfmc(max=7, k=5, p=10, delete=value", true},
    {"M-insert, random", "ibfmc(max=7, k=5, p=10", true},
};
inline constexpr unsigned kShown = 5;  // the paper's own

struct Scale {
  std::uint64_t bytes, rows;
  unsigned permutations, replicas;
  bool is_small;  // gains of one or two points could be chance
};

inline std::string definition(const char* start, const Scale& scale, std::uint64_t seed) {
  return text("%s, slices=1, memory=%llu, seed=%llu)", start,
              static_cast<unsigned long long>(memory_for(scale.bytes)),
              static_cast<unsigned long long>(seed));
}

inline double importance_for(const Combination& combination, unsigned importance) {
  return combination.most_important ? std::numeric_limits<double>::infinity() : importance;
}

// The level that importance_range '1,51' gives importance i in `parts` equal parts.
inline unsigned part_of(unsigned i, unsigned parts) { return (i - 1) * parts / kImportances; }

// The distribution of levels on a stream.
inline importance_model::Levels levels_of(Column column, const ImportanceStream& stream) {
  if (column == sbf || column == m_value || column == m_random)
    return importance_model::most_important(kM);
  importance_model::Levels levels{kM, {}};
  for (unsigned i = 1; i <= kImportances; ++i) {
    const unsigned level = column == two || column == two_value ? (part_of(i, 2) > 0 ? kM : kM / 2)
                                                                : 1 + part_of(i, kM);
    levels.share[level] += stream.share(i);
  }
  return levels;
}

inline importance_model::Deletion deletion_of(Column column) {
  return column == h || column == two_value || column == m_value
             ? importance_model::Deletion::value
             : importance_model::Deletion::random;
}

}  // namespace bench::ibf
