#include "pg/server/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
}

#include <algorithm>

#include "core/filter/definition.hpp"
#include "core/format/slicing.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/remote/alter_parts.hpp"
#include "pg/remote/part_definition.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/remote/slice_places.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

[[noreturn]] void raise_lost(const RemoteFilter* remote, int server, const char* what) {
  ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("cannot %s filter \"%s\" now", what, remote->relation->name),
          errdetail("Server \"%s\" is lost.", remote->connections[server]->name),
          errhint("Repeat it when the server is back. Where it is gone for good, SET "
                  "streamfilter.mode = off lets DROP act here only."));
  pg_unreachable();
}

void connect_homes(RemoteFilter* remote) {
  forget_lost_time();
  connect_together(remote->connections, remote->count);
}

void take_seed_of(RemoteFilter* remote, const char* found) {
  Parameters parameters;
  if (remote->seed_known || !read_found(found, &parameters)) return;
  remote->parameters.seed = parameters.seed;
  remote->seed_known = true;
}

// Who owns the relation on the server? Raises if the server is lost.
Ownership owner_at(RemoteFilter* remote, int server, const char* relation, const char* what) {
  Connection* connection = remote->connections[server];
  Ownership found;
  if (!ask_again_if_ended(connection, [&] { return read_owner(connection, relation, &found); }))
    raise_lost(remote, server, what);
  return found;
}

// Calls visit for the slice's place, then for each place that it has moved to before `visit` could
// lock its relation, until it finds the relation.
template <typename Visit>
void follow_slice(RemoteFilter* remote, uint32 slice, const char* what, Visit&& visit) {
  SlicePlace place = remote->places[slice];
  while (visit(place)) {
    SlicePlace next;
    bool missing = false;
    if (!next_place(remote, slice, place, &next, &missing) && !missing)
      raise_lost(remote, place.server, what);
    if (missing || next.epoch == place.epoch) return;
    place = next;
  }
}

// ---- ALTER
// -----------------------------------------------------------------------------------------

// What other servers are told beside the definition.
SliceDefinition wanted_on(RemoteFilter* remote, int server) {
  SliceDefinition wanted = remote->slices;
  const Ownership before = owner_at(remote, server, remote->filter, "alter");
  wanted.producer = describe_producer(remote->relation, server,
                                      before.identity[0] != '\0' ? before.identity : nullptr);
  return wanted;
}

void alter_at(RemoteFilter* remote, int server, const char* relation, const SliceDefinition& to) {
  if (!alter_slices(remote->connections[server], relation, &to))
    raise_lost(remote, server, "alter");
}

// Raises unless the part has become what it should, so that the whole statement fails.
void compare(RemoteFilter* remote, int server, const char* name, uint32 slices,
             const SliceDefinition& wanted) {
  SliceDefinition asked = wanted;
  bool made;
  asked.name = name;
  const char* found = define_slices(remote->connections[server], &asked, &made);
  if (found == nullptr) raise_lost(remote, server, "alter");
  if (found[0] != '\0' && !is_as_asked(remote, slices, found) &&
      !(name == remote->slices.name && is_of_before(remote, server, found)))
    raise_other_definition(
        remote, server, found,
        asked.definition != nullptr ? asked.definition : definition_of_slice(remote));
}

void alter_home(RemoteFilter* remote, int server, const char* found, Reach reach) {
  const uint32 slices = slices_on(remote, server);
  SliceDefinition wanted = wanted_on(remote, server);
  if (reach == Reach::alter) {
    const bool as_asked = is_as_asked(remote, slices, found) || is_of_before(remote, server, found);
    wanted.definition = as_asked ? nullptr : request_for(remote, slices);
    alter_at(remote, server, remote->filter, wanted);
  }
  wanted.definition = definition_on(remote, server);
  compare(remote, server, remote->slices.name, slices, wanted);
}

