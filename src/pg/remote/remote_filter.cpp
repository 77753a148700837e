#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/hooks.hpp"
#include "pg/server/monotonic.hpp"

namespace streamfilter::pg {
namespace {

// ---- definitions of the relations on its servers ------------------------------------------------

uint64 share(uint64 whole, uint64 part, uint64 of) {
  return static_cast<uint64>((static_cast<unsigned __int128>(whole) * part + of - 1) / of);
}

// In a part a key has one probe, horizontally.
void leave_out_slicing(Definition* definition) {
  Parameters& part = definition->parameters;
  part.slicing = Slicing::horizontal;
  part.dice = Dice::hv;
  part.k1 = part.k2 = 0;
  part.slices2 = 0;
  definition->leave_out(Common::slicing, Common::dice, Common::k1, Common::k2);
}

// Parameters of a relation with `slices` slices, each with k2 bits of a key. False: there are none.
bool find_parameters_of_part(const RemoteFilter* remote, uint32 slices, Parameters* result,
                             Problem& problem) {
  const Parameters& whole = remote->parameters;
  Parameters part = whole;
  take_share(part, slices);
  part.slices = slices;
  part.memory = kStoredHeader + part.slices * whole.slice_bytes;
  part.keys = share(whole.keys, uint64{part.slices} * probes(whole), whole.slices);
  Definition definition = definition_of(part);
  leave_out_slicing(&definition);
  if (probes(whole) > 1) {
    const OptionSpec* k = find_k(whole);
    const uint64 bits = bits_per_probe(whole, whole.integer(k->word));
    if (!set_option(definition, "k", psprintf(UINT64_FORMAT, bits), problem)) return false;
  }
  if (complete(definition, problem)) {
    *result = definition.parameters;
    return true;
  }
  // Derived numbers of the whole filter may be too large for a part.
  const WordSet to_follow = definition_of(whole).given & ~definition_of(part).given;
  definition = remote->relation->definition;
  definition.given &= ~to_follow;
  definition.parameters = part;
  definition.give(Common::memory, Common::slices, Common::seed);
  leave_out_slicing(&definition);
  problem = Problem();
  if (!complete(definition, problem)) return false;
  *result = definition.parameters;
  return true;
}

// Parameters of the relation on one of its servers.
Parameters parameters_on(const RemoteFilter* remote, int server) {
  if (remote->count == 1) return remote->parameters;
  Parameters part;
  Problem problem;
  if (!find_parameters_of_part(remote, slices_on(remote, server), &part, problem)) raise(problem);
  return part;
}

const char* print(const Parameters& parameters) {
  auto* text = static_cast<char*>(palloc(kMaxDefinitionText));
  print_definition(parameters, text, kMaxDefinitionText);
  return text;
}

const char* definition_on(const RemoteFilter* remote, int server) {
  return print(parameters_on(remote, server));
}

// Do keys of a part have equal places, apart from what its size determines?
bool has_same_keys(const Parameters& a, const Parameters& b) {
  constexpr auto kSizes = set_of(Common::memory, Common::keys, Common::fpr, Common::layout);
  return find_difference(a, b, kAllCommon & ~kSizes) == nullptr;
}

// A resized filter leaves a little of its memory unused, so that old and new places coincide.
bool is_about(uint64 memory, uint64 wanted) {
  return memory <= wanted + wanted / 32 && wanted <= memory + memory / 32;
}

// Reads and completes a definition that another server has sent. False: this version cannot.
bool read_found(const char* text, Parameters* result) {
  Definition definition;
  Problem problem;
  std::size_t used;
  if (!parse_definition(text, strlen(text), definition, used, problem) ||
      !complete(definition, problem))
    return false;
  *result = definition.parameters;
  return true;
}

// Does a relation, as its server describes it, fit the local definition? Only given options count:
// another version may have derived the others, or for another size. Its memory may be a little
// less.
bool is_as_asked(const RemoteFilter* remote, int server, const char* text) {
  const Parameters wanted = parameters_on(remote, server);
  if (strcmp(text, print(wanted)) == 0) return true;
  Parameters found;
  if (!read_found(text, &found) || !has_same_keys(found, wanted)) return false;
  const Definition& asked = remote->relation->options.asked;
  if ((asked.is_given(Common::memory) && !is_about(found.memory, wanted.memory)) ||
      (asked.parameters.keys != 0 && found.keys != wanted.keys) ||
      (asked.parameters.fpr > 0 && !is_same_fpr(found.fpr, wanted.fpr)) ||
      (asked.is_given(Common::layout) && found.layout != wanted.layout))
    return false;
  const FilterOps* ops = find_ops(wanted.kind);
  const OptionSpec* k = probes(remote->parameters) > 1 ? find_k(wanted) : nullptr;
  for (const OptionSpec& option : ops->options)
    if ((asked.has(option.word) || &option == k) && !is_same_option(option, found, wanted))
      return false;
  return true;
}

// ---- the filter ---------------------------------------------------------------------------------

RemoteFilter* changed_filters = nullptr;  // of this transaction

bool has_lost_changes(const RemoteFilter* remote) {
  for (int i = 0; i < remote->count; ++i)
    if (lost_changes(remote->connections[i])) return true;
  return false;
}

// The definition may have been read again within the transaction.
bool comes_again(const RemoteFilter* remote) {
  for (const RemoteFilter* other = remote->next_changed; other != nullptr;
       other = other->next_changed)
    if (other->relation->relid == remote->relation->relid) return true;
  return false;
}

void take_seed(RemoteFilter* remote, uint64 seed) {
  remote->parameters.seed = seed;
  remote->seed_known = true;
}

// Drops what a filter that was dropped here has left there because the server was lost: a new
// filter of the same name must not take it over. False: the connection has failed.
bool drop_remains(RemoteFilter* remote, int server) {
  Connection* connection = remote->connections[server];
  Ownership found;
  if (!read_owner(connection, remote->filter, &found)) return false;
  if (found.owned != Owned::by_us || found.identity == nullptr || !was_dropped_here(found.identity))
    return true;
  ereport(WARNING,
          errmsg("filter \"%s\" starts empty on server \"%s\"", remote->relation->name,
                 connection->name),
          errdetail("What the server had belongs to a filter of that name that was dropped."));
  return change_slices(connection, psprintf("DROP FOREIGN TABLE %s", remote->filter));
}

// It was built anew or restored, as its part or another server tells (former >= 0), or it was lost
// when the filter was first used.
void warn_of_missing_keys(const RemoteFilter* remote, int server, int former) {
  const char* filter = remote->relation->name;
  const char* name = remote->connections[server]->name;
  ereport(WARNING,
          former >= 0
              ? errmsg("filter \"%s\" starts empty on server \"%s\"", filter, name)
              : errmsg("filter \"%s\" has other keys than before on server \"%s\"", filter, name),
          former >= 0 ? errdetail("Server \"%s\" has the filter already; this one did not have it.",
                                  remote->connections[former]->name)
                      : errdetail("It was made anew there, emptied by a crash, or restored from an "
                                  "older backup."),
          errhint("If the server had keys before, restore it, or fill the filter anew: type SELECT "
                  "streamfilter_warm('%s', ...). Until then their repeats are stored.",
                  qualified_name(remote->relation->relid)));
}

// 55000: the server's relation has another definition.
[[noreturn]] void raise_other_definition(const RemoteFilter* remote, int server, const char* found,
                                         const char* wanted) {
  ereport(
      ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
      errmsg("filter \"%s\" has another definition on server \"%s\"", remote->relation->name,
             remote->connections[server]->name),
      errdetail("There it is %s, here %s.", found, wanted),
      errhint("IMPORT FOREIGN SCHEMA takes over the definition of a server that has one. To begin "
              "anew with this one, where no other producer uses it, type there: DROP FOREIGN "
              "TABLE %s.",
              remote->filter));
}

// A server that goes back to a backup older than the last look, before a transaction, is noticed.
constexpr int kLookAgain = 60'000;  // ms

// Makes sure that the slices exist. False: the connection has failed.
bool define_on(RemoteFilter* remote, int server, bool* made) {
  Connection* connection = remote->connections[server];
  SliceDefinition wanted = remote->slices;
  wanted.definition = definition_on(remote, server);
  wanted.producer = describe_producer(remote->relation, server);
  if (!drop_remains(remote, server)) return false;
  PartState state;
  const char* found = define_slices(connection, &wanted, made, &state);
  if (found == nullptr) return false;
  // Of two producers with random seeds that come at once, the other may have been faster.
  if (!remote->seed_known) {
    take_seed(remote, definition_in(found).parameters.seed);
    wanted.definition = definition_on(remote, server);
  }
  if (!is_as_asked(remote, server, found))
    raise_other_definition(remote, server, found, wanted.definition);
  // A relation made within a transaction may go with it.
  const bool lasts = connection->level == 0 || state.life != 0;
  const auto number = static_cast<uint32>(server);
  if (lasts && has_gone_back(remote->relation->relid, number, state, *made) &&
      !(*made && remote->count > 1))
    warn_of_missing_keys(remote, server, -1);
  remote->opened[server] =
      connection->level > 0 && (*made || state.life == 0) ? 0 : connection->number;
  remote->look_again[server] = add_ms(monotonic_us(), kLookAgain);
  return true;
}

bool open_on(RemoteFilter* remote, int server, bool* made) {
  Connection* connection = remote->connections[server];
  return ask_again_if_ended(connection, [&] {
    return (remote->opened[server] == connection->number &&
            (connection->level > 0 || monotonic_us() < remote->look_again[server])) ||
           define_on(remote, server, made);
  });
}

}  // namespace

const OptionSpec* find_k(const Parameters& parameters) {
  return find_option(*find_ops(parameters.kind), "k");
}

Definition definition_in(const char* text) {
  Definition definition;
  Problem problem;
  std::size_t used;
  const Size length = strlen(text);
  if (!parse_definition(text, length, definition, used, problem)) raise(problem);
  if (used != length)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("invalid definition of a filter: \"%s\"", text));
  return definition;
}

