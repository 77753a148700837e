// With FAULTS=1: detects that code within a NoRaise can raise, whether or not it does this time.
// Every memory context gets methods that refuse to allocate; every message level is switched on,
// and ends in our error context; and the linker redirects the calls below to this file
// (-Wl,--wrap).
#include "pg/server/postgres.hpp"

#ifdef STREAMFILTER_FAULTS
extern "C" {
#include <execinfo.h>

#include "nodes/memnodes.h"
#include "storage/condition_variable.h"
#include "utils/hsearch.h"
}
#endif

#include "pg/server/no_raise.hpp"

namespace streamfilter::pg {

int NoRaise::depth_ = 0;

#ifdef STREAMFILTER_FAULTS
namespace {

[[noreturn]] void refuse(const char* what) {
  write_stderr("streamfilter: %s where nothing may raise\n", what);
  void* frames[48];
  backtrace_symbols_fd(frames, backtrace(frames, lengthof(frames)), STDERR_FILENO);
  abort();
}

void refuse_message(void*) { refuse("a message"); }

// ---- allocations -------------------------------------------------------------------------------

// Methods have other parameters in other versions.
template <typename Method>
struct Refusal;
template <typename... Arguments>
struct Refusal<void* (*)(Arguments...)> {
  static void* call(Arguments...) { refuse("an allocation"); }
};

struct Replacement {
  const MemoryContextMethods* original;
  MemoryContextMethods refusing;
};
constexpr int kMaxReplacements = 8;  // kinds of contexts
Replacement replacements[kMaxReplacements];

void refuse_allocations(MemoryContext context) {
  for (Replacement& replacement : replacements) {
    if (replacement.original == nullptr) {
      replacement.original = context->methods;
      replacement.refusing = *context->methods;
      replacement.refusing.alloc = Refusal<decltype(replacement.refusing.alloc)>::call;
      replacement.refusing.realloc = Refusal<decltype(replacement.refusing.realloc)>::call;
    }
    if (replacement.original != context->methods) continue;
    context->methods = &replacement.refusing;
    return;
  }
}

void allow_allocations(MemoryContext context) {
  for (const Replacement& replacement : replacements)
    if (context->methods == &replacement.refusing) context->methods = replacement.original;
}

void visit_contexts(MemoryContext context, void (*visit)(MemoryContext)) {
  visit(context);
  for (MemoryContext child = context->firstchild; child != nullptr; child = child->nextchild)
    visit_contexts(child, visit);
}

ErrorContextCallback error_context;
int log_level;

}  // namespace

NoRaise::NoRaise() {
  if (depth_++ > 0) return;
  visit_contexts(TopMemoryContext, refuse_allocations);
  error_context.callback = refuse_message;
  error_context.previous = error_context_stack;
  error_context_stack = &error_context;
  log_level = SF_LOG_MIN_MESSAGES;
  SF_LOG_MIN_MESSAGES = DEBUG5;
}

NoRaise::~NoRaise() {
  if (--depth_ > 0) return;
  SF_LOG_MIN_MESSAGES = log_level;
  error_context_stack = error_context.previous;
  visit_contexts(TopMemoryContext, allow_allocations);
}
#endif

}  // namespace streamfilter::pg

#ifdef STREAMFILTER_FAULTS
// ---- calls that do not always allocate or raise ------------------------------------------------

using streamfilter::pg::NoRaise;
using streamfilter::pg::refuse;

#define SF_REFUSED(result, name, parameters, arguments, what) \
  result __real_##name parameters;                            \
  result __wrap_##name parameters;                            \
  result __wrap_##name parameters {                           \
    if (NoRaise::is_marked()) refuse(what);                   \
    return __real_##name arguments;                           \
  }

extern "C" {
SF_REFUSED(HeapTuple, SearchSysCache1, (int cache, Datum key), (cache, key),
           "a look into a catalog")
SF_REFUSED(Relation, table_open, (Oid relation, LOCKMODE mode), (relation, mode), "opening a table")
SF_REFUSED(void, LockRelationOid, (Oid relation, LOCKMODE mode), (relation, mode), "a table lock")
SF_REFUSED(FullTransactionId, GetCurrentFullTransactionId, (void), (), "a new transaction id")
SF_REFUSED(void*, repalloc, (void* chunk, Size size), (chunk, size), "an allocation")
SF_REFUSED(MemoryContext, AllocSetContextCreateInternal,
           (MemoryContext parent, const char* name, Size least, Size first, Size most),
           (parent, name, least, first, most), "a new memory context")
SF_REFUSED(FILE*, AllocateFile, (const char* name, const char* mode), (name, mode),
           "a file that the server keeps account of")
SF_REFUSED(void, ProcessInterrupts, (void), (), "an interrupt")
SF_REFUSED(int, WaitLatch, (Latch * latch, int events, long timeout, uint32 info),
           (latch, events, timeout, info), "a wait on a latch")
SF_REFUSED(int, WaitLatchOrSocket,
           (Latch * latch, int events, pgsocket socket, long timeout, uint32 info),
           (latch, events, socket, timeout, info), "a wait on a latch")
SF_REFUSED(void, ConditionVariableSleep, (ConditionVariable * variable, uint32 info),
           (variable, info), "a wait on a condition variable")

void* __real_hash_search(HTAB* table, const void* key, HASHACTION action, bool* found);
void* __wrap_hash_search(HTAB* table, const void* key, HASHACTION action, bool* found);
void* __wrap_hash_search(HTAB* table, const void* key, HASHACTION action, bool* found) {
  if (action == HASH_ENTER && NoRaise::is_marked()) refuse("a new entry of a hash table");
  return __real_hash_search(table, key, action, found);
}
}
#endif
