# Connections to servers that hold slices by client certificates, whose files only superusers name.
use Sf;
use Needs;

needs(system('openssl version >/dev/null 2>&1') == 0, 'openssl is not there', 10);

my ($node, $holder) = map { PostgreSQL::Test::Cluster->new($_) } 'producer', 'holder';
foreach my $server ($node, $holder)
{
	$server->init;
	$server->append_conf('postgresql.conf', "shared_preload_libraries = 'streamfilter'\nstreamfilter.shared_memory = '16MB'");
}

# ---- an authority, a server's certificate, and one of role events; and one of nobody -----------------------
my $dir = PostgreSQL::Test::Utils::tempdir();
sub openssl { system("cd $dir && openssl $_[0] >/dev/null 2>&1") == 0 or die "openssl $_[0]"; return; }
openssl('req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.crt -subj /CN=authority');
foreach my $name (qw(server events nobody))
{
	my $subject = $name eq 'server' ? '127.0.0.1' : $name;
	openssl("req -newkey rsa:2048 -nodes -keyout $name.key -out $name.csr -subj /CN=$subject");
	openssl("x509 -req -in $name.csr -days 2 -CA ca.crt -CAkey ca.key -CAcreateserial -out $name.crt");
	chmod 0600, "$dir/$name.key";
}
$holder->append_conf('postgresql.conf',
	"listen_addresses = '127.0.0.1'\nssl = on\nssl_cert_file = '$dir/server.crt'\nssl_key_file = '$dir/server.key'\nssl_ca_file = '$dir/ca.crt'");
unlink $holder->data_dir . '/pg_hba.conf';
$holder->append_conf('pg_hba.conf', "local all all trust\nhostssl all all 127.0.0.1/32 cert");
$_->start for $node, $holder;
sql('CREATE EXTENSION streamfilter', $_) for $node, $holder;
sql(q{CREATE ROLE events LOGIN; GRANT USAGE ON FOREIGN SERVER streamfilter TO events; GRANT CREATE ON SCHEMA public TO events}, $holder);

sub fails { my ($code, undef, $error) = $node->psql('postgres', $_[0]); return $code ? $error : 'no error'; }

sql(sprintf q{
	CREATE SERVER a FOREIGN DATA WRAPPER streamfilter OPTIONS (host '127.0.0.1', port '%d', dbname 'postgres',
	  sslmode 'verify-ca', sslrootcert '%s/ca.crt');
	CREATE ROLE owner LOGIN; GRANT CREATE ON SCHEMA public TO owner; GRANT USAGE ON FOREIGN SERVER a TO owner;
	CREATE USER MAPPING FOR CURRENT_USER SERVER a OPTIONS (user 'events', sslcert '%2$s/events.crt', sslkey '%2$s/events.key');
	CREATE FOREIGN TABLE seen (id int) SERVER a OPTIONS (kind 'bloom', memory '64kB');
	SET ROLE owner; CREATE FOREIGN TABLE owned (id int) SERVER a OPTIONS (kind 'bloom', memory '64kB')}, $holder->port, $dir);

# ---- who connects ----------------------------------------------------------------------------------------------
is(sql(q{SELECT streamfilter_seen('seen', 1), streamfilter_seen('seen', 1)}), 'f|t', 'a certificate lets the owner in');
sql(qq{ALTER USER MAPPING FOR CURRENT_USER SERVER a OPTIONS (SET sslcert '$dir/nobody.crt', SET sslkey '$dir/nobody.key')});
like(fails(q{SELECT streamfilter_seen('seen', 2)}), qr/could not connect to server "a"/, 'that of another role does not');

sql(qq{CREATE USER MAPPING FOR owner SERVER a OPTIONS (user 'events', sslcert '$dir/events.crt', sslkey '$dir/events.key')});
like(fails(q{SET ROLE owner; SELECT streamfilter_seen('owned', 1)}), qr/a password is required to connect to server "a"/,
	'who is no superuser needs a password all the same,');
sql(q{ALTER USER MAPPING FOR owner SERVER a OPTIONS (ADD password_required 'false')});
is(sql(q{SET ROLE owner; SELECT streamfilter_seen('owned', 1), streamfilter_seen('owned', 1)}), 'f|t', 'unless a superuser says that he need not');

# A server with a certificate of another name is there, and no repetition mends that.
sql(q{ALTER SERVER a OPTIONS (SET host 'elsewhere.example', ADD hostaddr '127.0.0.1', SET sslmode 'verify-full', ADD connect_timeout '500ms')});
like(fails(q{SELECT streamfilter_seen('seen', 3)}), qr/could not connect to server "a"\nDETAIL:  .*certificate for "127.0.0.1" does not match host name "elsewhere.example"/,
	'a certificate of another name is an error, with the reason');
is(sql('SELECT bool_or(lost) FROM streamfilter_slices'), 'f', '... and the server does not count as lost');
sql(q{ALTER SERVER a OPTIONS (SET host '127.0.0.1', DROP hostaddr, SET sslmode 'verify-ca', DROP connect_timeout)});

# ---- who says so ---------------------------------------------------------------------------------------------------
sql(q{DROP USER MAPPING FOR owner SERVER a});
foreach my $option ("sslcert '$dir/events.crt'", "sslkey '$dir/events.key'", "password_required 'false'")
{
	like(fails("SET ROLE owner; CREATE USER MAPPING FOR owner SERVER a OPTIONS (user 'events', $option)"), qr/permission denied to set option/,
		"nobody else: $option");
}
like(fails(q{CREATE USER MAPPING FOR owner SERVER a OPTIONS (password_required 'perhaps')}), qr/invalid value for option "password_required"/,
	'it is true or false');

done_testing();
