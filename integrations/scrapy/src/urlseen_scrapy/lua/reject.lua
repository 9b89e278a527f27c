-- Moves one held request to the rejects. A request that is too large for its reject goes to the
-- list of oversize rejects, after its reject.
-- KEYS: held requests of the consumer, requeues, rejects, oversize rejects
-- ARGV: delivery id, the reject as JSON, 1 if the request is not in it
-- Answers 1 if it was done, 0 if the delivery is not held.
local held, requeues, rejects, oversize = unpack(KEYS)
local delivery, reject, is_oversize = unpack(ARGV)

local value = redis.call('HGET', held, delivery)
if not value then
    return 0
end
local refusal = permission_refusal('RPUSH', rejects, '')
    or permission_refusal('RPUSH', oversize, '')
    or permission_refusal('HDEL', held, delivery)
    or permission_refusal('HDEL', requeues, '')
if refusal then
    return refusal
end
local item = string.match(value, '^%S+ %d+ (.*)$')
if is_oversize == '1' then
    redis.call('RPUSH', oversize, reject, item)
else
    redis.call('RPUSH', rejects, reject)
end
redis.call('HDEL', held, delivery)
redis.call('HDEL', requeues, redis.sha1hex(item))
return 1
