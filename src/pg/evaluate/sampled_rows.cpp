#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/spi.h"
}

#include <cmath>

#include "pg/evaluate/sampled_rows.hpp"
#include "pg/key/key_hash.hpp"
#include "pg/server/spi_cursor.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kBatch = 1024;
constexpr Size kWanted = 1 << 18;  // rows: more only if the sample cannot be smaller
constexpr Size kMost = 1 << 22;

class Sampler {
 public:
  explicit Sampler(double least)
      : least_(least), hashes_(static_cast<uint64*>(palloc(sizeof(uint64) * kWanted))) {}

  // False: there is no room.
  bool add(uint64 hash) {
    if (!has(hash)) return true;
    if (count_ == room_ && !make_room()) return false;
    if (has(hash)) hashes_[count_++] = hash;
    return true;
  }

  SampledRows rows() {
    Size size = 2;
    while (size < 2 * count_) size *= 2;
    auto* table = static_cast<uint64*>(palloc_extended(sizeof(uint64) * size, MCXT_ALLOC_HUGE));
    auto* repeated = static_cast<bool*>(palloc(count_ + 1));
    const Size repeats = find_repeats(hashes_, count_, table, size, repeated);
    pfree(table);
    return {hashes_, repeated, count_, std::ldexp(1, -halvings_), repeats};
  }

 private:
  bool has(uint64 hash) const {
    return halvings_ == 0 || sampling_position(hash) >> (64 - halvings_) == 0;
  }

  bool make_room() {
    while (count_ == room_ && std::ldexp(1, -halvings_ - 1) >= least_) {
      ++halvings_;
      Size kept = 0;
      for (Size i = 0; i < count_; ++i)
        if (has(hashes_[i])) hashes_[kept++] = hashes_[i];
      count_ = kept;
    }
    if (count_ < room_) return true;
    if (room_ == kMost) return false;
    room_ *= 2;
    hashes_ = static_cast<uint64*>(repalloc_huge(hashes_, sizeof(uint64) * room_));
    return true;
  }

  double least_;
  uint64* hashes_;
  Size count_ = 0, room_ = kWanted;
  int halvings_ = 0;
};

TypeHasher* hasher_of_key(TupleDesc source, const char* function) {
  if (source->natts != 1)
    ereport(ERROR, (errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
                    errmsg("the query of %s must have one column, not %d", function, source->natts),
                    errhint("It is the key: ROW(a, b) for several columns.")));
  const FormData_pg_attribute* key = TupleDescAttr(source, 0);
  return make_type_hasher(key->atttypid, key->attcollation, "the key of the query");
}

}  // namespace

Sample sample_rows(const char* query, double least, const char* function, Progress* progress) {
  Portal portal = open_query(query, function);
  TypeHasher* hasher = hasher_of_key(portal->tupDesc, function);
  Sampler sampler(least);
  Sample sample{};
  MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext, "streamfilter sampled batch",
                                              ALLOCSET_DEFAULT_SIZES);
  progress->begin("reading rows", expected_rows(portal), "rows");
  bool has_room = true;
  while (has_room) {
    SPI_cursor_fetch(portal, true, kBatch);
    if (SPI_processed == 0) break;
    MemoryContext caller = MemoryContextSwitchTo(batch);
    for (uint64 i = 0; i < SPI_processed && has_room; ++i) {
      bool isnull;
      uint64 hash;
      const Datum key = heap_getattr(SPI_tuptable->vals[i], 1, portal->tupDesc, &isnull);
      if (isnull || !hash_key_value(hasher, key, KeyRule{}, &hash)) continue;
      MemoryContextSwitchTo(caller);
      has_room = sampler.add(hash);
      MemoryContextSwitchTo(batch);
      sample.read += has_room;
    }
    MemoryContextSwitchTo(caller);
    MemoryContextReset(batch);
    progress->add(SPI_processed);
    SPI_freetuptable(SPI_tuptable);
  }
  SPI_cursor_close(portal);
  sample.is_complete = has_room;
  sample.rows = sampler.rows();
  return sample;
}

}  // namespace streamfilter::pg
