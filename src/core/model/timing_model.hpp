// The formulas of "One is Enough: Distributed Filtering for Duplicate Elimination" (Koloniari,
// Ntarmos, Pitoura, Souravlias, CIKM 2011), §4 and §5: Bloom filters over sliding windows, equal
// timers, and filters that grow.
#pragma once

#include "core/format/parameters.hpp"

namespace streamfilter::timing_model {

// Eq. 1: the false-positive rate of n live keys in m cells.
double rate(double k, double n, double m) noexcept;

// How many of n new keys are accepted, which those are not that meet a false positive. They set
// nothing, so m cells are as after n keys either way: where accepted keys are counted, as §5 does,
// Eq. 1 needs the n that they stand for, `keys_for`; infinity if there is none.
double accepted(double k, double n, double m) noexcept;
double keys_for(double k, double accepted, double m) noexcept;

// The whole number of hash functions with the lowest rate, at most 16.
std::uint64_t best_k(double n, double m) noexcept;

// §4, equal timers: the false-negative rate when at least `equal` of a key's k timers must be
// equal: each has been set again by a later key with probability `overwritten`.
double equal_timers_fnr(unsigned k, unsigned equal, double overwritten) noexcept;

// §5: the rate of j filters asked together, each of rate p; and the rate that each may have.
double rate_of_filters(double p, double j) noexcept;
double share_of_rate(double fpr, double j) noexcept;

// The rate of one filter, if `probes` of a key must all be found in one of their j filters.
double rate_of_one(double fpr, double probes, double j) noexcept;

// §5: the k of j filters that grow. Of one cell a probe, the filters of a slice are together as one
// with the cells of all.
std::uint64_t growing_k(double fpr, Slicing slicing, double j) noexcept;

// §5: how many of m timers run, and how many keys were accepted, when a filter reaches rate p. The
// paper takes all keys for accepted ones.
double density_limit(double p, double k, double m) noexcept;
double cardinality_limit(double p, double k, double m) noexcept;

// The limit of each of j filters, at least 1, so that keys of `probes` keep fpr in all of them.
std::uint64_t growing_limit(bool by_density, double fpr, double j, double probes, double k,
                            double m) noexcept;

}  // namespace streamfilter::timing_model
