// Chooses a filter for a stream: every kind with the parameters that serve the stream best, by the
// kind's own predictions.
#pragma once

#include "core/filter/filter.hpp"

namespace streamfilter {

struct Advice {
  Parameters parameters;
  Prediction predicted;
  double fpr_bound;
  bool keeps_fpr;  // at least on this stream
};

constexpr unsigned kMaxAdvice = 64;

// What the caller knows of a stream. Without a gap, repeats are uniform draws from the keys seen.
// Errors: out_of_range.
bool describe_stream(double rows, double distinct, const double* gap, Stream& stream,
                     Problem& problem) noexcept;

// The kinds that `requested` (its memory and fpr) and the stream allow, best first; writes up to
// kMaxAdvice and returns how many. At most two for a kind: one that promises fpr for ever and, if
// it is predicted to do better, one that does so for the distinct keys of the stream.
//
// First those that keep fpr, by false-negative rate; then those that do not, by false-positive
// rate; then those made for keys of different importance, since importance is unknown; last those
// that have no model of such a stream. 0: none fits, and `problem` says why.
unsigned advise(const Definition& requested, const Stream& stream, Advice* advice,
                Problem& problem) noexcept;

// A remark on one of them, as a sentence without a full stop.
void explain(const Advice& advice, char* buffer, std::size_t size) noexcept;

// Forecasts error rates from rows of a stream: runs filters on a sample of its keys, in
// proportionally less memory.
//
// The hash of a key decides whether it is in the sample, with all of its rows. So between a row and
// the next of the same key, the sample has the same share of other keys as of all keys, and a
// filter with that share of the memory forgets as the whole one does, whatever the lags are (C.
// Waldspurger, N. Park, A. Garthwaite, I. Ahmad, Efficient MRC Construction with SHARDS, FAST
// 2015).

// A key's position between 0 and 2^64: positions below 2^64 times a rate make the sample of that
// rate.
inline std::uint64_t sampling_position(std::uint64_t hash) noexcept {
  return mix64(hash ^ 0xa0761d6478bd642fu);
}

// Rows of the sample, in the stream's order.
struct SampledRows {
  const std::uint64_t* hashes;
  const bool* repeated;  // is the row a repeat?
  std::size_t count;
  double rate;  // share of all keys

  std::size_t repeats;
  double distinct() const noexcept { return to_real(count - repeats); }
};

// Finds the repeats. `table` has `size` words, a power of two above `count`.
std::size_t find_repeats(const std::uint64_t* hashes, std::size_t count, std::uint64_t* table,
                         std::size_t size, bool* repeated) noexcept;

// A kind with an option that may serve better than its default, for ever or for a number of keys.
struct Recipe {
  Kind kind;
  bool is_for_keys;
  const char *option, *value;  // nullptr: none
};

constexpr unsigned kMaxRecipes = 48;

// Kinds that can be tried without more knowledge of the stream: no windows, no importance.
unsigned list_recipes(Recipe* recipes) noexcept;

// Derives parameters by a recipe. `requested` has memory and fpr; makes parameters even if they
// cannot keep fpr. False: the kind does not work so.
bool follow(const Recipe& recipe, const Definition& requested, std::uint64_t memory, double keys,
            Parameters& parameters) noexcept;

// A rate and its standard error; NaN: nothing to count.
struct Measured {
  double rate, error;
};

struct Forecast {
  Measured fpr, fnr;
};

// Sends the rows through an empty filter. Its error estimates the chance of the sample, from
// differences between parts of the keys.
class Trial {
 public:
  explicit Trial(Header* empty) noexcept : filter_(empty) {}

  void take(const SampledRows& rows, std::size_t from, std::size_t to) noexcept;
  Forecast forecast() const noexcept;

 private:
  static constexpr unsigned kParts = 32;
  struct Part {
    double new_rows, repeats, false_positives, false_negatives;
  };

  Header* filter_;
  Part parts_[kParts] = {};
};

}  // namespace streamfilter
