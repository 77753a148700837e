# Sketches are the same whatever became of them on the way: random schedules of keys added, merged, combined, written as text and
# read back, and half-way a journey in binary form, by dump and restore, or by logical replication. In the end each is byte for byte
# what an aggregate makes of all its keys, and answers alike. STREAMFILTER_CASES: how many schedules, STREAMFILTER_SEED: of them.
use Sf;

my $cases = $ENV{STREAMFILTER_CASES} // 400;
my $seed = $ENV{STREAMFILTER_SEED} // 1 + int(rand(1_000_000));
note("STREAMFILTER_SEED=$seed STREAMFILTER_CASES=$cases");

my $node = start_node('a', "fsync = off\n", allows_streaming => 'logical');
my $subscriber = start_node('b', "fsync = off\n");
my $directory = PostgreSQL::Test::Utils::tempdir_short();

# Three values of one prototype to a schedule; what each has been given is in `keys`, as often as it was.
my $tables = q{
	CREATE TABLE sketches (schedule int, who int, prototype text, value streamfilter, PRIMARY KEY (schedule, who));
	CREATE TABLE keys (schedule int, who int, key int);
	CREATE INDEX ON keys (schedule)};
my $functions = q{
	CREATE FUNCTION play(n int, steps int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		f streamfilter[]; p streamfilter; a int; b int; key int; new streamfilter;
	BEGIN
		SELECT array_agg(s.value ORDER BY who), max(prototype)::streamfilter INTO f, p FROM sketches s WHERE schedule = n;
		FOR step IN 1..steps LOOP
			a := 1 + floor(random() * 3);
			b := 1 + floor(random() * 3);
			key := floor(random() * CASE WHEN random() < .05 THEN 4000 ELSE 200 END);    -- few fill the memory, too
			CASE floor(random() * 6)
			WHEN 0 THEN
				f[a] := f[a] || f[b];
				INSERT INTO keys SELECT n, a, k.key FROM keys k WHERE schedule = n AND who = b;
			WHEN 1 THEN
				f[a] := f[a]::text::streamfilter;
			WHEN 2 THEN
				f[a] := streamfilter_add(f[a], key);
				INSERT INTO keys VALUES (n, a, key);
			WHEN 3 THEN
				SELECT streamfilter_union_agg(x) INTO new FROM unnest(f) x;
				f[a] := new;
				INSERT INTO keys SELECT n, a, k.key FROM keys k WHERE schedule = n AND who <> a;
			WHEN 4 THEN
				UPDATE sketches s SET value = f[a] WHERE schedule = n AND who = a RETURNING value INTO new;
				f[a] := new;
			ELSE
				SELECT f[a] || streamfilter_agg(i, p) INTO new FROM generate_series(key, key * 2) i;
				f[a] := new;
				INSERT INTO keys SELECT n, a, i FROM generate_series(key, key * 2) i;
			END CASE;
		END LOOP;
		UPDATE sketches s SET value = f[who] WHERE schedule = n;
	END $$;
	CREATE VIEW made AS
		SELECT s.*, coalesce(all_of, prototype::streamfilter) AS fixed
		FROM sketches s LEFT JOIN LATERAL (SELECT streamfilter_agg(key, prototype::streamfilter) AS all_of FROM keys k
			WHERE k.schedule = s.schedule AND k.who = s.who) k ON true};

sql($tables, $_) for $node, $subscriber;
sql($functions, $_) for $node, $subscriber;
sql(qq{
	INSERT INTO sketches SELECT n, who, p, p::streamfilter
	FROM generate_series(1, $cases) n, generate_series(1, 3) who,
		LATERAL (SELECT (ARRAY['ell(memory=700)', 'ell(memory=4kB)', 'ell(memory=16kB)', 'ell(memory=64kB, slices=3)',
			'bloom(memory=16kB, k=5)', 'bloom(memory=64kB, k=4, layout=blocked)'])[1 + n / 3 % 6]) x(p)});

sub play
{
	my ($where, $database, $steps, $which) = @_;
	$where->safe_psql($database, qq{
		SELECT setseed(1.0 / $seed);
		SET synchronous_commit = off;
		SELECT count(play(schedule, $steps)) FROM (SELECT DISTINCT schedule FROM sketches WHERE $which) s});
}

sub digest
{
	my ($where, $database, $which) = @_;
	return $where->safe_psql($database, qq{
		SELECT count(*), md5(string_agg(value::text, ' ' ORDER BY schedule, who)) FROM sketches WHERE $which});
}

sub check
{
	my ($where, $database, $which, $name) = @_;
	is($where->safe_psql($database, qq{
		SELECT schedule, who, prototype FROM made WHERE $which AND (
			prototype LIKE 'ell%' AND (value::text <> fixed::text OR streamfilter_send(value) <> streamfilter_send(fixed))
			OR streamfilter_info(value) -> 'fill' <> streamfilter_info(fixed) -> 'fill'
			OR # value <> # fixed
			OR EXISTS (SELECT FROM generate_series(0, 400, 40) key WHERE (value @> key) <> (fixed @> key)))
		LIMIT 3}), '', "$name: each value is what an aggregate makes of its keys");    # a merged Bloom filter counts new keys by estimate
}

# What is there when the subscription begins is copied; the rest is streamed, in binary form.
my $streamed = 'schedule % 3 = 0';
play($node, 'postgres', 3, $streamed);
sql('CREATE PUBLICATION all_sketches FOR TABLE sketches, keys');
$subscriber->safe_psql('postgres', sprintf q{CREATE SUBSCRIPTION from_a CONNECTION '%s' PUBLICATION all_sketches WITH (binary = true)},
	$node->connstr . ' dbname=postgres');
$subscriber->wait_for_subscription_sync($node, 'from_a');
play($node, 'postgres', 4, $_) for 'schedule % 3 = 0', 'schedule % 3 = 1', 'schedule % 3 = 2';
check($node, 'postgres', 'true', 'before the journey');
$node->wait_for_catchup('from_a');
is(digest($subscriber, 'postgres', 'true'), digest($node, 'postgres', 'true'), 'logical replication');
sql('DROP SUBSCRIPTION from_a', $subscriber);

sql('CREATE DATABASE restored; CREATE DATABASE received');
$node->command_ok([ 'pg_dump', '-d', $node->connstr('postgres'), '-Fp', '--no-publications', '-f', "$directory/dump" ], 'a dump');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', "$directory/dump" ], 'is restored');
is(digest($node, 'restored', 'true'), digest($node, 'postgres', 'true'), 'dump and restore');

sql("CREATE EXTENSION streamfilter; $tables; $functions", 'received');
for my $table (qw(sketches keys))
{
	sql("COPY $table TO '$directory/$table' WITH (FORMAT binary)");
	sql("COPY $table FROM '$directory/$table' WITH (FORMAT binary)", 'received');
}
is(digest($node, 'received', 'true'), digest($node, 'postgres', 'true'), 'binary form');

for ([ $subscriber, 'postgres', $streamed, 'replicated' ], [ $node, 'restored', 'schedule % 3 = 1', 'restored' ],
	[ $node, 'received', 'schedule % 3 = 2', 'received' ])
{
	my ($where, $database, $which, $name) = @$_;
	play($where, $database, 5, $which);
	check($where, $database, $which, "$name, and gone on");
}

done();
