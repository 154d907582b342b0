-- Those who want to append, the first first, and to whom the last batch passed the baton. 0 is nobody.
ALTER TABLE head ADD COLUMN line bigint[] NOT NULL DEFAULT '{}', ADD COLUMN baton bigint NOT NULL DEFAULT 0;
ALTER TABLE log ADD COLUMN baton bigint NOT NULL DEFAULT 0;
