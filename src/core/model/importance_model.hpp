// The Markov chain of "Importance-aware Bloom Filter for Managing Set Membership Queries on
// Streaming Data" (Bhoraskar et al.), with the paper's symbols: m cells of at most M, K cells set
// to the level of an element and P cells decremented per element. The paper's closed forms contain
// errors; these are the limits of the chain that it draws.
#pragma once

#include <cstdint>

namespace streamfilter::importance_model {

constexpr unsigned kMaxLevels = 15;

// How the levels of elements are distributed.
struct Levels {
  unsigned max;                  // M
  double share[kMaxLevels + 1];  // share[i]: of the elements that set cells to i, 1 <= i <= M
};

// §III-A: half of the elements set M, the others floor(M/2).
Levels two_classes(unsigned max) noexcept;

// §III-B: every level 1..M equally often.
Levels uniform(unsigned max) noexcept;

// All elements most important: IBF is SBF then.
Levels most_important(unsigned max) noexcept;

// How cells to decrement are chosen. random: P cells, each with the same probability. value: P
// cells that are not zero, with probabilities proportional to 1/value (§IV-C).
enum class Deletion : std::uint8_t { random, value };

// With Deletion::value, at most this many times P cells are looked at for each element.
constexpr std::uint64_t kMaxLooks = 16;

struct Setting {
  double k;  // K
  double p;  // P
  double m;
  Deletion deletion;
};

// How many cells are looked at per element: P, or what it takes to find P by Deletion::value.
double looks(const Levels& levels, const Setting& setting) noexcept;

// Theorems III.1 and III.5: the limits V_0 … V_M of the probabilities of a cell's values.
void stationary(const Levels& levels, const Setting& setting, double* v) noexcept;

// An upper bound of the false-positive rate on any stream of any importance.
double fpr_bound(unsigned max, const Setting& setting) noexcept;

// The least whole P that keeps the bound; 0: there is none up to m.
std::uint64_t decrements(double fpr, unsigned max, Setting setting) noexcept;

// The false-negative rate of a key of level `level` last seen `gap` elements ago, from the
// transient of the chain.
double fnr(unsigned level, double gap, const Levels& levels, const Setting& setting) noexcept;

// The same, averaged over the levels of elements.
double mean_fnr(double gap, const Levels& levels, const Setting& setting) noexcept;

}  // namespace streamfilter::importance_model
