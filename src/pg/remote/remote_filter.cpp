#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "core/filter/slicing_rules.hpp"
#include "core/format/slicing.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/remote/postgres_fdw_filter.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

RemoteFilter* changed_filters = nullptr;  // by this transaction

bool has_lost_changes(const RemoteFilter* remote) {
  for (int i = 0; i < remote->count; ++i)
    if (lost_changes(remote->connections[i])) return true;
  return false;
}

// The definition may have been read anew within the transaction.
bool comes_again(const RemoteFilter* remote) {
  for (const RemoteFilter* other = remote->next_changed; other != nullptr;
       other = other->next_changed)
    if (other->relation->relid == remote->relation->relid) return true;
  return false;
}

uint64 share(uint64 whole, uint64 part, uint64 of) {
  return static_cast<uint64>((static_cast<unsigned __int128>(whole) * part + of - 1) / of);
}

// Options that count for all slices: version 1.0 gave them to every part as they are.
enum class Shares : bool { taken, as_before };

// The parameters of a relation that holds so many of the slices, each with k2 bits of a key. False:
// there are none.
bool find_parameters_of_part(const RemoteFilter* remote, uint32 slices, Shares shares,
                             Parameters* result, Problem& problem) {
  const Parameters& whole = remote->parameters;
  Parameters part = whole;
  if (shares == Shares::taken) take_share(part, slices);
  part.slices = slices;
  part.memory = sizeof(Header) + part.slices * whole.slice_bytes;
  part.keys = share(whole.keys, uint64{part.slices} * probes(whole), whole.slices);
  part.slicing = Slicing::horizontal;
  part.dice = Dice::hv;
  part.k1 = part.k2 = 0;
  part.slices2 = 0;
  Definition definition = definition_of(part);
  definition.slicing_given = definition.dice_given = definition.probes_given = false;
  if (probes(whole) > 1) {
    const OptionSpec* k = find_k(whole);
    const uint64 bits = bits_per_probe(whole, whole.integer(k->word));
    if (!set_option(definition, "k", psprintf(UINT64_FORMAT, bits), problem)) return false;
  }
  if (complete(definition, problem)) {
    *result = definition.parameters;
    return true;
  }
  // Some of what was derived for the whole filter may be too much for a part of it.
  const WordSet to_follow = definition_of(whole).given & ~definition_of(part).given;
  definition = remote->relation->definition;
  definition.given &= ~to_follow;
  definition.parameters = part;
  definition.memory_given = definition.slices_given = definition.seed_given = true;
  definition.slicing_given = definition.dice_given = definition.probes_given = false;
  problem = Problem();
  if (!complete(definition, problem)) return false;
  *result = definition.parameters;
  return true;
}

Parameters parameters_of_part(const RemoteFilter* remote, uint32 slices) {
  Parameters part;
  Problem problem;
  if (!find_parameters_of_part(remote, slices, Shares::taken, &part, problem)) raise(problem);
  return part;
}

const char* print(const Parameters& parameters) {
  auto* text = static_cast<char*>(palloc(kMaxDefinitionText));
  print_definition(parameters, text, kMaxDefinitionText);
  return text;
}

// Of the relation on one of the servers that held slices at first.
const char* definition_on(const RemoteFilter* remote, int server) {
  if (remote->home_count == 1) return print(remote->parameters);
  return print(parameters_of_part(remote, slices_on(remote, static_cast<uint32>(server))));
}

// Is it what version 1.0 has made there?
bool is_of_before(const RemoteFilter* remote, int server, const char* definition) {
  Parameters part;
  Problem problem;
  return remote->home_count > 1 &&
         find_parameters_of_part(remote, slices_on(remote, static_cast<uint32>(server)),
                                 Shares::as_before, &part, problem) &&
         strcmp(definition, print(part)) == 0;
}

// The seed that a definition has.
uint64 seed_in(const char* text) {
  Definition definition;
  Problem problem;
  std::size_t used;
  if (!parse_definition(text, strlen(text), definition, used, problem)) raise(problem);
  return definition.parameters.seed;
}

void take_seed(RemoteFilter* remote, uint64 seed) {
  remote->parameters.seed = seed;
  remote->seed_known = true;
}

// What a server says of the seed.
enum class SeedAt : uint8 { found, absent, unreachable };

SeedAt find_seed(RemoteFilter* remote, int server) {
  SliceDefinition wanted = remote->slices;
  wanted.definition = nullptr;
  bool made;
  Connection* connection = remote->connections[server];
  if (!ensure_connected(connection)) return SeedAt::unreachable;
  const char* found = define_slices(connection, &wanted, &made);
  if (found == nullptr) return SeedAt::unreachable;
  if (found[0] == '\0') return SeedAt::absent;
  take_seed(remote, seed_in(found));
  return SeedAt::found;
}

