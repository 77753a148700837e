-- The filters of the golden corpus: every kind, layout and slicing, each option list as CREATE FOREIGN TABLE takes it.
-- After a release lines are added for new kinds and options, never changed: what a released version has written stays what it is.
CREATE TABLE golden_case (name text PRIMARY KEY, options text NOT NULL);
COPY golden_case FROM STDIN WITH (DELIMITER '|');
bloom|kind 'bloom', memory '768', k '4'
bloom_keys|kind 'bloom', memory '1kB', keys '200', fpr '0.02'
bloom_blocked|kind 'bloom', memory '1kB', k '5', layout 'blocked'
bloom_density|kind 'bloom', memory '1kB', keys '200', fpr '0.2', grow 'density', slices '1'
bloom_cardinality|kind 'bloom', memory '1kB', keys '200', fpr '0.2', grow 'cardinality', slices '1'
bloom_horizontal|kind 'bloom', memory '1kB', k '4', slices '3'
bloom_vertical|kind 'bloom', memory '1500', k '4', slices '4', slicing 'vertical'
bloom_hv|kind 'bloom', memory '1500', k '4', slices '2,3', slicing 'diced', dice 'hv'
bloom_vh|kind 'bloom', memory '1500', k '4', slices '2,3', slicing 'diced', dice 'vh'
bloom_places|kind 'bloom', memory '1500', k '6', slices '4', k1 '3', k2 '2'
sbf|kind 'sbf', memory '768', fpr '0.1', nulls 'not distinct'
sbf_max3|kind 'sbf', memory '768', fpr '0.1', max '3'
sbf_max7|kind 'sbf', memory '768', fpr '0.1', max '7', slices '1'
sbf_max15|kind 'sbf', memory '1kB', fpr '0.2', max '15', slices '2'
sbf_gap|kind 'sbf', memory '1kB', fpr '0.1', gap '500'
sbf_blocked|kind 'sbf', memory '1kB', fpr '0.1', layout 'blocked'
rsbf|kind 'rsbf', memory '1kB', fpr '0.1'
rsbf_measured|kind 'rsbf', memory '1kB', fpr '0.1', variant 'measured', p_star '0.05'
bsbf|kind 'bsbf', memory '1kB', k '2'
bsbfsd|kind 'bsbfsd', memory '1kB', k '2'
rlbsbf|kind 'rlbsbf', memory '1kB', k '3', slices '2'
sqf|kind 'sqf', memory '1kB', fpr '0.02'
sqf_options|kind 'sqf', memory '1kB', r '4', r_prime '2', buckets '4', omega '5', slices '1'
sqf_integer|kind 'sqf', memory '1kB', fingerprint 'integer', p '8'
dsqf|kind 'dsqf', memory '1500', fpr '0.02'
dsqf_rows|kind 'dsqf', memory '1500', rows '20', buckets '60', slices '1'
ibf2c|kind 'ibf2c', memory '1kB', fpr '0.1', importance_levels '4'
ibfmc|kind 'ibfmc', memory '1kB', fpr '0.1'
ibfmc_levels|kind 'ibfmc', memory '1kB', fpr '0.1', max '4', importance_levels '2,4,6'
ibfmc_range|kind 'ibfmc', memory '1kB', fpr '0.1', importance_range '0,10', layout 'blocked'
ibfh|kind 'ibfh', memory '1kB', fpr '0.2'
timer_rows|kind 'timer', memory '1kB', window '80 rows', fpr '0.1', slices '1'
timer_time|kind 'timer', memory '1kB', window '10000 days', keys '60', fpr '0.1'
timer_equal|kind 'timer', memory '1kB', window '80 rows', tick '10 rows', k '4', equal_timers '2', slices '1'
timer_density|kind 'timer', memory '2kB', window '10000 days', k '3', grow 'density', size '300'
timer_cardinality|kind 'timer', memory '2kB', window '90 rows', k '3', fpr '0.2', grow 'cardinality', slices '1'
timer_vertical|kind 'timer', memory '2kB', window '10000 days', k '3', slices '3', slicing 'vertical'
lru|kind 'lru', memory '1kB'
lru_clock|kind 'lru', memory '1kB', policy 'clock', entry_bits '32'
fplru|kind 'fplru', memory '1kB', fpr '0.1'
clq|kind 'clq', memory '768', fpr '0.05'
clq_fifo|kind 'clq', memory '768', bits '7', bucket '4', policy 'fifo'
clq_second|kind 'clq', memory '768', fpr '0.05', policy 'second', slices '1'
clq_window|kind 'clq', memory '1kB', fpr '0.05', window '10000 days'
clq_importance|kind 'clq', memory '768', fpr '0.05', importance_levels '3,5'
ell|kind 'ell', memory '768'
clq_lateness|kind 'clq', memory '1kB', fpr '0.05', window '10000 days', lateness '1000 days'
clq_lines|kind 'clq', memory '2kB', fpr '0.05', lines '2', slices '1'
vqf|kind 'vqf', memory '1kB', fpr '0.05'
vqf_small|kind 'vqf', memory '1kB', bits '20', buckets '40', growth '2', slices '1'
vqf_window|kind 'vqf', memory '1kB', fpr '0.05', window '10000 days'
vqf_lateness|kind 'vqf', memory '2kB', fpr '0.05', window '10000 days', lateness '1000 days', extend 'yes', ages '8'
vqf_rows|kind 'vqf', memory '1kB', fpr '0.05', window '80 rows', slices '1'
auto|kind 'auto', memory '1kB', fpr '0.05'
auto_keys|keys '80'
\.

