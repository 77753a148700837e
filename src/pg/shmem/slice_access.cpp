#include "pg/server/postgres.hpp"

#include "pg/shmem/slice_access.hpp"

namespace streamfilter::pg {

bool test_in_slices(const FilterSlot* slot, const Header* header, const Element& element) {
  for (unsigned i = 0; i < places(header->parameters); ++i) {
    const Place place = place_of(header->parameters, element.hash, i);
    LWLock* lock = slice_lock(slot, place.slice);
    LWLockAcquire(lock, LW_SHARED);
    const bool seen = test_place(header, element, place);
    LWLockRelease(lock);
    if (!seen) return false;
  }
  return true;
}

void insert_new_in_slices(const FilterSlot* slot, Header* header, const Element& element) {
  const Parameters& parameters = header->parameters;
  const bool anyway = puts_anyway(parameters), by_place = anyway || parameters.k1 > 0;
  const bool seen = by_place && !anyway && test_in_slices(slot, header, element);
  for (unsigned i = 0; i < places(parameters); ++i) {
    const Place place = place_of(parameters, element.hash, i);
    LWLock* lock = slice_lock(slot, place.slice);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    if (!by_place)
      insert(header, element);
    else if (!seen)
      put_in_place(header, element, place);
    if (by_place && i == 0) count_arrival(header, place.slice, seen);
    LWLockRelease(lock);
    if (seen) break;
  }
}

}  // namespace streamfilter::pg
