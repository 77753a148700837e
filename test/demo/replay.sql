-- Sessions that send events as producers do: transactions of `batch` events each, in turn. Within a transaction the keys
-- are in order, so that sessions which meet each other's keys wait, and never deadlock.

-- The most that a session had in memory for its transactions, by way of inserting.
CREATE TABLE replay_memory (way text, session int, bytes bigint);

-- `insertion`: an INSERT of the events $1 <= event_no < $2.
CREATE PROCEDURE replay(way text, insertion text, session int, sessions int, batch int) LANGUAGE plpgsql AS $$
DECLARE
	here bigint := 1 + session * batch;
	last bigint := (SELECT max(event_no) FROM events);
	most bigint := 0;
	number int := 0;
BEGIN
	WHILE here <= last LOOP
		EXECUTE insertion USING here, here + batch;
		-- A look takes longer than a small transaction, so not at each; the first are the largest, having most new keys.
		IF number < 4 OR number % 100 = 0 THEN
			most := greatest(most, (SELECT sum(total_bytes) FROM pg_backend_memory_contexts
				WHERE name = 'TopTransactionContext' OR parent = 'TopTransactionContext'));
		END IF;
		COMMIT;
		number := number + 1;
		here := here + sessions * batch;
	END LOOP;
	INSERT INTO replay_memory VALUES (way, session, most);
END $$;

-- What was kept of every key, by the event that was its first; and of every event, whether it is a second copy.
CREATE VIEW kept_events AS
	SELECT event_no, first_no, row_number() OVER (PARTITION BY first_no ORDER BY event_no) > 1 AS is_missed
	FROM arrivals JOIN truth USING (event_no);

-- A key is lost if no event of it was kept; what was kept of a key beyond one event was missed.
CREATE VIEW outcome AS
	SELECT (SELECT count(*) FROM truth WHERE event_no = first_no) -
	       (SELECT count(DISTINCT first_no) FROM kept_events) AS lost,
	       (SELECT count(*) FROM kept_events WHERE is_missed) AS missed;

-- The same along the stream: both errors in percent, in parts of equally many events.
CREATE FUNCTION error_curve(parts int) RETURNS TABLE (place float8, lost float8, missed float8) LANGUAGE sql
SET enable_nestloop = off AS $$
	WITH bounds AS (SELECT max(event_no) + 1 AS beyond FROM truth),
	     firsts AS (SELECT width_bucket(t.event_no, 1, beyond, parts) AS part, count(*) AS events,
	                       count(*) FILTER (WHERE k.first_no IS NULL) AS lost
	                FROM bounds, truth t LEFT JOIN (SELECT DISTINCT first_no FROM kept_events) k USING (first_no)
	                WHERE t.event_no = t.first_no GROUP BY 1),
	     repeats AS (SELECT width_bucket(event_no, 1, beyond, parts) AS part, count(*) AS events
	                 FROM truth, bounds WHERE event_no > first_no GROUP BY 1),
	     missed AS (SELECT width_bucket(event_no, 1, beyond, parts) AS part, count(*) AS events
	                FROM kept_events, bounds WHERE is_missed GROUP BY 1)
	SELECT (part - 0.5) * (beyond - 1) / parts, 100.0 * coalesce(f.lost, 0) / nullif(f.events, 0),
	       100.0 * coalesce(m.events, 0) / nullif(r.events, 0)
	FROM bounds, generate_series(1, parts) part LEFT JOIN firsts f USING (part)
	LEFT JOIN repeats r USING (part) LEFT JOIN missed m USING (part) ORDER BY part
$$;
