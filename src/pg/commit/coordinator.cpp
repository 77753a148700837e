// Every phase of a transaction, and what the extension does in it, in this order. No other file
// registers callbacks of transactions, so that nothing depends on who registered first.
//
//   phase              raise  allocate  catalogs  wait for
//   pre-commit         yes    yes       yes       locks, images being saved, other servers
//   commit             no     no        no        other servers, until their timeouts; short locks
//   abort              no     no        no        the same
//   prepare, before    yes    yes       yes       as pre-commit
//   prepare, done      no     no        no        short locks
//   savepoint begins   nothing is done: its first change notes where it begins
//   savepoint ends     no     no        no        nothing
//   savepoint aborts   no     no        no        other servers, until their timeouts; short locks
//   prepared, ended    no     no        no        short locks
//
// An error after the commit record is a PANIC of the whole server, one while aborting is the next
// abort. So memory was reserved ahead, and what is to be said waits (no_raise.hpp,
// deferred_messages.hpp). "Short locks" are LWLocks under which nobody does I/O.
//
// At commit the transaction is visibly committed and still holds its locks: a session that waits
// for it waits for what is done here. A prepared transaction may end in another session, or be
// followed by a crash, so the session that meets its keys does what is left to do.
#include "pg/server/postgres.hpp"

#include "pg/commit/coordinator.hpp"
#include "pg/commit/save_changes.hpp"
#include "pg/handle/asked_runs.hpp"
#include "pg/handle/key_reservation.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/deferred_messages.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

// prepared_transactions.hpp has the changes, but the transaction may still abort.
bool is_prepared = false;

// Only for transactions that have changed a filter here.
void stop_if_changed(FaultPoint point) {
  if (first_changes() != nullptr) stop_at(point);
}

// ---- phases ------------------------------------------------------------------------------------
// Out of line, because a transaction without filters calls none of them.

pg_noinline void before_commit() {
  stop_if_changed(FaultPoint::pre_commit);
  check_debts();
  save_transaction_changes();
  stop_if_changed(FaultPoint::logged);
  prepare_remote_commit();
  announce_transaction_changes();
}

pg_noinline void commit() {
  const NoRaise marked;
  stop_if_changed(FaultPoint::committed);
  commit_remote_transactions();
  end_changed_filters(true);
  end_remote_transactions(true);
  end_transaction_of_handles();
  end_debts();
  commit_persistence();
  note_saved_changes();
  apply_transaction_changes();
  stop_if_changed(FaultPoint::applied);
  publish_transaction_changes();
  end_saving();
  forget_transaction_changes();
  commit_definitions();
  transaction_uses_filters = false;
}

pg_noinline void abort() {
  const NoRaise marked;
  roll_back_remote_transactions();
  end_changed_filters(false);
  end_remote_transactions(false);
  end_transaction_of_handles();
  end_debts();
  if (is_prepared) remove_prepared(GetTopFullTransactionIdIfAny());
  is_prepared = false;
  retract_transaction_changes();
  end_saving();
  forget_transaction_changes();
  roll_back_definitions();
  transaction_uses_filters = false;
}

pg_noinline void before_prepare() {
  stop_if_changed(FaultPoint::pre_commit);
  check_debts();
  refuse_to_prepare_remote_transactions();
  refuse_to_prepare_changes();
  refuse_to_prepare_saving();
  save_transaction_changes();
  stop_if_changed(FaultPoint::logged);
  hand_over_filters();
  is_prepared = prepare_definitions();
}

// From now on the session that meets the changes owns them, and nobody knows yet whether the saved
// state counts.
pg_noinline void prepare_changes() {
  const NoRaise marked;
  is_prepared = false;
  end_changed_filters(false);
  end_remote_transactions(false);
  end_transaction_of_handles();
  end_debts();
  note_prepared_changes();
  end_saving();
  forget_transaction_changes();
  leave_prepared_definitions();
  transaction_uses_filters = false;
}

pg_noinline void keep_subtransaction(SubTransactionId subtransaction, SubTransactionId parent) {
  const NoRaise marked;
  keep_remote_savepoint();
  keep_changes_of_subtransaction(parent);
  keep_definitions_of(subtransaction, parent);
  end_debts_of(GetCurrentTransactionNestLevel(), true);
}

pg_noinline void abort_subtransaction(SubTransactionId subtransaction) {
  const NoRaise marked;
  roll_back_remote_savepoint();
  end_subtransaction_of_handles();
  end_debts_of(GetCurrentTransactionNestLevel(), false);
  retract_changes_of_subtransaction();
  roll_back_definitions_of(subtransaction);
}

// A parallel worker changes no keys, but may have built a filter's state.
pg_noinline void commit_worker() {
  const NoRaise marked;
  commit_definitions();
  transaction_uses_filters = false;
}

pg_noinline void abort_worker() {
  const NoRaise marked;
  roll_back_definitions();
  transaction_uses_filters = false;
}

// The transaction has ended for good: neither an error nor a cancel request may make the statement
// fail now.
void end_prepared() {
  const NoRaise marked;
  HOLD_INTERRUPTS();
  resolve_without_waiting();
  RESUME_INTERRUPTS();
}

bool ends_prepared(const Node* statement) {
  if (!IsA(statement, TransactionStmt)) return false;
  const TransactionStmtKind kind = reinterpret_cast<const TransactionStmt*>(statement)->kind;
  return kind == TRANS_STMT_COMMIT_PREPARED || kind == TRANS_STMT_ROLLBACK_PREPARED;
}

void before_statement() {
  if (unlikely(has_deferred_messages)) say_deferred_messages();
  if (unlikely(transaction_uses_filters)) hand_over_filters();
}

}  // namespace

// ---- what the server calls ---------------------------------------------------------------------

void at_transaction_end(XactEvent event, void*) {
  if (likely(!transaction_uses_filters)) return;
  switch (event) {
    case XACT_EVENT_PRE_COMMIT: return before_commit();
    case XACT_EVENT_COMMIT: return commit();
    case XACT_EVENT_ABORT: return abort();
    case XACT_EVENT_PRE_PREPARE: return before_prepare();
    case XACT_EVENT_PREPARE: return prepare_changes();
    case XACT_EVENT_PARALLEL_PRE_COMMIT: return;
    case XACT_EVENT_PARALLEL_COMMIT: return commit_worker();
    case XACT_EVENT_PARALLEL_ABORT: return abort_worker();
  }
}

void at_subtransaction_end(SubXactEvent event, SubTransactionId subtransaction,
                           SubTransactionId parent, void*) {
  if (likely(!transaction_uses_filters)) return;
  switch (event) {
    case SUBXACT_EVENT_START_SUB:
    case SUBXACT_EVENT_PRE_COMMIT_SUB: return;
    case SUBXACT_EVENT_COMMIT_SUB: return keep_subtransaction(subtransaction, parent);
    case SUBXACT_EVENT_ABORT_SUB: return abort_subtransaction(subtransaction);
  }
}

void follow_transaction(UtilityCall* call) {
  before_statement();
  // Read first: the statement's tree may be freed afterwards.
  const bool ends = ends_prepared(statement_of(call));
  call->go_on();
  if (ends) end_prepared();
}

void begin_query(StartCall* call) {
  before_statement();
  call->go_on();
}

}  // namespace streamfilter::pg
