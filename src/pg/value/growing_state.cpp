#include "pg/server/postgres.hpp"

extern "C" {
#include "nodes/primnodes.h"
}

#include "core/base/math_policy.hpp"
#include "pg/server/compat_private.hpp"
#include "pg/server/rows.hpp"
#include "pg/value/compact_value.hpp"
#include "pg/value/growing_state.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

using exa_log_log::WordTable;

const Word* list_of(const GrowingState* state) {
  return state->words != nullptr ? state->words : state->first;
}

uint32 places_of(const GrowingState* state) {
  return state->bits > 0 ? uint32{1} << state->bits : state->count;
}

template <typename Visit>
void for_each_word(const GrowingState* state, Visit visit) {
  const Word* words = list_of(state);
  for (uint32 i = 0; i < places_of(state); ++i)
    if (words[i] != 0) visit(words[i]);
}

Word* list_sorted(const GrowingState* state) {
  Word* words = allocate<Word>(state->count + 1);
  Word* end = words;
  for_each_word(state, [&](Word word) { *end++ = word; });
  sort_words(words, state->count);
  return words;
}

// Would twice the size be half of the filter, or hold more than half of the tokens that the filter
// has room for? Words stand for tokens only.
bool is_large(const GrowingState* state) {
  const uint64 larger = uint64{2} << state->bits, places = exa_log_log::places_of(state->its());
  return 2 * larger * sizeof(Word) > state->its().memory ||
         larger / 4 * 3 > exa_log_log::most_tokens(places) / 2;
}

// Sets the counters of a filter made of these words only.
void count_insertions(const GrowingState* state, Header* filter) {
  for (uint32 i = 0; i < filter->parameters.slices; ++i) {
    SliceState& slice = *slice_at(filter, i).state;
    slice.insertions = state->extra != nullptr ? state->extra->insertions[i] : slice.inserted_new;
  }
}

Header* filter_of_words(const GrowingState* state, MemoryContext context) {
  Header* filter = make_value(*state->parameters, context);
  for_each_word(state, [&](Word word) {
    exa_log_log::add_word(filter, word);
    ++slice_at(filter, exa_log_log::slice_of_word(*state->parameters, word)).state->inserted_new;
  });
  count_insertions(state, filter);
  return filter;
}

void become_filter(GrowingState* state, MemoryContext context) {
  state->filter = filter_of_words(state, context);
  if (state->words != nullptr) pfree(state->words);
  state->waiting = allocate_zeros<WaitingKey>(GrowingState::kWaiting, context);
  state->count = state->bits = 0;
}

// A table of their own for the words.
void move_to_table(GrowingState* state, uint32 bits, MemoryContext context) {
  const WordTable table = {
      static_cast<Word*>(MemoryContextAllocZero(context, sizeof(Word) << bits)), bits};
  for_each_word(state, [&](Word word) { table.add(word); });
  state->words = table.words;
  state->bits = bits;
}

void become_larger(GrowingState* state, MemoryContext context) {
  Word* former = state->words;
  move_to_table(state, state->bits > 0 ? state->bits + 1 : GrowingState::kFirstBits, context);
  if (former != nullptr) pfree(former);
}

// Makes room for one more key. False: the state is a filter now.
pg_noinline bool grow_state(FunctionCallInfo fcinfo, GrowingState* state) {
  const MemoryContext context = aggregate_context(fcinfo);
  if (is_large(state))
    become_filter(state, context);
  else
    become_larger(state, context);
  return state->filter == nullptr;
}

bool is_listed(const GrowingState* state, Word word) {
  const Word* words = list_of(state);
  return std::find(words, words + state->count, word) != words + state->count;
}

// Adds the waiting keys. They are so few that any table has places left for them.
void catch_up(GrowingState* state) {
  for (; state->waits > 0; --state->waits)
    state->count += !WordTable{state->words, state->bits}.add(state->first[state->waits - 1]);
  if (state->filter == nullptr || state->waiting == nullptr) return;
  for (uint32 i = 0; i < GrowingState::kWaiting; ++i) add_waiting(state, &state->waiting[i]);
}

