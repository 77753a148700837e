# Values of any kind with few keys are stored in a compact form (core/filter/sparse_form.hpp): random schedules of keys added,
# merged, combined, written as text and stored give, byte for byte, what the same steps give to values that are stored as whole
# blocks after each step. Damaged ones are refused. STREAMFILTER_CASES: how many schedules, STREAMFILTER_SEED:
# of them.
use Sf;

my $cases = $ENV{STREAMFILTER_CASES} // 200;
my $seed = $ENV{STREAMFILTER_SEED} // 1 + int(rand(1_000_000));
note("STREAMFILTER_SEED=$seed STREAMFILTER_CASES=$cases");
my $node = start_node('a', "fsync = off\n");

# The function of the server returns its argument as it is. `whole` makes the form of many keys: what is sent, without the
# length and the checksum.
sql(q{
	CREATE FUNCTION stored(bytea, typmod int = -1, explicit boolean = true) RETURNS streamfilter
		LANGUAGE internal IMMUTABLE STRICT AS 'bpchar';
	CREATE FUNCTION bytes_of(streamfilter, typmod int = -1, explicit boolean = true) RETURNS bytea
		LANGUAGE internal IMMUTABLE STRICT AS 'bpchar';
	CREATE FUNCTION whole(f streamfilter) RETURNS streamfilter LANGUAGE sql IMMUTABLE STRICT AS $$
		SELECT stored(substr(b, 5, length(b) - 12)) FROM streamfilter_send(f) b $$;

	CREATE TABLE prototypes (number serial, prototype text);
	INSERT INTO prototypes (prototype) VALUES ('bloom(memory=4kB, keys=2000)'), ('bloom(memory=2003, k=4)'),
		('bloom(memory=16kB, k=5, layout=blocked, slices=3)'),
		('bloom(memory=8kB, slices=4, slicing=vertical)'), ('clq(memory=4kB)'), ('sbf(memory=4kB)'),
		('vqf(memory=4kB)'), ('sqf(memory=4kB)'), ('timer(memory=8kB, window=10 minutes, k=3)'), ('rsbf(memory=4kB)');

	CREATE FUNCTION play(steps int, p streamfilter, OUT short streamfilter, OUT long streamfilter) LANGUAGE plpgsql AS $$
	DECLARE
		new streamfilter; old streamfilter; f streamfilter[] := ARRAY[p, p]; g streamfilter[] := ARRAY[whole(p), whole(p)]; a int; b int; key int; many int;
	BEGIN
		FOR step IN 1..steps LOOP
			a := 1 + floor(random() * 2);
			b := 1 + floor(random() * 2);
			key := floor(random() * 1000);
			many := CASE WHEN random() < .1 THEN 1500 ELSE 10 END;    -- few are full
			CASE floor(random() * 5)
			WHEN 0 THEN
				f[a] := f[a] || f[b];
				g[a] := whole(g[a] || g[b]);
			WHEN 1 THEN
				f[a] := f[a]::text::streamfilter;
				g[a] := whole(g[a]::text::streamfilter);
			WHEN 2 THEN
				f[a] := streamfilter_add(f[a], key);
				g[a] := whole(streamfilter_add(g[a], key));
			WHEN 3 THEN
				SELECT streamfilter_union_agg(x), whole(streamfilter_union_agg(y)) INTO new, old FROM unnest(f, g) u(x, y);
				f[a] := new;
				g[a] := old;
			ELSE
				SELECT f[a] || streamfilter_agg(i, p), whole(g[a] || whole(streamfilter_agg(i, whole(p)))) INTO new, old
				FROM generate_series(key, key + many) i;
				f[a] := new;
				g[a] := old;
			END CASE;
		END LOOP;
		short := f[a];
		long := g[a];
	END $$;

	CREATE TABLE played (prototype text, short streamfilter, long streamfilter)});

sql(qq{
	SELECT setseed(1.0 / $seed);
	INSERT INTO played SELECT prototype, short, long
	FROM generate_series(1, $cases) n JOIN prototypes ON number = 1 + n % (SELECT max(number) FROM prototypes),
		play(5 + n % 3, prototype::streamfilter)});
