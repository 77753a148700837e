// streamfilter_distinct_agg(key, position, prototype): the rows of a block of a stream that are
// first occurrences. Parallel workers hash and collect. The filter sees the keys in the order of
// their positions, once all are there, so the answer does not depend on which worker had which row.
#include "pg/server/postgres.hpp"

#include "core/filter/parallel_batch.hpp"
#include "pg/catalog/element_roles.hpp"
#include "pg/server/rows.hpp"
#include "pg/value/growing_state.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

// A row. A row without a key is never a repeat.
struct Event {
  uint64 hash;
  int64 position;
  uint64 has_key;
};

struct Block {
  Header* prototype;
  uint64 checksum;  // of the prototype
  uint64 given;     // given_prototype() of the last row
  Event* events;
  uint64 count;
  uint64 room;
};

// A block as bytes; prototype and events follow.
struct Travelling {
  uint32 host;  // length of the varlena
  uint32 unused;
  uint64 checksum;
  uint64 count;
};

// What the transition function keeps from row to row, in fn_extra.
struct CallSite {
  TypeHasher* hasher;
  bool constant_prototype;
};

constexpr uint64 kFirstRoom = 64;
constexpr uint64 kMaxEvents = MaxAllocSize / sizeof(StreamElement);
static_assert(sizeof(StreamElement) >= sizeof(Event));

[[noreturn]] void raise_too_many() {
  ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                  errmsg("too many rows in one block of a stream"),
                  errdetail("A block has at most " UINT64_FORMAT " rows.", kMaxEvents),
                  errhint("Take the stream in several blocks: the filter that one returns is the "
                          "prototype of the next.")));
}

Block* get_block(FunctionCallInfo fcinfo, int number) {
  return PG_ARGISNULL(number) ? nullptr : reinterpret_cast<Block*>(PG_GETARG_POINTER(number));
}

Block* make_block(const void* prototype, uint64 sum, MemoryContext context) {
  Block* block = allocate_zeros<Block>(1, context);
  block->prototype = copy_value(static_cast<const Header*>(prototype), context);
  block->checksum = sum;
  return block;
}

void grow_events(Block* block, uint64 more, MemoryContext context) {
  const uint64 wanted = block->count + more;
  if (wanted <= block->room) return;
  if (wanted > kMaxEvents) raise_too_many();
  const uint64 room = std::min(std::max({wanted, 2 * block->room, kFirstRoom}), kMaxEvents);
  const Size size = room * sizeof(Event);
  block->events = static_cast<Event*>(block->events == nullptr ? MemoryContextAlloc(context, size)
                                                               : repalloc(block->events, size));
  block->room = room;
}

CallSite* call_site(FunctionCallInfo fcinfo) {
  FmgrInfo* function = fcinfo->flinfo;
  if (function->fn_extra == nullptr) {
    auto* site = allocate<CallSite>(1, function->fn_mcxt);
    *site = {make_key_hasher(fcinfo, 1), is_constant_argument(fcinfo, 2)};
    function->fn_extra = site;
  }
  return static_cast<CallSite*>(function->fn_extra);
}

Block* block_for_row(FunctionCallInfo fcinfo, const CallSite* site) {
  Block* block = get_block(fcinfo, 0);
  if (block != nullptr && site->constant_prototype) return block;
  const uint64 given = given_prototype(fcinfo, 3);
  if (block != nullptr && given != 0 && given == block->given) return block;
  const Header* prototype = get_prototype(fcinfo, 3);
  const uint64 sum = checksum(prototype);
  if (block == nullptr) {
    require_promise(prototype);
    block = make_block(prototype, sum, aggregate_context(fcinfo));
  } else if (block->checksum != sum) {
    raise_changed_prototype();
  }
  block->given = given;
  return block;
}

// All events with a key, as the core takes them, in the caller's context.
ElementBatch make_batch(const Block* block) {
  auto* elements = allocate<StreamElement>(block->count);
  uint32 count = 0;
  for (uint64 i = 0; i < block->count; ++i) {
    const Event& event = block->events[i];
    if (!event.has_key) continue;
    Element element = new_element(block->prototype->parameters);
    element.hash = event.hash;
    elements[count++] = {element, event.position};
  }
  const Size groups = groups_of(block->prototype->parameters);
  return {elements, count, allocate<uint32>(Size{count} + 1), allocate<uint32>(groups + 1),
          allocate<bool>(Size{count} + 1)};
}

// With two keys of one group at one position, neither can be called the first.
void check_positions(const ElementBatch& batch, uint32 group) {
  for (uint32 i = batch.starts[group] + 1; i < batch.starts[group + 1]; ++i) {
    const int64 position = batch.elements[batch.order[i]].position;
    if (batch.elements[batch.order[i - 1]].position != position) continue;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("two rows of a block have the position " INT64_FORMAT, position),
                    errhint("Number the rows: row_number() OVER (ORDER BY ...).")));
  }
}

