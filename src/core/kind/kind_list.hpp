// The table of kinds: one line each, in the order of their numbers (Kind in parameters.hpp).
#pragma once

#include "core/kind/filter_kind.hpp"

namespace streamfilter {

extern const FilterOps bloom_ops;   // bloom.cpp
extern const FilterOps sbf_ops;     // stable_bloom.cpp
extern const FilterOps rsbf_ops;    // reservoir_bloom.cpp
extern const FilterOps bsbf_ops;    // biased_bloom.cpp
extern const FilterOps bsbfsd_ops;  // biased_bloom.cpp
extern const FilterOps rlbsbf_ops;  // biased_bloom.cpp
extern const FilterOps sqf_ops;     // quotient_filter.cpp
extern const FilterOps dsqf_ops;    // dynamic_quotient_filter.cpp
extern const FilterOps ibf2c_ops;   // importance_bloom.cpp
extern const FilterOps ibfmc_ops;   // importance_bloom.cpp
extern const FilterOps ibfh_ops;    // importance_bloom.cpp
extern const FilterOps timer_ops;   // timing_bloom.cpp
extern const FilterOps lru_ops;     // lru_buffer.cpp
extern const FilterOps fplru_ops;   // lru_buffer.cpp
extern const FilterOps clq_ops;     // cache_line_queue.cpp
extern const FilterOps ell_ops;     // exa_log_log.cpp
extern const FilterOps vqf_ops;     // vector_quotient.cpp

// clang-format off
inline constexpr const FilterOps* kKinds[] = {
    &bloom_ops,
    &sbf_ops,
    &rsbf_ops,
    &bsbf_ops,
    &bsbfsd_ops,
    &rlbsbf_ops,
    &sqf_ops,
    &dsqf_ops,
    &ibf2c_ops,
    &ibfmc_ops,
    &ibfh_ops,
    &timer_ops,
    &lru_ops,
    &fplru_ops,
    &clq_ops,
    &ell_ops,
    &vqf_ops,
};
// clang-format on

}  // namespace streamfilter