[[noreturn]] void raise_other_definition(const RemoteFilter* remote, int server, const char* found,
                                         const char* wanted) {
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("filter \"%s\" has another definition on server \"%s\"", remote->relation->name,
                 remote->connections[server]->name),
          errdetail("There it is %s, here %s.", found, wanted),
          errhint("IMPORT FOREIGN SCHEMA takes over the definition of a server that has one."));
  pg_unreachable();
}

// What version 1.0 has made goes on: what it knows is worth more than the right length of a window.
void warn_of_older_definition(const RemoteFilter* remote, int server) {
  ereport(WARNING, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("filter \"%s\" was made on server \"%s\" by version 1.0", remote->relation->name,
                 remote->connections[server]->name),
          errdetail("Each server has a window of rows, the rows of a filter of kind dsqf, or the "
                    "size of filters that grow, as if it were the only one."),
          errhint("Drop it on all of its servers when it may begin anew."));
}

// A relation that was made when the filter had fewer servers says where slices have gone. Without
// it they would be asked in two places. False: the connection has failed.
bool check_is_there(RemoteFilter* remote, int server) {
  const char* moved;
  if (!read_moved(remote->connections[server], remote->filter, &moved)) return false;
  MovedSlices list;
  if (moved != nullptr) {
    if (moved[0] != '\0' && read_moved_slices(moved, &list)) keep_places(remote, server, list);
    return true;
  }
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("filter \"%s\" is missing on server \"%s\"", remote->relation->name,
                 remote->connections[server]->name),
          errdetail("It says there to which servers slices have moved."),
          errhint("Restore that server. If the filter is to begin anew on all of its servers, drop "
                  "it on each of them, and its option home_servers here."));
  pg_unreachable();
}

// Makes sure that the slices are there. False: the connection has failed.
bool define_on(RemoteFilter* remote, int server, bool* made) {
  Connection* connection = remote->connections[server];
  SliceDefinition wanted = remote->slices;
  wanted.definition = definition_on(remote, server);
  wanted.producer = describe_producer(remote->relation, server);
  if (may_move_slices(remote->relation) && !check_is_there(remote, server)) return false;
  const char* found = define_slices(connection, &wanted, made);
  if (found == nullptr) return false;
  // Of two producers that come at once with a random seed, the other may have been faster.
  if (!remote->seed_known) {
    take_seed(remote, seed_in(found));
    wanted.definition = definition_on(remote, server);
  }
  if (strcmp(found, wanted.definition) != 0) {
    if (!is_of_before(remote, server, found))
      raise_other_definition(remote, server, found, wanted.definition);
    warn_of_older_definition(remote, server);
  }
  // What was made within a transaction may go with it.
  remote->opened[server] = *made && connection->level > 0 ? 0 : connection->number;
  return true;
}

bool open_on(RemoteFilter* remote, int server, bool* made) {
  Connection* connection = remote->connections[server];
  for (int i = 0; i < kMaxAttempts; ++i) {
    if (!ensure_connected(connection)) return false;
    if (server >= remote->home_count || remote->opened[server] == connection->number ||
        define_on(remote, server, made))
      return true;
  }
  raise_always_ends(connection);
}

}  // namespace

const char* definition_of_slice(const RemoteFilter* remote) {
  return print(parameters_of_part(remote, 1));
}

const OptionSpec* find_k(const Parameters& parameters) {
  const FilterOps* ops = find_ops(parameters.kind);
  for (unsigned i = 0; i < ops->option_count; ++i)
    if (strcmp(ops->options[i].name, "k") == 0) return &ops->options[i];
  return nullptr;
}

RemoteFilter* make_remote_filter(const FilterRelation* relation) {
  auto* remote = static_cast<RemoteFilter*>(palloc0(sizeof(RemoteFilter)));
  remote->relation = relation;
  if (relation->behind_postgres_fdw) {
    remote->fdw_filter = make_postgres_fdw_filter(relation);
    return remote;
  }
  remote->parameters = relation->definition.parameters;
  remote->seed_known = relation->definition.seed_given;
  remote->count = relation->server_count;
  remote->home_count = home_count(relation);
  remote->connections =
      static_cast<Connection**>(palloc(sizeof(Connection*) * relation->server_count));
  for (int i = 0; i < remote->count; ++i)
    remote->connections[i] = find_connection(relation->servers[i], relation->owner);
  remote->opened = static_cast<uint64*>(palloc0(sizeof(uint64) * relation->server_count));
  remote->counts =
      static_cast<SliceCounts*>(palloc0(sizeof(SliceCounts) * remote->parameters.slices));
  remote->places = static_cast<SlicePlace*>(palloc(sizeof(SlicePlace) * remote->parameters.slices));
  remote->to_find = static_cast<bool*>(palloc0(sizeof(bool) * remote->parameters.slices));
  for (uint32 i = 0; i < remote->parameters.slices; ++i)
    remote->places[i] = {home_of(remote, i), 0};
  SliceDefinition* slices = &remote->slices;
  slices->schema = get_namespace_name(get_rel_namespace(relation->relid));
  slices->name = relation->name;
  slices->conflict = name_of(relation->options.conflict);
  slices->persistence = name_of(relation->options.persistence);
  remote->filter = quote_qualified_identifier(slices->schema, slices->name);
  return remote;
}

