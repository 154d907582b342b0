-- Where the log ends. One row, which every append changes: the append that changes it has the next version.
CREATE TABLE head (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    version bigint NOT NULL,
    batch bytea NOT NULL
) WITH (fillfactor = 10);
INSERT INTO head (version, batch) VALUES (0, decode(repeat('00', 16), 'hex'));

-- One row per batch that is not trimmed.
CREATE TABLE log (version bigint PRIMARY KEY, batch bytea NOT NULL, record bytea NOT NULL);
ALTER TABLE log ALTER COLUMN record SET STORAGE EXTERNAL;

-- Payloads.
CREATE TABLE blob (id bytea PRIMARY KEY, record bytea NOT NULL);
ALTER TABLE blob ALTER COLUMN record SET STORAGE EXTERNAL;

-- At most one row, the newest snapshot; its bytes are its parts.
CREATE TABLE snapshot (version bigint PRIMARY KEY, batch bytea NOT NULL, parts integer NOT NULL);
CREATE TABLE snapshot_part (
    version bigint NOT NULL REFERENCES snapshot ON DELETE CASCADE,
    part integer NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (version, part)
);
ALTER TABLE snapshot_part ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The history, by place. A list does not read the results, which are stored apart when they are large.
CREATE TABLE finished (
    version bigint NOT NULL,
    position integer NOT NULL,
    task bytea NOT NULL UNIQUE,
    ended bigint NOT NULL,
    record bytea NOT NULL,
    result bytea,
    labels text[] NOT NULL,
    PRIMARY KEY (version, position)
);
CREATE INDEX ON finished USING gin (labels);