is(sql(q{
	SELECT prototype, short, long FROM played WHERE short::text <> long::text OR streamfilter_send(short) <> streamfilter_send(long)
		OR streamfilter_info(short) <> streamfilter_info(long)
		OR EXISTS (SELECT FROM generate_series(0, 2000, 50) key WHERE (short @> key) <> (long @> key)) LIMIT 1}),
	'', "$cases schedules: compact values are what whole ones are");
is(sql(q{SELECT min(pg_column_size(short)) < 1000, bool_and(pg_column_size(short) <= pg_column_size(long)),
	count(*) FILTER (WHERE pg_column_size(short) = pg_column_size(long)) > 0 FROM played}), 't|t|t', 'some are short, some are full');

# Bytes that follow the keys: a key sets 7 bits, at up to 3.3 bytes each in a megabyte.
is(sql(q{
	SELECT memory, n FROM unnest(ARRAY[16, 64, 1024]) memory, unnest(ARRAY[0, 10, 100]) n,
		LATERAL (SELECT coalesce((SELECT streamfilter_agg(i, p) FROM generate_series(1, n) i), p || p) AS v
			FROM CAST(format('bloom(memory=%skB, k=7)', memory) AS streamfilter) p) x
	WHERE pg_column_size(v) > 60 + 7 * 3.3 * n}), '', 'a Bloom filter takes bytes that follow its keys');

# The SQLSTATE and the message for stored bytes.
sub refusal
{
	my ($bytes) = @_;
	my ($result, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT stored($bytes) @> 1");
	$err =~ /ERROR:\s+(.*)/;
	return $1 // 'accepted';
}
my $good = 'bytes_of(few)';
sql(q{CREATE TABLE one AS SELECT streamfilter_agg(i, 'bloom(memory=4kB, k=4)') AS few FROM generate_series(1, 50) i});
my $size = sql("SELECT length($good) FROM one");
cmp_ok($size, '<', 400, 'a short value');
sub of_one { return '(SELECT ' . $_[0] . ' FROM one)' }
like(refusal(of_one("substr($good, 1, length($good) - 1)")), qr/^22P03: truncated streamfilter: \d+ of \d+ places are there/, 'the last byte is missing');
like(refusal(of_one("substr($good, 1, 60)")), qr/^22P03: truncated streamfilter: \d+ places in \d+ bytes/, 'most bytes are');
like(refusal(of_one("substr($good, 1, 12)")), qr/^22P03: damaged streamfilter: invalid compact header/, 'the parameters are');
like(refusal(of_one("substr($good, 1, 6)")), qr/^22P03: /, 'nearly all are');
like(refusal(of_one("$good || '\\x00'::bytea")), qr/^22P03: damaged streamfilter: bytes behind the last place/, 'one too many');
like(refusal(of_one("set_byte($good, 4, 2)")), qr/^22P03: streamfilter of compact format version 2 cannot be read/, 'a later version');
like(refusal(of_one("set_byte($good, 4, 0)")), qr/^22P03: damaged streamfilter: invalid compact header/, 'version 0');
like(refusal(of_one("set_byte($good, 5, 15)")), qr/^22P03: damaged streamfilter: invalid compact header/, 'another kind');
like(refusal(of_one("set_byte($good, 6, 4)")), qr/^22P03: damaged streamfilter: invalid compact header/, 'an unknown unit');

# Wherever a byte is changed, that is noticed.
is(sql(q{
	CREATE FUNCTION try(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM length((stored(bytes) || stored(bytes))::text), stored(bytes) @> 1;
		RETURN 'accepted';
	EXCEPTION WHEN OTHERS THEN
		RETURN sqlstate;
	END $$;
	SELECT string_agg(DISTINCT try(set_byte(bytes_of(few), at, (get_byte(bytes_of(few), at) + by) % 256)), ' ')
	FROM one, generate_series(0, length(bytes_of(few)) - 1) at, generate_series(1, 255, 31) by}),
	'22P03', 'changed bytes');

done();