StateExtra* make_extra(uint32 slices, MemoryContext context) {
  return static_cast<StateExtra*>(
      MemoryContextAllocZero(context, offsetof(StateExtra, insertions) + slices * sizeof(uint64)));
}

// A state that was a list has no memory of its own.
void own_words(GrowingState* state, MemoryContext context) {
  if (state->bits == 0 && state->words == nullptr) return;
  if (state->bits == 0) {
    uint32 bits = GrowingState::kFirstBits;
    while (!WordTable{nullptr, bits}.has_room(state->count)) ++bits;
    move_to_table(state, bits, context);
  } else {
    state->words =
        static_cast<Word*>(memcpy(MemoryContextAlloc(context, sizeof(Word) << state->bits),
                                  state->words, sizeof(Word) << state->bits));
  }
}

void require_mergeable(const Parameters& into, const Parameters& from) {
  Problem problem;
  if (!mergeable(into, from, problem)) raise(problem);
}

void add_insertions(GrowingState* into, const GrowingState* from) {
  for (uint32 i = 0; i < from->parameters->slices; ++i) {
    const uint64 more = from->extra != nullptr ? from->extra->insertions[i] : 0;
    if (into->filter != nullptr) {
      uint64& insertions = slice_at(into->filter, i).state->insertions;
      insertions = std::min(insertions + more, kMaxInsertions);
    } else if (into->extra != nullptr) {
      into->extra->insertions[i] += more;
    }
  }
}

}  // namespace

bool can_grow(const Parameters& parameters) {
  return parameters.memory >= (sizeof(Word) << (GrowingState::kFirstBits + 2)) &&
         exa_log_log::has_words(parameters);
}

GrowingState* make_growing(const Parameters* parameters, bool for_filter, MemoryContext context) {
  auto* state = allocate_zeros<GrowingState>(1, context);
  state->parameters = parameters;
  if (for_filter) state->extra = make_extra(parameters->slices, context);
  return state;
}

GrowingState* make_counting(const Parameters* parameters, MemoryContext context) {
  GrowingState* state = make_growing(parameters, true, context);
  state->extra->in_window = true;
  state->extra->change = 1;
  return state;
}

GrowingState* make_state(Header* filter, MemoryContext context) {
  auto* state = allocate_zeros<GrowingState>(1, context);
  state->filter = filter;
  return state;
}

void add_word(FunctionCallInfo fcinfo, GrowingState* state, Word word) {
  if (state->bits == 0) {
    if (is_listed(state, word)) return;
    if (state->count < GrowingState::kFirst) {
      state->first[state->count++] = word;
      return;
    }
  }
  if ((state->bits == 0 || !WordTable{state->words, state->bits}.has_room(state->count)) &&
      !grow_state(fcinfo, state)) {
    exa_log_log::add_word(state->filter, word);
    return;
  }
  state->count += !WordTable{state->words, state->bits}.add(word);
}

pg_noinline void add_waiting_words(FunctionCallInfo fcinfo, GrowingState* state) {
  Word words[GrowingState::kFirst];
  const WordTable table = {state->words, state->bits};
  for (uint32 i = 0; i < GrowingState::kFirst; ++i) {
    words[i] = state->first[i];
    __builtin_prefetch(table.words + table.home_of(words[i]), 1);
  }
  state->waits = 0;
  for (const Word word : words)
    if (state->filter != nullptr)
      exa_log_log::add_word(state->filter, word);
    else
      add_word(fcinfo, state, word);
}

void insert_in_window(FunctionCallInfo fcinfo, GrowingState* state, uint64 hash) {
  StateExtra& extra = *state->extra;
  const Word word = exa_log_log::word_of(*state->parameters, hash);
  const double before = extra.change;
  const uint32 count = state->count;
  if (state->filter != nullptr) {
    if (exa_log_log::add_word(state->filter, word, extra.change)) return;
  } else {
    add_word(fcinfo, state, word);
    if (state->filter == nullptr && state->count == count) return;
    extra.change = state->filter != nullptr
                       ? exa_log_log::change_of(state->filter)
                       : before - exa_log_log::share_of(*state->parameters, word);
  }
  extra.counted += 1 / before;
}

