// A key has one probe or several (sharding.hpp), each with a hash of its own, on some server. One
// probe is tested and set by one message. With several, new keys are reserved in one of them, the
// primary probe, before they are inserted in the others, so that of two transactions that add a key
// at once one finds the other.
//
// Primary is the probe within reach on the first server in the filter's list, and that server
// commits after the others: who does not find the reservation any more finds the bits everywhere.
// Servers on which nothing is reserved commit together, before those on which something is.
#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/timestamp.h"
}

#include "core/filter/filter.hpp"
#include "core/format/sharding.hpp"
#include "pg/remote/remote_keys.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/remote/wrapped_filter.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kLeastInOrder = 1000, kMostInOrder = 16'000;  // ms

enum class Bits : uint8 { unknown, unset, set, unreachable, taken };

// One probe of one key.
struct ProbeState {
  uint64 hash;  // as its server gets it
  uint32 slice;
  int server;
  Bits bits;
  bool wanted;  // in the next round
};

struct Batch {
  RemoteFilter* remote;
  const Element* elements;
  int count;           // of keys
  int probes;          // of each
  unsigned bits;       // of each probe
  ProbeState* states;  // probes after probes of the keys
  bool slice_lost;
};

ProbeState* state_of(const Batch* batch, int key, int probe) {
  return &batch->states[key * batch->probes + probe];
}

// A hash that slice_of() finds in slice `index` of `slices`, made of another.
uint64 hash_in_slice(uint64 hash, uint32 index, uint32 slices) {
  const unsigned __int128 below =
      (static_cast<unsigned __int128>(index) << 64) + Min(mix64(hash), PG_UINT64_MAX - slices + 1);
  return static_cast<uint64>((below + slices - 1) / slices);
}

void locate(const Batch* batch) {
  const RemoteFilter* remote = batch->remote;
  for (int key = 0; key < batch->count; ++key)
    for (int i = 0; i < batch->probes; ++i) {
      ProbeState* probe = state_of(batch, key, i);
      const uint64 hash = batch->elements[key].hash;
      const KeyProbe found = remote->count == 1
                                 ? KeyProbe{slice_of(remote->parameters, hash), hash}
                                 : probe_of(remote->parameters, hash, static_cast<unsigned>(i));
      probe->slice = found.slice;
      probe->server = static_cast<int>(found.slice % static_cast<uint32>(remote->count));
      probe->bits = Bits::unknown;
      probe->wanted = false;
      probe->hash =
          remote->count == 1
              ? hash
              : hash_in_slice(found.hash, found.slice / static_cast<uint32>(remote->count),
                              slices_on(remote, static_cast<uint32>(probe->server)));
    }
}

// A single server does all the slicing itself.
Batch* make_batch(RemoteFilter* remote, const Element* elements, int count) {
  const Parameters& parameters = remote->parameters;
  forget_lost_time();
  auto* batch = static_cast<Batch*>(palloc0(sizeof(Batch)));
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

Share collect(Batch* batch, Call call, int server) {
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
    share.call.elements[share.call.count] = batch->elements[i / batch->probes];
    share.call.elements[share.call.count].hash = probe->hash;
    share.states[share.call.count++] = probe;
  }
  share.call.connection = remote->connections[server];
  share.call.call = call;
  share.call.filter = remote->filter;
  share.call.with_time = uses_time(remote->parameters);
  share.call.with_importance = uses_importance(remote->parameters);
  return share;
}

void take_answers(Batch* batch, const Share* share, bool unreachable) {
  SliceCounts* counts = batch->remote->counts;
  for (int i = 0; i < share->call.count; ++i) {
    ProbeState* probe = share->states[i];
    probe->bits = unreachable ? Bits::unreachable : bits_of(share->call.answers[i]);
    ++(unreachable ? counts[probe->slice].unanswered : counts[probe->slice].answered);
  }
  if (unreachable) {
    batch->slice_lost = true;
    return;
  }
  SliceCounts* first = &counts[share->states[0]->slice];
  ++first->messages;
  first->sent += share->call.sent;
  first->received += share->call.received;
}

// The shares of one round that are not answered yet.
struct Round {
  Share* shares;
  int count;
};

Round make_round(Batch* batch, Call call) {
  const int servers = batch->remote->count;
  Round round = {static_cast<Share*>(palloc(sizeof(Share) * static_cast<Size>(servers))), 0};
  for (int server = 0; server < servers; ++server) {
    const Share share = collect(batch, call, server);
    if (share.call.count > 0) round.shares[round.count++] = share;
  }
  return round;
}

