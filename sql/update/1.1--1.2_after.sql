
-- What 1.2 changes without making it anew.

-- Filters that relied on the former default of fpr keep it. The function is not part of 1.2.
CREATE FUNCTION streamfilter_write_former_fpr() RETURNS void
LANGUAGE C
AS 'MODULE_PATHNAME';
SELECT streamfilter_write_former_fpr();
DROP FUNCTION streamfilter_write_former_fpr();
