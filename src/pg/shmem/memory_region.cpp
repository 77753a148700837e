#include "pg/server/postgres.hpp"

#include <initializer_list>

#include "pg/shmem/memory_region.hpp"

namespace streamfilter::pg {
namespace {

// The gap behind a piece, or before the first one.
struct Gap {
  Place* before;
  Place* after;
  char* start;
  uint64 size;
};

Gap gap_behind(const Region* region, Place* before) {
  Place* after = before != nullptr ? before->after : region->first;
  char* start = before != nullptr ? before->start + before->size : region->base;
  const char* end = after != nullptr ? after->start : region->base + region->size;
  return {before, after, start, static_cast<uint64>(end - start)};
}

// The full part at the base may have grown.
void skip_full(Region* region) {
  for (;;) {
    const Gap gap = gap_behind(region, region->full_until);
    if (gap.size > 0 || gap.after == nullptr) return;
    region->full_until = gap.after;
  }
}

// Makes its neighbours point at the place.
void enlist(Region* region, Place* place) {
  (place->before != nullptr ? place->before->after : region->first) = place;
  if (place->after != nullptr) place->after->before = place;
}

}  // namespace

bool take_place(Region* region, Place* place, uint64 size) {
  size = TYPEALIGN64(region->unit, size);
  Gap gap = gap_behind(region, region->full_until);
  while (gap.size < size && gap.after != nullptr) gap = gap_behind(region, gap.after);
  if (gap.size < size) return false;
  *place = {gap.start, size, gap.start >= region->new_from, gap.before, gap.after};
  region->new_from = Max(region->new_from, gap.start + size);
  enlist(region, place);
  region->in_use += size;
  skip_full(region);
  return true;
}

void free_place(Region* region, Place* place) {
  (place->before != nullptr ? place->before->after : region->first) = place->after;
  if (place->after != nullptr) place->after->before = place->before;
  if (region->full_until != nullptr && place->start <= region->full_until->start)
    region->full_until = place->before;
  region->in_use -= place->size;
  *place = {};
}

void shrink_place(Region* region, Place* place, uint64 size) {
  size = TYPEALIGN64(region->unit, size);
  region->in_use -= place->size - size;
  place->size = size;
  if (region->full_until != nullptr && place->start < region->full_until->start)
    region->full_until = place;
}

void exchange_places(Region* of_one, Place* one, Region* of_other, Place* other) {
  const auto now = [one, other](Place* was) {
    return was == one ? other : was == other ? one : was;
  };
  const Place former = *one;
  *one = *other;
  *other = former;
  of_one->full_until = now(of_one->full_until);
  if (of_other != of_one) of_other->full_until = now(of_other->full_until);
  for (Place* place : {one, other}) {
    place->before = now(place->before);
    place->after = now(place->after);
  }
  enlist(of_other, one);
  enlist(of_one, other);
}

uint64 largest_gap(const Region* region) {
  uint64 largest = 0;
  Gap gap = gap_behind(region, region->full_until);
  for (; gap.after != nullptr; gap = gap_behind(region, gap.after))
    largest = Max(largest, gap.size);
  return Max(largest, gap.size);
}

}  // namespace streamfilter::pg
