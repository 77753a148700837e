// Called by other servers: local filters that hold slices of their filters, by the hashes of their
// keys.
#include "pg/server/postgres.hpp"

extern "C" {
#include "tcop/dest.h"
}

#include "core/filter/value_form.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/ddl/remote_ddl.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/judge_key.hpp"
#include "pg/handle/key_builder.hpp"
#include "pg/handle/tree.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/server/rows.hpp"

namespace streamfilter::pg {
namespace {

// Values of an array of 8-byte values; it must have `count` of them. nullptr: the argument is NULL.
const Datum* array_argument(FunctionCallInfo fcinfo, int number, Oid type, const char* name,
                            int* count) {
  if (PG_ARGISNULL(number)) return nullptr;
  ArrayType* array = PG_GETARG_ARRAYTYPE_P(number);
  if (array_contains_nulls(array))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("argument \"%s\" must not contain null", name));
  Datum* values;
  int length;
  deconstruct_array(array, type, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &values, nullptr,
                    &length);
  if (*count >= 0 && length != *count)
    ereport(ERROR, errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
            errmsg("argument \"%s\" must have as many elements as \"hashes\"", name));
  *count = length;
  return values;
}

// A filter with local state.
FilterHandle* local_filter(Oid relid, Use use) {
  FilterHandle* filter = filter_for_use(relid, Use::define);
  if (is_remote(filter->relation))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("the state of filter \"%s\" is on another server", filter->relation->name),
            errhint("Name that server as the holder of the filter."));
  use_filter(filter, use);
  return filter;
}

// Gives the filter every hash: was it there? NULL: another transaction has reserved its bits.
Datum answer(FunctionCallInfo fcinfo, Use use, Intent intent) {
  require_arguments(fcinfo, {0, 1});
  FilterHandle* filter = local_filter(PG_GETARG_OID(0), use);
  int count = -1;
  const Datum* hashes = array_argument(fcinfo, 1, INT8OID, "hashes", &count);
  const Datum* times = array_argument(fcinfo, 2, INT8OID, "times", &count);
  const Datum* importances = array_argument(fcinfo, 3, FLOAT8OID, "importances", &count);
  auto* elements = allocate<Element>(count);
  for (int i = 0; i < count; ++i) {
    elements[i] = new_element(filter->relation->definition.parameters);
    elements[i].hash = static_cast<uint64>(DatumGetInt64(hashes[i]));
    if (times != nullptr) elements[i].time = DatumGetInt64(times[i]);
    if (importances != nullptr) elements[i].importance = DatumGetFloat8(importances[i]);
  }
  prefetch_keys(filter, elements, nullptr, count);
  auto* answers = allocate<Datum>(count);
  auto* isnull = allocate<bool>(count);
  for (int i = 0; i < count; ++i) {
    CHECK_FOR_INTERRUPTS();
    use_filter(filter, use);
    const bool of_bits = intent == Intent::reserve_bits || intent == Intent::put_bits;
    const Verdict verdict = of_bits ? judge_local_key(filter, elements[i], intent)
                                    : judge_key(filter, elements[i], intent);
    if (of_bits) count_answer(filter, verdict != Verdict::fresh, Outcome::discarded);
    answers[i] = BoolGetDatum(verdict != Verdict::fresh);
    isnull[i] = of_bits && verdict == Verdict::taken;
  }
  int bound = 1;
  return PointerGetDatum(construct_md_array(answers, isnull, count > 0 ? 1 : 0, &count, &bound,
                                            BOOLOID, sizeof(bool), true, TYPALIGN_CHAR));
}

void require_erase(Oid relid) {
  const FilterRelation* relation = filter_for_use(relid, Use::define)->relation;
  const FilterOps* ops = find_ops(relation->definition.parameters.kind);
  if (ops->erase == nullptr)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("filter \"%s\" cannot forget single keys", relation->name),
            errdetail("Its kind, %s, cannot.", ops->name));
}

}  // namespace

// streamfilter_hashes_test(filter regclass, hashes bigint[], times bigint[], importances float8[])
// -> boolean[]: is each there? Needs SELECT.
SF_FUNCTION(streamfilter_hashes_test) { return answer(fcinfo, Use::test, Intent::test); }

// The same, and remembers each once the transaction commits. Needs INSERT.
SF_FUNCTION(streamfilter_hashes_seen) {
  require_writable("streamfilter_hashes_seen()");
  return answer(fcinfo, Use::insert, Intent::insert_fetched);
}

// The same for probes of keys with several: reserves each, whether or not its bits are set. NULL:
// another transaction has added the key, and option conflict calls it a repeat.
SF_FUNCTION(streamfilter_hashes_reserve) {
  require_writable("streamfilter_hashes_reserve()");
  return answer(fcinfo, Use::insert, Intent::reserve_bits);
}

