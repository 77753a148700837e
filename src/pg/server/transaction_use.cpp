#include "pg/server/transaction_use.hpp"

namespace streamfilter::pg {

bool transaction_uses_filters = false;

}  // namespace streamfilter::pg
