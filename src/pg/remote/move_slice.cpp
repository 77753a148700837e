#include "pg/server/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/wait_event.h"
}

#include <algorithm>

#include "pg/catalog/retirements.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/remote/move_slice.hpp"
#include "pg/remote/part_definition.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/wait_events.hpp"

namespace streamfilter::pg {
namespace {

// A session waiting for a lock on a relation blocks those behind it. So the wait is short at first,
// with pauses in between.
constexpr int kFirstWait = 50;  // ms; doubles each time, up to the server's limit
constexpr int kAttempts = 12;
constexpr int kPause = 100;   // ms
constexpr int kMaxRaces = 5;  // retries when another session has moved the slice meanwhile
constexpr int kMaxNames = 8;  // names tried for the relation, if others have taken one
constexpr uint32 kMaxSkipped = 1 << 20;  // epochs

[[noreturn]] void raise_interrupted(const RemoteFilter* remote, uint32 slice,
                                    const Connection* connection) {
  ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("moving slice %u of filter \"%s\" was interrupted", slice, remote->relation->name),
          errdetail("Server \"%s\" is lost.", connection->name),
          errhint("Repeat the call when the server is back: it goes on from where the slice is."));
  pg_unreachable();
}

struct Move {
  RemoteFilter* remote;
  uint32 slice;
  const char* retirements;  // that this producer knows of; nullptr: none

