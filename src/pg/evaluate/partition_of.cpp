// streamfilter_slice_of: cutting a stream into parts by key.
#include "pg/server/postgres.hpp"

#include "core/base/partition.hpp"
#include "pg/value/value.hpp"

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_slice_of(key "any", n int) → int: the part 0..n-1 of a stream that a key belongs to;
// ROW(…) for several columns. NULLs are equal to each other, as under DISTINCT. Raises 22023 unless
// n is positive.
SF_FUNCTION(streamfilter_slice_of) {
  if (PG_ARGISNULL(1)) PG_RETURN_NULL();
  const int32 n = PG_GETARG_INT32(1);
  if (n < 1)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("the number of slices must be at least 1, not %d", n));
  TypeHasher* hasher = key_hasher(fcinfo, 0);
  const KeyRule rule{Nulls::not_distinct, kPartitionSeed, false};
  const bool isnull = PG_ARGISNULL(0);
  uint64 hash = 0;
  if (isnull) {
    const Datum nothing = 0;
    hash_key(&hasher, &nothing, &isnull, 1, rule, &hash);
  } else {
    hash_key_value(hasher, PG_GETARG_DATUM(0), rule, &hash);
  }
  PG_RETURN_INT32(static_cast<int32>(partition_of(hash, static_cast<uint32>(n))));
}