RemoteFilter* make_remote_filter(const FilterRelation* relation) {
  auto* remote = static_cast<RemoteFilter*>(palloc0(sizeof(RemoteFilter)));
  remote->relation = relation;
  remote->parameters = relation->definition.parameters;
  remote->seed_known = relation->definition.is_given(Common::seed);
  remote->count = relation->server_count;
  remote->connections =
      static_cast<Connection**>(palloc(sizeof(Connection*) * relation->server_count));
  for (int i = 0; i < remote->count; ++i)
    remote->connections[i] = find_connection(relation->servers[i], relation->owner);
  remote->opened = static_cast<uint64*>(palloc0(sizeof(uint64) * relation->server_count));
  remote->look_again = static_cast<int64*>(palloc0(sizeof(int64) * relation->server_count));
  remote->work =
      static_cast<SliceCounts*>(palloc0(sizeof(SliceCounts) * remote->parameters.slices));
  SliceDefinition* slices = &remote->slices;
  slices->schema = get_namespace_name(get_rel_namespace(relation->relid));
  slices->name = relation->name;
  slices->conflict = name_of(relation->options.conflict);
  slices->persistence = name_of(relation->options.persistence);
  remote->filter = quote_qualified_identifier(slices->schema, slices->name);
  return remote;
}

