CREATE FUNCTION streamfilter_forget() RETURNS trigger
LANGUAGE C
AS 'MODULE_PATHNAME';
COMMENT ON FUNCTION streamfilter_forget()
IS 'AFTER DELETE OR UPDATE FOR EACH ROW, or AFTER TRUNCATE trigger: the filter forgets what the table has no more; arguments: filter [, column ...]';

