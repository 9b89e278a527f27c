-- Writes the hash in which the filter's project keeps the parameters, unless the hash exists.
-- KEYS: the hash
-- ARGV: fields of the hash and their values
if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], unpack(ARGV))
end
