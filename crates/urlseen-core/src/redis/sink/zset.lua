-- Pushes to a Redis sorted set from within a script. Each of `items` is the score of an item, a
-- space, and the item.

local function sink_push_refusal(sink)
    return permission_refusal('ZADD', sink, '0', '')
end

-- Pushes the elements `from` to `to` of `items`. Each takes two arguments, and a call has at most
-- CHUNK arguments.
local function sink_push(sink, items, from, to)
    local half = CHUNK / 2
    for first = from, to, half do
        local pairs, count = {}, 0
        for index = first, math.min(first + half - 1, to) do
            local item = items[index]
            local space = string.find(item, ' ', 1, true)
            pairs[count + 1], pairs[count + 2] = string.sub(item, 1, space - 1),
                string.sub(item, space + 1)
            count = count + 2
        end
        redis.call('ZADD', sink, unpack(pairs, 1, count))
    end
end

local function sink_length(sink)
    return redis.call('ZCARD', sink)
end
