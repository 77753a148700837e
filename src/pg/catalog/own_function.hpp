// Functions of this extension, whatever their names and schemas are by now.
#pragma once

namespace streamfilter::pg {

// Is it the C function with this symbol? False as well if there is no such function.
bool is_own_function(Oid function, const char* symbol);

}  // namespace streamfilter::pg
