
-- States of aggregates are as large as what they hold, so that the planner may hash groups.
CREATE OR REPLACE AGGREGATE streamfilter_agg(key "any", prototype streamfilter) (
  SFUNC = streamfilter_agg_transition,
  STYPE = internal,
  SSPACE = 8192,
  FINALFUNC = streamfilter_agg_final,
  COMBINEFUNC = streamfilter_agg_combine,
  SERIALFUNC = streamfilter_agg_serialize,
  DESERIALFUNC = streamfilter_agg_deserialize,
  PARALLEL = SAFE
);

CREATE OR REPLACE AGGREGATE approx_count_distinct(key "any") (
  SFUNC = approx_count_distinct_transition,
  STYPE = internal,
  SSPACE = 128,
  FINALFUNC = approx_count_distinct_final,
  COMBINEFUNC = streamfilter_agg_combine,
  SERIALFUNC = streamfilter_agg_serialize,
  DESERIALFUNC = streamfilter_agg_deserialize,
  PARALLEL = SAFE
);

CREATE OR REPLACE AGGREGATE approx_count_distinct(key "any", prototype streamfilter) (
  SFUNC = approx_count_distinct_transition,
  STYPE = internal,
  SSPACE = 128,
  FINALFUNC = approx_count_distinct_final,
  COMBINEFUNC = streamfilter_agg_combine,
  SERIALFUNC = streamfilter_agg_serialize,
  DESERIALFUNC = streamfilter_agg_deserialize,
  PARALLEL = SAFE
);
