-- Appends one batch if the log still ends where the caller expects.
--
-- KEYS: head, log, history, line; then the payloads to keep, the payloads to drop, the finished tasks.
-- ARGV:
-- - expected head, new head, new id, batch, record, author;
-- - how many payloads to keep, to drop, how many finished tasks, how long those are kept (ms, 0 for ever);
-- - how much of the log to return to the loser of a race, 1 if the author goes to the end of the line;
-- - the payloads;
-- - for each finished task its member, its record, its labels, whether it has a result, and that.
--
-- Returns {1, the author that gets the append turn or ''} when the batch is in the log, else {0, head, the batches that
-- the caller has missed}, and puts the author in line for the append turn.
local head = redis.call('GET', KEYS[1]) or ''
if head ~= ARGV[1] then
    local there = redis.call('XRANGE', KEYS[2], ARGV[3], ARGV[3])
    if there[1] and string.sub(there[1][2][2], 1, 16) == ARGV[4] then
        -- The same batch again: the answer to the first append was lost. The write gives a following WAIT something to
        -- wait for.
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
-- The first of the writes, because only this one can be refused.
redis.call('XADD', KEYS[2], ARGV[3], 'b', ARGV[4] .. next, 'r', ARGV[5])
if next ~= '' then
    redis.call('LPOP', KEYS[4])
end
if ARGV[12] == '1' and ARGV[6] ~= '' then
    redis.call('RPUSH', KEYS[4], ARGV[6])
end
-- One call with many arguments, because a call costs more than its work. Lua passes at most 8000 arguments.
local WORDS_MAX = 4000
local dropped = 5 + tonumber(ARGV[7])
local finished = dropped + tonumber(ARGV[8])
local arg = 12
local blobs = {}
for key = 5, dropped - 1 do
    arg = arg + 1
    blobs[#blobs + 1] = KEYS[key]
    blobs[#blobs + 1] = ARGV[arg]
end
for from = 1, #blobs, WORDS_MAX do
    redis.call('MSET', unpack(blobs, from, math.min(from + WORDS_MAX - 1, #blobs)))
end
for from = dropped, finished - 1, WORDS_MAX do
    redis.call('UNLINK', unpack(KEYS, from, math.min(from + WORDS_MAX, finished) - 1))
end
local is_again = false
for from = finished, #KEYS, WORDS_MAX do
    is_again = redis.call('EXISTS', unpack(KEYS, from, math.min(from + WORDS_MAX - 1, #KEYS))) > 0 or is_again
end
local places = {}
for key = finished, #KEYS do
    local older = is_again and redis.call('HGET', KEYS[key], 'm')
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
    places[#places + 1] = '0'
    places[#places + 1] = ARGV[arg + 1]
    arg = arg + 5
end
for from = 1, #places, WORDS_MAX do
    redis.call('ZADD', KEYS[3], unpack(places, from, math.min(from + WORDS_MAX - 1, #places)))
end
redis.call('SET', KEYS[1], ARGV[2])
return {1, next}