const char* look_up_definition(const RemoteFilter* remote, int server) {
  const char* found = nullptr;
  bool made;
  Connection* connection = remote->connections[server];
  ask_again_if_ended(connection, [&] {
    return (found = define_slices(connection, &remote->slices, &made)) != nullptr;
  });
  return found;
}

void raise_needs_server(const RemoteFilter* remote, int server, const char* what) {
  ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("cannot %s filter \"%s\" now", what, remote->relation->name),
          errdetail("Server \"%s\" is lost.", remote->connections[server]->name),
          errhint("Repeat it when the server is back."));
}

void check_slice_definitions(const FilterRelation* relation) {
  const RemoteFilter* remote = make_remote_filter(relation);
  for (int i = 0; i < remote->count; ++i) definition_on(remote, i);
}

// A new or rebuilt server must not bring its own seed while others have one: draws a new seed only
// if all servers say that they have none.
void learn_seed(RemoteFilter* remote) {
  if (remote->seed_known) return;
  forget_lost_time();
  connect_together(remote->connections, remote->count);
  bool all_asked = true;
  for (int i = 0; i < remote->count && !remote->seed_known; ++i) {
    const char* found = look_up_definition(remote, i);
    all_asked &= found != nullptr;
    if (found != nullptr && found[0] != '\0')
      take_seed(remote, definition_in(found).parameters.seed);
  }
  if (remote->seed_known || !all_asked) return;
  if (!pg_strong_random(&remote->parameters.seed, sizeof remote->parameters.seed))
    ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random seed"));
  open_slices(remote, 0);
}

