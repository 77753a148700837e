// The extension's trigger functions.
#pragma once

extern "C" {
#include "commands/trigger.h"
#include "utils/rel.h"
}

#include "pg/key/trusted_code.hpp"

namespace streamfilter::pg {

enum class TriggerKind : uint8 { discard, mark, divert, forget };

inline const char* function_name(TriggerKind kind) {
  switch (kind) {
    case TriggerKind::discard: return "streamfilter_discard";
    case TriggerKind::mark: return "streamfilter_mark";
    case TriggerKind::divert: return "streamfilter_divert";
    case TriggerKind::forget: break;
  }
  return "streamfilter_forget";
}

// Does the function judge inserted rows?
inline bool judges(TriggerKind kind) { return kind != TriggerKind::forget; }

// The name as in view streamfilter_triggers.
inline const char* name_of(TriggerKind kind) {
  return function_name(kind) + strlen("streamfilter_");
}

// Is this one of our trigger functions? It may have another name in another schema.
inline bool find_kind(Oid function, TriggerKind* kind) {
  for (*kind = TriggerKind::discard; *kind <= TriggerKind::forget;
       *kind = static_cast<TriggerKind>(static_cast<int>(*kind) + 1))
    if (is_own_function(function, function_name(*kind))) return true;
  return false;
}

// Calls visit(trigger, kind) for a table's triggers that are ours.
template <typename Visit>
void visit_own_triggers(Relation table, Visit&& visit) {
  // A copy: catalog look-ups may rebuild the cache.
  const TriggerDesc* triggers = CopyTriggerDesc(table->trigdesc);
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i)
    if (TriggerKind kind; find_kind(triggers->triggers[i].tgfoid, &kind))
      visit(&triggers->triggers[i], kind);
}

}  // namespace streamfilter::pg
