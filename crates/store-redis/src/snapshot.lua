-- Makes parts that were written before this call the snapshot, unless there is one as new.
--
-- KEYS: head, log, snapshot, the parts, the parts of the snapshot that the caller saw (or anything).
-- ARGV: head of the snapshot, its id in the log, its batch, how many parts, the head of the snapshot that the caller saw.
--
-- Returns 'saved', 'older', 'again' (another snapshot was saved meanwhile), or where the log ends if it does not
-- contain the head of the snapshot.
local head = redis.call('GET', KEYS[1]) or ''
local at = redis.call('XRANGE', KEYS[2], ARGV[2], ARGV[2])
if string.sub(ARGV[1], 1, 8) > string.sub(head, 1, 8) or (at[1] and string.sub(at[1][2][2], 1, 16) ~= ARGV[3]) then
    redis.call('UNLINK', KEYS[4])
    return {head}
end
local kept = redis.call('HGET', KEYS[3], 'h') or ''
if kept ~= '' and string.sub(kept, 1, 8) >= string.sub(ARGV[1], 1, 8) then
    redis.call('UNLINK', KEYS[4])
    return 'older'
end
if kept ~= ARGV[5] then
    return 'again'
end
redis.call('HSET', KEYS[3], 'h', ARGV[1], 'k', KEYS[4], 'n', ARGV[4])
redis.call('PERSIST', KEYS[4])
if kept ~= '' then
    -- A replica that reads them now has a minute to finish.
    redis.call('PEXPIRE', KEYS[5], 60000)
end
return 'saved'
