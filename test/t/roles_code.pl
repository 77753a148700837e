# As whom the code of a filter's owner runs where no session of a caller is, or a statement of its own is needed: a worker restores
# filters after a start, or the first use does, also after a crash and with a prepared transaction; filters are resized and saved,
# triggers adopted; IMPORT FOREIGN SCHEMA brings types that have code. The code tells the server's log who runs it. What else
# there is, test/sql/owner_places.sql has.
# flavours: quick faults
use Sf;

my $node = start_node('code', "fsync = off\nmax_prepared_transactions = 5\nautovacuum = off\nstreamfilter.restore_workers = 1\n");

# A domain, a cast, operators with a hash function and expressions of an index, all of Mallory's.
$node->safe_psql('postgres', q{
	CREATE ROLE mallory;
	CREATE SCHEMA m AUTHORIZATION mallory;
	GRANT USAGE ON FOREIGN SERVER streamfilter TO mallory;
	SET search_path = m, public;
	SET SESSION AUTHORIZATION mallory;
	CREATE FUNCTION m.say(what text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE LOG 'code: % as %', what, current_user; RETURN true; END $$;
	CREATE FUNCTION say_int(what text, i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM m.say(what); RETURN i; END $$;
	CREATE DOMAIN checked AS int CHECK (say_int('check', VALUE) > 0) CHECK (say('constant of a domain'));
	CREATE TYPE pair AS (a int, b text);
	CREATE FUNCTION to_pair(int) RETURNS pair LANGUAGE plpgsql AS $$ BEGIN PERFORM m.say('cast'); RETURN ROW($1, 'x')::m.pair; END $$;
	CREATE CAST (int AS pair) WITH FUNCTION to_pair(int) AS IMPLICIT;
	RESET SESSION AUTHORIZATION;
	CREATE TYPE number;
	CREATE FUNCTION number_in(cstring) RETURNS number LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
	CREATE FUNCTION number_out(number) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
	CREATE TYPE number (INPUT = number_in, OUTPUT = number_out, LIKE = int8);
	CREATE FUNCTION number_eq(number, number) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN PERFORM m.say('operator'); RETURN $1::text = $2::text; END $$;
	CREATE FUNCTION number_hash(number) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint8';
	CREATE FUNCTION number_hash_extended(number, bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
	  AS $$ BEGIN PERFORM m.say('hash'); RETURN hashtextextended($1::text, $2); END $$;
	CREATE OPERATOR = (LEFTARG = number, RIGHTARG = number, FUNCTION = number_eq, COMMUTATOR = =, HASHES);
	CREATE OPERATOR CLASS number_hashes DEFAULT FOR TYPE number USING hash AS
	  OPERATOR 1 =, FUNCTION 1 number_hash(number), FUNCTION 2 number_hash_extended(number, bigint);
	ALTER TYPE number OWNER TO mallory;
	SET SESSION AUTHORIZATION mallory;
	CREATE TABLE codes (code text, filter_type text, table_type text);
	INSERT INTO codes VALUES ('domain', 'checked', 'int'), ('cast', 'pair', 'int'), ('operators', 'number', 'number'), ('index', 'int', 'int');
	SELECT format('CREATE FOREIGN TABLE f_%1$s (k %2$s) SERVER streamfilter OPTIONS (kind %4$L, memory %5$L);
	  CREATE TABLE t_%1$s (k %3$s); CREATE TABLE q_%1$s (k %3$s); ALTER TABLE t_%1$s ADD x int;
	  CREATE TRIGGER zz BEFORE INSERT ON t_%1$s FOR EACH ROW EXECUTE FUNCTION streamfilter_divert(%6$L, %7$L, %8$L)',
	  code, filter_type, table_type, 'clq', '64kB', 'f_' || code, 'q_' || code, 'k') FROM codes \gexec
	CREATE INDEX ON t_index (say_int('expression of an index', k)) WHERE say('constant of an index');
	CREATE UNIQUE INDEX ON t_index (k) WHERE say('constant of an index');});
my @codes = qw(domain cast operators index);

# What has run since `from`, without repeats: [what, role].
sub ran
{
	my ($from) = @_;
	my %ran = map { $_ => 1 } slurp_file($node->logfile, $from) =~ /LOG: +code: ([^\n]+)/g;
	return join ', ', sort keys %ran;
}

sub log_end { return -s $node->logfile; }

# Runs the statements for each kind of code; [f], [t] and [q] stand for filter, table and table for repeats, [1] to [9] for keys.
sub each_code
{
	my ($name, $statement, $wanted) = @_;
	my $from = log_end();
	for my $code (@codes)
	{
		my $type = $code eq 'operators' ? 'm.number' : 'int';
		my $made = $statement =~ s/\[([ftq])\]/m.$1_$code/gr =~ s/\[(\d+)\]/'$1'::$type/gr;
		$node->safe_psql('postgres', "SET client_min_messages = error; $made");
	}
	is(ran($from), $wanted, $name);
	return;
}


# ---- restoring --------------------------------------------------------------------------------------------------------

my $superuser = sql('SELECT session_user');
# PostgreSQL itself evaluates what an index has as the role that inserts, or that plans a query of the table.
my $of_key   = 'cast as mallory, check as mallory, constant of a domain as mallory';
my $of_index = "constant of an index as $superuser";
each_code('code of the filter runs as its owner', 'INSERT INTO [t] VALUES ([1]), ([1])',
	"$of_key, $of_index, expression of an index as $superuser, hash as mallory");
sql(q{BEGIN; INSERT INTO m.t_domain VALUES (2); INSERT INTO m.t_cast VALUES (2); INSERT INTO m.t_operators VALUES ('2'); PREPARE TRANSACTION 'p'});
each_code('to save a filter runs no code', q{SELECT streamfilter_save('[f]'); CHECKPOINT}, '');

for my $how ('fast', 'immediate')
{
	my $from = log_end();
	$node->stop($how);
	$node->start;
	ok(wait_for(q{SELECT count(*) = 4 FROM streamfilter_stats WHERE restored IS NOT NULL}), "$how: a worker restores the filters");
	is(ran($from), '', 'and runs no code');
	each_code('the next key: as the owner', q{SELECT streamfilter_test('[f]', [1])}, "$of_key, hash as mallory");
}
{
	my $from = log_end();
	sql(q{COMMIT PREPARED 'p'});
	is(ran($from), '', 'nor does COMMIT PREPARED');
}

# What is used first, and what runs then
$node->append_conf('postgresql.conf', 'streamfilter.restore_workers = 0');
for my $use (
	[ q{SELECT streamfilter_test('[f]', [1])}, "$of_key, hash as mallory" ],
	[ 'INSERT INTO [t] VALUES ([1])', "$of_key, $of_index, hash as mallory" ],
	[ q{SELECT streamfilter_value('[f]')}, '' ],
	[ q{SELECT streamfilter_save('[f]')}, '' ],
	[ q{SELECT * FROM streamfilter_stats}, '' ],
	[ q{EXPLAIN ANALYZE SELECT FROM [t] WHERE NOT streamfilter_test('[f]', k)}, "$of_key, $of_index, hash as mallory" ],
	[ q{SELECT * FROM streamfilter_settle('[q]', '[t]')}, "$of_key, constant of an index as mallory, hash as mallory, operator as mallory" ],
	[ q{ALTER FOREIGN TABLE [f] OPTIONS (SET memory '128kB')}, 'constant of a domain as mallory' ],
	[ q{CALL streamfilter_resize('[f]', '64kB')}, 'constant of a domain as mallory' ],
	[ q{ALTER EVENT TRIGGER streamfilter_check_ddl DISABLE;
		CREATE OR REPLACE TRIGGER zz BEFORE INSERT ON [t] FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('[f]', '[q]', 'k');
		ALTER EVENT TRIGGER streamfilter_check_ddl ENABLE; SELECT streamfilter_adopt_triggers()}, '' ],
	[ 'VACUUM (FULL, ANALYZE) [t]', 'constant of an index as mallory, expression of an index as mallory, operator as mallory' ],
	[ 'TRUNCATE [f]', '' ])
{
	my ($statement, $wanted) = @$use;
	my $from = log_end();
	$node->restart;
	is(ran($from), '', 'without a worker nothing runs at the start');
	each_code("the first use: $statement", $statement, $wanted);
}

# ---- importing --------------------------------------------------------------------------------------------------------

# A server that says that the columns of its filters have types with code
my ($host, $port) = ($node->host, $node->port);
sql('CREATE DATABASE producer');
sql('CREATE EXTENSION streamfilter; CREATE SCHEMA told', 'producer');
my %types = (domain => 'm.checked', cast => 'm.pair', operators => 'm.number', index => 'integer');
sql(qq{CREATE FOREIGN TABLE told.i_$_ (hash bigint) SERVER streamfilter OPTIONS (kind 'bloom', memory '8kB', k '4',
	producer \$p\${"columns": [{"name": "k", "type": "$types{$_}"}], "options": {"kind": "bloom", "memory": "8kB", "k": "4", "servers": "producer"},
	"servers": [{"name": "producer", "host": "$host", "port": "$port", "dbname": "producer"}]}\$p\$)}, 'producer') for @codes;
sql(qq{CREATE SERVER producer FOREIGN DATA WRAPPER streamfilter OPTIONS (host '$host', port '$port', dbname 'producer');
	CREATE USER MAPPING FOR CURRENT_USER SERVER producer; CREATE SCHEMA i});
my $from = log_end();
like(said('IMPORT FOREIGN SCHEMA told FROM SERVER producer INTO i'), qr/^(?!.*ERROR)/s, 'filters are imported');
is(sql(q{SELECT count(*) FROM pg_foreign_table WHERE ftrelid::regclass::text ~ '^i\.'}), 4, 'all of them');
is(ran($from), '', 'which runs no code');

done();
