// A key has one place or several (sharding.hpp), each with a hash of its own, on some server. One
// place is tested and set by one message. With several, new keys are claimed in one of them, their
// home, before they are put in the others, so that of two transactions that add a key at once one
// finds the other.
//
// Home is the place within reach on the first server in the filter's list, and that server commits
// last: who does not find the claim any more finds the bits everywhere.
#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "core/format/sharding.hpp"
#include "pg/remote/remote_keys.hpp"
#include "pg/remote/remote_transaction.hpp"

namespace streamfilter::pg {
namespace {

enum class Bits : uint8 { unknown, unset, set, lost, taken };

// One place of one key.
struct Part {
  uint64 hash;  // as its server gets it
  uint32 slice;
  int server;
  Bits bits;
  bool wanted;  // in the next round
};

struct Batch {
  RemoteFilter* remote;
  const Element* elements;
  int count;      // of keys
  int places;     // of each
  unsigned bits;  // of each place
  Part* parts;    // places after places of the keys
  bool slice_lost;
};

Part* part_of(const Batch* batch, int key, int place) {
  return &batch->parts[key * batch->places + place];
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
    for (int i = 0; i < batch->places; ++i) {
      Part* part = part_of(batch, key, i);
      const uint64 hash = batch->elements[key].hash;
      const KeyProbe place = remote->count == 1
                                 ? KeyProbe{slice_of(remote->parameters, hash), hash}
                                 : probe_of(remote->parameters, hash, static_cast<unsigned>(i));
      part->slice = place.slice;
      part->server = static_cast<int>(place.slice % static_cast<uint32>(remote->count));
      part->bits = Bits::unknown;
      part->wanted = false;
      part->hash = remote->count == 1
                       ? hash
                       : hash_in_slice(place.hash, place.slice / static_cast<uint32>(remote->count),
                                       slices_on(remote, static_cast<uint32>(part->server)));
    }
}

// A single server does all the slicing itself.
Batch* make_batch(RemoteFilter* remote, const Element* elements, int count) {
  const Parameters& parameters = remote->parameters;
  auto* batch = static_cast<Batch*>(palloc0(sizeof(Batch)));
  batch->remote = remote;
  batch->elements = elements;
  batch->count = count;
  batch->places = remote->count == 1 ? 1 : static_cast<int>(probes(parameters));
  const OptionSpec* k = find_k(parameters);
  const auto all = k != nullptr ? static_cast<unsigned>(parameters.integer(k->word)) : 1;
  batch->bits = Max(all / static_cast<unsigned>(batch->places), 1u);
  batch->parts = static_cast<Part*>(
      palloc(sizeof(Part) * static_cast<Size>(count) * static_cast<Size>(batch->places)));
  batch->slice_lost = has_unreachable_slices(remote);
  locate(batch);
  return batch;
}

// ---- rounds: one call to each server
// ------------------------------------------------------------------

// The wanted parts of one server.
struct Share {
  Part** parts;
  RemoteCall call;
};

Bits bits_of(Answer answer) {
  return answer == Answer::yes ? Bits::set : answer == Answer::no ? Bits::unset : Bits::taken;
}

Share collect(Batch* batch, Call call, int server) {
  RemoteFilter* remote = batch->remote;
  const int most = batch->count * batch->places;
  Share share{};
  int count = 0;
  for (int i = 0; i < most; ++i)
    count += batch->parts[i].wanted && batch->parts[i].server == server;
  if (count == 0) return share;
  share.parts = static_cast<Part**>(palloc(sizeof(Part*) * static_cast<Size>(count)));
  share.call.elements = static_cast<Element*>(palloc(sizeof(Element) * static_cast<Size>(count)));
  share.call.answers = static_cast<Answer*>(palloc(sizeof(Answer) * static_cast<Size>(count)));
  for (int i = 0; i < most; ++i) {
    Part* part = &batch->parts[i];
    if (!part->wanted || part->server != server) continue;
    part->wanted = false;
    share.call.elements[share.call.count] = batch->elements[i / batch->places];
    share.call.elements[share.call.count].hash = part->hash;
    share.parts[share.call.count++] = part;
  }
  share.call.connection = remote->connections[server];
  share.call.call = call;
  share.call.filter = remote->filter;
  share.call.with_time = uses_time(remote->parameters);
  share.call.with_importance = uses_importance(remote->parameters);
  return share;
}

void take_answers(Batch* batch, const Share* share, bool lost) {
  SliceCounts* counts = batch->remote->counts;
  for (int i = 0; i < share->call.count; ++i) {
    Part* part = share->parts[i];
    part->bits = lost ? Bits::lost : bits_of(share->call.answers[i]);
    ++(lost ? counts[part->slice].unanswered : counts[part->slice].answered);
  }
  if (lost) {
    batch->slice_lost = true;
    return;
  }
  SliceCounts* first = &counts[share->parts[0]->slice];
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

// Keeps the shares whose servers are ready; the others are judged without them.
void open_round(Batch* batch, Round* round) {
  int kept = 0;
  for (int i = 0; i < round->count; ++i) {
    const Share& share = round->shares[i];
    const int server = share.parts[0]->server;
    if (!batch->remote->seed_known || !open_slices(batch->remote, server)) {
      take_answers(batch, &share, true);
      continue;
    }
    // See the order of commits above.
    if (batch->places > 1) share.call.connection->rank = Max(share.call.connection->rank, server);
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

// Until all is answered or judged without its server. False as above.
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
// sees. Therefore nobody waits long for others while servers claim keys together; who meets others
// gives up what it has got, and claims keys on one server after the other, in the order of the
// list.
void run_round(Batch* batch, Call call) {
  Round round = make_round(batch, call);
  const bool claims = call == Call::seen || call == Call::claim;
  if (finish_round(batch, &round, claims && round.count > 1)) return;
  for (int i = 0; i < round.count; ++i) {
    Round single = {&round.shares[i], 1};
    finish_round(batch, &single, false);
  }
}

// ---- what is known of a key
// -----------------------------------------------------------------------------

ProbesSeen places_seen(const Batch* batch, int key) {
  ProbesSeen seen;
  seen.slice_lost = batch->slice_lost;
  for (int i = 0; i < batch->places; ++i) switch (part_of(batch, key, i)->bits) {
      case Bits::set: seen.set += batch->bits; break;
      case Bits::unset: seen.unset += batch->bits; break;
      case Bits::lost: seen.lost += batch->bits; break;
      default: break;
    }
  return seen;
}

bool is_taken(const Batch* batch, int key) {
  for (int i = 0; i < batch->places; ++i)
    if (part_of(batch, key, i)->bits == Bits::taken) return true;
  return false;
}

bool judge(const Batch* batch, int key) {
  const LostSlice& lost = batch->remote->relation->options.lost_slice;
  return is_taken(batch, key) || is_repeat(places_seen(batch, key), lost.rule, lost.least);
}

// ---- keys with several places
// ----------------------------------------------------------------------------

// Asks all places, or one after the other as long as they can make the key a repeat.
void probe(Batch* batch) {
  const RelationOptions& options = batch->remote->relation->options;
  const bool in_turn = options.probe == Probe::pipelined;
  for (int place = 0; place < batch->places; place += in_turn ? 1 : batch->places) {
    for (int key = 0; key < batch->count; ++key) {
      if (!may_be_repeat(places_seen(batch, key), options.lost_slice.rule)) continue;
      for (int i = place; i < (in_turn ? place + 1 : batch->places); ++i)
        part_of(batch, key, i)->wanted = true;
    }
    run_round(batch, Call::test);
  }
}

// The place where a new key is claimed; -1: none is within reach.
int find_home(const Batch* batch, int key) {
  int home = -1;
  for (int i = 0; i < batch->places; ++i) {
    const Part* part = part_of(batch, key, i);
    if (part->bits == Bits::lost || batch->remote->connections[part->server]->lost) continue;
    if (home < 0 || part->server < part_of(batch, key, home)->server) home = i;
  }
  return home;
}

void claim_and_put(Batch* batch, const bool* seen) {
  auto* homes = static_cast<int*>(palloc(sizeof(int) * static_cast<Size>(batch->count)));
  for (int key = 0; key < batch->count; ++key) {
    homes[key] = seen[key] ? -1 : find_home(batch, key);
    if (homes[key] >= 0) part_of(batch, key, homes[key])->wanted = true;
  }
  run_round(batch, Call::claim);
  for (int key = 0; key < batch->count; ++key)
    for (int i = 0; i < batch->places && !seen[key] && !is_taken(batch, key); ++i)
      part_of(batch, key, i)->wanted =
          i != homes[key] && part_of(batch, key, i)->bits != Bits::lost;
  run_round(batch, Call::put);
}

void judge_all(const Batch* batch, bool* seen) {
  for (int key = 0; key < batch->count; ++key) seen[key] = judge(batch, key);
}

// One round for all keys of which each has one place.
void run_single(Batch* batch, Call call) {
  for (int key = 0; key < batch->count; ++key) part_of(batch, key, 0)->wanted = true;
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
  note_changed(remote);
  MemoryContext caller = Scratch::enter();
  Batch* batch = make_batch(remote, elements, count);
  if (batch->places == 1) {
    run_single(batch, Call::seen);
  } else {
    probe(batch);
    judge_all(batch, seen);
    claim_and_put(batch, seen);
  }
  judge_all(batch, seen);
  remote->judged_in_full = !batch->slice_lost;
  MemoryContextSwitchTo(caller);
}

bool test_remote_key(RemoteFilter* remote, const Element& element) {
  MemoryContext caller = Scratch::enter();
  Batch* batch = make_batch(remote, &element, 1);
  probe(batch);
  const bool seen = judge(batch, 0);
  MemoryContextSwitchTo(caller);
  return seen;
}

bool erase_remote_key(RemoteFilter* remote, const Element& element) {
  note_changed(remote);
  MemoryContext caller = Scratch::enter();
  Batch* batch = make_batch(remote, &element, 1);
  run_single(batch, Call::erase);
  const Part* part = part_of(batch, 0, 0);
  MemoryContextSwitchTo(caller);
  if (part->bits == Bits::lost)
    ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
            errmsg("cannot delete a key from filter \"%s\" now", remote->relation->name),
            errdetail("Server \"%s\" is lost.", remote->connections[part->server]->name));
  return part->bits == Bits::set;
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
