# The golden corpus (test/golden): what a version has written is read, and answers as it did then. Format and hashes that change
# without a new version of the format, or before 1.0 is released without a new corpus, are found here.
# flavours: faults
use Sf;
use File::Basename;
use IO::Uncompress::Gunzip qw(gunzip $GunzipError);

my $golden = dirname(__FILE__) . '/../golden';
my $node = new_node('golden');

sub new_node
{
	my ($name) = @_;
	my $new = start_node($name, q{
streamfilter.shared_memory = '24MB'
allow_system_table_mods = on
max_prepared_transactions = 2
timezone = 'UTC'
fsync = off
	}, extra => [ '--locale=C', '--encoding=UTF8' ]);
	$new->psql('postgres', slurp_file("$golden/cases.sql"), on_error_die => 1);
	return $new;
}

# Loads a file of the corpus into a table.
sub load
{
	my ($version, $file, $table, $columns) = @_;
	my $rows = slurp_file("$golden/$version/$file.tsv");
	if ($file eq 'hashes')    # it is no output of COPY
	{
		$rows =~ s/\\/\\\\/g;
		1 while $rows =~ s/\t(?=\t|\n)/\t\\N/g;
	}
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS $table; CREATE TABLE $table ($columns);\n"
		  . "COPY $table FROM STDIN;\n" . $rows . "\\.\n");
}