void merge_state(FunctionCallInfo fcinfo, GrowingState* into, GrowingState* from) {
  catch_up(into);
  catch_up(from);
  const Parameters &p = into->its(), &other = from->its();
  if (into->filter == nullptr || from->filter == nullptr) require_mergeable(p, other);
  if (from->filter != nullptr) {
    if (into->filter == nullptr) become_filter(into, aggregate_context(fcinfo));
    return merge_value(into->filter, from->filter);
  }
  for_each_word(from, [&](Word word) {
    if (into->filter != nullptr)
      exa_log_log::add_word(into->filter, word);
    else
      add_word(fcinfo, into, word);
  });
  add_insertions(into, from);
}

GrowingState* copy_growing_state(GrowingState* from, const Parameters* parameters,
                                 MemoryContext context) {
  catch_up(from);
  if (from->filter != nullptr) return make_state(copy_value(from->filter, context), context);
  auto* state = allocate_zeros<GrowingState>(1, context);
  *state = *from;
  state->parameters = parameters;
  own_words(state, context);
  if (from->extra == nullptr) return state;
  state->extra = make_extra(parameters->slices, context);
  memcpy(state->extra, from->extra,
         offsetof(StateExtra, insertions) + parameters->slices * sizeof(uint64));
  return state;
}

// Merged states are counted anew, so that neither the order of rows nor that of merges matters.
Datum finished_value(GrowingState* state) {
  catch_up(state);
  if (state->filter == nullptr) {
    Word* words = list_sorted(state);
    const Datum value =
        words_datum(*state->parameters, words, state->count, state->extra->insertions);
    pfree(words);
    if (value != 0) return value;
  }
  Header* filter = state->filter != nullptr ? copy_value(state->filter, CurrentMemoryContext)
                                            : filter_of_words(state, CurrentMemoryContext);
  settle_value(filter);
  return value_datum(filter);
}

int64 count_keys(GrowingState* state) {
  catch_up(state);
  if (state->extra != nullptr && state->extra->in_window)
    return saturate<int64>(std::round(state->extra->counted));
  if (state->filter != nullptr) return count_keys(state->filter);
  const Parameters& p = *state->parameters;
  if (exa_log_log::are_few(p, state->count)) return state->count;
  return count_distinct_words(p, list_of(state), places_of(state), state->count);
}

// Words travel in the compact form, a filter unchanged: its block has room for a varlena length.
// Kinds that only count keys have no insertions.
bytea* serialize_state(GrowingState* state) {
  catch_up(state);
  if (state->filter != nullptr) return reinterpret_cast<bytea*>(state->filter);
  const Parameters& p = *state->parameters;
  Word* words = list_sorted(state);
  const uint64* insertions = state->extra != nullptr ? state->extra->insertions : nullptr;
  const Size room = most_compact(p, state->count);
  // The last byte says whether there are insertions.
  char* bytes = allocate<char>(room + 1);
  const Size size = write_compact(p, words, state->count, insertions,
                                  reinterpret_cast<unsigned char*>(bytes), room);
  bytes[size] = insertions != nullptr;
  SET_VARSIZE(bytes, size + 1);
  pfree(words);
  return reinterpret_cast<bytea*>(bytes);
}

GrowingState* deserialize_state(Datum datum) {
  struct varlena* bytes = PG_DETOAST_DATUM(datum);
  const Size size = VARSIZE(bytes) - VARHDRSZ;
  const char* body = VARDATA(bytes);
  if (!is_compact(body, size))  // combine only reads it
    return make_state(const_cast<Header*>(get_value(datum)), CurrentMemoryContext);
  Problem problem;
  CompactReader reader;
  if (!reader.open(body, size - 1, problem)) raise(problem);
  auto* parameters = allocate<Parameters>();
  *parameters = reader.parameters();
  const bool for_filter = body[size - 1] != 0;
  GrowingState* state = make_growing(parameters, for_filter, CurrentMemoryContext);
  if (reader.count() > GrowingState::kFirst) state->words = allocate<Word>(reader.count());
  Word* words = state->words != nullptr ? state->words : state->first;
  state->count = reader.next(words, reader.count());
  for (uint32 i = 0; for_filter && i < state->count; ++i)
    ++state->extra->insertions[exa_log_log::slice_of_word(*parameters, words[i])];
  if (!reader.finish(problem)) raise(problem);
  for (uint32 i = 0; for_filter && i < parameters->slices; ++i)
    state->extra->insertions[i] += reader.repeats(i);
  return state;
}

