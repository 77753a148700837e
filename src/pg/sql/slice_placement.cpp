// On the producer: functions that show, move, spread and retire the places of slices.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "utils/acl.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/retirements.hpp"
#include "pg/ddl/remote_ddl.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/remote/move_slice.hpp"
#include "pg/remote/retire_server.hpp"
#include "pg/server/named_row.hpp"
#include "pg/sql/slice_export.hpp"

namespace streamfilter::pg {
namespace {

RemoteFilter* remote_filter(FunctionCallInfo fcinfo, bool to_move) {
  const Oid relid = PG_GETARG_OID(0);
  FilterHandle* filter = filter_handle(relid);
  use_filter(filter, Use::define);
  const char* name = filter->relation->name;
  if (to_move && !is_owner(relid, GetUserId()))
    aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_FOREIGN_TABLE, name);
  if (filter->remote == nullptr || filter->remote->fdw_filter != nullptr)
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("filter \"%s\" has no slices on other servers of filters", name),
            errhint("Slices that can move are those of a filter with option servers."));
  use_filter(filter, to_move ? Use::test_granted : Use::test);
  if (!filter->remote->seed_known)
    ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
            errmsg("no server of filter \"%s\" can be reached", name));
  return filter->remote;
}

const char* server_name(const RemoteFilter* remote, int server) {
  return server_of_oid(remote->relation->servers[server])->servername;
}

int find_server(const RemoteFilter* remote, const char* name) {
  for (int i = 0; i < remote->count; ++i)
    if (strcmp(server_name(remote, i), name) == 0 && !remote->retired[i]) return i;
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
          errmsg("filter \"%s\" is not on a server \"%s\"", remote->relation->name, name),
          errhint("Add the server at the end: ALTER FOREIGN TABLE ... OPTIONS (SET servers '...', "
                  "ADD home_servers '%d').",
                  remote->home_count));
  pg_unreachable();
}

void put_place(ReturnSetInfo* result, RemoteFilter* remote, uint32 slice) {
  SlicePlace place = remote->places[slice];
  const bool found = (place.epoch == 0 && !is_unreachable(remote->connections[place.server])) ||
                     find_place(remote, slice, &place) == PlaceSearch::found;
  NamedRow row(result->setDesc);
  row.put("slice", Int32GetDatum(static_cast<int32>(slice)));
  if (found) {
    row.put("server", server_name(remote, place.server));
    row.put_count("epoch", place.epoch);
  }
  row.add_to(result);
}

// Changes the definition: no search begins on the retired server any more.
void name_other_servers(const RemoteFilter* remote, const Retirement& retirement) {
  const FilterRelation* relation = remote->relation;
  StringInfoData options;
  initStringInfo(&options);
  appendStringInfo(&options, "SET servers %s", quote_literal_cstr(retirement.servers));
  if (retirement.first_places != nullptr)
    appendStringInfo(&options, ", %s first_places %s",
                     relation->options.first_places.count > 0 ? "SET" : "ADD",
                     quote_literal_cstr(retirement.first_places));
  appendStringInfo(&options, ", %s retired '%s'",
                   retired_servers_in(options_of_filter(relation->relid)).count > 0 ? "SET" : "ADD",
                   retirement.retired);
  const char* name = qualified_name(relation->relid);
  const char* command = alter_options(relation->relid, options.data);
  ereport(NOTICE, errmsg("no other producer knows yet that the server is retired"),
          errhint("Type for each of them: %s. Then, on the server, if it is there: DROP FOREIGN "
                  "TABLE %s.",
                  command, name));
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_move_slice(filter regclass, slice int, server text) → boolean: false if the slice is
// there already. Needs ownership.
SF_FUNCTION(streamfilter_move_slice) {
  PreventCommandDuringRecovery("streamfilter_move_slice()");
  RemoteFilter* remote = remote_filter(fcinfo, true);
  const uint32 slice =
      check_slice_number(remote->relation, remote->parameters.slices, PG_GETARG_INT32(1));
  const int server = find_server(remote, text_to_cstring(PG_GETARG_TEXT_PP(2)));
  const bool moved = move_slice(remote, slice, server);
  flush_slice_work(remote);
  PG_RETURN_BOOL(moved);
}

// streamfilter_spread_slices(filter regclass) → int: number of moves. Needs ownership.
SF_FUNCTION(streamfilter_spread_slices) {
  PreventCommandDuringRecovery("streamfilter_spread_slices()");
  RemoteFilter* remote = remote_filter(fcinfo, true);
  const int moved = spread_slices(remote);
  flush_slice_work(remote);
  PG_RETURN_INT32(moved);
}

// streamfilter_retire(filter regclass, server text) → int: number of slices moved off it. Needs
// ownership.
SF_FUNCTION(streamfilter_retire) {
  PreventCommandDuringRecovery("streamfilter_retire()");
  RemoteFilter* remote = remote_filter(fcinfo, true);
  const int server = find_server(remote, text_to_cstring(PG_GETARG_TEXT_PP(1)));
  const Retirement retirement = retire_server(remote, server);
  flush_slice_work(remote);
  name_other_servers(remote, retirement);
  PG_RETURN_INT32(retirement.moved);
}

// streamfilter_slice_places(filter regclass): the place of each slice; NULL if it cannot be asked.
// Needs SELECT.
SF_FUNCTION(streamfilter_slice_places) {
  ReturnSetInfo* set = begin_rows(fcinfo);
  RemoteFilter* remote = remote_filter(fcinfo, false);
  const uint32 slices = remote->parameters.slices;
  for (int home = 0; home < remote->home_count && home < static_cast<int>(slices); ++home) {
    const auto slice = static_cast<uint32>(home);
    find_places(remote, &slice, 1);
  }
  for (uint32 i = 0; i < slices; ++i) put_place(set, remote, i);
  return static_cast<Datum>(0);
}