# How many rows there are, and those for which a condition does not hold.
sub all_are
{
	my ($table, $condition, $what) = @_;
	my $result = $node->safe_psql('postgres', "SELECT count(*) > 0, string_agg(name, ' ' ORDER BY name)
		FILTER (WHERE ($condition) IS NOT TRUE) FROM $table");
	is($result, 't|', $what);
}

# Values as tables have them: version of the compact form, prototype, so many keys, a fifth of them twice, bytes.
# Lines are added for new versions, never changed. The function of the server returns its argument as it is.
$node->safe_psql('postgres', q{
	CREATE FUNCTION stored(bytea, typmod int = -1, explicit boolean = true) RETURNS streamfilter
		LANGUAGE internal IMMUTABLE STRICT AS 'bpchar';
	CREATE FUNCTION bytes_of(streamfilter, typmod int = -1, explicit boolean = true) RETURNS bytea
		LANGUAGE internal IMMUTABLE STRICT AS 'bpchar';
	CREATE TABLE compact (version int, name text, keys int, bytes text);
	COPY compact FROM STDIN;
} . slurp_file("$golden/compact.tsv") . q{\.
	CREATE TABLE compact_now AS SELECT c.*, stored(decode(bytes, 'hex')) AS value, coalesce(
		(SELECT streamfilter_agg((1 + i % keys)::bigint, name::streamfilter) FROM generate_series(0, keys + keys / 5 - 1) i),
		name::streamfilter || name::streamfilter) AS made FROM compact c;
});
all_are('compact_now', '# value = keys AND value::text = made::text AND value @> 1::bigint = (keys > 0)', 'compact values are read');
all_are('(SELECT * FROM compact_now WHERE version = (SELECT max(version) FROM compact)) c', q{encode(bytes_of(made), 'hex') = bytes},
	'and written as they were');

my @versions = map { basename($_) } sort grep { -d } glob("$golden/*");
ok(@versions >= 1, 'there is a corpus');
for my $version (@versions)
{
	load($version, 'hashes', 'hashes', 'name text, hash bigint, seeded bigint');
	$node->safe_psql('postgres', q{
		CREATE OR REPLACE FUNCTION hash_now(key text, prototype text) RETURNS bigint LANGUAGE plpgsql AS $$
		DECLARE result bigint;
		BEGIN
		  EXECUTE format('SELECT streamfilter_hash(%s, %L::streamfilter)', key, prototype) INTO result;
		  RETURN result;
		END $$});
	all_are('hashes', q{hash IS NOT DISTINCT FROM hash_now(name, 'bloom(memory=1kB, k=1)')
		AND seeded IS NOT DISTINCT FROM hash_now(name, 'bloom(memory=1kB, k=1, seed=12345)')}, "$version: hashes of every type of key");

	load($version, 'values', 'golden_values', 'name text, body text, bytes text, answers text');
	all_are('golden_values', 'golden_answers(body::streamfilter) = answers', "$version: values as text");
	# The binary form comes in by COPY alone.
	my $file = $node->basedir . '/value.copy';
	sql('CREATE TABLE received (name text, value streamfilter)', $node);
	my $rows = sql(q{SELECT name || ' ' || bytes FROM golden_values}, $node);
	open my $copy, '>:raw', $file or die;
	print $copy "PGCOPY\n\xff\r\n\0", pack('N N', 0, 0);
	for (split /\n/, $rows)
	{
		my ($name, $bytes) = split / /;
		$bytes = unpack_base64($bytes);
		print $copy pack('n N/a* N/a*', 2, $name, $bytes);
	}
	print $copy pack('n', 0xffff);
	close $copy;
	sql("COPY received FROM '$file' (FORMAT binary)", $node);
	all_are('golden_values JOIN received USING (name)', 'golden_answers(value) = answers', "$version: values in binary form");
	all_are('golden_values JOIN received USING (name)', 'golden_answers((value::text)::streamfilter) = answers',
		"$version: what was read is written and read again");
	all_are('golden_values JOIN received USING (name)', q{golden_answers(streamfilter_add(value, 238::bigint)) ~ '1.{2}$'},
		"$version: and goes on to remember");
	sql('DROP TABLE received', $node);

	load($version, 'filters', 'golden_filters', 'name text, options text, answers text');
	load($version, 'images', 'images', 'name text, chunks int, number int, sum bigint, image bigint, saved timestamptz, data text');
	load($version, 'logs', 'logs', 'name text, change "char", number bigint, identity bigint, data text');
	# Definitions come in as from a dump.
	store();
	# What SQL writes to the log, sessions are not told of: it becomes another file.
	sql('VACUUM FULL _streamfilter.streamfilter_log', $node);
	all_are('golden_filters', 'golden_answers(name::regclass) = answers', "$version: images and logs");
	all_are('golden_filters f JOIN streamfilter_stats s ON s.filter = f.name::regclass', 's.restored IS NOT NULL AND s.last_saved IS NOT NULL',
		"$version: which the statistics tell");
	$node->restart;
	sql('SELECT golden_insert(name, options, 3), streamfilter_save(name::regclass) FROM golden_filters', $node);
	$node->restart;
	all_are('golden_filters',
		q{golden_answers(name::regclass) ~ '1' AND (SELECT restored IS NOT NULL FROM streamfilter_stats WHERE filter = name::regclass)},
		"$version: and they are saved anew");
	drop_golden_filters();

	# The record of a prepared transaction is its rows of the log: they come in by one that is prepared.
	$node->safe_psql('postgres', q{
		SET check_function_bodies = off;
		SELECT golden_filter(name, options) FROM golden_filters;
		UPDATE pg_class SET relkind = 'r' WHERE oid IN ('_streamfilter.streamfilter_image'::regclass, '_streamfilter.streamfilter_log'::regclass);
		INSERT INTO _streamfilter.streamfilter_image SELECT name::regclass, chunks, number, sum, image, saved, decode(data, 'base64') FROM images;
		INSERT INTO _streamfilter.streamfilter_log SELECT name::regclass, change, number, identity, decode(data, 'base64') FROM logs WHERE change = 'i';
		BEGIN;
		INSERT INTO _streamfilter.streamfilter_log SELECT name::regclass, change, number, identity, decode(data, 'base64') FROM logs WHERE change <> 'i';
		PREPARE TRANSACTION 'golden';
		UPDATE pg_class SET relkind = 'm' WHERE oid IN ('_streamfilter.streamfilter_image'::regclass, '_streamfilter.streamfilter_log'::regclass)});
	$node->restart;
	all_are('golden_filters', 'golden_answers(name::regclass) <> answers', "$version: keys of a prepared transaction are not known");
	all_are('golden_filters f JOIN streamfilter_stats s ON s.filter = f.name::regclass', 's.in_flight > 0', "$version: they are in flight");
	sql(q{COMMIT PREPARED 'golden'}, $node);
	all_are('golden_filters', 'golden_answers(name::regclass) = answers', "$version: and known once it has committed");
	drop_golden_filters();

	# The file of unlogged filters, in a cluster that has their OIDs free.
	my $other = new_node("unlogged_$version");
	($node, $other) = ($other, $node);
	load($version, 'unlogged', 'golden_unlogged', 'name text, options text, relation oid, answers text');
	$node->safe_psql('postgres', 'SET check_function_bodies = off; SELECT golden_unlogged(name, options, relation)
		FROM (SELECT * FROM golden_unlogged ORDER BY relation) _');
	$node->stop;
	my $packed = unpack_base64(slurp_file("$golden/$version/unlogged.gz.base64"));
	gunzip(\$packed => $node->data_dir . '/streamfilter.unlogged.upgrade') or die $GunzipError;
	$node->start;
	all_are('golden_unlogged', 'golden_answers(name::regclass) = answers', "$version: the file of unlogged filters");
	all_are('golden_unlogged u JOIN streamfilter_stats s ON s.filter = u.name::regclass', 's.restored IS NOT NULL AND s.accepted > 0',
		"$version: with their counts");
	$node->restart;
	all_are('golden_unlogged', 'golden_answers(name::regclass) = answers', "$version: which is written anew");
	$node->stop;
	$node = $other;
}

# Filters, and what was saved of them.
sub store
{
	$node->safe_psql('postgres', q{
		SET check_function_bodies = off;
		SELECT golden_filter(name, options) FROM golden_filters;
		UPDATE pg_class SET relkind = 'r' WHERE oid IN ('_streamfilter.streamfilter_image'::regclass, '_streamfilter.streamfilter_log'::regclass);
		INSERT INTO _streamfilter.streamfilter_image SELECT name::regclass, chunks, number, sum, image, saved, decode(data, 'base64') FROM images;
		INSERT INTO _streamfilter.streamfilter_log SELECT name::regclass, change, number, identity, decode(data, 'base64') FROM logs;
		UPDATE pg_class SET relkind = 'm' WHERE oid IN ('_streamfilter.streamfilter_image'::regclass, '_streamfilter.streamfilter_log'::regclass)});
	return;
}

sub drop_golden_filters
{
	$node->safe_psql('postgres', q{
		DO $$ DECLARE f regclass; BEGIN
		  FOR f IN SELECT name::regclass FROM golden_filters LOOP EXECUTE format('DROP FOREIGN TABLE %s', f); END LOOP;
		END $$});
	return;
}

sub unpack_base64
{
	my ($text) = @_;
	$text =~ tr{A-Za-z0-9+/}{}cd;
	$text =~ tr{A-Za-z0-9+/}{ -_};
	my $bytes = '';
	while ($text =~ /(.{1,60})/g) { $bytes .= unpack('u', chr(32 + int(length($1) * 3 / 4)) . $1); }
	return $bytes;
}

# A format that does not exist yet is refused by its number.
like(said(q{SELECT 'bloom(memory=1kB, k=4):999:AAAA'::streamfilter}, $node), qr/format version 999 cannot be read/, 'a newer format is refused by its number');

done();
