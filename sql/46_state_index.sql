-- The first use of a filter reads its own image only, and of that what a row needs first. The log has none: every commit would
-- pay for it.
CREATE INDEX streamfilter_image_filter ON _streamfilter.streamfilter_image
  USING btree (filter pg_catalog.oid_ops, number pg_catalog.int4_ops);

