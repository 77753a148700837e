// Short forms of what server code does everywhere. None of them costs more than what is written
// out.
#pragma once

namespace streamfilter::pg {

// The members of a list, for range-based loops. Like foreach(), they look at the list at each step:
// the body may append to it.
template <typename Value, typename Read>
struct ListMembers {
  struct End {};
  struct Place {
    const List* list;
    int number;

    Value operator*() const { return Read::read(list->elements[number]); }
    Place& operator++() {
      ++number;
      return *this;
    }
    bool operator!=(End) const { return number < list_length(list); }
  };
  const List* list;

  Place begin() const { return {list, 0}; }
  End end() const { return {}; }
};

template <typename T>
struct ReadPointer {
  static T* read(const ListCell& cell) { return static_cast<T*>(cell.ptr_value); }
};
struct ReadOid {
  static Oid read(const ListCell& cell) { return cell.oid_value; }
};

// for (auto* option : each<DefElem>(options)) …
template <typename T>
ListMembers<T*, ReadPointer<T>> each(const List* list) {
  return {list};
}

inline ListMembers<Oid, ReadOid> each_oid(const List* list) { return {list}; }

// An empty text in the current memory context.
struct TextBuffer : StringInfoData {
  TextBuffer() { initStringInfo(this); }
};

// Memory for so many objects, in the current memory context or another.
template <typename T>
T* allocate(Size count = 1, MemoryContext context = CurrentMemoryContext) {
  return static_cast<T*>(MemoryContextAlloc(context, sizeof(T) * count));
}
template <typename T>
T* allocate_zeros(Size count = 1, MemoryContext context = CurrentMemoryContext) {
  return static_cast<T*>(MemoryContextAllocZero(context, sizeof(T) * count));
}

// A memory context below another; the small one is for what is little and lasts. Its name is a
// literal, which is kept.
template <Size length>
MemoryContext make_context(const char (&name)[length],
                           MemoryContext parent = CurrentMemoryContext) {
  return AllocSetContextCreateInternal(parent, name, ALLOCSET_DEFAULT_SIZES);
}
template <Size length>
MemoryContext make_small_context(const char (&name)[length],
                                 MemoryContext parent = CurrentMemoryContext) {
  return AllocSetContextCreateInternal(parent, name, ALLOCSET_SMALL_SIZES);
}

// Calls f(arg), which must not raise, when the memory context is reset or deleted.
inline void call_on_reset(MemoryContext context, MemoryContextCallbackFunction f, void* arg) {
  auto* callback = allocate_zeros<MemoryContextCallback>(1, context);
  callback->func = f;
  callback->arg = arg;
  MemoryContextRegisterResetCallback(context, callback);
}

// Raises 25006 on a standby and in a transaction that only reads. The message names `function`.
inline void require_writable(const char* function) {
  PreventCommandDuringRecovery(function);
  PreventCommandIfReadOnly(function);
}

// The current memory context until the end of the block; code that catches an error sets it as
// usual.
class InContext {
 public:
  explicit InContext(MemoryContext context) : caller_(MemoryContextSwitchTo(context)) {}
  ~InContext() { MemoryContextSwitchTo(caller_); }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  MemoryContext caller_;
};

}  // namespace streamfilter::pg
