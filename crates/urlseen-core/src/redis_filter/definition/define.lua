-- Defines a filter unless a definition exists, and returns the definition.
-- KEYS: the definition, a hash; name of this hash in earlier versions
-- ARGV: fields of a new definition and their values; none if the script is only to read
if redis.call('EXISTS', KEYS[2]) == 1 then
    return redis.error_reply(
        'EARLIER an earlier version of urlseen defined this filter, under ' .. KEYS[2]
        .. ': delete the filter with its "urlseen state drop", or choose another filter.key')
end
if #ARGV > 0 and redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], unpack(ARGV))
end
return redis.call('HGETALL', KEYS[1])
