// A named filter as the current backend uses it: definition, hashers and shared state, resolved
// once and revalidated cheaply.
#pragma once

#include "pg/catalog/element_roles.hpp"
#include "pg/handle/slot_lifecycle.hpp"
#include "pg/key/key_hash.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// What becomes of repeats, with the counters of each outcome; and counts of rows that filters have
// judged in one statement, for sessions that report them.

// What becomes of a row whose key is a repeat, the counter for it of filter and trigger, and words.
#define STREAMFILTER_OUTCOMES(OUTCOME)       \
  OUTCOME(discarded, discarded, "discarded") \
  OUTCOME(marked, discarded, "marked")       \
  OUTCOME(diverted, diverted, "diverted")    \
  OUTCOME(would_discard, would_discard, "would be discarded")

#define STREAMFILTER_OUTCOME_NAME(name, counter, words) name,
#define STREAMFILTER_OUTCOME_ROW_COUNT(name, counter, words) RowCount::counter,
#define STREAMFILTER_OUTCOME_TRIGGER_COUNT(name, counter, words) TriggerCount::counter,
#define STREAMFILTER_OUTCOME_WORDS(name, counter, words) words,

enum class Outcome : uint8 { STREAMFILTER_OUTCOMES(STREAMFILTER_OUTCOME_NAME) };

constexpr RowCount kRowCountOf[] = {STREAMFILTER_OUTCOMES(STREAMFILTER_OUTCOME_ROW_COUNT)};
constexpr TriggerCount kTriggerCountOf[] = {
    STREAMFILTER_OUTCOMES(STREAMFILTER_OUTCOME_TRIGGER_COUNT)};
constexpr const char* kWordsOf[] = {STREAMFILTER_OUTCOMES(STREAMFILTER_OUTCOME_WORDS)};
constexpr int kOutcomes = lengthof(kWordsOf);

struct JudgedRows {
  Oid filter;
  uint64 rows;
  uint64 repeats[kOutcomes];

  uint64& operator[](Outcome outcome) { return repeats[static_cast<int>(outcome)]; }
};

// Collecting? If so, flush_counters() adds its counts here.
extern bool collects_judged_rows;

// Cannot raise, so there is room for a fixed number of filters only.
void add_judged_rows(const JudgedRows& more);

// Starts or stops collecting; discards earlier counts.
void collect_judged_rows(bool wanted);

// Number of filters that have judged rows.
int judged_filters();
const JudgedRows& judged_by(int i);

// "3 rows discarded, 1 diverted, of 10 judged", palloc'ed; nullptr if there was no repeat.
const char* describe_judged_rows(const JudgedRows& rows);

// ---- a filter in use ----------------------------------------------------------------------------

// The mode for rows that a filter judges: its option, or a setting of the session.

// `overridden` says that the mode comes from a setting.
FilterMode mode_in_use(const FilterRelation* relation, bool* overridden);

// Raises 42501 if the role that set streamfilter.mode may not decide on rows of this filter. In a
// trigger the table's owner may, too; InvalidOid if there is no table.
void check_override(const FilterRelation* relation, FilterMode mode, Oid table_owner);

struct FilterHandle;

// What a caller gives a filter a key for. The first three insert the key at commit, unless it was
// seen; if an unfinished transaction has added it, option conflict decides.
enum class Intent : uint8 {
  insert,
  insert_fetched,  // the same after prefetch_keys
  remember,        // the same for a row that was judged before: the answer is not counted
  test,            // was it seen, by committed transactions or by this one? Nothing changes
  erase,  // forget it at commit, and other keys with an equal fingerprint; needs FilterOps::erase
  learn,  // of a row that exists, in a table that nobody else writes now: takes no place in flight
  take,   // it is new, whatever the filter says; does not wait for others. Needs can_take_keys()
  reserve,  // the same, but waits as option conflict says
  put,      // insert it at commit, even if another transaction adds it, too
  // For keys whose bits lie only in part in this filter (Koloniari et al. 2011, section 3.1), so
  // that bits that are set do not tell whether the key was seen. Were they set?
  reserve_bits,  // reserve it
  put_bits,      // put it: it is reserved elsewhere
  take_back,     // it was new, but its row was not stored after all
};

enum class Verdict : uint8 {
  fresh,
  seen,   // or its bits were set
  taken,  // another transaction is adding it, and option conflict favors that one
};

