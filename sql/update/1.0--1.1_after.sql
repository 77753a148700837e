-- Triggers of 1.0 named their filters; from now on they mean them.
SELECT streamfilter_adopt_triggers();

-- Dear enough to come behind most other conditions, and not to have a query compiled.
ALTER FUNCTION streamfilter_test(regclass, VARIADIC "any") COST 20;
