-- Writes what a filter was made for as its project keeps it, unless that is there.
-- KEYS: the hash
-- ARGV: its fields and their values
if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], unpack(ARGV))
end
