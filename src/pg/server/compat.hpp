// Differences between PostgreSQL 15 and 19. Every test of PG_VERSION_NUM is here, or, of what the
// server keeps for itself, in compat_private.hpp.
#pragma once

#if PG_VERSION_NUM < 150000
#error "streamfilter needs PostgreSQL 15 or later"
#elif PG_VERSION_NUM >= 200000 && !defined(STREAMFILTER_NEWER_SERVER)
#error \
    "streamfilter knows PostgreSQL 15 to 19; compile with -DSTREAMFILTER_NEWER_SERVER to try a newer one"
#endif
#if SIZEOF_VOID_P != 8
#error "streamfilter needs a server of 64 bits"
#endif
#ifdef WORDS_BIGENDIAN
#error "streamfilter needs a little-endian machine: so are the bytes of its filters"
#endif

#if PG_VERSION_NUM >= 160000
extern "C" {
#include "varatt.h"
}
#endif

// Input functions report bad input softly where the server can (pg_input_is_valid, COPY ON_ERROR).
#if PG_VERSION_NUM >= 160000
extern "C" {
#include "nodes/miscnodes.h"
}
#define SF_INPUT_ERROR(fcinfo, dummy, ...) ereturn((fcinfo)->context, dummy, __VA_ARGS__)
#else
#define SF_INPUT_ERROR(fcinfo, dummy, ...) \
  do {                                     \
    ereport(ERROR, __VA_ARGS__);           \
    return dummy;                          \
  } while (0)
#endif

// Wait events of extensions have names since 17.
#if PG_VERSION_NUM >= 170000
#define SF_NEW_WAIT_EVENT(name) WaitEventExtensionNew(name)
#else
#define SF_NEW_WAIT_EVENT(name) 0
#endif

// A WaitEventSet belongs to a resource owner since 17; before, its memory to a context.
#if PG_VERSION_NUM >= 170000
#define SF_CREATE_WAIT_EVENT_SET(count) CreateWaitEventSet(CurrentResourceOwner, count)
#else
#define SF_CREATE_WAIT_EVENT_SET(count) CreateWaitEventSet(CurrentMemoryContext, count)
#endif

// Has the client sent bytes that nobody has read?
#if PG_VERSION_NUM >= 170000
#define SF_CLIENT_HAS_SENT_MORE() (pq_buffer_remaining_data() > 0)
#else
#define SF_CLIENT_HAS_SENT_MORE() pq_buffer_has_data()
#endif

// The range table of an executor with one relation that `user` uses.
#if PG_VERSION_NUM >= 180000
#define SF_INIT_RANGE_TABLE(executor, entry, user)                                       \
  do {                                                                                   \
    List* permissions = NIL;                                                             \
    addRTEPermissionInfo(&permissions, entry)->checkAsUser = user;                       \
    ExecInitRangeTable(executor, list_make1(entry), permissions, bms_make_singleton(1)); \
  } while (0)
#elif PG_VERSION_NUM >= 160000
#define SF_INIT_RANGE_TABLE(executor, entry, user)                 \
  do {                                                             \
    List* permissions = NIL;                                       \
    addRTEPermissionInfo(&permissions, entry)->checkAsUser = user; \
    ExecInitRangeTable(executor, list_make1(entry), permissions);  \
  } while (0)
#else
#define SF_INIT_RANGE_TABLE(executor, entry, user)   \
  do {                                               \
    (entry)->checkAsUser = user;                     \
    ExecInitRangeTable(executor, list_make1(entry)); \
  } while (0)
#endif

// The callback is declared without parameters before 16.
#if PG_VERSION_NUM >= 160000
#define SF_WALK_PLANSTATE(state, walker, context) planstate_tree_walker(state, walker, context)
#else
#define SF_WALK_PLANSTATE(state, walker, context)                                                  \
  planstate_tree_walker(state, reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(walker)), \
                        context)
#endif

// Does this transaction hold the lock in this mode?
#if PG_VERSION_NUM >= 170000
#define SF_LOCK_HELD_BY_ME(tag, mode) LockHeldByMe(tag, mode, false)
#else
#define SF_LOCK_HELD_BY_ME(tag, mode) LockHeldByMe(tag, mode)
#endif