// The same without a reservation, for probes of keys that are reserved elsewhere.
SF_FUNCTION(streamfilter_hashes_put) {
  require_writable("streamfilter_hashes_put()");
  return answer(fcinfo, Use::insert, Intent::put_bits);
}

// Forgets each; was it there? Needs DELETE.
SF_FUNCTION(streamfilter_hashes_erase) {
  require_writable("streamfilter_hashes_erase()");
  require_arguments(fcinfo, {0});
  const Oid relid = PG_GETARG_OID(0);
  const AclResult right = pg_class_aclcheck(relid, GetUserId(), ACL_DELETE);
  if (OidIsValid(relid) && right != ACLCHECK_OK)
    aclcheck_error(right, OBJECT_FOREIGN_TABLE, get_rel_name(relid));
  if (OidIsValid(relid)) require_erase(relid);
  return answer(fcinfo, Use::erase, Intent::erase);
}

// Takes back each key that the transaction has added. Needs INSERT.
SF_FUNCTION(streamfilter_hashes_take_back) {
  require_writable("streamfilter_hashes_take_back()");
  return answer(fcinfo, Use::insert, Intent::take_back);
}

// ---- export and import --------------------------------------------------------------------------

// Exports and imports the state of one slice, for users who move it together with its rows.

namespace {

// The number of one of so many slices. Raises 22023 if it is none.
uint32 check_slice_number(const FilterRelation* relation, uint32 slices, int32 slice) {
  if (slice < 0 || static_cast<uint32>(slice) >= slices)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("filter \"%s\" has no slice %d", relation->name, slice),
            errdetail("It has slices 0 to %u.", slices - 1));
  return static_cast<uint32>(slice);
}

// The state of one slice of a local filter that is ready for use, as this transaction sees it, as a
// bytea for read_packet. Raises 22023 if there is no such slice.
struct varlena* make_slice_packet(FilterHandle* filter, int32 number) {
  const Parameters& parameters = filter->header->parameters;
  const uint32 slice = check_slice_number(filter->relation, parameters.slices, number);
  const Size size = packet_size(parameters);
  if (size > MaxAllocSize - VARHDRSZ)
    ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
            errmsg("a slice of filter \"%s\" is too large", filter->relation->name),
            errdetail("It has %llu bytes; up to 1 GB can be returned.", llu(size)),
            errhint("Give the filter more slices."));
  Header* copy = copy_filter_slice(filter, slice);
  auto* result = static_cast<struct varlena*>(palloc(VARHDRSZ + size));
  SET_VARSIZE(result, VARHDRSZ + size);
  write_packet(copy, slice, VARDATA(result));
  pfree(copy);
  return result;
}

// The state in such a bytea, and its slice's number. Raises 22P03.
const Header* open_slice_packet(const struct varlena* packet, uint32* slice) {
  const Size length = VARSIZE_ANY_EXHDR(packet);
  Problem problem;
  auto* value = static_cast<Header*>(palloc(sizeof(Header) + length));
  if (!read_packet(VARDATA_ANY(packet), length, *slice, value, problem))
    ereport(ERROR, problem_report(problem), errcode(ERRCODE_INVALID_BINARY_REPRESENTATION));
  return value;
}

}  // namespace

// streamfilter_slice(filter regclass, VARIADIC key "any") → int: the slice of the key, the same in
// all filters with equal parameters and seed; NULL for a key that is not remembered because of a
// NULL. Role columns may be left out. Needs SELECT. Raises 0A000 if a key has several probes.
SF_FUNCTION(streamfilter_slice) {
  KeyCall* site = key_call_site(fcinfo, Use::test, "streamfilter_slice", true);
  const FilterHandle* filter = site->keys.filter;
  const Parameters& parameters = filter->relation->definition.parameters;
  if (probes(parameters) > 1)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("the keys of filter \"%s\" lie in several slices", filter->relation->name),
            errhint("Only horizontal slices have keys of their own."));
  Element element;
  if (!build_element(&site->keys, fcinfo->args + 1, &element)) PG_RETURN_NULL();
  PG_RETURN_INT32(static_cast<int32>(slice_of(parameters, element.hash)));
}

// streamfilter_export(filter regclass, slice int) → bytea: the state of the slice as this
// transaction sees it. Needs SELECT.
SF_FUNCTION(streamfilter_export) {
  require_shard_node(PG_GETARG_OID(0), "streamfilter_export");
  FilterHandle* filter = filter_for_use(PG_GETARG_OID(0), Use::test);
  require_local(filter, "streamfilter_export");
  PG_RETURN_POINTER(make_slice_packet(filter, PG_GETARG_INT32(1)));
}

