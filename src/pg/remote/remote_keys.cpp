// Keys are asked for in rounds: one message to each server with a wanted probe, all at once. A
// round ends with an answer for every probe, on a new connection if one has ended, or with
// `unreachable`, and option lost_slice says what that means. A key has one or several probes
// (layout.hpp), each on some server. With one, a single round tests and inserts it. With several:
//
// 1. test (ask_probes): a key whose bits are all set is a repeat, and is not asked for again.
// 2. reserve: a new key is reserved in one of its probes, the primary one. Of two transactions that
//    add it at once, one meets the other there.
// 3. put: the other probes are set. Their answers count: they have what step 2 has waited for.
//
// The primary probe is the reachable one on the first server in the filter's list, and that server
// commits after the others (order_commit): who no longer meets the reservation finds the bits
// everywhere. Servers without reservations commit together, before those with one. A server has one
// rank in a transaction, the highest of its places in lists; so the order is sure for one filter,
// and for several whose lists have their servers at the same places.
//
// While all servers reserve at once, two transactions may wait for each other on two of them, which
// no server can detect. So nobody waits long in such a round: who would have to rolls it back, and
// reserves in the order of the list, for a time that doubles from one failure to the next. Two
// batches then make no circle; transactions of several may, until lock_timeout there.
#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "pg/remote/remote_keys.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

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

// The hash that travels finds the slice among those of its server.
void locate(const ProbeBatch* batch) {
  const RemoteFilter* remote = batch->remote;
  const bool is_cut = remote->count > 1;
  for (int key = 0; key < batch->count; ++key)
    for (int i = 0; i < batch->probes; ++i) {
      ProbeState* probe = probe_state(batch, key, i);
      const uint64 hash = batch->elements[key].hash;
      const KeyProbe found = is_cut ? probe_of(remote->parameters, hash, static_cast<unsigned>(i))
                                    : KeyProbe{slice_of(remote->parameters, hash), hash};
      probe->slice = found.slice;
      probe->server = server_of_slice(remote, found.slice);
      probe->bits = Bits::unknown;
      probe->wanted = false;
      probe->hash = is_cut ? hash_in_slice(found.hash, number_on_server(remote, found.slice),
                                           slices_on(remote, probe->server))
                           : hash;
    }
}

// A single server does all the slicing itself.
ProbeBatch* make_batch(RemoteFilter* remote, const Element* elements, int count) {
  const Parameters& parameters = remote->parameters;
  forget_lost_time();
  auto* batch = static_cast<ProbeBatch*>(palloc0(sizeof(ProbeBatch)));
  batch->remote = remote;
  batch->elements = elements;
  batch->count = count;
  batch->probes = remote->count == 1 ? 1 : static_cast<int>(probes(parameters));
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

Share collect(ProbeBatch* batch, Call call, int server) {
  RemoteFilter* remote = batch->remote;
  const int most = batch->count * batch->probes;
  Share share{};
  int count = 0;
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
    share.states[share.call.count++] = probe;
  }
  for (int i = 0; i < count; ++i) {
    share.call.elements[i] = batch->elements[(share.states[i] - batch->states) / batch->probes];
    share.call.elements[i].hash = share.states[i]->hash;
  }
  share.call.relation = remote->filter;
  share.call.connection = remote->connections[server];
  share.call.call = call;
  share.call.with_time = uses_time(remote->parameters);
  share.call.with_importance = uses_importance(remote->parameters);
  return share;
}

// Once per session of the server.
void warn_of_overfull(const RemoteFilter* remote, Connection* connection) {
  connection->overfull = false;
  ereport(
      WARNING, errcode(kOverfullFilter),
      errmsg("filter \"%s\" holds more keys on server \"%s\" than its false-positive rate allows",
             remote->relation->name, connection->name),
      errhint("Empty it with TRUNCATE %s, or make a larger filter and fill it with "
              "streamfilter_warm().",
              quote_identifier(remote->relation->name)));
}

