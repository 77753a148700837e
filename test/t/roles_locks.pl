# What one owner has open keeps no other owner waiting: each statement of one owner stays open in a transaction, and each
# statement of another owner runs beside it, with a lock_timeout that is an error.
# flavours: quick faults
use Sf;

my $node = start_node('locks', "fsync = off\nmax_prepared_transactions = 10\nlog_min_messages = fatal\n");
my @owners = qw(first second);

my $filter = q{SERVER streamfilter OPTIONS (kind 'lru', memory '64kB', seed '1')};
sql(join "\n", map { qq{
	CREATE ROLE $_;
	GRANT CREATE ON DATABASE postgres TO $_;
	GRANT USAGE ON FOREIGN SERVER streamfilter TO $_;} } @owners);

sub make
{
	my ($owner) = @_;
	return qq{
	SET SESSION AUTHORIZATION $owner;
	SET client_min_messages = error;
	DROP SCHEMA IF EXISTS $owner CASCADE;
	CREATE SCHEMA $owner;
	SET search_path = $owner, public;
	CREATE FOREIGN TABLE f (k int) $filter;
	CREATE FOREIGN TABLE g (k int) $filter;
	CREATE FOREIGN TABLE root (k int) SERVER streamfilter OPTIONS (kind 'bloom', k '3', memory '64kB');
	CREATE FOREIGN TABLE leaf (k int) SERVER streamfilter OPTIONS (kind 'bloom', k '3', memory '64kB', parent 'root', tree 'sparse');
	CREATE TABLE t (k int);
	CREATE TABLE q (k int);
	CREATE TABLE moved AS SELECT 11 AS k;
	CREATE TABLE plain AS SELECT generate_series(1, 10) AS k;
	CREATE TRIGGER zz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION streamfilter_divert('f', 'q');
	INSERT INTO f VALUES (1), (2);
	INSERT INTO t VALUES (2), (3), (3);
	SELECT streamfilter_save('f'), streamfilter_save('g');
	RESET SESSION AUTHORIZATION;
};
}

my %statements = (
	insert          => 'INSERT INTO t VALUES (10), (10)',
	insert_many     => 'INSERT INTO t SELECT generate_series(100, 1000)',
	insert_keys     => 'INSERT INTO f VALUES (11)',
	seen            => q{SELECT streamfilter_seen('f', 12)},
	test            => q{SELECT streamfilter_test('f', 13)},
	look_up         => 'SELECT * FROM f WHERE k = 1',
	forget          => 'DELETE FROM f WHERE k = 1',
	truncate        => 'TRUNCATE f',
	tree            => q{SELECT streamfilter_seen('leaf', 14)},
	settle          => q{SELECT * FROM streamfilter_settle('q', 't')},
	settle_plain    => q{SELECT * FROM streamfilter_settle('moved', 'plain', '{k}')},
	warm            => q{SELECT streamfilter_warm('g', 'plain')},
	value           => q{SELECT count(*) FROM streamfilter_value('f')},
	merge           => q{SELECT streamfilter_merge('g', streamfilter_value('f'))},
	save            => q{SELECT streamfilter_save('f')},
	forget_saved    => q{SELECT streamfilter_forget_saved('g')},
	evaluate        => q{SELECT count(*) FROM streamfilter_evaluate('SELECT k FROM plain', '{lru(memory=1kB)}')},
	create          => qq{CREATE FOREIGN TABLE new (k int) $filter},
	create_trigger  => q{CREATE TRIGGER zz BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('g')},
	drop_trigger    => 'DROP TRIGGER zz ON t',
	alter_memory    => q{ALTER FOREIGN TABLE f OPTIONS (SET memory '128kB')},
	alter_mode      => q{ALTER FOREIGN TABLE f OPTIONS (ADD conflict 'discard')},
	rename          => 'ALTER FOREIGN TABLE f RENAME TO f2',
	drop            => 'DROP FOREIGN TABLE g',
	drop_schema     => 'DROP SCHEMA %OWNER% CASCADE',
	stats           => 'SELECT count(*) FROM streamfilter_stats, streamfilter_triggers, streamfilter_filters',
	stats_reset     => q{SELECT streamfilter_stats_reset('f')});

my @names = sort keys %statements;
my ($first, $second) = map { $_ } @owners;
sub in_schema { my ($owner, $name) = @_; return "SET SESSION AUTHORIZATION $owner; SET search_path = $owner, public; BEGIN; "
	  . ($statements{$name} =~ s/%OWNER%/$owner/r); }

my (@waiting, @missing);
for my $name (@names)
{
	sql(make($_)) for @owners;
	my $session = open_session();
	$session->query("SET client_min_messages = error");
	$session->{stderr} = '';
	$session->query($_) for split /(?<=;) /, in_schema($first, $name);
	push @missing, "$name: $session->{stderr}" if $session->{stderr} =~ /ERROR/;
	my $script = join "\n", map { "\\echo CELL $_\n\\warn CELL $_\nSET lock_timeout = '1s'; SET client_min_messages = error;\n"
		  . in_schema($second, $_) . ";\nROLLBACK; RESET SESSION AUTHORIZATION;" } @names;
	my ($status, $out, $err) = $node->psql('postgres', $script, on_error_stop => 0, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	while (($err // '') =~ /^CELL (\w+)\n(.*?)(?=^CELL|\z)/gms)
	{
		my ($other, $said) = ($1, $2);
		next unless $said =~ /(ERROR:.*)/;
		push @waiting, "$other beside $name: $1";
	}
	$session->query('ROLLBACK');
	$session->quit;
}
is(join("\n", @missing), '', 'each statement may stay open');
is(join("\n", @waiting), '', 'no statement of another owner waits for one of them');

# ---- a resize that waits for its filter -----------------------------------------------------------------------------------

sql(make($_)) for @owners;
my $user = open_session();
$user->query("SET SESSION AUTHORIZATION $first; SET search_path = $first, public; BEGIN; INSERT INTO f VALUES (5)");
my $resizing = open_session();
$resizing->query("SET SESSION AUTHORIZATION $first; SET search_path = $first, public");
$resizing->query_until(qr/begun/, "\\echo begun\nCALL streamfilter_resize('f', '1MB');\n");
wait_for(q{SELECT count(*) = 1 FROM streamfilter_progress WHERE phase = 'waiting for transactions'});
for my $statement (@statements{qw(save alter_memory forget_saved drop)})
{
	my $said = said("SET SESSION AUTHORIZATION $second; SET search_path = $second, public; SET lock_timeout = '2s'; BEGIN; $statement; COMMIT");
	unlike($said, qr/ERROR/, "$statement beside a resize of another owner's filter that waits");
}

$user->query('ROLLBACK');
$_->quit for $user, $resizing;
done();
