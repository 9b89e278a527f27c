-- Writes the parameters of a filter in the form of its project, unless they exist.
-- KEYS: the hash
-- ARGV: its fields and their values
if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], unpack(ARGV))
end