// One server that does not answer shall not be waited for after the other.
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
  if (call == Call::claim) {
    connection->rank = connection->claims ? Max(connection->rank, server) : server;
    connection->claims = true;
  } else if (!connection->claims) {
    connection->rank = PG_INT32_MAX;
  }
}

// Keeps the shares whose servers are ready; the others are answered without them.
void open_round(Batch* batch, Round* round) {
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
  undo_hasty_savepoints(connections, count);
}

// Keeps the shares whose connection has failed. False: a hasty round has met another transaction,
// and nothing is done.
bool call_round(Batch* batch, Round* round, bool hasty) {
  auto* calls = static_cast<RemoteCall*>(
      palloc(sizeof(RemoteCall) * static_cast<Size>(Max(round->count, 1))));
  for (int i = 0; i < round->count; ++i) {
    calls[i] = round->shares[i].call;
    calls[i].hasty = hasty;
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

// Until all is answered, with its server or without. False as above.
bool finish_round(Batch* batch, Round* round, bool hasty) {
  for (int i = 0; i < kMaxAttempts && round->count > 0; ++i) {
    open_round(batch, round);
    if (!call_round(batch, round, hasty)) return false;
  }
  if (round->count > 0) raise_always_ends(round->shares[0].call.connection);
  return true;
}

// A connection that fails is replaced at once where its server is within reach. All servers work at
// the same time, so two transactions could wait for each other on two of them, which no server
// sees. Therefore nobody waits long for others while servers reserve keys together; who meets
// others gives up what it has got, and reserves keys in the order of the list. So it does for a
// while, twice as long each time that all at once is tried in vain.
bool reserve_together(Batch* batch, Round* round) {
  RemoteFilter* remote = batch->remote;
  if (remote->in_order_until != 0 && GetCurrentTimestamp() < remote->in_order_until) return false;
  const bool done = finish_round(batch, round, true);
  remote->in_order_for = done ? 0 : Min(Max(2 * remote->in_order_for, kLeastInOrder), kMostInOrder);
  remote->in_order_until =
      done ? 0 : TimestampTzPlusMilliseconds(GetCurrentTimestamp(), remote->in_order_for);
  return done;
}

// Who has reserved keys on the first server meets few others on the rest of them, which therefore
// are tried together once more.
void reserve_in_order(Batch* batch, Round* round) {
  if (round->count == 0) return;
  Round first = {round->shares, 1};
  finish_round(batch, &first, false);
  Round rest = {round->shares + 1, round->count - 1};
  if (finish_round(batch, &rest, rest.count > 1)) return;
  for (int i = 0; i < rest.count; ++i) {
    Round single = {&rest.shares[i], 1};
    finish_round(batch, &single, false);
  }
}

void run_round(Batch* batch, Call call) {
  Round round = make_round(batch, call);
  const bool reserves = (call == Call::seen || call == Call::claim) && round.count > 1;
  if (!reserves)
    finish_round(batch, &round, false);
  else if (!reserve_together(batch, &round))
    reserve_in_order(batch, &round);
}

// ---- what is known of a key ---------------------------------------------------------------------

ProbesSeen probes_seen(const Batch* batch, int key) {
  ProbesSeen seen;
  seen.slice_lost = batch->slice_lost;
  for (int i = 0; i < batch->probes; ++i) switch (state_of(batch, key, i)->bits) {
      case Bits::set: seen.set += batch->bits; break;
      case Bits::unset: seen.unset += batch->bits; break;
      case Bits::unreachable: seen.lost += batch->bits; break;
      default: break;
    }
  return seen;
}

bool is_taken(const Batch* batch, int key) {
  for (int i = 0; i < batch->probes; ++i)
    if (state_of(batch, key, i)->bits == Bits::taken) return true;
  return false;
}

bool was_seen(const Batch* batch, int key) {
  const LostSlice& lost = batch->remote->relation->options.lost_slice;
  return is_taken(batch, key) || is_repeat(probes_seen(batch, key), lost.rule, lost.least);
}

// ---- keys with several probes -------------------------------------------------------------------

// Asks all probes, or one after the other as long as they can make the key a repeat.
void ask_probes(Batch* batch) {
  const RelationOptions& options = batch->remote->relation->options;
  const bool in_turn = options.probe == Probe::pipelined;
  for (int first = 0; first < batch->probes; first += in_turn ? 1 : batch->probes) {
    for (int key = 0; key < batch->count; ++key) {
      if (!may_be_repeat(probes_seen(batch, key), options.lost_slice.rule)) continue;
      for (int i = first; i < (in_turn ? first + 1 : batch->probes); ++i)
        state_of(batch, key, i)->wanted = true;
    }
    run_round(batch, Call::test);
  }
}

// The probe where a new key is reserved; -1: none is within reach.
int find_primary(const Batch* batch, int key) {
  int primary = -1;
  for (int i = 0; i < batch->probes; ++i) {
    const ProbeState* probe = state_of(batch, key, i);
    if (probe->bits == Bits::unreachable || batch->remote->connections[probe->server]->lost)
      continue;
    if (primary < 0 || probe->server < state_of(batch, key, primary)->server) primary = i;
  }
  return primary;
}

void reserve_and_insert(Batch* batch, const bool* seen) {
  auto* primaries = static_cast<int*>(palloc(sizeof(int) * static_cast<Size>(batch->count)));
  for (int key = 0; key < batch->count; ++key) {
    primaries[key] = seen[key] ? -1 : find_primary(batch, key);
    if (primaries[key] >= 0) state_of(batch, key, primaries[key])->wanted = true;
  }
  run_round(batch, Call::claim);
  for (int key = 0; key < batch->count; ++key)
    for (int i = 0; i < batch->probes && !seen[key] && !is_taken(batch, key); ++i)
      state_of(batch, key, i)->wanted =
          i != primaries[key] && state_of(batch, key, i)->bits != Bits::unreachable;
  run_round(batch, Call::put);
}

void answer_all(const Batch* batch, bool* seen) {
  for (int key = 0; key < batch->count; ++key) seen[key] = was_seen(batch, key);
}

// One round for all keys of which each has one probe.
void run_single(Batch* batch, Call call) {
  for (int key = 0; key < batch->count; ++key) state_of(batch, key, 0)->wanted = true;
  run_round(batch, call);
}

// What a batch needs goes with it.
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

}  // namespace

void test_and_insert_remote_keys(RemoteFilter* remote, const Element* elements, int count,
                                 bool* seen) {
  if (remote->wrapped != nullptr) {
    for (int i = 0; i < count; ++i)
      seen[i] = test_and_insert_wrapped_key(remote->wrapped, elements[i]);
    return;
  }
  note_changed(remote);
  MemoryContext caller = Scratch::enter();
  Batch* batch = make_batch(remote, elements, count);
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
  if (remote->wrapped != nullptr) return test_wrapped_key(remote->wrapped, element);
  MemoryContext caller = Scratch::enter();
  Batch* batch = make_batch(remote, &element, 1);
  ask_probes(batch);
  const bool seen = was_seen(batch, 0);
  MemoryContextSwitchTo(caller);
  return seen;
}

bool erase_remote_key(RemoteFilter* remote, const Element& element) {
  note_changed(remote);
  MemoryContext caller = Scratch::enter();
  Batch* batch = make_batch(remote, &element, 1);
  run_single(batch, Call::erase);
  const ProbeState* probe = state_of(batch, 0, 0);
  MemoryContextSwitchTo(caller);
  if (probe->bits == Bits::unreachable)
    ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
            errmsg("cannot delete a key from filter \"%s\" now", remote->relation->name),
            errdetail("Server \"%s\" is lost.", remote->connections[probe->server]->name));
  return probe->bits == Bits::set;
}

void reset_remote_filter(RemoteFilter* remote) {
  note_changed(remote);
  for (int i = 0; i < remote->count; ++i)
    if (!open_slices(remote, i) || !truncate_slices(remote->connections[i], remote->filter))
      ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
              errmsg("cannot truncate filter \"%s\" now", remote->relation->name),
              errdetail("Server \"%s\" is lost.", remote->connections[i]->name));
}

Datum fetch_remote_value(RemoteFilter* remote, Oid type) {
  Assert(remote->count == 1);
  StringInfoData bytes;
  initStringInfo(&bytes);
  if (!open_slices(remote, 0) || !fetch_value(remote->connections[0], remote->filter, &bytes))
    ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
            errmsg("the state of filter \"%s\" cannot be read now", remote->relation->name),
            errdetail("Server \"%s\" is lost.", remote->connections[0]->name));
  Oid function, io_param;
  getTypeBinaryInputInfo(type, &function, &io_param);
  return OidReceiveFunctionCall(function, &bytes, io_param, -1);
}

}  // namespace streamfilter::pg
