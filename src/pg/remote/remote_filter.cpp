#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "core/format/sharding.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/remote/wrapped_filter.hpp"
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

// The parameters of the relation on one of several servers: its share of the slices, each with k2
// bits of a key.
Parameters parameters_on(const RemoteFilter* remote, uint32 server) {
  const Parameters& whole = remote->parameters;
  if (remote->count == 1) return whole;
  Parameters part = whole;
  part.slices = slices_on(remote, server);
  part.memory = sizeof(Header) + part.slices * whole.slice_bytes;
  part.keys = share(whole.keys, uint64{part.slices} * probes(whole), whole.slices);
  part.slicing = Slicing::horizontal;
  part.dice = Dice::hv;
  part.k1 = part.k2 = 0;
  part.slices2 = 0;
  Definition definition = definition_of(part);
  definition.slicing_given = definition.dice_given = definition.probes_given = false;
  Problem problem;
  if (probes(whole) > 1) {
    const OptionSpec* k = find_k(whole);
    const uint64 bits = bits_per_probe(whole, whole.integer(k->word));
    if (!set_option(definition, "k", psprintf(UINT64_FORMAT, bits), problem)) raise(problem);
  }
  if (complete(definition, problem)) return definition.parameters;
  // Some of what was derived for the whole filter may be too much for a part of it.
  definition = remote->relation->definition;
  definition.parameters = part;
  definition.memory_given = definition.slices_given = definition.seed_given = true;
  definition.slicing_given = definition.dice_given = definition.probes_given = false;
  problem = Problem();
  if (!complete(definition, problem)) raise(problem);
  return definition.parameters;
}

const char* definition_on(const RemoteFilter* remote, int server) {
  auto* text = static_cast<char*>(palloc(kMaxDefinitionText));
  print_definition(parameters_on(remote, static_cast<uint32>(server)), text, kMaxDefinitionText);
  return text;
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

// Makes sure that the slices are there. False: the connection has failed.
bool define_on(RemoteFilter* remote, int server) {
  Connection* connection = remote->connections[server];
  SliceDefinition wanted = remote->slices;
  wanted.definition = definition_on(remote, server);
  wanted.producer = describe_producer(remote->relation, server);
  bool made;
  const char* found = define_slices(connection, &wanted, &made);
  if (found == nullptr) return false;
  // Of two producers that come at once with a random seed, the other may have been faster.
  if (!remote->seed_known) {
    take_seed(remote, seed_in(found));
    wanted.definition = definition_on(remote, server);
  }
  if (strcmp(found, wanted.definition) != 0)
    raise_other_definition(remote, server, found, wanted.definition);
  // What was made within a transaction may go with it.
  remote->opened[server] = made && connection->level > 0 ? 0 : connection->number;
  return true;
}

}  // namespace

const OptionSpec* find_k(const Parameters& parameters) {
  const FilterOps* ops = find_ops(parameters.kind);
  for (unsigned i = 0; i < ops->option_count; ++i)
    if (strcmp(ops->options[i].name, "k") == 0) return &ops->options[i];
  return nullptr;
}

RemoteFilter* make_remote_filter(const FilterRelation* relation) {
  auto* remote = static_cast<RemoteFilter*>(palloc0(sizeof(RemoteFilter)));
  remote->relation = relation;
  if (relation->wrapped) {
    remote->wrapped = make_wrapped_filter(relation);
    return remote;
  }
  remote->parameters = relation->definition.parameters;
  remote->seed_known = relation->definition.seed_given;
  remote->count = relation->server_count;
  remote->connections =
      static_cast<Connection**>(palloc(sizeof(Connection*) * relation->server_count));
  for (int i = 0; i < remote->count; ++i)
    remote->connections[i] = find_connection(relation->servers[i], relation->owner);
  remote->opened = static_cast<uint64*>(palloc0(sizeof(uint64) * relation->server_count));
  remote->counts =
      static_cast<SliceCounts*>(palloc0(sizeof(SliceCounts) * remote->parameters.slices));
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
  for (int i = 0; i < remote->count; ++i) definition_on(remote, i);
}

// A server that is new, or was built anew, must not bring a seed of its own while others have one:
// a new one is made only where all servers say that they have none.
void learn_seed(RemoteFilter* remote) {
  if (remote->seed_known) return;
  forget_lost_time();
  connect_together(remote->connections, remote->count);
  bool all_asked = true;
  for (int i = 0; i < remote->count && !remote->seed_known; ++i)
    all_asked &= find_seed(remote, i) != SeedAt::unreachable;
  if (remote->seed_known || !all_asked) return;
  if (!pg_strong_random(&remote->parameters.seed, sizeof remote->parameters.seed))
    ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random seed"));
  open_slices(remote, 0);
}

bool open_slices(RemoteFilter* remote, int server) {
  Connection* connection = remote->connections[server];
  for (int i = 0; i < kMaxAttempts; ++i) {
    if (!ensure_connected(connection)) return false;
    if (remote->opened[server] == connection->number || define_on(remote, server)) return true;
  }
  raise_always_ends(connection);
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
    if (counts->answered + counts->unanswered + counts->messages == 0) continue;
    add_slice_counts(remote->relation->relid, i, *counts);
    *counts = {};
  }
}

}  // namespace streamfilter::pg
