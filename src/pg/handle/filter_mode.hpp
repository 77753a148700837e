// Which mode counts for the rows that a filter judges: its option, or a setting of the session.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Makes settings that change reach the filters that are in use.
void init_filter_modes();

// Sets `mode` and `mode_overridden` of the filter. For use_filter.
void resolve_mode(FilterHandle* filter, bool judges);

[[noreturn]] void raise_mode_denied(const FilterHandle* filter, Oid table_owner);
bool may_override_mode(const FilterHandle* filter, Oid table_owner);

// Raises 42501 if whoever has set streamfilter.mode to something else than the filter's mode must
// not decide on its rows. Of a trigger, the owner of the table may, too; InvalidOid: there is none.
inline void check_mode(const FilterHandle* filter, Oid table_owner) {
  if (unlikely(filter->mode_overridden && !may_override_mode(filter, table_owner)))
    raise_mode_denied(filter, table_owner);
}

}  // namespace streamfilter::pg
