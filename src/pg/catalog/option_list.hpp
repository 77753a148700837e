// OPTIONS (...) as PostgreSQL keeps them: a list of DefElems.
#pragma once

#include "pg/server/problem_report.hpp"

extern "C" {
#include "commands/defrem.h"
}

namespace streamfilter::pg {

inline bool is_named(const DefElem* option, const char* name) {
  return strcmp(option->defname, name) == 0;
}

inline DefElem* make_option(const char* name, const char* value) {
  return makeDefElem(pstrdup(name), reinterpret_cast<Node*>(makeString(pstrdup(value))), -1);
}

// Only a damaged catalog has an option without a value.
inline const char* value_of(DefElem* option) {
  return option->arg != nullptr ? defGetString(option) : "";
}

// The value of an option; nullptr: not given.
inline const char* find_option(List* options, const char* name) {
  for (auto* option : each<DefElem>(options))
    if (is_named(option, name)) return value_of(option);
  return nullptr;
}

// 22023: the option does not take its value. Returns false.
inline bool bad_value(DefElem* option, Fault& fault) {
  return fault.set(ERRCODE_INVALID_PARAMETER_VALUE, "invalid value for option \"%s\": \"%s\"",
                   option->defname, value_of(option));
}

// HV00D: unknown option for this sort of object; `valid` lists the known ones.
inline bool unknown_option(const DefElem* option, const char* of, const char* valid, Fault& fault) {
  fault.set(ERRCODE_FDW_INVALID_OPTION_NAME, "invalid option \"%s\" of a %s", option->defname, of);
  return valid != nullptr ? fault.add_hint("Valid options are: %s.", valid)
                          : fault.add_hint("There are no valid options in this context.");
}

}  // namespace streamfilter::pg
