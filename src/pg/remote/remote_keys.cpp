// A key has one or several probes (slicing.hpp), each with its own hash, on some server. One probe
// is tested and set by one message. With several, a new key is first reserved in one of them, the
// primary probe, before it is inserted in the others; so of two transactions that add a key at
// once, one finds the other.
//
// The primary probe is the reachable one on the first server in the filter's list, and that server
// commits after the others: a session that no longer finds the reservation finds the bits
// everywhere. Servers without reservations commit together, before those with one.
#include "pg/server/postgres.hpp"

#include <algorithm>

#include "core/filter/filter.hpp"
#include "core/format/slicing.hpp"
#include "pg/remote/part_definition.hpp"
#include "pg/remote/postgres_fdw_filter.hpp"
#include "pg/remote/remote_keys.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/remote/slice_places.hpp"
#include "pg/server/monotonic.hpp"

namespace streamfilter::pg {
namespace {

// Limit for follow-ups of a batch to slices that have moved again.
constexpr int kMaxFollowed = 16;
constexpr int kLeastInOrder = 1000, kMostInOrder = 16'000;  // ms

enum class Bits : uint8 { unknown, unset, set, unreachable, taken };

// A probe of a key.
struct ProbeState {
  uint64 hash;  // as its server gets it
  uint32 slice;
  int server;
  Bits bits;
  bool wanted;  // ask in the next round
};

struct ProbeBatch {
  RemoteFilter* remote;
  const Element* elements;
  int count;           // of keys
  int probes;          // of each key
  unsigned bits;       // of each probe
  ProbeState* states;  // all probes of all keys, probe by probe
  bool slice_lost;
};

ProbeState* probe_state(const ProbeBatch* batch, int key, int probe) {
  return &batch->states[key * batch->probes + probe];
}

// A hash, derived from `hash`, that slice_of() maps to slice `index` of `slices`.
uint64 hash_in_slice(uint64 hash, uint32 index, uint32 slices) {
  const unsigned __int128 below =
      (static_cast<unsigned __int128>(index) << 64) + Min(mix64(hash), PG_UINT64_MAX - slices + 1);
  return static_cast<uint64>((below + slices - 1) / slices);
}

// False: a server on the way is unreachable.
bool find_moved_slices(RemoteFilter* remote) {
  const uint32 all = remote->parameters.slices;
  auto* slices = static_cast<uint32*>(palloc(sizeof(uint32) * all));
  int count = 0;
  for (uint32 i = 0; i < all; ++i)
    if (remote->to_find[i]) slices[count++] = i;
  if (find_places(remote, slices, count) == PlaceSearch::unreachable) return false;
  memset(remote->to_find, 0, sizeof(bool) * all);
  remote->any_to_find = false;
  return true;
}

// The hash that travels finds the slice among those of its first server.
void locate(const ProbeBatch* batch) {
  const RemoteFilter* remote = batch->remote;
  const bool is_cut = remote->home_count > 1;
  for (int key = 0; key < batch->count; ++key)
    for (int i = 0; i < batch->probes; ++i) {
      ProbeState* probe = probe_state(batch, key, i);
      const uint64 hash = batch->elements[key].hash;
      const KeyProbe found = is_cut ? probe_of(remote->parameters, hash, static_cast<unsigned>(i))
                                    : KeyProbe{slice_of(remote->parameters, hash), hash};
      probe->slice = found.slice;
      probe->server = remote->places[found.slice].server;
      probe->bits = Bits::unknown;
      probe->wanted = false;
      const int home = home_of(remote, found.slice);
      probe->hash = is_cut ? hash_in_slice(found.hash, number_at_home(remote, found.slice),
                                           slices_on(remote, home))
                           : hash;
    }
}

// After changes within a transaction on a server, it is too late to follow a slice that turns out
// to have moved. So a session learns the places of a new definition before.
void look_for_places(RemoteFilter* remote) {
  remote->looked = true;
  bool any_changed = false;
  for (int i = 0; i < remote->count; ++i) any_changed |= remote->connections[i]->changed;
  if (!any_changed || !may_move_slices(remote->relation)) return;
  for (int i = 0; i < remote->home_count; ++i)
    if (const auto slice = static_cast<uint32>(i); slice < remote->parameters.slices)
      find_places(remote, &slice, 1);
}

// A single server does all the slicing itself.
ProbeBatch* make_batch(RemoteFilter* remote, const Element* elements, int count) {
  if (unlikely(!remote->looked)) look_for_places(remote);
  if (unlikely(remote->any_to_find)) find_moved_slices(remote);
  const Parameters& parameters = remote->parameters;
  forget_lost_time();
  auto* batch = static_cast<ProbeBatch*>(palloc0(sizeof(ProbeBatch)));
  batch->remote = remote;
  batch->elements = elements;
  batch->count = count;
  batch->probes = remote->home_count == 1 ? 1 : static_cast<int>(probes(parameters));
  const OptionSpec* k = find_k(parameters);
  const auto all = k != nullptr ? static_cast<unsigned>(parameters.integer(k->word)) : 1;
  batch->bits = Max(all / static_cast<unsigned>(batch->probes), 1u);
  batch->states = static_cast<ProbeState*>(
      palloc(sizeof(ProbeState) * static_cast<Size>(count) * static_cast<Size>(batch->probes)));
  batch->slice_lost = has_unreachable_slices(remote);
  locate(batch);
  return batch;
}

// ---- rounds: one call to each server ------------------------------------------------------------

// The wanted probes of one server.
struct Share {
  ProbeState** states;
  RemoteCall call;
};

Bits bits_of(Answer answer) {
  return answer == Answer::yes ? Bits::set : answer == Answer::no ? Bits::unset : Bits::taken;
}

// Unmoved slices first, then slice by slice, so that the elements of a relation are together, and
// those of a key in order.
bool comes_before(const RemoteFilter* remote, const ProbeState* a, const ProbeState* b) {
  const auto number = [&](const ProbeState* probe) {
    return remote->places[probe->slice].epoch == 0 ? 0 : uint64{probe->slice} + 1;
  };
  return number(a) != number(b) ? number(a) < number(b) : a < b;
}

bool is_in_one_relation(const RemoteFilter* remote, const ProbeState* a, const ProbeState* b) {
  return a->slice == b->slice ||
         (remote->places[a->slice].epoch == 0 && remote->places[b->slice].epoch == 0);
}

// Adds the elements of a call, sorted by `states`, as parts of one relation each.
void add_parts(const RemoteFilter* remote, Share* share) {
  RemoteCall* call = &share->call;
  auto* parts = static_cast<CallPart*>(palloc(sizeof(CallPart) * static_cast<Size>(call->count)));
  for (int i = 0; i < call->count; ++i) {
    const ProbeState* probe = share->states[i];
    if (i == 0 || !is_in_one_relation(remote, share->states[i - 1], probe)) {
      const SlicePlace& place = remote->places[probe->slice];
      parts[call->part_count++] = {relation_at(remote, probe->slice, place), 0, place.epoch > 0};
    }
    ++parts[call->part_count - 1].count;
  }
  call->parts = parts;
}

Share collect(ProbeBatch* batch, Call call, int server) {
  RemoteFilter* remote = batch->remote;
  const int most = batch->count * batch->probes;
  Share share{};
  int count = 0;
  bool any_moved = false;
  for (int i = 0; i < most; ++i)
    count += batch->states[i].wanted && batch->states[i].server == server;
  if (count == 0) return share;
  share.states = static_cast<ProbeState**>(palloc(sizeof(ProbeState*) * static_cast<Size>(count)));
  share.call.elements = static_cast<Element*>(palloc(sizeof(Element) * static_cast<Size>(count)));
  share.call.answers = static_cast<Answer*>(palloc(sizeof(Answer) * static_cast<Size>(count)));
  for (int i = 0; i < most; ++i) {
    ProbeState* probe = &batch->states[i];
    if (!probe->wanted || probe->server != server) continue;
    probe->wanted = false;
    any_moved |= remote->places[probe->slice].epoch > 0;
    share.states[share.call.count++] = probe;
  }
  if (any_moved)
    std::sort(share.states, share.states + count,
              [&](const ProbeState* a, const ProbeState* b) { return comes_before(remote, a, b); });
  for (int i = 0; i < count; ++i) {
    share.call.elements[i] = batch->elements[(share.states[i] - batch->states) / batch->probes];
    share.call.elements[i].hash = share.states[i]->hash;
  }
  add_parts(remote, &share);
  share.call.connection = remote->connections[server];
  share.call.call = call;
  share.call.with_time = uses_time(remote->parameters);
  share.call.with_importance = uses_importance(remote->parameters);
  return share;
}

// Once per session of the server.
void warn_of_overfull(const RemoteFilter* remote, Connection* connection) {
  connection->overfull = false;
  const char* name = quote_identifier(remote->relation->name);
  ereport(
      WARNING, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
      errmsg("filter \"%s\" holds more keys on server \"%s\" than its false-positive rate allows",
             remote->relation->name, connection->name),
      errhint("Give it more memory, with ALTER FOREIGN TABLE %s OPTIONS (SET memory ...), or "
              "empty it, with TRUNCATE %s.",
              name, name));
}

void warn_of_late(const RemoteFilter* remote, Connection* connection) {
  connection->late = false;
  ereport(WARNING, errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
          errmsg("an event comes too late for filter \"%s\" on server \"%s\"",
                 remote->relation->name, connection->name),
          errdetail("Its time is before the filter's window and lateness. It passes and is not "
                    "remembered."),
          errhint("Look at the times that come in (column late of streamfilter_stats there counts "
                  "such events), or set option lateness."));
}

void take_answers(ProbeBatch* batch, const Share* share, bool unreachable) {
  SliceWork* work = batch->remote->work;
  for (int i = 0; i < share->call.count; ++i) {
    ProbeState* probe = share->states[i];
    probe->bits = unreachable ? Bits::unreachable : bits_of(share->call.answers[i]);
    ++work[probe->slice].counts[unreachable ? SliceCount::unanswered : SliceCount::answered];
  }
  if (unreachable) {
    batch->slice_lost = true;
    return;
  }
  if (unlikely(share->call.connection->overfull))
    warn_of_overfull(batch->remote, share->call.connection);
  if (unlikely(share->call.connection->late)) warn_of_late(batch->remote, share->call.connection);
  SliceCounts& first = work[share->states[0]->slice].counts;
  ++first[SliceCount::messages];
  first[SliceCount::bytes_sent] += share->call.sent;
  first[SliceCount::bytes_received] += share->call.received;
}

// Shares of one round that are not answered yet.
struct Round {
  Share* shares;
  int count;
};

Round make_round(ProbeBatch* batch, Call call) {
  const int servers = batch->remote->count;
  Round round = {static_cast<Share*>(palloc(sizeof(Share) * static_cast<Size>(servers))), 0};
  for (int server = 0; server < servers; ++server) {
    const Share share = collect(batch, call, server);
    if (share.call.count > 0) round.shares[round.count++] = share;
  }
  return round;
}

// Connect in parallel, so that dead servers time out together.
void connect_round(const Round* round) {
  int wanting = 0;
  for (int i = 0; i < round->count; ++i) wanting += !stands(round->shares[i].call.connection);
  if (likely(wanting < 2)) return;
  auto** connections =
      static_cast<Connection**>(palloc(sizeof(Connection*) * static_cast<Size>(round->count)));
  for (int i = 0; i < round->count; ++i) connections[i] = round->shares[i].call.connection;
  connect_together(connections, round->count);
}

// See the order of commits above.
void order_commit(Connection* connection, Call call, int server) {
  if (call == Call::reserve) {
    connection->rank = connection->reserves ? Max(connection->rank, server) : server;
    connection->reserves = true;
  } else if (!connection->reserves) {
    connection->rank = PG_INT32_MAX;
  }
}

// Checks the place of a moved slice once per connection. False: the server is unreachable.
bool check_moved_places(RemoteFilter* remote, const Share* share) {
  for (int i = 0; i < share->call.count; ++i) {
    const uint32 slice = share->states[i]->slice;
    if (remote->places[slice].epoch > 0 && !check_place(remote, slice)) return false;
  }
  return true;
}

// Keeps the shares with ready servers; answers the others without their servers.
void open_round(ProbeBatch* batch, Round* round) {
  connect_round(round);
  int kept = 0;
  for (int i = 0; i < round->count; ++i) {
    const Share& share = round->shares[i];
    const int server = share.states[0]->server;
    if (!batch->remote->seed_known || !open_slices(batch->remote, server) ||
        !check_moved_places(batch->remote, &share)) {
      take_answers(batch, &share, true);
      continue;
    }
    if (batch->probes > 1) order_commit(share.call.connection, share.call.call, server);
    round->shares[kept++] = share;
  }
  round->count = kept;
}

void undo_calls(const RemoteCall* calls, int count) {
  auto** connections =
      static_cast<Connection**>(palloc(sizeof(Connection*) * static_cast<Size>(count)));
  for (int i = 0; i < count; ++i) connections[i] = calls[i].connection;
  undo_savepoints_with_timeout(connections, count);
}

// Follows slices that have moved, and asks again; slices that cannot be followed now count as lost.
void follow(ProbeBatch* batch, const Share* share) {
  RemoteFilter* remote = batch->remote;
  if (!find_moved_slices(remote)) return take_answers(batch, share, true);
  for (int i = 0; i < share->call.count; ++i) {
    share->states[i]->server = remote->places[share->states[i]->slice].server;
    share->states[i]->wanted = true;
  }
}

// The transaction fails, and some connections with it: the next one finds out where the slices are.
[[noreturn]] void raise_moved(RemoteFilter* remote) {
  ereport(
      ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
      errmsg("slices of filter \"%s\" have moved within the transaction", remote->relation->name),
      errhint("Repeat the transaction."));
  pg_unreachable();
}

// Otherwise it may name too few servers, and could remake a relation that should say where slices
// are.
void check_may_follow(const RemoteFilter* remote) {
  if (may_move_slices(remote->relation)) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("slices of filter \"%s\" have moved", remote->relation->name),
          errdetail("Its definition here is that of before."),
          errhint("Name all of its servers, those that were added at the end: ALTER FOREIGN TABLE "
                  "... OPTIONS (SET servers '...', ADD home_servers '%d').",
                  remote->home_count));
}

// Result of a round.
enum class RoundEnd : uint8 {
  done,
  conflict,  // would have had to wait for long: nothing was done
  moved,     // some probes must be asked again, elsewhere
};

void note_to_find(ProbeBatch* batch, const Round* round, const RemoteCall* calls) {
  for (int i = 0; i < round->count; ++i)
    for (int j = 0; calls[i].moved && j < calls[i].count; ++j)
      batch->remote->to_find[round->shares[i].states[j]->slice] = batch->remote->any_to_find = true;
}

void ask_again(const Share* share) {
  for (int i = 0; i < share->call.count; ++i) share->states[i]->wanted = true;
}

// A round that gives up early does all or nothing. If a key has several probes, its primary one may
// have been the wrong choice, and then reservations and bits must be undone.
void follow_moved(ProbeBatch* batch, const Round* round, const RemoteCall* calls,
                  bool gives_up_early) {
  check_may_follow(batch->remote);
  if (gives_up_early) undo_calls(calls, round->count);
  note_to_find(batch, round, calls);
  if (batch->probes > 1 && calls[0].call != Call::test) raise_moved(batch->remote);
  for (int i = 0; i < round->count; ++i)
    if (calls[i].moved && !gives_up_early && !start_over(calls[i].connection))
      raise_moved(batch->remote);
  for (int i = 0; i < round->count; ++i)
    if (calls[i].moved)
      follow(batch, &round->shares[i]);
    else if (gives_up_early || calls[i].failure != Failure::none)
      ask_again(&round->shares[i]);
}

// Keeps the shares whose connection has failed.
RoundEnd call_round(ProbeBatch* batch, Round* round, bool gives_up_early) {
  auto* calls = static_cast<RemoteCall*>(
      palloc(sizeof(RemoteCall) * static_cast<Size>(Max(round->count, 1))));
  for (int i = 0; i < round->count; ++i) {
    calls[i] = round->shares[i].call;
    calls[i].gives_up_early = gives_up_early;
  }
  run_calls(calls, round->count);
  bool any_moved = false;
  for (int i = 0; i < round->count; ++i) {
    any_moved |= calls[i].moved;
    if (calls[i].conflict) {
      undo_calls(calls, round->count);
      return RoundEnd::conflict;
    }
  }
  int kept = 0;
  for (int i = 0; i < round->count && !(any_moved && gives_up_early); ++i) {
    Share share = round->shares[i];
    share.call = calls[i];
    if (share.call.failure == Failure::none && !share.call.moved)
      take_answers(batch, &share, false);
    else if (!any_moved)
      round->shares[kept++] = share;
  }
  if (any_moved) follow_moved(batch, round, calls, gives_up_early);
  round->count = kept;
  return any_moved ? RoundEnd::moved : RoundEnd::done;
}

// Runs rounds until all is answered, with the servers or without.
RoundEnd finish_round(ProbeBatch* batch, Round* round, bool gives_up_early) {
  for (int i = 0; i < kMaxAttempts && round->count > 0; ++i) {
    open_round(batch, round);
    const RoundEnd end = call_round(batch, round, gives_up_early);
    if (end != RoundEnd::done) return end;
  }
  if (round->count > 0) raise_always_ends(round->shares[0].call.connection);
  return RoundEnd::done;
}

RoundEnd run_one_by_one(ProbeBatch* batch, const Round* round) {
  RoundEnd end = RoundEnd::done;
  for (int i = 0; i < round->count; ++i) {
    Round single = {&round->shares[i], 1};
    if (finish_round(batch, &single, false) == RoundEnd::moved) end = RoundEnd::moved;
  }
  return end;
}

// If a connection fails and its server is reachable, connects again at once. All servers work at
// the same time, so two transactions could wait for each other on two of them, which no server can
// detect. Therefore no session waits long while servers reserve keys together; if it would have to
// wait, it gives up its reservations, and then reserves keys in the order of the list for some
// time, which doubles with each failed attempt at all at once.
RoundEnd reserve_together(ProbeBatch* batch, Round* round) {
  RemoteFilter* remote = batch->remote;
  if (remote->in_order_until != 0 && monotonic_us() < remote->in_order_until)
    return RoundEnd::conflict;
  const RoundEnd end = finish_round(batch, round, true);
  const bool met = end == RoundEnd::conflict;
  remote->in_order_for = met ? Min(Max(2 * remote->in_order_for, kLeastInOrder), kMostInOrder) : 0;
  remote->in_order_until = met ? add_ms(monotonic_us(), remote->in_order_for) : 0;
  return end;
}

// After reserving on the first server, a session meets few others on the rest, so it tries these
// together once more.
RoundEnd reserve_in_order(ProbeBatch* batch, Round* round) {
  if (round->count == 0) return RoundEnd::done;
  Round first = {round->shares, 1};
  const RoundEnd first_end = finish_round(batch, &first, false);
  Round rest = {round->shares + 1, round->count - 1};
  RoundEnd end = finish_round(batch, &rest, rest.count > 1);
  if (end == RoundEnd::conflict) end = run_one_by_one(batch, &rest);
  return first_end == RoundEnd::moved ? first_end : end;
}

void run_round(ProbeBatch* batch, Call call) {
  for (int i = 0; i < kMaxFollowed; ++i) {
    Round round = make_round(batch, call);
    const bool reserves = (call == Call::seen || call == Call::reserve) && round.count > 1;
    RoundEnd end = reserves ? reserve_together(batch, &round) : finish_round(batch, &round, false);
    if (end == RoundEnd::conflict) end = reserve_in_order(batch, &round);
    if (end == RoundEnd::done) return;
  }
  raise_moved(batch->remote);
}

// ---- what is known of a key ---------------------------------------------------------------------

ProbesSeen probes_seen(const ProbeBatch* batch, int key) {
  ProbesSeen seen;
  seen.slice_lost = batch->slice_lost;
  for (int i = 0; i < batch->probes; ++i) switch (probe_state(batch, key, i)->bits) {
      case Bits::set: seen.set += batch->bits; break;
      case Bits::unset: seen.unset += batch->bits; break;
      case Bits::unreachable: seen.lost += batch->bits; break;
      default: break;
    }
  return seen;
}

bool is_taken(const ProbeBatch* batch, int key) {
  for (int i = 0; i < batch->probes; ++i)
    if (probe_state(batch, key, i)->bits == Bits::taken) return true;
  return false;
}

bool was_seen(const ProbeBatch* batch, int key) {
  const LostSlice& lost = batch->remote->relation->options.lost_slice;
  return is_taken(batch, key) || is_repeat(probes_seen(batch, key), lost.rule, lost.least);
}

// ---- keys with several probes -------------------------------------------------------------------

// Asks all probes, or one after the other while they can make the key a repeat.
void ask_probes(ProbeBatch* batch) {
  const RelationOptions& options = batch->remote->relation->options;
  const bool in_turn = options.probe == Probe::pipelined;
  for (int first = 0; first < batch->probes; first += in_turn ? 1 : batch->probes) {
    for (int key = 0; key < batch->count; ++key) {
      if (!may_be_repeat(probes_seen(batch, key), options.lost_slice.rule)) continue;
      for (int i = first; i < (in_turn ? first + 1 : batch->probes); ++i)
        probe_state(batch, key, i)->wanted = true;
    }
    run_round(batch, Call::test);
  }
}

// The probe where a new key is reserved; -1: none is reachable.
int find_primary(const ProbeBatch* batch, int key) {
  int primary = -1;
  for (int i = 0; i < batch->probes; ++i) {
    const ProbeState* probe = probe_state(batch, key, i);
    if (probe->bits == Bits::unreachable || batch->remote->connections[probe->server]->lost)
      continue;
    if (primary < 0 || probe->server < probe_state(batch, key, primary)->server) primary = i;
  }
  return primary;
}

void reserve_and_insert(ProbeBatch* batch, const bool* seen) {
  auto* primaries = static_cast<int*>(palloc(sizeof(int) * static_cast<Size>(batch->count)));
  for (int key = 0; key < batch->count; ++key) {
    primaries[key] = seen[key] ? -1 : find_primary(batch, key);
    if (primaries[key] >= 0) probe_state(batch, key, primaries[key])->wanted = true;
  }
  run_round(batch, Call::reserve);
  for (int key = 0; key < batch->count; ++key)
    for (int i = 0; i < batch->probes && !seen[key] && !is_taken(batch, key); ++i)
      probe_state(batch, key, i)->wanted =
          i != primaries[key] && probe_state(batch, key, i)->bits != Bits::unreachable;
  run_round(batch, Call::put);
}

void answer_all(const ProbeBatch* batch, bool* seen) {
  for (int key = 0; key < batch->count; ++key) seen[key] = was_seen(batch, key);
}

// One round for all keys with one probe each.
void run_single(ProbeBatch* batch, Call call) {
  for (int key = 0; key < batch->count; ++key) probe_state(batch, key, 0)->wanted = true;
  run_round(batch, call);
}

// Follows a slice that moves on before it is locked.
void truncate_at(RemoteFilter* remote, uint32 slice, SlicePlace place) {
  for (;;) {
    SlicePlace next;
    bool missing = false;
    Connection* connection = remote->connections[place.server];
    if (!open_slices(remote, place.server) ||
        !truncate_slices(connection, relation_at(remote, slice, place)) ||
        (!next_place(remote, slice, place, &next, &missing) && !missing))
      raise_needs_server(remote, place.server, "truncate");
    if (missing || next.epoch == place.epoch) return;
    place = next;
  }
}

// The slices' first places are locked by now, and know where the slices are.
void truncate_moved_slices(RemoteFilter* remote) {
  for (uint32 i = 0; i < remote->parameters.slices; ++i) {
    if (find_places(remote, &i, 1) == PlaceSearch::unreachable)
      raise_needs_server(remote, remote->places[i].server, "truncate");
    if (remote->places[i].epoch > 0) truncate_at(remote, i, remote->places[i]);
  }
}

// A batch's memory.
class Scratch {
 public:
  static MemoryContext enter() {
    if (context_ == nullptr)
      context_ = AllocSetContextCreate(TopMemoryContext, "streamfilter remote keys",
                                       ALLOCSET_DEFAULT_SIZES);
    MemoryContextReset(context_);
    return MemoryContextSwitchTo(context_);
  }

