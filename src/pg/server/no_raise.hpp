// Code that cannot raise: what runs after the commit record, at abort and at exit. An error there
// stops the whole server, and any message can be one, because it is converted to the client's
// encoding. Such code allocates nothing, reads no catalogs, waits no longer than it says, and
// leaves messages to deferred_messages.hpp.
#pragma once

namespace streamfilter::pg {

// Marks such code, on the stack. A build with FAULTS=1, for tests, stops the server as soon as code
// within raises, allocates, waits on a latch or reads catalogs.
class NoRaise {
 public:
#ifdef STREAMFILTER_FAULTS
  NoRaise();
  ~NoRaise();
#else
  NoRaise() { ++depth_; }
  ~NoRaise() { --depth_; }
#endif
  NoRaise(const NoRaise&) = delete;
  NoRaise& operator=(const NoRaise&) = delete;

  static bool is_marked() { return depth_ > 0; }

 private:
  static int depth_;
};

}  // namespace streamfilter::pg
