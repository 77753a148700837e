// What a server with slices keeps about their filter, in option producer, so that other producers
// need to know only one of the servers (Koloniari et al. 2011, section 3.1).
#pragma once

struct List;

namespace streamfilter::pg {

// A producer's filter as it describes itself to one of its servers. The text is a JSON object:
// {"columns": [{"name", "type", "collation", "role", "unit"}], "options": {...}, "servers":
// [{"name", ...}], "position": "1", "identity": "...", "slicing": "horizontal"}, without users and
// passwords. Anybody may write the option by hand, so all of it may be missing.
struct Producer {
  List* columns;  // for each a list of DefElems: name, type, and collation, role, unit if any
  List* options;  // DefElems
  List* servers;  // for each a list of DefElems: name, and how to connect
  const char* position;  // of this server among them, from 1; nullptr: not said
  const char* identity;  // of the filter; nullptr: not said
  const char* slicing;   // where it puts the bits of a key; nullptr: not said
  bool damaged;          // one of the lists is missing, or contains something else
};

// Reads the option into the current memory context; of a text that is nullptr or no such object,
// a damaged one without parts. Nothing that the text contains is an error.
const Producer* read_producer(const char* text);

// The text of such a description, in the current memory context.
const char* print_producer(const Producer& producer);

}  // namespace streamfilter::pg
