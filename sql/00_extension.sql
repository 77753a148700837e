\echo Use "CREATE EXTENSION streamfilter" to load this file. \quit

-- The server runs this with a search_path of pg_catalog, the schema of the extension, where others may have made what
-- they like before, and pg_temp. So: nothing is replaced; in queries, whatever is not ours is qualified; and our own
-- functions, which are found in that schema (the extension can be moved, so it has no name here), are called with
-- exactly the types that they declare, which no other function can be preferred for. test/t/install_script.pl
-- checks it.

-- ---- what users do not call ---------------------------------------------------------------------

-- Nobody needs USAGE of it: views, aggregates and triggers have what they call by OID. What other servers call by name is in the
-- schema of the extension, and so are the functions of the type.
CREATE SCHEMA _streamfilter;
COMMENT ON SCHEMA _streamfilter IS 'internals of extension streamfilter: what is saved of filters, and functions that nobody calls by name';
