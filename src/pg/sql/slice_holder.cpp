// On a holder: what the producer calls to move a slice (remote/move_slice.cpp): the slice's source
// is locked, its copy made, and its source closed. See docs/servers.md, "Growing and moving".
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xact.h"
#include "catalog/namespace.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "utils/syscache.h"
}

#include "core/filter/definition.hpp"
#include "core/filter/filter.hpp"
#include "core/filter/slice_packet.hpp"
#include "core/filter/slicing_rules.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/retirements.hpp"
#include "pg/ddl/remote_ddl.hpp"
#include "pg/handle/judge_key.hpp"
#include "pg/remote/part_definition.hpp"
#include "pg/server/syscache.hpp"
#include "pg/sql/slice_export.hpp"
#include "pg/sql/slice_relation.hpp"

namespace streamfilter::pg {
namespace {

// The producer of a relation made by a move: nothing that IMPORT FOREIGN SCHEMA could take for a
// filter.
const char* producer_of_moved_slice(uint32 slice, uint32 epoch) {
  return psprintf("{\"slice\": \"%u\", \"epoch\": \"%u\"}", slice, epoch);
}

// Was the relation made by a move? Other filters may have similar names. False if it was dropped.
bool is_moved_slice(Oid relid, const char* name, uint32 slice) {
  const char* relation = get_rel_name(relid);
  const char* mark = relation != nullptr ? strrchr(relation, '@') : nullptr;
  const char* producer = find_option(options_of_filter(relid), "producer");
  if (mark == nullptr || producer == nullptr) return false;
  const auto epoch = static_cast<uint32>(strtoul(mark + 1, nullptr, 10));
  return strcmp(producer, producer_of_moved_slice(slice, epoch)) == 0 &&
         strcmp(relation, name_of_moved_slice(name, slice, epoch)) == 0;
}

// Where the slice was when a server was retired, a search for it may begin: option first_places of
// a producer. Such a place stays, and says where the slice is.
bool may_be_first_place(Oid relid) {
  List* options = options_of_filter(relid);
  const char* mark = find_option(options, "retirements");
  return mark != nullptr && strchr(mark, ':') != nullptr &&
         find_option(options, "moved") != nullptr;
}

// Drops relations that earlier moves of the slice have left here, and that no session is told of
// any more. Relations of other owners may look the same.
void drop_remains(Oid schema, const char* name, uint32 slice) {
  const char* query = psprintf(
      "SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace OPERATOR(pg_catalog.=) %u "
      "AND c.relkind OPERATOR(pg_catalog.=) 'f' AND c.relowner OPERATOR(pg_catalog.=) %u "
      "AND pg_catalog.starts_with(c.relname::pg_catalog.text, %s)",
      schema, GetUserId(), quote_literal_cstr(psprintf("%s/%u@", name, slice)));
  SPI_connect();
  // Not read-only, so that it sees what the former holder of the lock has committed.
  if (SPI_execute(query, false, 0) != SPI_OK_SELECT) elog(ERROR, "could not look for slices");
  const SPITupleTable* found = SPI_tuptable;
  for (uint64 i = 0; i < found->numvals; ++i) {
    bool isnull;
    const Oid relid = DatumGetObjectId(SPI_getbinval(found->vals[i], found->tupdesc, 1, &isnull));
    if (is_moved_slice(relid, name, slice) && !may_be_first_place(relid) &&
        SPI_execute(psprintf("DROP FOREIGN TABLE %s", qualified_name(relid)), false, 0) < 0)
      elog(ERROR, "could not drop relation %u", relid);
  }
  SPI_finish();
}

// If not, the mover tries another name.
void check_is_free(Oid schema, const char* name) {
  if (!OidIsValid(get_relname_relid(name, schema)) &&
      !is_in_catalog(TYPENAMENSP, CStringGetDatum(name), ObjectIdGetDatum(schema)))
    return;
  ereport(ERROR, errcode(ERRCODE_DUPLICATE_TABLE), errmsg("relation \"%s\" already exists", name));
}

// Has a slice of such a filter the parameters of a filter with one slice?
bool is_slice_of(const Parameters& whole, const Parameters& one) {
  Parameters cut = whole;
  take_share(cut, 1);
  cut.slices = 1;
  cut.memory = one.memory;
  cut.keys = one.keys;
  return whole.seed == one.seed && probes(whole) == 1 && has_same_geometry(cut, one);
}

// Definition of the relation for the slice: from the mover, or, if the filter was resized, as the
// slice is.
const char* definition_for(const Header* state, const char* wanted) {
  Parameters asked, own;
  if (!read_found(wanted, &asked) || is_slice_of(state->parameters, asked)) return wanted;
  Parameters cut = state->parameters;
  take_share(cut, 1);
  cut.slices = 1;
  cut.memory = sizeof(Header) + cut.slice_bytes;
  cut.keys = asked.keys;
  auto* text = static_cast<char*>(palloc(kMaxDefinitionText));
  print_definition(cut, text, kMaxDefinitionText);
  return read_found(text, &own) && is_slice_of(state->parameters, own) ? text : wanted;
}

void fill(FilterHandle* filter, const Header* state) {
  const Parameters& parameters = filter->header->parameters;
  if (!is_slice_of(state->parameters, parameters))
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("a slice of this filter cannot lie by itself"),
            errdetail("With these options, its kind, %s, derives other parameters for one slice "
                      "than for several.",
                      ops_of(state).name));
  auto* value = static_cast<Header*>(MemoryContextAllocExtended(
      CurrentMemoryContext, parameters.memory, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  memcpy(static_cast<void*>(value), filter->header, sizeof(Header));
  memcpy(static_cast<void*>(slice_at(value, 0).state), slice_at(state, 0).state,
         parameters.slice_bytes);
  replace_local_filter(filter, value);
  pfree(value);
}

uint32 number_argument(FunctionCallInfo fcinfo, int number, int least) {
  const int32 value = PG_GETARG_INT32(number);
  if (value < least)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid number: %d", value));
  return static_cast<uint32>(value);
}

Retirements retirements_argument(FunctionCallInfo fcinfo, int number) {
  const char* text = text_argument(fcinfo, number);
  Retirements told;
  if (!read_retirements(text, &told))
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid number: %s", text));
  return told;
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_slice_fence(filter regclass, slice int, retirements text) → bytea: waits for users
// of the relation, keeps others out until the transaction ends, and returns the slice. Needs to be
// its owner. Raises 55SF1 if the slice is elsewhere. Producers that know of no retirement leave out
// the last argument.
SF_FUNCTION(streamfilter_slice_fence) {
  FilterHandle* filter = lock_slices(PG_GETARG_OID(0));
  const int32 slice = PG_GETARG_INT32(1);
  check_slice_is_here(filter->relation, static_cast<uint32>(slice));
  check_list_is_current(filter->relation,
                        PG_NARGS() > 2 ? retirements_argument(fcinfo, 2) : Retirements{});
  use_filter(filter, Use::test_granted);
  PG_RETURN_POINTER(make_slice_packet(filter, slice));
}

// streamfilter_slice_take(schema_name text, table_name text, slice int, epoch int, definition text,
// conflict text, persistence text, state bytea): makes the relation that holds the slice from this
// epoch on. Nobody asks it before the slice's former place is closed.
SF_FUNCTION(streamfilter_slice_take) {
  const char* schema = text_argument(fcinfo, 0);
  const char* table = text_argument(fcinfo, 1);
  const uint32 slice = number_argument(fcinfo, 2, 0), epoch = number_argument(fcinfo, 3, 1);
  uint32 sealed;
  const Header* state = open_slice_packet(PG_GETARG_VARLENA_PP(7), &sealed);
  lock_slice_relations();
  const Oid schema_oid = get_namespace_oid(schema, false);
  drop_remains(schema_oid, table, slice);
  check_is_free(schema_oid, name_of_moved_slice(table, slice, epoch));
  auto* name = makeRangeVar(pstrdup(schema), pstrdup(name_of_moved_slice(table, slice, epoch)), -1);
  make_slice_relation(name,
                      {definition_for(state, text_argument(fcinfo, 4)), text_argument(fcinfo, 5),
                       text_argument(fcinfo, 6), producer_of_moved_slice(slice, epoch)});
  FilterHandle* filter = filter_handle(RangeVarGetRelid(name, NoLock, false));
  use_filter(filter, Use::insert);
  fill(filter, state);
  ForceSyncCommit();
  PG_RETURN_VOID();
}

// streamfilter_slice_close(filter regclass, slice int, server int, epoch int, producer text): from
// the end of this transaction on, the relation says that the slice is on that server, since that
// epoch. Does not change a later epoch. `producer`: the producer's new description; NULL:
// unchanged.
SF_FUNCTION(streamfilter_slice_close) {
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("only the producer of streamfilter_slice_close may be null"));
  const FilterHandle* filter = lock_slices(PG_GETARG_OID(0));
  const MovedSlices& moved = filter->relation->options.moved;
  const MovedSlice entry = {number_argument(fcinfo, 1, 0), number_argument(fcinfo, 2, 1) - 1,
                            number_argument(fcinfo, 3, 1)};
  const MovedSlice* before = find_moved_slice(moved, entry.slice);
  if (before != nullptr && before->epoch >= entry.epoch) PG_RETURN_VOID();
  const char* changes = psprintf("%s moved %s", moved.count > 0 ? "SET" : "ADD",
                                 quote_literal_cstr(add_moved_slice(moved, entry)));
  if (const char* producer = text_argument(fcinfo, 4))
    changes = psprintf("%s, SET producer %s", changes, quote_literal_cstr(producer));
  alter_options(filter->relid, changes);
  ForceSyncCommit();
  PG_RETURN_VOID();
}

// streamfilter_slice_mark(filter regclass, slice int, retirements text): who knows of fewer
// retirements moves no slice of the relation from the end of this transaction on. Also makes a copy
// the place of its slice. Needs to be its owner. Raises 55SF1 if the slice is elsewhere.
SF_FUNCTION(streamfilter_slice_mark) {
  const FilterHandle* filter = lock_slices(PG_GETARG_OID(0));
  const Retirements before = retirements_in(options_of_filter(filter->relid));
  const Retirements told = retirements_argument(fcinfo, 2);
  check_slice_is_here(filter->relation, number_argument(fcinfo, 1, 0));
  check_list_is_current(filter->relation, told);
  if (before.text != nullptr && before.of_copy == told.of_copy &&
      strcmp(before.text, told.text) == 0)
    PG_RETURN_VOID();
  alter_options(filter->relid, psprintf("%s retirements %s", before.text != nullptr ? "SET" : "ADD",
                                        quote_literal_cstr(text_argument(fcinfo, 2))));
  ForceSyncCommit();
  PG_RETURN_VOID();
}