void warn_of_late_keys(const RemoteFilter* remote, Connection* connection) {
  connection->late = false;
  ereport(WARNING, errcode(kLateEvent),
          errmsg("an event comes too late for filter \"%s\" on server \"%s\"",
                 remote->relation->name, connection->name),
          errdetail("Its time is before the filter's window and lateness. It passes and is not "
                    "remembered."),
          errhint("Look at the times that come in (column late of streamfilter_stats there counts "
                  "such events), or set option lateness."));
}

void take_answers(ProbeBatch* batch, const Share* share, bool unreachable) {
  SliceCounts* work = batch->remote->work;
  const bool may_fail = batch->remote->relation->options.lost_slice.rule == LostRule::error;
  if (unlikely(may_fail) && unreachable)
    raise_needs_server(batch->remote, share->states[0]->server, "ask");
  for (int i = 0; i < share->call.count; ++i) {
    ProbeState* probe = share->states[i];
    probe->bits = unreachable ? Bits::unreachable : bits_of(share->call.answers[i]);
    ++work[probe->slice][unreachable ? SliceCount::unanswered : SliceCount::answered];
  }
  if (unreachable) {
    batch->slice_lost = true;
    return;
  }
  share->call.connection->required |= may_fail && share->call.call != Call::test;
  if (unlikely(share->call.connection->overfull))
    warn_of_overfull(batch->remote, share->call.connection);
  if (unlikely(share->call.connection->late))
    warn_of_late_keys(batch->remote, share->call.connection);
  SliceCounts& first = work[share->states[0]->slice];
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

// Keeps the shares with ready servers; answers the others without their servers.
void open_round(ProbeBatch* batch, Round* round) {
  connect_round(round);
  int kept = 0;
  for (int i = 0; i < round->count; ++i) {
    const Share& share = round->shares[i];
    const int server = share.states[0]->server;
    if (!batch->remote->seed_known || !open_slices(batch->remote, server)) {
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

// Keeps the shares whose connection has failed. False: it would have had to wait for long, and
// nothing was done.
bool call_round(ProbeBatch* batch, Round* round, bool gives_up_early) {
  auto* calls = static_cast<RemoteCall*>(
      palloc(sizeof(RemoteCall) * static_cast<Size>(Max(round->count, 1))));
  for (int i = 0; i < round->count; ++i) {
    calls[i] = round->shares[i].call;
    calls[i].gives_up_early = gives_up_early;
  }
  run_calls(calls, round->count);
  for (int i = 0; i < round->count; ++i)
    if (calls[i].conflict) {
      undo_calls(calls, round->count);
      return false;
    }
  int kept = 0;
  for (int i = 0; i < round->count; ++i) {
    Share share = round->shares[i];
    share.call = calls[i];
    if (share.call.failure == Failure::none)
      take_answers(batch, &share, false);
    else
      round->shares[kept++] = share;
  }
  round->count = kept;
  return true;
}

// Runs rounds until all is answered, with the servers or without. False: as call_round.
bool finish_round(ProbeBatch* batch, Round* round, bool gives_up_early) {
  for (int i = 0; i < kMaxAttempts && round->count > 0; ++i) {
    open_round(batch, round);
    if (!call_round(batch, round, gives_up_early)) return false;
  }
  if (round->count > 0) raise_always_ends(round->shares[0].call.connection);
  return true;
}

void run_one_by_one(ProbeBatch* batch, const Round* round) {
  for (int i = 0; i < round->count; ++i) {
    Round single = {&round->shares[i], 1};
    finish_round(batch, &single, false);
  }
}

// False: the keys are to be reserved in the order of the list.
bool reserve_together(ProbeBatch* batch, Round* round) {
  RemoteFilter* remote = batch->remote;
  if (remote->in_order_until != 0 && monotonic_us() < remote->in_order_until) return false;
  const bool met = !finish_round(batch, round, true);
  remote->in_order_for = met ? Min(Max(2 * remote->in_order_for, kLeastInOrder), kMostInOrder) : 0;
  remote->in_order_until = met ? add_ms(monotonic_us(), remote->in_order_for) : 0;
  return !met;
}

// After reserving on the first server, a session meets few others on the rest, so it tries these
// together once more.
void reserve_in_order(ProbeBatch* batch, Round* round) {
  if (round->count == 0) return;
  Round first = {round->shares, 1};
  finish_round(batch, &first, false);
  Round rest = {round->shares + 1, round->count - 1};
  if (!finish_round(batch, &rest, rest.count > 1)) run_one_by_one(batch, &rest);
}

void run_round(ProbeBatch* batch, Call call) {
  Round round = make_round(batch, call);
  if ((call == Call::seen || call == Call::reserve) && round.count > 1) {
    if (!reserve_together(batch, &round)) reserve_in_order(batch, &round);
  } else {
    finish_round(batch, &round, false);
  }
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

// Switches to a batch's memory, and returns the context of the caller.
MemoryContext enter_scratch() {
  static MemoryContext context = nullptr;
  if (context == nullptr)
    context =
        AllocSetContextCreate(TopMemoryContext, "streamfilter remote keys", ALLOCSET_DEFAULT_SIZES);
  MemoryContextReset(context);
  return MemoryContextSwitchTo(context);
}

}  // namespace

void test_and_insert_remote_keys(RemoteFilter* remote, const Element* elements, int count,
                                 bool* seen) {
  note_changed(remote);
  MemoryContext caller = enter_scratch();
  ProbeBatch* batch = make_batch(remote, elements, count);
  if (batch->probes == 1) {
    run_single(batch, Call::seen);
  } else {
    ask_probes(batch);
    answer_all(batch, seen);
    reserve_and_insert(batch, seen);
  }
  answer_all(batch, seen);
  remote->answered_in_full = !batch->slice_lost;
  MemoryContextSwitchTo(caller);
}

bool test_remote_key(RemoteFilter* remote, const Element& element) {
  MemoryContext caller = enter_scratch();
  ProbeBatch* batch = make_batch(remote, &element, 1);
  ask_probes(batch);
  const bool seen = was_seen(batch, 0);
  MemoryContextSwitchTo(caller);
  return seen;
}

bool erase_remote_key(RemoteFilter* remote, const Element& element) {
  note_changed(remote);
  MemoryContext caller = enter_scratch();
  ProbeBatch* batch = make_batch(remote, &element, 1);
  run_single(batch, Call::erase);
  const ProbeState* probe = probe_state(batch, 0, 0);
  MemoryContextSwitchTo(caller);
  if (probe->bits == Bits::unreachable)
    raise_needs_server(remote, probe->server, "delete a key from");
  return probe->bits == Bits::set;
}

void take_back_remote_key(RemoteFilter* remote, const Element& element) {
  MemoryContext caller = enter_scratch();
  ProbeBatch* batch = make_batch(remote, &element, 1);
  for (int i = 0; i < batch->probes; ++i) probe_state(batch, 0, i)->wanted = true;
  run_round(batch, Call::take_back);
  MemoryContextSwitchTo(caller);
}

void reset_remote_filter(RemoteFilter* remote) {
  note_changed(remote);
  for (int i = 0; i < remote->count; ++i)
    if (!open_slices(remote, i) ||
        !change_slices(remote->connections[i], psprintf("TRUNCATE %s", remote->filter), false))
      raise_needs_server(remote, i, "truncate");
}

Datum fetch_remote_value(RemoteFilter* remote, Oid type) {
  Assert(remote->count == 1);
  TextBuffer bytes;
  if (!open_slices(remote, 0) ||
      !fetch_value(remote->connections[0], remote->filter, remote->parameters.memory, &bytes))
    raise_needs_server(remote, 0, "read the state of");
  Oid function, io_param;
  getTypeBinaryInputInfo(type, &function, &io_param);
  return OidReceiveFunctionCall(function, &bytes, io_param, -1);
}

}  // namespace streamfilter::pg
