// The trigger functions of the extension.
#pragma once

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

// Those that judge rows which are inserted.
inline bool judges(TriggerKind kind) { return kind != TriggerKind::forget; }

// As the view streamfilter_triggers says it.
inline const char* name_of(TriggerKind kind) {
  return function_name(kind) + strlen("streamfilter_");
}

// Does the function make triggers of ours? It may bear another name in another schema.
bool find_kind(Oid function, TriggerKind* kind);

}  // namespace streamfilter::pg
