-- The authors in line for the baton, and the author to whom a batch passed it; 0 is none.
ALTER TABLE head ADD COLUMN line bigint[] NOT NULL DEFAULT '{}', ADD COLUMN baton bigint NOT NULL DEFAULT 0;
ALTER TABLE log ADD COLUMN baton bigint NOT NULL DEFAULT 0;
