-- Writes a filter's parameters in the form of its project, unless they are there.
-- KEYS: the hash
-- ARGV: its fields and their values
if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], unpack(ARGV))
end