// ---- arguments of aggregates --------------------------------------------------------------------

MemoryContext aggregate_context(FunctionCallInfo fcinfo) {
  MemoryContext context;
  if (!AggCheckCallContext(fcinfo, &context))
    elog(ERROR, "aggregate function called in non-aggregate context");
  return context;
}

static const Node* argument_of(const Aggref* call, int number) {
  if (call == nullptr || call->args == NIL) return nullptr;
  const List* arguments = call->args;
  const Node* last =
      reinterpret_cast<const Node*>(static_cast<TargetEntry*>(llast(arguments))->expr);
  if (IsA(last, RowExpr)) arguments = reinterpret_cast<const RowExpr*>(last)->args;
  if (list_length(arguments) <= number) return nullptr;
  const Node* argument = static_cast<const Node*>(list_nth(arguments, number));
  return IsA(argument, TargetEntry)
             ? reinterpret_cast<const Node*>(reinterpret_cast<const TargetEntry*>(argument)->expr)
             : argument;
}

static bool is_constant(const Node* argument) {
  return argument != nullptr && (IsA(argument, Const) || IsA(argument, Param));
}

// A parameter counts as constant: it does not change while the aggregate runs.
bool is_constant_argument(FunctionCallInfo fcinfo, int number) {
  return is_constant(argument_of(AggGetAggref(fcinfo), number));
}

bool is_literal_argument(FunctionCallInfo fcinfo, int number) {
  const Node* argument = argument_of(AggGetAggref(fcinfo), number);
  return argument != nullptr && IsA(argument, Const);
}

// Neither a final function nor one that serializes gets the aggregate's arguments. A plan that
// combines partial results has them nowhere, but there the states of all processes have come: a
// process without a row sends the prototype.
bool constant_prototype(FunctionCallInfo fcinfo, Datum* value) {
  if (fcinfo->context == nullptr || !IsA(fcinfo->context, AggState)) return false;
  auto* aggregate = reinterpret_cast<AggState*>(fcinfo->context);
  const Aggref* call = serialized_call(aggregate, fcinfo->flinfo);
  const Node* argument = argument_of(call != nullptr ? call : AggGetAggref(fcinfo), 1);
  if (!is_constant(argument)) return false;
  ExprState* expression =
      ExecInitExpr(reinterpret_cast<Expr*>(const_cast<Node*>(argument)), nullptr);
  bool is_null;
  *value = ExecEvalExpr(expression, aggregate->ss.ps.ps_ExprContext, &is_null);
  return !is_null;
}

void check_prototype(FunctionCallInfo fcinfo, int number) {
  if (PG_ARGISNULL(number))
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("the prototype of a filter must not be null"),
                    errhint("Give a definition, for example 'sbf(memory=64kB, fpr=0.01)'.")));
}

const Header* get_prototype(FunctionCallInfo fcinfo, int number) {
  check_prototype(fcinfo, number);
  return get_value(PG_GETARG_DATUM(number));
}

uint64 given_prototype(FunctionCallInfo fcinfo, int number) {
  if (PG_ARGISNULL(number)) return 0;
  const auto* given = reinterpret_cast<const char*>(PG_GETARG_DATUM(number));
  if (VARATT_IS_EXTERNAL(given) && !VARATT_IS_EXTERNAL_ONDISK(given)) return 0;
  return hash_bytes(given, VARSIZE_ANY(given), 1);
}

[[noreturn]] void raise_changed_prototype() {
  ereport(
      ERROR,
      (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
       errmsg("the prototype of a filter must not change from row to row"),
       errhint("To merge filters, use streamfilter_union_agg; to fill one filter per group, let "
               "the prototype depend on the columns of GROUP BY only.")));
}

// ---- counts of distinct keys --------------------------------------------------------------------

