CREATE EVENT TRIGGER streamfilter_check_ddl ON ddl_command_end
WHEN TAG IN ('CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'IMPORT FOREIGN SCHEMA', 'ALTER TABLE',
  'ALTER SERVER', 'CREATE TRIGGER', 'ALTER TRIGGER', 'CREATE SCHEMA', 'ALTER SCHEMA',
  'REFRESH MATERIALIZED VIEW')
EXECUTE FUNCTION _streamfilter.streamfilter_check_ddl();
COMMENT ON EVENT TRIGGER streamfilter_check_ddl
IS 'checks the definitions of filters and of triggers that use them';

