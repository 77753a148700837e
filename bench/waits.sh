#!/usr/bin/env bash
# What sessions wait for that insert single rows: a sampler reads pg_stat_activity every 10 ms, and counts the sessions that run a
# statement by their wait event. Into a table without a filter, with a trigger of a logged filter, and of a hundred logged filters.
# Prints a table in Markdown, in percent of those sessions: "none" are those that run, or wait for a processor.
#
#   bench/waits.sh [SECONDS [SESSIONS]]     10 seconds for each of 3 ways, 64 sessions: 1 minute
#
# The extension must be installed for PG_CONFIG. Leave two cores idle.

# shellcheck source-path=SCRIPTDIR source=../test/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../test/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../test/demo/server.sh
source "$ROOT/test/demo/server.sh"
# shellcheck source-path=SCRIPTDIR source=lib/own_server.sh
source "$ROOT/bench/lib/own_server.sh"

SECONDS_EACH=${1:-10} SESSIONS=${2:-64} FILTERS=100
WAYS=("no filter" "one filter" "$FILTERS filters")

create_objects() {
	sql <<-END
		CREATE TABLE plain (key bigint, payload text);
		CREATE TABLE samples (way text, wait text, sessions bigint);
		SELECT format(\$\$
		  CREATE TABLE events_%1\$s (key bigint, payload text);
		  CREATE FOREIGN TABLE seen_%1\$s (key bigint) SERVER streamfilter OPTIONS (memory '%2\$s', fpr '0.01');
		  CREATE TRIGGER discard BEFORE INSERT ON events_%1\$s FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen_%1\$s');
		\$\$, i, CASE i WHEN 0 THEN '16MB' ELSE '512kB' END) FROM generate_series(0, $FILTERS) i \\gexec
	END
}

script() { # way
	say '\set key random(1, 4000000000000000000)'
	case $1 in
	"no filter") say "INSERT INTO plain VALUES (:key, repeat('x', 60));" ;;
	"one filter") say "INSERT INTO events_0 VALUES (:key, repeat('x', 60));" ;;
	*) say "\\set table random(1, $FILTERS)" && say "INSERT INTO events_:table VALUES (:key, repeat('x', 60));" ;;
	esac
}

# Commits show every sample what is true then.
sample() { # way
	sql <<-SQL
		DO \$\$ BEGIN
		  FOR i IN 1 .. $SECONDS_EACH * 80 LOOP
		    INSERT INTO samples SELECT '$1', coalesce(wait_event_type || ': ' || wait_event, 'none'), count(*)
		      FROM pg_stat_activity WHERE state = 'active' AND application_name = 'pgbench' GROUP BY 2;
		    COMMIT;
		    PERFORM pg_sleep(.01);
		  END LOOP;
		END \$\$;
	SQL
}

main() {
	local way
	case ${1:-} in -*) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 0 ;; esac
	own_server "streamfilter.shared_memory = '128MB'" "shared_buffers = '1GB'"
	quietly create_objects
	for way in "${WAYS[@]}"; do
		script "$way" >"$WORK/tmp/script"
		rate "$WORK/tmp/script" "$SESSIONS" "$((SECONDS_EACH + 2))" >"$WORK/tmp/rate" &
		sleep 1
		quietly sample "$way"
		wait $!
	done
	printf '| %s sessions wait for |' "$SESSIONS"
	printf ' %s |' "${WAYS[@]}"
	printf '\n|---|---|---|---|\n'
	sql <<-END
		SELECT format('| %s | %s | %s | %s |', wait, max(percent) FILTER (WHERE way = '${WAYS[0]}'),
		    max(percent) FILTER (WHERE way = '${WAYS[1]}'), max(percent) FILTER (WHERE way = '${WAYS[2]}'))
		  FROM (SELECT way, wait, round(100 * sum(sessions) / sum(sum(sessions)) OVER (PARTITION BY way), 1) AS percent
		    FROM samples GROUP BY 1, 2) s
		  GROUP BY wait HAVING max(percent) >= .5 ORDER BY max(percent) DESC;
	END
}

main "$@"
