// The table of kinds: one line each.
#pragma once

#include "streamfilter/core/filter_ops.hpp"

namespace streamfilter {

extern const FilterOps bloom_ops;  // bloom.cpp
extern const FilterOps sbf_ops;    // stable_bloom.cpp

inline constexpr const FilterOps* kKinds[] = {
    &bloom_ops,
    &sbf_ops,
};

}  // namespace streamfilter
