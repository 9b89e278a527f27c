-- Moves one held request to the rejects.
-- KEYS: held requests of the consumer, requeues, rejects
-- ARGV: delivery id, the reject as JSON
-- Answers 1 if it was done, 0 if the delivery is not held.
local held, requeues, rejects = unpack(KEYS)
local delivery, reject = unpack(ARGV)

local value = redis.call('HGET', held, delivery)
if not value then
    return 0
end
local refusal = permission_refusal('RPUSH', rejects, '')
    or permission_refusal('HDEL', held, delivery)
    or permission_refusal('HDEL', requeues, '')
if refusal then
    return refusal
end
redis.call('RPUSH', rejects, reject)
redis.call('HDEL', held, delivery)
redis.call('HDEL', requeues, redis.sha1hex(string.match(value, '^%S+ %d+ (.*)$')))
return 1
