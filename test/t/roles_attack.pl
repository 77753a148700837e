# A role with each of the rights that a filter knows does all that it can to be in its owner's way: names the filter in a
# trigger, or diverts to the owner's table, locks its own table, alters and drops. The owner then does what owners do: without
# waiting for others, and without errors that are not the owner's own. What waited, and for whom, is read in the server's log.
# flavours: faults quick
use Sf;

my $node = start_node('main', q{
	log_lock_waits = on
	deadlock_timeout = 1ms});
sql(q{
	CREATE ROLE owner;
	CREATE ROLE guest;
	CREATE ROLE chief SUPERUSER;
	GRANT CREATE ON DATABASE postgres TO owner;
	GRANT USAGE ON FOREIGN SERVER streamfilter TO owner;});

my $options = q{SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6')};

# Who does it: the role that owns the table with the trigger, and what the filter's owner grants before.
my %guests = (
	'no right'  => [ 'guest', '' ],
	'USAGE'     => [ 'guest', 'GRANT USAGE ON SCHEMA private TO guest' ],
	'SELECT'    => [ 'guest', 'GRANT USAGE ON SCHEMA private TO guest; GRANT SELECT ON private.seen, private.kept TO guest' ],
	'INSERT'    => [ 'guest', 'GRANT USAGE ON SCHEMA private TO guest; GRANT INSERT ON private.seen, private.kept TO guest' ],
	'revoked'   => [ 'guest', 'GRANT USAGE ON SCHEMA private TO guest; GRANT INSERT ON private.seen, private.kept TO guest' ],
	'superuser' => [ 'chief', '' ],
	'owner'     => [ 'owner', '' ]);
my %may_bind = map { $_ => 1 } qw(INSERT revoked superuser owner);

# What is named, and whether the guest's table is locked, or its trigger was made useless, when the owner comes.
my %names = (
	'in a trigger' => q{streamfilter_discard('private.seen')},
	'in divert'    => q{streamfilter_divert('private.seen', 'private.kept')});
my @then = ('', 'locks', 'reads', 'adds a later trigger', 'drops', 'alters');
# What anybody may call; of the rest a right is asked.
my $reads = q{
	SELECT streamfilter_definition(oid::regclass) FROM pg_class WHERE relname = 'seen';
	SELECT * FROM streamfilter_stats; SELECT * FROM streamfilter_filters; SELECT * FROM streamfilter_triggers;
	SELECT * FROM streamfilter_slices; SELECT * FROM streamfilter_tree};
my %denied = (
	drops  => [ 'DROP FOREIGN TABLE private.seen', 'DROP TABLE private.kept', 'DROP SCHEMA private CASCADE' ],
	alters => [ q{ALTER FOREIGN TABLE private.seen OPTIONS (SET keys '1')}, 'ALTER FOREIGN TABLE private.seen RENAME TO mine',
		'ALTER TABLE private.kept ADD COLUMN mine int', 'LOCK TABLE private.kept IN ACCESS EXCLUSIVE MODE' ]);

# What the owner does in one transaction that is rolled back, and whether a trigger that is bound may refuse it.
my @deeds = (
	[ 'ALTER FOREIGN TABLE private.seen OPTIONS (SET keys \'2000\')', 0 ],
	[ 'ALTER FOREIGN TABLE private.seen RENAME TO known',              0 ],
	[ 'ALTER FOREIGN TABLE private.seen ALTER COLUMN id TYPE bigint',  0 ],
	[ 'ALTER FOREIGN TABLE private.seen OWNER TO CURRENT_USER',        0 ],
	[ 'ALTER TABLE private.kept ADD COLUMN more int',                  0 ],
	[ 'ALTER TABLE private.kept OWNER TO CURRENT_USER',                0 ],
	[ 'ALTER TABLE private.kept RENAME TO renamed',                    0 ],
	[ 'ALTER SCHEMA private RENAME TO renamed',                        0 ],
	[ 'TRUNCATE private.seen',                                         0 ],
	[ 'DROP FOREIGN TABLE private.seen',                               1 ],
	[ 'DROP TABLE private.kept',                                       1 ],
	[ 'DROP SCHEMA private CASCADE',                                   2 ]);

sub prepare
{
	my ($role, $grant, $call) = @_;
	sql(qq{
		SET client_min_messages = error;
		DROP SCHEMA IF EXISTS private, his CASCADE;
		CREATE SCHEMA private AUTHORIZATION owner;
		CREATE SCHEMA his AUTHORIZATION $role;
		SET ROLE owner;
		CREATE FOREIGN TABLE private.seen (id int) $options;
		CREATE TABLE private.kept (id int);
		RESET ROLE;
		$grant;
		SET ROLE $role;
		CREATE TABLE his.t (id int, other int);
		CREATE FUNCTION his.last() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';});
	my ($status, $out, $err) = $node->psql('postgres',
		"SET ROLE $role; CREATE TRIGGER zz BEFORE INSERT ON his.t FOR EACH ROW EXECUTE FUNCTION public.$call");
	return $err =~ /ERROR: +(.*)/ ? $1 : '';
}

# What waits in the log from there on: the statement, and the sessions that it waited for.
sub waits_since
{
	my ($offset) = @_;
	my $log = slurp_file($node->logfile, $offset);
	my @waits;
	while ($log =~ /still waiting for (.*) after.*\n.*holding the locks?: ([0-9, ]+)\.(?:.*\n)*?.*STATEMENT:  (.*)/g)
	{
		push @waits, "$3: waited for $1, held by $2";
	}
	return @waits;
}

# The errors of the owner's deeds, each in a transaction of its own, and whatever waited for a lock of any other session.
sub owner_does
{
	my ($refuses) = @_;
	my $offset = -s $node->logfile;
	my ($status, $out, $err) = $node->psql('postgres',
		join("\n", "SET lock_timeout = '1s'; SET ROLE owner;", map { "BEGIN; $_->[0]; ROLLBACK;" } @deeds), on_error_stop => 0);
	my @wrong = waits_since($offset);
	while ($err =~ /^psql:<stdin>:(\d+): ERROR: +(.*)/mg)
	{
		my ($statement, $needs) = @{ $deeds[ $1 - 2 ] };
		push @wrong, "$statement: $2" unless $needs == 1 && $refuses && $2 =~ /other objects depend on it/;
	}
	return join "\n", @wrong;
}

for my $who (sort keys %guests)
{
	my ($role, $grant) = @{ $guests{$who} };
	for my $where (sort keys %names)
	{
		my $error = prepare($role, $grant, $names{$where});
		if (!$may_bind{$who})
		{
			like($error, qr/^permission denied for (filter|schema|table)/, "$who, $where: refused");
			# What 1.1 has bound, or what a dump brings.
			sql("SET ROLE $role; SET check_function_bodies = off; "
				  . "CREATE TRIGGER zz BEFORE INSERT ON his.t FOR EACH ROW EXECUTE FUNCTION public.$names{$where}");
		}
		else
		{
			is($error, '', "$who, $where: bound");
		}
		sql('REVOKE INSERT ON private.seen, private.kept FROM guest') if $who eq 'revoked';
		my $refuses = $may_bind{$who} && $who ne 'revoked';
		for my $then (@then)
		{
			# An owner's own table is the owner's to wait for, and to put right.
			next if $role eq 'owner' && $then;
			next if $role ne 'guest' && $denied{$then};
			# What fails leaves nothing locked that others need, though its transaction goes on.
			my $other = $node->background_psql('postgres', on_error_stop => 0);
			$other->query("SET client_min_messages = error; SET ROLE $role; BEGIN");
			foreach my $statement (@{ $denied{$then} // [] })
			{
				$other->query("SAVEPOINT s; $statement;");
				like($other->{stderr}, qr/must be owner|permission denied/, "$who, $where: denied: $statement");
				$other->{stderr} = '';
				$other->query('ROLLBACK TO s');
			}
			$other->query_safe('LOCK TABLE his.t') if $then eq 'locks';
			$other->query_safe($reads) if $then eq 'reads';
			$other->query_safe('CREATE TRIGGER zzz BEFORE INSERT ON his.t FOR EACH ROW EXECUTE FUNCTION his.last(); COMMIT')
			  if $then =~ /later/;
			# DROP SCHEMA … CASCADE drops a trigger that is bound, too, and waits for its table as for a view in use.
			local $deeds[-1] = [ 'SELECT 1', 0 ] if $then eq 'locks' && $may_bind{$who};
			is(owner_does($refuses), '', "$who, $where" . ($then && ", then $then") . ': the owner does as ever');
			$other->query_safe('ROLLBACK') if $then ne '' && $then !~ /later/;
			$other->quit;
		}
	}
}

# A wait is seen: DROP SCHEMA ... CASCADE has to wait for a table whose trigger is bound.
prepare('guest', $guests{INSERT}[1], $names{'in divert'});
{
	my $other = $node->background_psql('postgres', on_error_stop => 0);
	my $holder = $other->query('SELECT pg_backend_pid()');
	$other->query_safe('BEGIN; LOCK TABLE his.t');
	my $waited = owner_does(1);
	like($waited, qr/^DROP SCHEMA private CASCADE;: waited for \w+ on relation \d+ of database \d+, held by $holder$/m,
		'a wait is seen in the log');
	end_session($other, 'ROLLBACK');
}

is(sql(q{SET ROLE owner; INSERT INTO private.seen VALUES (1), (1) RETURNING id}), '1', 'the owner inserts as before');

# What stands below the filter of a role that had the right: nothing of it is in the owner's way, whatever becomes of it just now.
sub with_child
{
	my ($deed) = @_;
	prepare('guest', $guests{INSERT}[1], $names{'in a trigger'});
	sql(qq{
		GRANT SELECT ON private.seen TO guest;
		GRANT USAGE ON FOREIGN SERVER streamfilter TO guest;
		SET ROLE guest;
		CREATE FOREIGN TABLE his.below (id int)
		  SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6', parent 'private.seen');
		RESET ROLE;
		REVOKE ALL ON private.seen, private.kept FROM guest;});
	my $guest = open_session("SET client_min_messages = error; SET ROLE guest; BEGIN; $deed");
	return $guest;
}

for my $deed (q{ALTER FOREIGN TABLE his.below OPTIONS (ADD mode 'shadow')}, 'ALTER FOREIGN TABLE his.below RENAME TO lower',
	'TRUNCATE his.below')
{
	my $guest = with_child($deed);
	local $deeds[-1] = [ 'SELECT 1', 0 ];    # as above
	is(owner_does(0), '', "a child, and $deed: the owner does as ever");
	end_session($guest, 'ROLLBACK');
}

# What is being dropped while the owner drops what it names: that waits, as for any such object, and goes on.
for my $deed ('DROP TRIGGER zz ON his.t', 'DROP TABLE his.t', 'DROP FOREIGN TABLE his.below',
	'ALTER FOREIGN TABLE his.below OPTIONS (DROP parent)')
{
	my $guest = with_child($deed);
	my $owner = open_session(q{SET ROLE owner; SET lock_timeout = '60s'});
	$owner->query_until(qr//, "DROP FOREIGN TABLE private.seen;\n");
	ok($node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM pg_locks WHERE NOT granted'), "$deed: the owner waits");
	$guest->query_safe('COMMIT');
	is($owner->query(q{SELECT to_regclass('private.seen') IS NULL}), 't', 'and has dropped the filter');
	is($owner->{stderr}, '', 'without an error');
	$_->quit for $guest, $owner;
}

# A database without the extension: nothing of it is in the way of statements of any kind.
sql('CREATE DATABASE plain');
is($node->safe_psql('plain', q{
	CREATE TABLE t (id int);
	CREATE FUNCTION last() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION last();
	INSERT INTO t SELECT generate_series(1, 3);
	ALTER TABLE t RENAME TO u;
	EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM u LIMIT 1;
	TRUNCATE u;
	CREATE EXTENSION streamfilter;
	CREATE FOREIGN TABLE f (id int) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000');
	CREATE TRIGGER zzz BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('f');
	INSERT INTO u VALUES (1), (1) RETURNING id;
	DROP TABLE u;
	DROP EXTENSION streamfilter CASCADE;
	SELECT 'without it again'}) =~ s/.*\n(1\nwithout)/$1/sr,
	"1\nwithout it again", 'a session before, with and after the extension');
sql('DROP DATABASE plain');

done();
