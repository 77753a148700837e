-- What holds for every kind holds for one that this library has beside its own: test/toy/toy_kind.cpp.
SELECT prototype, note FROM streamfilter_advise('64kB', 0.01, 5000, 1000) WHERE kind = 'toy';
\set ECHO none
\i test/sql/every_kind.sql
