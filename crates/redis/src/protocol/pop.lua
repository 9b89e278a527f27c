-- Pops the first request of the sink and holds it for a consumer, in one step. A consumer that lost
-- the reply sends the same delivery id again, and gets the same delivery. A late call from an
-- abandoned connection also gets the same delivery, and overwrites nothing.
-- KEYS: sink, consumers, held requests of the consumer, requeues
-- ARGV: kind of sink (list or zset), end of a list to pop from (LEFT or RIGHT), consumer,
--       delivery id, maximum number of requests to hold, lowest COUNT of a suspect ('' if the
--       consumer holds no other request). A suspect goes to the rejects if its consumer stops once
--       more, so it is popped only by a consumer that holds nothing else
-- Answers nil if the sink is empty, 'full' if the consumer holds its maximum, 'suspect' if a suspect
-- is first and the consumer holds other requests, or 'SCORE COUNT BYTES' of the request, with COUNT
-- earlier deliveries; or an error.
-- Never removes a request from the sink that no consumer holds then.
local sink, consumers, held, requeues = unpack(KEYS)
local kind, from, consumer, delivery = unpack(ARGV, 1, 4)
local most, suspect = tonumber(ARGV[5]), tonumber(ARGV[6])

local known = redis.call('HGET', held, delivery)
if known then
    return known
end
-- The first item of the sink, its score ('0' in a list), and the command that pops it.
local item, score, command
if kind == 'zset' then
    item, score = unpack(redis.call('ZRANGE', sink, 0, 0, 'WITHSCORES'))
    command = 'ZPOPMIN'
else
    item, score = redis.call('LINDEX', sink, from == 'LEFT' and 0 or -1), '0'
    command = from == 'LEFT' and 'LPOP' or 'RPOP'
end
if not item then
    return false
end
if redis.call('HLEN', held) >= most then
    return 'full'
end
local refusal = permission_refusal(command, sink)
    or permission_refusal('HSET', held, delivery, '')
    or permission_refusal('HGET', requeues, '')
if refusal then
    return refusal
end
local count = 0
if redis.call('EXISTS', requeues) == 1 then
    local requeued = redis.call('HGET', requeues, redis.sha1hex(item))
    count = requeued and tonumber(string.match(requeued, '^%d+')) or 0
end
if suspect and count >= suspect then
    return 'suspect'
end
local value = score .. ' ' .. count .. ' ' .. item

-- If Redis is out of memory, it refuses the first write of a script, and no later one. So the
-- request is in its new place before it leaves the sink.
beat(consumers, consumer)
redis.call('HSET', held, delivery, value)
redis.call(command, sink)
return value
