#include "unit/support/scale.hpp"

// Compiled as the core is.
#ifdef __SANITIZE_ADDRESS__
const bool unit::kSanitized = true;
#else
const bool unit::kSanitized = false;
#endif
