# Citus: a node that was away and comes back has no filter of before. {one copy of a shard, two} × {how a node goes and comes
# back, or is replaced} × {what happens to table and filter meanwhile} × {sent by the coordinator, by a worker}: stored rows are
# exactly the model's. A quarter of the 192 cells, by STREAMFILTER_SEED; STREAMFILTER_CELLS=all runs them all.
use Sf;
use CitusCluster;

my $all = ($ENV{STREAMFILTER_CELLS} // '') eq 'all';
my $seed = $ENV{STREAMFILTER_SEED} // int(time / 86400);
my @cells;
for my $how (split / /, $ENV{STREAMFILTER_EVENTS} // 'disable drain remove inactive resync update restore clone')
{
	for my $copies (1, 2)
	{
		for my $what (qw(truncate drop alter forget purge nothing)) { push @cells, map { [ $how, $copies, $what, $_ ] } 0, 1 }
	}
}
@cells = @cells[ grep { ($_ + int($_ / 4)) % 4 == $seed % 4 } 0 .. $#cells ] if !$all;
my $citus = CitusCluster->new(workers => 3, checks => scalar @cells, settings => "citus.node_connection_timeout = 10000\nhot_standby = on");
my $away = 3;       # the worker that goes and comes back
my $kRows = 600;    # keys 1 to this one; a third of them is deleted by some statements

sql('SELECT citus_set_node_property(' . $citus->place(0) . q{, 'shouldhaveshards', false)});
my $has_clones = sql(q{SELECT count(*) FROM pg_proc WHERE proname = 'citus_add_clone_node'});
sub place { return $citus->place($away); }

# Says what Citus says instead, if it refuses.
sub try_sql
{
	my ($query, $node) = @_;
	my ($code, $out, $error) = ($node // $citus->coordinator)->psql('postgres', "SET client_min_messages = warning; $query");
	die "$query: $error" if $code != 0;
	return $out;
}

# ---- table and filter

my $follow = q{CREATE TRIGGER forget AFTER DELETE ON ev FOR EACH ROW EXECUTE FUNCTION streamfilter_forget('seen')};
my $judge = q{CREATE TRIGGER zz BEFORE INSERT ON ev FOR EACH ROW EXECUTE FUNCTION streamfilter_discard('seen')};

sub make
{
	my ($copies, $forgets) = @_;
	sql(q{CREATE FOREIGN TABLE seen (k int) SERVER streamfilter OPTIONS (kind 'lru', memory '256kB'); SELECT streamfilter_distribute('seen');
		CREATE TABLE ev (k int)});
	sql("SET client_min_messages = error; SET citus.shard_replication_factor = $copies; SELECT create_distributed_table('ev', 'k', colocate_with => 'none'); $judge"
		  . ($forgets ? "; $follow" : ''));
	return;
}

sub load
{
	my ($from, $last, $node) = @_;
	try_sql("INSERT INTO ev SELECT generate_series($from, $last)", $node);
	return;
}

# The rows of each copy: "600|600" of each set of copies, or what each shard has where they differ.
sub stored
{
	my ($copies) = @_;
	return $citus->counts('ev', 'k') if $copies == 1;
	my %of;    # shard → { rows of a placement → 1 }
	my $sum = 0;
	for (split /\n/, sql(q{SELECT p.shardid, p.nodeport FROM pg_dist_shard_placement p JOIN pg_dist_shard s USING (shardid) WHERE s.logicalrelid = 'ev'::regclass}))
	{
		my ($shard, $port) = split /\|/;
		my ($node) = grep { $_->port == $port } @{ $citus->{nodes} };
		$of{$shard}{ $node->safe_psql('postgres', "SELECT count(*) || '|' || count(DISTINCT k) FROM ev_$shard") } += 1;
	}
	my @odd = map { my $shard = $_; keys %{ $of{$shard} } > 1 ? "$shard: " . join(', ', sort keys %{ $of{$shard} }) : () } sort keys %of;
	return join '; ', @odd if @odd;
	my @sums = (0, 0);
	for my $rows (map { (keys %{$_})[0] } values %of) { my @n = split /\|/, $rows; $sums[$_] += $n[$_] for 0, 1; }
	return join '|', @sums;
}

# ---- what happens to them

my %statement = (
	nothing => { left => $kRows, run => sub { } },
	truncate => { left => 0, run => sub { try_sql('TRUNCATE ev, seen', $_[0]) } },
	drop => {
		left => 0,
		run => sub {
			try_sql('TRUNCATE ev', $_[0]);
			try_sql('DROP FOREIGN TABLE seen CASCADE', $_[0]);
			sql(qq{CREATE FOREIGN TABLE seen (k int) SERVER streamfilter OPTIONS (kind 'bloom', keys '10000', fpr '1e-6'); SELECT streamfilter_distribute('seen'); SET client_min_messages = error; $judge});
		}
	},
	alter => { left => $kRows, run => sub { try_sql(q{ALTER FOREIGN TABLE seen OPTIONS (SET memory '512kB')}, $_[0]) } },
	# Of one key after the other: where one node cannot commit alone it is refused, with two copies always.
	forget => {
		left => $kRows - 30, forgets => 1,
		run => sub { my ($node, $copies) = @_; my ($code) = $node->psql('postgres', join ';', map { "DELETE FROM ev WHERE k = $_" } 1 .. 30); die 'not refused' if ($code == 0) != ($copies == 1) }
	},
	# Who copies a shard learns of no key whose row is gone: it may be stored once again.
	purge => { left => $kRows * 2 / 3, again => $kRows / 3, run => sub { try_sql("DELETE FROM ev WHERE k <= $kRows / 3", $_[0]) } });

# ---- how a node goes, and comes back

sub drain { try_sql('SELECT citus_drain_node(' . place() . q{, shard_transfer_mode => 'block_writes')}); return; }

sub spread
{
	my ($copies) = @_;
	$citus->clean_up;
	sql('SELECT citus_set_node_property(' . place() . q{, 'shouldhaveshards', true)});
	try_sql($copies > 1 ? q{SELECT replicate_table_shards('ev', shard_replication_factor => 2, shard_transfer_mode => 'block_writes')}
		: q{SELECT rebalance_table_shards('ev', shard_transfer_mode => 'block_writes')});
	return;
}

# A standby of the node, which follows.
my $standbys = 0;
sub standby_of
{
	my ($number, $clone) = @_;
	my $node = $citus->node($number);
	my $backup = 'backup' . ++$standbys;
	$node->backup($backup);
	my $standby = PostgreSQL::Test::Cluster->new("standby$standbys");
	$standby->init_from_backup($node, $backup, has_streaming => 1);
	# Citus looks for a clone by the name of its host.
	$standby->append_conf('postgresql.conf', sprintf "primary_conninfo = '%s application_name=%s'", $node->connstr, $clone ? $standby->host : $standby->name);
	chmod 0600, $standby->data_dir . '/server.key';    # that Citus has made
	$standby->start;
	return $standby;
}

sub caught_up { my ($standby) = @_; $citus->node($away)->wait_for_catchup($standby, 'replay', $citus->node($away)->lsn('insert')); return; }

sub all_nodes_do { my ($what) = @_; $what->($_) foreach @{ $citus->{nodes} }; return; }

my %event = (
	disable => {
		goes => sub { drain() if $_[0] == 1; try_sql('SELECT citus_disable_node(' . place() . ', synchronous => true)') },
		comes => sub { try_sql('SELECT citus_activate_node(' . place() . ')'); spread($_[0]) }
	},
	drain => {
		goes => sub { drain(); try_sql('SELECT citus_remove_node(' . place() . ')') },
		comes => sub { $citus->add_node($away); spread($_[0]) }
	},
	remove => {
		goes => sub { if ($_[0] == 1) { drain(); $citus->clean_up } try_sql('SELECT citus_remove_node(' . place() . ')') },
		comes => sub { $citus->add_node($away); spread($_[0]) }
	},
	inactive => {
		goes => sub { drain() if $_[0] == 1; try_sql('SELECT citus_remove_node(' . place() . ')') },
		comes => sub { sql('SELECT citus_add_inactive_node(' . place() . ')'); try_sql('SELECT citus_activate_node(' . place() . ')'); spread($_[0]) }
	},
	resync => { goes => sub { }, comes => sub { try_sql('SELECT start_metadata_sync_to_node(' . place() . ')') } },
	update => {
		goes => sub { return standby_of($away) },
		comes => sub {
			my (undef, $standby) = @_;
			caught_up($standby);
			$citus->node($away)->stop('fast');
			$standby->promote;
			my $id = sql('SELECT nodeid FROM pg_dist_node WHERE nodeport = ' . $citus->node($away)->port);
			$citus->{nodes}[$away] = $standby;
			sql("SELECT citus_update_node($id, " . place() . ')');
			my $known = 'SELECT count(*) = 1 FROM pg_dist_node WHERE nodeport = ' . $standby->port;
			$_->poll_query_until('postgres', $known) || die 'a worker is not told' foreach @{ $citus->{nodes} };
		}
	},
	# All nodes go back to before the statement.
	restore => {
		goes => sub {
			all_nodes_do(sub { $_[0]->stop('fast') });
			all_nodes_do(sub { PostgreSQL::Test::Utils::system_or_bail('cp', '-a', $_[0]->data_dir, $_[0]->data_dir . '.kept'); $_[0]->start });
		},
		comes => sub {
			all_nodes_do(sub { $_[0]->stop('immediate') });
			all_nodes_do(sub {
				PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', $_[0]->data_dir);
				PostgreSQL::Test::Utils::system_or_bail('mv', $_[0]->data_dir . '.kept', $_[0]->data_dir);
				$_[0]->start });
		},
		undoes => 1
	},
	# A standby gets half of the node's shards.
	clone => {
		goes => sub {
			my $standby = standby_of($away, 1);
			my $id = try_sql(sprintf q{SELECT citus_add_clone_node('%s', %d, %s)}, $standby->host, $standby->port, place());
			return [ $standby, $id ];
		},
		comes => sub {
			my ($standby, $id) = @{ $_[1] };
			try_sql("SELECT citus_promote_clone_and_rebalance($id)");
			push @{ $citus->{nodes} }, $standby;
		},
		after => sub {
			my $standby = pop @{ $citus->{nodes} };
			try_sql(sprintf q{SELECT citus_remove_node('%s', %d)}, $standby->host, $standby->port);
			$standby->stop('immediate');
		}
	});

# ---- the cells

sub run_cell
{
	my ($copies, $how, $what, $sender) = @_;
	my ($event, $statement) = ($event{$how}, $statement{$what});
	make($copies, $statement->{forgets});
	load(1, $kRows);
	my $state = $event->{goes}->($copies);
	$statement->{run}->($citus->node($sender), $copies);
	$event->{comes}->($copies, $state);
	my $left = $event->{undoes} || $statement->{forgets} && $copies > 1 ? $kRows : $statement->{left};
	my $before = stored($copies);
	load(1, $kRows, $citus->node($_)) for $sender, 1 - $sender;
	my $now = stored($copies);
	my $again = $event->{undoes} ? 0 : $statement->{again};
	# Copies may differ in keys whose rows are gone: each has them at most once.
	$now = "$kRows|$kRows" if $again && ($copies > 1 || $now =~ /^(\d+)\|\g1$/ && $1 >= $left && $1 <= $left + $again);
	sql('DROP TABLE ev; DROP FOREIGN TABLE seen');
	$citus->clean_up;
	$event->{after}->() if $event->{after};
	return "$before, then $now" eq "$left|$left, then $kRows|$kRows" ? '' : "$before, then $now, not $left|$left, then $kRows|$kRows";
}

CELL: for (@cells)
{
	my ($how, $copies, $what, $sender) = @{$_};
	my $name = "$copies copies, $how, $what, sent by " . ($sender ? 'a worker' : 'the coordinator');
  SKIP:
	{
		skip 'not tested: this Citus has no clones', 1 if $how eq 'clone' && !$has_clones;
		my $found = eval { run_cell($copies, $how, $what, $sender) };
		is($found // $@, '', $name);
		last CELL if !defined $found;
	}
}
done_testing();
