// Functions on named filters, for use in any query.
#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "utils/acl.h"
}

#include "streamfilter/core/filter.hpp"
#include "streamfilter/pg/coercion.hpp"
#include "streamfilter/pg/element.hpp"
#include "streamfilter/pg/error.hpp"
#include "streamfilter/pg/filter_keys.hpp"
#include "streamfilter/pg/value.hpp"

namespace streamfilter::pg {
namespace {

// What a call site has resolved; kept in fn_extra from row to row.
struct CallSite {
  MemoryContext context;  // of the coercions
  NamedFilter* filter;
  uint64 version;
  bool keys_only;  // the role columns were left out
  int count;
  const FilterColumn** columns;  // one per argument after the first
  Coercion** coercions;
  // One place per column; reused by every call.
  Datum* values;
  bool* isnull;
};

void resolve(CallSite* site, FunctionCallInfo fcinfo, NamedFilter* filter, const char* function,
             bool may_leave_out_roles) {
  const FilterRelation* relation = filter->relation;
  const int given = PG_NARGS() - 1;
  site->filter = nullptr;
  MemoryContextReset(site->context);
  MemoryContext caller = MemoryContextSwitchTo(site->context);
  site->keys_only = given == relation->key_count;
  if (given != relation->column_count && !(may_leave_out_roles && site->keys_only))
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_FUNCTION),
            errmsg("%s needs %d %s for filter \"%s\", not %d", function, relation->column_count,
                   relation->column_count == 1 ? "value" : "values", relation->name, given),
            errhint("Give a value for every column of the filter, in order."));
  site->count = given;
  site->columns =
      static_cast<const FilterColumn**>(palloc(sizeof(FilterColumn*) * Max(given, 1)));
  site->coercions = static_cast<Coercion**>(palloc(sizeof(Coercion*) * Max(given, 1)));
  site->values = static_cast<Datum*>(palloc(sizeof(Datum) * Max(given, 1)));
  site->isnull = static_cast<bool*>(palloc(sizeof(bool) * Max(given, 1)));
  for (int i = 0; i < given; ++i) {
    site->columns[i] = site->keys_only ? relation->keys[i] : &relation->columns[i];
    site->coercions[i] =
        make_coercion(get_fn_expr_argtype(fcinfo->flinfo, i + 1), site->columns[i], relation->name,
                      psprintf("argument %d of %s", i + 2, function));
  }
  MemoryContextSwitchTo(caller);
  site->version = filter->version;
  site->filter = filter;
}

// The call site for this filter, resolved and ready to use.
CallSite* prepare(FunctionCallInfo fcinfo, Use use, const char* function,
                  bool may_leave_out_roles) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("the filter of %s must not be NULL", function));
  auto* site = static_cast<CallSite*>(fcinfo->flinfo->fn_extra);
  if (site == nullptr) {
    if (get_fn_expr_variadic(fcinfo->flinfo))
      ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("%s does not take VARIADIC arrays", function),
              errhint("Give the values of the key one by one."));
    site = static_cast<CallSite*>(
        MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(CallSite)));
    site->context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "streamfilter call site",
                                          ALLOCSET_SMALL_SIZES);
    fcinfo->flinfo->fn_extra = site;
  }
  const Oid relid = PG_GETARG_OID(0);
  NamedFilter* filter = site->filter != nullptr && site->filter->relid == relid
                            ? site->filter
                            : named_filter(relid);
  use_filter(filter, use);
  if (site->filter != filter || site->version != filter->version)
    resolve(site, fcinfo, filter, function, may_leave_out_roles);
  return site;
}

// The element that the arguments stand for. False: its key is NULL.
bool read_element(CallSite* site, FunctionCallInfo fcinfo, Element* element) {
  const NamedFilter* filter = site->filter;
  Datum* keys = site->values;
  int key_count = 0;
  for (int i = 0; i < site->count; ++i) {
    bool isnull = PG_ARGISNULL(i + 1);
    const Datum value = coerce(site->coercions[i], PG_GETARG_DATUM(i + 1), &isnull);
    if (site->columns[i]->role == Role::key) {
      keys[key_count] = value;
      site->isnull[key_count++] = isnull;
    } else {
      set_role(element, site->columns[i], filter->relation, value, isnull);
    }
  }
  return hash_filter_key(filter, keys, site->isnull, &element->hash);
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_seen(filter regclass, VARIADIC key "any") → boolean: was the key seen before? It is
// remembered now, once the transaction commits. Needs INSERT on the filter.
SF_FUNCTION(streamfilter_seen) {
  PreventCommandDuringRecovery("streamfilter_seen()");
  PreventCommandIfReadOnly("streamfilter_seen()");
  CallSite* site = prepare(fcinfo, Use::remember, "streamfilter_seen", false);
  Element element = new_element(site->filter->relation->definition.parameters);
  if (!read_element(site, fcinfo, &element)) PG_RETURN_BOOL(false);
  PG_RETURN_BOOL(remember_key(site->filter, element));
}

// streamfilter_test(filter regclass, VARIADIC key "any") → boolean: was the key seen before? Nothing
// is remembered; columns with a role may be left out. Needs SELECT on the filter.
SF_FUNCTION(streamfilter_test) {
  CallSite* site = prepare(fcinfo, Use::test, "streamfilter_test", true);
  Element element = new_element(site->filter->relation->definition.parameters);
  if (!read_element(site, fcinfo, &element)) PG_RETURN_BOOL(false);
  PG_RETURN_BOOL(test_key(site->filter, element));
}

// streamfilter_value(filter regclass) → streamfilter: the shared state as a value. Needs SELECT.
SF_FUNCTION(streamfilter_value) {
  NamedFilter* filter = named_filter(PG_GETARG_OID(0));
  use_filter(filter, Use::test);
  const Parameters& parameters = filter->header->parameters;
  if (Problem problem; !fits_value(parameters, problem)) raise(problem);
  Header* copy = copy_filter(filter);
  // Wishes may have been altered since the state was built.
  copy->parameters.keys = filter->relation->definition.parameters.keys;
  copy->parameters.fpr = filter->relation->definition.parameters.fpr;
  copy->parameters.nulls = filter->rule.nulls;
  SET_VARSIZE(copy, parameters.memory);
  PG_RETURN_POINTER(copy);
}

// streamfilter_merge(filter regclass, streamfilter): adds what the value remembers to the shared
// state. Both must have equal kind, parameters and seed. Needs INSERT.
SF_FUNCTION(streamfilter_merge) {
  PreventCommandDuringRecovery("streamfilter_merge()");
  PreventCommandIfReadOnly("streamfilter_merge()");
  NamedFilter* filter = named_filter(PG_GETARG_OID(0));
  const Header* value = get_value(PG_GETARG_DATUM(1));
  use_filter(filter, Use::remember);
  Problem problem;
  if (!mergeable(filter->header->parameters, value->parameters, problem)) raise(problem);
  merge_into_filter(filter, value);
  PG_RETURN_VOID();
}
