#!/usr/bin/env bash
# Weeks in hours: ingest, deletes, savepoints, crashes, a standby that lags, a long transaction and many filters, while images, WAL,
# heaps, memory of a session and what a first use reads are held against their bounds.
#
#   test/soak.sh HOURS [SEED]         .02 is a minute
#
# The extension must be installed for PG_CONFIG (default: pg_config). Servers run in a directory of their own below /tmp, as
# user postgres if root calls. The figures are comments of its output; the directory stays if something was wrong.

# shellcheck source-path=SCRIPTDIR source=own_servers.sh
source "$(dirname "${BASH_SOURCE[0]}")/own_servers.sh"

enter_work "$root/test/soak" "$root/test/t/Sessions.pm"
run_perl soak/soak.pl 'the servers' PGCTLTIMEOUT=600 PG_TEST_TIMEOUT_DEFAULT=1800 \
	STREAMFILTER_SECONDS="$(awk -v hours="$1" 'BEGIN { print int(hours * 3600) }')" STREAMFILTER_SEED="${2:-$((RANDOM * 32768 + RANDOM))}"
