#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/objectaddress.h"
#include "catalog/pg_depend.h"
#include "storage/lock.h"
}

#include <algorithm>

#include "pg/binding/trigger_binding.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/server/citus.hpp"
#include "pg/server/fault_points.hpp"

namespace streamfilter::pg {
namespace {

TriggerRow row_of(HeapTuple tuple) {
  const auto* form = reinterpret_cast<Form_pg_trigger>(GETSTRUCT(tuple));
  return {form->oid,
          form->tgparentid,
          form->tgrelid,
          form->tgfoid,
          {form->tgconstrrelid, form->tgconstrindid},
          form->tgtype,
          is_citus_loaded() ? shard_in_name(NameStr(form->tgname)) : 0};
}

bool is_on_shard(const TriggerRow* row) {
  const char* table = row->shard != 0 ? get_rel_name(row->table) : nullptr;
  return table != nullptr && shard_in_name(table) == row->shard;
}

// Calls visit(tuple, columns) for the trigger's row; false: there is none.
template <typename Visit>
bool visit_trigger(Oid trigger, Visit&& visit) {
  bool found = false;
  scan_catalog<FormData_pg_trigger>(
      TriggerRelationId, TriggerOidIndexId, {{Anum_pg_trigger_oid, trigger}},
      [&](const FormData_pg_trigger&, HeapTuple tuple, TupleDesc columns) {
        visit(tuple, columns);
        found = true;
      });
  return found;
}

struct NewValue {
  int column;
  Datum value;
};

void write_values(Relation catalog, HeapTuple tuple, std::initializer_list<NewValue> given) {
  int columns[Natts_pg_trigger], count = 0;
  Datum values[Natts_pg_trigger];
  bool nulls[Natts_pg_trigger] = {};
  for (const NewValue& value : given) {
    columns[count] = value.column;
    values[count++] = value.value;
  }
  HeapTuple changed =
      heap_modify_tuple_by_cols(tuple, RelationGetDescr(catalog), count, columns, values, nulls);
  CatalogTupleUpdate(catalog, &tuple->t_self, changed);
  CacheInvalidateRelcacheByRelid(row_of(tuple).table);
}

// Leading arguments of a trigger: the names of the relations that it is bound to.
struct Names {
  int count;
  const char* names[2];
};

Names names_of(TriggerBinding binding) {
  if (!OidIsValid(binding.target)) return {1, {qualified_name(binding.filter), nullptr}};
  return {2, {qualified_name(binding.filter), qualified_name(binding.target)}};
}

// Arguments as in pg_trigger, each ended by a zero byte, with new leading ones.
bytea* with_names(const bytea* arguments, const Names& names) {
  const char* rest = VARDATA_ANY(arguments);
  const char* end = rest + VARSIZE_ANY_EXHDR(arguments);
  TextBuffer text;
  appendStringInfoSpaces(&text, VARHDRSZ);
  for (int i = 0; i < names.count; ++i) {
    appendBinaryStringInfo(&text, names.names[i], static_cast<int>(strlen(names.names[i])) + 1);
    if (rest < end) rest += Min(static_cast<ptrdiff_t>(strnlen(rest, end - rest)) + 1, end - rest);
  }
  appendBinaryStringInfo(&text, rest, static_cast<int>(end - rest));
  auto* result = reinterpret_cast<bytea*>(text.data);
  SET_VARSIZE(result, text.len);
  return result;
}

const bytea* arguments_of(HeapTuple tuple, TupleDesc columns) {
  bool isnull;
  return DatumGetByteaPP(heap_getattr(tuple, Anum_pg_trigger_tgargs, columns, &isnull));
}

// Writes the names into the trigger, and the OIDs unless the filter is InvalidOid.
void write_binding(Relation catalog, Oid trigger, const Names& names, TriggerBinding binding) {
  visit_trigger(trigger, [&](HeapTuple tuple, TupleDesc columns) {
    const NewValue arguments = {Anum_pg_trigger_tgargs,
                                PointerGetDatum(with_names(arguments_of(tuple, columns), names))};
    if (OidIsValid(binding.filter))
      write_values(catalog, tuple,
                   {arguments,
                    {Anum_pg_trigger_tgconstrrelid, ObjectIdGetDatum(binding.filter)},
                    {Anum_pg_trigger_tgconstrindid, ObjectIdGetDatum(binding.target)}});
    else
      write_values(catalog, tuple, {arguments});
  });
}

// Are these its leading arguments?
bool has_names(Oid trigger, const Names& names) {
  bool same = false;
  visit_trigger(trigger, [&](HeapTuple tuple, TupleDesc columns) {
    const bytea* arguments = arguments_of(tuple, columns);
    const bytea* wanted = with_names(arguments, names);
    same = VARSIZE_ANY_EXHDR(arguments) == VARSIZE_ANY_EXHDR(wanted) &&
           memcmp(VARDATA_ANY(arguments), VARDATA_ANY(wanted), VARSIZE_ANY_EXHDR(wanted)) == 0;
  });
  return same;
}

// Citus refuses triggers of its tables that depend on objects it has not distributed. It does not
// check this dependency type, which lets DROP pass; check_droppable makes up for that.
char dependency_type() { return is_citus_loaded() ? DEPENDENCY_AUTO : DEPENDENCY_NORMAL; }

// Triggers with one of these dependency types on an object.
List* find_dependent_triggers(Oid class_id, Oid object, std::initializer_list<char> types) {
  List* triggers = NIL;
  scan_catalog<FormData_pg_depend>(
      DependRelationId, DependReferenceIndexId,
      {{Anum_pg_depend_refclassid, class_id}, {Anum_pg_depend_refobjid, object}},
      [&](const FormData_pg_depend& row, HeapTuple, TupleDesc) {
        if (row.classid == TriggerRelationId &&
            std::find(types.begin(), types.end(), row.deptype) != types.end())
          triggers = lappend_oid(triggers, row.objid);
      });
  return triggers;
}

void write_names_into_clones(Relation catalog, Oid trigger, const Names& names) {
  check_stack_depth();
  for (const Oid dependent :
       each_oid(find_dependent_triggers(TriggerRelationId, trigger, {DEPENDENCY_PARTITION_PRI}))) {
    TriggerRow clone;
    if (!read_trigger_row(dependent, &clone)) continue;
    LockRelationOid(clone.table, ShareUpdateExclusiveLock);
    write_binding(catalog, clone.trigger, names, {});
    write_names_into_clones(catalog, clone.trigger, names);
  }
}

void write_enabled(Relation catalog, Oid trigger, char enabled) {
  check_stack_depth();
  visit_trigger(trigger, [&](HeapTuple tuple, TupleDesc) {
    write_values(catalog, tuple, {{Anum_pg_trigger_tgenabled, CharGetDatum(enabled)}});
  });
  for (const Oid dependent :
       each_oid(find_dependent_triggers(TriggerRelationId, trigger, {DEPENDENCY_PARTITION_PRI})))
    write_enabled(catalog, dependent, enabled);
}

void forget_dependency(Oid trigger, Oid relation) {
  for (const char type : {DEPENDENCY_NORMAL, DEPENDENCY_AUTO})
    deleteDependencyRecordsForSpecific(TriggerRelationId, trigger, type, RelationRelationId,
                                       relation);
}

void depend_trigger_on(Oid trigger, Oid relation) {
  const ObjectAddress self = {TriggerRelationId, trigger, 0};
  const ObjectAddress target = {RelationRelationId, relation, 0};
  forget_dependency(trigger, relation);
  recordDependencyOn(&self, &target, static_cast<DependencyType>(dependency_type()));
}

void record_dependencies(Oid trigger, TriggerBinding binding) {
  depend_trigger_on(trigger, binding.filter);
  if (OidIsValid(binding.target)) depend_trigger_on(trigger, binding.target);
}

TriggerRow* copy_trigger_row(const TriggerRow& row) {
  auto* copy = allocate<TriggerRow>();
  *copy = row;
  return copy;
}

int by_age(const ListCell* left, const ListCell* right) {
  const Oid a = static_cast<const TriggerRow*>(lfirst(left))->trigger;
  const Oid b = static_cast<const TriggerRow*>(lfirst(right))->trigger;
  return a < b ? -1 : a > b;
}

}  // namespace

bool lock_trigger_if_free(Oid trigger) {
  LOCKTAG tag;
  SET_LOCKTAG_OBJECT(tag, MyDatabaseId, TriggerRelationId, trigger, 0);
  return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

bool read_trigger_row(Oid trigger, TriggerRow* row) {
  return visit_trigger(trigger, [row](HeapTuple tuple, TupleDesc) { *row = row_of(tuple); });
}

Oid filter_of_trigger(const TriggerRow* row) {
  TriggerRow at = *row;
  while (OidIsValid(at.parent) && read_trigger_row(at.parent, &at)) continue;
  return at.binding.filter;
}

void bind_trigger(Oid trigger, TriggerBinding binding) {
  const Names names = names_of(binding);
  Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
  write_binding(catalog, trigger, names, binding);
  write_names_into_clones(catalog, trigger, names);
  table_close(catalog, RowExclusiveLock);
  record_dependencies(trigger, binding);
  CommandCounterIncrement();
}

void write_arguments(Oid trigger, const List* arguments) {
  TextBuffer text;
  appendStringInfoSpaces(&text, VARHDRSZ);
  for (const auto* name : each<char>(arguments))
    appendBinaryStringInfo(&text, name, static_cast<int>(strlen(name)) + 1);
  SET_VARSIZE(text.data, text.len);
  Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
  visit_trigger(trigger, [&](HeapTuple tuple, TupleDesc) {
    const auto count = static_cast<int16>(list_length(arguments));
    write_values(catalog, tuple,
                 {{Anum_pg_trigger_tgnargs, Int16GetDatum(count)},
                  {Anum_pg_trigger_tgargs, PointerGetDatum(text.data)}});
  });
  table_close(catalog, RowExclusiveLock);
  CommandCounterIncrement();
}

void enable_always(Oid trigger) {
  Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
  write_enabled(catalog, trigger, TRIGGER_FIRES_ALWAYS);
  table_close(catalog, RowExclusiveLock);
  CommandCounterIncrement();
}

TriggerBinding bind_when_fired(Oid trigger, Oid table, TriggerBinding binding) {
  if (XactReadOnly || IsInParallelMode()) return binding;
  // The first lock keeps others from altering the trigger, the second from binding it. Neither
  // waits.
  if (!ConditionalLockRelationOid(table, RowExclusiveLock) || !lock_trigger_if_free(trigger))
    return binding;
  TriggerRow row;
  if (!read_trigger_row(trigger, &row)) return binding;
  if (OidIsValid(row.binding.filter)) return row.binding;
  // The names in its clones are updated later.
  Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
  write_binding(catalog, trigger, names_of(binding), binding);
  table_close(catalog, RowExclusiveLock);
  record_dependencies(trigger, binding);
  CommandCounterIncrement();  // the same statement may fire the trigger for another partition
  return binding;
}

List* find_triggers() {
  List* found = NIL;
  const auto look_at = [&](const FormData_pg_trigger&, HeapTuple tuple, TupleDesc) {
    const TriggerRow row = row_of(tuple);
    TriggerKind kind;
    if (!OidIsValid(row.parent) && find_kind(row.function, &kind))
      found = lappend(found, copy_trigger_row(row));
  };
  scan_catalog<FormData_pg_trigger>(TriggerRelationId, look_at);
  return found;
}

List* find_triggers_using(Oid relation) {
  List* found = NIL;
  for (const Oid dependent : each_oid(find_dependent_triggers(
           RelationRelationId, relation, {DEPENDENCY_NORMAL, DEPENDENCY_AUTO}))) {
    TriggerRow row;
    TriggerKind kind;
    if (read_trigger_row(dependent, &row) && find_kind(row.function, &kind) &&
        (row.binding.filter == relation || row.binding.target == relation))
      found = lappend(found, copy_trigger_row(row));
  }
  list_sort(found, by_age);
  return found;
}

List* find_diverting_triggers(Oid target) {
  List* found = NIL;
  for (auto* row : each<TriggerRow>(find_triggers_using(target)))
    if (row->binding.target == target) found = lappend(found, row);
  return found;
}

bool is_used_by_tables(Oid relation) {
  for (const auto* row : each<TriggerRow>(find_triggers_using(relation)))
    if (!is_on_shard(row)) return true;
  return false;
}

void check_droppable(Oid relation, const List* dropped) {
  if (!is_used_by_tables(relation)) return;
  for (const Oid clone :
       each_oid(find_dependent_triggers(RelationRelationId, relation, {DEPENDENCY_AUTO}))) {
    TriggerRow row;
    TriggerKind kind;
    if (!read_trigger_row(clone, &row) || !find_kind(row.function, &kind) ||
        list_member_oid(dropped, row.table))
      continue;
    const ObjectAddress trigger = {TriggerRelationId, row.trigger, 0};
    const ObjectAddress target = {RelationRelationId, relation, 0};
    stop_at(FaultPoint::lookup);
    const char* what = getObjectDescription(&target, true);
    const char* needs_it = getObjectDescription(&trigger, true);
    if (what == nullptr || needs_it == nullptr) continue;  // dropped just now
    ereport(ERROR, errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
            errmsg("cannot drop %s because other objects depend on it", what),
            errdetail("%s depends on %s", needs_it, what),
            errhint("Use DROP ... CASCADE to drop the dependent objects too."));
  }
}

void unbind_trigger(const TriggerRow* row) {
  // Another session drops it, and with it what would be deleted here.
  if (!lock_trigger_if_free(row->trigger)) return;
  forget_dependency(row->trigger, row->binding.filter);
  forget_dependency(row->trigger, row->binding.target);
  // Where another session has its table, its OIDs stay, and mean nothing.
  if (ConditionalLockRelationOid(row->table, ShareUpdateExclusiveLock)) {
    Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
    visit_trigger(row->trigger, [&](HeapTuple tuple, TupleDesc) {
      write_values(catalog, tuple,
                   {{Anum_pg_trigger_tgconstrrelid, ObjectIdGetDatum(InvalidOid)},
                    {Anum_pg_trigger_tgconstrindid, ObjectIdGetDatum(InvalidOid)}});
    });
    table_close(catalog, RowExclusiveLock);
  }
  CommandCounterIncrement();
}

bool has_former_names(const TriggerRow* row) {
  const TriggerBinding& binding = row->binding;
  return OidIsValid(binding.filter) && get_rel_name(binding.filter) != nullptr &&
         (!OidIsValid(binding.target) || get_rel_name(binding.target) != nullptr) &&
         !has_names(row->trigger, names_of(binding));
}

}  // namespace streamfilter::pg
