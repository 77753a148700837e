-- Triggers of 1.0 named their filters; from now on they mean them.
SELECT streamfilter_adopt_triggers();