// Gives filters keys, by where the state of the filter is. Each needs use_filter first; the places
// that may be called from outside this room are in filter_keys.hpp, with what they raise.
struct KeyOperations {
  Verdict (*judge)(FilterHandle* filter, const Element& element, Intent intent);
  // Inserts keys in their order. Counts the answers.
  void (*judge_all)(FilterHandle* filter, const Element* elements, const bool* has_key, int count,
                    Outcome of_repeats, bool* seen);
};

// What concerns a filter alone, whatever its tree.
struct NodeOperations {
  KeyOperations keys;
  void (*prefetch_all)(const FilterHandle* filter, const Element* elements, const bool* has_key,
                       int count);
  void (*reset)(FilterHandle* filter);
};

// A filter's place in a tree of filters.
struct TreeNode {
  FilterHandle* parent;  // nullptr for the root
  FilterHandle** children;
  int child_count;
  bool searched;   // a node below searches matches here top-down, so keys must come in below
  uint64 checked;  // version of the parent that this node was checked against
};

// Used by filter_handle.cpp.
// The place of a filter in its tree, palloc'ed; nullptr if it is in none.
TreeNode* make_tree_node(const FilterRelation* relation);
// What `keys` and `node` of a handle are, by its `remote` and `tree` (filter_keys.cpp).
void choose_operations(FilterHandle* filter);

// The statement (handle/statement.hpp) in which a query has last given a filter keys, that query,
// and trigger_depth() there; the statement in which a trigger has last given it a row, and that
// trigger.
struct LastStatements {
  uint64 asked_in, asked_by, fired_in;
  int asked_at;
  MemoryContext asked_from;  // of the call
  Oid fired_by;

  // Has nobody but the trigger given it a row of the statement, and the trigger has?
  bool is_only(uint64 statement, Oid trigger) const {
    return fired_in == statement && fired_by == trigger && asked_in < statement;
  }
};

// The times of a filter's elements, in microseconds.
struct EventTimes {
  bool used;         // elements have a time
  bool by_clock;     // no column has it: the server's clock gives it
  bool warned;       // of an event too far ahead
  int64 max_future;  // how far an event may be ahead of the server's clock
  int64 earliest;    // earlier times, and later ones than the latest, are looked at; later ones are
  int64 latest;      // compared with the server's clock
  const FilterColumn* numbers;  // tells the time by numbers that should be usual times; or nullptr
};

// Whether a slice exceeded its limit after transactions had applied keys `applied` - 1 times.
struct OverfullVerdict {
  uint64 applied;  // 0: no verdict yet
  uint32 slice;
  bool exceeds;
};

struct HandleOverfull {
  OverfullLimit limit;          // of the keys that the filter holds
  bool passes;                  // repeats pass beyond the limit
  bool met;                     // since the last report_overfull
  bool warned;                  // once per session
  OverfullVerdict verdicts[4];  // one per slice
};

// Purpose of a call; decides the lock and the needed right.
enum class Use : uint8 {
  define,          // read the definition only; needs no state and no right
  test,            // needs SELECT
  test_granted,    // likewise; executor or caller has checked the rights
  insert,          // needs INSERT
  insert_granted,  // likewise; the executor has checked the rights
  judge,  // judge rows, by trigger or streamfilter_seen(): INSERT, unless the mode forbids it
  judge_granted,  // likewise; the trigger has checked the rights
  empty,  // forget all keys; the caller has locked the filter against all others, and checked
          // rights
  erase,  // forget a key; the executor has checked the rights
};

// Where a statement has a key from. Unknown also if foreign code runs while the key is made.
struct KeyRoute {
  enum Way : uint8 { unknown, trigger, insert, query } way;
  Oid table;  // whose trigger it is
  // All that the statement fires for the table: code within it may have dropped some of them.
  const TriggerDesc* triggers = nullptr;
};

// How far a handle can be used as it is. Only filter_handle.cpp, is_loaded and use_filter read it.
struct HandleValidity {
  MemoryContext context;
  bool loaded;        // as a whole: loading can fail halfway
  bool depends;       // what it depends on is recorded
  bool valid;         // no invalidation since it was loaded
  uint64 used_epoch;  // handle_epoch when it was last made ready, for whom and what: below
  Oid used_by;
  Use used_for;
  uint64 lock_epoch;  // when the lock below was taken
  LOCKMODE lockmode;  // strongest lock known to be held
  Oid checked_user;   // whose rights were checked
  AclMode checked_rights;
};

