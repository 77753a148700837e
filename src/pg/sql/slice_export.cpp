// Exports and imports the state of one slice, for users who move it together with its rows.
#include "pg/server/postgres.hpp"

#include "core/filter/slice_packet.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/key_builder.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

// The number of one of so many slices. Raises 22023 if it is none.
uint32 check_slice_number(const FilterRelation* relation, uint32 slices, int32 slice) {
  if (slice < 0 || static_cast<uint32>(slice) >= slices)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("filter \"%s\" has no slice %d", relation->name, slice),
            errdetail("It has slices 0 to %u.", slices - 1));
  return static_cast<uint32>(slice);
}

// The state of one slice of a local filter that is ready for use, as this transaction sees it, as a
// bytea for open_packet. Raises 22023 if there is no such slice.
struct varlena* make_slice_packet(FilterHandle* filter, int32 number) {
  const Parameters& parameters = filter->header->parameters;
  const uint32 slice = check_slice_number(filter->relation, parameters.slices, number);
  const Size size = packet_size(parameters);
  if (size > MaxAllocSize - VARHDRSZ)
    ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
            errmsg("a slice of filter \"%s\" is too large", filter->relation->name),
            errdetail("It has %llu bytes; up to 1 GB can be returned.",
                      static_cast<unsigned long long>(size)),
            errhint("Give the filter more slices."));
  Header* copy = copy_filter_slice(filter, slice);
  const PacketHead head = seal_packet(copy, slice);
  auto* result = static_cast<struct varlena*>(palloc(VARHDRSZ + size));
  SET_VARSIZE(result, VARHDRSZ + size);
  memcpy(VARDATA(result), &head, sizeof head);
  memcpy(VARDATA(result) + sizeof head, copy, size - sizeof head);
  pfree(copy);
  return result;
}

// The state in such a bytea, and its slice's number. Raises 22P03.
const Header* open_slice_packet(const struct varlena* packet, uint32* slice) {
  const Size length = VARSIZE_ANY_EXHDR(packet);
  Problem problem;
  const Header* value =
      open_packet(memcpy(palloc(length), VARDATA_ANY(packet), length), length, *slice, problem);
  if (value == nullptr)
    ereport(ERROR, problem_report(problem), errcode(ERRCODE_INVALID_BINARY_REPRESENTATION));
  return value;
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_slice(filter regclass, VARIADIC key "any") → int: the slice of the key, the same in
// all filters with equal parameters and seed; NULL for a key that is not remembered because of a
// NULL. Role columns may be left out. Needs SELECT. Raises 0A000 if a key has several probes.
SF_FUNCTION(streamfilter_slice) {
  KeyCall* site = key_call_site(fcinfo, Use::test, "streamfilter_slice", true);
  const FilterHandle* filter = site->keys.filter;
  const Parameters& parameters = filter->relation->definition.parameters;
  if (probes(parameters) > 1)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("the keys of filter \"%s\" lie in several slices", filter->relation->name),
            errhint("Only horizontal slices have keys of their own."));
  Element element;
  if (!build_element(&site->keys, fcinfo->args + 1, &element)) PG_RETURN_NULL();
  PG_RETURN_INT32(static_cast<int32>(slice_of(parameters, element.hash)));
}

// streamfilter_export(filter regclass, slice int) → bytea: the state of the slice as this
// transaction sees it. Needs SELECT.
SF_FUNCTION(streamfilter_export) {
  require_shard_node(PG_GETARG_OID(0), "streamfilter_export");
  FilterHandle* filter = filter_handle(PG_GETARG_OID(0));
  use_filter(filter, Use::test);
  require_local(filter, "streamfilter_export");
  PG_RETURN_POINTER(make_slice_packet(filter, PG_GETARG_INT32(1)));
}

// streamfilter_import(filter regclass, slice int, bytea): adds an exported slice to the same slice,
// within this transaction. Both filters must have equal kind, parameters and seed. Needs INSERT.
SF_FUNCTION(streamfilter_import) {
  PreventCommandDuringRecovery("streamfilter_import()");
  PreventCommandIfReadOnly("streamfilter_import()");
  require_shard_node(PG_GETARG_OID(0), "streamfilter_import");
  FilterHandle* filter = filter_handle(PG_GETARG_OID(0));
  use_filter(filter, Use::insert);
  require_local(filter, "streamfilter_import");
  const uint32 slice =
      check_slice_number(filter->relation, filter->header->parameters.slices, PG_GETARG_INT32(1));
  uint32 exported;
  const Header* value = open_slice_packet(PG_GETARG_VARLENA_PP(2), &exported);
  Problem problem;
  if (!mergeable(filter->header->parameters, value->parameters, problem)) raise(problem);
  if (exported != slice)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("this is the state of slice %u, not of slice %u", exported, slice));
  merge_into_filter(filter, value, slice);
  PG_RETURN_VOID();
}
