#!/usr/bin/env bash
# Filters over several servers, while those are terminated, killed, stopped, restarted, filled up, cut off and failed over;
# an exact model counts the rows that are lost and those that are there twice.
#
#   test/chaos.sh SECONDS [SEED]
#
# The extension must be installed for PG_CONFIG (default: pg_config). Servers run in a directory of their own below /tmp, as
# user postgres if root calls. The figures are comments of its output; the directory stays if something was wrong.

# shellcheck source-path=SCRIPTDIR source=own_servers.sh
source "$(dirname "${BASH_SOURCE[0]}")/own_servers.sh"

enter_work "$root/test/chaos" "$root/test/t/HostileProxy.pm"
run_perl chaos/chaos.pl 'the servers and what the workers have noted' STREAMFILTER_SECONDS="$1" \
	STREAMFILTER_SEED="${2:-${STREAMFILTER_SEED:-$((RANDOM * 32768 + RANDOM))}}"
