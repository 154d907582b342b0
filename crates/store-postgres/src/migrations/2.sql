-- The authors in line for the append turn, and the author to whom a batch passed it; 0 is none.
ALTER TABLE head ADD COLUMN line bigint[] NOT NULL DEFAULT '{}', ADD COLUMN append_turn bigint NOT NULL DEFAULT 0;
ALTER TABLE log ADD COLUMN append_turn bigint NOT NULL DEFAULT 0;