// What is not yet added to the counts in shared memory.
struct HandleCounts {
  RowCounts rows;
  uint64 marked;               // of `discarded`: such that were kept
  uint64 spared;               // of `accepted`: such that would not have been discarded, either
  uint32 found_at[kMaxRanks];  // repeats, by position in the bucket
  uint64 found_positions;      // the positions that have any, as bits
  FilterHandle* next_dirty;
  bool dirty;
  int32 left;              // look-ups before these counts are added; 0 if not dirty
  uint64 accepted_before;  // rows of this session, already added
};

// One per relation and backend, never freed; what it points to is replaced when the relation
// changes. Callers keep the FilterHandle*, not what is behind it, from call to call, and call
// use_filter first each time.
struct FilterHandle {
  Oid relid;
  uint64 version;  // changes whenever `relation` and `hashers` are replaced
  const FilterRelation* relation;
  TypeHasher** hashers;     // one per key column
  TreeNode* tree;           // nullptr: it is in no tree
  FilterSlot* slot;         // nullptr until the filter is used for more than its definition
  FilterSlot* former_slot;  // where it was last; nullptr: the definition was read since then
  uint64 slot_generation;
  Header* header;
  struct RemoteFilter* remote;  // instead of these two, where the state is on other servers
  const KeyOperations* keys;    // of the whole tree, if it is in one
  const NodeOperations* node;
  LastStatements last;
  KeyRule rule;
  WordKey word;           // no: hashed the general way
  FilterMode mode;        // for rows that it judges; enforce for any other use
  bool mode_overridden;   // the mode comes from a setting, not from the filter's option
  bool hashes_specially;  // as the owner, or with the row: hash_specially()
  KeyRoute route;         // of the next key; set before each key by callers that know
  EventTimes times;
  HandleOverfull overfull;
  HandleValidity validity;
  HandleCounts uncounted;
};

// Was it loaded as a whole, and is what was loaded still right?
inline bool is_loaded(const FilterHandle* filter) {
  return filter->validity.loaded && filter->validity.valid;
}

// Makes the filter that is about to be attached ready to be walked through: its parent likewise,
// and its seed is the parent's. Raises what the checks of handle/tree.hpp do.
void join_parent(FilterHandle* filter, FilterRelation* relation, Use use);

// Finds or makes this backend's handle; takes no lock and checks nothing.
FilterHandle* filter_handle(Oid relid);

// Steps of kRelationSteps and kCatalogSteps. Also of roles: the owner of a filter needs rights.
void on_filter_change(Oid relid);
void on_server_change(Datum, SF_SYSCACHE_ID, uint32);

// Locks the relation until the end of the transaction, checks the current user's rights, (re)loads
// the definition and attaches the shared state, each only if needed. Cheap when repeated. Raises
// the errors of load_filter_relation and attach_slot, 42501 for missing rights, 55000 if the
// library is not preloaded (not for Use::define).
//
// | step                       | right until                      | may wait for             |
// |----------------------------|----------------------------------|--------------------------|
// | the relation's lock        | transaction or savepoint end     | who alters the relation  |
// | definition, hashers, tree  | an invalidation                  | nothing                  |
// | rights and mode            | user or use are others           | nothing                  |
// | state attached: here       | the lock is given back           | its restoration, parents |
// | state attached: elsewhere  | the definition is loaded anew    | the network, for a seed  |
// | slices, but for judges     | restored once                    | their restoration        |
void make_ready(FilterHandle* filter, Use use);
inline void use_filter(FilterHandle* filter, Use use) {
  if (unlikely(filter->validity.used_epoch != handle_epoch || filter->validity.used_for != use ||
               filter->validity.used_by != GetUserId()))
    make_ready(filter, use);
}
inline FilterHandle* filter_for_use(Oid relid, Use use) {
  FilterHandle* filter = filter_handle(relid);
  use_filter(filter, use);
  return filter;
}

// Raises 42501 if the user who set the mode may not choose it for these rows. In a trigger the
// table's owner may, too; InvalidOid if there is no table.
inline void check_mode(const FilterHandle* filter, Oid table_owner) {
  if (unlikely(filter->mode_overridden))
    check_override(filter->relation, filter->mode, table_owner);
}

