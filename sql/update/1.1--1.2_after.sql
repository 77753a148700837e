
-- What 1.2 changes without making it anew.
