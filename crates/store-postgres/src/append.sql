-- Appends one batch if the log still ends where the caller expects ($3, $4): one row, or none and nothing changed.
-- The second of two appends waits for the row of `head`, and then finds it changed. The author ($16) leaves the line, the
-- first author who is left gets the append turn, and the author goes to the end of the line if it has more to append
-- ($17).
WITH moved AS (
    UPDATE laneway.head SET version = $1, batch = $2, append_turn = coalesce((array_remove(line, $16::bigint))[1], 0),
        line = (array_remove(line, $16))[2:] || CASE WHEN $17::boolean THEN ARRAY[$16] ELSE '{}' END
    WHERE version = $3 AND batch = $4 RETURNING version, append_turn
), logged AS (
    INSERT INTO laneway.log (version, batch, record, append_turn) SELECT moved.version, $2, $5, moved.append_turn FROM moved
), kept AS (
    INSERT INTO laneway.blob (id, record)
    SELECT given.id, given.record FROM moved, unnest($6::bytea[], $7::bytea[]) AS given (id, record)
    ON CONFLICT (id) DO UPDATE SET record = excluded.record
), dropped AS (
    DELETE FROM laneway.blob USING moved WHERE blob.id = ANY ($8::bytea[])
), ended AS (
    INSERT INTO laneway.finished (version, position, task, ended, record, result, labels)
    SELECT moved.version, given.position, given.task, given.ended, given.record, given.result,
        string_to_array(given.labels, chr(10))
    FROM moved, unnest($9::integer[], $10::bytea[], $11::bigint[], $12::bytea[], $13::bytea[], $15::text[])
        AS given (position, task, ended, record, result, labels)
    ON CONFLICT (task) DO UPDATE SET version = excluded.version, position = excluded.position,
        ended = excluded.ended, record = excluded.record, result = excluded.result, labels = excluded.labels
)
SELECT moved.append_turn FROM moved, pg_notify($14, moved.version || ' ' || moved.append_turn)
