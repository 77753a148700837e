#include "pg/server/postgres.hpp"

extern "C" {
// Of a Port only the socket is read, its first member; the headers of Kerberos need not be there.
#undef ENABLE_GSS
#include "libpq/libpq-be.h"
#include "libpq/libpq.h"
#include "tcop/pquery.h"
}

#include <poll.h>

#include "pg/handle/client_pauses.hpp"
#include "pg/handle/key_reservation.hpp"
#include "pg/handle/statement.hpp"

namespace streamfilter::pg {

void hand_over_if_client_pauses() {
  constexpr int kGap = 10;  // ms: longer than usual between packets, too short to be noticed
  pollfd client = {MyProcPort->sock, POLLIN, 0};
  if (poll(&client, 1, kGap) == 0) hand_over_filters();
}

// In the extended protocol, whose portals have a cached plan, most clients have sent Sync already.
void hand_over_behind_statement() {
  if (likely(!has_exclusive_filters()) || innermost_frame() != nullptr) return;
  if (ActivePortal == nullptr || ActivePortal->cplan == nullptr || MyProcPort == nullptr) return;
  if (!SF_CLIENT_HAS_SENT_MORE()) return hand_over_if_client_pauses();
  pq_startmsgread();
  const int next = pq_peekbyte();
  pq_endmsgread();
  if (next != 'S') hand_over_filters();
}

}  // namespace streamfilter::pg