 private:
  static MemoryContext context_;
};
MemoryContext Scratch::context_ = nullptr;

// Number of keys that can be asked together: each of their probes may be in a relation of its own.
int most_keys(const RemoteFilter* remote) {
  return Max(kMaxParts / static_cast<int>(probes(remote->parameters)), 1);
}

void test_and_insert_batch(RemoteFilter* remote, const Element* elements, int count, bool* seen) {
  MemoryContext caller = Scratch::enter();
  ProbeBatch* batch = make_batch(remote, elements, count);
  if (batch->probes == 1) {
    run_single(batch, Call::seen);
  } else {
    ask_probes(batch);
    answer_all(batch, seen);
    reserve_and_insert(batch, seen);
  }
  answer_all(batch, seen);
  remote->answered_in_full &= !batch->slice_lost;
  MemoryContextSwitchTo(caller);
}

}  // namespace

void test_and_insert_remote_keys(RemoteFilter* remote, const Element* elements, int count,
                                 bool* seen) {
  if (remote->fdw_filter != nullptr) {
    for (int i = 0; i < count; ++i)
      seen[i] = test_and_insert_postgres_fdw_key(remote->fdw_filter, elements[i]);
    return;
  }
  note_changed(remote);
  remote->answered_in_full = true;
  const int most = most_keys(remote);
  for (int first = 0; first < count; first += most)
    test_and_insert_batch(remote, elements + first, Min(most, count - first), seen + first);
}

