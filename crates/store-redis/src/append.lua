-- Appends one batch if the log still ends where the caller believes.
--
-- KEYS: head, log, history, line; then the payloads to keep, the payloads to drop, the finished tasks.
-- ARGV: expected head, new head, new id, batch, record, author; how many payloads to keep, to drop, how many finished tasks,
-- how long those are kept (ms, 0 for ever), how much of the log to return to whoever lost the race, 1 if the author stands
-- in line again; then the payloads; then for each finished task its member, its record, its labels, whether it has a result, and that.
--
-- Returns {1, to whom it passed the baton or nobody} when the batch is in the log, else {0, head, the batches that the
-- caller has missed}, and the caller stands in line for the baton.
local head = redis.call('GET', KEYS[1]) or ''
if head ~= ARGV[1] then
    local there = redis.call('XRANGE', KEYS[2], ARGV[3], ARGV[3])
    if there[1] and string.sub(there[1][2][2], 1, 16) == ARGV[4] then
        -- The same batch once more, from somebody who did not hear the answer. Written again, so that whoever then
        -- waits for replicas waits for something.
        redis.call('SET', KEYS[1], head)
        return {1, string.sub(there[1][2][2], 17)}
    end
    if ARGV[6] ~= '' and not redis.call('LPOS', KEYS[4], ARGV[6]) then
        redis.call('RPUSH', KEYS[4], ARGV[6])
    end
    return {0, head, redis.call('XRANGE', KEYS[2], ARGV[3], '+', 'COUNT', ARGV[11])}
end
local next = redis.call('LINDEX', KEYS[4], 0) or ''
if next ~= '' then
    redis.call('LREM', KEYS[4], 0, ARGV[6])
    next = redis.call('LINDEX', KEYS[4], 0) or ''
end
-- Before all that matters, because it is the only write that can be refused.
redis.call('XADD', KEYS[2], ARGV[3], 'b', ARGV[4] .. next, 'r', ARGV[5])
if next ~= '' then
    redis.call('LPOP', KEYS[4])
end
if ARGV[12] == '1' and ARGV[6] ~= '' then
    redis.call('RPUSH', KEYS[4], ARGV[6])
end
local key, arg = 4, 12
for _ = 1, tonumber(ARGV[7]) do
    key, arg = key + 1, arg + 1
    redis.call('SET', KEYS[key], ARGV[arg])
end
for _ = 1, tonumber(ARGV[8]) do
    key = key + 1
    redis.call('UNLINK', KEYS[key])
end
for _ = 1, tonumber(ARGV[9]) do
    key = key + 1
    local older = redis.call('HGET', KEYS[key], 'm')
    if older then
        redis.call('ZREM', KEYS[3], older)
        redis.call('UNLINK', KEYS[key])
    end
    if ARGV[arg + 4] == '1' then
        redis.call('HSET', KEYS[key], 'm', ARGV[arg + 1], 'r', ARGV[arg + 2], 'l', ARGV[arg + 3], 's', ARGV[arg + 5])
    else
        redis.call('HSET', KEYS[key], 'm', ARGV[arg + 1], 'r', ARGV[arg + 2], 'l', ARGV[arg + 3])
    end
    if ARGV[10] ~= '0' then
        redis.call('PEXPIRE', KEYS[key], ARGV[10])
    end
    redis.call('ZADD', KEYS[3], 0, ARGV[arg + 1])
    arg = arg + 5
end
redis.call('SET', KEYS[1], ARGV[2])
return {1, next}