-- The keys of all of them: every third number, all of equal times; of 1 to 240 is asked.
CREATE FUNCTION golden_keys(parts int) RETURNS TABLE (id bigint, importance float8, at timestamptz) LANGUAGE sql AS $$
  SELECT 3 * i, (3 * i) % 7 + 1, timestamptz '2025-01-01 00:00:00+00' FROM generate_series(1, 60) i
  WHERE (parts & CASE WHEN i <= 40 THEN 1 ELSE 2 END) > 0 ORDER BY i $$;
CREATE FUNCTION golden_value(options text) RETURNS streamfilter LANGUAGE sql AS $$
  SELECT (coalesce(substring(options FROM 'kind ''(\w+)'''), 'auto') || '(' ||
          regexp_replace(regexp_replace(options, 'kind ''\w+'',? ?', ''), '(\w+) (''[^'']*'')', '\1=\2', 'g') || ')')::streamfilter $$;
CREATE FUNCTION golden_filter(name text, options text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE %I (id bigint%s) SERVER streamfilter OPTIONS (%s, seed ''7'')', name,
    CASE WHEN options ~ 'ibf|importance' THEN ', importance float8 OPTIONS (role ''importance'')'
         WHEN options ~ 'timer|window' THEN ', at timestamptz OPTIONS (role ''time'')' ELSE '' END, options);
  -- the corpus has filters without the rate that relations get by default
  UPDATE pg_foreign_table SET ftoptions = array_remove(ftoptions, 'fpr=1e-06')
  WHERE ftrelid = quote_ident(name)::regclass AND options !~ '\mfpr\M';
END $$;
-- The file of unlogged filters knows them by their OIDs: one with this OID, to which the counter is brought.
CREATE FUNCTION golden_unlogged(name text, options text, wanted oid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE last oid := 0;
BEGIN
  WHILE last::bigint <> wanted::bigint - 1 LOOP
    last := lo_creat(-1);
    PERFORM lo_unlink(last);
    IF last >= wanted THEN RAISE 'OID % is gone', wanted; END IF;
  END LOOP;
  PERFORM golden_filter(name, options || ', persistence ''unlogged''');
  IF name::regclass <> wanted THEN RAISE 'filter % has another OID than %', name, wanted; END IF;
END $$;
CREATE FUNCTION golden_insert(name text, options text, parts int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('INSERT INTO %I SELECT id%s FROM golden_keys(%s)', name,
    CASE WHEN options ~ 'ibf|importance' THEN ', importance'
         WHEN options ~ 'timer|window' THEN ', at' ELSE '' END, parts);
  -- Repeats renew the first keys.
  IF options ~ 'extend' AND (parts & 2) > 0 THEN
    EXECUTE format('INSERT INTO %I SELECT id, at + interval ''100 days'' FROM golden_keys(1)', name);
  END IF;
END $$;
-- 1 for every key that is known, 0 for every other.
CREATE FUNCTION golden_answers(filter regclass) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(streamfilter_test(filter, i::bigint)::int::text, '' ORDER BY i) FROM generate_series(1, 240) i $$;
CREATE FUNCTION golden_answers(value streamfilter) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg((value @> i::bigint)::int::text, '' ORDER BY i) FROM generate_series(1, 240) i $$;

CREATE TABLE golden_key (key text PRIMARY KEY);
COPY golden_key FROM STDIN;
true
false
0::smallint
(-1)::smallint
0::int
1::int
(-2147483648)::int
1::bigint
9223372036854775807::bigint
1::oid
0::numeric
1.0::numeric
1.00::numeric
(-123456789.987654321)::numeric
'NaN'::numeric
0::float4
1.5::float4
0::float8
'-0'::float8
1.5::float8
'NaN'::float8
'Infinity'::float8
''::text
'a'::text
'The quick brown fox jumps over the lazy dog'::text
repeat('abc', 1000)::text
'a'::text COLLATE "C"
'a'::varchar
'a  '::char(5)
'a'::name
'x'::"char"
''::bytea
'\\x00ff'::bytea
'2000-01-01'::date
'infinity'::date
'12:34:56.789'::time
'12:34:56.789+02'::timetz
'2025-01-01 00:00:00'::timestamp
'2025-01-01 00:00:00+00'::timestamptz
'1 day'::interval
'24 hours'::interval
'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid
'192.168.0.1'::inet
'10.0.0.0/8'::cidr
'08:00:2b:01:02:03'::macaddr
'{"a": [1, 2.0, null], "b": "c"}'::jsonb
'{1,2,3}'::int[]
'{{a,b},{c,NULL}}'::text[]
'[1,10)'::int4range
'{[1,2),[5,6)}'::int4multirange
ROW(1::bigint, 'a'::text)
ROW(1::bigint, NULL::text)
ROW(1::int)
'0/16B3748'::pg_lsn
\.
