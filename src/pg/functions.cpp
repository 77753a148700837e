// Functions on named filters, for use in any query.
#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "utils/acl.h"
}

#include "streamfilter/core/filter.hpp"
#include "streamfilter/pg/error.hpp"
#include "streamfilter/pg/filter_keys.hpp"
#include "streamfilter/pg/key_call.hpp"
#include "streamfilter/pg/value.hpp"

namespace streamfilter::pg {
namespace {

// The call site for this filter, resolved and ready to use.
KeyCall* prepare(FunctionCallInfo fcinfo, Use use, const char* function,
                  bool may_leave_out_roles) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("the filter of %s must not be NULL", function));
  auto* site = static_cast<KeyCall*>(fcinfo->flinfo->fn_extra);
  if (site == nullptr) {
    if (get_fn_expr_variadic(fcinfo->flinfo))
      ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
              errmsg("%s does not take VARIADIC arrays", function),
              errhint("Give the values of the key one by one."));
    MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
    const int count = PG_NARGS() - 1;
    auto* types = static_cast<Oid*>(palloc(sizeof(Oid) * Max(count, 1)));
    for (int i = 0; i < count; ++i) types[i] = get_fn_expr_argtype(fcinfo->flinfo, i + 1);
    site = static_cast<KeyCall*>(palloc0(sizeof(KeyCall)));
    init_key_call(site, function, types, count, may_leave_out_roles);
    MemoryContextSwitchTo(caller);
    fcinfo->flinfo->fn_extra = site;
  }
  begin_key_call(site, PG_GETARG_OID(0), use);
  return site;
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
  KeyCall* site = prepare(fcinfo, Use::remember, "streamfilter_seen", false);
  Element element;
  if (!read_key(site, fcinfo->args + 1, &element)) PG_RETURN_BOOL(false);
  PG_RETURN_BOOL(remember_key(site->filter, element));
}

// streamfilter_test(filter regclass, VARIADIC key "any") → boolean: was the key seen before? Nothing
// is remembered; columns with a role may be left out. Needs SELECT on the filter.
SF_FUNCTION(streamfilter_test) {
  KeyCall* site = prepare(fcinfo, Use::test, "streamfilter_test", true);
  Element element;
  if (!read_key(site, fcinfo->args + 1, &element)) PG_RETURN_BOOL(false);
  PG_RETURN_BOOL(test_key(site->filter, element));
}

// streamfilter_value(filter regclass) → streamfilter: the shared state as a value. Needs SELECT.
SF_FUNCTION(streamfilter_value) {
  NamedFilter* filter = named_filter(PG_GETARG_OID(0));
  use_filter(filter, Use::test);
  require_local(filter, "streamfilter_value");
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
  require_local(filter, "streamfilter_merge");
  Problem problem;
  if (!mergeable(filter->header->parameters, value->parameters, problem)) raise(problem);
  merge_into_filter(filter, value);
  PG_RETURN_VOID();
}
