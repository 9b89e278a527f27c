-- Puts held requests of one consumer back into the sink. A request that is requeued for the first
-- time goes in front, later at the end. A request that was delivered too often stays held: the
-- script returns it, and the caller moves it to the rejects. If the consumer itself or a person
-- gives a request back, it goes in front, and this delivery is not counted: it does not show that
-- the request harms a consumer. After all requests of the consumer were put back, the script
-- removes the entry of the consumer. A value that another program wrote is returned in the same way.
-- KEYS: sink, consumers, held requests of the consumer, requeues
-- ARGV: kind of sink, end of a list to pop from, consumer, last known heartbeat of the consumer
--       ('' if the consumer itself or a person gives the requests back), maximum number of
--       deliveries, delivery ids (none: all)
-- Answers 'alive' if the heartbeat has changed, 'foreign' if another program has written a value of
-- another type to the key of the held requests. Otherwise answers the number of requests put back,
-- and for each request that was delivered too often or cannot be read: the delivery id, the value in
-- the hash, and the earlier consumers; or an error.
-- Never takes a request from a consumer whose heart beats, and never drops one.
local sink, consumers, held, requeues = unpack(KEYS)
local kind, from, consumer, heartbeat = unpack(ARGV, 1, 4)
local most = tonumber(ARGV[5])

-- Puts an item back, in front or at the end. If a sorted set already has the item, the lower of
-- both scores counts.
local function put_back(item, score, in_front)
    if kind == 'zset' then
        if not in_front then
            -- The item gets a score above the last one: a sorted set orders equal scores by bytes.
            local last = redis.call('ZRANGE', sink, -1, -1, 'WITHSCORES')
            if last[2] and tonumber(last[2]) >= tonumber(score) then
                score = string.format('%.17g', tonumber(last[2]) + 1)
            end
        end
        redis.call('ZADD', sink, 'LT', score, item)
    else
        redis.call((from == 'LEFT') == in_front and 'LPUSH' or 'RPUSH', sink, item)
    end
end

local function put_back_refusal()
    if kind == 'zset' then
        return permission_refusal('ZADD', sink, '0', '')
    end
    return permission_refusal('LPUSH', sink, '') or permission_refusal('RPUSH', sink, '')
end

if heartbeat ~= '' and redis.call('HGET', consumers, consumer) ~= heartbeat then
    return 'alive'
end
local refusal = put_back_refusal()
    or permission_refusal('HSET', requeues, '', '')
    or permission_refusal('HDEL', held, '')
    or permission_refusal('HDEL', consumers, '')
if refusal then
    return refusal
end
local is_given_back = heartbeat == ''
local deliveries = {unpack(ARGV, 6)}
local is_all = #deliveries == 0
if is_all then
    deliveries = redis.pcall('HKEYS', held)
    if deliveries.err then
        return string.find(deliveries.err, 'WRONGTYPE', 1, true) and 'foreign' or deliveries
    end
end
local done, too_often = 0, {}
for _, delivery in ipairs(deliveries) do
    local value = redis.call('HGET', held, delivery)
    if value then
        local score, count, item = string.match(value, '^(%S+) (%d+) (.*)$')
        local number = tonumber(score)
        if #too_often > CHUNK then
            break
        elseif not item or not number or number ~= number then
            too_often[#too_often + 1] = delivery
            too_often[#too_often + 1] = value
            too_often[#too_often + 1] = ''
        elseif is_given_back then
            put_back(item, score, true)
            redis.call('HDEL', held, delivery)
            done = done + 1
        elseif tonumber(count) + 1 >= most then
            local before = redis.call('HGET', requeues, redis.sha1hex(item)) or '0'
            too_often[#too_often + 1] = delivery
            too_often[#too_often + 1] = value
            too_often[#too_often + 1] = string.match(before, '^%d+ ?(.*)$') or ''
        else
            local hash = redis.sha1hex(item)
            local before = redis.call('HGET', requeues, hash) or '0'
            put_back(item, score, count == '0')
            redis.call('HSET', requeues, hash, string.gsub(before, '^%d+', count + 1) .. ' ' .. consumer)
            redis.call('HDEL', held, delivery)
            done = done + 1
        end
    end
end
if is_all and #too_often == 0 then
    redis.call('HDEL', consumers, consumer)
end
return {done, unpack(too_often)}