// streamfilter_import(filter regclass, slice int, bytea): adds an exported slice to the same slice,
// within this transaction. Both filters must have equal kind, parameters and seed. Needs INSERT.
SF_FUNCTION(streamfilter_import) {
  require_writable("streamfilter_import()");
  require_shard_node(PG_GETARG_OID(0), "streamfilter_import");
  FilterHandle* filter = filter_for_use(PG_GETARG_OID(0), Use::insert);
  require_local(filter, "streamfilter_import");
  const uint32 slice =
      check_slice_number(filter->relation, filter->header->parameters.slices, PG_GETARG_INT32(1));
  uint32 exported;
  const Header* value = open_slice_packet(PG_GETARG_VARLENA_PP(2), &exported);
  Problem problem;
  if (!mergeable(filter->header->parameters, value->parameters, problem)) raise(problem);
  if (exported != slice)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("this is the state of slice %u, not of slice %u", exported, slice));
  merge_into_filter(filter, value, slice);
  PG_RETURN_VOID();
}

// ---- definitions --------------------------------------------------------------------------------

// Sends a filter's definition: the producer of a stream sends it to the servers that will hold its
// slices (Koloniari et al. 2011, section 3.1), and the first producer makes the relation there.

namespace {

constexpr char kServer[] = "streamfilter";

// An argument of the functions that producers call; nullptr: NULL.
const char* text_argument(FunctionCallInfo fcinfo, int number) {
  return PG_ARGISNULL(number) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(number));
}

List* add_option(List* options, const char* name, const char* value) {
  return value == nullptr ? options : lappend(options, make_option(name, value));
}

List* options_of(const Definition& definition) {
  List* options = NIL;
  for (ListedOptions given(definition); given.next();)
    options = add_option(options, given.name(), given.value());
  return options;
}

// The definition contains the seed.
void check_right_to_define(const FilterRelation* relation) {
  if (pg_class_aclmask(relation->relid, GetUserId(), ACL_INSERT | ACL_SELECT, ACLMASK_ANY) == 0)
    aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FOREIGN_TABLE, relation->name);
}

// Does the relation hold slices of another server's filter?
void check_relation(const FilterRelation* relation) {
  if (!is_remote(relation) && relation->options.producer != nullptr && relation->key_count == 1 &&
      relation->column_count == 1 && relation->columns[0].type == INT8OID)
    return;
  ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
          errmsg("filter \"%s\" exists, but does not hold slices of a filter on another server",
                 relation->name),
          errhint("Give one of the two filters another name or schema."));
}

// Locks a relation with slices of another server's filter exclusively: transactions that have used
// it have ended. Raises 42501 unless the user owns it, 42809 if it is no such relation.
FilterHandle* lock_slices(Oid relid) {
  require_own_filter(relid);
  LockRelationOid(relid, AccessExclusiveLock);
  FilterHandle* filter = filter_for_use(relid, Use::define);
  if (filter->relation->options.producer == nullptr)
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("filter \"%s\" does not hold slices of a filter on another server",
                   filter->relation->name));
  return filter;
}

// Runs CREATE FOREIGN TABLE for a relation with slices of another server's filter as if it had been
// typed, including its event triggers. Made of parse nodes, not of text, because the definition
// comes from another server.
void make_slice_relation(RangeVar* name, List* options) {
  auto* create = makeNode(CreateForeignTableStmt);
  create->base.relation = name;
  create->base.tableElts = list_make1(makeColumnDef("hash", INT8OID, -1, InvalidOid));
  create->base.oncommit = ONCOMMIT_NOOP;
  create->servername = pstrdup(kServer);
  create->options = options;

  auto* statement = makeNode(PlannedStmt);
  statement->commandType = CMD_UTILITY;
  statement->canSetTag = false;
  statement->utilityStmt = reinterpret_cast<Node*>(create);
  statement->stmt_location = -1;
  ProcessUtility(statement, "CREATE FOREIGN TABLE of a filter on another server", false,
                 PROCESS_UTILITY_QUERY, nullptr, nullptr, None_Receiver, nullptr);
  CommandCounterIncrement();
}

// Lets only one of several sessions make a relation, without blocking anybody else. Raises 42501
// without USAGE on the server of filters.
void lock_slice_relations() {
  const Oid server = GetForeignServerByName(kServer, false)->serverid;
  const AclResult right = SF_SERVER_ACLCHECK(server, GetUserId(), ACL_USAGE);
  if (right != ACLCHECK_OK) aclcheck_error(right, OBJECT_FOREIGN_SERVER, kServer);
  LockDatabaseObject(ForeignServerRelationId, server, 0, ShareUpdateExclusiveLock);
  AcceptInvalidationMessages();
}