void alter_moved(RemoteFilter* remote, uint32 slice) {
  SliceDefinition wanted = remote->slices;
  follow_slice(remote, slice, "alter", [&](const SlicePlace& place) {
    const char* name = name_of_moved_slice(remote->slices.name, slice, place.epoch);
    const char* found = look_up_definition(remote, place.server, name);
    if (found == nullptr) raise_lost(remote, place.server, "alter");
    if (found[0] == '\0') return false;
    wanted.definition = is_as_asked(remote, 1, found) ? nullptr : request_for(remote, 1);
    alter_at(remote, place.server, relation_at(remote, slice, place), wanted);
    wanted.definition = nullptr;
    compare(remote, place.server, name, 1, wanted);
    return true;
  });
}

// ---- DROP
// ------------------------------------------------------------------------------------------

void change_at(RemoteFilter* remote, int server, const char* command, const char* what) {
  if (!change_slices(remote->connections[server], command)) raise_lost(remote, server, what);
}

void say_stays(const RemoteFilter* remote, int server, const char* relation, const char* detail) {
  ereport(
      NOTICE,
      errmsg("filter \"%s\" stays on server \"%s\" as it is", remote->relation->name,
             remote->connections[server]->name),
      errdetail_internal("%s", detail),
      errhint("Where no producer uses it any more, type there: DROP FOREIGN TABLE %s.", relation));
}

// May the relation be altered there? Says so if not.
bool is_ours_at(RemoteFilter* remote, int server, const char* relation, const char* what) {
  const Ownership found = owner_at(remote, server, relation, what);
  if (found.owned == Owned::by_others)
    say_stays(remote, server, relation,
              _("It belongs to another role there than the one that the user mapping names."));
  return found.owned == Owned::by_us;
}

void warn_of_lost(const RemoteFilter* remote, int server) {
  ereport(WARNING, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("filter \"%s\" stays on server \"%s\", which is lost", remote->relation->name,
                 remote->connections[server]->name),
          errdetail("A new filter of that name does not go on with it."),
          errhint("When the server is back, type there: DROP FOREIGN TABLE %s.", remote->filter));
}

// Does the relation there belong to this filter only, and not to another producer that still uses
// it? Says so if it stays.
bool may_drop_at(RemoteFilter* remote, int server) {
  Connection* connection = remote->connections[server];
  Ownership found;
  if (!ensure_connected(connection) || !read_owner(connection, remote->filter, &found)) {
    warn_of_lost(remote, server);
    return false;
  }
  if (found.owned == Owned::absent) return false;
  const bool is_own = strcmp(found.identity, identity_of_filter(remote->relation->relid)) == 0;
  if (found.owned == Owned::by_us && is_own) return true;
  say_stays(remote, server, remote->filter,
            is_own ? _("It belongs to another role there than the one that the user mapping names.")
                   : _("It was made by another producer, or by a version before 1.2."));
  return false;
}

void drop_at(RemoteFilter* remote, int server, const char* relation) {
  change_at(remote, server, psprintf("DROP FOREIGN TABLE %s", relation), "drop");
}

void drop_moved(RemoteFilter* remote, uint32 slice) {
  SlicePlace place = remote->places[slice];
  for (;;) {
    SlicePlace next;
    bool missing = false;
    const char* relation = relation_at(remote, slice, place);
    if (!next_place(remote, slice, place, &next, &missing) && !missing)
      return warn_of_lost(remote, place.server);
    if (missing) return;
    if (is_ours_at(remote, place.server, relation, "drop")) drop_at(remote, place.server, relation);
    if (next.epoch == place.epoch) return;
    place = next;
  }
}

// ---- RENAME
// ----------------------------------------------------------------------------------------

// Former and present name of a filter.
struct Renaming {
  RemoteFilter* now;
  RemoteFilter before;
};