  [[noreturn]] void interrupted(const Connection* connection) const {
    raise_interrupted(remote, slice, connection);
  }
};

// ---- commands to one server
// ----------------------------------------------------------------------

constexpr ColumnShape kStateColumn = {BYTEAOID, true, false, MaxAllocSize - 1};

bool failed_with(const Connection* connection, const char* expected) {
  return expected != nullptr && has_sqlstate(connection->error, expected);
}

// Sends the queue. Raises the server's errors, except SQLSTATEs that the caller handles: then
// false.
bool finish(const Move* move, Connection* connection, bool queued, const RowShape* rows = nullptr,
            const char* expected = nullptr) {
  if (!queued || !exchange(connection, rows)) move->interrupted(connection);
  if (connection->error == nullptr) return true;
  if (!failed_with(connection, expected)) {
    check_version(connection);
    raise_remote(connection);
  }
  return false;
}

// From here on an error rolls the transaction back.
void begin_transaction(const Move* move, Connection* connection) {
  if (!ensure_connected(connection)) move->interrupted(connection);
  // A frozen session must not lock others out for long.
  const char* limit = psprintf("SET LOCAL idle_in_transaction_session_timeout = %d",
                               Max(connection->options.timeout * 2, 1000));
  finish(move, connection,
         queue_command(connection, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE") &&
             queue_command(connection, limit));
  connection->level = connection->kept = 1;
}

void end_transaction(const Move* move, Connection* connection, const char* command) {
  finish(move, connection, queue_command(connection, command));
  connection->level = connection->kept = 0;
}

// Starts a transaction that needs a relation for itself; `run` returns false if it did not get the
// lock. The last attempt raises.
template <typename Run>
void begin_locked(const Move* move, Connection* connection, Run&& run) {
  const int longest = Max(connection->options.timeout * 4 / 5, 1);
  for (int i = 0, wait = kFirstWait; i < kAttempts; ++i, wait = Min(wait * 2, longest)) {
    begin_transaction(move, connection);
    const char* limit = psprintf("SET LOCAL lock_timeout = %d", Min(wait, longest));
    finish(move, connection, queue_command(connection, limit));
    if (run(i == kAttempts - 1 ? nullptr : "55P03")) return;
    end_transaction(move, connection, "ROLLBACK");
    pause(kPause, PG_WAIT_EXTENSION);
  }
}

// ---- the steps
// -------------------------------------------------------------------------------------

// What a server says to who needs a slice for itself. False: it did not get the lock.
bool is_answered(Connection* connection, const char* expected, bool* moved) {
  if (connection->error == nullptr) return true;
  check_version(connection);
  *moved = failed_with(connection, kSliceMovedCode) || failed_with(connection, kUndefinedTable);
  if (!*moved && !failed_with(connection, expected)) raise_remote(connection);
  return *moved;
}

// Keeps everybody out, once those who use the slice have ended their transactions, and fetches it.
// False: it has moved.
bool lock_and_fetch(const Move* move, const SlicePlace& from, ReceivedValue* state) {
  Connection* connection = move->remote->connections[from.server];
  // A server of a version that knows of no retirements is asked as before.
  const int count = move->retirements != nullptr ? 3 : 2;
  const char* query = psprintf("SELECT %s.streamfilter_slice_fence($1, $2%s)", connection->schema,
                               count == 3 ? ", $3" : "");
  const char* values[] = {relation_at(move->remote, move->slice, from),
                          psprintf("%u", number_at(move->remote, move->slice, from)),
                          move->retirements};
  const RowShape row = {&kStateColumn, 1, 1, 1, max_state_bytes(move->remote->parameters.memory)};
  bool moved = false;
  begin_locked(move, connection, [&](const char* expected) {
    const Oid types[] = {REGCLASSOID, INT4OID, TEXTOID};
    const bool queued =
        PQsendQueryParams(connection->pg, query, count, types, values, nullptr, nullptr, 1) == 1;
    if (!queued || !exchange(connection, &row, take_value, state)) move->interrupted(connection);
    return is_answered(connection, expected, &moved);
  });
  if (moved) end_transaction(move, connection, "ROLLBACK");
  if (!moved) check_memory(*state);
  return !moved;
}

// False: the relation's name is taken.
bool take(const Move* move, Connection* connection, uint32 epoch, const ReceivedValue* state,
          const char* expected) {
  const SliceDefinition& slices = move->remote->slices;
  const char* query = psprintf("SELECT %s.streamfilter_slice_take($1, $2, $3, $4, $5, $6, $7, $8)",
                               connection->schema);
  const char* values[] = {slices.schema,
                          slices.name,
                          psprintf("%u", move->slice),
                          psprintf("%u", epoch),
                          definition_of_slice(move->remote),
                          slices.conflict,
                          slices.persistence,
                          state->bytes};
  const int lengths[] = {0, 0, 0, 0, 0, 0, 0, state->length};
  const int formats[] = {0, 0, 0, 0, 0, 0, 0, 1};
  const bool queued = PQsendQueryParams(connection->pg, query, lengthof(values), nullptr, values,
                                        lengths, formats, 0) == 1;
  return finish(move, connection, queued, &kVoidRow, expected);
}

// Who knows of fewer retirements moves the slice from there no more.
bool ask_to_mark(const Move* move, const SlicePlace& place, const char* retirements,
                 const char* expected, bool* moved) {
  Connection* connection = move->remote->connections[place.server];
  const char* query = psprintf("SELECT %s.streamfilter_slice_mark($1, $2, $3)", connection->schema);
  const bool queued =
      queue_command(connection, query,
                    {relation_at(move->remote, move->slice, place),
                     psprintf("%u", number_at(move->remote, move->slice, place)), retirements});
  if (!queued || !exchange(connection, &kVoidRow)) move->interrupted(connection);
  return is_answered(connection, expected, moved);
}

// The same, in a transaction of its own. False: it has moved.
bool mark(const Move* move, const SlicePlace& place, const char* retirements) {
  Connection* connection = move->remote->connections[place.server];
  bool moved = false;
  begin_locked(move, connection, [&](const char* expected) {
    return ask_to_mark(move, place, retirements, expected, &moved);
  });
  end_transaction(move, connection, moved ? "ROLLBACK" : "COMMIT");
  return !moved;
}

// Makes the relation of the next epoch on a server. A role that may create relations in that
// schema could make one of that name first; then an unpredictable epoch is taken.
SlicePlace make_place(const Move* move, const SlicePlace& from, int server,
                      const ReceivedValue* state) {
  Connection* connection = move->remote->connections[server];
  SlicePlace place = {server, from.epoch + 1};
  for (int i = 1;; ++i) {
    begin_transaction(move, connection);
    if (take(move, connection, place.epoch, state, i < kMaxNames ? "42P07" : nullptr)) break;
    end_transaction(move, connection, "ROLLBACK");
    uint32 skipped;
    if (!pg_strong_random(&skipped, sizeof skipped))
      ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random epoch"));
    place.epoch = from.epoch + 2 + skipped % kMaxSkipped;
  }
  if (move->retirements != nullptr) {
    bool moved;
    ask_to_mark(move, place, psprintf("%s?", move->retirements), nullptr, &moved);
  }
  end_transaction(move, connection, "COMMIT");
  return place;
}

// From the end of its transaction on, a copy is known to be the slice, also where its source cannot
// be asked.
void begin_confirming(const Move* move, const SlicePlace& copy) {
  Connection* connection = move->remote->connections[copy.server];
  bool moved;
  begin_transaction(move, connection);
  if (!can_mark(connection)) return;
  ask_to_mark(move, copy, move->retirements != nullptr ? move->retirements : "0", nullptr, &moved);
}

// Confirms a place if the move was interrupted before it could.
void confirm_place(const Move* move, const SlicePlace& place) {
  RemoteFilter* remote = move->remote;
  Connection* connection = remote->connections[place.server];
  const char* text;
  if (place.epoch == 0 || !can_mark(connection)) return;
  if (!ensure_connected(connection) ||
      !read_option(connection, relation_at(remote, move->slice, place), "retirements", &text))
    move->interrupted(connection);
  const Size length = text != nullptr ? strlen(text) : 0;
  if (text == nullptr || (length > 0 && text[length - 1] != '?')) return;
  mark(move, place, length > 0 ? pnstrdup(text, length - 1) : "0");
}

// The filter still belongs to the producer that has made it.
const char* producer_at(const Move* move, int server) {
  const RemoteFilter* remote = move->remote;
  Ownership found;
  if (!read_owner(remote->connections[server], remote->filter, &found))
    move->interrupted(remote->connections[server]);
  return describe_producer(remote->relation, server,
                           found.identity[0] != '\0' ? found.identity : nullptr);
}

// From the end of the transaction on, the relation at `place` tells where the slice is.
bool close(const Move* move, const SlicePlace& place, const SlicePlace& now,
           const char* expected = nullptr) {
  const RemoteFilter* remote = move->remote;
  Connection* connection = remote->connections[place.server];
  const char* query =
      psprintf("SELECT %s.streamfilter_slice_close($1, $2, $3, $4, $5)", connection->schema);
  const char* producer = place.epoch == 0 ? producer_at(move, place.server) : nullptr;
  const bool queued =
      queue_command(connection, query,
                    {relation_at(remote, move->slice, place),
                     psprintf("%u", number_at(remote, move->slice, place)),
                     psprintf("%d", now.server + 1), psprintf("%u", now.epoch), producer});
  return finish(move, connection, queued, &kVoidRow, expected);
}

// Searches for a slice begin at its first place, which must know the last place; those in between
// can go.
void tell_home(const Move* move, const SlicePlace& now) {
  RemoteFilter* remote = move->remote;
  const SlicePlace home = first_place(remote, move->slice);
  Connection* connection = remote->connections[home.server];
  SlicePlace known;
  bool missing;
  if (now.epoch == home.epoch) return;
  if (!next_place(remote, move->slice, home, &known, &missing)) move->interrupted(connection);
  if (known.epoch >= now.epoch) return;
  begin_locked(move, connection,
               [&](const char* expected) { return close(move, home, now, expected); });
  end_transaction(move, connection, "COMMIT");
}

void drop(const Move* move, const SlicePlace& place) {
  Connection* connection = move->remote->connections[place.server];
  const char* command =
      psprintf("DROP FOREIGN TABLE IF EXISTS %s", relation_at(move->remote, move->slice, place));
  if (!ensure_connected(connection)) move->interrupted(connection);
  finish(move, connection, queue_command(connection, command));
}

// False: another session has moved the slice meanwhile.
bool move_from(const Move* move, const SlicePlace& from, int server) {
  RemoteFilter* remote = move->remote;
  ReceivedValue state = {};
  for (const int used : {server, from.server})
    if (!ensure_connected(remote->connections[used])) move->interrupted(remote->connections[used]);
  if (!lock_and_fetch(move, from, &state)) return false;
  stop_at(FaultPoint::move_locked);
  const SlicePlace now = make_place(move, from, server, &state);
  pfree(state.bytes);
  stop_at(FaultPoint::move_copied);
  begin_confirming(move, now);
  close(move, from, now);
  end_transaction(move, remote->connections[from.server], "COMMIT");
  remote->places[move->slice] = now;
  stop_at(FaultPoint::move_closed);
  end_transaction(move, remote->connections[server], "COMMIT");
  tell_home(move, now);
  stop_at(FaultPoint::move_told);
  if (from.epoch > first_place(remote, move->slice).epoch) drop(move, from);
  return true;
}

void require_homes(const RemoteFilter* remote) {
  if (may_move_slices(remote->relation)) return;
  ereport(
      ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
      errmsg("slices of filter \"%s\" cannot be moved yet", remote->relation->name),
      errdetail("Its producers would not follow them."),
      errhint("Have all producers do so first: ALTER FOREIGN TABLE ... OPTIONS (ADD home_servers "
              "'%d').",
              remote->home_count));
}

// An error will end the transactions on the servers, so they must be the move's own.
void require_no_transaction(const RemoteFilter* remote) {
  bool any = GetCurrentTransactionNestLevel() > 1;
  for (int i = 0; i < remote->count; ++i)
    any |= remote->connections[i]->level > 0 || remote->connections[i]->lost;
  if (any)
    ereport(ERROR, errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
            errmsg("slices cannot be moved by a transaction that uses filters on other servers, or "
                   "in a subtransaction"),
            errdetail("A move consists of transactions of its own."));
}

// The place of the slice, after finishing a move that was interrupted.
SlicePlace settle_place(const Move* move) {
  RemoteFilter* remote = move->remote;
  SlicePlace place;
  const int home = first_place(remote, move->slice).server;
  if (!open_slices(remote, home)) move->interrupted(remote->connections[home]);
  if (find_place(remote, move->slice, &place) == PlaceSearch::unreachable)
    move->interrupted(remote->connections[place.server]);
  tell_home(move, place);
  confirm_place(move, place);
  return remote->places[move->slice] = place;
}

const char* known_retirements(const RemoteFilter* remote) {
  const int count = retired_servers_in(options_of_filter(remote->relation->relid)).count;
  return count > 0 ? psprintf("%d", count) : nullptr;
}

// Drops a copy that a move has made and not gone on with, unless that move is still under way.
void drop_copy(const Move* move, const SlicePlace& copy) {
  RemoteFilter* remote = move->remote;
  const SlicePlace& place = remote->places[move->slice];
  ReceivedValue state = {};
  if (remote->connections[copy.server] == remote->connections[place.server] ||
      !lock_and_fetch(move, place, &state))
    return;
  drop(move, copy);
  end_transaction(move, remote->connections[place.server], "ROLLBACK");
}

// Does nobody ask that place of the slice any more, whatever moves are under way?
bool is_past(const RemoteFilter* remote, uint32 slice, const SlicePlace& at) {
  const SlicePlace& now = remote->places[slice];
  return at.epoch < now.epoch || (at.epoch == now.epoch && remote->connections[at.server] !=
                                                               remote->connections[now.server]);
}

// Gives back the memory of what interrupted moves have left on a server.
void drop_remains(RemoteFilter* remote, int server) {
  Connection* connection = remote->connections[server];
  const char* text;
  MovedSlices made;
  if (!ensure_connected(connection) ||
      !list_made(connection, &remote->slices, Made::by_moves, &text) || text == nullptr ||
      text[0] == '\0')
    return;
  if (!read_made_places(text, &made))
    raise_protocol_violation(connection, "It does not tell which slices it has");
  for (int i = 0; i < made.count; ++i) {
    const MovedSlice& entry = made.entries[i];
    const Move move = {remote, entry.slice, known_retirements(remote)};
    const SlicePlace at = {server, entry.epoch};
    if (entry.slice >= remote->parameters.slices ||
        entry.epoch == first_place(remote, entry.slice).epoch)
      continue;
    if (is_past(remote, entry.slice, at))
      drop(&move, at);
    else if (entry.epoch > remote->places[entry.slice].epoch)
      drop_copy(&move, at);
  }
}

// How many slices each server has, as far as this session knows.
void count_slices(const RemoteFilter* remote, int* on) {
  std::fill_n(on, remote->count, 0);
  for (uint32 i = 0; i < remote->parameters.slices; ++i) ++on[remote->places[i].server];
}

}  // namespace

void require_movable(const RemoteFilter* remote) {
  require_homes(remote);
  require_no_transaction(remote);
}

bool move_slice(RemoteFilter* remote, uint32 slice, int server) {
  return move_slice(remote, slice, server, known_retirements(remote));
}

bool move_slice(RemoteFilter* remote, uint32 slice, int server, const char* retirements) {
  const Move move = {remote, slice, retirements};
  require_movable(remote);
  for (int i = 0; i < kMaxRaces; ++i) {
    const SlicePlace place = settle_place(&move);
    if (place.server == server) return false;
    if (move_from(&move, place, server)) return true;
  }
  ereport(
      ERROR, errcode(ERRCODE_OBJECT_IN_USE),
      errmsg("slice %u of filter \"%s\" is being moved by others", slice, remote->relation->name));
  pg_unreachable();
}

void tell_first_place(RemoteFilter* remote, uint32 slice) {
  const Move move = {remote, slice, known_retirements(remote)};
  settle_place(&move);
}

bool mark_slice(RemoteFilter* remote, uint32 slice, const char* retirements) {
  const Move move = {remote, slice, retirements};
  return mark(&move, remote->places[slice], retirements);
}

int spread_slices(RemoteFilter* remote) {
  const uint32 slices = remote->parameters.slices;
  auto* on = static_cast<int*>(palloc(sizeof(int) * static_cast<Size>(remote->count)));
  require_movable(remote);
  for (uint32 i = 0; i < slices; ++i) tell_first_place(remote, i);
  for (int i = 0; i < remote->count; ++i)
    if (!remote->retired[i]) drop_remains(remote, i);
  // Others may move slices, too; this session learns of them as it moves its own.
  for (int moved = 0;;) {
    count_slices(remote, on);
    int most = -1, least = -1;
    for (int i = 0; i < remote->count; ++i) {
      if (remote->retired[i]) continue;
      if (most < 0 || on[i] > on[most]) most = i;
      if (least < 0 || on[i] < on[least]) least = i;
    }
    if (on[most] - on[least] < 2) return moved;
    uint32 slice = slices - 1;
    while (remote->places[slice].server != most) --slice;
    moved += move_slice(remote, slice, least);
  }
}

}  // namespace streamfilter::pg
