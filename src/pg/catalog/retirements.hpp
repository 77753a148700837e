// Servers that were taken out of those that hold a filter. Option `retired` of a producer lists
// them in this order, by their numbers in option servers, from 1. A relation that holds slices
// knows how many there are by option `retirements`: "2"; while the last is being retired,
// "2:3:identity": number 3 of option servers, by that producer. A copy that a move has made has
// none, or one with "?" behind it, until its source is closed: a copy is not the slice. Both are
// read where they are needed, which is seldom.
#pragma once

#include "pg/server/postgres.hpp"

namespace streamfilter::pg {

struct Retirements {
  uint32 count = 0;
  const char* text = nullptr;  // without "?"; nullptr: not given
  bool of_copy = false;
};

struct RetiredServers {
  const uint32* numbers = nullptr;
  int count = 0;
};

// In the current memory context. False: the text is no such list.
bool read_retired_servers(const char* text, RetiredServers* result);

// False: the text is none of these.
bool read_retirements(const char* text, Retirements* result);

// In the options of a filter; none without the option.
RetiredServers retired_servers_in(List* options);
Retirements retirements_in(List* options);

// Is what a producer says to know no less than what is known of a slice? Of two that retire a
// server at the same time, one does.
bool is_current(const Retirements& known, const Retirements& told);

}  // namespace streamfilter::pg