// Is it WHEN NOT MATCHED, of a MERGE?
#if PG_VERSION_NUM >= 170000
#define SF_IS_NOT_MATCHED(action) ((action)->matchKind == MERGE_WHEN_NOT_MATCHED_BY_TARGET)
#else
#define SF_IS_NOT_MATCHED(action) (!(action)->matched)
#endif

// The current action of a MERGE: CMD_INSERT, CMD_UPDATE, … Before 17 the action is not visible, but
// ExecMergeMatched gives its expressions the target's row, whereas ExecMergeNotMatched has none.
#if PG_VERSION_NUM >= 170000
#define SF_MERGE_COMMAND(state)                      \
  ((state)->mt_merge_action == nullptr ? CMD_UNKNOWN \
                                       : (state)->mt_merge_action->mas_action->commandType)
#else
#define SF_MERGE_COMMAND(state)                                          \
  ((state)->ps.ps_ExprContext == nullptr                   ? CMD_UNKNOWN \
   : (state)->ps.ps_ExprContext->ecxt_scantuple == nullptr ? CMD_INSERT  \
                                                           : CMD_UPDATE)
#endif

// EXPLAIN's state and its properties have headers of their own since 18.
#if PG_VERSION_NUM >= 180000
extern "C" {
#include "commands/explain_format.h"
#include "commands/explain_state.h"
}
#endif

// A path of a foreign scan without fdw_outerpath, fdw_restrictinfo (17) and fdw_private.
#if PG_VERSION_NUM >= 180000
#define SF_CREATE_FOREIGNSCAN_PATH(root, rel, rows, disabled_nodes, startup, total, outer)      \
  create_foreignscan_path(root, rel, nullptr, rows, disabled_nodes, startup, total, NIL, outer, \
                          nullptr, NIL, NIL)
#elif PG_VERSION_NUM >= 170000
#define SF_CREATE_FOREIGNSCAN_PATH(root, rel, rows, disabled_nodes, startup, total, outer)     \
  (static_cast<void>(disabled_nodes),                                                          \
   create_foreignscan_path(root, rel, nullptr, rows, startup, total, NIL, outer, nullptr, NIL, \
                           NIL))
#else
#define SF_CREATE_FOREIGNSCAN_PATH(root, rel, rows, disabled_nodes, startup, total, outer) \
  (static_cast<void>(disabled_nodes),                                                      \
   create_foreignscan_path(root, rel, nullptr, rows, startup, total, NIL, outer, nullptr, NIL))
#endif

// The callback is declared without parameters before 16.
#if PG_VERSION_NUM >= 160000
#define SF_WALK_EXPRESSION(node, walker, context) expression_tree_walker(node, walker, context)
#else
#define SF_WALK_EXPRESSION(node, walker, context)                                                  \
  expression_tree_walker(node, reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(walker)), \
                         context)
#endif

#if PG_VERSION_NUM >= 160000
#define SF_WALK_QUERY(query, walker, context, flags) \
  query_tree_walker(query, walker, context, flags)
#else
#define SF_WALK_QUERY(query, walker, context, flags)                                           \
  query_tree_walker(query, reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(walker)), \
                    context, flags)
#endif

// The relations that a statement uses, with their rights: relid and requiredPerms.
#if PG_VERSION_NUM >= 160000
#define SF_PERMISSIONS(statement) ((statement)->permInfos)
#define SF_RELATION_PERMISSIONS RTEPermissionInfo
#else
#define SF_PERMISSIONS(statement) ((statement)->rtable)
#define SF_RELATION_PERMISSIONS RangeTblEntry
#endif

// Parses names in text; raises syntax errors.
#if PG_VERSION_NUM >= 160000
#define SF_PARSE_TYPE_STRING(text, type, typmod) \
  static_cast<void>(parseTypeString(text, type, typmod, nullptr))
#define SF_STRING_TO_QUALIFIED_NAME_LIST(text) stringToQualifiedNameList(text, nullptr)
#else
#define SF_PARSE_TYPE_STRING(text, type, typmod) parseTypeString(text, type, typmod, false)
#define SF_STRING_TO_QUALIFIED_NAME_LIST(text) stringToQualifiedNameList(text)
#endif

// Rights on a foreign server.
#if PG_VERSION_NUM >= 160000
#define SF_SERVER_ACLCHECK(server, user, right) \
  object_aclcheck(ForeignServerRelationId, server, user, right)
