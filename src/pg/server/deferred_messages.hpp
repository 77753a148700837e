// Messages about events where nothing can raise (no_raise.hpp). They are stored as codes, in places
// of fixed size, and sent where that is safe: by say_deferred_messages, at the latest when the
// session begins its next statement.
#pragma once

namespace streamfilter::pg {

enum class Message : uint8 {
  server_unreachable,   // a server cannot be reached
  keys_not_remembered,  // a server did not commit the keys of a transaction that did here
  keys_not_deleted,     // nor the deletions of the transaction
  not_altered           // nor its changes of a filter's definition
};

// Why a standby counts as a lost server.
constexpr char kIsStandby[] = "It is a standby, which remembers no keys.";

// Stores a message; `reason` is the text of the server or libpq, if any. Cuts both texts, and
// replaces invalid bytes. Cannot raise.
void defer_message(Message message, const char* server, const char* reason = "");

// Are there stored messages?
extern bool has_deferred_messages;

// Sends stored messages, unless nothing can raise here either.
void say_deferred_messages();

}  // namespace streamfilter::pg
