// Do the given options keep the given false-positive rate? Checks requests, not stored parameters,
// because another version may have had other formulas.
#pragma once

#include "core/base/status.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter {

// Is fpr_bound within fpr, if one is given?
bool keeps_promise(const Parameters& parameters) noexcept;

// The rate that a filter with these options should keep; 0: none, because they name other numbers
// of the kind and no fpr.
double promised_fpr(const Definition& asked) noexcept;

// Do given options contradict each other? `completed` is the result of `complete` for `asked`.
// Error: conflict; the hint names values that fit.
bool check_request(const Definition& asked, const Definition& completed, Problem& problem) noexcept;

// Are the parameters the best that could be derived for a request, but do not keep fpr? Then the
// request fails with this problem, unless it may break fpr.
bool check_promise(const Parameters& parameters, Problem& problem) noexcept;

// Parameters that would be derived now for these keys and fpr. Parameters do not tell given numbers
// from derived ones. False: neither was asked for, or nothing keeps them.
bool derive_again(const Parameters& parameters, Parameters& derived) noexcept;

}  // namespace streamfilter