// Adds an option to those of an ALTER FOREIGN TABLE, unless it has the value already. nullptr: it
// stays as it is.
void append_option_change(StringInfo changes, List* before, const char* name, const char* value) {
  const char* old = find_option(before, name);
  if (value == nullptr || (old != nullptr && strcmp(old, value) == 0)) return;
  appendStringInfo(changes, "%s%s %s %s", changes->len > 0 ? ", " : "",
                   old != nullptr ? "SET" : "ADD", name, quote_literal_cstr(value));
}

// In which life of it the relation is, and how many rows of the log that has had, so that a
// producer notices one that was made anew or restored from an older backup. A transaction that is
// committing may take its numbers with it in a crash: then none is told.
void put_life(NamedRow& row, Oid relid) {
  const FilterHandle* filter = local_filter(relid, Use::test_granted);
  FilterSlot* slot = filter->slot;
  if (slot == nullptr || pg_atomic_read_u32(&slot->saved.has_header) == 0) return;
  row.put_count("life", slot->saved.identity);
  if (!slot->saved.logged) return;  // nothing is logged of it: its numbers begin anew at a restart
  const uint64 number = pg_atomic_read_u64(&slot->log.next_number);
  pg_memory_barrier();
  PhaseGate* commits = &slot->log.commits;
  if (pg_atomic_read_u32(&commits->inside[0]) + pg_atomic_read_u32(&commits->inside[1]) == 0)
    row.put_count("number", number);
}

}  // namespace

// streamfilter_hashes_define(schema_name text, table_name text, wanted text, conflict text,
// persistence text, producer text, OUT definition text, OUT made boolean, OUT life bigint, OUT
// number bigint): makes the relation for the slices unless it exists, and returns its definition.
// If `wanted` is NULL, only looks for it: NULL if there is none.
SF_FUNCTION(streamfilter_hashes_define) {
  NamedRow row(fcinfo);
  require_arguments(fcinfo, {0, 1});
  char* schema = text_to_cstring(PG_GETARG_TEXT_PP(0));
  RangeVar* relation_name = makeRangeVar(schema, text_to_cstring(PG_GETARG_TEXT_PP(1)), -1);
  const char* wanted = text_argument(fcinfo, 2);
  // Waits for who is dropping it, and then looks again.
  Oid relid = RangeVarGetRelid(relation_name, AccessShareLock, true);
  if (!OidIsValid(relid) && wanted != nullptr) {
    lock_slice_relations();
    relid = RangeVarGetRelid(relation_name, AccessShareLock, true);
  }
  const bool made = !OidIsValid(relid) && wanted != nullptr;
  if (made) {
    List* options = options_of(definition_in(wanted));
    options = add_option(options, "conflict", text_argument(fcinfo, 3));
    options = add_option(options, "persistence", text_argument(fcinfo, 4));
    make_slice_relation(relation_name, add_option(options, "producer", text_argument(fcinfo, 5)));
    relid = RangeVarGetRelid(relation_name, AccessShareLock, false);
  }
  row.put("made", BoolGetDatum(made));
  if (OidIsValid(relid)) {
    const FilterRelation* relation = load_filter_relation(relid);
    check_right_to_define(relation);
    check_relation(relation);
    if (wanted != nullptr && !made)
      check_producer_agrees(relation, read_producer(text_argument(fcinfo, 5)),
                            text_argument(fcinfo, 3));
    char found[kMaxDefinitionText];
    print_definition(relation->definition.parameters, found, sizeof found);
    row.put("definition", found);
    if (wanted != nullptr && !made && !is_remote(relation)) put_life(row, relid);
  }
  PG_RETURN_DATUM(row.datum());
}

// streamfilter_hashes_alter(filter regclass, conflict text, persistence text, producer text):
// called by the server where a filter is altered, gives new options to the relation with its
// slices. NULL leaves an option unchanged. Needs ownership.
SF_FUNCTION(streamfilter_hashes_alter) {
  require_arguments(fcinfo, {0});
  const Oid relid = PG_GETARG_OID(0);
  const char* producer = text_argument(fcinfo, 3);
  check_producer_agrees(lock_slices(relid)->relation, read_producer(producer), nullptr);
  List* before = options_of_filter(relid);
  TextBuffer changes;
  append_option_change(&changes, before, "conflict", text_argument(fcinfo, 1));
  append_option_change(&changes, before, "persistence", text_argument(fcinfo, 2));
  append_option_change(&changes, before, "producer", producer);
  if (changes.len > 0) alter_options(relid, changes.data);
  PG_RETURN_VOID();
}

// streamfilter_disconnect(): closes connections of this session that its transaction does not need.
SF_FUNCTION(streamfilter_disconnect) { PG_RETURN_INT32(disconnect_unneeded()); }

}  // namespace streamfilter::pg
