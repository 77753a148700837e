// Called by the server where a filter is altered: gives the new options to the relation with its
// slices, which must keep its keys.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
}

#include "core/filter/definition.hpp"
#include "core/filter/filter.hpp"
#include "core/filter/list_options.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/producer_agreement.hpp"
#include "pg/ddl/remote_ddl.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/slot_lifecycle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/remote/part_definition.hpp"
#include "pg/sql/slice_relation.hpp"

namespace streamfilter::pg {
namespace {

// The changes of options in an ALTER FOREIGN TABLE.
class OptionChanges {
 public:
  explicit OptionChanges(List* before) : before_(before) { initStringInfo(&text_); }

  void set(const char* name, const char* value) {
    const char* old = find_option(before_, name);
    if (value == nullptr || (old != nullptr && strcmp(old, value) == 0)) return;
    append(old != nullptr ? "SET" : "ADD", name);
    appendStringInfo(&text_, " %s", quote_literal_cstr(value));
  }

  // Drops options of the definition that `wanted` does not give.
  void drop_others(const Definition& wanted) {
    ListCell* cell;
    foreach (cell, before_) {
      const char* name = static_cast<DefElem*>(lfirst(cell))->defname;
      if (is_option(name) && !gives(wanted, name)) append("DROP", name);
    }
  }

  const char* text() const { return text_.len > 0 ? text_.data : nullptr; }

 private:
  static bool gives(const Definition& wanted, const char* name) {
    for (ListedOptions given(wanted); given.next();)
      if (strcmp(given.name(), name) == 0) return true;
    return false;
  }

  void append(const char* what, const char* name) {
    appendStringInfo(&text_, "%s%s %s", text_.len > 0 ? ", " : "", what, quote_identifier(name));
  }

  List* before_;
  StringInfoData text_;
};

const char* find_changes(Oid relid, const char* wanted, const char* conflict,
                         const char* persistence, const char* producer) {
  OptionChanges changes(options_of_filter(relid));
  if (wanted != nullptr) {
    const Definition definition = definition_in(wanted);
    for (ListedOptions given(definition); given.next();) changes.set(given.name(), given.value());
    changes.drop_others(definition);
  }
  changes.set("conflict", conflict);
  changes.set("persistence", persistence);
  changes.set("producer", producer);
  return changes.text();
}

// Its state, to check later whether it was kept; nullptr: it has no keys.
bool knows_anything(FilterHandle* filter) {
  use_filter(filter, Use::test_granted);
  return !is_empty(filter->header);
}

[[noreturn]] void raise_would_forget(Oid relid) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" cannot be altered and keep what it knows", get_rel_name(relid)),
          errhint("TRUNCATE the filter and commit, then alter it, and fill it anew with "
                  "streamfilter_warm()."));
  pg_unreachable();
}

// The producer must not look for known keys in other slices than they are in.
void check_slicing_stays(const FilterRelation* relation, bool knew, const char* producer) {
  const char* found = slicing_of_producer(relation->options.producer);
  const char* wanted = slicing_of_producer(producer);
  if (found != nullptr && wanted != nullptr && strcmp(found, wanted) != 0 && knew)
    raise_would_forget(relation->relid);
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_hashes_alter(filter regclass, wanted text, conflict text, persistence text, producer
// text): NULL leaves an option unchanged. Needs ownership. Raises 0A000 if keys would be lost.
SF_FUNCTION(streamfilter_hashes_alter) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("the filter of streamfilter_hashes_alter must not be null"));
  const Oid relid = PG_GETARG_OID(0);
  FilterHandle* filter = lock_slices(relid);
  const char* producer = text_argument(fcinfo, 4);
  check_producer_agrees(filter->relation, {nullptr, nullptr, producer});
  const char* changes = find_changes(relid, text_argument(fcinfo, 1), text_argument(fcinfo, 2),
                                     text_argument(fcinfo, 3), producer);
  if (changes == nullptr) PG_RETURN_VOID();
  const bool knew = knows_anything(filter);
  check_slicing_stays(filter->relation, knew, producer);
  alter_options(relid, changes);
  if (knew && peek_slot(load_filter_relation(relid)) == nullptr) raise_would_forget(relid);
  PG_RETURN_VOID();
}
