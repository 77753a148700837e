#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_trigger.h"
}

#include "core/kind/kind_registry.hpp"
#include "pg/trigger/forget_definition.hpp"

namespace streamfilter::pg {
namespace {

[[noreturn]] void raise_cannot_forget(const Trigger* trigger, Relation table,
                                      const FilterRelation* filter) {
  char kinds[256];
  list_kinds([](const FilterOps& ops) { return ops.erase != nullptr; }, kinds, sizeof kinds);
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" cannot forget single keys", filter->name),
          errdetail("Trigger \"%s\" fires for rows, and kind %s can forget all keys only. These "
                    "kinds can forget single ones: %s.",
                    trigger->tgname, find_ops(filter->definition.parameters.kind)->name, kinds),
          errhint("CREATE TRIGGER ... AFTER TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION "
                  "streamfilter_forget(...);",
                  quote_identifier(RelationGetRelationName(table))));
  pg_unreachable();
}

}  // namespace

void check_forget_event(const Trigger* trigger, Relation table) {
  const int16 type = trigger->tgtype;
  const bool rows = TRIGGER_FOR_ROW(type) && (TRIGGER_FOR_DELETE(type) || TRIGGER_FOR_UPDATE(type));
  const bool all = !TRIGGER_FOR_ROW(type) && TRIGGER_FOR_TRUNCATE(type) &&
                   !TRIGGER_FOR_DELETE(type) && !TRIGGER_FOR_UPDATE(type);
  if (TRIGGER_FOR_AFTER(type) && !TRIGGER_FOR_INSERT(type) && (rows || all)) return;
  ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
          errmsg("trigger \"%s\" of table \"%s\" must be AFTER DELETE OR UPDATE FOR EACH ROW, or "
                 "AFTER TRUNCATE, and nothing else",
                 trigger->tgname, RelationGetRelationName(table)),
          errdetail("streamfilter_forget makes a filter follow what happens to rows that exist."),
          errhint("CREATE TRIGGER ... AFTER DELETE OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION "
                  "streamfilter_forget(...);",
                  quote_identifier(RelationGetRelationName(table))));
}

TriggerPlan* plan_forgetting(const Trigger* trigger, Relation table, const FilterRelation* filter) {
  if (!TRIGGER_FOR_ROW(trigger->tgtype)) return nullptr;
  if (find_ops(filter->definition.parameters.kind)->erase == nullptr)
    raise_cannot_forget(trigger, table, filter);
  return make_plan(trigger, TriggerKind::forget, table, filter);
}

}  // namespace streamfilter::pg