Parameters parse_prototype(const char* definition_text) {
  Definition definition;
  Size used;
  Problem problem;
  if (!parse_definition(definition_text, strlen(definition_text), definition, used, problem))
    raise(problem);
  const Definition asked = definition;
  if (!complete(definition, problem) || !check_request(asked, definition, problem)) raise(problem);
  if (definition_text[used] != '\0')
    ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("invalid definition of a filter: \"%s\"", definition_text),
                    errdetail("There is more behind the closing parenthesis."),
                    errhint("Give a definition like 'sbf(memory=64kB, fpr=0.01)'.")));
  return definition.parameters;
}

int64 count_keys(const Header* filter) {
  bool full;
  const double keys = distinct_keys(filter, full);
  if (std::isnan(keys))
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("filters of kind %s cannot count distinct keys", ops_of(filter).name),
                    errhint("Use a prototype of kind ell or bloom.")));
  if (full)
    ereport(WARNING, (errmsg("the filter behind approx_count_distinct is full"),
                      errdetail("There are more distinct keys than it can count; the result is a "
                                "lower bound."),
                      errhint("Leave the prototype out, or give one of kind ell, which is never "
                              "full, or more memory.")));
  return saturate<int64>(std::round(keys));
}

int64 count_distinct_words(const Parameters& parameters, const exa_log_log::Word* words,
                           uint32 places, uint32 count) {
  auto* scratch = allocate_zeros<exa_log_log_model::Likelihood>(parameters.slices);
  const double keys = exa_log_log::distinct_words(parameters, words, places, count, scratch);
  pfree(scratch);
  return saturate<int64>(std::round(keys));
}

// Counts of keys in values: streamfilter_distinct_count, streamfilter_distinct_error,
// streamfilter_overlap.

static int64 count_words_of(const WordsOfValue& value) {
  if (!exa_log_log::have_room(value.parameters, value.words, value.count))
    return count_keys(filter_of(value));
  return count_distinct_words(value.parameters, value.words, value.count, value.count);
}

static int64 count_value(Datum value) {
  if (uint32 count; count_few(value, &count)) return count;
  if (WordsOfValue words; read_words(value, &words)) return count_words_of(words);
  return count_keys(get_value(value));
}

// The relative standard error for many keys; 0: not known.
static double relative_error_of(Datum value) {
  const Parameters& p = parameters_of_value(value);
  const auto error = find_ops(p.kind)->distinct_error;
  return error != nullptr ? error(p) : 0;
}

// streamfilter_distinct_count(filter), # filter: number of distinct keys that it has seen.
SF_FUNCTION(streamfilter_distinct_count) { PG_RETURN_INT64(count_value(PG_GETARG_DATUM(0))); }

// streamfilter_distinct_error(filter): the relative standard error of that number.
SF_FUNCTION(streamfilter_distinct_error) {
  const double error = relative_error_of(PG_GETARG_DATUM(0));
  if (error == 0) PG_RETURN_NULL();
  PG_RETURN_FLOAT8(error);
}

// streamfilter_overlap(a, b): the keys of each and of both, and the standard error of the latter,
// in keys.
SF_FUNCTION(streamfilter_overlap) {
  NamedRow row(fcinfo);
  const Datum first = PG_GETARG_DATUM(0), second = PG_GETARG_DATUM(1);
  const int64 a = count_value(first), b = count_value(second);
  Header *one = copy_value(get_value(first), CurrentMemoryContext),
         *other = copy_value(get_value(second), CurrentMemoryContext);
  Problem problem;
  if (!can_merge(one, other, problem)) raise(problem);
  double both, error;
  if (keys_of_both(one, static_cast<double>(a), other, static_cast<double>(b), both, error)) {
    row.put("error", Float8GetDatum(error));
  } else {
    merge(one, other, problem);
    settle_value(one);
    both = static_cast<double>(a + b - count_keys(one));
  }
  row.put_count("in_first", a);
  row.put_count("in_both", std::clamp<int64>(std::llround(both), 0, std::min(a, b)));
  row.put_count("in_second", b);
  PG_RETURN_DATUM(row.datum());
}

}  // namespace streamfilter::pg
