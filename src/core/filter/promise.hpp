// Is the false-positive rate that was asked for kept by what was asked for beside it? Requests are
// held to it, not what is stored: another version may have had other formulas.
#pragma once

#include "core/base/status.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter {

// Is fpr_bound within fpr, if there is one?
bool keeps_promise(const Parameters& parameters) noexcept;

// The rate that a filter of these options is to keep; 0: none, for they name other numbers of its
// kind and no fpr.
double promised_fpr(const Definition& asked) noexcept;

// Do options that were given contradict each other? `completed` is what `complete` has made of
// `asked`. Error: conflict; the hint names values that fit.
bool check_request(const Definition& asked, const Definition& completed, Problem& problem) noexcept;

// Are the parameters the best that could be derived for a request, but do not keep fpr? Then the
// problem is what the request gets, unless it may break fpr.
bool check_promise(const Parameters& parameters, Problem& problem) noexcept;

// What would be derived for such keys and fpr now. Parameters do not tell numbers that were given
// from those that were derived. False: neither was asked for, or nothing keeps them.
bool derive_again(const Parameters& parameters, Parameters& derived) noexcept;

}  // namespace streamfilter