#else
#define SF_SERVER_ACLCHECK(server, user, right) pg_foreign_server_aclcheck(server, user, right)
#endif

// Rights on a schema.
#if PG_VERSION_NUM >= 160000
#define SF_SCHEMA_ACLCHECK(schema, user, right) \
  object_aclcheck(NamespaceRelationId, schema, user, right)
#else
#define SF_SCHEMA_ACLCHECK(schema, user, right) pg_namespace_aclcheck(schema, user, right)
#endif

// The level of messages that go to the server's log: one for each type of process since 19.
#if PG_VERSION_NUM >= 190000
#define SF_LOG_MIN_MESSAGES log_min_messages[MyBackendType]
#else
#define SF_LOG_MIN_MESSAGES log_min_messages
#endif

// The oldest transaction in the commit log.
#if PG_VERSION_NUM >= 170000
#define SF_OLDEST_CLOG_XID (TransamVariables->oldestClogXid)
#else
#define SF_OLDEST_CLOG_XID (ShmemVariableCache->oldestClogXid)
#endif

// The number of a relation's file.
#if PG_VERSION_NUM >= 160000
#define SF_FILE_NUMBER(relation) ((relation)->rd_locator.relNumber)
#else
#define SF_FILE_NUMBER(relation) ((relation)->rd_node.relNode)
#endif

// Gives a relation new, empty storage.
#if PG_VERSION_NUM >= 160000
#define SF_RELATION_SET_NEW_STORAGE(relation) \
  RelationSetNewRelfilenumber(relation, (relation)->rd_rel->relpersistence)
#else
#define SF_RELATION_SET_NEW_STORAGE(relation) \
  RelationSetNewRelfilenode(relation, (relation)->rd_rel->relpersistence)
#endif

// Data that check hooks of settings pass on.
#if PG_VERSION_NUM >= 160000
#define SF_GUC_MALLOC(size) guc_malloc(LOG, size)
#else
#define SF_GUC_MALLOC(size) malloc(size)
#endif

// Standard EXPLAIN of a query, without hooks.
#if PG_VERSION_NUM >= 170000
#define SF_EXPLAIN_ONE_QUERY(query, options, into, es, text, params, env) \
  standard_ExplainOneQuery(query, options, into, es, text, params, env)
#else
#define SF_EXPLAIN_ONE_QUERY(query, options, into, es, text, params, env)                          \
  do {                                                                                             \
    const BufferUsage before = pgBufferUsage;                                                      \
    BufferUsage used = {};                                                                         \
    instr_time start, duration;                                                                    \
    INSTR_TIME_SET_CURRENT(start);                                                                 \
    PlannedStmt* plan = pg_plan_query(query, text, options, params);                               \
    INSTR_TIME_SET_CURRENT(duration);                                                              \
    INSTR_TIME_SUBTRACT(duration, start);                                                          \
    BufferUsageAccumDiff(&used, &pgBufferUsage, &before);                                          \
    ExplainOnePlan(plan, into, es, text, params, env, &duration, (es)->buffers ? &used : nullptr); \
  } while (0)
#endif

// Rebuilds the indexes of a relation.
#if PG_VERSION_NUM >= 170000
#define SF_REINDEX_RELATION(relid, parameters) \
  reindex_relation(nullptr, relid, REINDEX_REL_PROCESS_TOAST, parameters)
#else
#define SF_REINDEX_RELATION(relid, parameters) \
  reindex_relation(relid, REINDEX_REL_PROCESS_TOAST, parameters)
#endif

// Was the table's file created in this transaction?
#if PG_VERSION_NUM >= 160000
#define SF_HAS_NEW_FILE(table)                           \
  ((table)->rd_createSubid != InvalidSubTransactionId || \
   (table)->rd_firstRelfilelocatorSubid != InvalidSubTransactionId)
#else
#define SF_HAS_NEW_FILE(table)                           \
  ((table)->rd_createSubid != InvalidSubTransactionId || \
   (table)->rd_firstRelfilenodeSubid != InvalidSubTransactionId)
#endif