void check_slice_definitions(const FilterRelation* relation) {
  const RemoteFilter* remote = make_remote_filter(relation);
  for (int i = 0; i < remote->home_count; ++i) definition_on(remote, i);
}

// A server that is new, or was built anew, must not bring a seed of its own while others have one:
// a new one is made only where all servers say that they have none.
void learn_seed(RemoteFilter* remote) {
  if (remote->seed_known) return;
  forget_lost_time();
  connect_together(remote->connections, remote->count);
  bool all_asked = true;
  for (int i = 0; i < remote->home_count && !remote->seed_known; ++i)
    all_asked &= find_seed(remote, i) != SeedAt::unreachable;
  if (remote->seed_known || !all_asked) return;
  if (!pg_strong_random(&remote->parameters.seed, sizeof remote->parameters.seed))
    ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random seed"));
  open_slices(remote, 0);
}

// Who makes one of the relations makes them all: once servers are added, one that is missing is one
// that was lost.
bool open_slices(RemoteFilter* remote, int server) {
  bool made = false;
  if (!open_on(remote, server, &made)) return false;
  for (int i = 0, others = made ? remote->home_count : 0; i < others; ++i)
    if (i != server) open_on(remote, i, &made);
  return true;
}

void check_is_named(const RemoteFilter* remote, uint64 slice, uint32 server) {
  if (server < static_cast<uint32>(remote->count)) return;
  ereport(
      ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
      errmsg("slice %llu of filter \"%s\" has moved to a server that its option servers does "
             "not name",
             static_cast<unsigned long long>(slice), remote->relation->name),
      errdetail("It is on server %u of the list; the option names %d.", server + 1, remote->count),
      errhint("Add the servers that the filter was extended by: ALTER FOREIGN TABLE ... OPTIONS "
              "(SET servers '...')."));
}

bool keep_places(RemoteFilter* remote, int server, const MovedSlices& moved) {
  bool news = false;
  for (int i = 0; i < moved.count; ++i) {
    const MovedSlice& entry = moved.entries[i];
    const uint64 slice =
        uint64{entry.slice} * static_cast<uint32>(remote->home_count) + static_cast<uint32>(server);
    if (slice >= remote->parameters.slices || entry.epoch <= remote->places[slice].epoch) continue;
    check_is_named(remote, slice, entry.server);
    remote->places[slice] = {static_cast<int>(entry.server), entry.epoch};
    news = true;
  }
  return news;
}

bool has_unreachable_slices(const RemoteFilter* remote) {
  for (int i = 0; i < remote->count; ++i)
    if (is_unreachable(remote->connections[i])) return true;
  return false;
}

void note_changed(RemoteFilter* remote) {
  if (remote->changed) return;
  remote->changed = true;
  remote->next_changed = changed_filters;
  changed_filters = remote;
}

void end_changed_filters(bool committed) {
  for (RemoteFilter* remote = changed_filters; remote != nullptr; remote = remote->next_changed) {
    remote->changed = false;
    if (!committed || !has_lost_changes(remote) || comes_again(remote)) continue;
    FilterCounts counts;
    counts.unremembered = 1;
    add_filter_counts(remote->relation->relid, counts);
  }
  changed_filters = nullptr;
}

void flush_slice_counts(RemoteFilter* remote) {
  for (uint32 i = 0; i < remote->parameters.slices; ++i) {
    SliceCounts* counts = &remote->counts[i];
    const SlicePlace& place = remote->places[i];
    const bool has_moved = place.epoch != counts->epoch;
    if (counts->answered + counts->unanswered + counts->messages == 0 && !has_moved) continue;
    counts->server = static_cast<uint32>(place.server);
    counts->epoch = place.epoch;
    add_slice_counts(remote->relation->relid, i, *counts);
    *counts = {};
    counts->epoch = place.epoch;  // so that it is told once
  }
}

}  // namespace streamfilter::pg
