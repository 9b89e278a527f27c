-- Acknowledges a delivery and pushes the requests of the links on its page, in one step. Does
-- nothing if the consumer no longer holds the delivery, because then another consumer has it. To
-- reject a request, the script pushes the reject to the rejects instead.
-- KEYS: source or rejects, held requests of the consumer, requeues
-- ARGV: command that pushes (RPUSH or LPUSH to the source, RPUSH to the rejects), delivery id, the
--       requests or the reject as JSON
-- Answers 1 after the acknowledgement, 0 if the consumer does not hold the delivery; or an error.
-- Never pushes without the acknowledgement, or the reverse.
local list, held, requeues = unpack(KEYS)
local push, delivery = ARGV[1], ARGV[2]

local value = redis.call('HGET', held, delivery)
if not value then
    return 0
end
local refusal = permission_refusal(push, list, '')
    or permission_refusal('HDEL', held, delivery)
    or permission_refusal('HDEL', requeues, '')
if refusal then
    return refusal
end
push_arguments(push, list, 3)
redis.call('HDEL', held, delivery)
local count, item = string.match(value, '^%S+ (%d+) (.*)$')
if item and count ~= '0' then
    redis.call('HDEL', requeues, redis.sha1hex(item))
end
return 1