// Makes all relations if it makes one.
bool open_slices(RemoteFilter* remote, int server) {
  bool made = false;
  if (!open_on(remote, server, &made)) return false;
  if (!made) return true;
  auto* made_on = static_cast<bool*>(palloc0(sizeof(bool) * static_cast<Size>(remote->count)));
  made_on[server] = true;
  int former = -1;  // a server that had the filter before
  for (int i = 0; i < remote->count; ++i)
    if (i != server && open_on(remote, i, &made_on[i]) && !made_on[i]) former = i;
  for (int i = 0; former >= 0 && i < remote->count; ++i)
    if (made_on[i]) warn_of_missing_keys(remote, i, former);
  pfree(made_on);
  return true;
}

bool has_unreachable_slices(const RemoteFilter* remote) {
  for (int i = 0; i < remote->count; ++i)
    if (is_unreachable(remote->connections[i])) return true;
  return false;
}

void note_changed(RemoteFilter* remote) {
  if (remote->changed) return;
  transaction_uses_filters = true;
  remote->changed = true;
  remote->next_changed = changed_filters;
  changed_filters = remote;
}

void end_changed_filters(bool committed) {
  for (RemoteFilter* remote = changed_filters; remote != nullptr; remote = remote->next_changed) {
    remote->changed = false;
    if (!committed || !has_lost_changes(remote) || comes_again(remote)) continue;
    RowCounts counts;
    counts[RowCount::unremembered] = 1;
    add_filter_counts(remote->relation->relid, counts);
  }
  changed_filters = nullptr;
}

void flush_slice_work(RemoteFilter* remote) {
  for (uint32 i = 0; i < remote->parameters.slices; ++i) {
    SliceCounts* counts = &remote->work[i];
    if (!counts->any()) continue;
    add_slice_counts(remote->relation->relid, i, *counts);
    *counts = {};
  }
}

// ---- ALTER --------------------------------------------------------------------------------------

