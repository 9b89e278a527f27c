-- Moves a held request to the rejects.
-- KEYS: held requests of the consumer, requeues, rejects
-- ARGV: delivery id, reject as JSON
-- Answers 1 after the move, 0 if the consumer does not hold the delivery; or an error.
-- Never moves a request that another consumer holds by now.
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
local item = string.match(value, '^%S+ %d+ (.*)$')
redis.call('RPUSH', rejects, reject)
redis.call('HDEL', held, delivery)
if item then
    redis.call('HDEL', requeues, redis.sha1hex(item))
end
return 1
