#include "pg/server/postgres.hpp"

#include <initializer_list>

#include "pg/catalog/own_function.hpp"
#include "pg/trigger/trigger_kind.hpp"

namespace streamfilter::pg {

bool find_kind(Oid function, TriggerKind* kind) {
  for (const TriggerKind candidate :
       {TriggerKind::discard, TriggerKind::mark, TriggerKind::divert, TriggerKind::forget})
    if (is_own_function(function, function_name(candidate))) {
      *kind = candidate;
      return true;
    }
  return false;
}

}  // namespace streamfilter::pg
