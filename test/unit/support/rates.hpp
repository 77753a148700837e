// Runs of keys through a filter, and the errors that it makes.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "unit/support/filters.hpp"
#include "unit/support/streams.hpp"

namespace unit {

// Inserts keys first … end - 1. Returns how many were taken for repeats.
template <typename Numbered = decltype(&key)>
double insert_keys(Filter& filter, std::uint64_t first, std::uint64_t end,
                   Numbered numbered = key) {
  double repeats = 0;
  for (std::uint64_t number = first; number < end; ++number)
    repeats += filter.insert(numbered(number));
  return repeats;
}

// How many of keys first … end - 1 the filter knows, or takes for known ones.
template <typename Numbered = decltype(&key)>
double count_known(const Filter& filter, std::uint64_t first, std::uint64_t end,
                   Numbered numbered = key) {
  double known = 0;
  for (std::uint64_t number = first; number < end; ++number) known += filter.test(numbered(number));
  return known;
}

template <typename Numbered = decltype(&key)>
Filter filled(const std::string& definition, std::uint64_t keys, Numbered numbered = key) {
  Filter filter(definition);
  insert_keys(filter, 0, keys, numbered);
  return filter;
}

struct Errors {
  double fresh = 0, repeats = 0, positives = 0, negatives = 0;
  double fpr() const { return positives / fresh; }
  double fnr() const { return negatives / repeats; }

  void count(bool is_repeat, bool seen) {
    (is_repeat ? repeats : fresh) += 1;
    positives += seen && !is_repeat;
    negatives += !seen && is_repeat;
  }
};

// On so many numbers that next() gives.
template <typename Next, typename Numbered = decltype(&key)>
Errors errors_of(Filter& filter, std::uint64_t rows, Next next, Numbered numbered = key) {
  Errors errors;
  std::vector<bool> came;
  for (; rows > 0; --rows) {
    const std::uint64_t number = next();
    if (number >= came.size()) came.resize(number + 1);
    errors.count(came[number], filter.insert(numbered(number)));
    came[number] = true;
  }
  return errors;
}

// The mean of independent numbers.
class Mean {
 public:
  void add(double number) {
    ++n_;
    sum_ += number;
    squares_ += number * number;
  }
  double value() const { return sum_ / n_; }
  double standard_error() const {
    return std::sqrt((squares_ / n_ - value() * value()) / (n_ - 1));
  }
  double root_mean_square() const { return std::sqrt(squares_ / n_); }

 private:
  double n_ = 0, sum_ = 0, squares_ = 0;
};

}  // namespace unit