namespace {

// The filter, with connections to all servers that are there.
RemoteFilter* reach_parts(const FilterRelation* relation) {
  RemoteFilter* remote = make_remote_filter(relation);
  forget_lost_time();
  connect_together(remote->connections, remote->count);
  return remote;
}

// Who owns the relation on the server? Raises if the server is lost.
Ownership owner_at(RemoteFilter* remote, int server, const char* relation, const char* what) {
  Connection* connection = remote->connections[server];
  Ownership found;
  if (!ask_again_if_ended(connection, [&] { return read_owner(connection, relation, &found); }))
    raise_needs_server(remote, server, what);
  return found;
}

// ---- DROP ---------------------------------------------------------------------------------------

void alter_at(RemoteFilter* remote, int server, const char* command, const char* what) {
  if (!change_slices(remote->connections[server], command))
    raise_needs_server(remote, server, what);
}

void say_stays(const RemoteFilter* remote, int server, const char* relation, const char* detail) {
  ereport(
      NOTICE,
      errmsg("filter \"%s\" stays on server \"%s\" as it is", remote->relation->name,
             remote->connections[server]->name),
      errdetail_internal("%s", detail),
      errhint("Where no producer uses it any more, type there: DROP FOREIGN TABLE %s.", relation));
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
  const bool is_own = found.identity != nullptr &&
                      strcmp(found.identity, identity_of_filter(remote->relation->relid)) == 0;
  if (found.owned == Owned::by_us && is_own) return true;
  say_stays(remote, server, remote->filter,
            is_own ? _("It belongs to another role there than the one that the user mapping names.")
                   : _("It was made by another producer."));
  return false;
}

// ---- RENAME -------------------------------------------------------------------------------------

// Says so if the relation of the former name stays.
void rename_at(RemoteFilter* remote, int server, const char* schema, const char* name) {
  const char *to_schema = remote->slices.schema, *to_name = remote->slices.name;
  const char* relation = quote_qualified_identifier(schema, name);
  const Ownership found = owner_at(remote, server, relation, "rename");
  if (found.owned == Owned::by_others)
    say_stays(remote, server, relation,
              _("It belongs to another role there than the one that the user mapping names."));
  if (found.owned != Owned::by_us) return;
  if (strcmp(name, to_name) != 0)
    alter_at(remote, server,
             psprintf("ALTER FOREIGN TABLE %s RENAME TO %s", relation, quote_identifier(to_name)),
             "rename");
  if (strcmp(schema, to_schema) != 0)
    alter_at(remote, server,
             psprintf("ALTER FOREIGN TABLE %s SET SCHEMA %s",
                      quote_qualified_identifier(schema, to_name), quote_identifier(to_schema)),
             "rename");
}

// ---- functions of the parts ---------------------------------------------------------------------

// Adds the function's result on that server, if the relation is there.
void call_at(RemoteFilter* remote, int server, const HolderFunction& function, uint64* sum) {
  const char* found = look_up_definition(remote, server);
  if (found != nullptr && found[0] == '\0') return;
  if (found == nullptr ||
      !call_slices(remote->connections[server], function.name, remote->filter, sum))
    raise_needs_server(remote, server, function.what);
}

void say_renamed(const RemoteFilter* remote) {
  ereport(NOTICE, errmsg("filter \"%s\" is renamed on its servers, too", remote->relation->name),
          errhint("Rename it on each other producer, too: otherwise that one starts with an empty "
                  "filter of the former name."));
}

}  // namespace

void alter_on_holders(const FilterRelation* relation) {
  RemoteFilter* remote = reach_parts(relation);
  for (int i = 0; i < remote->count; ++i) {
    const Ownership found = owner_at(remote, i, remote->filter, "alter");
    if (found.owned == Owned::absent) continue;
    SliceDefinition to = remote->slices;
    to.producer = describe_producer(relation, i, found.identity);
    if (!alter_slices(remote->connections[i], remote->filter, &to))
      raise_needs_server(remote, i, "alter");
  }
}

void rename_on_holders(const FilterRelation* relation, const char* schema, const char* name) {
  RemoteFilter* remote = reach_parts(relation);
  for (int i = 0; i < remote->count; ++i) rename_at(remote, i, schema, name);
  say_renamed(remote);
}

void drop_on_holders(const FilterRelation* relation) {
  RemoteFilter* remote = reach_parts(relation);
  for (int i = 0; i < remote->count; ++i)
    if (may_drop_at(remote, i))
      alter_at(remote, i, psprintf("DROP FOREIGN TABLE %s", remote->filter), "drop");
}

uint64 call_on_holders(const FilterRelation* relation, const HolderFunction& function) {
  RemoteFilter* remote = reach_parts(relation);
  uint64 sum = 0;
  for (int i = 0; i < remote->count; ++i) call_at(remote, i, function, &sum);
  return sum;
}

}  // namespace streamfilter::pg
