// Recognizes this extension's functions, whatever their present names and schemas.
#pragma once

namespace streamfilter::pg {

// Is it the C function with this symbol? False if there is no such function.
bool is_own_function(Oid function, const char* symbol);

}  // namespace streamfilter::pg
