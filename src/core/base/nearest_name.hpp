// "Perhaps you meant …": the known name nearest to a misspelt one.
#pragma once

#include <algorithm>
#include <cstring>

namespace streamfilter {

// Remembers the candidate with the least Levenshtein distance, if that is small enough to be a
// typo.
class NearestName {
 public:
  explicit NearestName(const char* wanted) noexcept
      : wanted_(wanted), length_(std::min(std::strlen(wanted), kMaxLength)) {}

  void consider(const char* candidate) noexcept {
    const std::size_t distance = distance_to(candidate);
    if (distance < least_ && distance <= 1 + length_ / 3) {
      least_ = distance;
      name_ = candidate;
    }
  }

  // nullptr: nothing is near.
  const char* name() const noexcept { return name_; }

 private:
  static constexpr std::size_t kMaxLength = 63;

  std::size_t distance_to(const char* candidate) const noexcept {
    std::size_t row[kMaxLength + 1];
    for (std::size_t j = 0; j <= length_; ++j) row[j] = j;
    for (std::size_t i = 0; candidate[i] != '\0'; ++i) {
      std::size_t diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < length_; ++j) {
        const std::size_t replaced = diagonal + (candidate[i] != wanted_[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
      }
    }
    return row[length_];
  }

  const char* wanted_;
  std::size_t length_;
  std::size_t least_ = kMaxLength;
  const char* name_ = nullptr;
};

}  // namespace streamfilter
