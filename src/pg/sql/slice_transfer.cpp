// Moving the state of one slice of a filter to another server, with the keys that it is about.
#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/key_builder.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

// What lies before the filter's header and the bytes of the slice.
struct PacketHead {
  uint32 magic;
  uint32 slice;
  uint64 sum;  // of all that follows, and the number of the slice
};
constexpr uint32 kPacketMagic = 0x4c534653;  // "SFSL"

Size size_after_head(const Parameters& parameters) {
  return sizeof(Header) + parameters.slice_bytes;
}

uint64 sum_of(const void* bytes, Size size, uint32 slice) {
  return hash_bytes(bytes, size, kPacketMagic + (static_cast<uint64>(slice) << 32));
}

uint32 check_slice_number(const NamedFilter* filter, int32 slice) {
  const uint32 slices = filter->header->parameters.slices;
  if (slice < 0 || static_cast<uint32>(slice) >= slices)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("filter \"%s\" has no slice %d", filter->relation->name, slice),
            errdetail("It has slices 0 to %u.", slices - 1));
  return static_cast<uint32>(slice);
}

[[noreturn]] void raise_damaged(const char* detail) {
  ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
          errmsg("these bytes are not the state of a slice"), errdetail("%s", detail),
          errhint("Give what streamfilter_export has returned."));
  pg_unreachable();
}

// Arrivals are counted in the first place of a key; a slice that has only others shall not look
// like an empty one.
void count_strays(Header* copy) {
  const Slice slice = slice_at(copy, 0);
  if (slice.state->insertions == 0 &&
      find_ops(copy->parameters.kind)->estimate(copy->parameters, as_const(slice)).fill > 0)
    slice.state->insertions = slice.state->inserted_new = 1;
}

// The header and the slice, checked and aligned; `slice` is the number they are of.
const Header* open_packet(const struct varlena* packet, uint32* slice) {
  const Size length = VARSIZE_ANY_EXHDR(packet);
  PacketHead head;
  if (length < sizeof head + sizeof(Header)) raise_damaged("They are too few.");
  memcpy(&head, VARDATA_ANY(packet), sizeof head);
  const Size rest = length - sizeof head;
  const auto* header =
      static_cast<const Header*>(memcpy(palloc(rest), VARDATA_ANY(packet) + sizeof head, rest));
  if (head.magic != kPacketMagic) raise_damaged("They do not begin as such a state does.");
  if (head.sum != sum_of(header, rest, head.slice)) raise_damaged("Their checksum is wrong.");
  Problem problem;
  if (!check_header(*header, problem)) raise(problem);
  if (rest != size_after_head(header->parameters) || head.slice >= header->parameters.slices)
    raise_damaged("Their number does not fit their header.");
  if (!check_slice(header->parameters, slice_at(header, 0), head.slice, problem)) raise(problem);
  *slice = head.slice;
  return header;
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_slice(filter regclass, VARIADIC key "any") → int: the slice that holds the key, the
// same in all filters of equal parameters and seed; NULL for a key that is not remembered (it has a
// NULL). Columns with a role may be left out. Needs SELECT. Raises 0A000 where a key has several
// places.
SF_FUNCTION(streamfilter_slice) {
  KeyCall* site = key_call_site(fcinfo, Use::test, "streamfilter_slice", true);
  const Parameters& parameters = site->filter->relation->definition.parameters;
  if (probes(parameters) > 1)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("the keys of filter \"%s\" lie in several slices", site->filter->relation->name),
            errhint("Only horizontal slices have keys of their own."));
  Element element;
  if (!read_key(site, fcinfo->args + 1, &element)) PG_RETURN_NULL();
  PG_RETURN_INT32(static_cast<int32>(slice_of(parameters, element.hash)));
}

// streamfilter_export(filter regclass, slice int) → bytea: the state of the slice as this
// transaction sees it. Needs SELECT.
SF_FUNCTION(streamfilter_export) {
  NamedFilter* filter = named_filter(PG_GETARG_OID(0));
  use_filter(filter, Use::test);
  require_local(filter, "streamfilter_export");
  PacketHead head = {kPacketMagic, check_slice_number(filter, PG_GETARG_INT32(1)), 0};
  const Parameters& parameters = filter->header->parameters;
  const Size size = size_after_head(parameters);
  if (size > MaxAllocSize - VARHDRSZ - sizeof head)
    ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
            errmsg("a slice of filter \"%s\" is too large", filter->relation->name),
            errdetail("It has %llu bytes; up to 1 GB can be returned.",
                      static_cast<unsigned long long>(size)),
            errhint("Give the filter more slices."));
  Header* copy = copy_filter_slice(filter, head.slice);
  copy->host = 0;
  count_strays(copy);
  head.sum = sum_of(copy, size, head.slice);
  auto* result = static_cast<struct varlena*>(palloc(VARHDRSZ + sizeof head + size));
  SET_VARSIZE(result, VARHDRSZ + sizeof head + size);
  memcpy(VARDATA(result), &head, sizeof head);
  memcpy(VARDATA(result) + sizeof head, copy, size);
  pfree(copy);
  PG_RETURN_POINTER(result);
}

// streamfilter_import(filter regclass, slice int, bytea): adds what was exported of a slice to the
// same slice, as part of this transaction. Both filters must have equal kind, parameters and seed.
// Needs INSERT.
SF_FUNCTION(streamfilter_import) {
  PreventCommandDuringRecovery("streamfilter_import()");
  PreventCommandIfReadOnly("streamfilter_import()");
  NamedFilter* filter = named_filter(PG_GETARG_OID(0));
  use_filter(filter, Use::remember);
  require_local(filter, "streamfilter_import");
  const uint32 slice = check_slice_number(filter, PG_GETARG_INT32(1));
  uint32 exported;
  const Header* value = open_packet(PG_GETARG_VARLENA_PP(2), &exported);
  Problem problem;
  if (!mergeable(filter->header->parameters, value->parameters, problem)) raise(problem);
  if (exported != slice)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("this is the state of slice %u, not of slice %u", exported, slice));
  merge_into_filter(filter, value, slice);
  PG_RETURN_VOID();
}