// What this transaction has changed in the filter; nullptr: nothing.
inline TransactionChanges* changes_of(const FilterHandle* filter) {
  return find_changes(filter->relid, filter->slot, filter->slot_generation);
}

// An element of the filter in the table of keys in flight.
inline InFlightTag in_flight_tag_of(const FilterHandle* filter, const Element& element) {
  return in_flight_tag(filter->slot_generation, element.hash);
}

// Rows in a just truncated filter do not meet its old keys.
inline bool has_truncated(const FilterHandle* filter) {
  const TransactionChanges* changes = changes_of(filter);
  return changes != nullptr && changes->log.last_reset != kNoChange;
}

// An element of the filter that no column with a role tells more of.
inline Element new_element_for(const FilterHandle* filter) {
  return {.hash = 0, .time = unlikely(filter->times.used) ? current_time() : 0};
}

// Hashes a key, with columns in the order and of the types of relation->keys. False: a column is
// NULL, so the row has no key (it is never a repeat and not remembered).
bool hash_specially(const FilterHandle* filter, const Datum* values, const bool* isnull,
                    uint64* hash);
inline bool hash_filter_key(const FilterHandle* filter, const Datum* values, const bool* isnull,
                            uint64* hash) {
  if (likely(filter->word != WordKey::no && !isnull[0])) {
    *hash = hash_word_key(filter->word, values[0], filter->rule.seed);
    return true;
  }
  if (unlikely(filter->hashes_specially)) return hash_specially(filter, values, isnull, hash);
  return hash_key(filter->hashers, values, isnull, filter->relation->key_count, filter->rule, hash);
}

// After a look-up was counted that is the first since the counts were added to shared memory, or
// the last before they should be.
void follow_counts(FilterHandle* filter);
inline void note_counted(FilterHandle* filter) {
  if (unlikely(--filter->uncounted.left <= 0)) follow_counts(filter);
}

// Count a look-up, and its answer if the key was to be inserted.
inline void count_tested(FilterHandle* filter) {
  ++filter->uncounted.rows[RowCount::tested];
  note_counted(filter);
}
inline void count_answer(FilterHandle* filter, bool seen, Outcome of_repeats) {
  HandleCounts& counts = filter->uncounted;
  ++counts.rows[seen ? kRowCountOf[static_cast<int>(of_repeats)] : RowCount::accepted];
  counts.marked += seen && of_repeats == Outcome::marked;
  counts.spared += !seen && of_repeats != Outcome::discarded;
  ++counts.rows[RowCount::tested];
  note_counted(filter);
}
// Count the answers of a whole batch at once; `repeats`: how many of them were seen.
inline void count_answers(FilterHandle* filter, int answers, int repeats, Outcome of_repeats) {
  HandleCounts& counts = filter->uncounted;
  if (answers == 0) return;
  counts.rows[kRowCountOf[static_cast<int>(of_repeats)]] += repeats;
  counts.rows[RowCount::accepted] += static_cast<uint64>(answers - repeats);
  if (of_repeats == Outcome::marked) counts.marked += static_cast<uint64>(repeats);
  if (of_repeats != Outcome::discarded) counts.spared += static_cast<uint64>(answers - repeats);
  counts.rows[RowCount::tested] += answers;
  counts.left -= answers;
  if (unlikely(counts.left <= 0)) follow_counts(filter);
}
void count_rows(FilterHandle* filter, RowCount what, int rows);
inline void count_row(FilterHandle* filter, RowCount what) { count_rows(filter, what, 1); }

// New keys of this session so far.
inline uint64 accepted_by(const FilterHandle* filter) {
  return filter->uncounted.accepted_before + filter->uncounted.rows[RowCount::accepted];
}

// Raises 0A000 if the state is on another server; `what` names the operation.
void require_local(const FilterHandle* filter, const char* what);
// Counts where the filter found a key that is tested and inserted.
void count_found(FilterHandle* filter, unsigned position);

// Adds this backend's counts to shared memory. Cannot raise.
void flush_counters();

// Called by the coordinator (pg/commit) when locks are about to be released: at the end of the
// transaction, and when a subtransaction rolls back. Cannot raise.
void end_transaction_of_handles();
void end_subtransaction_of_handles();

}  // namespace streamfilter::pg