// Conversion of a partitioned table's rows to rows of a partition that ExecFindPartition has found.
#if PG_VERSION_NUM >= 160000
#define SF_ROOT_TO_CHILD_MAP(target, estate) ExecGetRootToChildMap(target, estate)
#else
#define SF_ROOT_TO_CHILD_MAP(target, estate) ((target)->ri_RootToPartitionMap)
#endif

// Inserts index entries of a row, or of one that ON CONFLICT may take back.
#if PG_VERSION_NUM >= 190000
#define SF_INSERT_INDEX_TUPLES_UNLESS(target, row, estate, conflict, arbiters) \
  ExecInsertIndexTuples(target, estate, EIIT_NO_DUPE_ERROR, row, arbiters, conflict)
#define SF_INSERT_INDEX_TUPLES(target, row, estate) \
  ExecInsertIndexTuples(target, estate, 0, row, NIL, nullptr)
#elif PG_VERSION_NUM >= 160000
#define SF_INSERT_INDEX_TUPLES_UNLESS(target, row, estate, conflict, arbiters) \
  ExecInsertIndexTuples(target, row, estate, false, true, conflict, arbiters, false)
#define SF_INSERT_INDEX_TUPLES(target, row, estate) \
  ExecInsertIndexTuples(target, row, estate, false, false, nullptr, NIL, false)
#else
#define SF_INSERT_INDEX_TUPLES_UNLESS(target, row, estate, conflict, arbiters) \
  ExecInsertIndexTuples(target, row, estate, false, true, conflict, arbiters)
#define SF_INSERT_INDEX_TUPLES(target, row, estate) \
  ExecInsertIndexTuples(target, row, estate, false, false, nullptr, NIL)
#endif

// Is the row in none of the arbiter indexes (NIL: of all)?
#if PG_VERSION_NUM >= 180000
#define SF_HAS_NO_CONFLICT(target, row, estate, found, own, arbiters) \
  ExecCheckIndexConstraints(target, row, estate, found, own, arbiters)
#else
#define SF_HAS_NO_CONFLICT(target, row, estate, found, own, arbiters) \
  (static_cast<void>(own), ExecCheckIndexConstraints(target, row, estate, found, arbiters))
#endif

// Number of this process among the backends, from 0; negative: it is none.
#if PG_VERSION_NUM >= 170000
#define SF_MY_BACKEND MyProcNumber
#else
#define SF_MY_BACKEND (MyBackendId - 1)
#endif

// Slot of a custom scan that passes on the rows of its child.
#if PG_VERSION_NUM >= 190000
#define SF_INIT_SCAN_TUPLE_SLOT(estate, node, descriptor, ops) \
  ExecInitScanTupleSlot(estate, node, descriptor, ops, 0)
#else
#define SF_INIT_SCAN_TUPLE_SLOT(estate, node, descriptor, ops) \
  ExecInitScanTupleSlot(estate, node, descriptor, ops)
#endif

// Elements of an array; since 19 the type comes first.
#if PG_VERSION_NUM >= 190000
#define SF_ARRAY_ITER_SETUP(iterator, array, length, by_value, align) \
  array_iter_setup(iterator, array, length, by_value, align)
#define SF_ARRAY_ITER_NEXT(iterator, isnull, i, length, by_value, align) \
  array_iter_next(iterator, isnull, i)
#else
#define SF_ARRAY_ITER_SETUP(iterator, array, length, by_value, align) \
  array_iter_setup(iterator, array)
#define SF_ARRAY_ITER_NEXT(iterator, isnull, i, length, by_value, align) \
  array_iter_next(iterator, isnull, i, length, by_value, align)
#endif

// A hash table in shared memory, of a fixed size.
#if PG_VERSION_NUM >= 190000
#define SF_SHMEM_INIT_HASH(name, size, control, flags) ShmemInitHash(name, size, control, flags)
#else
#define SF_SHMEM_INIT_HASH(name, size, control, flags) \
  ShmemInitHash(name, size, size, control, flags)
#endif

// The cache of catalog rows that a callback is about.
#if PG_VERSION_NUM >= 190000
#define SF_SYSCACHE_ID SysCacheIdentifier
#else
#define SF_SYSCACHE_ID int
#endif

// Does a domain have constraints?
#if PG_VERSION_NUM >= 190000
#define SF_DOMAIN_HAS_CONSTRAINTS(type) DomainHasConstraints(type, nullptr)
#else
#define SF_DOMAIN_HAS_CONSTRAINTS(type) DomainHasConstraints(type)
#endif

