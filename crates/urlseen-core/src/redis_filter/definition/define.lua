-- Defines a filter, unless it is defined already; answers its definition.
-- KEYS: definition
-- ARGV: fields and values; none where nothing is to be defined
if #ARGV > 0 and redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], unpack(ARGV))
end
return redis.call('HGETALL', KEYS[1])