void rename_at(const Renaming* renaming, int server, const char* before, const char* name) {
  const char *from = renaming->before.slices.schema, *to = renaming->now->slices.schema;
  if (!is_ours_at(renaming->now, server, quote_qualified_identifier(from, before), "rename"))
    return;
  if (strcmp(before, name) != 0)
    change_at(renaming->now, server,
              psprintf("ALTER FOREIGN TABLE %s RENAME TO %s",
                       quote_qualified_identifier(from, before), quote_identifier(name)),
              "rename");
  if (strcmp(from, to) != 0)
    change_at(renaming->now, server,
              psprintf("ALTER FOREIGN TABLE %s SET SCHEMA %s",
                       quote_qualified_identifier(from, name), quote_identifier(to)),
              "rename");
}

void rename_moved(const Renaming* renaming, uint32 slice) {
  follow_slice(renaming->now, slice, "rename", [&](const SlicePlace& place) {
    rename_at(renaming, place.server,
              name_of_moved_slice(renaming->before.slices.name, slice, place.epoch),
              name_of_moved_slice(renaming->now->slices.name, slice, place.epoch));
    return true;
  });
}

// Calls visit for every slice that has moved from its first place, with its last known place.
template <typename Visit>
void visit_moved(RemoteFilter* remote, const char* what, Visit&& visit) {
  for (uint32 i = 0; i < remote->parameters.slices; ++i) {
    remote->places[i] = first_place(remote, i);
    if (remote->places[i].epoch == 0 && find_places(remote, &i, 1) == PlaceSearch::unreachable)
      raise_lost(remote, remote->places[i].server, what);
    if (remote->places[i].epoch > 0) visit(i);
  }
}

// ---- functions of the parts
// ------------------------------------------------------------------------

// Adds the function's result on that server. False: there is no such relation.
bool call_at(RemoteFilter* remote, int server, const char* name, const PartFunction& function,
             uint64* sum) {
  const char* found = look_up_definition(remote, server, name);
  if (found != nullptr && found[0] == '\0') return false;
  if (found == nullptr ||
      !call_slices(remote->connections[server], function.name,
                   quote_qualified_identifier(remote->slices.schema, name), sum))
    raise_lost(remote, server, function.what);
  return true;
}

void say_renamed(const RemoteFilter* remote) {
  ereport(NOTICE, errmsg("filter \"%s\" is renamed on its servers, too", remote->relation->name),
          errhint("Rename it on each other producer, too: otherwise that one starts with an empty "
                  "filter of the former name."));
}

// Versions before 1.2 did not write down how many slices a key is in.
[[noreturn]] void raise_k_unknown(const FilterRelation* relation) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" cannot be altered and keep what it knows", relation->name),
          errdetail("A version before 1.2 made it, and its servers do not know its k."),
          errhint("Add the k that it had to the same ALTER: ALTER FOREIGN TABLE %s OPTIONS (..., "
                  "ADD k '...'). SELECT params FROM streamfilter_stats shows it.",
                  quote_identifier(relation->name)));
  pg_unreachable();
}

}  // namespace

FixedOptions find_fixed_options(const FilterRelation* relation) {
  RemoteFilter* remote = make_remote_filter(relation);
  const Parameters& whole = remote->parameters;
  FixedOptions fixed;
  connect_homes(remote);
  uint32 slices = 0, probes_before = 1;
  Parameters part{};
  for (int i = 0; i < remote->home_count; ++i) {
    if (remote->retired[i]) {
      slices += slices_on(remote, i);
      continue;
    }
    const char* found = look_up_definition(remote, i, remote->slices.name);
    if (found == nullptr) raise_lost(remote, i, "alter");
    if (found[0] == '\0' || !read_found(found, &part)) return fixed;
    slices += part.slices;
    if (remote->home_count > 1) probes_before = owner_at(remote, i, remote->filter, "alter").probes;
  }
  if (find_ops(part.kind) == nullptr) return fixed;  // all of them are retired
  const OptionSpec* k = whole.slicing != Slicing::horizontal ? find_k(part) : nullptr;
  if (k != nullptr && probes_before == 0 && !relation->options.asked.has(k->word))
    raise_k_unknown(relation);
  if (probes_before == 0) probes_before = probes(whole);
  const auto bits = k != nullptr ? part.integer(k->word) * probes_before : 0;
  if (part.kind != whole.kind) fixed.kind = find_ops(part.kind)->name;
  if (slices != whole.slices) fixed.slices = slices;
  if (fixed.kind == nullptr && bits > 0 && bits != whole.integer(k->word)) fixed.k = bits;
  return fixed;
}

