// What is wrong with a trigger is said when it is created, not only at the first row.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
}

#include <initializer_list>

#include "pg/catalog/own_function.hpp"
#include "pg/handle/hierarchy.hpp"
#include "pg/trigger/discard_trigger.hpp"
#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {
namespace {

// Is the function one of ours? It may bear another name in another schema.
bool find_kind(Oid function, TriggerKind* kind) {
  for (const TriggerKind candidate : {TriggerKind::discard, TriggerKind::mark})
    if (is_own_function(function, function_name(candidate))) {
      *kind = candidate;
      return true;
    }
  return false;
}

const Trigger* find_trigger(const TriggerDesc* triggers, const char* name) {
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i)
    if (strcmp(triggers->triggers[i].tgname, name) == 0) return &triggers->triggers[i];
  return nullptr;
}

// Partitions have triggers of their own, too.
void check_is_last_everywhere(const Trigger* trigger, Relation table) {
  check_is_last(trigger, table);
  if (table->rd_rel->relkind != RELKIND_PARTITIONED_TABLE) return;
  List* tables = find_all_inheritors(RelationGetRelid(table), AccessShareLock, nullptr);
  for (int i = 1; i < list_length(tables); ++i) {
    Relation partition = relation_open(list_nth_oid(tables, i), NoLock);
    check_is_last(trigger, partition);
    relation_close(partition, NoLock);
  }
}

void check_trigger(const Trigger* trigger, Relation table) {
  TriggerKind kind;
  if (!find_kind(trigger->tgfoid, &kind)) return;
  const int16 type = trigger->tgtype;
  if (!TRIGGER_FOR_ROW(type) || !TRIGGER_FOR_BEFORE(type) || !TRIGGER_FOR_INSERT(type) ||
      TRIGGER_FOR_UPDATE(type) || TRIGGER_FOR_DELETE(type))
    raise_wrong_event(trigger, kind, table);
  const TriggerOrigin origin = find_origin(trigger, table);
  check_is_last_everywhere(trigger, table);
  const Oid relid = lock_filter(trigger, kind, &origin, AccessShareLock, WARNING);
  const FilterRelation* filter = load_filter_relation(relid);
  make_plan(trigger, kind, table, filter);
}

}  // namespace

void check_created_trigger(const CreateTrigStmt* statement) {
  const Oid relid = RangeVarGetRelid(statement->relation, NoLock, true);
  if (!OidIsValid(relid)) return;
  Relation table = relation_open(relid, AccessShareLock);
  // A copy: the cache may be rebuilt while we look at catalogs.
  const TriggerDesc* triggers = CopyTriggerDesc(table->trigdesc);
  if (const Trigger* trigger = find_trigger(triggers, statement->trigname))
    check_trigger(trigger, table);
  relation_close(table, NoLock);
}

}  // namespace streamfilter::pg
