-- Functions for the sink. `kind` is 'list' or 'zset'. `from` is the end of a list to pop from.

-- Returns the first item and its score ('0' in a list), or nil if there is none.
local function sink_first(kind, from, sink)
    if kind == 'zset' then
        local first = redis.call('ZRANGE', sink, 0, 0, 'WITHSCORES')
        return first[1], first[2]
    end
    local item = redis.call('LINDEX', sink, from == 'LEFT' and 0 or -1)
    return item or nil, '0'
end

local function pop_command(kind, from)
    return kind == 'zset' and 'ZPOPMIN' or from == 'LEFT' and 'LPOP' or 'RPOP'
end

local function pop_refusal(kind, from, sink)
    return permission_refusal(pop_command(kind, from), sink)
end

local function sink_remove_first(kind, from, sink)
    redis.call(pop_command(kind, from), sink)
end

-- Puts an item back, in front or at the end. If a sorted set already has the item, the lower of
-- both scores counts.
local function sink_put_back(kind, from, sink, item, score, in_front)
    if kind == 'zset' then
        if not in_front then
            -- The item gets a score above the last one: a sorted set orders equal scores by bytes.
            local last = redis.call('ZRANGE', sink, -1, -1, 'WITHSCORES')
            if last[2] and tonumber(last[2]) >= tonumber(score) then
                score = string.format('%.17g', tonumber(last[2]) + 1)
            end
        end
        redis.call('ZADD', sink, 'LT', score, item)
    elseif (from == 'LEFT') == in_front then
        redis.call('LPUSH', sink, item)
    else
        redis.call('RPUSH', sink, item)
    end
end

local function put_back_refusal(kind, sink)
    if kind == 'zset' then
        return permission_refusal('ZADD', sink, '0', '')
    end
    return permission_refusal('LPUSH', sink, '') or permission_refusal('RPUSH', sink, '')
end
