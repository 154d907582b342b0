-- Puts an author in line for the append turn, once.
--
-- KEYS: line. ARGV: author.
if not redis.call('LPOS', KEYS[1], ARGV[1]) then
    redis.call('RPUSH', KEYS[1], ARGV[1])
end
return 1
