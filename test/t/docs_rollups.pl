# A rollup kept by a statement trigger (docs/cookbook.md): what concurrent writers and rolled-back transactions leave is what
# the rows that are there make, to the last byte.
# flavours: quick faults
use Sf;

my $node = start_node('rollups', q{
statement_timeout = '60s'
fsync = off});
sql(q{

CREATE TABLE page_views (at int NOT NULL, page int NOT NULL, visitor bigint);
CREATE TABLE hourly (page int, hour int, visitors streamfilter NOT NULL, PRIMARY KEY (page, hour));
CREATE FUNCTION add_to_hourly() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO hourly AS h
  SELECT page, at / 3600, streamfilter_agg(visitor, 'ell(memory=16kB)') FROM added GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (page, hour) DO UPDATE SET visitors = h.visitors || excluded.visitors;
  RETURN NULL;
END $$;
CREATE TRIGGER add_to_hourly AFTER INSERT ON page_views
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_to_hourly();
});

# The rollup, beside what the rows make.
sub is_right
{
	my ($what) = @_;
	is(sql(q{
		SELECT count(*) > 0, count(*) FILTER (WHERE h.visitors::text IS DISTINCT FROM r.visitors::text)
		FROM hourly h FULL JOIN (SELECT page, at / 3600 AS hour, streamfilter_agg(visitor, 'ell(memory=16kB)') AS visitors
		                         FROM page_views GROUP BY 1, 2) r USING (page, hour)}), 't|0', $what);
	return;
}

sql(q{INSERT INTO page_views SELECT i, i % 5, i % 777 FROM generate_series(1, 20000) i});
is_right('one statement');
sql("COPY page_views FROM STDIN;\n" . join('', map { "$_\t1\t$_\n" } 1 .. 3000) . "\\.\n");
is_right('COPY');
sql(q{
BEGIN;
INSERT INTO page_views SELECT i, i % 5, 1000000 + i FROM generate_series(1, 5000) i;
SAVEPOINT s;
INSERT INTO page_views VALUES (1, 1, -1);
ROLLBACK TO s;
INSERT INTO page_views VALUES (1, 1, -2);
ROLLBACK;
BEGIN;
INSERT INTO page_views VALUES (1, 1, -3);
SAVEPOINT s;
INSERT INTO page_views VALUES (1, 1, -4);
ROLLBACK TO s;
COMMIT;
});
is_right('rolled-back transactions and savepoints leave nothing');

# Four at once, in few rows of the rollup, the pages of each statement in another order.
my $script = $node->basedir . '/writer.sql';
append_to_file($script, q{
\set seed random(1, 1000000)
INSERT INTO page_views SELECT (i * :seed) % 7200, (i * :seed) % 5, (i * :seed) % 100003 FROM generate_series(1, 50) i;
});
$node->command_ok([ 'pgbench', '-n', '-c', '4', '-t', '30', '-f', $script, 'postgres' ], 'writers at the same time');
is(sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"), '0', 'no deadlock');
is_right('concurrent writers');

# Hours to days, and hours that go.
is(sql(q{
	SELECT bool_and(d.n = r.n) FROM
	  (SELECT page, # streamfilter_union_agg(visitors) AS n FROM hourly GROUP BY page) d
	  JOIN (SELECT page, # streamfilter_agg(visitor, 'ell(memory=16kB)') AS n FROM page_views GROUP BY page) r USING (page)}),
	't', 'merged to days');

done_testing();