void alter_parts(const FilterRelation* relation, Reach reach) {
  RemoteFilter* remote = make_remote_filter(relation);
  connect_homes(remote);
  bool any = remote->relation->options.first_places.count > 0;
  if (any) learn_seed(remote);
  for (int i = 0; i < remote->home_count; ++i) {
    if (remote->retired[i]) continue;
    const char* found = look_up_definition(remote, i, remote->slices.name);
    if (found == nullptr && reach == Reach::alter) raise_lost(remote, i, "alter");
    if (found == nullptr || found[0] == '\0') continue;
    any = true;
    take_seed_of(remote, found);
    alter_home(remote, i, found, reach);
  }
  if (!any || reach != Reach::alter) return;
  visit_moved(remote, "alter", [&](uint32 slice) { alter_moved(remote, slice); });
}

void rename_parts(const FilterRelation* relation, const char* schema, const char* name) {
  RemoteFilter* remote = make_remote_filter(relation);
  Renaming renaming = {remote, *remote};
  renaming.before.slices.schema = schema;
  renaming.before.slices.name = name;
  connect_homes(remote);
  for (int i = 0; i < remote->home_count; ++i)
    if (!remote->retired[i]) rename_at(&renaming, i, name, remote->slices.name);
  visit_moved(remote, "rename", [&](uint32 slice) { rename_moved(&renaming, slice); });
  say_renamed(remote);
}

void drop_parts(const FilterRelation* relation) {
  RemoteFilter* remote = make_remote_filter(relation);
  connect_homes(remote);
  auto* ours = static_cast<bool*>(palloc0(sizeof(bool) * static_cast<Size>(remote->home_count)));
  for (int i = 0; i < remote->home_count; ++i) {
    ours[i] = !remote->retired[i] && may_drop_at(remote, i);
    // This locks the relation, so no slice leaves it from here on.
    if (ours[i] && !truncate_slices(remote->connections[i], remote->filter))
      raise_lost(remote, i, "drop");
  }
  const bool any_ours =
      std::find(ours, ours + remote->home_count, true) != ours + remote->home_count;
  for (uint32 i = 0; i < remote->parameters.slices; ++i) {
    remote->places[i] = first_place(remote, i);
    const bool is_known = remote->places[i].epoch > 0;
    if (is_known ? any_ours
                 : ours[home_of(remote, i)] && find_places(remote, &i, 1) == PlaceSearch::found &&
                       remote->places[i].epoch > 0)
      drop_moved(remote, i);
  }
  for (int i = 0; i < remote->home_count; ++i)
    if (ours[i]) drop_at(remote, i, remote->filter);
}

uint64 call_parts(const FilterRelation* relation, const PartFunction& function) {
  RemoteFilter* remote = make_remote_filter(relation);
  uint64 sum = 0;
  connect_homes(remote);
  for (int i = 0; i < remote->home_count; ++i)
    if (!remote->retired[i]) call_at(remote, i, remote->slices.name, function, &sum);
  visit_moved(remote, function.what, [&](uint32 slice) {
    follow_slice(remote, slice, function.what, [&](const SlicePlace& place) {
      const char* name = name_of_moved_slice(remote->slices.name, slice, place.epoch);
      return call_at(remote, place.server, name, function, &sum);
    });
  });
  return sum;
}

}  // namespace streamfilter::pg
