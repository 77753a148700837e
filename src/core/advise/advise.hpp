// Chooses a filter for a stream: every kind with the parameters that serve the stream best, by the
// kind's own predictions.
#pragma once

#include "core/kind/kind_registry.hpp"

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

}  // namespace streamfilter
