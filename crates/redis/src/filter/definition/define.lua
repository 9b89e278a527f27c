-- Defines a filter unless a definition exists, and returns the definition.
-- KEYS: the definition, a hash
-- ARGV: fields of a new definition and their values; none if the script is only to read
if #ARGV > 0 and redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], unpack(ARGV))
end
return redis.call('HGETALL', KEYS[1])
