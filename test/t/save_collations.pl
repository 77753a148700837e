# Collations of keys are saved with a filter's state: the session that reads it back is told if they are others.
use Sf;
use Needs;

my $node = start_node('main', '', extra => ['--encoding=UTF8']);
needs(sql(q{SELECT count(*) FROM pg_collation WHERE collprovider = 'i'}), 'this server has no ICU collations', 12);

sql(q{
	CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE FOREIGN TABLE words (word text COLLATE folded, lang text) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
	CREATE FOREIGN TABLE plain (word text) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
	CREATE TYPE pair AS (id int, words text[] COLLATE folded);
	CREATE FOREIGN TABLE nested (p pair[]) SERVER streamfilter OPTIONS (kind 'bloom', keys '1000', fpr '1e-6');
	INSERT INTO nested VALUES ('{"(1,{One})"}');
	INSERT INTO words VALUES ('One', 'en');
	INSERT INTO plain VALUES ('One');});

# Restarts the server; how it answers, and what it warns of.
sub after_restart
{
	$node->restart;
	my ($status, $out, $warnings) = $node->psql('postgres',
		q{SELECT streamfilter_test('words', 'ONE', 'en'), streamfilter_test('plain', 'One') AND streamfilter_test('nested', '{"(1,{ONE})"}')});
	return ($out, $warnings);
}

my ($out, $warnings) = after_restart();
is($out, 't|t', 'restored');
is($warnings, '', 'nothing has changed');

# As an upgrade of ICU and ALTER COLLATION ... REFRESH VERSION would leave it.
sql(q{UPDATE pg_collation SET collversion = '1.2.3' WHERE collname = 'folded'});
($out, $warnings) = after_restart();
is($out, 't|t', 'the state is kept');
like($warnings, qr/WARNING:  the collations of the keys of filter "words" have changed since its state was saved/, 'a warning');
like($warnings, qr/Saved: word: public.folded, OID \d+, version (?!1\.2\.3).* Now: word: public.folded, OID \d+, version 1\.2\.3/s,
	'that tells both versions');
like($warnings, qr/WARNING:  the collations of the keys of filter "nested" have changed.*Saved: p: public.folded, OID/s, '... also within arrays and rows');
unlike($warnings, qr/plain/, 'of these filters only');
($out, $warnings) = after_restart();
like($warnings, qr/have changed/, 'until it is saved anew');
sql(q{SELECT streamfilter_test('words', 'ONE', 'en'); SELECT streamfilter_save('words'); SELECT streamfilter_test('nested', NULL); SELECT streamfilter_save('nested')});
($out, $warnings) = after_restart();
is($out, 't|t', 'still there');
unlike($warnings, qr/have changed/, 'saved with the new version');

# pg_upgrade gives a collation another OID.
sql(q{
	CREATE COLLATION other (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	UPDATE pg_attribute SET attcollation = 'other'::regcollation WHERE attrelid = 'words'::regclass AND attname = 'word';
	ALTER COLLATION folded RENAME TO former;
	ALTER COLLATION other RENAME TO folded;});
($out, $warnings) = after_restart();
like($warnings, qr/have changed.*The filter starts empty; what was saved is set aside/s, 'no filter starts empty without a word');
is(sql(q{SELECT state FROM streamfilter_stats WHERE filter = 'words'::regclass}),
	'set aside: The collations of its keys are others now.', 'nor without a trace');

done();