void insert_all(Header* filter, const ElementBatch& batch) {
  sort_by_group(filter->parameters, batch);
  const uint32 groups = groups_of(filter->parameters);
  for (uint32 group = 0; group < groups; ++group) {
    CHECK_FOR_INTERRUPTS();
    insert_group(filter, batch, group);
    check_positions(batch, group);
  }
}

// Positions of rows that are no repeats, in order.
ArrayType* make_positions(const Block* block, const ElementBatch& batch) {
  auto* positions = allocate<Datum>(block->count + 1);
  int count = 0;
  for (uint64 i = 0; i < block->count; ++i)
    if (!block->events[i].has_key) positions[count++] = Int64GetDatum(block->events[i].position);
  for (uint32 i = 0; i < batch.count; ++i)
    if (!batch.seen[i]) positions[count++] = Int64GetDatum(batch.elements[i].position);
  std::sort(positions, positions + count,
            [](Datum a, Datum b) { return DatumGetInt64(a) < DatumGetInt64(b); });
  return construct_array(positions, count, INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
                         TYPALIGN_DOUBLE);
}

}  // namespace

SF_FUNCTION(streamfilter_distinct_agg_transition) {
  CallSite* site = call_site(fcinfo);
  Block* block = block_for_row(fcinfo, site);
  if (PG_ARGISNULL(2))
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("the position of a row must not be null")));
  Event event{0, PG_GETARG_INT64(2), false};
  event.has_key =
      !PG_ARGISNULL(1) && hash_key_value(site->hasher, PG_GETARG_DATUM(1),
                                         key_rule(block->prototype->parameters), &event.hash);
  grow_events(block, 1, aggregate_context(fcinfo));
  block->events[block->count++] = event;
  PG_RETURN_POINTER(block);
}

SF_FUNCTION(streamfilter_distinct_agg_combine) {
  Block* into = get_block(fcinfo, 0);
  const Block* from = get_block(fcinfo, 1);
  const MemoryContext context = aggregate_context(fcinfo);
  if (from == nullptr) {
    if (into == nullptr) PG_RETURN_NULL();
    PG_RETURN_POINTER(into);
  }
  if (into == nullptr) into = make_block(from->prototype, from->checksum, context);
  if (into->checksum != from->checksum) raise_changed_prototype();
  grow_events(into, from->count, context);
  memcpy(into->events + into->count, from->events, from->count * sizeof(Event));
  into->count += from->count;
  PG_RETURN_POINTER(into);
}

SF_FUNCTION(streamfilter_distinct_agg_serialize) {
  const Block* block = get_block(fcinfo, 0);
  const Size memory = block_bytes(block->prototype->parameters),
             events = block->count * sizeof(Event);
  if (sizeof(Travelling) + memory + events > MaxAllocSize) raise_too_many();
  char* bytes = allocate<char>(sizeof(Travelling) + memory + events);
  const Travelling start{0, 0, block->checksum, block->count};
  memcpy(bytes, &start, sizeof start);
  memcpy(bytes + sizeof start, block->prototype, memory);
  memcpy(bytes + sizeof start + memory, block->events, events);
  SET_VARSIZE(bytes, sizeof start + memory + events);
  PG_RETURN_POINTER(bytes);
}

SF_FUNCTION(streamfilter_distinct_agg_deserialize) {
  const char* bytes = reinterpret_cast<const char*>(PG_DETOAST_DATUM(PG_GETARG_DATUM(0)));
  Travelling start;
  memcpy(&start, bytes, sizeof start);
  Header header;
  memcpy(static_cast<void*>(&header), bytes + sizeof start, sizeof header);
  const Size memory = block_bytes(header.parameters);
  char* prototype = allocate<char>(memory);
  memcpy(prototype, bytes + sizeof start, memory);
  Block* block = make_block(prototype, start.checksum, CurrentMemoryContext);
  grow_events(block, start.count, CurrentMemoryContext);
  memcpy(block->events, bytes + sizeof start + memory, start.count * sizeof(Event));
  block->count = start.count;
  PG_RETURN_POINTER(block);
}

// (positions, filter): the filter after this block is the prototype of the next block.
SF_FUNCTION(streamfilter_distinct_agg_final) {
  const Block* block = get_block(fcinfo, 0);
  if (block == nullptr) PG_RETURN_NULL();
  NamedRow row(fcinfo);
  Header* filter = copy_value(block->prototype, CurrentMemoryContext);
  const ElementBatch batch = make_batch(block);
  insert_all(filter, batch);
  row.put("positions", PointerGetDatum(make_positions(block, batch)));
  row.put("filter", stored_datum(filter));
  PG_RETURN_DATUM(row.datum());
}

}  // namespace streamfilter::pg