// What EXPLAIN ANALYZE measures of a trigger.
#if PG_VERSION_NUM >= 190000
#define SF_TRIGGER_CLOCK TriggerInstrumentation
#define SF_START_TRIGGER_CLOCK(clock) InstrStartTrigger(clock)
#define SF_STOP_TRIGGER_CLOCK(clock) InstrStopTrigger(clock, 1)
#else
#define SF_TRIGGER_CLOCK Instrumentation
#define SF_START_TRIGGER_CLOCK(clock) InstrStartNode(clock)
#define SF_STOP_TRIGGER_CLOCK(clock) InstrStopNode(clock, 1)
#endif

// Range table indexes of the relations that a statement writes to.
#if PG_VERSION_NUM >= 190000
#define SF_NEXT_RESULT_RELATION(statement, previous) \
  bms_next_member((statement)->resultRelationRelids, previous)
#else
#define SF_NEXT_RESULT_RELATION(statement, previous) \
  next_result_relation((statement)->resultRelations, previous)
extern "C" {
#include "nodes/pg_list.h"
}
// The least member of the list above `previous`; negative: there is none.
inline int next_result_relation(const List* relations, int previous) {
  int next = -2;
  for (int i = 0; i < list_length(relations); ++i) {
    const int member = list_nth_int(relations, i);
    if (member > previous && (next < 0 || member < next)) next = member;
  }
  return next;
}
#endif

// Has the domain checks for its values?
#if PG_VERSION_NUM >= 190000
#define SF_DOMAIN_HAS_CONSTRAINTS(type) DomainHasConstraints(type, nullptr)
#else
#define SF_DOMAIN_HAS_CONSTRAINTS(type) DomainHasConstraints(type)
#endif

// CLUSTER, which is a form of REPACK since 19.
#if PG_VERSION_NUM >= 190000
#define SF_CLUSTER_TAG T_RepackStmt
#define SF_CLUSTERED_RELATION(node)                \
  (castNode(RepackStmt, node)->relation == nullptr \
       ? nullptr                                   \
       : castNode(RepackStmt, node)->relation->relation)
#else
#define SF_CLUSTER_TAG T_ClusterStmt
#define SF_CLUSTERED_RELATION(node) castNode(ClusterStmt, node)->relation
#endif

// A scan of a whole table; its callers give hints since 19.
#if PG_VERSION_NUM >= 190000
#define SF_TABLE_BEGINSCAN(table, snapshot) table_beginscan(table, snapshot, 0, nullptr, SO_NONE)
#else
#define SF_TABLE_BEGINSCAN(table, snapshot) table_beginscan(table, snapshot, 0, nullptr)
#endif

// Since 19 ANALYZE has a limit of its own.
#if PG_VERSION_NUM >= 190000
#define SF_LOG_VACUUM_MIN_DURATION log_vacuum_min_duration
#else
#define SF_LOG_VACUUM_MIN_DURATION log_min_duration
#endif

// Index scans get a place for their statistics, and since 19 hints.
#if PG_VERSION_NUM >= 190000
#define SF_INDEX_BEGINSCAN(table, index, snapshot, keys) \
  index_beginscan(table, index, snapshot, nullptr, keys, 0, SO_NONE)
#elif PG_VERSION_NUM >= 180000
#define SF_INDEX_BEGINSCAN(table, index, snapshot, keys) \
  index_beginscan(table, index, snapshot, nullptr, keys, 0)
#else
#define SF_INDEX_BEGINSCAN(table, index, snapshot, keys) \
  index_beginscan(table, index, snapshot, keys, 0)
#endif

// Finishes a row type whose columns are all set.
#if PG_VERSION_NUM >= 190000
#define SF_TUPLE_DESC_FINALIZE(type) TupleDescFinalize(type)
#else
#define SF_TUPLE_DESC_FINALIZE(type) static_cast<void>(type)
#endif

// Has the list of RETURNING columns of OLD or NEW?
#if PG_VERSION_NUM >= 180000
#define SF_RETURNS_OLD_OR_NEW(list) contain_vars_returning_old_or_new(list)
#else
#define SF_RETURNS_OLD_OR_NEW(list) false
#endif
