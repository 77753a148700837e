-- ---- what users do not call --------------------------------------------------------------------

-- Nobody needs USAGE of it: views, aggregates and triggers have what they call by OID. What other servers call by name is in the
-- schema of the extension, and so are the functions of the type.
CREATE SCHEMA _streamfilter;
COMMENT ON SCHEMA _streamfilter IS 'internals of extension streamfilter: what is saved of filters, and functions that nobody calls by name';

