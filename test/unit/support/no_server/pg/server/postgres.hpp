// What files of the server side that need no server take from PostgreSQL's headers, for tests of
// theirs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

using int64 = std::int64_t;
using uint8 = std::uint8_t;
using uint32 = std::uint32_t;
using uint64 = std::uint64_t;
using Size = std::size_t;
using std::uintptr_t;

#include "port/pg_bitutils.h"

#define PG_UINT32_MAX UINT32_MAX
#define likely(x) __builtin_expect((x) != 0, 1)
#define unlikely(x) __builtin_expect((x) != 0, 0)
#define Min(a, b) std::min<std::size_t>(a, b)
#define Max(a, b) std::max(a, b)
#define TYPEALIGN(to, address) \
  ((reinterpret_cast<uintptr_t>(address) + (to)-1) & ~uintptr_t{(to)-1})
#define ereport(level, ...) throw std::bad_alloc()