bool test_remote_key(RemoteFilter* remote, const Element& element) {
  if (remote->fdw_filter != nullptr) return test_postgres_fdw_key(remote->fdw_filter, element);
  MemoryContext caller = Scratch::enter();
  ProbeBatch* batch = make_batch(remote, &element, 1);
  ask_probes(batch);
  const bool seen = was_seen(batch, 0);
  MemoryContextSwitchTo(caller);
  return seen;
}

bool erase_remote_key(RemoteFilter* remote, const Element& element) {
  note_changed(remote);
  MemoryContext caller = Scratch::enter();
  ProbeBatch* batch = make_batch(remote, &element, 1);
  run_single(batch, Call::erase);
  const ProbeState* probe = probe_state(batch, 0, 0);
  MemoryContextSwitchTo(caller);
  if (probe->bits == Bits::unreachable)
    raise_needs_server(remote, probe->server, "delete a key from");
  return probe->bits == Bits::set;
}

void reset_remote_filter(RemoteFilter* remote) {
  note_changed(remote);
  for (int i = 0; i < remote->home_count; ++i)
    if (remote->retired[i]) {
      continue;
    } else if (!open_slices(remote, i) || !truncate_slices(remote->connections[i], remote->filter))
      raise_needs_server(remote, i, "truncate");
  if (may_move_slices(remote->relation)) truncate_moved_slices(remote);
}

Datum fetch_remote_value(RemoteFilter* remote, Oid type) {
  Assert(remote->count == 1);
  StringInfoData bytes;
  initStringInfo(&bytes);
  if (!open_slices(remote, 0) ||
      !fetch_value(remote->connections[0], remote->filter, remote->parameters.memory, &bytes))
    ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
            errmsg("the state of filter \"%s\" cannot be read now", remote->relation->name),
            errdetail("Server \"%s\" is lost.", remote->connections[0]->name));
  Oid function, io_param;
  getTypeBinaryInputInfo(type, &function, &io_param);
  return OidReceiveFunctionCall(function, &bytes, io_param, -1);
}

}  // namespace streamfilter::pg
