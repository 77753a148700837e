#!/usr/bin/env bash
# Counting distinct keys beside count(DISTINCT …) and, where it is installed, hll: one group and many, unions, estimates, running
# counts, a rollup kept by a trigger, a key added to a stored sketch. Prints a table in Markdown, in milliseconds, and the ratios.
#
#   PGHOST=… PGPORT=… bench/counting.sh [ROWS]     the database has streamfilter; 4000000 rows
set -euo pipefail

rows=${1:-4000000}
query() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }
has_hll=$(query -c "SELECT count(*) FROM pg_available_extensions WHERE name = 'hll'")
setup='SET max_parallel_workers_per_gather = 0;'

query <<-SQL
	CREATE EXTENSION IF NOT EXISTS streamfilter;
	DROP SCHEMA IF EXISTS counting CASCADE;
	CREATE SCHEMA counting;
	SET search_path = counting, public;
	CREATE UNLOGGED TABLE events AS SELECT i::bigint * 7919 % 1000003 AS k, i % 10000 AS g4, i % 100000 AS g5, i % 1000000 AS g6, i
	FROM generate_series(1, $rows) i;
	ANALYZE events;
	CREATE TABLE ours AS SELECT g5, streamfilter_agg(k, 'ell(memory=4kB)') AS s FROM events GROUP BY g5;
SQL
if [ "$has_hll" = 1 ]; then
	query -c 'CREATE EXTENSION IF NOT EXISTS hll' \
		-c 'CREATE TABLE counting.theirs AS SELECT g5, hll_add_agg(hll_hash_bigint(k)) AS s FROM counting.events GROUP BY g5'
fi

# The milliseconds of a statement, the best of three.
measure() {
	[ -n "$1" ] || return 0
	{ echo "$setup SET search_path = counting, public;"; printf '%s\n' '\timing on'; for _ in 1 2 3; do echo "$1;"; done; } |
		query | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | sort -n | head -1
}
row() { # what, ours, theirs, exact
	local a b='' c
	a=$(measure "$2")
	[ "$has_hll" != 1 ] || b=$(measure "$3")
	c=$(measure "$4")
	awk -v what="$1" -v a="$a" -v b="$b" -v c="$c" 'function ratio(x) { return x > 0 ? sprintf("%.2f", a / x) : "" }
		BEGIN { printf "| %s | %.0f | %s | %s | %s | %s |\n", what, a, b, c, ratio(b), ratio(c) }'
}
groups() { echo "SELECT sum(n) FROM (SELECT $2 AS n FROM events GROUP BY $1) x"; }

echo '| | ours, ms | hll, ms | exact, ms | to hll | to exact |'
echo '|---|---|---|---|---|---|'
theirs='hll_cardinality(hll_add_agg(hll_hash_bigint(k)))'
row 'count(k), which counts none' 'SELECT count(k) FROM events' '' ''
row 'one group' 'SELECT approx_count_distinct(k) FROM events' "SELECT $theirs FROM events" 'SELECT count(DISTINCT k) FROM events'
row 'one group, all different' 'SELECT approx_count_distinct(i) FROM events' \
	'SELECT hll_cardinality(hll_add_agg(hll_hash_integer(i))) FROM events' 'SELECT count(DISTINCT i) FROM events'
row 'one group, text' 'SELECT approx_count_distinct(k::text) FROM events' \
	'SELECT hll_cardinality(hll_add_agg(hll_hash_text(k::text))) FROM events' ''
row 'one group, numeric' 'SELECT approx_count_distinct(k::numeric) FROM events' \
	'SELECT hll_cardinality(hll_add_agg(hll_hash_any(k::numeric))) FROM events' ''
# In 16 kB, whose error is a quarter of that of hll's 1.3 kB.
small="'ell(memory=16kB)'"
row 'one group, in 16 kB' "SELECT approx_count_distinct(k, $small) FROM events" "SELECT $theirs FROM events" ''
row 'one group, text, in 16 kB' "SELECT approx_count_distinct(k::text, $small) FROM events" \
	'SELECT hll_cardinality(hll_add_agg(hll_hash_text(k::text))) FROM events' ''
setup='SET max_parallel_workers_per_gather = 2;'
row 'one group, two workers' 'SELECT approx_count_distinct(k) FROM events' "SELECT $theirs FROM events" ''
row 'one group, two workers, in 16 kB' "SELECT approx_count_distinct(k, $small) FROM events" "SELECT $theirs FROM events" ''
setup='SET max_parallel_workers_per_gather = 0;'
for g in g4 g5 g6; do
	row "groups by $g" "$(groups $g 'approx_count_distinct(k)')" "$(groups $g "$theirs")" "$(groups $g 'count(DISTINCT k)')"
done
row 'union of 100,000 sketches' 'SELECT # streamfilter_union_agg(s) FROM ours' 'SELECT # hll_union_agg(s) FROM theirs' ''
row 'their estimates' 'SELECT sum(# s) FROM ours' 'SELECT sum(# s) FROM theirs' ''
row 'running count, 20,000 rows' \
	'SELECT max(n) FROM (SELECT approx_count_distinct(k) OVER (ORDER BY i) AS n FROM events WHERE i <= 20000) x' \
	'SELECT max(n) FROM (SELECT # hll_add_agg(hll_hash_bigint(k)) OVER (ORDER BY i) AS n FROM events WHERE i <= 20000) x' ''
row 'a key added to 20,000 sketches' 'UPDATE ours SET s = streamfilter_add(s, 7) WHERE g5 < 20000' \
	'UPDATE theirs SET s = hll_add(s, hll_hash_bigint(7)) WHERE g5 < 20000' ''

rollup() { # type, value of a statement, union
	cat <<-SQL
		DO \$\$
		BEGIN
		  DROP TABLE IF EXISTS rollup;
		  CREATE TABLE rollup (g int PRIMARY KEY, s $1);
		  FOR n IN 1..200 LOOP
		    INSERT INTO rollup AS r SELECT i % 200, $2 FROM events WHERE i > n * 1000 AND i <= n * 1000 + 1000 GROUP BY 1
		    ON CONFLICT (g) DO UPDATE SET s = r.s || excluded.s;
		    COMMIT;
		  END LOOP;
		END \$\$
	SQL
}
query -c 'CREATE INDEX ON counting.events (i)'
row 'rollup of 200 groups, 200 statements of 1,000 rows' "$(rollup streamfilter "streamfilter_agg(k, 'ell(memory=16kB)')")" \
	"$(rollup hll 'hll_add_agg(hll_hash_bigint(k))')" ''

bytes="SELECT pg_total_relation_size('counting.ours')"
# The most that the groups took, beside what they may take, in kB.
peak=$(query -c 'SET max_parallel_workers_per_gather = 0' -c 'SET search_path = counting, public' -c 'SET enable_sort = off' \
	-c "EXPLAIN (ANALYZE, TIMING off, FORMAT json) $(groups g6 'approx_count_distinct(k)')" |
	sed -n 's/.*"Peak Memory Usage": \([0-9]*\).*/\1/p')
may=$(query -c "SELECT (pg_size_bytes(current_setting('work_mem')) * current_setting('hash_mem_multiplier')::numeric / 1024)::bigint")
echo
echo "Groups by g6 took at most $peak kB, and may take $may kB and a tenth."
echo "100,000 stored sketches of $((rows / 100000)) keys: $(query -c "$bytes") bytes" \
	"$([ "$has_hll" != 1 ] || query -c "SELECT 'beside ' || pg_total_relation_size('counting.theirs') || ' of hll'")"
query -c 'DROP SCHEMA counting CASCADE' 2>/dev/null
