#include "pg/server/postgres.hpp"

#include "pg/shmem/slice_access.hpp"

namespace streamfilter::pg {

bool test_in_slices(const FilterSlot* slot, const Header* header, const Element& element) {
  for (unsigned i = 0; i < probes(header->parameters); ++i) {
    const KeyProbe probe = probe_of(header->parameters, element.hash, i);
    LWLock* lock = slice_lock(slot, probe.slice);
    LWLockAcquire(lock, LW_SHARED);
    const bool seen = test_probe(header, element, probe);
    LWLockRelease(lock);
    if (!seen) return false;
  }
  return true;
}

void insert_new_in_slices(const FilterSlot* slot, Header* header, const Element& element) {
  const Parameters& parameters = header->parameters;
  const bool anyway = inserts_unconditionally(parameters), by_probe = anyway || parameters.k1 > 0;
  const bool seen = by_probe && !anyway && test_in_slices(slot, header, element);
  for (unsigned i = 0; i < probes(parameters); ++i) {
    const KeyProbe probe = probe_of(parameters, element.hash, i);
    LWLock* lock = slice_lock(slot, probe.slice);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    if (!by_probe)
      insert(header, element);
    else if (!seen)
      insert_probe(header, element, probe);
    if (by_probe && i == 0) count_insertion(header, probe.slice, seen);
    LWLockRelease(lock);
    if (seen) break;
  }
}

}  // namespace streamfilter::pg
