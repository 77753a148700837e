#include "pg/server/postgres.hpp"

#include "pg/value/key_argument.hpp"

namespace streamfilter::pg {

TypeHasher* make_key_hasher(FunctionCallInfo fcinfo, int number) {
  const Oid type = get_fn_expr_argtype(fcinfo->flinfo, number);
  if (!OidIsValid(type))
    ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_DATATYPE),
                    errmsg("could not determine the data type of the key")));
  const MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
  TypeHasher* hasher = make_type_hasher(type, PG_GET_COLLATION(), "the key");
  MemoryContextSwitchTo(caller);
  return hasher;
}

TypeHasher* key_hasher(FunctionCallInfo fcinfo, int number) {
  void*& extra = fcinfo->flinfo->fn_extra;
  if (extra == nullptr) extra = make_key_hasher(fcinfo, number);
  return static_cast<TypeHasher*>(extra);
}

}  // namespace streamfilter::pg
