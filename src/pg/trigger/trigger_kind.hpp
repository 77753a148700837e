// The extension's trigger functions.
#pragma once

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

}  // namespace streamfilter::pg
