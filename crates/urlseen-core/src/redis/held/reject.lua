-- Moves a held request to the rejects. If the request is too large for its reject, the script
-- pushes the reject and then the request to the list of oversize rejects.
-- KEYS: held requests of the consumer, requeues, rejects, oversize rejects
-- ARGV: delivery id, reject as JSON, 1 if the reject does not contain the request
-- Returns 1 after the move, 0 if the consumer does not hold the delivery.
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
