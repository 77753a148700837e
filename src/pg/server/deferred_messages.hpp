// Messages about what happens where nothing can raise (no_raise.hpp). They are kept as codes, in
// places of fixed size, and sent where that is safe: by the caller of say_deferred_messages, at the
// latest when the session begins its next statement.
#pragma once

namespace streamfilter::pg {

enum class Message : uint8 {
  server_unreachable,   // a server cannot be reached
  keys_not_remembered,  // a server did not commit the keys of a transaction that did here
  keys_not_deleted,     // nor what that has deleted
  not_altered           // nor how it has altered a filter
};

// The reason for which a standby is taken for a server that is lost.
constexpr char kIsStandby[] = "It is a standby, which remembers no keys.";

// Keeps a message; `reason` is what the server, or libpq, has said, if anything. Both texts are
// cut, and what is no character in them is replaced. Cannot raise.
void defer_message(Message message, const char* server, const char* reason = "");

// Is there anything kept?
extern bool has_deferred_messages;

// Says what has been kept, unless nothing can raise here either.
void say_deferred_messages();

}  // namespace streamfilter::pg
