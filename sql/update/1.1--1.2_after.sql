
-- What 1.2 changes without making it anew.

COMMENT ON VIEW streamfilter_progress
IS 'how far long work of sessions of this database has come: advice, evaluations, streamfilter_distinct(), warming, restoring, resizing, settling';
