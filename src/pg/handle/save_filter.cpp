#include "pg/server/postgres.hpp"

#include "pg/handle/filter_keys.hpp"
#include "pg/handle/save_filter.hpp"
#include "pg/storage/persistence.hpp"

namespace streamfilter::pg {

void save_filter(FilterHandle* filter, bool own_changes) {
  SlotSave save;
  if (!begin_save(&save, filter->slot, filter->relation->name)) return;
  Header* state = own_changes ? copy_filter(filter) : nullptr;
  finish_save(&save, state);
  if (state != nullptr) pfree(state);
}

}  // namespace streamfilter::pg
